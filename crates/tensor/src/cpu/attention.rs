//! Attention: a task for each sequence and head, a block of queries at a time.
//!
//! The attention weights of a block exist only while it is worked on; the backward pass recomputes them
//! from the logsumexp of each row, as FlashAttention (Dao et al. 2022) does, so that memory does not grow
//! with the square of the length. A block has all keys of its sequence, so no online softmax is needed.

#![allow(unsafe_code, reason = "tasks write different columns of the same rows")]

use std::ops::Range;

use rayon::prelude::*;

use super::Cpu;
use super::math::{dot, max};
use super::matmul::{MatrixView, MatrixViewMut, Write, multiply, transpose_padded};
use crate::dispatch;
use crate::kernels::{
    AttentionForward, AttentionGrads, AttentionKernels, AttentionShape, Heads, Reach,
};
use crate::math::exp;
use crate::random::Dropout;
use crate::value::Tensor;

/// Queries in a block: its scores fit the second cache at the lengths that matter.
const QUERIES: usize = 128;

/// One head of queries of one sequence: where its rows and columns are.
#[derive(Clone)]
struct AttentionHead<'s> {
    shape: &'s AttentionShape,
    number: usize,
    /// Columns of a head.
    width: usize,
    sequence: usize,
    queries: Range<usize>,
    keys: Range<usize>,
}

struct ScoreRow {
    /// The keys that it sees, counted from the first that its block sees.
    seen: Range<usize>,
    cap: Option<f32>,
    slope: f32,
}

impl<'s> AttentionHead<'s> {
    /// The heads of queries that a task computes: those of one source of keys and values, of one sequence. `dim` is the
    /// width of all heads of queries.
    fn of_task(task: usize, shape: &'s AttentionShape, dim: usize) -> impl Iterator<Item = Self> {
        let (sequence, source) = (task / shape.heads.sources, task % shape.heads.sources);
        let group = shape.heads.count / shape.heads.sources;
        (source * group..(source + 1) * group).map(move |number| Self {
            shape,
            number,
            width: dim / shape.heads.count,
            sequence,
            queries: shape.queries.get(sequence),
            keys: shape.keys.get(sequence),
        })
    }

    fn blocks(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let queries = self.queries.clone();
        queries.clone().step_by(QUERIES).map(move |at| at..queries.end.min(at + QUERIES))
    }

    /// Itself with each block in turn.
    fn with_blocks(self) -> impl Iterator<Item = (Self, Range<usize>)> {
        self.blocks().map(move |block| (self.clone(), block))
    }

    /// The keys that a query sees, counted from the first of its sequence.
    fn seen(&self, query: usize) -> Range<usize> {
        let reach = self.shape.heads.reach;
        if reach == Reach::default() {
            return 0..self.keys.len();
        }
        reach.of(self.shape.queries.place(self.sequence, query), self.keys.len())
    }

    /// The keys that some query of a block sees.
    fn seen_by(&self, block: &Range<usize>) -> Range<usize> {
        self.seen(block.start).start..self.seen(block.end - 1).end
    }

    /// The scores of a query, in a block that sees some keys.
    fn row(&self, query: usize, block: &Range<usize>) -> ScoreRow {
        let Range { start, end } = self.seen(query);
        let heads = &self.shape.heads;
        let (cap, slope) = (heads.cap, heads.slope(self.number));
        ScoreRow { seen: start - block.start..end - block.start, cap, slope }
    }

    /// Its columns among those of the queries.
    fn cols(&self) -> Range<usize> {
        self.number * self.width..(self.number + 1) * self.width
    }

    /// The columns of its keys (`half` 0) or its values (`half` 1).
    fn key_cols(&self, half: usize) -> Range<usize> {
        let Heads { count, sources, .. } = self.shape.heads;
        let first = (half * sources + self.number / (count / sources)) * self.width;
        first..first + self.width
    }

    /// Its columns of some rows of `q`, `y` or their gradients.
    fn queries<'a>(&self, tensor: &'a Tensor, rows: Range<usize>) -> MatrixView<'a> {
        MatrixView::of(tensor).rows(rows).cols(self.cols())
    }

    /// Some of its keys (`half` 0) or its values (`half` 1), counted from the first of its sequence.
    fn half<'a>(&self, kv: &'a Tensor, half: usize, keys: Range<usize>) -> MatrixView<'a> {
        let rows = self.keys.start + keys.start..self.keys.start + keys.end;
        MatrixView::of(kv).rows(rows).cols(self.key_cols(half))
    }

    /// Its keys (`half` 0) or its values (`half` 1) transposed, in `space`: how a matmul wants its right
    /// side. Rows are padded to whole cache lines.
    fn transposed<'a>(
        &self,
        cpu: &Cpu,
        kv: &Tensor,
        half: usize,
        space: &'a mut [f32],
    ) -> MatrixView<'a> {
        let keys = self.keys.len();
        let from = self.half(kv, half, 0..keys);
        dispatch!(cpu.arch, || transpose_padded(from, space, padded(keys)));
        MatrixView::new(space, self.width, keys, padded(keys))
    }

    /// A number for each row of weights, to draw its dropout by.
    fn weight_row(&self, query: usize) -> u32 {
        (query * self.shape.heads.count + self.number) as u32
    }

    fn scale(&self) -> f32 {
        self.shape.heads.scale.unwrap_or_else(|| 1.0 / (self.width as f32).sqrt())
    }
}

impl ScoreRow {
    /// Sets what is not seen to 0, and gives what is, capped.
    #[inline(always)]
    fn seen<'a>(&self, scores: &'a mut [f32]) -> &'a mut [f32] {
        scores[..self.seen.start].fill(0.0);
        scores[self.seen.end..].fill(0.0);
        let scores = &mut scores[self.seen.clone()];
        if let Some(cap) = self.cap {
            scores.iter_mut().for_each(|score| *score = cap * (*score / cap).tanh());
        }
        if self.slope > 0.0 {
            // What all scores of a query have in common makes no difference.
            for (key, score) in scores.iter_mut().enumerate() {
                *score += self.slope * key as f32;
            }
        }
        scores
    }
}

/// A number of keys, padded to whole cache lines.
fn padded(keys: usize) -> usize {
    keys.next_multiple_of(16)
}

/// Multiplies the weights of a row, those of the keys from `first` on, by its dropout factors, which are left in `factors`.
#[inline(always)]
fn drop_row(dropout: Dropout, row: u32, weights: &mut [f32], first: usize, factors: &mut [f32]) {
    if dropout.rate > 0.0 {
        dropout.factors(row, factors);
        for (weight, &factor) in weights.iter_mut().zip(&factors[first..]) {
            *weight *= factor;
        }
    }
}

impl AttentionKernels for Cpu {
    fn attention(
        &self,
        q: &Tensor,
        kv: &Tensor,
        shape: &AttentionShape,
        y: &mut Tensor,
        lse: &mut Tensor,
    ) {
        self.threads.install(|| {
            let dim = q.cols();
            let (y, lse) = (MatrixViewMut::of(y), MatrixViewMut::of(lse));
            let tasks =
                (0..shape.keys.count() * shape.heads.sources).into_par_iter().with_max_len(1);
            tasks.for_each(|task| {
                let heads = || AttentionHead::of_task(task, shape, dim);
                let Some(first) = heads().next().filter(|head| !head.queries.is_empty()) else {
                    return;
                };
                let keys = first.keys.len();
                let mut scratch = self.scratch((QUERIES + 1) * keys + first.width * padded(keys));
                let (weights, rest) = scratch.as_mut_slice().split_at_mut(QUERIES * keys);
                let (factors, space) = rest.split_at_mut(keys);
                let transposed_keys = first.transposed(self, kv, 0, space);
                for (head, block) in heads().flat_map(AttentionHead::with_blocks) {
                    let seen = head.seen_by(&block);
                    let weights = &mut weights[..block.len() * seen.len()];
                    let mut scores =
                        MatrixViewMut::new(weights, block.len(), seen.len(), seen.len());
                    let queries = head.queries(q, block.clone());
                    let of_keys = transposed_keys.cols(seen.clone());
                    multiply(&mut scores, Write::Overwrite, head.scale(), queries, of_keys);
                    let mut inverse = [0.0; QUERIES];
                    dispatch!(self.arch, || {
                        let rows =
                            weights.chunks_mut(seen.len()).zip(&mut inverse).zip(block.clone());
                        for ((weights, inverse), query) in rows {
                            let row = head.row(query, &seen);
                            let weights = row.seen(weights);
                            let top = max(weights);
                            for weight in weights.iter_mut() {
                                *weight = exp(*weight - top);
                            }
                            let sum = super::math::sum(weights);
                            *inverse = 1.0 / sum;
                            // SAFETY: this task alone has this sequence and head.
                            let lse = unsafe { lse.segment(query, head.number..head.number + 1) };
                            lse[0] = top + sum.ln();
                            let first = seen.start + row.seen.start;
                            drop_row(
                                shape.dropout,
                                head.weight_row(query),
                                weights,
                                first,
                                factors,
                            );
                        }
                    });
                    let weights = MatrixView::new(weights, block.len(), seen.len(), seen.len());
                    // SAFETY: this task alone has this sequence's rows and this head's columns.
                    let mut out = unsafe { y.block(block.clone(), head.cols()) };
                    multiply(&mut out, Write::Overwrite, 1.0, weights, head.half(kv, 1, seen));
                    dispatch!(self.arch, || {
                        for (query, inverse) in block.clone().zip(inverse) {
                            // SAFETY: as above; the block was last used before this.
                            let y = unsafe { y.segment(query, head.cols()) };
                            y.iter_mut().for_each(|y| *y *= inverse);
                        }
                    });
                }
            });
        });
    }

    fn attention_grad(
        &self,
        forward: AttentionForward<'_>,
        shape: &AttentionShape,
        dy: &Tensor,
        grads: AttentionGrads<'_>,
    ) {
        self.threads.install(|| {
            let dim = forward.q.cols();
            let (dq, dkv) = (MatrixViewMut::of(grads.q), MatrixViewMut::of(grads.kv));
            let tasks =
                (0..shape.keys.count() * shape.heads.sources).into_par_iter().with_max_len(1);
            tasks.for_each(|task| {
                let heads = || AttentionHead::of_task(task, shape, dim);
                let Some(first) = heads().next().filter(|head| !head.keys.is_empty()) else {
                    return;
                };
                let (keys, width) = (first.keys.len(), first.width);
                // SAFETY: this task alone has this sequence's rows and this source's columns, and the
                // columns of keys and of values are different ones.
                let mut dk = unsafe { dkv.block(first.keys.clone(), first.key_cols(0)) };
                // SAFETY: as above.
                let mut dv = unsafe { dkv.block(first.keys.clone(), first.key_cols(1)) };
                // The first block writes where it sees every key; where it does not, it adds as all others do.
                let covered = !first.queries.is_empty()
                    && first
                        .blocks()
                        .next()
                        .is_some_and(|block| first.seen_by(&block) == (0..keys));
                if !covered {
                    dk.fill(0.0);
                    dv.fill(0.0);
                }
                let transposed = width * padded(keys);
                let mut scratch = self.scratch((2 * QUERIES + 1) * keys + 2 * transposed);
                let (weights, rest) = scratch.as_mut_slice().split_at_mut(QUERIES * keys);
                let (dscores, rest) = rest.split_at_mut(QUERIES * keys);
                let (factors, rest) = rest.split_at_mut(keys);
                let (for_keys, for_values) = rest.split_at_mut(transposed);
                let transposed_keys = first.transposed(self, forward.kv, 0, for_keys);
                let transposed_values = first.transposed(self, forward.kv, 1, for_values);
                let mut write = Write::accumulate(!covered);
                for (head, block) in heads().flat_map(AttentionHead::with_blocks) {
                    let seen = head.seen_by(&block);
                    let count = seen.len();
                    let weights = &mut weights[..block.len() * count];
                    let dscores = &mut dscores[..block.len() * count];
                    let (q, dy_block) =
                        (head.queries(forward.q, block.clone()), head.queries(dy, block.clone()));
                    let mut view = MatrixViewMut::new(weights, block.len(), count, count);
                    let of_keys = transposed_keys.cols(seen.clone());
                    multiply(&mut view, Write::Overwrite, head.scale(), q, of_keys);
                    let mut view = MatrixViewMut::new(dscores, block.len(), count, count);
                    let of_values = transposed_values.cols(seen.clone());
                    multiply(&mut view, Write::Overwrite, 1.0, dy_block, of_values);
                    dispatch!(self.arch, || {
                        let rows = weights
                            .chunks_mut(count)
                            .zip(dscores.chunks_mut(count))
                            .zip(block.clone());
                        for ((weights, dscores), query) in rows {
                            // Σ weight · dweight over the row is the dot product of the output with its gradient.
                            let at = query * dim + head.cols().start..query * dim + head.cols().end;
                            let delta = dot(&forward.y.as_slice()[at.clone()], &dy.as_slice()[at]);
                            let lse =
                                forward.stats.as_slice()[query * shape.heads.count + head.number];
                            let scores = head.row(query, &seen);
                            let first = seen.start + scores.seen.start;
                            let row = SoftmaxRow { lse, delta, scale: head.scale(), scores };
                            let mask = Mask {
                                dropout: shape.dropout,
                                row: head.weight_row(query),
                                first,
                                factors: &mut *factors,
                            };
                            row.backward(mask, weights, dscores);
                        }
                    });
                    let weights = MatrixView::new(weights, block.len(), count, count);
                    let dscores = MatrixView::new(dscores, block.len(), count, count);
                    // SAFETY: parts of what this task alone has; each is live for one matmul.
                    let mut part = unsafe { dv.block(seen.clone(), 0..width) };
                    multiply(&mut part, write, 1.0, weights.t(), dy_block);
                    // SAFETY: as above.
                    let mut part = unsafe { dk.block(seen.clone(), 0..width) };
                    multiply(&mut part, write, 1.0, dscores.t(), q);
                    // SAFETY: this task alone has this sequence's rows and this head's columns.
                    let mut dq = unsafe { dq.block(block, head.cols()) };
                    multiply(
                        &mut dq,
                        Write::Overwrite,
                        1.0,
                        dscores,
                        head.half(forward.kv, 0, seen),
                    );
                    write = Write::Add;
                }
            });
        });
    }
}

/// A row of attention weights in the backward pass.
struct SoftmaxRow {
    lse: f32,
    /// The dot product of the output with its gradient.
    delta: f32,
    /// What the scores were multiplied by.
    scale: f32,
    scores: ScoreRow,
}

/// Dropout of a row of weights, from key `first` on, and memory for the factors of all keys.
struct Mask<'a> {
    dropout: Dropout,
    row: u32,
    first: usize,
    factors: &'a mut [f32],
}

impl SoftmaxRow {
    /// From scores to dropped weights, and from the gradients of those to the gradients of the unscaled
    /// scores, both in place.
    #[inline(always)]
    fn backward(&self, mask: Mask<'_>, weights: &mut [f32], dscores: &mut [f32]) {
        let Self { lse, mut delta, scale, ref scores } = *self;
        let weights = scores.seen(weights);
        dscores[..scores.seen.start].fill(0.0);
        dscores[scores.seen.end..].fill(0.0);
        let dscores = &mut dscores[scores.seen.clone()];
        if mask.dropout.rate > 0.0 {
            mask.dropout.factors(mask.row, mask.factors);
            for (dscore, &factor) in dscores.iter_mut().zip(&mask.factors[mask.first..]) {
                *dscore *= factor;
            }
        }
        if let Some(cap) = scores.cap {
            for (dscore, &score) in dscores.iter_mut().zip(weights.iter()) {
                *dscore = (*dscore - delta) * (1.0 - (score / cap) * (score / cap));
            }
            delta = 0.0;
        }
        for (dscore, weight) in dscores.iter_mut().zip(weights.iter_mut()) {
            *weight = exp(*weight - lse);
            *dscore = *weight * (*dscore - delta) * scale;
        }
        if mask.dropout.rate > 0.0 {
            for (weight, &factor) in weights.iter_mut().zip(&mask.factors[mask.first..]) {
                *weight *= factor;
            }
        }
    }
}
