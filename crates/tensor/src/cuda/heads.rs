//! What task heads need: ELU, the softmax over a few classes, scores of pairs of rows.
//!
//! All that goes in and comes out is of the working precision, but for losses. Launches of nothing
//! are no launches, so lists without rows need no case of their own.

use cudarc::driver::sys::CUdeviceptr;

use super::lists::Resident;
use super::softmax::sum_facts;
use super::{Cuda, Program, ROWS, THREADS, at, block, lanes, launch, to};
use crate::kernels::Precision;
use crate::spans::Spans;
use crate::value::{Indices, Tensor};

/// Rows and columns of results that a block of pairs has, as the kernels have it.
const SIDE: usize = 64;

/// Where a matrix is that flows between operations, to read.
fn from(x: &Tensor) -> CUdeviceptr {
    assert_eq!(block(x).precision, Precision::Working, "what flows between operations");
    at(x)
}

/// Where it is, to write.
fn into(y: &mut Tensor) -> CUdeviceptr {
    assert_eq!(block(y).precision, Precision::Working, "what flows between operations");
    to(y)
}

pub(super) fn elu(cuda: &Cuda, x: &Tensor, y: &mut Tensor) {
    let grid = [x.len().div_ceil(8 * THREADS as usize), 1, 1];
    launch!(
        cuda, Program::Heads, "elu", grid, [THREADS, 1, 1], 0;
        from(x), into(y), x.len() as u64,
    );
}

pub(super) fn elu_grad(cuda: &Cuda, y: &Tensor, dy: &Tensor, dx: &mut Tensor) {
    let grid = [y.len().div_ceil(8 * THREADS as usize), 1, 1];
    launch!(
        cuda, Program::Heads, "elu_grad", grid, [THREADS, 1, 1], 0;
        from(y), from(dy), into(dx), y.len() as u64,
    );
}

/// Scores and what they should have been.
pub(super) struct Softmax<'a> {
    /// Rows x classes.
    pub(super) scores: &'a Tensor,
    /// How many of a row's columns count.
    pub(super) widths: &'a Indices,
    pub(super) targets: &'a Indices,
    /// What the gradient is multiplied by.
    pub(super) weight: f32,
}

impl Softmax<'_> {
    pub(super) fn run(&self, cuda: &Cuda, score: &mut Tensor, dscores: Option<&mut Tensor>) {
        let (rows, cols) = self.scores.shape();
        let list = |list| Resident::of(&cuda.context, list).pointer();
        let facts = cuda.scratch(rows * 2 * 4);
        launch!(
            cuda, Program::Heads, "class_entropy", [rows.div_ceil(ROWS), 1, 1], [THREADS, 1, 1], 0;
            from(self.scores), list(self.widths), list(self.targets), rows as i32, cols as i32,
            self.weight, facts.pointer, dscores.map_or(0, into),
        );
        sum_facts(cuda, facts.pointer, rows, false, score);
    }
}

pub(super) fn block_dots(cuda: &Cuda, x: &Tensor, z: &Tensor, y: &mut Tensor) {
    let (dim, blocks, count) = (z.cols(), y.cols(), y.len());
    let name = if lanes(dim) == 8 { "block_dots_8" } else { "block_dots_1" };
    launch!(
        cuda, Program::Heads, name, [count.div_ceil(ROWS), 1, 1], [THREADS, 1, 1], 0;
        from(x), from(z), count as u64, blocks as i32, dim as i32, into(y),
    );
}

pub(super) fn block_dots_grad(
    cuda: &Cuda,
    x: &Tensor,
    z: &Tensor,
    dy: &Tensor,
    dx: &mut Tensor,
    dz: &mut Tensor,
) {
    let ((rows, dim), blocks) = (z.shape(), dy.cols());
    let name = if lanes(dim) == 8 { "block_dots_grad_8" } else { "block_dots_grad_1" };
    launch!(
        cuda, Program::Heads, name, [rows, 1, 1], [THREADS, 1, 1], 0;
        from(x), from(z), from(dy), blocks as i32, dim as i32, into(dx), into(dz),
    );
}

/// Pairs of queries and keys within sequences.
pub(super) struct Pairs<'a> {
    pub(super) queries: &'a Spans,
    pub(super) keys: &'a Spans,
}

impl Pairs<'_> {
    pub(super) fn scores(&self, cuda: &Cuda, q: &Tensor, k: &Tensor, y: &mut Tensor) {
        let (dim, cols) = (q.cols(), y.cols());
        let names = ["pair_scores_8", "pair_scores_1"];
        self.launch(cuda, names, [q, k], [dim, cols], [self.queries.longest(), cols], y);
    }

    /// From the gradient of the scores to that of the queries.
    pub(super) fn query_grad(&self, cuda: &Cuda, dy: &Tensor, k: &Tensor, dq: &mut Tensor) {
        let (dim, cols) = (k.cols(), dy.cols());
        let names = ["pair_scores_dq_8", "pair_scores_dq_1"];
        self.launch(cuda, names, [dy, k], [dim, cols], [self.queries.longest(), dim], dq);
    }

    /// From the gradient of the scores to that of the keys.
    pub(super) fn key_grad(&self, cuda: &Cuda, dy: &Tensor, q: &Tensor, dk: &mut Tensor) {
        let (dim, cols) = (q.cols(), dy.cols());
        let names = ["pair_scores_dk_8", "pair_scores_dk_1"];
        self.launch(cuda, names, [dy, q], [dim, cols], [self.keys.longest(), dim], dk);
    }

    /// Runs the kernel for a width that is a multiple of eight, or the other. `most` are the most rows
    /// and columns of the result that a sequence has.
    fn launch(
        &self,
        cuda: &Cuda,
        names: [&'static str; 2],
        [left, right]: [&Tensor; 2],
        [dim, cols]: [usize; 2],
        most: [usize; 2],
        out: &mut Tensor,
    ) {
        let name = if lanes(dim) == 8 { names[0] } else { names[1] };
        let [down, across] = most.map(|most| most.div_ceil(SIDE));
        let starts = |spans: &Spans| Resident::of(&cuda.context, spans.starts()).pointer();
        launch!(
            cuda, Program::Heads, name, [self.queries.count(), down, across], [THREADS, 1, 1], 0;
            from(left), from(right), starts(self.queries), starts(self.keys), dim as i32,
            cols as i32, into(out),
        );
    }
}
