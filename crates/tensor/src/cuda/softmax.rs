//! Cross-entropy of the tied softmax: some rows at a time, whose logits become their gradients in place.

use super::linear::{column_sums, result};
use super::lists::IndexCopy;
use super::rows::clear;
use super::{Cuda, Matmul, Operand, Program, launch, to};
use crate::kernels::{Grad, MatrixPrecision, RowKernels as _, TiedGrads, TiedSoftmax};
use crate::value::Tensor;

/// The most bytes that scores may take at once.
const SCORES: usize = 640 << 20;
/// Threads that share a row of scores.
const THREADS: u32 = 512;

pub(super) fn tied_cross_entropy(
    cuda: &Cuda,
    softmax: &TiedSoftmax<'_>,
    score: &mut Tensor,
    mut grads: Option<TiedGrads<'_>>,
) {
    let (vocabulary, rows) = (softmax.table.rows(), softmax.hidden.rows());
    if rows == 0 {
        cuda.fill(score, 0.0);
        let sinks = grads.map(|grads| [grads.table, grads.bias]);
        // No row, no gradient; but a reader must not find an old one.
        return sinks.into_iter().flatten().flatten().for_each(|grad| clear(cuda, grad));
    }
    // Rows lie whole multiples of 16 bytes apart.
    let pitch = vocabulary.next_multiple_of(8);
    let chunks = (rows * pitch * 2).div_ceil(SCORES);
    let height = rows.div_ceil(chunks);
    let scores = cuda.scratch(height * pitch * 2);
    let losses = cuda.scratch(height * 2 * 4);
    let scores = Operand {
        pointer: scores.pointer,
        precision: MatrixPrecision::Working,
        pitch,
        transposed: false,
    };
    for start in (0..rows).step_by(height) {
        let chunk = LogitRows { softmax, cuda, start, count: height.min(rows - start), scores };
        chunk.score(grads.is_some(), losses.pointer, score);
        if let Some(grads) = &mut grads {
            chunk.gradients(grads);
        }
    }
}

/// Adds up what rows leave, a loss and a correct prediction each; to what `score` holds with `add`.
pub(super) fn sum_losses(cuda: &Cuda, losses: u64, rows: usize, add: bool, score: &mut Tensor) {
    launch!(
        cuda, Program::Softmax, "sum_losses", [1, 1, 1], [256, 1, 1], 0;
        losses, rows as i32, i32::from(add), to(score),
    );
}

struct LogitRows<'a> {
    softmax: &'a TiedSoftmax<'a>,
    cuda: &'a Cuda,
    start: usize,
    count: usize,
    /// Count x vocabulary.
    scores: Operand,
}

impl LogitRows<'_> {
    /// Vocabulary x dim.
    fn table(&self) -> Operand {
        let pointer = self.cuda.rounded(self.softmax.table);
        let pitch = self.softmax.table.cols();
        Operand { pointer, precision: MatrixPrecision::Working, pitch, transposed: false }
    }

    /// These rows of a matrix like the hidden states: count x dim.
    fn rows(&self, all: Operand) -> Operand {
        Operand { pointer: all.pointer + (self.start * all.pitch * 2) as u64, ..all }
    }

    fn hidden(&self) -> Operand {
        let hidden = self.softmax.hidden;
        let pointer = self.cuda.rounded(hidden);
        let pitch = hidden.cols();
        self.rows(Operand {
            pointer,
            precision: MatrixPrecision::Working,
            pitch,
            transposed: false,
        })
    }

    /// Computes scores, losses and, where they are wanted, gradients of the scores.
    fn score(&self, learns: bool, losses: u64, score: &mut Tensor) {
        let (vocabulary, dim) = self.softmax.table.shape();
        self.cuda.blas.run(&Matmul {
            left: self.hidden(),
            right: Operand { transposed: true, ..self.table() },
            out: self.scores,
            size: [self.count, vocabulary, dim],
            accumulate: false,
            bias: Some(self.cuda.rounded(self.softmax.bias)),
        });
        let targets = IndexCopy::of(&self.cuda.context, self.softmax.targets).pointer();
        let weight = if learns { self.softmax.weight } else { 0.0 };
        launch!(
            self.cuda, Program::Softmax, "cross_entropy", [self.count, 1, 1], [THREADS, 1, 1], 0;
            self.scores.pointer, targets + 4 * self.start as u64, vocabulary as i32,
            self.scores.pitch as i32, weight, losses,
        );
        sum_losses(self.cuda, losses, self.count, self.start > 0, score);
    }

    /// From the gradients of the scores to those of everything else.
    fn gradients(&self, grads: &mut TiedGrads<'_>) {
        let (vocabulary, dim) = self.softmax.table.shape();
        let (count, later) = (self.count, self.start > 0);
        self.cuda.blas.run(&Matmul {
            left: self.scores,
            right: self.table(),
            out: self.rows(result(grads.hidden)),
            size: [count, dim, vocabulary],
            accumulate: false,
            bias: None,
        });
        if let Some(Grad { tensor, accumulate }) = &mut grads.table {
            self.cuda.blas.run(&Matmul {
                left: Operand { transposed: true, ..self.scores },
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
