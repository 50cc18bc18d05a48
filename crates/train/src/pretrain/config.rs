//! What a pretraining run is made of.
//!
//! A configuration is laid together from layers: the defaults of a scale, the changes of a
//! condition, a file, and flags; each overrides the one before, key by key. What comes out is
//! checked once and saved with the run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use encoder::{ConfigError, EncoderConfig};
use serde::{Deserialize, Serialize};
use text::{BatchSettings, MlmEvaluation, SwitchSettings, VocabularyKind};
use toml::{Table, Value};

use super::preparation::TextConfig;
use crate::adam::AdamConfig;
use crate::schedule::Schedule;

/// The vocabulary that a run learns from its text, or takes as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VocabularyConfig {
    /// How the languages hang together in one that is learned.
    pub kind: Option<VocabularyKind>,
    /// Merges to learn: in all for a joint vocabulary, for each language otherwise.
    pub merges: Option<usize>,
    /// A folder of `isogloss vocab train` to take instead of learning one; text is prepared as it says.
    pub folder: Option<PathBuf>,
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

/// Sentences of two languages, line by line translations of one another, to watch a shared space
/// emerge by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeConfig {
    /// The two languages.
    pub languages: [String; 2],
    /// The file of each.
    pub files: [PathBuf; 2],
}

/// A stretch at the beginning of a run whose batches have another shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageConfig {
    /// Updates that it lasts.
    pub steps: u64,
    /// Tokens in a row.
    pub length: Option<usize>,
    /// Rows in a batch.
    pub sequences: Option<usize>,
    /// Batches whose gradients make one update.
    pub accumulate: Option<usize>,
}

/// Keys of the encoder that are not for the configuration to say.
const DERIVED: [&str; 2] = ["languages", "vocabulary"];

/// A pretraining run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PretrainConfig {
    /// The condition that the run began from.
    pub preset: String,
    /// The scale that the run began from.
    pub scale: String,
    /// Decides weights, batches, masks and dropout.
    pub seed: u64,
    /// Updates to make.
    pub steps: u64,
    /// Batches whose gradients make one update.
    pub accumulate: usize,
    /// Updates between two checkpoints.
    pub checkpoint_every: u64,
    /// Updates between two evaluations.
    pub evaluate_every: u64,
    /// Stop after so many evaluations without a better one.
    pub patience: Option<u64>,
    /// The language whose perplexity on held-out text chooses the best weights; the first if none.
    pub select_by: Option<String>,
    /// The languages, in the order of their numbers.
    pub languages: Vec<String>,
    /// The files of each language: paths or globs.
    pub files: BTreeMap<String, Vec<String>>,
    /// How they are read.
    pub text: TextConfig,
    /// The vocabulary.
    pub vocabulary: VocabularyConfig,
    /// The shape of batches and how tokens are hidden.
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
    /// Translations to watch.
    #[serde(default)]
    pub probes: Vec<ProbeConfig>,
}

impl PretrainConfig {
    /// Reads a configuration that was laid together from layers, and checks it.
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

    /// The configuration as a file.
    pub fn to_toml(&self) -> String {
        // By way of text, where the shortest number that reads back as the same f32 is written.
        let text = toml::to_string(self).expect("a configuration is valid TOML");
        let mut table: Table = text.parse().expect("just written");
        if let Some(Value::Table(encoder)) = table.get_mut("encoder") {
            DERIVED.iter().for_each(|&key| _ = encoder.remove(key));
        }
        table.to_string()
    }

    /// The language that the best weights are chosen by.
    pub fn selector(&self) -> &str {
        self.select_by.as_ref().unwrap_or(&self.languages[0])
    }

    fn check(&self) -> Result<(), ConfigError> {
        self.check_numbers()?;
        self.check_languages()?;
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

    fn check_languages(&self) -> Result<(), ConfigError> {
        if self.languages.is_empty() {
            let reason = "no text; give --world DIR or --text LANG=FILE";
            return Err(ConfigError::new("languages", reason));
        }
        for language in &self.languages {
            if self.files.get(language).is_none_or(Vec::is_empty) {
                let reason = format!("'{language}' has no text; give --text {language}=FILE");
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

    fn check_switch(&self) -> Result<(), ConfigError> {
        let Some(switch) = &self.switch else { return Ok(()) };
        let refuse = |reason: &str| Err(ConfigError::new("switch", reason));
        if switch.dictionaries.is_empty() {
            return refuse("no dictionary to switch by; give --dictionary A-B=FILE");
        }
        if self.encoder.separate.tokens {
            return refuse(
                "code-switched text needs embeddings that all languages share; leave out 'switch', or \
                 take 'embeddings' out of encoder.separate",
            );
        }
        Ok(())
    }

    /// Whether rows of tokens fit the encoder.
    fn check_shapes(&self) -> Result<(), ConfigError> {
        let refuse = |key: &'static str, reason: String| Err(ConfigError::new(key, reason));
        self.check_window()?;
        let positions = self.encoder.positions;
        let fits = |stage: &StageConfig| {
            (2..=positions).contains(&stage.length.unwrap_or(2))
                && stage.sequences != Some(0)
                && stage.accumulate != Some(0)
        };
        if !self.stages.iter().all(fits) {
            let reason = format!(
                "a stage needs sequences and accumulate > 0, and a length from 2 to encoder.positions = \
                 {positions}; change them, or do without by --set 'stages=[]'"
            );
            return refuse("stages", reason);
        }
        Ok(())
    }

    /// Whether inputs are neither too long for the encoder nor too short to guess anything in.
    fn check_window(&self) -> Result<(), ConfigError> {
        let refuse = |key: &'static str, reason: String| Err(ConfigError::new(key, reason));
        let (length, window) = (self.batch.length, self.batch.max_tokens);
        let least = MlmEvaluation::SHORTEST;
        for (key, tokens) in [("batch.length", Some(length)), ("batch.max_tokens", window)] {
            if let Some(tokens) = tokens.filter(|&tokens| tokens < least) {
                let reason = format!(
                    "is {tokens}, and no token of an input with fewer than {least} stands between two others, \
                     to be guessed by them; take {least} or more"
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

/// What serde says of a value, with the key before it and types in plain words.
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

/// Lays `top` over `base`: tables are merged key by key, all else is replaced; so is a table of
/// another `kind`, whose other keys would mean nothing.
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
            let mut table = super::super::preset("default", "tiny").unwrap();
            let texts = "languages = [\"en\"]\nfiles = { en = [\"a\"] }";
            overlay(&mut table, texts.parse().unwrap());
            overlay(&mut table, text.parse().unwrap());
            super::super::complete(&mut table);
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
        let mut table = super::super::preset("default", "tiny").unwrap();
        let given = "languages = [\"en\"]\nfiles = { en = [\"a\"] }\nadam = { beta1 = 0.9 }";
        overlay(&mut table, given.parse().unwrap());
        super::super::complete(&mut table);
        let written = PretrainConfig::from_table(table).unwrap().to_toml();
        assert!(written.contains("beta1 = 0.9\n"), "{written}");
    }

    #[test]
    fn layers_are_laid_over_one_another() {
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
