//! The language inside hidden states: mean vectors of languages, the shift from one to another, and token
//! translation with shifted states (Liu et al. 2020, section 4).
//!
//! - [`means`]: the mean of all hidden states of a language at each layer, over any amount of text.
//! - [`shifter`]: what is added to the states of one language to shift them to another's: the
//!   difference of means, one for each class of subwords, or the difference without the leading
//!   directions.
//! - [`token_sets`]: which language uses which subword, by which predicted tokens are told apart.
//! - [`masked`]: of which language the tokens are that the model predicts for masked ones, unshifted.
//! - [`translate`]: the tokens that the model predicts then, and their scores over layers and weights.
//! - [`bleu`]: BLEU-1 as sacreBLEU computes it.
//!
//! Means are taken over subwords alone. A shift is added at every position, special tokens included,
//! since these carry their language too.
//!
//! ```
//! use shift::translate::ConversionCounts;
//!
//! // Predicted subwords, each by whether the source and the target language use it. Subwords that both
//! // use do not count; of the other four, two are used by the target language alone.
//! let (source, target, both, neither) = ((true, false), (false, true), (true, true), (false, false));
//! let mut counts = ConversionCounts::default();
//! counts.add([target, both, source, neither, target]);
//! assert_eq!(counts.rate(), Some(0.5));
//! ```

pub mod bleu;
mod checkpoint;
mod classes;
mod error;
pub mod masked;
pub mod means;
mod sentences;
pub mod shifter;
pub mod token_sets;
pub mod translate;

pub use crate::checkpoint::SweepCheckpoint;
pub use crate::classes::{CLASSES, SubwordClasses};
pub use crate::error::{Error, Result};
pub use crate::sentences::{ParallelTokens, TokenizedSentences, tokenize_parallel};
