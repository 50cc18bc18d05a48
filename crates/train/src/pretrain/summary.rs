//! The state of a run that every checkpoint carries, and the summary at its end.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use terms::{Preset, Scale};

use super::evaluate::ProbeRetrieval;
use super::log::LossLog;

/// The best weights so far.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BestWeights {
    /// After which update.
    pub step: u64,
    /// Their perplexity.
    #[serde(with = "terms::number")]
    pub perplexity: f64,
}

/// When something happened in a run; where it lies between two evaluations, interpolated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainingMoment {
    /// After which update.
    pub step: u64,
    /// After how many tokens.
    pub tokens: u64,
}

/// What a checkpoint carries besides weights. Nothing in it depends on time.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct RunState {
    pub(crate) log: LossLog,
    /// A digest of the lines of metrics up to here; empty in checkpoints of older releases.
    #[serde(default)]
    pub(crate) metrics: String,
    /// A fingerprint of each language's text.
    pub(crate) text: Vec<String>,
    pub(crate) tokens: u64,
    pub(crate) best: Option<BestWeights>,
    pub(crate) since_best: u64,
    pub(crate) left_plateau: Option<TrainingMoment>,
    /// Raw retrieval at every evaluation, for each probe.
    #[serde(default)]
    pub(crate) curves: Vec<Vec<CurvePoint>>,
    /// Perplexity on held-out text, last measured.
    #[serde(with = "terms::number")]
    pub(crate) perplexity: BTreeMap<String, f64>,
    /// Retrieval accuracy on the probes, last measured.
    pub(crate) retrieval: Vec<ProbeRetrieval>,
}

impl RunState {
    pub(crate) fn new(text: Vec<String>) -> Self {
        Self {
            log: LossLog::new(text.len()),
            metrics: String::new(),
            text,
            tokens: 0,
            best: None,
            since_best: 0,
            left_plateau: None,
            curves: Vec::new(),
            perplexity: BTreeMap::new(),
            retrieval: Vec::new(),
        }
    }

    /// What in a state that was read cannot be of a run of so many languages, if anything.
    pub(crate) fn fault(&self, languages: usize) -> Option<String> {
        let logged = self.log.languages();
        match logged == languages && self.curves.len() == self.retrieval.len() {
            true => None,
            false => {
                Some(format!("its state is of {logged} languages, and the run is of {languages}"))
            }
        }
    }

    /// Records an evaluation after an update.
    pub(crate) fn record(
        &mut self,
        step: u64,
        perplexity: BTreeMap<String, f64>,
        retrieval: Vec<ProbeRetrieval>,
    ) {
        self.curves.resize(retrieval.len(), Vec::new());
        let moment = TrainingMoment { step, tokens: self.tokens };
        for (curve, retrieval) in self.curves.iter_mut().zip(&retrieval) {
            curve.push(CurvePoint { moment, accuracy: retrieval.best().0 });
        }
        self.perplexity = perplexity;
        self.retrieval = retrieval;
    }

    /// When retrieval without alignment emerged, for each probe.
    pub(crate) fn emerged(&self) -> Vec<Option<TrainingMoment>> {
        let probes = self.curves.iter().zip(&self.retrieval);
        probes.map(|(curve, retrieval)| emergence(curve, retrieval.sentences)).collect()
    }
}

/// The best layer's raw P@1 at an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CurvePoint {
    moment: TrainingMoment,
    #[serde(with = "terms::number")]
    accuracy: f64,
}

/// Standard errors by which the last accuracy must exceed that of the untrained encoder (whose position
/// embeddings leak word order) for anything to have emerged.
const CLEARLY: f64 = 3.0;

/// When retrieval emerged: where the curve of accuracy last rises through half of its final level above that
/// of the untrained encoder, interpolated against the logarithm of the step. The last time, because
/// before the languages part their sentences are close for a while for no better reason than that
/// all states are. Such a point is the same however often one looks, where "the first evaluation above a
/// threshold" is not. None where the last accuracy, among `sentences`, is not clearly above the untrained.
fn emergence(curve: &[CurvePoint], sentences: usize) -> Option<TrainingMoment> {
    let (untrained, last) = (curve.first()?.accuracy, curve.last()?.accuracy);
    let variance = |accuracy: f64| accuracy * (1.0 - accuracy) / sentences.max(1) as f64;
    if last - untrained <= CLEARLY * (variance(last) + variance(untrained)).sqrt() {
        return None;
    }
    let half = (untrained + last) / 2.0;
    let rises = |pair: &&[CurvePoint]| pair[0].accuracy < half && pair[1].accuracy >= half;
    let pair = curve.windows(2).rfind(rises)?;
    let (before, after) = (pair[0], pair[1]);
    let share = (half - before.accuracy) / (after.accuracy - before.accuracy);
    let between = |a: u64, b: u64| {
        let [a, b] = [a, b].map(|count| (count as f64).ln_1p());
        (a + share * (b - a)).exp_m1().round() as u64
    };
    let (before, after) = (before.moment, after.moment);
    Some(TrainingMoment {
        step: between(before.step, after.step),
        tokens: between(before.tokens, after.tokens),
    })
}

/// How a process spent its time, as shares of the whole.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct TimeShares {
    /// Waiting for batches.
    pub waiting: f64,
    /// Measuring perplexity and retrieval, and saving the best weights.
    pub evaluating: f64,
    /// Writing checkpoints.
    pub saving: f64,
}

/// The result of a run: what `summary.json` holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PretrainSummary {
    /// What was trained and how, in one line.
    pub signature: String,
    /// The preset.
    pub preset: Preset,
    /// The scale.
    pub scale: Scale,
    /// The seed.
    pub seed: u64,
    /// Updates made, over all processes.
    pub steps: u64,
    /// Whether the goal was reached, or patience ran out before it.
    pub finished: bool,
    /// Tokens seen, over all processes.
    pub tokens: u64,
    /// Seconds that this process took.
    pub seconds: f64,
    /// Tokens a second of this process.
    pub tokens_per_second: f64,
    /// Where the seconds went.
    pub shares: TimeShares,
    /// Parameters that are trained.
    pub parameters: usize,
    /// When the loss left the initial plateau (unigram entropy).
    pub left_plateau: Option<TrainingMoment>,
    /// For each probe, when raw retrieval emerged: where P@1 of the best layer last rises through half of
    /// its final level above that of the untrained encoder; none where it ends no clearly higher.
    pub emerged: Vec<Option<TrainingMoment>>,
    /// The weights in `model.safetensors`: those of the lowest perplexity.
    pub best: Option<BestWeights>,
    /// Perplexity on held-out text, last measured.
    #[serde(with = "terms::number")]
    pub perplexity: BTreeMap<String, f64>,
    /// Retrieval accuracy on the probes, last measured.
    pub retrieval: Vec<ProbeRetrieval>,
}

impl PretrainSummary {
    pub(super) const FILE: &str = "summary.json";

    /// Reads that of the run in `folder`, if it has come to its end once.
    pub fn read(folder: &Path) -> Option<Self> {
        files::sealed::read_json(&fs::read_to_string(folder.join(Self::FILE)).ok()?).ok()
    }

    pub(super) fn write(&self, folder: &Path) -> files::Result<()> {
        let text = serde_json::to_string_pretty(self).expect("a summary is valid JSON");
        files::write(&folder.join(Self::FILE), files::sealed::seal_json(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(accuracy: impl Fn(u64) -> f64, steps: impl Iterator<Item = u64>) -> Vec<CurvePoint> {
        let point = |step: u64| CurvePoint {
            moment: TrainingMoment { step, tokens: 1000 * step },
            accuracy: accuracy(step),
        };
        steps.map(point).collect()
    }

    /// 0 at the beginning, a bump of .4 around step 60, then a rise to .6 whose middle is step 900.
    fn with_bump(step: u64) -> f64 {
        let log = (step.max(1) as f64).ln();
        let bump = 0.4 * (-(log - 60_f64.ln()).powi(2) / 0.1).exp();
        bump + 0.6 / (1.0 + (-6.0 * (log - 900_f64.ln())).exp())
    }

    /// A state that was put together by hand, with a digest that is right.
    #[test]
    fn a_state_of_other_languages_is_no_state_of_the_run() {
        let state = RunState::new(vec!["a".into(), "b".into()]);
        assert_eq!(state.fault(2), None);
        let json = serde_json::to_string(&state).unwrap();
        let forged = json.replace("\"sums\":[[0.0,0],[0.0,0]]", "\"sums\":[]");
        assert_ne!(forged, json);
        let forged: RunState = serde_json::from_str(&forged).unwrap();
        assert!(forged.fault(2).unwrap().contains("0 languages"));
    }

    #[test]
    fn an_infinite_perplexity_comes_back() {
        let mut state = RunState::new(vec!["a".into()]);
        state.best = Some(BestWeights { step: 1, perplexity: f64::INFINITY });
        state.perplexity.insert("en".into(), f64::INFINITY);
        let json = serde_json::to_string(&state).unwrap();
        let back: RunState = serde_json::from_str(&json).unwrap();
        assert_eq!((back.best, back.perplexity), (state.best, state.perplexity));
    }

    /// From .1 to .5 between steps 99 and 399: half of what is gained, .3, lies half way between the
    /// logarithms of 100 and 400, so after step 199.
    #[test]
    fn it_is_interpolated_between_evaluations() {
        let points = [(0, 0.1), (99, 0.1), (399, 0.5), (800, 0.5)];
        let of = |step: u64| points.iter().find(|(at, _)| *at == step).unwrap().1;
        let emerged = emergence(&curve(of, points.iter().map(|(step, _)| *step)), 1000).unwrap();
        assert_eq!(emerged.step, 199);
        assert!((190_000..210_000).contains(&emerged.tokens), "{emerged:?}");
    }

    #[test]
    fn it_does_not_depend_on_how_often_one_looks() {
        let at = |every: usize| {
            let points = curve(with_bump, (0..=6000).step_by(every));
            emergence(&points, 1000).unwrap().step as f64
        };
        let dense = at(10);
        assert!((850.0..950.0).contains(&dense), "{dense}");
        for every in [20, 50, 100, 250, 500] {
            assert!((at(every) / dense).ln().abs() < 0.1, "{every}: {} beside {dense}", at(every));
        }
    }

    #[test]
    fn an_early_bump_is_no_emergence() {
        // The bump alone, gone at the end.
        let bump = |step: u64| if step < 400 { with_bump(step) } else { 0.0 };
        assert_eq!(emergence(&curve(bump, (0..=6000).step_by(50)), 1000), None);
        // No better than an untrained encoder, or hardly.
        for last in [0.1, 0.12] {
            let flat = |step: u64| if step == 0 { 0.1 } else { last };
            assert_eq!(emergence(&curve(flat, (0..=6000).step_by(500)), 1000), None, "{last}");
        }
        let clear = |step: u64| if step == 0 { 0.1 } else { 0.2 };
        assert!(emergence(&curve(clear, (0..=6000).step_by(500)), 1000).is_some());
        assert_eq!(emergence(&[], 1000), None);
    }
}
