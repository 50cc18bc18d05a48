//! Features of vectors that never learn, with a light Transformer of our own above them.
//!
//! This is how paper 1 (§5.1.2) reads a layer of a frozen encoder, mapped or not, and how static
//! vectors are given a chance to see their context: a few fresh layers over whatever is below, with
//! positions of their own.

use std::collections::BTreeSet;
use std::path::Path;

use ::encoder::{Encoder, EncoderConfig, NormPlace, PositionStart, Request, Vocabulary};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shift::means::MeanVectors;
use tensor::{Device, Params, Spans, Tape, Tensor, Var};
use text::EncodedWords;

use super::{Features, Input};
use crate::error::Result;

/// What gives vectors.
pub trait Given: Sync {
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

    /// The vectors of all tokens of all sequences: tokens x dim.
    fn vectors(&self, input: &Input<'_>) -> Tensor;

    /// The hidden states of all tokens after a layer below: tokens x dim.
    ///
    /// # Panics
    /// Where there is no such layer.
    fn states(&self, input: &Input<'_>, layer: usize) -> Tensor;

    /// What they are of.
    fn facts(&self) -> Value;
}

/// The layers above.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Above {
    /// How many.
    pub layers: usize,
    /// Dropout in them.
    pub dropout: f32,
}

/// Vectors that never learn, and layers above them that do.
pub struct GivenFeatures<G> {
    given: G,
    config: EncoderConfig,
    above: Encoder,
    device: Device,
}

impl<G: Given> GivenFeatures<G> {
    /// Puts so many layers above the vectors.
    pub fn new(given: G, above: Above, device: &Device) -> Result<Self> {
        let dim = given.dim();
        let config = EncoderConfig {
            languages: vec!["any".to_owned()],
            // Vectors come from elsewhere: the table of tokens is not used.
            vocabulary: Vocabulary::Size(1),
            layers: above.layers,
            heads: heads(dim),
            dim,
            hidden: 4 * dim,
            positions: given.longest(),
            dropout: above.dropout,
            attention_dropout: above.dropout,
            norm: NormPlace::Pre,
            epsilon: 1e-5,
            // Small layers need larger weights to pass on as much.
            init_std: 1.0 / ((2 * dim) as f32).sqrt(),
            scale_outputs: true,
            start_positions: PositionStart::Sinusoid,
            ..EncoderConfig::default()
        };
        let above = Encoder::new(config.clone(), &mut Params::new(device), 0)?;
        Ok(Self { given, config, above, device: device.clone() })
    }
}

/// As many heads as divide the dimension and leave each some columns, twelve at most.
fn heads(dim: usize) -> usize {
    let fits = |heads: &usize| dim.is_multiple_of(*heads) && dim / heads >= 12;
    (1..=12).rev().find(fits).unwrap_or(1)
}

impl<G: Given> Features for GivenFeatures<G> {
    fn dim(&self) -> usize {
        self.given.dim()
    }

    fn longest(&self) -> usize {
        self.given.longest()
    }

    fn layers(&self) -> Option<usize> {
        self.given.layers()
    }

    fn means(&self, file: &Path) -> Result<MeanVectors> {
        self.given.means(file)
    }

    fn frame(&self) -> (u32, u32) {
        self.given.frame()
    }

    fn language(&self, name: &str) -> Result<usize> {
        self.given.language(name)
    }

    fn encode(&self, language: usize, words: &[&str]) -> EncodedWords {
        self.given.encode(language, words)
    }

    fn encode_text(&self, language: usize, text: &str) -> Vec<u32> {
        self.given.encode_text(language, text)
    }

    fn start(&self, seed: u64, _layers: Option<&BTreeSet<usize>>) -> Result<Params> {
        let mut params = Params::new(&self.device);
        Encoder::new(self.config.clone(), &mut params, seed)?;
        for name in ["embeddings.tokens", "head.bias"] {
            if let Some(unused) = params.find(name) {
                params.set_trainable(unused, false);
            }
        }
        Ok(params)
    }

    fn vectors(&self, tape: &mut Tape<'_>, input: &Input<'_>) -> Var {
        let spans = Spans::of_lengths(input.sequences.iter().map(|tokens| tokens.len()));
        let vectors = tape.input(self.given.vectors(input), false);
        let request = Request { rows: Some(&input.rows), ..Request::default() };
        self.above.encode_vectors(tape, vectors, 0, &spans, request).output
    }

    fn states(&self, _tape: &mut Tape<'_>, input: &Input<'_>, layer: usize) -> Vec<f32> {
        self.given.states(input, layer).to_vec()
    }

    fn facts(&self) -> Value {
        json!({ "given": self.given.facts(), "above": self.config })
    }
}
