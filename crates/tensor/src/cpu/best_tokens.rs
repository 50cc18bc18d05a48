//! The most likely token of each row: the largest logit over a vocabulary, without keeping logits.
//!
//! Over mBERT's vocabulary a row of logits takes half a megabyte, and all of it but one id is thrown away. So scores are
//! computed a block at a time, with the vocabulary running down and the rows across, and only the best so
//! far of each row leaves the cache. Where the processor multiplies bytes, most scores are never computed
//! exactly ([`super::byte_bounds`]).

use std::ops::Range;

use rayon::prelude::*;

use super::Cpu;
use super::byte_bounds;
use super::matmul::{MatrixView, MatrixViewMut, Write, multiply, transpose_padded};
use crate::dispatch;
use crate::value::Tensor;

/// Rows whose scores are computed at once.
const ROWS: usize = 128;
/// Entries of the vocabulary in a block.
const BLOCK: usize = 256;
/// Blocks of a task.
const BLOCKS_OF_TASK: usize = 8;

/// For each row of `hidden`, the entry of the table with the largest `hidden · entry + bias`, the first of equals. Scores
/// that are NaN do not count; where none counts, the first entry.
pub(super) fn run(
    cpu: &Cpu,
    hidden: &Tensor,
    table: &Tensor,
    bias: &Tensor,
    copies: usize,
) -> Vec<u32> {
    let search = TokenSearch {
        hidden: hidden.as_slice(),
        table: table.as_slice(),
        bias: bias.as_slice(),
        dim: table.cols(),
        copies,
    };
    assert!(copies > 0 && search.rows().is_multiple_of(copies), "copies of as many rows");
    byte_bounds::run(cpu, &search).unwrap_or_else(|| search.by_blocks(cpu))
}

/// States and the entries that they are compared with.
pub(super) struct TokenSearch<'a> {
    /// Rows x dim.
    pub(super) hidden: &'a [f32],
    /// Vocabulary x dim.
    pub(super) table: &'a [f32],
    pub(super) bias: &'a [f32],
    pub(super) dim: usize,
    /// Blocks of as many rows, of which those at one place resemble each other.
    pub(super) copies: usize,
}

/// The highest score of each row so far, and whose it is.
struct BestSoFar {
    scores: Vec<f32>,
    ids: Vec<u32>,
}

impl TokenSearch<'_> {
    pub(super) fn rows(&self) -> usize {
        self.hidden.len() / self.dim
    }

    /// Every score in `f32`, a block at a time.
    fn by_blocks(&self, cpu: &Cpu) -> Vec<u32> {
        let (rows, dim) = (self.rows(), self.dim);
        let chunks = rows.div_ceil(ROWS);
        let mut transposed = cpu.scratch(chunks * ROWS * dim);
        let into = transposed.as_mut_slice().par_chunks_mut(ROWS * dim);
        into.zip(self.hidden.par_chunks(ROWS * dim)).for_each(|(into, hidden)| {
            let hidden = MatrixView::new(hidden, hidden.len() / dim, dim, dim);
            dispatch!(cpu.arch, || transpose_padded(hidden, into, ROWS));
        });
        let transposed = transposed.as_slice();
        let tasks = self.bias.len().div_ceil(BLOCK * BLOCKS_OF_TASK);
        let found: Vec<BestSoFar> = (0..tasks)
            .into_par_iter()
            .with_max_len(1)
            .map(|task| self.best_of_task(cpu, task, transposed))
            .collect();
        let best = |row: usize| {
            let mut best = (f32::NEG_INFINITY, 0);
            for found in &found {
                if found.scores[row] > best.0 {
                    best = (found.scores[row], found.ids[row]);
                }
            }
            best.1
        };
        (0..rows).map(best).collect()
    }

    /// The best of a task's part of the vocabulary.
    fn best_of_task(&self, cpu: &Cpu, task: usize, transposed: &[f32]) -> BestSoFar {
        let dim = self.dim;
        let width = transposed.len() / dim;
        let mut best = BestSoFar { scores: vec![f32::NEG_INFINITY; width], ids: vec![0; width] };
        let mut scores = cpu.scratch(BLOCK * ROWS);
        let end = self.bias.len().min((task + 1) * BLOCKS_OF_TASK * BLOCK);
        for start in (task * BLOCKS_OF_TASK * BLOCK..end).step_by(BLOCK) {
            let entries = start..end.min(start + BLOCK);
            let block = &self.table[entries.start * dim..entries.end * dim];
            let block = MatrixView::new(block, entries.len(), dim, dim);
            for (chunk, hidden) in transposed.chunks(ROWS * dim).enumerate() {
                let hidden = MatrixView::new(hidden, dim, ROWS, ROWS);
                let scores = scores.as_mut_slice();
                let mut product = MatrixViewMut::new(scores, entries.len(), ROWS, ROWS);
                multiply(&mut product, Write::Overwrite, 1.0, block, hidden);
                let rows = chunk * ROWS..(chunk + 1) * ROWS;
                dispatch!(cpu.arch, || best.offer(scores, &entries, self.bias, rows));
            }
        }
        best
    }
}

impl BestSoFar {
    /// Compares the scores of some entries (entries x [`ROWS`]) with the best of some rows.
    #[inline(always)]
    fn offer(&mut self, scores: &[f32], entries: &Range<usize>, bias: &[f32], rows: Range<usize>) {
        let (tops, ids) = (&mut self.scores[rows.clone()], &mut self.ids[rows]);
        for (scores, entry) in scores.chunks(ROWS).zip(entries.clone()) {
            let (bias, entry) = (bias[entry], entry as u32);
            for ((&score, top), id) in scores.iter().zip(&mut *tops).zip(&mut *ids) {
                let score = score + bias;
                let better = score > *top;
                *top = if better { score } else { *top };
                *id = if better { entry } else { *id };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Draws, Key};

    /// Rows, vocabulary, dimension; few different numbers where `coarse`, so that many scores are equal.
    fn numbers(rows: usize, vocabulary: usize, dim: usize, coarse: bool) -> [Vec<f32>; 3] {
        let mut draws = Draws::new(Key { seed: 21, step: 0, stream: 0 });
        let mut draw = |len: usize| -> Vec<f32> {
            let round = |x: f32| if coarse { x.round() } else { x };
            (0..len).map(|_| round(draws.normal())).collect()
        };
        [draw(rows * dim), draw(vocabulary * dim), draw(vocabulary)]
    }

    /// The best entries by a plain loop in `f64`.
    fn plain([hidden, table, bias]: &[Vec<f32>; 3], dim: usize) -> Vec<u32> {
        let best = |hidden: &[f32]| {
            let mut best = (f64::NEG_INFINITY, 0);
            for (entry, (weights, &bias)) in table.chunks(dim).zip(bias).enumerate() {
                let products =
                    weights.iter().zip(hidden).map(|(&w, &h)| f64::from(w) * f64::from(h));
                let score = products.sum::<f64>() + f64::from(bias);
                if score > best.0 {
                    best = (score, entry as u32);
                }
            }
            best.1
        };
        hidden.chunks(dim).map(best).collect()
    }

    fn both_ways(numbers: &[Vec<f32>; 3], dim: usize, copies: usize) -> [Vec<u32>; 2] {
        let cpu = Cpu::new(2).unwrap();
        let [hidden, table, bias] = numbers;
        let search = TokenSearch { hidden, table, bias, dim, copies };
        let exact = search.by_blocks(&cpu);
        let bounded = byte_bounds::run(&cpu, &search).unwrap_or_else(|| {
            println!("this processor multiplies no bytes: only f32 was tested");
            exact.clone()
        });
        [exact, bounded]
    }

    #[test]
    fn the_best_token_is_that_of_a_plain_loop() {
        for (rows, vocabulary, dim) in [(1, 1, 1), (3, 33, 5), (130, 2500, 24), (29, 700, 67)] {
            for coarse in [false, true] {
                let numbers = numbers(rows, vocabulary, dim, coarse);
                let plain = plain(&numbers, dim);
                for best in both_ways(&numbers, dim, 1) {
                    assert_eq!(best, plain, "{rows} x {vocabulary} x {dim}, coarse {coarse}");
                }
            }
        }
    }

    /// Copies that are the same, that lie on a line or a parabola with some noise, and that have nothing in common; one row is zero and
    /// one has a NaN.
    #[test]
    fn rows_that_resemble_each_other_change_nothing() {
        let (places, vocabulary, dim) = (31, 900, 48);
        for copies in [2, 3, 4, 6] {
            for (line, parabola, noise) in
                [(0.0, 0.0, 0.0), (0.3, 0.0, 0.01), (0.3, 0.05, 0.02), (0.0, 0.0, 2.0)]
            {
                let mut numbers = numbers(places * (copies + 1) + 2, vocabulary, dim, false);
                let drawn = std::mem::take(&mut numbers[0]);
                let (common, own) = drawn.split_at((places + 2) * dim);
                let (common, ways) = common.split_at(places * dim);
                let of_copy = |(copy, own): (usize, &[f32])| -> Vec<f32> {
                    let alpha = copy as f32;
                    let of = |(at, (&common, &own)): (usize, (&f32, &f32))| {
                        let (first, second) = (ways[at % dim], ways[dim + at % dim]);
                        common + alpha * (line * first + alpha * parabola * second) + noise * own
                    };
                    common.iter().zip(own).enumerate().map(of).collect()
                };
                numbers[0] = own.chunks(places * dim).enumerate().flat_map(of_copy).collect();
                numbers[0][2 * dim..3 * dim].fill(0.0);
                numbers[0][5 * dim + 7] = f32::NAN;
                let plain = plain(&numbers, dim);
                for best in both_ways(&numbers, dim, copies) {
                    assert_eq!(best, plain, "{copies} copies, {line} {parabola} {noise}");
                }
            }
        }
    }

    #[test]
    fn what_is_not_finite_is_compared_too() {
        let (vocabulary, dim) = (300, 16);
        let mut numbers = numbers(4, vocabulary, dim, false);
        // A row of NaN, one with an infinity, an entry of NaN, one with a large bias and one of infinity.
        numbers[0][3] = f32::NAN;
        numbers[0][dim + 1] = f32::INFINITY;
        numbers[1][9 * dim] = f32::NAN;
        numbers[2][9] = 100.0;
        numbers[2][77] = 90.0;
        let plain = plain(&numbers, dim);
        assert_eq!((plain[0], plain[2], plain[3]), (0, 77, 77));
        for best in both_ways(&numbers, dim, 1) {
            assert_eq!(best, plain);
        }
        numbers[2][200] = f32::INFINITY;
        for best in both_ways(&numbers, dim, 1) {
            assert_eq!(best[2..], [200, 200]);
        }
    }
}
