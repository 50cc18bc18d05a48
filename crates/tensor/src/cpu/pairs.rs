//! Scores of pairs of rows, as a biaffine parser needs them: every word against every other of its
//! sentence, and one word against one other under many labels.

#![allow(unsafe_code, reason = "sequences write different rows of one matrix")]

use std::ops::Range;

use rayon::prelude::*;

use super::math::dot;
use super::matmul::{MatrixView, MatrixViewMut, Write, multiply};
use super::{Cpu, classes, task_rows};
use crate::dispatch;
use crate::kernels::{ClassSoftmax, HeadKernels, PairGrads, PairSpans};
use crate::value::Tensor;

/// Some rows of a matrix, and of those the first `cols` columns.
fn part(x: &Tensor, rows: Range<usize>, cols: usize) -> MatrixView<'_> {
    MatrixView::new(&x.as_slice()[rows.start * x.cols()..], rows.len(), cols, x.cols())
}

impl HeadKernels for Cpu {
    fn cross_entropy(
        &self,
        softmax: ClassSoftmax<'_>,
        score: &mut Tensor,
        dscores: Option<&mut Tensor>,
    ) {
        self.threads.install(|| classes::run(self, &softmax, score, dscores));
    }

    fn pair_scores(&self, q: &Tensor, k: &Tensor, spans: PairSpans<'_>, y: &mut Tensor) {
        self.threads.install(|| {
            let PairSpans { queries, keys } = spans;
            let (dim, cols) = (q.cols(), y.cols());
            let y = MatrixViewMut::of(y);
            (0..queries.count()).into_par_iter().for_each(|sequence| {
                let (rows, keys) = (queries.get(sequence), keys.get(sequence));
                if rows.is_empty() {
                    return;
                }
                // SAFETY: sequences have different rows.
                let mut y = unsafe { y.block(rows.clone(), 0..cols) };
                y.fill(0.0);
                // SAFETY: the whole rows are borrowed above and not used while this block lives.
                let mut y = unsafe { y.block(0..rows.len(), 0..keys.len()) };
                multiply(&mut y, Write::Overwrite, 1.0, part(q, rows, dim), part(k, keys, dim).t());
            });
        });
    }

    fn pair_scores_grad(
        &self,
        q: &Tensor,
        k: &Tensor,
        PairSpans { queries, keys }: PairSpans<'_>,
        dy: &Tensor,
        grads: PairGrads<'_>,
    ) {
        self.threads.install(|| {
            let dim = q.cols();
            let (dq, dk) = (MatrixViewMut::of(grads.left), MatrixViewMut::of(grads.right));
            (0..queries.count()).into_par_iter().for_each(|sequence| {
                let (rows, keys) = (queries.get(sequence), keys.get(sequence));
                if keys.is_empty() {
                    return;
                }
                // SAFETY: sequences have different rows, of queries as of keys.
                let mut dk = unsafe { dk.block(keys.clone(), 0..dim) };
                if rows.is_empty() {
                    return dk.fill(0.0);
                }
                // SAFETY: as above.
                let mut dq = unsafe { dq.block(rows.clone(), 0..dim) };
                let dy = part(dy, rows.clone(), keys.len());
                multiply(&mut dq, Write::Overwrite, 1.0, dy, part(k, keys, dim));
                multiply(&mut dk, Write::Overwrite, 1.0, dy.t(), part(q, rows, dim));
            });
        });
    }

    fn block_dots(&self, x: &Tensor, z: &Tensor, y: &mut Tensor) {
        self.threads.install(|| {
            let (dim, blocks) = (z.cols(), y.cols());
            let height = task_rows(x.cols());
            let tasks = y.as_mut_slice().par_chunks_mut(height * blocks);
            tasks.enumerate().for_each(|(task, y)| {
                dispatch!(self.arch, || {
                    for (row, y) in (task * height..).zip(y.chunks_mut(blocks)) {
                        let z = &z.as_slice()[row * dim..(row + 1) * dim];
                        let x = x.as_slice()[row * x.cols()..].chunks(dim);
                        for (y, x) in y.iter_mut().zip(x) {
                            *y = dot(x, z);
                        }
                    }
                });
            });
        });
    }

    fn block_dots_grad(
        &self,
        x: &Tensor,
        z: &Tensor,
        dy: &Tensor,
        PairGrads { left: dx, right: dz }: PairGrads<'_>,
    ) {
        self.threads.install(|| {
            let (dim, blocks, wide) = (z.cols(), dy.cols(), x.cols());
            let height = task_rows(wide);
            let dx = dx.as_mut_slice().par_chunks_mut(height * wide);
            let dz = dz.as_mut_slice().par_chunks_mut(height * dim);
            dx.zip(dz).enumerate().for_each(|(task, (dx, dz))| {
                dispatch!(self.arch, || {
                    let rows = dx.chunks_mut(wide).zip(dz.chunks_mut(dim));
                    for (row, (dx, dz)) in (task * height..).zip(rows) {
                        let z = &z.as_slice()[row * dim..(row + 1) * dim];
                        let dy = &dy.as_slice()[row * blocks..(row + 1) * blocks];
                        let x = x.as_slice()[row * wide..].chunks(dim);
                        dz.fill(0.0);
                        for ((dx, x), &dy) in dx.chunks_mut(dim).zip(x).zip(dy) {
                            for col in 0..dim {
                                dx[col] = dy * z[col];
                                dz[col] += dy * x[col];
                            }
                        }
                    }
                });
            });
        });
    }
}
