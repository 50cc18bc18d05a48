//! The expected cost of a step: the time that steps like it took in this laboratory or, before there are any, on two CPU
//! cores; pretraining is scaled by its number of updates.

use std::collections::HashMap;

use terms::{Preset, Scale};

use super::step::CPU;

/// Seconds that a step of a kind takes on two CPU cores, until one was measured here.
const TYPICAL: [(&str, f64); 38] = [
    ("world generate", 1.5),
    ("pretrain tiny", 75.0),
    ("pretrain tiny real", 85.0),
    ("transfer nli tiny", 20.0),
    ("transfer ner tiny", 5.0),
    ("transfer parse tiny", 8.0),
    ("transfer pos tiny", 5.0),
    ("transfer classify tiny", 10.0),
    ("transfer ner tiny above", 3.0),
    ("transfer parse tiny above", 5.0),
    ("retrieve", 3.0),
    ("words tiny", 1.5),
    ("words static", 0.1),
    ("words embeddings", 0.1),
    ("align words", 0.1),
    ("align many", 0.5),
    ("corpus alter", 3.0),
    ("corpus exclude", 20.0),
    ("corpus filter", 0.1),
    ("align contexts", 1.5),
    ("align contexts real", 2.5),
    ("word-align", 0.1),
    ("word-align real", 0.3),
    ("word-align encoder", 12.0),
    ("mine", 10.0),
    ("cka", 0.1),
    ("similarity", 1.0),
    ("language-id", 2.0),
    ("language-neurons", 1.0),
    ("shift means tiny", 7.0),
    ("shift sweep tiny", 9.0),
    ("shift translate", 0.1),
    ("vocab stats", 0.1),
    ("vocab train", 5.0),
    ("corpus prepare", 6.0),
    ("vectors word2vec", 5.0),
    ("vectors glove", 0.5),
    ("vectors word2vec n-grams", 25.0),
];

/// Seconds of a pretraining before its updates: vocabulary and corpora (of real text: some 60 MB a language).
const PREPARATION: [(&str, f64); 2] = [("pretrain tiny", 1.2), ("pretrain tiny real", 11.0)];

/// How many of the latest steps of a kind and size are averaged.
const LAST: usize = 5;

/// The work of a command relative to the default of its kind: for pretraining, its updates by the default number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Workload(f64);

impl Workload {
    pub(super) fn of(command: &str) -> Self {
        let words: Vec<&str> = command.split_whitespace().collect();
        let value = |flag: &str| {
            let place = words.iter().rposition(|word| *word == flag)?;
            words.get(place + 1).copied()
        };
        let scale = value("--scale").and_then(|scale| scale.parse::<Scale>().ok());
        let Some(scale) = scale.filter(|_| words.get(1) == Some(&"pretrain")) else {
            return Self(1.0);
        };
        let joined = words
            .iter()
            .rev()
            .find_map(|word| word.strip_prefix("--steps=").or_else(|| word.strip_prefix("steps=")));
        let steps = value("--steps").or(joined);
        match (steps.and_then(|steps| steps.parse::<u64>().ok()), value("--preset")) {
            (Some(steps), _) => Self(steps as f64 / scale.steps() as f64),
            (None, Some(preset)) if preset == Preset::Untrained.name() => Self(0.0),
            (None, _) => Self(1.0),
        }
    }

    fn is_close_to(self, other: Workload) -> bool {
        (self.0 - other.0).abs() <= 0.01 * self.0.max(other.0)
    }
}

/// How long steps took and how much memory they held, by kind and device.
#[derive(Default)]
pub(super) struct CostHistory {
    taken: HashMap<(String, String), Vec<(Workload, f64)>>,
    /// The most memory that a step held, in bytes.
    peaks: HashMap<(String, String), u64>,
}

impl CostHistory {
    /// Adds a completed step; the latest come first.
    pub(super) fn add(&mut self, kind: &str, device: &str, work: Workload, seconds: f64) {
        let taken = self.taken.entry((kind.to_owned(), device.to_owned())).or_default();
        if taken.iter().filter(|(other, _)| other.is_close_to(work)).count() < LAST {
            taken.push((work, seconds));
        }
    }

    /// Adds a step that has just been completed, in place of the oldest like it.
    pub(super) fn add_latest(&mut self, kind: &str, device: &str, work: Workload, seconds: f64) {
        let taken = self.taken.entry((kind.to_owned(), device.to_owned())).or_default();
        taken.insert(0, (work, seconds));
        let mut alike = 0;
        taken.retain(|(other, _)| {
            alike += usize::from(other.is_close_to(work));
            !other.is_close_to(work) || alike <= LAST
        });
    }

    /// Notes how much memory a step held, in bytes, where that is known.
    pub(super) fn add_peak(&mut self, kind: &str, device: &str, bytes: Option<u64>) {
        if let Some(bytes) = bytes {
            let peak = self.peaks.entry((kind.to_owned(), device.to_owned())).or_default();
            *peak = bytes.max(*peak);
        }
    }

    /// The most memory that a step of a kind held, in bytes; 0 where none is known.
    pub(super) fn peak(&self, kind: &str, device: &str) -> u64 {
        self.peaks.get(&(kind.to_owned(), device.to_owned())).copied().unwrap_or(0)
    }

    /// The expected seconds of a step, if any of its kind is known.
    pub(super) fn expect(&self, kind: &str, device: &str, work: Workload) -> Option<f64> {
        let of_kind = |table: &[(&str, f64)]| {
            table.iter().find(|(known, _)| *known == kind && device == CPU).map(|known| known.1)
        };
        let mut taken =
            self.taken.get(&(kind.to_owned(), device.to_owned())).cloned().unwrap_or_default();
        let mean = |work: Workload, taken: &[(Workload, f64)]| {
            let alike = taken.iter().filter(|(other, _)| other.is_close_to(work));
            let alike: Vec<f64> = alike.map(|(_, seconds)| *seconds).collect();
            (!alike.is_empty()).then(|| alike.iter().sum::<f64>() / alike.len() as f64)
        };
        let preparation = mean(Workload(0.0), &taken).or(of_kind(&PREPARATION));
        if let Some(seconds) = mean(work, &taken) {
            return Some(seconds);
        }
        if work == Workload(0.0) {
            return preparation;
        }
        if !taken.iter().any(|(other, _)| other.0 > 0.0) {
            taken.extend(of_kind(&TYPICAL).map(|seconds| (Workload(1.0), seconds)));
        }
        let far = |other: Workload| (other.0 / work.0).ln().abs();
        let done = taken.iter().map(|&(other, _)| other).filter(|other| other.0 > 0.0);
        let nearest = done.min_by(|&a, &b| far(a).total_cmp(&far(b)))?;
        let seconds = mean(nearest, &taken)?;
        let preparation = preparation.unwrap_or(0.0).min(seconds);
        Some(preparation + (seconds - preparation) * work.0 / nearest.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(flags: &str) -> Workload {
        Workload::of(&format!(
            "isogloss pretrain --preset no-anchors --scale tiny {flags} --out run"
        ))
    }

    #[test]
    fn the_updates_of_a_command_are_found() {
        assert_eq!(work(""), Workload(1.0));
        assert_eq!(work("--steps 600"), Workload(0.1));
        assert_eq!(work("--steps=600"), Workload(0.1));
        assert_eq!(work("--set steps=600"), Workload(0.1));
        assert_eq!(work("--steps 5 --steps 12000"), Workload(2.0));
        assert_eq!(
            Workload::of("isogloss pretrain --preset untrained --scale small"),
            Workload(0.0)
        );
        assert_eq!(
            Workload::of("isogloss pretrain --preset untrained --scale small --steps 8"),
            Workload(0.001)
        );
        assert_eq!(Workload::of("isogloss retrieve --model run"), Workload(1.0));
    }

    #[test]
    fn a_pretraining_costs_what_its_updates_do() {
        let costs = CostHistory::default();
        let expect = |kind, flags| costs.expect(kind, CPU, work(flags)).unwrap();
        assert_eq!(expect("pretrain tiny", ""), 75.0);
        assert_eq!(expect("pretrain tiny", "--steps 0"), 1.2);
        assert!((expect("pretrain tiny", "--steps 100") - 2.4).abs() < 0.1);
        assert!((expect("pretrain tiny real", "--steps 100") - 12.2).abs() < 0.1);
        assert_eq!(costs.expect("pretrain small", CPU, Workload(1.0)), None);
        assert_eq!(costs.expect("pretrain tiny", "cuda", Workload(1.0)), None);
    }

    #[test]
    fn what_was_measured_here_comes_first() {
        let mut costs = CostHistory::default();
        costs.add("pretrain small", "cuda", Workload(0.5), 120.0);
        let expect =
            |costs: &CostHistory, share| costs.expect("pretrain small", "cuda", Workload(share));
        assert_eq!(expect(&costs, 1.0), Some(240.0));
        assert_eq!(expect(&costs, 0.0), None, "the cost of preparation is unknown");
        costs.add("pretrain small", "cuda", Workload(0.0), 20.0);
        assert_eq!((expect(&costs, 0.0), expect(&costs, 1.0)), (Some(20.0), Some(220.0)));
        // Only the latest of a size count, and those nearest in size.
        for _ in 0..LAST {
            costs.add("pretrain small", "cuda", Workload(1.0), 200.0);
        }
        costs.add("pretrain small", "cuda", Workload(1.0), 9000.0);
        assert_eq!((expect(&costs, 1.0), expect(&costs, 1.9)), (Some(200.0), Some(362.0)));
        costs.add_latest("pretrain small", "cuda", Workload(1.0), 700.0);
        assert_eq!(expect(&costs, 1.0), Some(300.0), "the mean of the last five");
        for bytes in [None, Some(5), Some(9), Some(7)] {
            costs.add_peak("pretrain small", "cuda", bytes);
        }
        assert_eq!(["cuda", CPU].map(|device| costs.peak("pretrain small", device)), [9, 0]);
    }
}
