//! The state of a run that every checkpoint carries, and the summary at its end.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use terms::{Preset, Scale};

use super::evaluate::ProbeRetrieval;
use super::log::LossLog;

/// Retrieval counts as emerged when P@1 is so many times chance …
const OVER_CHANCE: f64 = 10.0;
/// … and so many times that of the untrained encoder, whose position embeddings leak word order.
const OVER_UNTRAINED: f64 = 2.0;

/// The best weights so far.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BestWeights {
    /// After which update.
    pub step: u64,
    /// Their perplexity.
    pub perplexity: f64,
}

/// When something happened in a run.
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
    /// A fingerprint of each language's text.
    pub(crate) text: Vec<String>,
    /// Tokens seen.
    pub(crate) tokens: u64,
    pub(crate) best: Option<BestWeights>,
    /// Evaluations since the best one.
    pub(crate) since_best: u64,
    /// When the loss left the initial plateau.
    pub(crate) left_plateau: Option<TrainingMoment>,
    /// When retrieval without alignment emerged, for each probe.
    pub(crate) emerged: Vec<Option<TrainingMoment>>,
    /// The best layer's P@1 before any training, for each probe.
    pub(crate) untrained: Vec<f64>,
    /// Perplexity on held-out text, last measured.
    pub(crate) perplexity: BTreeMap<String, f64>,
    /// Retrieval accuracy on the probes, last measured.
    pub(crate) retrieval: Vec<ProbeRetrieval>,
}

impl RunState {
    /// Before the first update.
    pub(crate) fn new(text: Vec<String>) -> Self {
        Self {
            log: LossLog::new(text.len()),
            text,
            tokens: 0,
            best: None,
            since_best: 0,
            left_plateau: None,
            emerged: Vec::new(),
            untrained: Vec::new(),
            perplexity: BTreeMap::new(),
            retrieval: Vec::new(),
        }
    }

    /// Records an evaluation after an update.
    pub(crate) fn record(
        &mut self,
        step: u64,
        perplexity: BTreeMap<String, f64>,
        retrieval: Vec<ProbeRetrieval>,
    ) {
        let accuracies = || retrieval.iter().map(|retrieval| retrieval.best().0);
        if step == 0 {
            self.untrained = accuracies().collect();
            self.emerged = vec![None; retrieval.len()];
        }
        let chances = retrieval.iter().map(|retrieval| 1.0 / retrieval.sentences.max(1) as f64);
        let moment = TrainingMoment { step, tokens: self.tokens };
        let baselines = self.untrained.iter().zip(chances);
        for ((emerged, accuracy), (untrained, chance)) in
            self.emerged.iter_mut().zip(accuracies()).zip(baselines)
        {
            let threshold = (OVER_CHANCE * chance).max(OVER_UNTRAINED * untrained);
            if emerged.is_none() && accuracy > threshold {
                *emerged = Some(moment);
            }
        }
        self.perplexity = perplexity;
        self.retrieval = retrieval;
    }
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
    /// For each probe, when raw retrieval emerged: P@1 ten times chance, and twice that of the untrained
    /// encoder.
    pub emerged: Vec<Option<TrainingMoment>>,
    /// The weights in `model.safetensors`: those of the lowest perplexity.
    pub best: Option<BestWeights>,
    /// Perplexity on held-out text, last measured.
    pub perplexity: BTreeMap<String, f64>,
    /// Retrieval accuracy on the probes, last measured.
    pub retrieval: Vec<ProbeRetrieval>,
}

impl PretrainSummary {
    /// Its file in a run's folder.
    pub(super) const FILE: &str = "summary.json";

    /// Reads that of the run in `folder`, if it has come to its end once.
    pub fn read(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(folder.join(Self::FILE)).ok()?).ok()
    }
}
