//! From raw text to masked batches: corpora, sentences and words, vocabularies and the anchors
//! they share, code-switching, and the streams that a masked language model is trained on.
//!
//! The way of a text: a [`Source`] gives lines, a [`Preparer`] turns them into sentences of words.

mod corpus;
mod error;
mod moses;
mod prepare;
mod random;
mod reader;
mod vocabulary;
mod whole;

pub use corpus::{Block, Consume, Corpus, Progress, Report, Selection, Split, Take, Watch};
pub use error::{Error, Result};
pub use prepare::{Preparation, Preparer, Simplified, Words};
pub use random::{Chance, Stream};
pub use reader::{LineRules, Lines, Skipped, Source};
pub use vocabulary::{
    Anchor, BpeSettings, Encoded, Encoder, Kind, LanguageCounts, LanguageText, PairSharing, Sharing,
    Specials, Vocabulary, WordCounts, count_pieces, sharing,
};
