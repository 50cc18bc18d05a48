//! How long a step may take: as long as those like it took here or, before there are any, on another
//! machine; a pretraining by the updates that it makes.

use std::collections::HashMap;

use super::step::CPU;

/// Seconds that a step of a kind takes on two cores, for as long as nothing was measured here.
const USUAL: [(&str, f64); 26] = [
    ("world generate", 1.5),
    ("pretrain tiny", 75.0),
    ("pretrain tiny real", 85.0),
    ("transfer nli tiny", 20.0),
    ("transfer ner tiny", 5.0),
    ("transfer parse tiny", 8.0),
    ("transfer ner tiny above", 3.0),
    ("transfer parse tiny above", 5.0),
    ("retrieve", 3.0),
    ("words tiny", 1.5),
    ("words static", 0.1),
    ("words embeddings", 0.1),
    ("align words", 0.1),
    ("align contexts", 1.5),
    ("align contexts real", 2.5),
    ("word-align", 0.1),
    ("word-align real", 0.3),
    ("encode", 0.2),
    ("cka", 0.1),
    ("shift means tiny", 7.0),
    ("shift sweep tiny", 9.0),
    ("shift translate", 0.1),
    ("vocab stats", 0.1),
    ("vectors word2vec", 5.0),
    ("vectors glove", 0.5),
    ("vectors word2vec n-grams", 25.0),
];

/// Seconds of a pretraining that are no updates: vocabulary and corpora (of real text: some 60 MB a language).
const BESIDE: [(&str, f64); 2] = [("pretrain tiny", 1.2), ("pretrain tiny real", 11.0)];

/// The updates that a pretraining makes at each scale, if nothing else is said.
pub const UPDATES: [(&str, u64); 3] = [("tiny", 6000), ("small", 24_000), ("paper", 417_000)];

/// How many steps of a kind are remembered.
const LAST: usize = 5;

/// How much work a command is, as a share of what one of its kind usually is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Work(f64);

impl Work {
    /// The work of a command, as it is typed.
    pub(super) fn of(command: &str) -> Self {
        let words: Vec<&str> = command.split_whitespace().collect();
        let value = |flag: &str| {
            let place = words.iter().rposition(|word| *word == flag)?;
            words.get(place + 1).copied()
        };
        let usual = UPDATES.iter().find(|(scale, _)| value("--scale") == Some(scale));
        let Some(&(_, usual)) = usual.filter(|_| words.get(1) == Some(&"pretrain")) else {
            return Self(1.0);
        };
        let joined = words
            .iter()
            .rev()
            .find_map(|word| word.strip_prefix("--steps=").or_else(|| word.strip_prefix("steps=")));
        let steps = value("--steps").or(joined);
        match (steps.and_then(|steps| steps.parse::<u64>().ok()), value("--preset")) {
            (Some(steps), _) => Self(steps as f64 / usual as f64),
            (None, Some("random")) => Self(0.0),
            (None, _) => Self(1.0),
        }
    }

    fn is_like(self, other: Work) -> bool {
        (self.0 - other.0).abs() <= 0.01 * self.0.max(other.0)
    }
}

/// What steps have taken, by kind and device.
#[derive(Default)]
pub(super) struct Costs {
    taken: HashMap<(String, String), Vec<(Work, f64)>>,
}

impl Costs {
    /// Adds a step that is done; the last ones come first.
    pub(super) fn add(&mut self, kind: &str, device: &str, work: Work, seconds: f64) {
        let taken = self.taken.entry((kind.to_owned(), device.to_owned())).or_default();
        if taken.iter().filter(|(other, _)| other.is_like(work)).count() < LAST {
            taken.push((work, seconds));
        }
    }

    /// The seconds that a step may take, if anything is known of its like.
    pub(super) fn expect(&self, kind: &str, device: &str, work: Work) -> Option<f64> {
        let of_kind = |table: &[(&str, f64)]| {
            table.iter().find(|(known, _)| *known == kind && device == CPU).map(|known| known.1)
        };
        let mut taken =
            self.taken.get(&(kind.to_owned(), device.to_owned())).cloned().unwrap_or_default();
        let mean = |work: Work, taken: &[(Work, f64)]| {
            let alike = taken.iter().filter(|(other, _)| other.is_like(work));
            let alike: Vec<f64> = alike.map(|(_, seconds)| *seconds).collect();
            (!alike.is_empty()).then(|| alike.iter().sum::<f64>() / alike.len() as f64)
        };
        let beside = mean(Work(0.0), &taken).or(of_kind(&BESIDE));
        if let Some(seconds) = mean(work, &taken) {
            return Some(seconds);
        }
        if work == Work(0.0) {
            return beside;
        }
        if !taken.iter().any(|(other, _)| other.0 > 0.0) {
            taken.extend(of_kind(&USUAL).map(|seconds| (Work(1.0), seconds)));
        }
        let far = |other: Work| (other.0 / work.0).ln().abs();
        let done = taken.iter().map(|&(other, _)| other).filter(|other| other.0 > 0.0);
        let nearest = done.min_by(|&a, &b| far(a).total_cmp(&far(b)))?;
        let seconds = mean(nearest, &taken)?;
        let beside = beside.unwrap_or(0.0).min(seconds);
        Some(beside + (seconds - beside) * work.0 / nearest.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(flags: &str) -> Work {
        Work::of(&format!("isogloss pretrain --preset no-anchors --scale tiny {flags} --out run"))
    }

    #[test]
    fn the_updates_of_a_command_are_found() {
        assert_eq!(work(""), Work(1.0));
        assert_eq!(work("--steps 600"), Work(0.1));
        assert_eq!(work("--steps=600"), Work(0.1));
        assert_eq!(work("--set steps=600"), Work(0.1));
        assert_eq!(work("--steps 5 --steps 12000"), Work(2.0));
        assert_eq!(Work::of("isogloss pretrain --preset random --scale small"), Work(0.0));
        assert_eq!(
            Work::of("isogloss pretrain --preset random --scale small --steps 24"),
            Work(0.001)
        );
        assert_eq!(Work::of("isogloss retrieve --model run"), Work(1.0));
    }

    #[test]
    fn a_pretraining_costs_what_its_updates_do() {
        let costs = Costs::default();
        let expect = |kind, flags| costs.expect(kind, CPU, work(flags)).unwrap();
        assert_eq!(expect("pretrain tiny", ""), 75.0);
        assert_eq!(expect("pretrain tiny", "--steps 0"), 1.2);
        assert!((expect("pretrain tiny", "--steps 100") - 2.4).abs() < 0.1);
        assert!((expect("pretrain tiny real", "--steps 100") - 12.2).abs() < 0.1);
        assert_eq!(costs.expect("pretrain small", CPU, Work(1.0)), None);
        assert_eq!(costs.expect("pretrain tiny", "cuda", Work(1.0)), None);
    }

    #[test]
    fn what_was_measured_here_comes_first() {
        let mut costs = Costs::default();
        costs.add("pretrain small", "cuda", Work(0.5), 120.0);
        let expect = |costs: &Costs, share| costs.expect("pretrain small", "cuda", Work(share));
        assert_eq!(expect(&costs, 1.0), Some(240.0));
        assert_eq!(expect(&costs, 0.0), None, "of what is no update, nothing is known");
        costs.add("pretrain small", "cuda", Work(0.0), 20.0);
        assert_eq!((expect(&costs, 0.0), expect(&costs, 1.0)), (Some(20.0), Some(220.0)));
        // Only the last few of a size count, and those nearest in size.
        for _ in 0..LAST {
            costs.add("pretrain small", "cuda", Work(1.0), 200.0);
        }
        costs.add("pretrain small", "cuda", Work(1.0), 9000.0);
        assert_eq!((expect(&costs, 1.0), expect(&costs, 1.9)), (Some(200.0), Some(362.0)));
    }
}
