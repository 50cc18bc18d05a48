//! From raw text to masked batches: corpora, sentences and words, vocabularies and the anchors
//! they share, code-switching, and the streams that a masked language model is trained on.
//!
//! The way of a text: a [`Source`] gives lines, a [`Preparer`] turns them into sentences of words.

mod error;
mod moses;
mod prepare;
mod random;
mod reader;

pub use error::{Error, Result};
pub use prepare::{Preparation, Preparer, Simplified, Words};
pub use random::{Chance, Stream};
pub use reader::{LineRules, Lines, Skipped, Source};
