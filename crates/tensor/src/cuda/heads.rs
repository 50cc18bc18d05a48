//! What task heads need: the softmax over a few classes, and scores of pairs of rows.
//!
//! Inputs and outputs are of the working precision, but for losses. A launch over an empty grid does
//! nothing, so lists without rows need no case of their own.

use cudarc::driver::sys::CUdeviceptr;

use super::lists::IndexCopy;
use super::softmax::sum_losses;
use super::{Cuda, Program, ROWS, THREADS, at, block, lanes, launch, to};
use crate::kernels::{ClassSoftmax, HeadKernels, MatrixPrecision, PairGrads, PairSpans};
use crate::spans::Spans;
use crate::value::Tensor;

/// Rows and columns of results that a block of pairs has, as the kernels have it.
const SIDE: usize = 64;

/// Where a matrix is that flows between operations, to read.
fn from(x: &Tensor) -> CUdeviceptr {
    assert_eq!(block(x).precision, MatrixPrecision::Working, "what flows between operations");
    at(x)
}

/// Where it is, to write.
fn into(y: &mut Tensor) -> CUdeviceptr {
    assert_eq!(block(y).precision, MatrixPrecision::Working, "what flows between operations");
    to(y)
}

impl HeadKernels for Cuda {
    fn cross_entropy(
        &self,
        softmax: ClassSoftmax<'_>,
        score: &mut Tensor,
        dscores: Option<&mut Tensor>,
    ) {
        let (rows, cols) = softmax.scores.shape();
        let list = |list| IndexCopy::of(&self.context, list).pointer();
        let losses = self.scratch(rows * 2 * 4);
        launch!(
            self, Program::Heads, "class_entropy", [rows.div_ceil(ROWS), 1, 1], [THREADS, 1, 1], 0;
            from(softmax.scores), list(softmax.widths), list(softmax.targets), rows as i32, cols as i32,
            softmax.weight, losses.pointer, dscores.map_or(0, into),
        );
        sum_losses(self, losses.pointer, rows, false, score);
    }

    fn pair_scores(&self, q: &Tensor, k: &Tensor, spans: PairSpans<'_>, y: &mut Tensor) {
        let (dim, cols) = (q.cols(), y.cols());
        let names = ["pair_scores_8", "pair_scores_1"];
        launch_pairs(self, spans, names, [q, k], [dim, cols], [spans.queries.longest(), cols], y);
    }

    fn pair_scores_grad(
        &self,
        q: &Tensor,
        k: &Tensor,
        spans: PairSpans<'_>,
        dy: &Tensor,
        PairGrads { left: dq, right: dk }: PairGrads<'_>,
    ) {
        let (dim, sizes) = (q.cols(), [q.cols(), dy.cols()]);
        let names = ["pair_scores_dq_8", "pair_scores_dq_1"];
        launch_pairs(self, spans, names, [dy, k], sizes, [spans.queries.longest(), dim], dq);
        let names = ["pair_scores_dk_8", "pair_scores_dk_1"];
        launch_pairs(self, spans, names, [dy, q], sizes, [spans.keys.longest(), dim], dk);
    }

    fn block_dots(&self, x: &Tensor, z: &Tensor, y: &mut Tensor) {
        let (dim, blocks, count) = (z.cols(), y.cols(), y.len());
        let name = if lanes(dim) == 8 { "block_dots_8" } else { "block_dots_1" };
        launch!(
            self, Program::Heads, name, [count.div_ceil(ROWS), 1, 1], [THREADS, 1, 1], 0;
            from(x), from(z), count as u64, blocks as i32, dim as i32, into(y),
        );
    }

    fn block_dots_grad(
        &self,
        x: &Tensor,
        z: &Tensor,
        dy: &Tensor,
        PairGrads { left: dx, right: dz }: PairGrads<'_>,
    ) {
        let ((rows, dim), blocks) = (z.shape(), dy.cols());
        let name = if lanes(dim) == 8 { "block_dots_grad_8" } else { "block_dots_grad_1" };
        launch!(
            self, Program::Heads, name, [rows, 1, 1], [THREADS, 1, 1], 0;
            from(x), from(z), from(dy), blocks as i32, dim as i32, into(dx), into(dz),
        );
    }
}

/// Runs the kernel for a width that is a multiple of eight, or the other. `most` are the most rows and
/// columns of the result that a sequence has.
fn launch_pairs(
    cuda: &Cuda,
    spans: PairSpans<'_>,
    names: [&'static str; 2],
    [left, right]: [&Tensor; 2],
    [dim, cols]: [usize; 2],
    most: [usize; 2],
    out: &mut Tensor,
) {
    let name = if lanes(dim) == 8 { names[0] } else { names[1] };
    let [down, across] = most.map(|most| most.div_ceil(SIDE));
    let starts = |spans: &Spans| IndexCopy::of(&cuda.context, spans.starts()).pointer();
    launch!(
        cuda, Program::Heads, name, [spans.queries.count(), down, across], [THREADS, 1, 1], 0;
        from(left), from(right), starts(spans.queries), starts(spans.keys), dim as i32,
        cols as i32, into(out),
    );
}
