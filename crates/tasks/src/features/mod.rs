//! Where the vectors come from that a head reads.
//!
//! A head needs a row for each word, whether an encoder that is fine-tuned with it made the row
//! ([`EncoderFeatures`]) or a small Transformer over frozen vectors ([`FrozenFeatures`]): those of a layer of
//! frozen encoders ([`LayerVectors`]), or static ones ([`StaticVectors`]).

mod encoder;
mod frozen;
mod layer;
mod table;

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use models::PretrainedModel;
use serde_json::Value;
use shift::means::MeanVectors;
use tensor::{Device, Indices, Params, Tape, Tensor, Var};
use text::{EncodedWords, Frame};

pub use self::encoder::EncoderFeatures;
pub use self::frozen::{FrozenFeatures, FrozenVectors, NewLayers};
pub use self::layer::LayerVectors;
pub use self::table::StaticVectors;

use crate::error::Result;

/// Inputs of one language, and which of their positions are read.
pub struct FeatureInput<'a> {
    /// The number of the language.
    pub language: usize,
    /// The token ids of each sequence.
    pub sequences: &'a [&'a [u32]],
    /// The rows that are read, counted over all sequences, in ascending order.
    pub rows: Indices,
    /// Shifted hidden states to go on from, in place of the tokens' own.
    pub start: Option<ShiftedStates<'a>>,
}

/// Hidden states within an encoder and what is added to them, from which its remaining layers are
/// computed. All of it is on the device.
#[derive(Clone, Copy)]
pub struct ShiftedStates<'a> {
    /// After which layer; 0 is the embeddings.
    pub layer: usize,
    /// Those of all rows: rows x dim.
    pub states: &'a Tensor,
    /// The vectors that are added: classes of subwords x dim.
    pub table: &'a Tensor,
    /// Which of them is added to each row.
    pub classes: &'a Indices,
    /// Their weight.
    pub alpha: f32,
}

impl ShiftedStates<'_> {
    /// The sum: rows x dim.
    pub(crate) fn shifted(&self, device: &Device) -> Tensor {
        device.add_rows(self.states, self.table, self.classes, &[self.alpha])
    }
}

/// What stands around a text, and where a head reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputForm {
    /// The special tokens before and after a text.
    pub frame: Frame,
    /// What begins a text where something must, and what parts two texts.
    pub specials: (u32, u32),
    /// Whether a token sees only those before it: words are then read at their last subword and texts at their last token.
    pub causal: bool,
}

impl InputForm {
    /// Of a model with a token at either end, whose every token sees all others.
    pub fn both_sides(specials: (u32, u32)) -> Self {
        Self { frame: Frame(Some(specials.0), Some(specials.1)), specials, causal: false }
    }

    pub(crate) fn of(model: &PretrainedModel) -> Self {
        let specials = model.vocabulary.bos_eos();
        match model.encoder.config().parts.attention.causal {
            true => Self { frame: model.vocabulary.frame(), specials, causal: true },
            false => Self::both_sides(specials),
        }
    }

    /// The place at which a run of subwords is read.
    pub(crate) fn place(self, subwords: Range<usize>) -> u32 {
        (if self.causal { subwords.end - 1 } else { subwords.start }) as u32
    }
}

/// Text as token ids of a model: all that preparing a labelled file needs of one.
pub trait TokenSource: Sync {
    /// Columns of a vector.
    fn dim(&self) -> usize;

    /// The longest input, in tokens.
    fn longest(&self) -> usize;

    /// The last layer whose states can be shifted; none where there is nothing to shift.
    fn layers(&self) -> Option<usize>;

    /// Reads the language mean vectors of the encoder, and refuses those of another.
    fn means(&self, file: &Path) -> Result<MeanVectors>;

    /// What stands around a text, and where a head reads.
    fn input(&self) -> InputForm;

    /// The number of a language.
    fn language(&self, name: &str) -> Result<usize>;

    /// The token ids of words.
    fn encode(&self, language: usize, words: &[&str]) -> EncodedWords;

    /// The token ids of running text.
    fn encode_text(&self, language: usize, text: &str) -> Vec<u32>;

    /// What checkpoints record of the model, which refuse those of another.
    fn metadata(&self) -> Value;
}

/// Vectors for token ids.
pub trait Features: Sync {
    /// What turns text into the token ids.
    fn source(&self) -> &dyn TokenSource;

    /// The weights at the start of a run, those that are not trained already frozen. `layers` names
    /// the layers that are trained; all where it is none.
    fn start(&self, seed: u64, layers: Option<&BTreeSet<usize>>) -> Result<Params>;

    /// The vectors of the rows that are read: rows x dim. Runs over weights that [`Features::start`] made.
    fn vectors(&self, tape: &mut Tape<'_>, input: &FeatureInput<'_>) -> Var;

    /// The hidden states of all rows after a layer: rows x dim.
    ///
    /// # Panics
    /// Where there is no such layer: see [`TokenSource::layers`].
    fn states(&self, tape: &mut Tape<'_>, input: &FeatureInput<'_>, layer: usize) -> Tensor;

    /// What checkpoints record of the features, which refuse those of another run.
    fn metadata(&self) -> Value;
}
