//! LayerNorm (Ba et al. 2016) and the residual connection before it: a warp for each row.

use super::block::PartialSums;
use super::linear::sum_partials;
use super::{Cuda, Drops, Program, ROWS, THREADS, at, lanes, launch, to};
use crate::cuda::fault::{fail, unknown};
use crate::kernels::{
    Grad, HeadTurn, NormForward, NormGrads, NormKernels, NormKind, NormWeights, ResidualSum,
};
use crate::random::{Dropout, Key};
use crate::value::Tensor;

/// The most columns that a lane holds in registers and what they spill to.
const MOST: usize = 128;

/// The most columns whose sums are taken along, as the kernels have it.
const SUMMED: usize = 32 * 32;

/// The program for rows of so many columns.
pub(super) fn program(cols: usize) -> Program {
    let lanes = lanes(cols);
    let slabs = cols.div_ceil(32 * lanes).max(1);
    if slabs * lanes > MOST {
        let most = 32 * MOST;
        fail(format!(
            "the GPU's LayerNorm takes {most} columns at most, not {cols}: lower encoder.dim"
        ));
    }
    Program::Norm { lanes, slabs }
}

/// The offset of a LayerNorm.
fn offset(weights: NormWeights<'_>) -> u64 {
    match (weights.kind, weights.beta) {
        (NormKind::Layer, Some(beta)) => at(beta),
        _ => unknown("RMSNorm and norms without an offset"),
    }
}

fn grid(rows: usize) -> [usize; 3] {
    [rows.div_ceil(ROWS), 1, 1]
}

impl NormKernels for Cuda {
    fn residual(&self, ResidualSum { x, update, dropout }: ResidualSum<'_>, sum: &mut Tensor) {
        let (rows, cols) = x.shape();
        launch!(
            self, program(cols), "residual", grid(rows), [THREADS, 1, 1], 0;
            at(x), at(update), Drops::from(dropout), rows as i32, cols as i32, to(sum),
        );
    }

    fn residual_norm(
        &self,
        ResidualSum { x, update, dropout }: ResidualSum<'_>,
        weights: NormWeights<'_>,
        sum: &mut Tensor,
        y: &mut Tensor,
        stats: &mut Tensor,
    ) {
        let (rows, cols) = x.shape();
        launch!(
            self, program(cols), "residual_norm", grid(rows), [THREADS, 1, 1], 0;
            at(x), at(update), Drops::from(dropout), at(weights.gamma), offset(weights),
            weights.epsilon, rows as i32, cols as i32, to(sum), to(y), to(stats),
        );
    }

    fn norm(&self, x: &Tensor, weights: NormWeights<'_>, y: &mut Tensor, stats: &mut Tensor) {
        let (rows, cols) = x.shape();
        launch!(
            self, program(cols), "layer_norm", grid(rows), [THREADS, 1, 1], 0;
            at(x), at(weights.gamma), offset(weights), weights.epsilon, rows as i32, cols as i32,
            to(y), to(stats),
        );
    }

    fn norm_grad(
        &self,
        NormForward { x, stats, weights }: NormForward<'_>,
        dy: &Tensor,
        dx: Grad<'_>,
        dropped: Option<(Dropout, &mut Tensor)>,
        weight_grads: NormGrads<'_>,
    ) {
        offset(weights);
        let (rows, cols) = x.shape();
        let blocks = rows.div_ceil(ROWS).min(2 * self.context.sms as usize);
        // Gradients of scale and offset, and the sum of the update's, which a bias wants.
        let takes_sums = dropped.is_some() && cols <= SUMMED;
        let lists = if takes_sums { 3 } else { 2 };
        let partial = self.scratch(blocks * lists * cols * 4);
        let nothing = Dropout { rate: 0.0, key: Key { seed: 0, step: 0, stream: 0 } };
        let (dropout, mut dropped) =
            dropped.map_or((nothing, None), |(dropout, x)| (dropout, Some(x)));
        let to_dropped = dropped.as_mut().map_or(0, |dropped| to(dropped));
        launch!(
            self, program(cols), "norm_grad", [blocks, 1, 1], [THREADS, 1, 1], 0;
            at(x), at(stats), at(weights.gamma), at(dy), rows as i32, cols as i32, to(dx.tensor),
            i32::from(dx.accumulate), Drops::from(dropout), to_dropped, partial.pointer,
        );
        let sinks = [weight_grads.gamma, weight_grads.beta];
        let stride = lists * cols;
        sum_partials(self, partial.pointer, blocks, stride, cols, sinks);
        if let Some(dropped) = dropped.filter(|_| takes_sums) {
            let parts = PartialSums { memory: partial, skip: 2 * cols, count: blocks, stride };
            dropped.buffer_mut().block_mut().take_parts(parts);
        }
    }

    fn turn(&self, _: &Tensor, _: HeadTurn<'_>, _: &mut Tensor, _: Option<&mut Tensor>) {
        unknown("turned or normalised heads");
    }

    fn turn_grad(
        &self,
        _: &Tensor,
        _: HeadTurn<'_>,
        _: Option<&Tensor>,
        _: &Tensor,
        _: &mut Tensor,
        _: NormGrads<'_>,
    ) {
        unknown("turned or normalised heads");
    }
}
