//! The hidden states that a trained encoder gives to text, batch after batch.
//!
//! Sequences follow one another without padding, so a batch is filled with sentences as they come,
//! whatever their lengths, up to so many tokens.

use std::ops::Range;
use std::path::Path;

use encoder::Request;
use tensor::{Device, Mode, Tape, Tensor};
use text::{LineRules, Source, sentence_on};
use train::Pretrained;

use crate::error::{Error, Result};

/// Tokens encoded at once on a CPU, whose caches are small.
const TOKENS: usize = 2048;
/// The most tokens encoded at once on a GPU, which is to be kept busy, and the bytes that they may take.
const MOST: (usize, usize) = (32_768, 2 << 30);

/// Tokens encoded at once by this model where it is.
fn at_once(model: &Pretrained) -> usize {
    if !model.params.device().is_gpu() {
        return TOKENS;
    }
    // An evaluation keeps about fourteen numbers of two bytes for each token, layer and dimension.
    let config = model.model.config();
    (MOST.1 / (28 * config.layers * config.dim).max(1)).clamp(TOKENS, MOST.0)
}

/// The hidden states of some sentences. They stay where they were computed: means are taken there, and
/// only what is asked for travels.
pub struct States<'a> {
    /// The number of the first sentence, from 0.
    pub first: usize,
    /// The rows of each sentence, frame included.
    pub spans: &'a tensor::Spans,
    /// Columns of every layer.
    pub dim: usize,
    /// Where they are.
    pub device: &'a Device,
    /// For each layer from the embeddings up: rows x dim.
    pub hidden: Vec<&'a Tensor>,
}

impl States<'_> {
    /// How many sentences there are.
    pub fn sentences(&self) -> usize {
        self.spans.count()
    }

    /// The rows of a sentence's own tokens, its frame left out.
    pub fn inner(&self, sentence: usize) -> Range<usize> {
        let span = self.spans.get(sentence);
        span.start + 1..span.end - 1
    }

    /// The means of some ranges of rows of a layer, one after the other.
    pub fn means(&self, layer: usize, ranges: &[Range<usize>]) -> Vec<f32> {
        self.device.row_means(self.hidden[layer], ranges)
    }
}

/// Which vector stands for a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// The mean of its tokens, without the frame.
    Mean,
    /// What stands before it: `[CLS]`, or its like.
    First,
    /// None does: each of its tokens has its own, without the frame.
    None,
}

impl Pool {
    /// How many vectors a sentence of so many ids, frame included, is given.
    pub fn rows(self, ids: usize) -> usize {
        if self == Pool::None { ids - 2 } else { 1 }
    }

    /// Appends the vectors of every sentence at a layer.
    pub fn push(self, states: &States<'_>, layer: usize, out: &mut Vec<f32>) {
        let inner = (0..states.sentences()).map(|sentence| states.inner(sentence));
        match self {
            Pool::Mean => out.extend(states.means(layer, &inner.collect::<Vec<_>>())),
            Pool::First => {
                let first = inner.map(|inner| inner.start - 1..inner.start).collect::<Vec<_>>();
                out.extend(states.means(layer, &first));
            }
            Pool::None => {
                let (elements, dim) = (states.hidden[layer].elements(), states.dim);
                inner.for_each(|inner| out.extend(&elements[inner.start * dim..inner.end * dim]));
            }
        }
    }
}

/// Encodes sentences and hands on their states in order, whatever the error of either side.
pub fn for_each<E: Send>(
    model: &mut Pretrained,
    language: usize,
    sentences: impl IntoIterator<Item = std::result::Result<Vec<u32>, E>>,
    mut each: impl FnMut(&States<'_>) -> std::result::Result<(), E> + Send,
) -> std::result::Result<(), E> {
    let (mut batch, mut tokens, mut first) = (Vec::<Vec<u32>>::new(), 0, 0);
    let most = at_once(model);
    let mut encode = |batch: &mut Vec<Vec<u32>>| {
        let encoded = encode(model, language, batch, first, &mut each);
        first += batch.len();
        batch.clear();
        encoded
    };
    for ids in sentences {
        let ids = ids?;
        if tokens + ids.len() > most && !batch.is_empty() {
            encode(&mut batch)?;
            tokens = 0;
        }
        tokens += ids.len();
        batch.push(ids);
    }
    if batch.is_empty() { Ok(()) } else { encode(&mut batch) }
}

fn encode<E: Send>(
    model: &mut Pretrained,
    language: usize,
    sentences: &[Vec<u32>],
    first: usize,
    each: &mut (impl FnMut(&States<'_>) -> std::result::Result<(), E> + Send),
) -> std::result::Result<(), E> {
    let batch = model.batch(language, sentences.iter().map(Vec::as_slice));
    let Pretrained { model, params, .. } = model;
    let device = params.device().clone();
    // On the device's own threads, so that its many kernels need not be handed over one by one.
    device.run(|| {
        let mut tape = Tape::new(params, Mode::Evaluate);
        let encoded = model.encode(&mut tape, &batch, Request::default());
        let hidden = encoded.hidden.iter().map(|&hidden| tape.value(hidden)).collect();
        let (spans, dim, device) = (&batch.spans, model.config().dim, &device);
        each(&States { first, spans, dim, device, hidden })
    })
}

/// The sentences of a file, one a line (of a `.tsv` file, the first column). A line without text is refused: it would have no
/// vector, and the lines of a translation would no longer belong to one another.
pub fn lines(source: &Source) -> impl Iterator<Item = Result<String>> + '_ {
    // Raw, since white space at the start of a line may be the end of an empty column.
    let mut lines = source.raw_lines(LineRules::default());
    let file = source.names().next().unwrap_or_default();
    // A blank line; at the end of a file it is none.
    let mut gap = None;
    std::iter::from_fn(move || {
        loop {
            let (sentence, blank) = match lines.next_line() {
                Ok(line) => {
                    let line = line?;
                    (sentence_on(file, line).trim().to_owned(), line.trim().is_empty())
                }
                Err(error) => return Some(Err(error.into())),
            };
            if blank {
                gap = gap.or(Some(lines.number()));
                continue;
            }
            let Some(number) = gap.or(sentence.is_empty().then(|| lines.number())) else {
                return Some(Ok(sentence));
            };
            let place = format!("{file}:{number}");
            let remedy = "take it out, and the same line of its translation";
            return Some(Err(Error::input(place, "a line without text has no vector", remedy)));
        }
    })
}

/// The source of one file of sentences.
pub fn open(path: &Path) -> Result<Source> {
    Ok(Source::new("text", &[path.display().to_string()])?)
}

/// Every sentence of a file as one vector at each of some layers, and how many sentences were too
/// long for the model and cut.
pub fn pooled(
    model: &mut Pretrained,
    language: &str,
    path: &Path,
    layers: &[usize],
    mut heard: impl FnMut(usize) + Send,
) -> Result<(Vec<crate::Matrix>, usize)> {
    let mut reader = model.reader(language)?;
    let source = open(path)?;
    let number = reader.language();
    let cut = std::cell::Cell::new(0);
    let ids = lines(&source).map(|line| {
        let sentence = reader.sentence(&line?);
        cut.set(cut.get() + usize::from(sentence.cut));
        Ok(sentence.ids)
    });
    let mut values = vec![Vec::new(); layers.len()];
    for_each(model, number, ids, |states| {
        for (values, &layer) in values.iter_mut().zip(layers) {
            Pool::Mean.push(states, layer, values);
        }
        heard(states.sentences());
        Ok::<_, Error>(())
    })?;
    let dim = model.model.config().dim;
    let matrices = values.into_iter().map(|v| crate::Matrix::new(v.len() / dim, dim, v)).collect();
    Ok((matrices, cut.get()))
}
