//! The loop from sentences to hidden states.
//!
//! Sequences follow one another without padding, so a batch is filled with sentences as they come,
//! whatever their lengths, up to a number of tokens that keeps the device busy. No row of a batch
//! depends on another sequence: results are the same whatever the batches. States that were saved are gathered instead.

use std::ops::Range;

use encoder::{Batch, Request};
use tensor::{Device, Mode, Spans, Tape, Tensor};
use text::Frame;

pub use crate::pooling::Pooling;
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
    /// Where the last layer is among them, it as heads read it, after the final norm.
    pub output: Option<&'a Tensor>,
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
        let EncoderParts { encoder, params, vocabulary, saved, .. } = parts;
        let (device, frame) = (params.device().clone(), vocabulary.frame());
        let (spans, dim) = (&batch.spans, encoder.config().dim);
        if let Some(saved) = saved {
            let layers = saved.rows(tokens.sentences, last, &device);
            let hidden = layers.iter().collect();
            let device = &device;
            return each(&HiddenStates { first, spans, frame, dim, device, hidden, output: None });
        }
        let mut tape = Tape::new(params, Mode::Evaluate);
        let encoded =
            encoder.encode(&mut tape, batch, Request { until: last, ..Request::default() });
        let hidden: Vec<_> = encoded.hidden.iter().map(|&hidden| tape.value(hidden)).collect();
        let whole = hidden.len() > encoder.config().layers;
        let output = whole.then(|| tape.value(encoded.output));
        each(&HiddenStates { first, spans, frame, dim, device: &device, hidden, output })
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
