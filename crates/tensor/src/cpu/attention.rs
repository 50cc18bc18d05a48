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
use crate::kernels::{AttentionForward, AttentionGrads, AttentionShape};
use crate::math::exp;
use crate::random::Dropout;
use crate::value::Tensor;

/// Queries in a block: its scores fit the second cache at the lengths that matter.
const QUERIES: usize = 128;

/// One head of one sequence: where its rows and columns are.
struct AttentionHead {
    number: usize,
    heads: usize,
    dim: usize,
    queries: Range<usize>,
    keys: Range<usize>,
}

impl AttentionHead {
    fn of(task: usize, shape: &AttentionShape, dim: usize) -> Self {
        let (sequence, number) = (task / shape.heads, task % shape.heads);
        let (queries, keys) = (shape.queries.get(sequence), shape.keys.get(sequence));
        Self { number, heads: shape.heads, dim, queries, keys }
    }

    fn blocks(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let queries = self.queries.clone();
        queries.clone().step_by(QUERIES).map(move |at| at..queries.end.min(at + QUERIES))
    }

    /// Its columns among the model's.
    fn cols(&self) -> Range<usize> {
        let width = self.dim / self.heads;
        self.number * width..(self.number + 1) * width
    }

    /// Its columns of some rows of `q`, `y` or their gradients.
    fn queries<'a>(&self, tensor: &'a Tensor, rows: Range<usize>) -> MatrixView<'a> {
        let from = rows.start * self.dim + self.cols().start;
        MatrixView::new(&tensor.as_slice()[from..], rows.len(), self.cols().len(), self.dim)
    }

    /// Its keys (`half` 0) or its values (`half` 1).
    fn half<'a>(&self, kv: &'a Tensor, half: usize) -> MatrixView<'a> {
        let from = (2 * self.keys.start + half) * self.dim + self.cols().start;
        MatrixView::new(&kv.as_slice()[from..], self.keys.len(), self.cols().len(), 2 * self.dim)
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
        let (keys, width) = (self.keys.len(), self.cols().len());
        dispatch!(cpu.arch, || transpose_padded(self.half(kv, half), space, padded(keys)));
        MatrixView::new(space, width, keys, padded(keys))
    }

    /// A number for each row of weights, to draw its dropout by.
    fn weight_row(&self, query: usize) -> u32 {
        (query * self.heads + self.number) as u32
    }

    fn scale(&self) -> f32 {
        1.0 / ((self.dim / self.heads) as f32).sqrt()
    }
}

/// A number of keys, padded to whole cache lines.
fn padded(keys: usize) -> usize {
    keys.next_multiple_of(16)
}

/// Multiplies a row by its dropout factors, which are left in `factors`.
#[inline(always)]
fn drop_row(dropout: Dropout, row: u32, weights: &mut [f32], factors: &mut [f32]) {
    if dropout.rate > 0.0 {
        dropout.factors(row, factors);
        for (weight, &factor) in weights.iter_mut().zip(factors.iter()) {
            *weight *= factor;
        }
    }
}

pub(super) fn forward(
    cpu: &Cpu,
    q: &Tensor,
    kv: &Tensor,
    shape: &AttentionShape,
    y: &mut Tensor,
    lse: &mut Tensor,
) {
    let dim = q.cols();
    let (y, lse) = (MatrixViewMut::of(y), MatrixViewMut::of(lse));
    (0..shape.keys.count() * shape.heads).into_par_iter().with_max_len(1).for_each(|task| {
        let head = AttentionHead::of(task, shape, dim);
        if head.queries.is_empty() {
            return;
        }
        let (keys, width) = (head.keys.len(), head.cols().len());
        let mut scratch = cpu.scratch((QUERIES + 1) * keys + width * padded(keys));
        let (weights, rest) = scratch.as_mut_slice().split_at_mut(QUERIES * keys);
        let (factors, space) = rest.split_at_mut(keys);
        let transposed_keys = head.transposed(cpu, kv, 0, space);
        for block in head.blocks() {
            let weights = &mut weights[..block.len() * keys];
            let mut scores = MatrixViewMut::new(weights, block.len(), keys, keys);
            let queries = head.queries(q, block.clone());
            multiply(&mut scores, Write::Overwrite, head.scale(), queries, transposed_keys);
            let mut inverse = [0.0; QUERIES];
            dispatch!(cpu.arch, || {
                let rows = weights.chunks_mut(keys).zip(&mut inverse).zip(block.clone());
                for ((weights, inverse), query) in rows {
                    let top = max(weights);
                    for weight in weights.iter_mut() {
                        *weight = exp(*weight - top);
                    }
                    let sum = super::math::sum(weights);
                    *inverse = 1.0 / sum;
                    // SAFETY: this task alone has this sequence and head.
                    let lse = unsafe { lse.segment(query, head.number..head.number + 1) };
                    lse[0] = top + sum.ln();
                    drop_row(shape.dropout, head.weight_row(query), weights, factors);
                }
            });
            let weights = MatrixView::new(weights, block.len(), keys, keys);
            // SAFETY: this task alone has this sequence's rows and this head's columns.
            let mut out = unsafe { y.block(block.clone(), head.cols()) };
            multiply(&mut out, Write::Overwrite, 1.0, weights, head.half(kv, 1));
            dispatch!(cpu.arch, || {
                for (query, inverse) in block.clone().zip(inverse) {
                    // SAFETY: as above; the block was last used before this.
                    let y = unsafe { y.segment(query, head.cols()) };
                    y.iter_mut().for_each(|y| *y *= inverse);
                }
            });
        }
    });
}

pub(super) fn backward(
    cpu: &Cpu,
    forward: AttentionForward<'_>,
    shape: &AttentionShape,
    dy: &Tensor,
    grads: AttentionGrads<'_>,
) {
    let dim = forward.q.cols();
    let (dq, dkv) = (MatrixViewMut::of(grads.q), MatrixViewMut::of(grads.kv));
    (0..shape.keys.count() * shape.heads).into_par_iter().with_max_len(1).for_each(|task| {
        let head = AttentionHead::of(task, shape, dim);
        let (keys, cols) = (head.keys.len(), head.cols());
        if keys == 0 {
            return;
        }
        // SAFETY: this task alone has this sequence's rows and this head's columns, and the
        // columns of keys and of values are different ones.
        let mut dk = unsafe { dkv.block(head.keys.clone(), cols.clone()) };
        // SAFETY: as above.
        let mut dv = unsafe { dkv.block(head.keys.clone(), dim + cols.start..dim + cols.end) };
        if head.queries.is_empty() {
            dk.fill(0.0);
            dv.fill(0.0);
            return;
        }
        let transposed = cols.len() * padded(keys);
        let mut scratch = cpu.scratch((2 * QUERIES + 1) * keys + 2 * transposed);
        let (weights, rest) = scratch.as_mut_slice().split_at_mut(QUERIES * keys);
        let (dscores, rest) = rest.split_at_mut(QUERIES * keys);
        let (factors, rest) = rest.split_at_mut(keys);
        let (for_keys, for_values) = rest.split_at_mut(transposed);
        let transposed_keys = head.transposed(cpu, forward.kv, 0, for_keys);
        let transposed_values = head.transposed(cpu, forward.kv, 1, for_values);
        for (number, block) in head.blocks().enumerate() {
            let write = Write::accumulate(number > 0);
            let weights = &mut weights[..block.len() * keys];
            let dscores = &mut dscores[..block.len() * keys];
            let (q, dy_block) =
                (head.queries(forward.q, block.clone()), head.queries(dy, block.clone()));
            let mut view = MatrixViewMut::new(weights, block.len(), keys, keys);
            multiply(&mut view, Write::Overwrite, head.scale(), q, transposed_keys);
            let mut view = MatrixViewMut::new(dscores, block.len(), keys, keys);
            multiply(&mut view, Write::Overwrite, 1.0, dy_block, transposed_values);
            dispatch!(cpu.arch, || {
                let rows =
                    weights.chunks_mut(keys).zip(dscores.chunks_mut(keys)).zip(block.clone());
                for ((weights, dscores), query) in rows {
                    // Σ weight · dweight over the row is the dot product of the output with its gradient.
                    let at = query * dim + cols.start..query * dim + cols.end;
                    let delta = dot(&forward.y.as_slice()[at.clone()], &dy.as_slice()[at]);
                    let lse = forward.stats.as_slice()[query * head.heads + head.number];
                    let row = SoftmaxRow { lse, delta, scale: head.scale() };
                    let factors = &mut *factors;
                    let row_number = head.weight_row(query);
                    let mask = Mask { dropout: shape.dropout, row: row_number, factors };
                    row.backward(mask, weights, dscores);
                }
            });
            let weights = MatrixView::new(weights, block.len(), keys, keys);
            let dscores = MatrixView::new(dscores, block.len(), keys, keys);
            multiply(&mut dv, write, 1.0, weights.t(), dy_block);
            multiply(&mut dk, write, 1.0, dscores.t(), q);
            // SAFETY: this task alone has this sequence's rows and this head's columns.
            let mut dq = unsafe { dq.block(block, cols.clone()) };
            multiply(&mut dq, Write::Overwrite, 1.0, dscores, head.half(forward.kv, 0));
        }
    });
}

/// A row of attention weights in the backward pass.
struct SoftmaxRow {
    /// The logsumexp of its scores.
    lse: f32,
    /// The dot product of the output with its gradient.
    delta: f32,
    /// What the scores were multiplied by.
    scale: f32,
}

/// Dropout of a row of weights, and memory for its factors.
struct Mask<'a> {
    dropout: Dropout,
    row: u32,
    factors: &'a mut [f32],
}

impl SoftmaxRow {
    /// From scores to dropped weights, and from the gradients of those to the gradients of the unscaled
    /// scores, both in place.
    #[inline(always)]
    fn backward(&self, mask: Mask<'_>, weights: &mut [f32], dscores: &mut [f32]) {
        let Self { lse, delta, scale } = *self;
        for weight in weights.iter_mut() {
            *weight = exp(*weight - lse);
        }
        if mask.dropout.rate == 0.0 {
            for (dscore, &weight) in dscores.iter_mut().zip(weights.iter()) {
                *dscore = weight * (*dscore - delta) * scale;
            }
            return;
        }
        mask.dropout.factors(mask.row, mask.factors);
        for ((dscore, weight), &factor) in dscores.iter_mut().zip(weights).zip(mask.factors.iter())
        {
            *dscore = *weight * (*dscore * factor - delta) * scale;
            *weight *= factor;
        }
    }
}
