//! On how many tokens of a language each neuron is active.

use std::convert::Infallible;

use encoder::Request;
use tensor::{Mode, Tape};

use crate::error::{Error, Result};
use crate::pretrained::{EncoderParts, PretrainedModel};
use crate::states::for_each_batch;

/// On how many tokens of a language each neuron of the shared layers is active.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActivationCounts {
    /// The shared layers, counted from 1.
    pub layers: Vec<usize>,
    /// Neurons of a layer.
    pub width: usize,
    /// Tokens, special tokens not among them.
    pub tokens: u64,
    /// Tokens on which a neuron is active, neuron by neuron and layer by layer.
    pub active: Vec<u64>,
}

impl ActivationCounts {
    /// The share of tokens on which each neuron is active.
    pub fn probabilities(&self) -> Vec<f64> {
        self.active.iter().map(|&count| count as f64 / self.tokens.max(1) as f64).collect()
    }
}

/// Counts where each neuron's activation is above 0 in sentences of vocabulary ids, special tokens included.
///
/// # Errors
/// Where languages share no layer of the encoder.
pub fn activation_counts(
    model: &mut PretrainedModel,
    language: usize,
    sentences: &[Vec<u32>],
) -> Result<ActivationCounts> {
    let (config, frame) = (model.encoder.config(), model.vocabulary.frame());
    if config.parts.gated {
        let reason = "its feed-forward part is gated, and activations of gates are not counted yet; take a model \
                      without gates";
        return Err(Error::request("model", reason));
    }
    let width = config.hidden;
    let layers: Vec<usize> =
        (1..=config.layers).filter(|layer| !config.separate.layers.contains(layer)).collect();
    if layers.is_empty() {
        let reason = "each language has layers of its own in this model, so that no neuron is shared; \
                      take a model whose languages share layers";
        return Err(Error::of_key("model", reason));
    }
    let mut counts = vec![0_u64; layers.len() * width];
    let mut tokens = 0;
    let ids = sentences.iter().map(Ok::<_, Infallible>);
    let Ok(()) = for_each_batch(model.parts(), language, ids, |parts, found| {
        let EncoderParts { encoder, params, .. } = parts;
        let mut tape = Tape::new(params, Mode::Evaluate);
        let encoded =
            encoder.encode(&mut tape, found.batch, Request { neurons: true, ..Request::default() });
        for (&layer, counts) in layers.iter().zip(counts.chunks_mut(width)) {
            let values = tape.value(encoded.feed_forward[layer - 1]).elements(); // rows x width
            for span in found.batch.spans.iter() {
                let inner = frame.within(span);
                for row in values[inner.start * width..inner.end * width].chunks(width) {
                    let active = counts.iter_mut().zip(row);
                    active.for_each(|(count, &value)| *count += u64::from(value > 0.0));
                }
            }
        }
        tokens += found.batch.spans.iter().map(|span| frame.within(span).len() as u64).sum::<u64>();
        Ok(())
    });
    Ok(ActivationCounts { layers, width, tokens, active: counts })
}
