//! The configuration of a world: the keys of `world.toml`, their defaults and their meaning.
//!
//! A [`WorldConfig`] may leave keys out. A [`WorldPlan`] has every key filled in and checked, so that no
//! later code can meet an invalid configuration.

mod check;
mod distance;
mod plan;
mod read;

use serde::{Deserialize, Serialize};

pub use distance::LanguageDistance;
pub use plan::{LanguagePlan, WorldPlan};

use crate::language::{Affix, DependentSide, Script, VerbOrder};

/// The keys of `world.toml`. Every key has a default, so a file says only what is to be different.
///
/// ```
/// let text = r#"
///     sentences = 20000
///     [meaning]
///     lemmas = 500
///     [[language]]
///     code = "qaa"
///     [[language]]
///     code = "qab"
///     distance = 0.4              # changes everything,
///     anchors = 0.1               # but keys that are given win over it
///     order = { verb = "vso" }
/// "#;
/// let plan = world::WorldConfig::from_toml(text, "world.toml").unwrap().resolve().unwrap();
/// assert_eq!(plan.languages()[1].anchors, 0.1);
/// assert_eq!(plan.languages()[1].order.adjective, world::DependentSide::After);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorldConfig {
    /// The seed of everything: the same seed and keys give the same bytes.
    pub seed: u64,
    /// Sentences in the corpus of each language.
    pub sentences: usize,
    /// How a corpus is laid out in lines.
    pub layout: CorpusLayout,
    /// Whether sentences end in a full stop.
    pub punctuation: bool,
    /// Whether names begin with a capital, in scripts that have capitals. Dictionaries are in lower
    /// case either way, as MUSE's are.
    pub capitals: bool,
    /// Whether the test sentences of `tatoeba/`, `parallel/` and the parallel treebank are kept out
    /// of the corpora.
    pub held_out: bool,
    /// Pairs of each sentence-retrieval test set (`tatoeba/`).
    pub tatoeba: usize,
    /// The share of each dictionary held out for testing.
    pub dictionary_test: f64,
    /// Whether every two languages have dictionaries, or only the first with each other one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub all_dictionaries: bool,
    /// The meanings that all languages share.
    pub meaning: MeaningConfig,
    /// Sizes of the parallel text in all languages (`parallel/`); its training part is also
    /// `bitext/`.
    pub parallel: SplitSizes,
    /// Sizes of each treebank (`ud/`).
    pub treebank: TreebankSizes,
    /// Sizes of each named-entity data set (`ner/`).
    pub ner: SplitSizes,
    /// Sizes of the NLI data set (`xnli/`).
    pub nli: SplitSizes,
    /// Sizes of the topic classification data set (`classify/`).
    pub classify: SplitSizes,
    /// The domains that corpora can come from. Labelled and parallel data come from the first.
    pub domain: Vec<DomainConfig>,
    /// The languages; the first is the one the others are compared with.
    pub language: Vec<LanguageConfig>,
}

impl Default for WorldConfig {
    fn default() -> Self {
        Self {
            seed: 1,
            sentences: 500_000,
            layout: CorpusLayout::Sentences,
            punctuation: false,
            capitals: false,
            held_out: true,
            tatoeba: 1000,
            dictionary_test: 0.25,
            all_dictionaries: false,
            meaning: MeaningConfig::default(),
            parallel: SplitSizes { train: 10_000, dev: 1000, test: 1000 },
            treebank: TreebankSizes::default(),
            ner: SplitSizes { train: 5000, dev: 1000, test: 1000 },
            nli: SplitSizes { train: 20_000, dev: 2490, test: 5010 },
            classify: SplitSizes { train: 5000, dev: 1000, test: 1000 },
            domain: Vec::new(),
            language: Vec::new(),
        }
    }
}

/// How a corpus is laid out in lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CorpusLayout {
    /// A line a sentence; the sentences of a document follow one another.
    Sentences,
    /// A line a document. Needs `punctuation`, without which sentences would run together.
    Paragraphs,
}

/// How many items a data set has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplitSizes {
    /// For training.
    pub train: usize,
    /// For model selection.
    pub dev: usize,
    /// For the reported score.
    pub test: usize,
}

impl SplitSizes {
    /// The three sizes with their names.
    pub fn named(&self) -> [(&'static str, usize); 3] {
        [("train", self.train), ("dev", self.dev), ("test", self.test)]
    }
}

/// How many sentences a treebank has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TreebankSizes {
    /// For training.
    pub train: usize,
    /// For model selection.
    pub dev: usize,
    /// For the reported score.
    pub test: usize,
    /// Sentences of the parallel treebank, the same in every language, as PUD's are.
    pub parallel: usize,
}

impl Default for TreebankSizes {
    fn default() -> Self {
        Self { train: 5000, dev: 1000, test: 1000, parallel: 1000 }
    }
}

/// The shape of the shared meanings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MeaningConfig {
    /// Words in all: about a quarter names, a fifth verbs, an eighth adjectives, 25 function words
    /// and parts of names, the rest nouns.
    pub lemmas: usize,
    /// Classes of nouns; each has a word of its own, the hypernym of its nouns.
    pub classes: usize,
    /// Classes of classes, with words of their own; the first third (at least two) are animate.
    pub superclasses: usize,
    /// Topics. A document keeps to one.
    pub topics: usize,
    /// The exponent of word frequencies: the k-th word of its kind has weight (k + c)^-zipf.
    pub zipf: f64,
    /// How strongly words keep to topics; 0 makes all topics alike.
    pub topic_contrast: f64,
    /// How unevenly topics are drawn: the t-th has weight (t + 2)^-topic_skew.
    pub topic_skew: f64,
    /// Dimensions of the latent vectors whose dot products tie words to topics.
    pub latent: usize,
    /// How fast the strength of those dimensions falls: (k + 1)^-latent_decay.
    pub latent_decay: f64,
    /// How uneven the sizes of noun classes are: the sigma of a log-normal.
    pub class_spread: f64,
    /// How sharply a verb's preference falls from its first class of subject or object to its next.
    pub preference: f64,
    /// The weight of every class that a verb or adjective does not prefer.
    pub off_preference: f64,
    /// How often a document mentions its recurring referents: 0 never, 1 as tuned by default.
    pub recurrence: f64,
    /// How often a document's place and organisation are those of its person.
    pub facts: f64,
}

impl Default for MeaningConfig {
    fn default() -> Self {
        Self {
            lemmas: 200,
            classes: 12,
            superclasses: 6,
            topics: 8,
            zipf: 0.8,
            topic_contrast: 1.5,
            topic_skew: 0.7,
            latent: 8,
            latent_decay: 0.8,
            class_spread: 0.5,
            preference: 1.0,
            off_preference: 0.02,
            recurrence: 1.0,
            facts: 0.6,
        }
    }
}

/// A domain: topic, vocabulary and style of a text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DomainConfig {
    /// Its name, part of the names of corpus files.
    pub name: String,
    /// How far it lies from the common stock, 0..1: topics move to the other end of the scale of
    /// frequency, and words to the ranks of a shuffle of the domain's own.
    pub shift: f64,
    /// The share of content words that never occur in it.
    pub hidden: f64,
    /// Sentences in a document, at least and at most.
    pub document: [usize; 2],
    /// How often a noun has an adjective.
    pub adjectives: f64,
    /// How often a noun phrase has a relative clause.
    pub relatives: f64,
    /// How often a noun phrase has a genitive.
    pub genitives: f64,
    /// How often a clause has an adjunct of place or circumstance.
    pub adjuncts: f64,
    /// How often a clause is negated.
    pub negation: f64,
    /// How often a subject is a pronoun; named persons twice as often as things.
    pub pronouns: f64,
}

impl Default for DomainConfig {
    fn default() -> Self {
        Self {
            name: "base".to_owned(),
            shift: 0.0,
            hidden: 0.0,
            document: [4, 9],
            adjectives: 0.35,
            relatives: 0.06,
            genitives: 0.08,
            adjuncts: 0.28,
            negation: 0.07,
            pronouns: 0.07,
        }
    }
}

/// One language. A key left out follows from `distance`, or, without that, is as in the first
/// language, with no word in common.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LanguageConfig {
    /// Its code, part of file names. Codes from `qaa` on are free for private use in ISO 639.
    pub code: String,
    /// How far it lies from the first language, 0..1; see [`LanguageDistance`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distance: Option<f64>,
    /// The script it is written in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<Script>,
    /// The share of content words that it writes exactly as the first language does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchors: Option<f64>,
    /// The share of the other words that come from the first language's by regular sound change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cognates: Option<f64>,
    /// Sentences in its corpus, in place of the world's `sentences`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sentences: Option<usize>,
    /// The domains of its corpus, in equal parts; left out, the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domains: Option<Vec<String>>,
    /// Its word order.
    pub order: WordOrderConfig,
    /// Its morphology.
    pub morphology: MorphologyConfig,
}

/// Word order, each key optional.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs, reason = "the names are those of the parts of speech they place")]
pub struct WordOrderConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verb: Option<VerbOrder>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adjective: Option<DependentSide>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adposition: Option<DependentSide>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub determiner: Option<DependentSide>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub genitive: Option<DependentSide>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative: Option<DependentSide>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub negation: Option<DependentSide>,
}

/// Morphology, each key optional.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MorphologyConfig {
    /// Nouns are marked for number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<bool>,
    /// Verbs are marked for tense.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tense: Option<bool>,
    /// Verbs agree with their subjects in number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreement: Option<bool>,
    /// Nouns are marked for case: object, and with an adposition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub case: Option<bool>,
    /// On which side of the stem the marks stand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affix: Option<Affix>,
}
