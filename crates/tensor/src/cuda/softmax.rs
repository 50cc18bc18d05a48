//! Cross-entropy of the tied softmax: some rows at a time, whose scores become their gradients in
//! place.

use super::linear::{column_sums, result};
use super::lists::Resident;
use super::rows::clear;
use super::{Cuda, Product, Program, Side, launch, to};
use crate::kernels::{Grad, Precision, TiedGrads};
use crate::value::{Indices, Tensor};

/// The most bytes that scores may take at once.
const SCORES: usize = 640 << 20;
/// Threads that share a row of scores.
const THREADS: u32 = 512;

pub(super) struct TiedSoftmax<'a> {
    /// Rows x dim.
    pub(super) hidden: &'a Tensor,
    /// Vocabulary x dim.
    pub(super) table: &'a Tensor,
    /// 1 x vocabulary.
    pub(super) bias: &'a Tensor,
    pub(super) targets: &'a Indices,
    /// What the gradients are multiplied by.
    pub(super) weight: f32,
}

impl TiedSoftmax<'_> {
    pub(super) fn run(&self, cuda: &Cuda, score: &mut Tensor, grads: Option<TiedGrads<'_>>) {
        let (vocabulary, rows) = (self.table.rows(), self.hidden.rows());
        if rows == 0 {
            super::rows::fill(cuda, score, 0.0);
            let sinks = grads.map(|grads| [grads.table, grads.bias]);
            // No row, no gradient; but whoever reads it must not find an old one.
            return sinks.into_iter().flatten().flatten().for_each(|grad| clear(cuda, grad));
        }
        // Rows lie whole multiples of 16 bytes apart.
        let pitch = vocabulary.next_multiple_of(8);
        let chunks = (rows * pitch * 2).div_ceil(SCORES);
        let height = rows.div_ceil(chunks);
        let scores = cuda.scratch(height * pitch * 2);
        let facts = cuda.scratch(height * 2 * 4);
        let scores =
            Side { pointer: scores.pointer, precision: Precision::Working, pitch, turned: false };
        let mut grads = grads;
        for start in (0..rows).step_by(height) {
            let chunk =
                Chunk { softmax: self, cuda, start, count: height.min(rows - start), scores };
            chunk.score(grads.is_some(), facts.pointer, score);
            if let Some(grads) = &mut grads {
                chunk.gradients(grads);
            }
        }
    }
}

/// Adds up the facts of rows, a loss and a right answer each; to what `score` holds with `add`.
pub(super) fn sum_facts(cuda: &Cuda, facts: u64, rows: usize, add: bool, score: &mut Tensor) {
    launch!(
        cuda, Program::Softmax, "sum_facts", [1, 1, 1], [256, 1, 1], 0;
        facts, rows as i32, i32::from(add), to(score),
    );
}

/// Some rows.
struct Chunk<'a> {
    softmax: &'a TiedSoftmax<'a>,
    cuda: &'a Cuda,
    start: usize,
    count: usize,
    /// Count x vocabulary.
    scores: Side,
}

impl Chunk<'_> {
    /// Vocabulary x dim.
    fn table(&self) -> Side {
        let pointer = self.cuda.rounded(self.softmax.table);
        let pitch = self.softmax.table.cols();
        Side { pointer, precision: Precision::Working, pitch, turned: false }
    }

    /// These rows of a matrix like the hidden states: count x dim.
    fn rows(&self, side: Side) -> Side {
        Side { pointer: side.pointer + (self.start * side.pitch * 2) as u64, ..side }
    }

    fn hidden(&self) -> Side {
        let hidden = self.softmax.hidden;
        let pointer = self.cuda.rounded(hidden);
        let pitch = hidden.cols();
        self.rows(Side { pointer, precision: Precision::Working, pitch, turned: false })
    }

    /// Computes scores, losses and, where they are wanted, gradients of the scores.
    fn score(&self, learns: bool, facts: u64, score: &mut Tensor) {
        let (vocabulary, dim) = self.softmax.table.shape();
        self.cuda.products.run(&Product {
            left: self.hidden(),
            right: Side { turned: true, ..self.table() },
            out: self.scores,
            size: [self.count, vocabulary, dim],
            accumulate: false,
            bias: Some(self.cuda.rounded(self.softmax.bias)),
        });
        let targets = Resident::of(&self.cuda.context, self.softmax.targets).pointer();
        let weight = if learns { self.softmax.weight } else { 0.0 };
        launch!(
            self.cuda, Program::Softmax, "cross_entropy", [self.count, 1, 1], [THREADS, 1, 1], 0;
            self.scores.pointer, targets + 4 * self.start as u64, vocabulary as i32,
            self.scores.pitch as i32, weight, facts,
        );
        sum_facts(self.cuda, facts, self.count, self.start > 0, score);
    }

    /// From the gradients of the scores to those of everything else.
    fn gradients(&self, grads: &mut TiedGrads<'_>) {
        let (vocabulary, dim) = self.softmax.table.shape();
        let (count, later) = (self.count, self.start > 0);
        self.cuda.products.run(&Product {
            left: self.scores,
            right: self.table(),
            out: self.rows(result(grads.hidden)),
            size: [count, dim, vocabulary],
            accumulate: false,
            bias: None,
        });
        if let Some(Grad { tensor, accumulate }) = &mut grads.table {
            self.cuda.products.run(&Product {
                left: Side { turned: true, ..self.scores },
                right: self.hidden(),
                out: result(tensor),
                size: [vocabulary, dim, count],
                accumulate: *accumulate || later,
                bias: None,
            });
        }
        if let Some(Grad { tensor, accumulate }) = &mut grads.bias {
            let sink = Grad { tensor, accumulate: *accumulate || later };
            let size = [count, vocabulary, self.scores.pitch];
            column_sums(self.cuda, self.scores.pointer, size, Some(sink));
        }
    }
}
