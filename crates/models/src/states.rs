//! The loop from sentences to hidden states.
//!
//! Sequences follow one another without padding, so a batch is filled with sentences as they come,
//! whatever their lengths, up to a number of tokens that keeps the device busy. No row of a batch
//! depends on another sequence: results are the same whatever the batches.

use std::ops::Range;

use encoder::{Batch, Request};
use tensor::{Device, Mode, Spans, Tape, Tensor};
use text::Frame;

use crate::pretrained::EncoderParts;

/// Tokens encoded at once on a CPU, whose caches are small.
const CPU_TOKENS: usize = 1024;
/// The most tokens encoded at once on a GPU, which is to be kept busy, and the bytes that they may take.
const GPU_TOKENS: usize = 32_768;
const GPU_BYTES: usize = 2 << 30;

/// Tokens that are encoded at once where the weights are.
fn tokens_at_once(parts: &EncoderParts<'_>) -> usize {
    if !parts.params.device().is_gpu() {
        return CPU_TOKENS;
    }
    // An evaluation keeps the hidden states, a number of two bytes for each token, layer and dimension, and about
    // fourteen such numbers for the layer that it is at.
    let config = parts.encoder.config();
    (GPU_BYTES / (2 * (config.layers + 14) * config.dim).max(1)).clamp(CPU_TOKENS, GPU_TOKENS)
}

/// Some sentences as the encoder takes them.
pub struct TokenBatch<'a, S> {
    /// The number of the first sentence, from 0.
    pub first: usize,
    /// The vocabulary ids of each sentence, special tokens included.
    pub sentences: &'a [S],
    /// The same as the encoder's input.
    pub batch: &'a Batch,
}

/// The hidden states of some sentences. They stay where they were computed: means are taken there, and
/// only what is asked for is copied to the host.
pub struct HiddenStates<'a> {
    /// The number of the first sentence, from 0.
    pub first: usize,
    /// The rows of each sentence, special tokens included.
    pub spans: &'a Spans,
    /// The special tokens around each.
    pub frame: Frame,
    /// Columns of every layer.
    pub dim: usize,
    /// Where they are.
    pub device: &'a Device,
    /// For each layer from the embeddings up: rows x dim.
    pub hidden: Vec<&'a Tensor>,
}

impl HiddenStates<'_> {
    /// How many sentences there are.
    pub fn sentences(&self) -> usize {
        self.spans.count()
    }

    /// The rows of a sentence's own tokens, without the special tokens around it.
    pub fn inner(&self, sentence: usize) -> Range<usize> {
        self.frame.within(self.spans.get(sentence))
    }

    /// The means of some ranges of rows of a layer, one after the other: ranges x dim.
    pub fn means(&self, layer: usize, ranges: &[Range<usize>]) -> Vec<f32> {
        self.device.row_means(self.hidden[layer], ranges)
    }
}

/// Which vector stands for a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// The mean of its tokens, without the special tokens.
    Mean,
    /// Its first token: the special token before it (`[CLS]`, `<s>`), where there is one.
    First,
    /// None does: each of its tokens has its own, without the special tokens.
    None,
}

impl Pooling {
    /// How many vectors a sentence of so many ids, special tokens included, is given.
    pub fn rows(self, ids: usize, frame: Frame) -> usize {
        if self == Pooling::None { ids - frame.count() } else { 1 }
    }

    /// Appends the vectors of every sentence at a layer.
    pub fn push(self, states: &HiddenStates<'_>, layer: usize, out: &mut Vec<f32>) {
        let inner = (0..states.sentences()).map(|sentence| states.inner(sentence));
        match self {
            Pooling::Mean => out.extend(states.means(layer, &inner.collect::<Vec<_>>())),
            Pooling::First => {
                let first = states.spans.iter().map(|span| span.start..span.start + 1);
                out.extend(states.means(layer, &first.collect::<Vec<_>>()));
            }
            Pooling::None => {
                let (elements, dim) = (states.hidden[layer].elements(), states.dim);
                inner.for_each(|inner| out.extend(&elements[inner.start * dim..inner.end * dim]));
            }
        }
    }
}

/// Encodes sentences of a language and calls `each` with their states, in order.
///
/// # Errors
/// The first error of the sentences or of `each`.
pub fn for_each<S: AsRef<[u32]> + Sync, E: Send>(
    parts: EncoderParts<'_>,
    language: usize,
    sentences: impl IntoIterator<Item = Result<S, E>>,
    each: impl FnMut(&HiddenStates<'_>) -> Result<(), E> + Send,
) -> Result<(), E> {
    for_each_until(parts, language, None, sentences, each)
}

/// The same, where layers above `last` are not wanted and not computed.
///
/// # Errors
/// The first error of the sentences or of `each`.
pub fn for_each_until<S: AsRef<[u32]> + Sync, E: Send>(
    parts: EncoderParts<'_>,
    language: usize,
    last: Option<usize>,
    sentences: impl IntoIterator<Item = Result<S, E>>,
    mut each: impl FnMut(&HiddenStates<'_>) -> Result<(), E> + Send,
) -> Result<(), E> {
    for_each_batch(parts, language, sentences, |parts, tokens| {
        let TokenBatch { first, batch, .. } = tokens;
        let EncoderParts { encoder, params, vocabulary, .. } = parts;
        let (device, frame) = (params.device().clone(), vocabulary.frame());
        let mut tape = Tape::new(params, Mode::Evaluate);
        let encoded =
            encoder.encode(&mut tape, batch, Request { until: last, ..Request::default() });
        let hidden = encoded.hidden.iter().map(|&hidden| tape.value(hidden)).collect();
        let (spans, dim, device) = (&batch.spans, encoder.config().dim, &device);
        each(&HiddenStates { first, spans, frame, dim, device, hidden })
    })
}

/// Groups sentences of a language into batches and calls `each` with every batch, in order: for a
/// forward pass of the caller's own.
///
/// # Errors
/// The first error of the sentences or of `each`.
pub fn for_each_batch<S: AsRef<[u32]> + Sync, E: Send>(
    mut parts: EncoderParts<'_>,
    language: usize,
    sentences: impl IntoIterator<Item = Result<S, E>>,
    mut each: impl FnMut(&mut EncoderParts<'_>, TokenBatch<'_, S>) -> Result<(), E> + Send,
) -> Result<(), E> {
    let (mut group, mut tokens, mut first) = (Vec::<S>::new(), 0, 0);
    let most = tokens_at_once(&parts);
    let mut run = |group: &mut Vec<S>| {
        let batch = parts.batch(language, group.iter().map(AsRef::as_ref));
        let device = parts.params.device().clone();
        let tokens = TokenBatch { first, sentences: group.as_slice(), batch: &batch };
        // On the device's own threads, so that its many kernels need not be handed over one by one.
        let done = device.run(|| each(&mut parts, tokens));
        first += group.len();
        group.clear();
        done
    };
    for sentence in sentences {
        let sentence = sentence?;
        if tokens == 0 {
            terms::interrupt::check();
        }
        tokens += sentence.as_ref().len();
        group.push(sentence);
        if tokens >= most {
            run(&mut group)?;
            tokens = 0;
        }
    }
    if group.is_empty() { Ok(()) } else { run(&mut group) }
}
