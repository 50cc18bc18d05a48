//! Features of frozen vectors, with a small Transformer above them that is trained.
//!
//! This is how Conneau et al. 2020 (§5.1.2) read a layer of a frozen encoder, mapped or not, and how static
//! vectors are given a chance to see their context: a few new layers over what is frozen, with position
//! embeddings of their own.

use std::collections::BTreeSet;

use ::encoder::{
    Encoder, EncoderConfig, NormPlace, ParamRole, PositionStart, Request, VocabularySize,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tensor::{Device, Params, Spans, Tape, Tensor, Var};

use super::{FeatureInput, Features, TokenSource};
use crate::error::Result;

/// Vectors that are never trained.
pub trait FrozenVectors: TokenSource {
    /// The vectors of all tokens of all sequences: tokens x dim.
    fn vectors(&self, input: &FeatureInput<'_>) -> Tensor;

    /// The hidden states of all tokens after a layer below: tokens x dim.
    ///
    /// # Panics
    /// Where there is no such layer.
    fn states(&self, input: &FeatureInput<'_>, layer: usize) -> Tensor;
}

/// The new layers above frozen vectors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewLayers {
    /// How many.
    pub layers: usize,
    /// Dropout in them.
    pub dropout: f32,
}

/// Frozen vectors, and new layers above them that are trained.
pub struct FrozenFeatures<V> {
    frozen: V,
    config: EncoderConfig,
    above: Encoder,
    device: Device,
}

impl<V: FrozenVectors> FrozenFeatures<V> {
    /// Puts new layers above the vectors.
    pub fn new(frozen: V, above: NewLayers, device: &Device) -> Result<Self> {
        let dim = frozen.dim();
        let config = EncoderConfig {
            languages: vec!["any".to_owned()],
            // Vectors come from elsewhere: the token embeddings are not used.
            vocabulary: VocabularySize::Size(1),
            layers: above.layers,
            heads: heads(dim),
            dim,
            hidden: 4 * dim,
            positions: frozen.longest(),
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
        Ok(Self { frozen, config, above, device: device.clone() })
    }
}

/// As many heads as divide the dimension and leave each at least 12 columns, twelve at most.
fn heads(dim: usize) -> usize {
    let fits = |heads: &usize| dim.is_multiple_of(*heads) && dim / heads >= 12;
    (1..=12).rev().find(fits).unwrap_or(1)
}

impl<V: FrozenVectors> Features for FrozenFeatures<V> {
    fn source(&self) -> &dyn TokenSource {
        &self.frozen
    }

    fn start(&self, seed: u64, _layers: Option<&BTreeSet<usize>>) -> Result<Params> {
        let mut params = Params::new(&self.device);
        let above = Encoder::new(self.config.clone(), &mut params, seed)?;
        let unused = [ParamRole::TokenEmbedding, ParamRole::MlmBias];
        above.set_trainable(&mut params, |param| !unused.contains(&param.role));
        Ok(params)
    }

    fn vectors(&self, tape: &mut Tape<'_>, input: &FeatureInput<'_>) -> Var {
        let spans = Spans::of_lengths(input.sequences.iter().map(|tokens| tokens.len()));
        let vectors = tape.input(self.frozen.vectors(input), false);
        let request = Request { rows: Some(&input.rows), ..Request::default() };
        self.above.encode_vectors(tape, vectors, 0, &spans, request).output
    }

    fn states(&self, _tape: &mut Tape<'_>, input: &FeatureInput<'_>, layer: usize) -> Tensor {
        self.frozen.states(input, layer)
    }

    fn metadata(&self) -> Value {
        json!({ "frozen": self.frozen.metadata(), "above": self.config })
    }
}
