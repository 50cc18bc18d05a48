//! A study as it is written down: what it asks, of which languages, under which conditions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use terms::Task;

use super::error::{Error, Result};
use crate::record::Factors;

/// A study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Its name.
    #[serde(skip)]
    pub name: String,
    /// What it asks, in a sentence.
    pub question: String,
    /// Where the papers ask it.
    #[serde(default)]
    pub place: String,
    /// Everything is done once for each of these.
    #[serde(default = "one_seed")]
    pub seeds: Vec<u64>,
    /// What is measured.
    pub evaluate: Vec<Evaluation>,
    /// Conditions of pretraining, each a system whose factor `condition` is its name.
    #[serde(default)]
    pub conditions: Vec<String>,
    /// What is compared, beyond conditions.
    #[serde(default)]
    pub systems: Vec<System>,
    /// The invented languages; one world as it comes if none is named.
    #[serde(default)]
    pub worlds: Vec<World>,
    /// Real languages in the place of invented ones.
    #[serde(default)]
    pub real: Option<Real>,
    /// What differs at a scale.
    #[serde(default)]
    pub scales: BTreeMap<String, Scale>,
}

fn one_seed() -> Vec<u64> {
    vec![1]
}

/// What is measured on every system that it can be measured on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Evaluation {
    /// Zero-shot transfer of a task, which names it.
    Transfer(Task),
    /// Translations found among sentences.
    Retrieval,
    /// Translations of words found after a map (paper 1, 5.1.1).
    Words,
    /// Tasks learned over one language's layer and applied to the other's, mapped (5.1.2).
    Contexts,
    /// CKA, layer by layer (5.2).
    Similarity,
    /// Translations of words found without a map (paper 2, 3).
    WordRetrieval,
    /// Token translation by the difference of means (paper 2, 4.2).
    Shift,
    /// Tasks transferred with a shift (paper 2, 4.3).
    ShiftedTransfer,
}

/// The evaluations that are no tasks, by name.
const EVALUATIONS: [(&str, Evaluation); 7] = [
    ("retrieval", Evaluation::Retrieval),
    ("words", Evaluation::Words),
    ("contexts", Evaluation::Contexts),
    ("similarity", Evaluation::Similarity),
    ("word-retrieval", Evaluation::WordRetrieval),
    ("shift", Evaluation::Shift),
    ("shifted-transfer", Evaluation::ShiftedTransfer),
];

impl Evaluation {
    /// Its name, as it is written down.
    pub(super) fn name(self) -> &'static str {
        let named = |evaluation| EVALUATIONS.iter().find(|(_, one)| *one == evaluation);
        match self {
            Evaluation::Transfer(task) => task.name(),
            other => named(other).map_or("", |(name, _)| name),
        }
    }
}

impl TryFrom<String> for Evaluation {
    type Error = String;

    fn try_from(name: String) -> std::result::Result<Self, String> {
        let named = EVALUATIONS.iter().find(|(known, _)| *known == name);
        let task = || name.parse().map(Evaluation::Transfer);
        named.map(|(_, evaluation)| *evaluation).map_or_else(task, Ok).map_err(|_: String| {
            let tasks = Task::all().map(Task::name);
            let known: Vec<_> = tasks.chain(EVALUATIONS.map(|(name, _)| name)).collect();
            format!("there is no evaluation `{name}`; there are: {}", known.join(", "))
        })
    }
}

impl From<Evaluation> for String {
    fn from(evaluation: Evaluation) -> Self {
        evaluation.name().to_owned()
    }
}

/// Something that has vectors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// What its numbers are filed under.
    pub factors: Factors,
    /// What it is.
    #[serde(default)]
    pub model: Model,
    /// The condition of the encoder, or of the encoder whose sentences are used.
    #[serde(default = "no_anchors")]
    pub preset: String,
    /// Flags more for the command that makes it.
    #[serde(default)]
    pub flags: Vec<String>,
}

fn no_anchors() -> String {
    "no-anchors".to_owned()
}

/// The kinds of systems.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// One encoder of all languages.
    #[default]
    Encoder,
    /// An encoder for each language, which know nothing of one another.
    Monolingual,
    /// A trained encoder of the first language beside an untrained one for the others.
    Random,
    /// Two encoders of the first language, from two seeds.
    Twice,
    /// Word2Vec on an encoder's sentences.
    Word2vec,
    /// GloVe on an encoder's sentences.
    Glove,
    /// Word2Vec with character n-grams on each language's text.
    Fasttext,
}

/// Invented languages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct World {
    /// What its numbers are filed under.
    pub factors: Factors,
    /// Flags of `world generate`.
    pub flags: Vec<String>,
    /// How many languages.
    pub languages: Option<usize>,
}

/// Real languages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Real {
    /// The folder of the data, laid out as `isogloss data get` does.
    pub data: PathBuf,
    /// Pairs such as `en-fr`, the language to learn from first.
    pub pairs: Vec<String>,
}

/// What differs at a scale.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scale {
    /// Other seeds.
    pub seeds: Option<Vec<u64>>,
    /// Flags for every pretraining.
    pub pretrain: Vec<String>,
    /// Flags for every transfer.
    pub transfer: Vec<String>,
    /// The layers that are looked at one by one where each costs much; all if none is named.
    pub layers: Vec<usize>,
}

/// The studies that are built in, each in a file of its own.
const BUILT_IN: [(&str, &str); 13] = [
    ("demo", include_str!("studies/demo.toml")),
    ("domain", include_str!("studies/domain.toml")),
    ("anchors", include_str!("studies/anchors.toml")),
    ("sharing", include_str!("studies/sharing.toml")),
    ("distance", include_str!("studies/distance.toml")),
    ("word-alignment", include_str!("studies/word-alignment.toml")),
    ("contextual-alignment", include_str!("studies/contextual-alignment.toml")),
    ("sentence-alignment", include_str!("studies/sentence-alignment.toml")),
    ("similarity", include_str!("studies/similarity.toml")),
    ("data-size", include_str!("studies/data-size.toml")),
    ("window", include_str!("studies/window.toml")),
    ("language-shift", include_str!("studies/language-shift.toml")),
    ("shifted-transfer", include_str!("studies/shifted-transfer.toml")),
];

impl Study {
    /// The names of the studies that are built in.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// A study's file as it is built in, to read or to begin one's own from.
    pub fn source(name: &str) -> Option<&'static str> {
        BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }

    /// A study by its name, or from a file that ends in `.toml`.
    pub fn find(name: &str) -> Result<Self> {
        if name.ends_with(".toml") {
            let path = Path::new(name);
            let text = std::fs::read_to_string(path)
                .map_err(|error| Error::file(name, error.to_string(), "name a study's file"))?;
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            return Self::parse(&stem, name, &text);
        }
        let known = || Self::names().collect::<Vec<_>>().join(", ");
        let text = Self::source(name);
        let text = text.ok_or_else(|| Error::Unknown { name: name.to_owned(), known: known() })?;
        Self::parse(name, name, text)
    }

    fn parse(name: &str, place: &str, text: &str) -> Result<Self> {
        let remedy = "`isogloss study show demo` prints one that is right";
        let parsed: std::result::Result<Self, _> = toml::from_str(text);
        let study =
            parsed.map_err(|error| Error::file(place, error.to_string().trim_end(), remedy))?;
        let study = Self { name: name.to_owned(), ..study };
        study.check(place)?;
        Ok(study)
    }

    fn check(&self, place: &str) -> Result<()> {
        let refuse = |key: &str, reason: &str, remedy: &str| {
            Err(Error::file(format!("{place}, `{key}`"), reason, remedy))
        };
        if self.seeds.is_empty() || self.scales.values().any(|s| s.seeds.as_deref() == Some(&[])) {
            return refuse("seeds", "there is none", "name one at least");
        }
        if self.evaluate.is_empty() {
            return refuse(
                "evaluate",
                "nothing is measured",
                "name what to measure, such as \"ner\"",
            );
        }
        if self.conditions.is_empty() && self.systems.is_empty() {
            return refuse("conditions", "nothing is compared", "name conditions or [[systems]]");
        }
        if self.real.is_some() && !self.worlds.is_empty() {
            return refuse("real", "the languages are invented as well", "keep one of the two");
        }
        for pair in self.real.iter().flat_map(|real| &real.pairs) {
            if pair.split_once('-').is_none_or(|(a, b)| a.is_empty() || b.is_empty() || a == b) {
                return refuse("real.pairs", "a pair is no pair", "write two languages, as en-fr");
            }
        }
        Ok(())
    }

    /// Everything that is compared: conditions first, then the other systems.
    pub fn compared(&self) -> Vec<System> {
        let system = |condition: &String| System {
            factors: Factors::from([("condition".to_owned(), condition.clone())]),
            model: Model::Encoder,
            preset: condition.clone(),
            flags: Vec::new(),
        };
        self.conditions.iter().map(system).chain(self.systems.iter().cloned()).collect()
    }

    /// What differs at a scale.
    pub fn at(&self, scale: &str) -> Scale {
        self.scales.get(scale).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_study_that_is_built_in_can_be_read() {
        for name in Study::names() {
            let study = Study::find(name).unwrap();
            assert!(study.question.ends_with('?'), "{name}: {}", study.question);
            assert!(!study.compared().is_empty());
        }
    }

    #[test]
    fn nonsense_is_refused_with_its_place() {
        let refused = |text: &str| Study::parse("mine", "mine.toml", text).unwrap_err().to_string();
        let base = "question = \"?\"\n";
        assert!(refused("question = 3").starts_with("mine.toml: "));
        assert!(refused(&format!("{base}evaluate = [\"gold\"]")).contains("gold"));
        let none = refused(&format!("{base}evaluate = [\"ner\"]"));
        assert_eq!(
            none,
            "mine.toml, `conditions`: nothing is compared; name conditions or [[systems]]"
        );
        let seeds = format!("{base}evaluate = [\"ner\"]\nconditions = [\"default\"]\nseeds = []");
        assert!(refused(&seeds).contains("`seeds`"));
        let pair = format!(
            "{base}evaluate = [\"ner\"]\nconditions = [\"default\"]\n[real]\ndata = \"d\"\npairs = [\"en\"]"
        );
        assert!(refused(&pair).contains("write two languages"));
        let unknown = Study::find("anchor").unwrap_err().to_string();
        assert!(unknown.contains("anchors") && unknown.contains("`anchor`"), "{unknown}");
    }
}
