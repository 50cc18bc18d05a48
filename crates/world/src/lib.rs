//! Invented languages over one shared world of meaning, with the truth known.
//!
//! A [`World`] holds what can be spoken of: things in a taxonomy, deeds with preferences, named
//! entities, topics. Sentences come from it as dependency trees without order ([`Tree`]). A
//! [`Language`] gives words, forms and order to a tree. [`generate`] writes corpora, dictionaries,
//! parallel text, treebanks, named entities and inference pairs in the formats of the real data
//! sets, so that nothing that reads them knows whether a language is real.
//!
//! ```
//! let mut config = world::WorldConfig::default().with_defaults();
//! config.language[1].distance = Some(0.4);
//! let plan = config.resolve().unwrap();
//! let (_, languages, sentences) = world::excerpt(&plan, 1);
//! for language in &languages {
//!     println!("{}: {}", language.code(), language.say(&sentences[0]));
//! }
//! ```

mod config;
mod error;
mod grammar;
mod language;
mod meaning;
mod nli;
mod output;
mod random;

pub use config::{
    Dial, DomainConfig, LanguageConfig, LanguagePlan, Layout, MeaningConfig, MorphologyConfig,
    OrderConfig, Plan, Splits, TreebankSizes, WorldConfig,
};
pub use error::Error;
pub use grammar::{Node, Relation, Tree, Upos};
pub use language::{Affix, Language, Morphology, Order, Script, Side, VerbOrder};
pub use meaning::{EntityType, Meaning, MeaningId, World};
pub use nli::Label;
pub use output::{
    FileRecord, Gold, LanguageRecord, MANIFEST, Manifest, MeaningRecord, WordRecord, excerpt,
    generate, steps,
};
