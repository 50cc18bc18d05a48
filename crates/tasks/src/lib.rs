//! Zero-shot cross-lingual transfer: a task is learned in one language and scored in the others.
//!
//! - [`registry`]: the tasks, a line for each. Behind a line stand the task's files, head, recipe and score:
//!   [`labelled_text`] (with the scores of [`nli`] and [`classify`]), [`ner`], [`parse`] and [`pos`].
//! - [`features`]: where the vectors come from that a task's head reads: an encoder that is fine-tuned, a
//!   layer of a frozen one, or static vectors.
//! - [`heads`]: what predicts from vectors: a linear classifier, or a biaffine parser.
//! - [`finetune`]: the grid of settings, epochs, selection on the source language, resume; its
//!   [`TransferResult`](finetune::TransferResult) is what `transfer` prints.
//!
//! A word is read at its first subword, a sentence or a pair of sentences at its first token (Devlin et al.
//! 2019).
//!
//! Scoring a file of predictions:
//!
//! ```
//! use tasks::{ScoringRules, score};
//! use terms::Task;
//!
//! let folder = tempfile::tempdir()?;
//! let (gold, predicted) = (folder.path().join("gold.tsv"), folder.path().join("predicted.tsv"));
//! std::fs::write(&gold, "the\tDET\ncat\tNOUN\nsleeps\tVERB\n")?;
//! std::fs::write(&predicted, "the\tDET\ncat\tNOUN\nsleeps\tNOUN\n")?;
//! let score = score(Task::Pos, &gold, &predicted, ScoringRules::default())?;
//! assert_eq!(score.value(), 2.0 / 3.0);
//! assert!(score.signature().starts_with("pos|accuracy:words"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod alter;
pub mod classify;
pub mod conllu;
mod counts;
mod error;
pub mod features;
pub mod finetune;
pub mod heads;
mod labelled;
pub mod labelled_text;
mod lines;
pub mod ner;
pub mod nli;
pub mod parse;
pub mod pos;
pub mod registry;
mod segments;
mod tagged;

pub use crate::alter::{AlteredLabels, alter_labelled};
pub use crate::counts::PrecisionRecall;
pub use crate::error::{Error, Result};
pub use crate::labelled::{Annotation, Example, LabelSet, LabelledFile, NONE, PreparedInputs};
pub use crate::registry::{ScoreResult, ScoringRules, score};
pub use crate::tagged::{TaggedFile, TaggedSentence};
