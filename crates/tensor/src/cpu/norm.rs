//! LayerNorm (Ba et al. 2016), RMSNorm (Zhang and Sennrich 2019) and the residual connection before them, a row at a time.

use rayon::prelude::*;

use super::math::{dot, sum, sum_squares};
use super::{Cpu, task_rows, turn};
use crate::dispatch;
use crate::kernels::{
    Grad, HeadTurn, NormForward, NormGrads, NormKernels, NormKind, NormWeights, ResidualSum,
    RowKernels as _,
};
use crate::random::Dropout;
use crate::value::Tensor;

/// `sum = x + dropout(update)` of one row.
#[inline(always)]
fn add_dropped(x: &[f32], update: &[f32], dropout: Dropout, row: u32, sum: &mut [f32]) {
    if dropout.rate == 0.0 {
        for ((sum, &x), &update) in sum.iter_mut().zip(x).zip(update) {
            *sum = x + update;
        }
    } else {
        dropout.factors(row, sum);
        for ((sum, &x), &update) in sum.iter_mut().zip(x).zip(update) {
            *sum = x + *sum * update;
        }
    }
}

/// A norm of one row; returns its mean and inverse standard deviation.
#[inline(always)]
pub(super) fn normalise(x: &[f32], weights: NormWeights<'_>, y: &mut [f32]) -> [f32; 2] {
    let mean = match weights.kind {
        NormKind::Layer => sum(x) / x.len() as f32,
        NormKind::Rms => 0.0,
    };
    let inverse = 1.0 / (sum_squares(x, mean) / x.len() as f32 + weights.epsilon).sqrt();
    let rows = y.iter_mut().zip(x).zip(weights.gamma.as_slice());
    match weights.beta {
        Some(beta) => {
            for (((y, &x), &gamma), &beta) in rows.zip(beta.as_slice()) {
                *y = (x - mean) * inverse * gamma + beta;
            }
        }
        None => {
            for ((y, &x), &gamma) in rows {
                *y = (x - mean) * inverse * gamma;
            }
        }
    }
    [mean, inverse]
}

impl NormKernels for Cpu {
    fn residual(&self, ResidualSum { x, update, dropout }: ResidualSum<'_>, sum: &mut Tensor) {
        self.threads.install(|| {
            let (cols, height) = (x.cols(), task_rows(x.cols()));
            sum.as_mut_slice().par_chunks_mut(height * cols).enumerate().for_each(|(task, sum)| {
                let rows = task * height * cols..;
                let (x, update) = (&x.as_slice()[rows.clone()], &update.as_slice()[rows]);
                dispatch!(self.arch, || {
                    for (row, sum) in sum.chunks_mut(cols).enumerate() {
                        let at = row * cols..(row + 1) * cols;
                        add_dropped(
                            &x[at.clone()],
                            &update[at],
                            dropout,
                            (task * height + row) as u32,
                            sum,
                        );
                    }
                });
            });
        });
    }

    fn residual_norm(
        &self,
        ResidualSum { x, update, dropout }: ResidualSum<'_>,
        weights: NormWeights<'_>,
        sum: &mut Tensor,
        y: &mut Tensor,
        stats: &mut Tensor,
    ) {
        self.threads.install(|| {
            let (cols, height) = (x.cols(), task_rows(x.cols()));
            let tasks = sum
                .as_mut_slice()
                .par_chunks_mut(height * cols)
                .zip(y.as_mut_slice().par_chunks_mut(height * cols))
                .zip(stats.as_mut_slice().par_chunks_mut(height * 2));
            tasks.enumerate().for_each(|(task, ((sum, y), stats))| {
                let rows = task * height * cols..;
                let (x, update) = (&x.as_slice()[rows.clone()], &update.as_slice()[rows]);
                let rows = sum.chunks_mut(cols).zip(y.chunks_mut(cols)).zip(stats.chunks_mut(2));
                dispatch!(self.arch, || {
                    for (row, ((sum, y), stats)) in rows.enumerate() {
                        let at = row * cols..(row + 1) * cols;
                        add_dropped(
                            &x[at.clone()],
                            &update[at],
                            dropout,
                            (task * height + row) as u32,
                            sum,
                        );
                        stats.copy_from_slice(&normalise(sum, weights, y));
                    }
                });
            });
        });
    }

    fn norm(&self, x: &Tensor, weights: NormWeights<'_>, y: &mut Tensor, stats: &mut Tensor) {
        self.threads.install(|| {
            let (cols, height) = (x.cols(), task_rows(x.cols()));
            let tasks = y
                .as_mut_slice()
                .par_chunks_mut(height * cols)
                .zip(stats.as_mut_slice().par_chunks_mut(height * 2))
                .zip(x.as_slice().par_chunks(height * cols));
            tasks.for_each(|((y, stats), x)| {
                let rows = y.chunks_mut(cols).zip(stats.chunks_mut(2)).zip(x.chunks(cols));
                dispatch!(self.arch, || {
                    for ((y, stats), x) in rows {
                        stats.copy_from_slice(&normalise(x, weights, y));
                    }
                });
            });
        });
    }

    fn norm_grad(
        &self,
        forward: NormForward<'_>,
        dy: &Tensor,
        dx: Grad<'_>,
        dropped: Option<(Dropout, &mut Tensor)>,
        weight_grads: NormGrads<'_>,
    ) {
        self.threads.install(|| {
            let Grad { tensor, accumulate } = dx;
            let written = Grad { tensor: &mut *tensor, accumulate };
            backward(self, forward, dy, written, weight_grads);
            if let Some((dropout, dropped)) = dropped {
                self.dropout(tensor, dropout, dropped);
            }
        });
    }

    fn turn(&self, x: &Tensor, turn: HeadTurn<'_>, y: &mut Tensor, stats: Option<&mut Tensor>) {
        self.threads.install(|| turn::forward(self, x, turn, y, stats));
    }

    fn turn_grad(
        &self,
        x: &Tensor,
        turn: HeadTurn<'_>,
        stats: Option<&Tensor>,
        dy: &Tensor,
        dx: &mut Tensor,
        weight_grads: NormGrads<'_>,
    ) {
        self.threads.install(|| turn::backward(self, x, turn, stats, dy, dx, weight_grads));
    }
}

/// The backward pass of one row: adds to the gradients of the weights, and writes or adds to `dx`.
#[inline(always)]
pub(super) fn row_backward(
    [mean, inverse]: [f32; 2],
    (kind, gamma): (NormKind, &[f32]),
    (x, dy): (&[f32], &[f32]),
    (normed, scaled): (&mut [f32], &mut [f32]),
    (dgamma, dbeta): (&mut [f32], &mut [f32]),
    (dx, accumulate): (&mut [f32], bool),
) {
    for i in 0..normed.len() {
        normed[i] = (x[i] - mean) * inverse;
        scaled[i] = dy[i] * gamma[i];
        dgamma[i] += dy[i] * normed[i];
        dbeta[i] += dy[i];
    }
    let share = 1.0 / normed.len() as f32;
    let flat = match kind {
        NormKind::Layer => sum(scaled) * share,
        NormKind::Rms => 0.0,
    };
    let along = dot(scaled, normed) * share;
    for i in 0..dx.len() {
        let before = if accumulate { dx[i] } else { 0.0 };
        dx[i] = before + inverse * (scaled[i] - flat - normed[i] * along);
    }
}

fn backward(
    cpu: &Cpu,
    NormForward { x, stats, weights }: NormForward<'_>,
    dy: &Tensor,
    dx: Grad<'_>,
    weight_grads: NormGrads<'_>,
) {
    let (cols, height) = (x.cols(), task_rows(x.cols()));
    let gamma = weights.gamma.as_slice();
    let Grad { tensor: dx, accumulate } = dx;
    let tasks = x.rows().div_ceil(height);
    // For each task: its sums for scale and offset, then two rows to work in.
    let mut partial = cpu.scratch(tasks * 4 * cols);
    let chunks = partial
        .as_mut_slice()
        .par_chunks_mut(4 * cols)
        .zip(dx.as_mut_slice().par_chunks_mut(height * cols))
        .zip(x.as_slice().par_chunks(height * cols))
        .zip(dy.as_slice().par_chunks(height * cols))
        .zip(stats.as_slice().par_chunks(height * 2));
    chunks.for_each(|((((partial, dx), x), dy), stats)| {
        partial[..2 * cols].fill(0.0);
        let (sums, work) = partial.split_at_mut(2 * cols);
        let (dgamma, dbeta) = sums.split_at_mut(cols);
        let (normed, scaled) = work.split_at_mut(cols);
        let rows =
            dx.chunks_mut(cols).zip(x.chunks(cols)).zip(dy.chunks(cols)).zip(stats.chunks(2));
        dispatch!(cpu.arch, || {
            for (((out, x), dy), stats) in rows {
                row_backward(
                    [stats[0], stats[1]],
                    (weights.kind, &gamma[..cols]),
                    (&x[..cols], &dy[..cols]),
                    (&mut normed[..cols], &mut scaled[..cols]),
                    (&mut dgamma[..cols], &mut dbeta[..cols]),
                    (&mut out[..cols], accumulate),
                );
            }
        });
    });
    add_partials(partial.as_slice(), cols, weight_grads);
}

/// Adds up the tasks' sums for scale and offset, which are followed by what they worked in: as wide as both together.
pub(super) fn add_partials(partial: &[f32], cols: usize, weight_grads: NormGrads<'_>) {
    for (grad, offset) in [(weight_grads.gamma, 0), (weight_grads.beta, cols)] {
        let Some(Grad { tensor, accumulate }) = grad else { continue };
        let total = tensor.as_mut_slice();
        if !accumulate {
            total.fill(0.0);
        }
        for partial in partial.chunks(4 * cols) {
            for (total, &part) in total.iter_mut().zip(&partial[offset..offset + cols]) {
                *total += part;
            }
        }
    }
}
