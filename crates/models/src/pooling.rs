//! Which vector stands for a sentence.
//!
//! The simple choices leave the special tokens out. A model of sentence-transformers says how its own vectors are made, special
//! tokens included ([`hub::SentenceModules`]), and is taken by its word where that is asked for.

use std::ops::Range;

use hub::{SentenceModules, TokenPooling};
use tensor::Tensor;
use text::Frame;

use crate::states::HiddenStates;

/// Which vector stands for a sentence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pooling {
    /// The mean of its tokens, without the special tokens.
    #[default]
    Mean,
    /// Its first token: the special token before it (`[CLS]`, `<s>`), where there is one.
    First,
    /// Its own last token, which in a decoder has seen all of it.
    Last,
    /// The mean of its tokens, without the special tokens, in which each weighs as much as its place, from 1 (SGPT,
    /// Muennighoff 2022).
    Weighted,
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
        let inner: Vec<_> = (0..states.sentences()).map(|number| states.inner(number)).collect();
        let of = |kind, ranges: &[_]| pool(kind, states, states.hidden[layer], ranges, ranges);
        out.extend(match self {
            Pooling::Mean => of(TokenPooling::Mean, &inner),
            Pooling::First => of(TokenPooling::First, &states.spans.iter().collect::<Vec<_>>()),
            Pooling::Last => of(TokenPooling::Last, &inner),
            Pooling::Weighted => of(TokenPooling::Weighted, &inner),
            Pooling::None => {
                let (elements, dim) = (states.hidden[layer].elements(), states.dim);
                let rows =
                    inner.into_iter().flat_map(|rows| &elements[rows.start * dim..rows.end * dim]);
                rows.copied().collect()
            }
        });
    }
}

/// One vector for each range of rows. A row's place is counted from the start of the span that its range is of.
fn pool(
    kind: TokenPooling,
    states: &HiddenStates<'_>,
    x: &Tensor,
    ranges: &[Range<usize>],
    spans: &[Range<usize>],
) -> Vec<f32> {
    let (device, dim) = (states.device, states.dim);
    let one = |at: fn(&Range<usize>) -> usize| -> Vec<_> {
        ranges.iter().map(|range| at(range)..at(range) + 1).collect()
    };
    match kind {
        TokenPooling::First => return device.row_means(x, &one(|range| range.start)),
        TokenPooling::Last => return device.row_means(x, &one(|range| range.end - 1)),
        TokenPooling::Mean => return device.row_means(x, ranges),
        TokenPooling::MeanSqrt => {
            let mut means = device.row_means(x, ranges);
            for (row, range) in means.chunks_exact_mut(dim).zip(ranges) {
                row.iter_mut().for_each(|x| *x *= (range.len() as f32).sqrt());
            }
            return means;
        }
        TokenPooling::Max | TokenPooling::Weighted => {}
    }
    let elements = x.elements();
    let row = |at: usize| &elements[at * dim..(at + 1) * dim];
    let vector = |(range, span): (&Range<usize>, &Range<usize>)| {
        let places = || range.clone().map(|at| (at, (at - span.start + 1) as f32));
        if kind == TokenPooling::Max {
            return places().fold(vec![f32::NEG_INFINITY; dim], |most, (at, _)| {
                most.iter().zip(row(at)).map(|(a, b)| a.max(*b)).collect()
            });
        }
        let all: f32 = places().map(|(_, weight)| weight).sum();
        let mut sum = vec![0.0; dim];
        for (at, weight) in places() {
            sum.iter_mut().zip(row(at)).for_each(|(sum, x)| *sum += x * weight / all);
        }
        sum
    };
    ranges.iter().zip(spans).flat_map(vector).collect()
}

/// How sentences are read, and which vector stands for each.
#[derive(Clone, Debug, Default)]
pub struct SentenceVectors {
    pub(crate) pooling: Pooling,
    /// In place of `pooling`: as the model itself says.
    pub(crate) own: Option<SentenceModules>,
    /// What is put before every sentence.
    pub(crate) prompt: String,
    /// Tokens at the start of a sequence that are the prompt's and not pooled.
    pub(crate) skipped: usize,
}

impl From<Pooling> for SentenceVectors {
    fn from(pooling: Pooling) -> Self {
        Self { pooling, ..Self::default() }
    }
}

impl SentenceVectors {
    /// How many vectors a sentence of so many ids, special tokens included, is given.
    pub fn rows(&self, ids: usize, frame: Frame) -> usize {
        if self.own.is_some() { 1 } else { self.pooling.rows(ids, frame) }
    }

    /// The columns of a vector at a layer, which may be the last one.
    pub fn width(&self, dim: usize, last: bool) -> usize {
        match &self.own {
            Some(modules) if last => modules.width(dim),
            Some(modules) => dim * modules.pooling.len(),
            None => dim,
        }
    }

    /// What tells it from the mean of a sentence's own tokens, for signatures.
    pub fn signature(&self) -> String {
        let Self { pooling, own, prompt, .. } = self;
        let name = if own.is_some() { "Own".to_owned() } else { format!("{pooling:?}") };
        match (name.as_str(), prompt.as_str()) {
            ("Mean", "") => String::new(),
            _ => format!("|pool:{}|prompt:{prompt}", name.to_lowercase()),
        }
    }

    /// Appends the vectors of every sentence at a layer. Dense layers and normalisation are of the last layer alone, which is
    /// read as heads read it.
    pub(crate) fn push(&self, states: &HiddenStates<'_>, layer: usize, out: &mut Vec<f32>) {
        let Some(modules) = &self.own else { return self.pooling.push(states, layer, out) };
        let last = states.output.filter(|_| layer + 1 == states.hidden.len());
        let x = last.unwrap_or(states.hidden[layer]);
        let spans: Vec<_> = states.spans.iter().collect();
        // Where nothing but the prompt fits, the last token stands for the rest.
        let ranges: Vec<_> = spans
            .iter()
            .map(|span| (span.start + self.skipped).min(span.end - 1)..span.end)
            .collect();
        let pooled: Vec<Vec<f32>> =
            modules.pooling.iter().map(|&kind| pool(kind, states, x, &ranges, &spans)).collect();
        let dim = states.dim;
        for number in 0..spans.len() {
            let parts = pooled.iter().flat_map(|all| &all[number * dim..(number + 1) * dim]);
            let steps = modules.steps.iter().filter(|_| last.is_some());
            out.extend(steps.fold(parts.copied().collect(), |vector, step| step.apply(vector)));
        }
    }
}
