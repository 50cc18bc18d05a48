//! The language inside the vector: means of languages, the shift from one to another, and what a
//! model says when its states are shifted (paper 2, section 4).
//!
//! - [`means`]: the mean of all hidden states of a language at each layer, over any amount of text.
//! - [`shifter`]: what is added to the states of one language to make them another's: the difference
//!   of means, one for each class of pieces, or the difference without the leading directions.
//! - [`translate`]: what the model says then, and how good that is, over layers and weights.
//! - [`bleu`]: BLEU-1 as sacreBLEU computes it.

pub mod bleu;
mod classes;
mod error;
pub mod means;
mod sentences;
pub mod shifter;
pub mod translate;

pub use crate::classes::{CLASSES, Classes};
pub use crate::error::{Error, Result};
pub use crate::sentences::{Sentences, sentences};
