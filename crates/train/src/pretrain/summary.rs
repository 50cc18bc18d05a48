//! What a run has come to: carried in every checkpoint, and told at the end.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::evaluate::Retrieval;
use super::log::Log;

/// Retrieval counts as emerged when it is so many times chance …
const OVER_CHANCE: f64 = 10.0;
/// … and so many times what the untrained encoder has, whose positions leak the order of words.
const OVER_UNTRAINED: f64 = 2.0;

/// The best weights so far.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// After which update.
    pub step: u64,
    /// Their perplexity.
    pub perplexity: f64,
}

/// When something happened.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// After which update.
    pub step: u64,
    /// After how many tokens.
    pub tokens: u64,
}

/// What a checkpoint carries besides weights. Nothing in it depends on time.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Position {
    pub(crate) log: Log,
    /// What tells the text from any other, by language.
    pub(crate) text: Vec<String>,
    /// Tokens seen.
    pub(crate) tokens: u64,
    pub(crate) best: Option<Best>,
    /// Evaluations since the best one.
    pub(crate) since_best: u64,
    /// When the loss left the plateau.
    pub(crate) left_plateau: Option<Moment>,
    /// When translations were first found without any alignment, for each pair of languages.
    pub(crate) emerged: Vec<Option<Moment>>,
    /// The best layer's retrieval before any training, for each pair.
    pub(crate) untrained: Vec<f64>,
    /// Perplexity on held-out text, last measured.
    pub(crate) perplexity: BTreeMap<String, f64>,
    /// Retrieval of translations, last measured.
    pub(crate) retrieval: Vec<Retrieval>,
}

impl Position {
    /// Before the first update.
    pub(crate) fn new(text: Vec<String>) -> Self {
        Self {
            log: Log::new(text.len()),
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

    /// Takes in what was measured after an update.
    pub(crate) fn measured(
        &mut self,
        step: u64,
        perplexity: BTreeMap<String, f64>,
        retrieval: Vec<Retrieval>,
    ) {
        let found = || retrieval.iter().map(|retrieval| retrieval.best().0);
        if step == 0 {
            self.untrained = found().collect();
            self.emerged = vec![None; retrieval.len()];
        }
        let chances = retrieval.iter().map(|retrieval| 1.0 / retrieval.sentences.max(1) as f64);
        let moment = Moment { step, tokens: self.tokens };
        let before = self.untrained.iter().zip(chances);
        for ((emerged, found), (untrained, chance)) in
            self.emerged.iter_mut().zip(found()).zip(before)
        {
            let mark = (OVER_CHANCE * chance).max(OVER_UNTRAINED * untrained);
            if emerged.is_none() && found > mark {
                *emerged = Some(moment);
            }
        }
        self.perplexity = perplexity;
        self.retrieval = retrieval;
    }
}

/// Where the time of a process went, as shares of the whole.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Shares {
    /// Waiting for batches.
    pub waiting: f64,
    /// Measuring perplexity and retrieval, and keeping the best weights.
    pub evaluating: f64,
    /// Writing checkpoints.
    pub saving: f64,
}

/// What came of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// The condition.
    pub preset: String,
    /// The scale.
    pub scale: String,
    /// The seed.
    pub seed: u64,
    /// Updates made, over all processes.
    pub steps: u64,
    /// Whether all updates that were asked for were made, or stopping early was called for.
    pub finished: bool,
    /// Tokens seen, over all processes.
    pub tokens: u64,
    /// Seconds that this process took, and where they went.
    pub seconds: f64,
    /// Tokens a second of this process.
    pub tokens_per_second: f64,
    /// Where the seconds went.
    pub shares: Shares,
    /// Numbers that learn.
    pub parameters: usize,
    /// When the loss left the plateau.
    pub left_plateau: Option<Moment>,
    /// For each probe, when translations were first found without alignment: ten times chance, and
    /// twice what the untrained encoder finds.
    pub emerged: Vec<Option<Moment>>,
    /// The best weights, which stand in `model.safetensors`.
    pub best: Option<Best>,
    /// Perplexity on held-out text, last measured.
    pub perplexity: BTreeMap<String, f64>,
    /// Retrieval of translations, last measured.
    pub retrieval: Vec<Retrieval>,
}

impl Summary {
    /// Its file in a run's folder.
    pub(super) const FILE: &str = "summary.json";

    /// That of the run in `folder`, where it came so far.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(folder.join(Self::FILE)).ok()?).ok()
    }
}
