//! Softmax and cross-entropy over a few classes, whose scores stand in memory.

use rayon::prelude::*;

use super::math::{exp, max, sum};
use super::{Cpu, task_rows};
use crate::value::{Indices, Tensor};

/// Scores and what they should have been.
pub(super) struct Softmax<'a> {
    pub(super) scores: &'a Tensor,
    /// How many of a row's columns count.
    pub(super) widths: &'a Indices,
    pub(super) targets: &'a Indices,
    pub(super) weight: f32,
}

impl Softmax<'_> {
    /// Losses and gradients row by row; the sums are taken in the order of the rows.
    pub(super) fn run(&self, cpu: &Cpu, score: &mut Tensor, dscores: Option<&mut Tensor>) {
        let (rows, cols) = self.scores.shape();
        if rows == 0 {
            return score.as_mut_slice().fill(0.0);
        }
        let height = task_rows(cols);
        let (mut facts, mut scratch) = (cpu.scratch(2 * rows), None);
        let probabilities = match dscores {
            Some(dscores) => dscores.as_mut_slice(),
            None => scratch.insert(cpu.scratch(rows * cols)).as_mut_slice(),
        };
        let tasks = probabilities.par_chunks_mut(height * cols);
        let facts_of = facts.as_mut_slice().par_chunks_mut(2 * height);
        tasks.zip(facts_of).enumerate().for_each(|(task, (out, facts))| {
            cpu.arch.dispatch(|| {
                let rows = out.chunks_mut(cols).zip(facts.chunks_mut(2));
                for (row, (out, facts)) in (task * height..).zip(rows) {
                    facts.copy_from_slice(&self.row(row, out));
                }
            });
        });
        let totals = facts.as_slice().chunks(2).fold([0.0, 0.0], |[loss, right], row| {
            [loss + f64::from(row[0]), right + f64::from(row[1])]
        });
        score.as_mut_slice().copy_from_slice(&totals.map(|total| total as f32));
    }

    /// The loss of a row, and whether its target was highest; `out` becomes its gradient.
    #[inline(always)]
    fn row(&self, row: usize, out: &mut [f32]) -> [f32; 2] {
        let cols = out.len();
        let (width, target) = (self.widths[row] as usize, self.targets[row] as usize);
        let scores = &self.scores.as_slice()[row * cols..row * cols + width];
        let highest = max(scores);
        let (out, beyond) = out.split_at_mut(width);
        beyond.fill(0.0);
        for (out, &score) in out.iter_mut().zip(scores) {
            *out = exp(score - highest);
        }
        let total = sum(out);
        let factor = self.weight / total;
        for out in out.iter_mut() {
            *out *= factor;
        }
        out[target] -= self.weight;
        let loss = total.ln() + highest - scores[target];
        [loss, f32::from(scores[target] == highest)]
    }
}
