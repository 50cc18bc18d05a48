//! Invented languages that share their meanings, with gold annotations for every task.
//!
//! A [`World`] holds the meanings: nouns in a taxonomy, verbs with selectional preferences, named entities,
//! topics. Sentences are drawn from it as unordered dependency trees ([`Tree`]). A [`Language`] realises a
//! tree with its own words, inflection and order. [`generate`] writes corpora, dictionaries, parallel text,
//! treebanks, named entities, NLI pairs and topic classification in the formats of the real data sets, so
//! that no reader needs to know whether a language is real; [`Manifest`] lists the files and the gold
//! annotations.
//!
//! ```
//! let mut config = world::WorldConfig::default().with_defaults();
//! config.language[1].distance = Some(0.4);
//! let plan = config.resolve().unwrap();
//! let (_, languages, sentences) = world::excerpt(&plan, 1);
//! for language in &languages {
//!     println!("{}: {}", language.code(), language.realize(&sentences[0]));
//! }
//! ```

mod config;
mod error;
mod gloss;
mod grammar;
mod language;
mod meaning;
mod nli;
mod output;
mod random;

pub use config::{
    CorpusLayout, DomainConfig, LanguageConfig, LanguageDistance, LanguagePlan, MeaningConfig,
    MorphologyConfig, SplitSizes, TreebankSizes, WordOrderConfig, WorldConfig, WorldPlan,
};
pub use error::Error;
pub use gloss::GlossedSentence;
pub use grammar::{Node, Relation, Tree, Upos};
pub use language::{Affix, DependentSide, Language, Morphology, Script, VerbOrder, WordOrder};
pub use meaning::{EntityType, Meaning, MeaningId, World};
pub use nli::NliLabel;
pub use output::{
    FileRecord, GenerateResult, GoldAnnotations, LanguageRecord, MANIFEST, Manifest, MeaningRecord,
    WordRecord, excerpt, generate, steps,
};
