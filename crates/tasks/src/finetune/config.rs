//! What a run of transfer is told.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use encoder::{ConfigError, Plan};
use serde::{Deserialize, Serialize};
use shift::shifter::ShiftKind;

use crate::error::{Error, Result};
use crate::features::Above;
use crate::heads::ParserSizes;
use crate::labelled::Task;
use crate::ner::Repair;
use crate::parse::Relations;

/// A labelled file and its language.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetConfig {
    /// The language, as the model names it.
    pub language: String,
    /// The file.
    pub file: PathBuf,
}

/// Where the vectors come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum FeaturesConfig {
    /// A pretrained encoder that is fine-tuned.
    Encoder {
        /// The folder of its run.
        model: PathBuf,
        /// The layers that learn, such as `7-12`; all where there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        train_layers: Option<String>,
    },
    /// A layer of frozen encoders, with new layers above it.
    Layer {
        /// The folder of each language's encoder.
        models: BTreeMap<String, PathBuf>,
        /// Which layer; 0 is the embeddings.
        layer: usize,
        /// For a language, the map of its vectors into the space that is learned in.
        #[serde(default)]
        maps: BTreeMap<String, PathBuf>,
        /// The new layers.
        above: Above,
    },
    /// Static vectors, with new layers above them.
    Vectors {
        /// The vectors of each language.
        files: BTreeMap<String, PathBuf>,
        /// The new layers.
        above: Above,
    },
}

/// Other languages are moved towards the one that was learned in, when they are scored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShiftConfig {
    /// After which layer; 0 is the embeddings.
    pub layer: usize,
    /// What is added to the hidden states.
    pub by: Difference,
    /// How often. Of several weights, each language takes the best on its own development set.
    pub weights: Vec<f64>,
    /// Those sets.
    #[serde(default)]
    pub devs: Vec<SetConfig>,
}

/// What is added to the hidden states of a language.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Difference {
    /// The difference between the means of the source language and its own.
    Means {
        /// The file of means, of the encoder as it was pretrained.
        file: PathBuf,
        /// How the difference is made.
        kind: ShiftKind,
    },
    /// An array of as many numbers as a hidden state has, for each language.
    Vectors(BTreeMap<String, PathBuf>),
}

/// How the rate of learning goes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pace {
    /// Up over the first tenth of the steps, then down to nothing.
    Linear,
    /// Always the same.
    Fixed,
}

/// Everything that decides the outcome of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransferConfig {
    /// The task.
    pub task: Task,
    /// Sequences a batch, each to be tried.
    pub batch: Vec<usize>,
    /// Rates of learning, each to be tried.
    pub rate: Vec<f64>,
    /// Rates of the head, each to be tried; the encoder's where there are none.
    #[serde(default)]
    pub head_rate: Vec<f64>,
    /// Passes over the training set.
    pub epochs: u32,
    /// How the rate goes.
    pub pace: Pace,
    /// Each decides a head's first weights, the order of batches, and dropout.
    pub seeds: Vec<u64>,
    /// Dropout within the head.
    pub dropout: f32,
    /// Weight decay.
    pub weight_decay: f32,
    /// The largest norm of all gradients together.
    pub clip: f32,
    /// What becomes of tags that mean no span.
    #[serde(default)]
    pub repair: Repair,
    /// Which relations are learned and scored.
    #[serde(default)]
    pub relations: Relations,
    /// Whether labels that training never saw may stand in the other files; they count as mistakes.
    #[serde(default)]
    pub allow_unseen: bool,
    /// How many items of the training file to take; all where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<usize>,
    /// How wide the parser is; by the encoder's width where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parser: Option<ParserSizes>,
    /// Where the vectors come from.
    pub features: FeaturesConfig,
    /// A shift of target languages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shift: Option<ShiftConfig>,
    /// What is learned from.
    pub train: SetConfig,
    /// What settings and epochs are chosen by.
    pub dev: SetConfig,
    /// What is scored.
    pub tests: Vec<SetConfig>,
}

/// The numbers that a task's recipe decides.
pub struct Recipe {
    /// Sequences a batch.
    pub batch: Vec<usize>,
    /// Rates.
    pub rate: Vec<f64>,
    /// Rates of the head.
    pub head_rate: Vec<f64>,
    /// Passes.
    pub epochs: u32,
    /// How the rate goes.
    pub pace: Pace,
    /// Dropout within the head.
    pub dropout: f32,
}

impl Recipe {
    /// The grid of paper 1.
    pub fn paper(task: Task) -> Self {
        match task {
            Task::Nli => Self {
                batch: vec![4, 8],
                rate: vec![1.25e-6, 2.5e-6, 5e-6],
                head_rate: vec![5e-6, 2.5e-5, 1.25e-4],
                epochs: 200,
                pace: Pace::Fixed,
                dropout: 0.1,
            },
            Task::Ner | Task::Parse => Self {
                batch: vec![16, 32],
                rate: vec![2e-5, 3e-5, 5e-5],
                head_rate: vec![],
                epochs: 10,
                pace: Pace::Linear,
                dropout: if task == Task::Ner { 0.1 } else { 0.33 },
            },
        }
    }

    /// One setting that suits small encoders: a minute or two on two cores.
    pub fn quick(task: Task) -> Self {
        let (rate, epochs, dropout) = match task {
            Task::Nli => (1e-3, 10, 0.1),
            Task::Ner => (1e-3, 3, 0.1),
            Task::Parse => (1e-3, 5, 0.1),
        };
        let (batch, rate, pace) = (vec![32], vec![rate], Pace::Linear);
        Self { batch, rate, head_rate: vec![], epochs, pace, dropout }
    }
}

/// One point of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// The seed.
    pub seed: u64,
    /// Sequences a batch.
    pub batch: usize,
    /// The rate of the encoder.
    pub rate: f64,
    /// The rate of the head.
    pub head_rate: f64,
}

impl TransferConfig {
    /// Whether it makes sense; if not, which key does not and why.
    pub fn check(&self) -> Result<()> {
        let refuse =
            |key: &'static str, reason: &str| Err(Error::Config(ConfigError::new(key, reason)));
        if self.batch.is_empty() || self.batch.contains(&0) {
            return refuse("batch", "give at least one number of sequences, none of them 0");
        }
        let positive = |rate: &f64| *rate > 0.0 && rate.is_finite();
        if self.rate.is_empty() || !self.rate.iter().all(positive) {
            return refuse("rate", "give at least one rate, all of them above 0");
        }
        if !self.head_rate.iter().all(positive) {
            return refuse("head_rate", "give rates above 0");
        }
        if self.epochs == 0 {
            return refuse("epochs", "must not be 0");
        }
        if self.seeds.is_empty() {
            return refuse("seeds", "give at least one");
        }
        if self.seeds.iter().enumerate().any(|(at, seed)| self.seeds[..at].contains(seed)) {
            return refuse("seeds", "give each seed once: the same one again gives the same again");
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return refuse("dropout", "give a share from 0 to below 1");
        }
        if self.first == Some(0) {
            return refuse("first", "must not be 0");
        }
        if self.parser.is_some_and(|sizes| sizes.arc == 0 || sizes.label == 0) {
            return refuse("parser", "sizes must not be 0");
        }
        if self.tests.is_empty() {
            return refuse("tests", "name at least one file to score");
        }
        if self.dev.language != self.train.language {
            return refuse(
                "dev",
                "is not of the language that is trained on, and no other may be looked at",
            );
        }
        let layers = self.train_layers()?;
        self.shift.as_ref().map_or(Ok(()), |shift| {
            shift.check(&self.shifted_languages())?;
            shift.check_frozen(&self.features, layers.as_ref())
        })
    }

    /// The languages that are shifted: all that are scored but the source, or those with a vector.
    pub fn shifted_languages(&self) -> BTreeSet<&str> {
        let scored = self.tests.iter().map(|test| test.language.as_str());
        let others = scored.filter(|&language| language != self.train.language);
        match self.shift.as_ref().map(|shift| &shift.by) {
            None => BTreeSet::new(),
            Some(Difference::Means { .. }) => others.collect(),
            Some(Difference::Vectors(files)) => {
                others.filter(|&language| files.contains_key(language)).collect()
            }
        }
    }

    /// The layers that learn, where not all do.
    pub fn train_layers(&self) -> Result<Option<BTreeSet<usize>>> {
        let FeaturesConfig::Encoder { train_layers: Some(text), .. } = &self.features else {
            return Ok(None);
        };
        let plan: std::result::Result<Plan, String> = text.parse();
        let layers = plan.ok().filter(|plan| !plan.tokens && !plan.positions);
        let layers = layers.map(|plan| plan.layers).ok_or_else(|| {
            let remedy = "write layers counted from 1, such as 7-12 or 10,12";
            Error::request(format!("'{text}' names no layers to train"), remedy)
        })?;
        Ok(Some(layers))
    }

    /// Every point of the grid, for each seed in turn.
    pub fn settings(&self) -> Vec<Setting> {
        let mut settings = Vec::new();
        for &seed in &self.seeds {
            for &batch in &self.batch {
                for &rate in &self.rate {
                    let own = [rate];
                    let heads = if self.head_rate.is_empty() { &own[..] } else { &self.head_rate };
                    let each = |&head_rate: &f64| Setting { seed, batch, rate, head_rate };
                    settings.extend(heads.iter().map(each));
                }
            }
        }
        settings
    }
}

impl ShiftConfig {
    /// Whether it suits the languages that are to be shifted.
    fn check(&self, languages: &BTreeSet<&str>) -> Result<()> {
        let Self { weights, devs, by, .. } = self;
        let refuse = |reason: String, remedy: &str| Err(Error::request(reason, remedy));
        if let Difference::Vectors(files) = by
            && let Some(language) = files.keys().find(|name| !languages.contains(name.as_str()))
        {
            let reason = format!("a shift of {language}");
            return refuse(reason, "shift a language that is scored and was not learned in");
        }
        if languages.is_empty() {
            let remedy = "add a test file of another language than was learned in";
            return refuse("there is no language to shift".to_owned(), remedy);
        }
        if weights.is_empty() || weights.iter().any(|weight| !weight.is_finite()) {
            return refuse("there is no weight of the shift".to_owned(), "give finite numbers");
        }
        if let Some(dev) = devs.iter().find(|dev| !languages.contains(dev.language.as_str())) {
            let reason =
                format!("{} is of {}, which is not shifted", dev.file.display(), dev.language);
            return refuse(reason, "only the weight of a shift is chosen on a target language");
        }
        for &language in languages {
            let count = devs.iter().filter(|dev| dev.language == language).count();
            if count > 1 {
                return refuse(format!("{count} development files of {language}"), "give one");
            }
            if count == 0 && weights.len() > 1 {
                let reason = format!("the weight of {language}'s shift cannot be chosen");
                return refuse(reason, "give its development file (--dev), or one weight alone");
            }
        }
        Ok(())
    }

    /// Means are of the encoder as it was pretrained, so what lies below them must not learn.
    fn check_frozen(
        &self,
        features: &FeaturesConfig,
        layers: Option<&BTreeSet<usize>>,
    ) -> Result<()> {
        let Self { layer, by: Difference::Means { .. }, .. } = self else { return Ok(()) };
        let first = match (features, layers) {
            (FeaturesConfig::Encoder { .. }, layers) => {
                layers.map_or(0, |layers| layers.first().copied().unwrap_or(usize::MAX))
            }
            _ => usize::MAX,
        };
        if *layer < first {
            return Ok(());
        }
        let learns =
            if layers.is_none() { "everything".to_owned() } else { format!("layer {first}") };
        Err(Error::request(
            format!(
                "the means after layer {layer} are of the encoder as it was pretrained, but {learns} \
                 learns, and its states would have other means"
            ),
            format!("let only layers above it learn: --train-layers {}-LAST", layer + 1),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_s_grids() {
        let settings = |task| {
            let Recipe { batch, rate, head_rate, .. } = Recipe::paper(task);
            batch.len() * rate.len() * head_rate.len().max(1)
        };
        assert_eq!((settings(Task::Nli), settings(Task::Ner), settings(Task::Parse)), (18, 6, 6));
    }
}
