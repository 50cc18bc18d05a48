//! Where the vectors come from that a head reads.
//!
//! A head wants a row for each word; it does not care whether an encoder that learns with it made
//! the row ([`EncoderFeatures`]) or a light Transformer over vectors that never learn
//! ([`GivenFeatures`]): those of a layer of frozen encoders ([`LayerVectors`]), or static ones
//! ([`StaticVectors`]).

mod encoder;
mod given;
mod layer;
mod table;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use shift::means::MeanVectors;
use tensor::{Indices, Params, Tape, Var};
use text::EncodedWords;

pub use self::encoder::EncoderFeatures;
pub use self::given::{Above, Given, GivenFeatures};
pub use self::layer::LayerVectors;
pub use self::table::StaticVectors;

use crate::error::Result;

/// Inputs of one language, and which of their positions are wanted.
pub struct Input<'a> {
    /// The number of the language.
    pub language: usize,
    /// The tokens of each sequence.
    pub sequences: &'a [&'a [u32]],
    /// Wanted rows, counted over all sequences, in ascending order.
    pub rows: Indices,
    /// Hidden states to go on from, in place of the tokens' own.
    pub midway: Option<Midway<'a>>,
}

/// Hidden states somewhere on the way through an encoder.
#[derive(Clone, Copy)]
pub struct Midway<'a> {
    /// After which layer; 0 is the embeddings.
    pub layer: usize,
    /// Those of all rows, one after another: rows x dim.
    pub states: &'a [f32],
}

/// Turns words into tokens, and tokens into vectors.
pub trait Features: Sync {
    /// Columns of a vector.
    fn dim(&self) -> usize;

    /// The longest input, in tokens.
    fn longest(&self) -> usize;

    /// The last layer whose states can be shifted; none where there is nothing to shift.
    fn layers(&self) -> Option<usize>;

    /// Reads the means of languages under the encoder, and refuses those of another.
    fn means(&self, file: &Path) -> Result<MeanVectors>;

    /// The tokens before and after a text.
    fn frame(&self) -> (u32, u32);

    /// The number of a language.
    fn language(&self, name: &str) -> Result<usize>;

    /// The tokens of words.
    fn encode(&self, language: usize, words: &[&str]) -> EncodedWords;

    /// The tokens of running text.
    fn encode_text(&self, language: usize, text: &str) -> Vec<u32>;

    /// The weights at the start of a run, those that will not learn already frozen. `layers` names
    /// the layers that may learn; all where it is none.
    fn start(&self, seed: u64, layers: Option<&BTreeSet<usize>>) -> Result<Params>;

    /// The vectors of the wanted rows: rows x dim. Runs over weights that [`Features::start`] made.
    fn vectors(&self, tape: &mut Tape<'_>, input: &Input<'_>) -> Var;

    /// The hidden states of all rows after a layer: rows x dim.
    ///
    /// # Panics
    /// Where there is no such layer: see [`Features::layers`].
    fn states(&self, tape: &mut Tape<'_>, input: &Input<'_>, layer: usize) -> Vec<f32>;

    /// What these features are: for checkpoints, which refuse those of another run.
    fn facts(&self) -> Value;
}
