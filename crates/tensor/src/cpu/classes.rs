//! Softmax and cross-entropy over a few classes, whose logits are in memory.

use rayon::prelude::*;

use super::math::{max, sum};
use super::{Cpu, task_rows};
use crate::dispatch;
use crate::kernels::ClassSoftmax;
use crate::math::exp;
use crate::value::Tensor;

/// Losses and gradients row by row; the sums are taken in the order of the rows.
pub(super) fn run(
    cpu: &Cpu,
    softmax: &ClassSoftmax<'_>,
    score: &mut Tensor,
    dscores: Option<&mut Tensor>,
) {
    let (rows, cols) = softmax.scores.shape();
    if rows == 0 {
        return score.as_mut_slice().fill(0.0);
    }
    let height = task_rows(cols);
    let (mut results, mut scratch) = (cpu.scratch(2 * rows), None);
    let probabilities = match dscores {
        Some(dscores) => dscores.as_mut_slice(),
        None => scratch.insert(cpu.scratch(rows * cols)).as_mut_slice(),
    };
    let tasks = probabilities.par_chunks_mut(height * cols);
    let results_of = results.as_mut_slice().par_chunks_mut(2 * height);
    tasks.zip(results_of).enumerate().for_each(|(task, (out, results))| {
        dispatch!(cpu.arch, || {
            let rows = out.chunks_mut(cols).zip(results.chunks_mut(2));
            for (row, (out, results)) in (task * height..).zip(rows) {
                results.copy_from_slice(&row_loss(softmax, row, out));
            }
        });
    });
    let totals = results.as_slice().chunks(2).fold([0.0, 0.0], |[loss, correct], row| {
        [loss + f64::from(row[0]), correct + f64::from(row[1])]
    });
    score.as_mut_slice().copy_from_slice(&totals.map(|total| total as f32));
}

/// The loss of a row, and whether its target was highest; `out` becomes its gradient.
#[inline(always)]
fn row_loss(softmax: &ClassSoftmax<'_>, row: usize, out: &mut [f32]) -> [f32; 2] {
    let cols = out.len();
    let (width, target) = (softmax.widths[row] as usize, softmax.targets[row] as usize);
    let scores = &softmax.scores.as_slice()[row * cols..row * cols + width];
    let highest = max(scores);
    let (out, beyond) = out.split_at_mut(width);
    beyond.fill(0.0);
    for (out, &score) in out.iter_mut().zip(scores) {
        *out = exp(score - highest);
    }
    let total = sum(out);
    let factor = softmax.weight / total;
    for out in out.iter_mut() {
        *out *= factor;
    }
    out[target] -= softmax.weight;
    let loss = total.ln() + highest - scores[target];
    [loss, f32::from(scores[target] == highest)]
}
