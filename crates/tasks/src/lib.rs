//! Zero-shot transfer: a task is learned in one language and scored in the others.
//!
//! - [`nli`], [`ner`] and [`parse`]: for each task its files, what they become for a model, and its
//!   scores.
//! - [`features`]: where the vectors come from that a task's head reads: an encoder that is
//!   fine-tuned, a layer of a frozen one, or static vectors.
//! - [`heads`]: what turns vectors into answers: a linear classifier, or a biaffine parser.
//! - [`finetune`]: the grid of settings, epochs, selection on the source language, resume.
//!
//! A word is read at its first piece, a pair of sentences at its first token.

mod error;
pub mod features;
pub mod finetune;
pub mod heads;
mod labelled;
mod lines;
pub mod ner;
pub mod nli;
pub mod parse;
mod statistics;

pub use crate::error::{Error, Result};
pub use crate::labelled::{Answer, Example, Labelled, Labels, NONE, Prepared, Score, Task};
pub use crate::statistics::Mean;

/// What exactly a score is of, in the manner of sacreBLEU.
fn signature(facts: &str) -> String {
    format!("{facts}|v:{}", env!("CARGO_PKG_VERSION"))
}
