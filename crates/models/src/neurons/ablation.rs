//! Neurons set to 0, and how well masked tokens are predicted without them.
//!
//! An activation reaches the rest of the encoder through its row of the second feed-forward map alone, so that a row of zeros is
//! the same as an activation of 0, on any device and without a further operation.

use std::convert::Infallible;

use encoder::{AffinePart, LayerRole, MaskedTokens, ParamRole};
use tensor::{Mode, ParamId, Tape};

use crate::masked::MaskedSentences;
use crate::pretrained::{EncoderParts, PretrainedModel};
use crate::states::for_each_batch;

/// A neuron of a feed-forward layer that all languages share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Neuron {
    /// The layer, counted from 1.
    pub layer: usize,
    /// Its number there, from 0.
    pub neuron: usize,
}

/// Calls `work` with a model whose neurons among these are always 0; the model has its own weights again afterwards.
///
/// # Panics
/// Where a neuron does not exist, or stands in a layer that each language has for itself.
pub fn without_neurons<R>(
    model: &mut PretrainedModel,
    neurons: &[Neuron],
    work: impl FnOnce(&mut PretrainedModel) -> R,
) -> R {
    let mut layers: Vec<usize> = neurons.iter().map(|neuron| neuron.layer).collect();
    layers.sort_unstable();
    layers.dedup();
    let mut saved: Vec<(ParamId, Vec<f32>)> = Vec::with_capacity(layers.len());
    for layer in layers {
        let role = ParamRole::Layer(layer, LayerRole::Down(AffinePart::Weight));
        let id = model.encoder.param(role, None).expect("a layer that all languages share");
        let weights = model.params.value_mut(id);
        let (own, dim) = (weights.to_vec(), weights.cols()); // hidden x dim
        let mut without = own.clone();
        for neuron in neurons.iter().filter(|neuron| neuron.layer == layer) {
            without[neuron.neuron * dim..(neuron.neuron + 1) * dim].fill(0.0);
        }
        weights.write(&without);
        saved.push((id, own));
    }
    let result = work(model);
    for (id, own) in saved {
        model.params.value_mut(id).write(&own);
    }
    result
}

/// How many tokens are masked, and the mean MLM loss of predicting them, in nats.
pub fn masked_loss(
    model: &mut PretrainedModel,
    language: usize,
    masked: &MaskedSentences,
) -> (u64, f64) {
    let (mut loss, mut count) = (0.0, 0);
    let hidden = masked.hidden.iter().map(Ok::<_, Infallible>);
    let Ok(()) = for_each_batch(model.parts(), language, hidden, |parts, tokens| {
        let (rows, targets) = masked.of_batch(&tokens);
        count += targets.len() as u64;
        let EncoderParts { encoder, params, token_ids, .. } = parts;
        let masked = MaskedTokens { rows, targets: token_ids.to_encoder(language, &targets) };
        let mut tape = Tape::new(params, Mode::Evaluate);
        let score = encoder.mlm_loss(&mut tape, tokens.batch, &masked, 1.0);
        loss += f64::from(score.to_vec()[0]);
        Ok(())
    });
    (count, loss / count.max(1) as f64)
}
