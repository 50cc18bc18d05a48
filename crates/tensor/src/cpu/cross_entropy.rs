//! Cross-entropy of the tied softmax, forward and backward in one pass.
//!
//! A chunk of rows at a time, logits are held with the vocabulary running down and the rows across:
//! a block of the vocabulary is then a block of whole table rows, which one task multiplies, turns
//! into probabilities, and multiplies again while everything is in its cache. Blocks keep their own
//! maximum and sum, which are combined afterwards (online softmax, Milakov and Gimelshein 2018).

#![allow(unsafe_code, reason = "tasks write different rows of one table")]

use std::ops::Range;

use rayon::prelude::*;

use super::Cpu;
use super::math::sum;
use super::matmul::{MAX_COLUMNS, MatrixView, MatrixViewMut, Write, multiply, transpose_padded};
use crate::dispatch;
use crate::kernels::{TiedGrads, TiedSoftmax};
use crate::math::exp;
use crate::value::Tensor;

/// The most rows whose scores are held at once.
const ROWS: usize = 128;
/// Entries of the vocabulary in a block.
const BLOCK: usize = 256;
/// Groups of blocks that sum up their part of the gradient of the rows: an order of summation that
/// does not depend on the threads.
const GROUPS: usize = 16;

pub(super) fn run(
    cpu: &Cpu,
    softmax: &TiedSoftmax<'_>,
    score: &mut Tensor,
    mut grads: Option<TiedGrads<'_>>,
) {
    let (vocabulary, dim) = softmax.table.shape();
    let rows = softmax.hidden.rows();
    let height = rows.div_ceil(rows.div_ceil(ROWS).max(1));
    let blocks = vocabulary.div_ceil(BLOCK);
    let width = height.next_multiple_of(16);
    if let Some(grads) = &mut grads
        && rows == 0
    {
        // No row, no gradient; but a reader must not find an old one.
        for grad in [&mut grads.table, &mut grads.bias].into_iter().flatten() {
            if !grad.accumulate {
                grad.tensor.as_mut_slice().fill(0.0);
            }
        }
    }
    let mut scores = cpu.scratch(vocabulary * width);
    let mut stats = cpu.scratch(blocks * STATS * width);
    let (mut loss, mut correct) = (0.0, 0);
    for start in (0..rows).step_by(height.max(1)) {
        let count = height.min(rows - start);
        let mut chunk = LogitChunk {
            cpu,
            softmax,
            count,
            width,
            hidden: &softmax.hidden.as_slice()[start * dim..(start + count) * dim],
            targets: &softmax.targets[start..start + count],
            scores: scores.as_mut_slice(),
            stats: stats.as_mut_slice(),
        };
        chunk.score();
        let lse = chunk.log_sums(&mut loss, &mut correct);
        if let Some(grads) = &mut grads {
            let dhidden = &mut grads.hidden.as_mut_slice()[start * dim..(start + count) * dim];
            let table = grads.table.as_mut().map(|grad| {
                (Write::accumulate(grad.accumulate || start > 0), MatrixViewMut::of(grad.tensor))
            });
            let bias = grads.bias.as_mut().map(|grad| {
                (Write::accumulate(grad.accumulate || start > 0), MatrixViewMut::of(grad.tensor))
            });
            chunk.gradients(&lse, &Sinks { table, bias }, dhidden);
        }
    }
    score.as_mut_slice().copy_from_slice(&[loss as f32, correct as f32]);
}

/// What is kept of each row in each block: its highest logit, the sum of the exponentials relative to
/// that, and the logit of the target where it lies in the block (else 0).
const STATS: usize = 3;

/// Some rows, and their scores.
struct LogitChunk<'a> {
    cpu: &'a Cpu,
    softmax: &'a TiedSoftmax<'a>,
    /// How many rows.
    count: usize,
    /// That many, padded to whole cache lines: what each entry's scores take up.
    width: usize,
    /// Rows x dim.
    hidden: &'a [f32],
    targets: &'a [u32],
    /// Vocabulary x width: scores relative to the highest of row and block, exponentiated.
    scores: &'a mut [f32],
    /// Blocks x statistics x width.
    stats: &'a mut [f32],
}

/// Where the gradients of the weights go; tasks write different rows.
struct Sinks<'a> {
    table: Option<(Write, MatrixViewMut<'a>)>,
    bias: Option<(Write, MatrixViewMut<'a>)>,
}

impl LogitChunk<'_> {
    fn entries(&self, range: &Range<usize>) -> MatrixView<'_> {
        let dim = self.softmax.table.cols();
        let entries = &self.softmax.table.as_slice()[range.start * dim..range.end * dim];
        MatrixView::new(entries, range.len(), dim, dim)
    }

    /// Fills in the scores and their statistics.
    fn score(&mut self) {
        let (width, dim) = (self.width, self.softmax.table.cols());
        let mut transposed = self.cpu.scratch(dim * width);
        let hidden = MatrixView::new(self.hidden, self.count, dim, dim);
        dispatch!(self.cpu.arch, || transpose_padded(hidden, transposed.as_mut_slice(), width));
        let transposed = MatrixView::new(transposed.as_slice(), dim, width, width);
        let (scores, stats) = (std::mem::take(&mut self.scores), std::mem::take(&mut self.stats));
        let blocks = scores.par_chunks_mut(BLOCK * width).zip(stats.par_chunks_mut(STATS * width));
        blocks.enumerate().for_each(|(block, (scores, stats))| {
            let range = block * BLOCK..block * BLOCK + scores.len() / width;
            let mut product = MatrixViewMut::new(scores, range.len(), width, width);
            multiply(&mut product, Write::Overwrite, 1.0, self.entries(&range), transposed);
            let bias = &self.softmax.bias.as_slice()[range.clone()];
            dispatch!(self.cpu.arch, || self.exponentiate(range, bias, scores, stats));
        });
        (self.scores, self.stats) = (scores, stats);
    }

    /// Turns the scores of a block into exponentials, and keeps their statistics.
    #[inline(always)]
    fn exponentiate(
        &self,
        range: Range<usize>,
        bias: &[f32],
        scores: &mut [f32],
        stats: &mut [f32],
    ) {
        let width = self.width;
        let (tops, rest) = stats.split_at_mut(width);
        let (sums, chosen) = rest.split_at_mut(width);
        tops.fill(f32::NEG_INFINITY);
        sums.fill(0.0);
        for (scores, &bias) in scores.chunks_mut(width).zip(bias) {
            for (score, top) in scores.iter_mut().zip(tops.iter_mut()) {
                *score += bias;
                // A NaN must not be lost here: it has to reach the loss.
                *top = if *top > *score || top.is_nan() { *top } else { *score };
            }
        }
        for (row, (chosen, &target)) in chosen.iter_mut().zip(self.targets).enumerate() {
            let target = target as usize;
            let here = range.contains(&target);
            *chosen = if here { scores[(target - range.start) * width + row] } else { 0.0 };
        }
        for scores in scores.chunks_mut(width) {
            for ((score, &top), sum) in scores.iter_mut().zip(tops.iter()).zip(sums.iter_mut()) {
                *score = exp(*score - top);
                *sum += *score;
            }
        }
    }

    /// The logarithm of each row's sum over the whole vocabulary; adds to the loss and the number
    /// of targets that had the highest score.
    fn log_sums(&self, loss: &mut f64, correct: &mut usize) -> Vec<f64> {
        let blocks = || self.stats.chunks(STATS * self.width);
        let log_sum = |row: usize| {
            let top = blocks().map(|stats| stats[row]).fold(f32::NEG_INFINITY, f32::max);
            let sum = |stats: &[f32]| {
                f64::from(stats[self.width + row]) * f64::from(stats[row] - top).exp()
            };
            let lse = f64::from(top) + blocks().map(sum).sum::<f64>().ln();
            let chosen: f32 = blocks().map(|stats| stats[2 * self.width + row]).sum();
            *loss += lse - f64::from(chosen);
            // A tie counts as right: the target had the highest score.
            *correct += usize::from(chosen >= top);
            lse
        };
        (0..self.count).map(log_sum).collect()
    }

    /// Turns exponentials into gradients of the scores, and those into gradients of everything else.
    fn gradients(&mut self, lse: &[f64], sinks: &Sinks<'_>, dhidden: &mut [f32]) {
        let (count, width, dim) = (self.count, self.width, self.softmax.table.cols());
        let scores = std::mem::take(&mut self.scores);
        let blocks = scores.len().div_ceil(BLOCK * width);
        let group = blocks.div_ceil(GROUPS);
        let mut partial = self.cpu.scratch(blocks.div_ceil(group) * count * dim);
        let groups = scores.par_chunks_mut(group * BLOCK * width);
        let groups = groups.zip(partial.as_mut_slice().par_chunks_mut(count * dim));
        groups.with_max_len(1).enumerate().for_each(|(number, (scores, dhidden))| {
            for (within, scores) in scores.chunks_mut(BLOCK * width).enumerate() {
                let block = number * group + within;
                let write = Write::accumulate(within > 0);
                self.block_gradients(block, lse, scores, sinks, write, dhidden);
            }
        });
        let partial = partial.as_slice();
        dhidden.par_chunks_mut(dim).enumerate().for_each(|(row, dhidden)| {
            dhidden.fill(0.0);
            dispatch!(self.cpu.arch, || {
                for partial in partial.chunks(count * dim) {
                    for (sum, &part) in dhidden.iter_mut().zip(&partial[row * dim..]) {
                        *sum += part;
                    }
                }
            });
        });
        self.scores = scores;
    }

    fn block_gradients(
        &self,
        block: usize,
        lse: &[f64],
        scores: &mut [f32],
        sinks: &Sinks<'_>,
        write: Write,
        dhidden: &mut [f32],
    ) {
        let (count, width, dim) = (self.count, self.width, self.softmax.table.cols());
        let range = block * BLOCK..block * BLOCK + scores.len() / width;
        let tops = &self.stats[block * STATS * width..][..count];
        let mut factors = [0.0; ROWS];
        for ((factor, &top), lse) in factors.iter_mut().zip(tops).zip(lse) {
            *factor = self.softmax.weight * (f64::from(top) - lse).exp() as f32;
        }
        dispatch!(self.cpu.arch, || {
            for scores in scores.chunks_mut(width) {
                for (score, &factor) in scores.iter_mut().zip(&factors) {
                    *score *= factor;
                }
            }
        });
        for (row, &target) in self.targets.iter().enumerate() {
            if range.contains(&(target as usize)) {
                scores[(target as usize - range.start) * width + row] -= self.softmax.weight;
            }
        }
        if let Some((write, bias)) = &sinks.bias {
            // SAFETY: every block belongs to one task.
            let bias = unsafe { bias.segment(0, range.clone()) };
            dispatch!(self.cpu.arch, || {
                for (bias, scores) in bias.iter_mut().zip(scores.chunks(width)) {
                    let before = if *write == Write::Add { *bias } else { 0.0 };
                    *bias = before + sum(&scores[..count]);
                }
            });
        }
        let dscores = MatrixView::new(scores, range.len(), count, width);
        if let Some((write, table)) = &sinks.table {
            // SAFETY: every block belongs to one task.
            let mut entries = unsafe { table.block(range.clone(), 0..dim) };
            let hidden = MatrixView::new(self.hidden, count, dim, dim);
            multiply(&mut entries, *write, 1.0, dscores, hidden);
        }
        let (dhidden, entries) =
            (MatrixViewMut::new(dhidden, count, dim, dim), self.entries(&range));
        for start in (0..dim).step_by(MAX_COLUMNS) {
            let cols = start..dim.min(start + MAX_COLUMNS);
            // SAFETY: panels of different columns, one after another.
            let mut panel = unsafe { dhidden.block(0..count, cols.clone()) };
            multiply(&mut panel, write, 1.0, dscores.t(), entries.cols(cols));
        }
    }
}
