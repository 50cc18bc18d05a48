//! The configuration of a transfer.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use encoder::SharingPlan;
use serde::{Deserialize, Serialize};
use shift::shifter::ShiftKind;
use terms::Task;

use super::recipe::{EncoderSize, LrSchedule};
use crate::error::{Error, Result};
use crate::features::NewLayers;
use crate::heads::ParserSizes;
use crate::ner::Repair;
use crate::parse::RelationLabels;
use crate::registry::ScoringRules;

/// A labelled file and its language.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetConfig {
    /// The language, as the model names it.
    pub language: String,
    /// The file.
    pub file: PathBuf,
    /// Which half of its items; all where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half: Option<SetHalf>,
}

/// A half of a labelled file, where a language has one file only: the weight of a shift is chosen on one
/// half and reported on the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SetHalf {
    /// The first item, the third and so on: for development.
    Odd,
    /// The second, the fourth and so on: for test.
    Even,
}

impl SetConfig {
    /// All of a file.
    pub fn whole(language: &str, file: impl Into<PathBuf>) -> Self {
        Self { language: language.to_owned(), file: file.into(), half: None }
    }

    /// The two halves of a file: for development, and for test.
    pub fn halves(language: &str, file: impl Into<PathBuf>) -> [Self; 2] {
        let whole = Self::whole(language, file);
        [SetHalf::Odd, SetHalf::Even].map(|half| Self { half: Some(half), ..whole.clone() })
    }

    /// Whether an item may be in both: of one file, unless they are its two halves.
    fn shares_items(&self, other: &Self) -> bool {
        let apart = self.half.is_some() && other.half.is_some() && self.half != other.half;
        let same = |file: &Path| std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        !apart && same(&self.file) == same(&other.file)
    }

    /// The numbers of the items that are taken, of so many.
    pub(super) fn items(&self, count: usize) -> Vec<usize> {
        match self.half {
            None => (0..count).collect(),
            Some(SetHalf::Odd) => (0..count).step_by(2).collect(),
            Some(SetHalf::Even) => (1..count).step_by(2).collect(),
        }
    }
}

/// Where the vectors come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum FeaturesConfig {
    /// A pretrained encoder that is fine-tuned.
    Encoder {
        /// The folder of its run.
        model: PathBuf,
        /// The layers that are trained, such as `7-12`; all where there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        train_layers: Option<String>,
        /// The layers whose pretrained weights are replaced by new ones before fine-tuning, such as `1-3` (Muller et al.
        /// 2021); none where there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reinit_layers: Option<String>,
    },
    /// A layer of frozen encoders, with new layers above it.
    Layer {
        /// The folder of each language's encoder.
        models: BTreeMap<String, PathBuf>,
        /// Which layer; 0 is the embeddings.
        layer: usize,
        /// For a language, the map of its vectors into the space of the source language.
        #[serde(default)]
        maps: BTreeMap<String, PathBuf>,
        /// The new layers.
        above: NewLayers,
    },
    /// Static vectors, with new layers above them.
    Vectors {
        /// The vectors of each language.
        files: BTreeMap<String, PathBuf>,
        /// The new layers.
        above: NewLayers,
    },
}

impl FeaturesConfig {
    /// The size of the encoder that is fine-tuned. What cannot be read is `Tiny`: that it cannot be read is
    /// reported when it is opened.
    pub fn encoder_size(&self) -> EncoderSize {
        match self {
            FeaturesConfig::Encoder { model, .. } => models::architecture(model)
                .map_or(EncoderSize::Tiny, |encoder| EncoderSize::of_dim(encoder.dim)),
            // Only new layers are trained.
            FeaturesConfig::Layer { .. } | FeaturesConfig::Vectors { .. } => EncoderSize::Tiny,
        }
    }
}

/// The hidden states of target languages are shifted towards the source language when they are scored (Liu et
/// al. 2020).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShiftConfig {
    /// After which layer; 0 is the embeddings.
    pub layer: usize,
    /// What is added to the hidden states.
    pub by: ShiftSource,
    /// Its weights. Of several, each language takes the best on its own development set.
    pub alpha: Vec<f64>,
    /// Those sets.
    #[serde(default)]
    pub devs: Vec<SetConfig>,
}

/// What is added to the hidden states of a language.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ShiftSource {
    /// The difference between the mean vectors of the source language and its own.
    Means {
        /// The file of mean vectors, of the encoder as it was pretrained.
        file: PathBuf,
        /// How the difference is made.
        kind: ShiftKind,
    },
    /// A vector of the hidden states' width for each language, an array of NumPy.
    Vectors(BTreeMap<String, PathBuf>),
}

/// Everything that decides the outcome of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransferConfig {
    /// The task.
    pub task: Task,
    /// Batch sizes in sequences, each to be tried.
    pub batch: Vec<usize>,
    /// Learning rates, each to be tried.
    pub lr: Vec<f64>,
    /// Learning rates of the head, each to be tried; the encoder's where there are none.
    #[serde(default)]
    pub head_lr: Vec<f64>,
    /// Epochs over the training set.
    pub epochs: u32,
    /// How often a setting that did not learn is trained again, at half the learning rates.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restarts: u32,
    /// The schedule of the learning rate.
    pub schedule: LrSchedule,
    /// Each decides a head's first weights, the order of batches, and dropout; the first decides a sample
    /// of the training file.
    pub seeds: Vec<u64>,
    /// Dropout within the head.
    pub dropout: f32,
    /// Weight decay.
    pub weight_decay: f32,
    /// The largest norm of all gradients together.
    pub clip: f32,
    /// NER: what becomes of tag sequences that are no valid spans.
    #[serde(default)]
    pub repair: Repair,
    /// Parsing: which part of a relation's name is learned and scored.
    #[serde(default)]
    pub relations: RelationLabels,
    /// Whether labels that training never saw may stand in the other files; they count as mistakes.
    #[serde(default)]
    pub allow_unseen: bool,
    /// Train on the first items of the training file only, so many; on all where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Train on a random sample of the training file, of so many items; on all where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_size: Option<usize>,
    /// How wide the parser is; by the encoder's width where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parser: Option<ParserSizes>,
    /// Where the vectors come from.
    pub features: FeaturesConfig,
    /// A shift of target languages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shift: Option<ShiftConfig>,
    /// What is trained on.
    pub train: SetConfig,
    /// What settings and epochs are chosen on.
    pub dev: SetConfig,
    /// What is scored.
    pub tests: Vec<SetConfig>,
}

/// Layers as a list such as `7-12` or `10,12`.
fn layers(text: &str, doing: &str) -> Result<BTreeSet<usize>> {
    let plan: std::result::Result<SharingPlan, String> = text.parse();
    let only = |plan: &SharingPlan| {
        let layers = SharingPlan { layers: plan.layers.clone(), ..SharingPlan::none() };
        *plan == layers && !plan.layers.is_empty()
    };
    plan.ok().filter(only).map(|plan| plan.layers).ok_or_else(|| {
        let remedy = "write layers counted from 1, such as 7-12 or 10,12";
        Error::request(format!("'{text}' names no layers to {doing}"), remedy)
    })
}

/// One point of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GridSetting {
    /// The seed.
    pub seed: u64,
    /// Sequences in a batch.
    pub batch: usize,
    /// The learning rate of the encoder.
    pub lr: f64,
    /// The learning rate of the head.
    pub head_lr: f64,
}

impl TransferConfig {
    /// How tags and relations are compared.
    pub fn rules(&self) -> ScoringRules {
        ScoringRules { repair: self.repair, relations: self.relations }
    }

    /// Whether it makes sense; if not, which key does not and why.
    pub fn check(&self) -> Result<()> {
        self.rules().check(self.task)?;
        self.check_grid()?;
        self.check_sets()?;
        let layers = self.train_layers()?;
        let new = self.reinit_layers()?;
        if self.shift.is_some() && !new.is_empty() {
            let reason = "mean vectors are of the encoder as it was pretrained, and layers of this one are new; leave out \
                          one of the two";
            return Err(Error::key("reinit_layers", reason));
        }
        self.shift.as_ref().map_or(Ok(()), |shift| {
            shift.check(&self.shifted_languages())?;
            shift.check_frozen(&self.features, layers.as_ref())
        })
    }

    fn check_grid(&self) -> Result<()> {
        let refuse = |key: &'static str, reason: &str| Err(Error::key(key, reason));
        if self.batch.is_empty() || self.batch.contains(&0) {
            return refuse("batch", "give at least one number of sequences, none of them 0");
        }
        let positive = |lr: &f64| *lr > 0.0 && lr.is_finite();
        if self.lr.is_empty() || !self.lr.iter().all(positive) {
            return refuse("lr", "give at least one learning rate, all of them above 0");
        }
        if !self.head_lr.iter().all(positive) {
            return refuse("head_lr", "give learning rates above 0");
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
        if self.parser.is_some_and(|sizes| sizes.arc == 0 || sizes.label == 0) {
            return refuse("parser", "sizes must not be 0");
        }
        Ok(())
    }

    fn check_sets(&self) -> Result<()> {
        let refuse = |key: &'static str, reason: &str| Err(Error::key(key, reason));
        if self.limit == Some(0) {
            return refuse("limit", "must not be 0");
        }
        if self.sample_size == Some(0) {
            return refuse("sample_size", "must not be 0");
        }
        if self.limit.is_some() && self.sample_size.is_some() {
            return refuse("sample_size", "give either this or limit");
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
        let devs = self.shift.iter().flat_map(|shift| &shift.devs);
        for dev in std::iter::once(&self.dev).chain(devs) {
            if let Some(test) = self.tests.iter().find(|test| test.shares_items(dev)) {
                let reason = format!(
                    "{} is what is chosen on too, so that its score would be too high; give another file, or its halves",
                    test.file.display()
                );
                return Err(Error::key("tests", reason));
            }
        }
        Ok(())
    }

    /// The languages that are shifted: all that are scored but the source, or those with a vector.
    pub fn shifted_languages(&self) -> BTreeSet<&str> {
        let scored = self.tests.iter().map(|test| test.language.as_str());
        let others = scored.filter(|&language| language != self.train.language);
        match self.shift.as_ref().map(|shift| &shift.by) {
            None => BTreeSet::new(),
            Some(ShiftSource::Means { .. }) => others.collect(),
            Some(ShiftSource::Vectors(files)) => {
                others.filter(|&language| files.contains_key(language)).collect()
            }
        }
    }

    /// The layers that are trained, where not all are.
    pub fn train_layers(&self) -> Result<Option<BTreeSet<usize>>> {
        match &self.features {
            FeaturesConfig::Encoder { train_layers: Some(text), .. } => {
                layers(text, "train").map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The layers that begin with new weights.
    pub fn reinit_layers(&self) -> Result<BTreeSet<usize>> {
        match &self.features {
            FeaturesConfig::Encoder { reinit_layers: Some(text), .. } => {
                layers(text, "initialise anew")
            }
            _ => Ok(BTreeSet::new()),
        }
    }

    /// The keys in which another configuration differs, each with both values.
    pub(super) fn differences(&self, other: &Self) -> Vec<String> {
        let flat = |config: &Self| {
            let table = toml::Table::try_from(config).expect("a configuration is valid TOML");
            let mut keys = BTreeMap::new();
            flatten("", &toml::Value::Table(table), &mut keys);
            keys
        };
        let (own, others) = (flat(self), flat(other));
        let keys: BTreeSet<&String> = own.keys().chain(others.keys()).collect();
        let value = |of: &BTreeMap<String, String>, key: &str| {
            of.get(key).cloned().unwrap_or_else(|| "nothing".to_owned())
        };
        let differs = |key: &&String| own.get(*key) != others.get(*key);
        let say =
            |key: &String| format!("{key} ({}, not {})", value(&own, key), value(&others, key));
        keys.into_iter().filter(differs).map(say).collect()
    }

    /// Every point of the grid, for each seed in turn.
    pub fn settings(&self) -> Vec<GridSetting> {
        let mut settings = Vec::new();
        for &seed in &self.seeds {
            for &batch in &self.batch {
                for &lr in &self.lr {
                    let own = [lr];
                    let heads = if self.head_lr.is_empty() { &own[..] } else { &self.head_lr };
                    let each = |&head_lr: &f64| GridSetting { seed, batch, lr, head_lr };
                    settings.extend(heads.iter().map(each));
                }
            }
        }
        settings
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The keys of a table, those within others after a dot.
fn flatten(key: &str, value: &toml::Value, keys: &mut BTreeMap<String, String>) {
    match value {
        toml::Value::Table(table) => {
            for (name, value) in table {
                let name = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                flatten(&name, value, keys);
            }
        }
        other => drop(keys.insert(key.to_owned(), other.to_string())),
    }
}

impl ShiftConfig {
    /// The weights to try where none are given: Liu et al. 2020 found .2 to 2 best, by tenths (their Table
    /// 4); 1 where there is no development set to choose on.
    pub fn default_alpha(has_devs: bool) -> Vec<f64> {
        match has_devs {
            true => (0..=20).map(|tenths| f64::from(tenths) / 10.0).collect(),
            false => vec![1.0],
        }
    }

    /// Whether it suits the languages that are to be shifted.
    fn check(&self, languages: &BTreeSet<&str>) -> Result<()> {
        let Self { alpha, devs, by, .. } = self;
        let refuse = |reason: String, remedy: &str| Err(Error::request(reason, remedy));
        if let ShiftSource::Vectors(files) = by
            && let Some(language) = files.keys().find(|name| !languages.contains(name.as_str()))
        {
            let reason = format!("a shift of {language}");
            return refuse(reason, "shift a language that is scored and not trained on");
        }
        if languages.is_empty() {
            let remedy = "add a test file of another language than the source";
            return refuse("there is no language to shift".to_owned(), remedy);
        }
        if alpha.is_empty() || alpha.iter().any(|weight| !weight.is_finite()) {
            return Err(Error::key("alpha", "give at least one weight of the shift, all finite"));
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
            if count == 0 && alpha.len() > 1 {
                let reason = format!("the weight of {language}'s shift cannot be chosen");
                return refuse(reason, "give its development file (dev), or one alpha alone");
            }
        }
        Ok(())
    }

    /// Mean vectors are of the encoder as it was pretrained, so what lies below them must not be trained.
    fn check_frozen(
        &self,
        features: &FeaturesConfig,
        layers: Option<&BTreeSet<usize>>,
    ) -> Result<()> {
        let Self { layer, by: ShiftSource::Means { .. }, .. } = self else { return Ok(()) };
        let first = match (features, layers) {
            (FeaturesConfig::Encoder { .. }, layers) => {
                layers.map_or(0, |layers| layers.first().copied().unwrap_or(usize::MAX))
            }
            _ => usize::MAX,
        };
        if *layer < first {
            return Ok(());
        }
        let trained =
            if layers.is_none() { "everything".to_owned() } else { format!("layer {first}") };
        Err(Error::request(
            format!(
                "the mean vectors after layer {layer} are of the encoder as it was pretrained, but \
                 {trained} is trained, and its states would have other means"
            ),
            format!("train only layers above it: train_layers from {}", layer + 1),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_share_no_item_and_leave_none_out() {
        let [dev, test] = SetConfig::halves("ru", "panx-dev-ru.tsv");
        assert_eq!((dev.items(5), test.items(5)), (vec![0, 2, 4], vec![1, 3]));
        assert_eq!(SetConfig::whole("ru", "panx-dev-ru.tsv").items(3), [0, 1, 2]);
        let text = toml::to_string(&test).unwrap();
        assert!(text.contains("half = \"even\""), "{text}");
        assert_eq!(toml::from_str::<SetConfig>(&text).unwrap(), test);
    }
}
