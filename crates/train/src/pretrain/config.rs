//! The configuration of a pretraining run: checked once, saved with the run as `config.toml`, and enough
//! to make the same run again.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use encoder::{ConfigError, EncoderConfig};
use files::At;
use serde::{Deserialize, Serialize};
use terms::{Preset, Scale};
use text::{BatchSettings, MlmEvaluation, SwitchSettings, VocabularyKind};
use toml::{Table, Value};

use super::PretrainError;
use super::preparation::TextConfig;
use crate::adam::AdamConfig;
use crate::schedule::Schedule;

/// The vocabulary that a run learns from its text, or uses as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VocabularyConfig {
    /// What languages share in one that is learned.
    pub kind: Option<VocabularyKind>,
    /// Merges to learn: in all for a joint vocabulary, for each language otherwise.
    pub merges: Option<usize>,
    /// A folder of `vocab train` to use instead of learning one; text is prepared as it says.
    pub folder: Option<PathBuf>,
    /// A WordPiece vocabulary to use instead of learning one, a subword a line: BERT's `vocab.txt`.
    pub file: Option<PathBuf>,
    /// Whether the WordPiece vocabulary is lowercased, without accents. Multilingual BERT's is cased.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uncased: bool,
}

impl VocabularyConfig {
    fn check(&self) -> Result<(), ConfigError> {
        if self.folder.is_some() && self.file.is_some() {
            let reason = "a vocabulary.folder is given too; leave one of them out";
            return Err(ConfigError::new("vocabulary.file", reason));
        }
        if self.uncased && self.file.is_none() {
            let reason = "says how a vocabulary.file was made, and none is given; text.lowercase and \
                          text.strip_accents prepare the text of a vocabulary that is learned";
            return Err(ConfigError::new("vocabulary.uncased", reason));
        }
        Ok(())
    }
}

/// Extra anchors: words replaced by their translations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchConfig {
    /// How much is replaced.
    #[serde(flatten)]
    pub settings: SwitchSettings,
    /// By which dictionaries, each used in both directions.
    #[serde(default)]
    pub dictionaries: Vec<DictionaryConfig>,
}

/// A dictionary and its languages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DictionaryConfig {
    /// The language of its first column.
    pub from: String,
    /// The language of its second column.
    pub to: String,
    /// The file.
    pub file: PathBuf,
}

/// Languages that the model which a run begins with does not know yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddedLanguagesConfig {
    /// Their names; each has text.
    #[serde(default)]
    pub languages: Vec<String>,
    /// Which weights are trained.
    #[serde(default)]
    pub trainable: TrainableWeights,
}

/// Which weights are trained when a model is given languages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrainableWeights {
    /// All of them.
    #[default]
    All,
    /// Those of the new languages alone: embeddings and softmax rows of new subwords, embeddings of new languages, and
    /// whatever each language has for itself (Artetxe et al. 2020). The rest stays as it is, to the bit.
    New,
}

/// Parallel sentences of two languages, on which retrieval is measured while training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeConfig {
    /// The two languages.
    pub languages: [String; 2],
    /// The file of each.
    pub files: [PathBuf; 2],
    /// Files of glosses, line by line, as invented worlds have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub glosses: Option<[PathBuf; 2]>,
}

/// Updates at the beginning of a run whose batches have another shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageConfig {
    /// How many updates; in a configuration also `share`, of all updates.
    pub steps: u64,
    /// Tokens in a row.
    pub length: Option<usize>,
    /// Rows in a batch.
    pub sequences: Option<usize>,
    /// Micro-batches whose gradients make one update.
    pub accumulate: Option<usize>,
}

/// A goal that a run had before it was extended to more updates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extension {
    /// Updates that were made when the run was extended.
    pub after: u64,
    /// The goal until then.
    pub steps: u64,
    /// The learning-rate schedule until then.
    pub schedule: Schedule,
}

/// Keys of the encoder that follow from the text and its vocabulary.
pub(super) const DERIVED: [&str; 2] = ["languages", "vocabulary"];

/// A pretraining run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PretrainConfig {
    /// The preset that the run began from.
    pub preset: Preset,
    /// The scale that the run began from.
    pub scale: Scale,
    /// Seeds weights, batches, masks and dropout.
    pub seed: u64,
    /// Updates to make.
    pub steps: u64,
    /// Micro-batches whose gradients make one update.
    pub accumulate: usize,
    /// Updates between two checkpoints.
    pub checkpoint_every: u64,
    /// Updates between two evaluations.
    pub evaluate_every: u64,
    /// Stop after so many evaluations without a better one.
    pub patience: Option<u64>,
    /// The language whose perplexity on held-out text chooses the best weights; the first if none.
    pub select_by: Option<String>,
    /// The folder of a run or of a Hugging Face checkpoint whose weights and vocabulary the run begins
    /// with, and whose shape `encoder` has: continued pretraining.
    pub init: Option<PathBuf>,
    /// Languages that this model is given, with new subwords and embeddings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add: Option<AddedLanguagesConfig>,
    /// The languages, in the order of their numbers.
    pub languages: Vec<String>,
    /// The files of each language: paths or globs.
    pub files: BTreeMap<String, Vec<String>>,
    /// How they are read.
    pub text: TextConfig,
    /// The vocabulary.
    pub vocabulary: VocabularyConfig,
    /// The shape of batches and how tokens are masked.
    pub batch: BatchSettings,
    /// Stages before the batches take that shape.
    #[serde(default)]
    pub stages: Vec<StageConfig>,
    /// The encoder; its languages and vocabulary follow from the above.
    pub encoder: EncoderConfig,
    /// The optimiser.
    pub adam: AdamConfig,
    /// Extra anchors.
    pub switch: Option<SwitchConfig>,
    /// Parallel sentences to measure retrieval on.
    #[serde(default)]
    pub probes: Vec<ProbeConfig>,
    /// Whether what a later look at the training needs is saved at log-spaced updates: hidden states of
    /// parallel sentences, and snapshots of the weights.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub trajectory: bool,
    /// The most snapshots of the weights; otherwise eight, or as many as take 256 MB, and none where fewer than three do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshots: Option<usize>,
    /// Earlier goals of a run that was extended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<Extension>,
}

impl PretrainConfig {
    /// Reads a configuration that has every key, and checks it.
    pub fn from_table(table: Table) -> Result<Self, ConfigError> {
        let encoder = table.get("encoder").and_then(Value::as_table);
        if let Some(key) = DERIVED.iter().find(|&&key| encoder.is_some_and(|e| e.contains_key(key)))
        {
            let reason = format!("leave out {key}: it follows from the text and its vocabulary");
            return Err(ConfigError::new("encoder", reason));
        }
        let config: Self = Value::Table(table).try_into().map_err(unreadable)?;
        config.check()?;
        Ok(config)
    }

    /// Reads the configuration of the run in a folder.
    pub fn read(folder: &Path) -> Result<Self, PretrainError> {
        let path = folder.join(Self::FILE);
        if !path.is_file() {
            let reason = format!("{} holds no run to resume; begin one", folder.display());
            return Err(terms::Error::usage(reason).into());
        }
        let text = fs::read_to_string(&path).at(&path, "read")?;
        if !files::sealed::is_sound_toml(&text) {
            let reason = format!(
                "{}; put back what was there, or remove its last line to take it as it is",
                files::sealed::ALTERED
            );
            return Err(ConfigError::new(path.display().to_string(), reason).into());
        }
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            ConfigError::new(path.display().to_string(), error.to_string())
        })?;
        if table.contains_key("task") {
            let folder = folder.display();
            let reason = format!(
                "{folder} is a run of transfer; resume it with: isogloss transfer --resume --out {folder}"
            );
            return Err(terms::Error::usage(reason).into());
        }
        Ok(Self::from_table(table)?)
    }

    pub(super) const FILE: &str = "config.toml";

    /// The configuration as a file.
    pub fn to_toml(&self) -> String {
        files::sealed::seal_toml(&self.to_table().to_string())
    }

    /// The configuration as keys, which [`PretrainConfig::from_table`] reads back.
    pub(super) fn to_table(&self) -> Table {
        // By way of text, where the shortest number that reads back as the same f32 is written.
        let text = toml::to_string(self).expect("a configuration is valid TOML");
        let mut table: Table = text.parse().expect("just written");
        if let Some(Value::Table(encoder)) = table.get_mut("encoder") {
            DERIVED.iter().for_each(|&key| _ = encoder.remove(key));
        }
        table
    }

    /// Whether this number of updates is the goal of the run, or was before it was extended.
    pub(super) fn has_goal(&self, steps: u64) -> bool {
        steps == self.steps || self.extensions.iter().any(|earlier| earlier.steps == steps)
    }

    /// The configuration of this run with a later goal, after `done` updates. The learning rate follows
    /// the schedule as it was up to there and as it would be in a run of the new length from there on:
    /// linear decay then ends with the new goal, the other schedules do not depend on it.
    pub(super) fn extended(&self, steps: u64, done: u64) -> Result<Self, ConfigError> {
        if steps < self.steps {
            let reason = format!(
                "the run was begun with {}, and {steps} is asked for; a run can be extended, not shortened",
                self.steps
            );
            return Err(ConfigError::new("steps", reason));
        }
        let mut config = self.clone();
        if done > 0 {
            let schedule = self.adam.schedule;
            config.extensions.push(Extension { after: done, steps: self.steps, schedule });
        }
        config.steps = steps;
        if let Schedule::Linear { total, .. } = &mut config.adam.schedule {
            *total = (*total).max(steps);
        }
        config.check()?;
        Ok(config)
    }

    /// The extension that is still to come at an update, if any.
    fn before_extension(&self, step: u64) -> Option<&Extension> {
        self.extensions.iter().find(|extension| step <= extension.after)
    }

    /// The learning-rate schedule that an update follows.
    pub fn schedule_at(&self, step: u64) -> Schedule {
        self.before_extension(step).map_or(self.adam.schedule, |earlier| earlier.schedule)
    }

    /// The number of updates that was the goal when an update was made.
    pub fn goal_at(&self, step: u64) -> u64 {
        self.before_extension(step).map_or(self.steps, |earlier| earlier.steps)
    }

    /// Whether the run was extended after this update.
    pub(super) fn is_extended_after(&self, step: u64) -> bool {
        self.extensions.iter().any(|extension| extension.after == step)
    }

    /// Whether a checkpoint is saved after this update.
    pub(super) fn is_checkpoint_due(&self, step: u64) -> bool {
        step.is_multiple_of(self.checkpoint_every)
    }

    /// Whether the model that the run begins with is given this language.
    pub(super) fn is_added(&self, language: &str) -> bool {
        self.add.as_ref().is_some_and(|add| add.languages.iter().any(|added| added == language))
    }

    /// The language that the best weights are chosen by.
    pub fn selector(&self) -> &str {
        self.select_by.as_ref().unwrap_or(&self.languages[0])
    }

    fn check(&self) -> Result<(), ConfigError> {
        self.check_numbers()?;
        self.check_languages()?;
        self.check_added()?;
        self.vocabulary.check()?;
        self.text.check(&self.languages, self.vocabulary.folder.is_some())?;
        self.check_switch()?;
        self.encoder.check().map_err(|error| error.within("encoder"))?;
        self.check_shapes()?;
        self.adam.check().map_err(|error| error.within("adam"))
    }

    fn check_numbers(&self) -> Result<(), ConfigError> {
        let refuse = |key: &'static str, reason: &str| Err(ConfigError::new(key, reason));
        for (key, number) in [
            ("accumulate", self.accumulate as u64),
            ("checkpoint_every", self.checkpoint_every),
            ("evaluate_every", self.evaluate_every),
            ("text.dev", self.text.dev),
            ("vocabulary.merges", self.vocabulary.merges.unwrap_or(1) as u64),
            ("batch.sequences", self.batch.sequences as u64),
        ] {
            if number == 0 {
                return refuse(key, "must not be 0");
            }
        }
        if self.patience == Some(0) {
            return refuse("patience", "must not be 0; leave it out never to stop early");
        }
        let most = usize::from(u16::MAX);
        let stages = self.stages.iter().filter_map(|stage| stage.accumulate);
        if stages.chain([self.accumulate]).any(|accumulate| accumulate > most) {
            return refuse("accumulate", "must not be more than 65535");
        }
        self.check_extensions()?;
        match self.adam.schedule {
            Schedule::Linear { total, .. } if total < self.steps => {
                let reason = format!(
                    "is {total}, so that updates after it would change nothing, and `steps` is {}; make \
                     it as large, or leave it out",
                    self.steps
                );
                refuse("adam.schedule.total", &reason)
            }
            _ => Ok(()),
        }
    }

    fn check_extensions(&self) -> Result<(), ConfigError> {
        for extension in &self.extensions {
            if extension.after > extension.steps || extension.steps >= self.steps {
                let reason = "a run is extended at its goal or before, to a later one";
                return Err(ConfigError::new("extensions", reason));
            }
            extension.schedule.check().map_err(|error| error.within("extensions"))?;
        }
        Ok(())
    }

    fn check_languages(&self) -> Result<(), ConfigError> {
        if self.languages.is_empty() {
            let reason = "no text; name the languages and their files";
            return Err(ConfigError::new("languages", reason));
        }
        for language in &self.languages {
            if self.files.get(language).is_none_or(Vec::is_empty) {
                let reason = format!("'{language}' has no text; name at least one file");
                return Err(ConfigError::new("files", reason));
            }
        }
        if !self.languages.iter().any(|language| language == self.selector()) {
            let languages = self.languages.join(", ");
            let reason = format!("'{}' is none of the languages: {languages}", self.selector());
            return Err(ConfigError::new("select_by", reason));
        }
        Ok(())
    }

    fn check_added(&self) -> Result<(), ConfigError> {
        let Some(add) = &self.add else { return Ok(()) };
        if self.init.is_none() {
            let reason = "languages are added to a model that there is; name it by init";
            return Err(ConfigError::new("add.languages", reason));
        }
        if add.languages.is_empty() {
            let reason = "says what is trained when a model is given a language, and none is added";
            return Err(ConfigError::new("add.trainable", reason));
        }
        match add.languages.iter().find(|&added| !self.languages.contains(added)) {
            None => Ok(()),
            Some(added) => {
                let reason = format!("'{added}' has no text; name at least one file");
                Err(ConfigError::new("add.languages", reason))
            }
        }
    }

    fn check_switch(&self) -> Result<(), ConfigError> {
        let Some(switch) = &self.switch else { return Ok(()) };
        if switch.dictionaries.is_empty() {
            let reason = "no dictionary to replace words by; name at least one";
            return Err(ConfigError::new("switch.dictionaries", reason));
        }
        if self.encoder.separate.tokens {
            let reason = "code-switched text needs embeddings that all languages share; leave out 'switch', \
                          or take 'embeddings' out of encoder.separate";
            return Err(ConfigError::new("switch", reason));
        }
        Ok(())
    }

    fn check_shapes(&self) -> Result<(), ConfigError> {
        let refuse = |key: &'static str, reason: String| Err(ConfigError::new(key, reason));
        self.check_window()?;
        if self.encoder.parts.attention.causal || self.encoder.parts.logit_cap.is_some() {
            let reason = "masked tokens are predicted from both sides, and by logits without a cap; leave \
                          attention.causal and logit_cap out";
            return refuse("encoder.parts", reason.to_owned());
        }
        let positions = self.encoder.positions;
        let fits = |stage: &StageConfig| {
            (2..=positions).contains(&stage.length.unwrap_or(2))
                && stage.sequences != Some(0)
                && stage.accumulate != Some(0)
        };
        if !self.stages.iter().all(fits) {
            let reason = format!(
                "a stage needs sequences and accumulate > 0, and a length from 2 to encoder.positions = \
                 {positions}; change them, or leave stages out: stages = []"
            );
            return refuse("stages", reason);
        }
        Ok(())
    }

    /// Whether inputs are neither too long for the encoder nor too short to mask anything in.
    fn check_window(&self) -> Result<(), ConfigError> {
        let refuse = |key: &'static str, reason: String| Err(ConfigError::new(key, reason));
        let (length, window) = (self.batch.length, self.batch.max_tokens);
        let least = MlmEvaluation::SHORTEST;
        for (key, tokens) in [("batch.length", Some(length)), ("batch.max_tokens", window)] {
            if let Some(tokens) = tokens.filter(|&tokens| tokens < least) {
                let reason = format!(
                    "is {tokens}, and no token of an input with fewer than {least} stands between two others, \
                     to be predicted from them; take {least} or more"
                );
                return refuse(key, reason);
            }
        }
        let positions = self.encoder.positions;
        let (key, longest) =
            window.map_or(("batch.length", length), |window| ("batch.max_tokens", window));
        if longest > positions {
            let reason = format!("is {longest}, more than encoder.positions = {positions}");
            return refuse(key, reason + "; take at most as many");
        }
        Ok(())
    }
}

fn yes() -> bool {
    true
}

/// The message of a value that cannot be read, with its key first and types in plain words.
fn unreadable(error: toml::de::Error) -> ConfigError {
    let text = error.to_string();
    let (reason, key) = text.trim().split_once("\nin `").unwrap_or((text.trim(), "configuration"));
    let mut reason = reason.to_owned();
    for (types, plain) in [
        (&["usize", "u64", "u32", "u16"][..], "a whole number, 0 or more"),
        (&["f64", "f32"][..], "a number"),
    ] {
        for name in types {
            reason = reason.replace(&format!("expected {name}"), &format!("expected {plain}"));
        }
    }
    ConfigError::new(key.trim_end_matches('`').to_owned(), reason)
}

/// Merges `top` into `base`: tables key by key, all else is replaced; so is a schedule of another `kind`,
/// whose other keys would mean nothing.
pub fn overlay(base: &mut Table, top: Table) {
    let same_kind = |below: &Table, above: &Table| {
        above.get("kind").is_none_or(|kind| below.get("kind") == Some(kind))
    };
    for (key, value) in top {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above))
                if key != "schedule" || same_kind(below, &above) =>
            {
                overlay(below, above);
            }
            (_, value) => _ = base.insert(key, value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_key() {
        let refused = |text: &str| {
            let mut table = super::super::preset_keys(Preset::Default, Scale::Tiny);
            let texts = "languages = [\"en\"]\nfiles = { en = [\"a\"] }";
            overlay(&mut table, texts.parse().unwrap());
            overlay(&mut table, text.parse().unwrap());
            super::super::request::complete(&mut table);
            PretrainConfig::from_table(table).unwrap_err().to_string()
        };
        assert_eq!(refused("encoder = { dim = 0 }"), "encoder.dim: must not be 0");
        assert_eq!(
            refused("adam = { beta1 = 1 }"),
            "adam.beta1: 1 is not a share from 0 to below 1"
        );
        assert_eq!(
            refused("encoder = { dim = \"x\" }"),
            "encoder.dim: invalid type: string \"x\", expected a whole number, 0 or more"
        );
        assert_eq!(refused("select_by = \"fr\""), "select_by: 'fr' is none of the languages: en");
    }

    #[test]
    fn numbers_are_written_as_they_were_given() {
        let mut table = super::super::preset_keys(Preset::Default, Scale::Tiny);
        let given = "languages = [\"en\"]\nfiles = { en = [\"a\"] }\nadam = { beta1 = 0.9 }";
        overlay(&mut table, given.parse().unwrap());
        super::super::request::complete(&mut table);
        let written = PretrainConfig::from_table(table).unwrap().to_toml();
        assert!(written.contains("beta1 = 0.9\n"), "{written}");
    }

    #[test]
    fn tables_are_merged_key_by_key() {
        let parse = |text: &str| text.parse::<Table>().unwrap();
        let mut table =
            parse("a = 1\nb = { c = 1, d = 2 }\nschedule = { kind = \"linear\", warmup = 5 }");
        overlay(&mut table, parse("a = 3\nb = { c = 4 }\nschedule = { warmup = 7 }"));
        assert_eq!(
            table,
            parse("a = 3\nb = { c = 4, d = 2 }\nschedule = { kind = \"linear\", warmup = 7 }")
        );
        overlay(&mut table, parse("schedule = { kind = \"constant\" }"));
        assert_eq!(table["schedule"], parse("schedule = { kind = \"constant\" }")["schedule"]);
    }
}
