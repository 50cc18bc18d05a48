//! The arithmetic of a batch, on one thread's columns.
//!
//! Both halves go over strips of columns that fit into registers, and within a strip over targets:
//! the hidden vector (and, in the backward pass, its gradient) stays in registers while rows of the output
//! table pass by. Rows lie all over memory; since no dot product waits for another, the processor
//! fetches many at once.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};
use tensor::math::exp;

use super::windows::{TRUE, WindowPlan};
use crate::columns::{ColumnMatrix, ColumnShare, LINE};

/// One thread's columns of both tables.
pub(super) struct ThreadTables {
    pub(super) share: ColumnShare,
    pub(super) input: ColumnMatrix,
    pub(super) output: ColumnMatrix,
}

pub(super) type WindowRange = Range<usize>;

/// Each target's dot product with its window's hidden vector, in parts: units x targets.
pub(super) fn dots(
    arch: Arch,
    tables: &ThreadTables,
    plan: &WindowPlan,
    batch: WindowRange,
    parts: &mut [f32],
) {
    arch.dispatch(Dots { tables, plan, batch, parts });
}

/// Moves both tables by each target's coefficient.
pub(super) fn update(
    arch: Arch,
    tables: &mut ThreadTables,
    plan: &WindowPlan,
    batch: WindowRange,
    coefficients: &[f32],
) {
    arch.dispatch(Update { tables, plan, batch, coefficients });
}

/// From dot products to coefficients, lr · (label - p); returns the loss, the sum of `-ln p` of
/// positives and `-ln (1 - p)` of negatives.
pub(super) fn coefficients(arch: Arch, targets: &[u32], lr: f32, dots: &mut [f32]) -> f64 {
    tensor::dispatch!(arch, || {
        let mut loss = 0.0;
        for (dots, targets) in dots.chunks_mut(LOSS_TERMS).zip(targets.chunks(LOSS_TERMS)) {
            loss += some_coefficients(targets, lr, dots);
        }
        loss
    })
}

/// Sixteen lanes of 64 factors, each at most 2, are well within what a float can hold.
const LOSS_TERMS: usize = 64 * LINE;

/// A loss is `ln (1 + e^-|x|)` and, where the prediction is wrong, `|x|` besides. The first is taken of
/// the product of many, so that one logarithm does for all.
#[inline(always)]
fn some_coefficients(targets: &[u32], lr: f32, dots: &mut [f32]) -> f64 {
    let (mut product, mut wrong) = ([1.0f32; LINE], [0.0f32; LINE]);
    let mut one = |lane: usize, dot: &mut f32, target: u32| {
        let x = *dot;
        let small = exp(-x.abs());
        let p = if x >= 0.0 { 1.0 } else { small } / (1.0 + small);
        *dot = lr * (if target >= TRUE { 1.0 } else { 0.0 } - p);
        product[lane] *= 1.0 + small;
        let right = if target >= TRUE { x } else { -x };
        wrong[lane] += if right < 0.0 { -right } else { 0.0 };
    };
    let (whole, rest) = dots.as_chunks_mut::<LINE>();
    let (whole_targets, rest_targets) = targets.as_chunks::<LINE>();
    for (dots, targets) in whole.iter_mut().zip(whole_targets) {
        for lane in 0..LINE {
            one(lane, &mut dots[lane], targets[lane]);
        }
    }
    for (lane, (dot, &target)) in rest.iter_mut().zip(rest_targets).enumerate() {
        one(lane, dot, target);
    }
    product.iter().zip(wrong).map(|(product, wrong)| f64::from(product.ln() + wrong)).sum()
}

/// Registers in a strip of columns.
const STRIP: usize = 4;

struct Dots<'a> {
    tables: &'a ThreadTables,
    plan: &'a WindowPlan,
    batch: WindowRange,
    parts: &'a mut [f32],
}

impl WithSimd for Dots<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { tables, plan, batch, parts } = self;
        let first = plan.ends(batch.start);
        let targets = plan.ends(batch.end)[1] - first[1];
        let mut from = first;
        for window in batch {
            let to = plan.ends(window + 1);
            let inputs = &plan.inputs[from[0]..to[0]];
            for (unit, within) in tables.share.within.iter().enumerate() {
                let parts = &mut parts[unit * targets..][from[1] - first[1]..to[1] - first[1]];
                let mut window =
                    Window { simd, tables, inputs, targets: &plan.targets[from[1]..to[1]], parts };
                window.dots(within.clone());
            }
            from = to;
        }
    }
}

struct Window<'a, S> {
    simd: S,
    tables: &'a ThreadTables,
    inputs: &'a [u32],
    targets: &'a [u32],
    parts: &'a mut [f32],
}

impl<S: Simd> Window<'_, S> {
    #[inline(always)]
    fn dots(&mut self, unit: Range<usize>) {
        let mut at = unit.start;
        while at < unit.end {
            let first = at == unit.start;
            let registers = ((unit.end - at) / S::F32_LANES).min(STRIP);
            match registers {
                4 => self.strip::<4>(at, first),
                3 => self.strip::<3>(at, first),
                2 => self.strip::<2>(at, first),
                _ => self.strip::<1>(at, first),
            }
            at += registers * S::F32_LANES;
        }
    }

    #[inline(always)]
    fn strip<const N: usize>(&mut self, at: usize, first: bool) {
        let simd = self.simd;
        let hidden = hidden::<S, N>(simd, &self.tables.input, self.inputs, at);
        let output = &self.tables.output;
        for (part, &target) in self.parts.iter_mut().zip(self.targets) {
            let row = row::<S, N>(output.values(), output.width, target & !TRUE, at);
            let mut sum = simd.mul_f32s(hidden[0], row[0]);
            for register in 1..N {
                sum = simd.mul_add_e_f32s(hidden[register], row[register], sum);
            }
            let sum = simd.reduce_sum_f32s(sum);
            *part = if first { sum } else { *part + sum };
        }
    }
}

struct Update<'a> {
    tables: &'a mut ThreadTables,
    plan: &'a WindowPlan,
    batch: WindowRange,
    coefficients: &'a [f32],
}

impl WithSimd for Update<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { tables, plan, batch, coefficients } = self;
        let first = plan.ends(batch.start)[1];
        let mut from = plan.ends(batch.start);
        let width = tables.share.width;
        for window in batch {
            let to = plan.ends(window + 1);
            let inputs = &plan.inputs[from[0]..to[0]];
            let targets = &plan.targets[from[1]..to[1]];
            let coefficients = &coefficients[from[1] - first..to[1] - first];
            let mut at = 0;
            while at < width {
                let registers = ((width - at) / S::F32_LANES).min(STRIP);
                match registers {
                    4 => move_strip::<S, 4>(simd, tables, inputs, targets, coefficients, at),
                    3 => move_strip::<S, 3>(simd, tables, inputs, targets, coefficients, at),
                    2 => move_strip::<S, 2>(simd, tables, inputs, targets, coefficients, at),
                    _ => move_strip::<S, 1>(simd, tables, inputs, targets, coefficients, at),
                }
                at += registers * S::F32_LANES;
            }
            from = to;
        }
    }
}

#[inline(always)]
fn move_strip<S: Simd, const N: usize>(
    simd: S,
    tables: &mut ThreadTables,
    inputs: &[u32],
    targets: &[u32],
    coefficients: &[f32],
    at: usize,
) {
    let hidden = hidden::<S, N>(simd, &tables.input, inputs, at);
    let mut gradient = [simd.splat_f32s(0.0); N];
    let width = tables.output.width;
    for (&target, &coefficient) in targets.iter().zip(coefficients) {
        let coefficient = simd.splat_f32s(coefficient);
        let row = row_mut::<S, N>(tables.output.values_mut(), width, target & !TRUE, at);
        for register in 0..N {
            gradient[register] =
                simd.mul_add_e_f32s(coefficient, row[register], gradient[register]);
            row[register] = simd.mul_add_e_f32s(coefficient, hidden[register], row[register]);
        }
    }
    let width = tables.input.width;
    for &input in inputs {
        let row = row_mut::<S, N>(tables.input.values_mut(), width, input, at);
        for register in 0..N {
            row[register] = simd.add_f32s(row[register], gradient[register]);
        }
    }
}

/// The mean of the input rows, a strip of it.
#[inline(always)]
fn hidden<S: Simd, const N: usize>(
    simd: S,
    table: &ColumnMatrix,
    inputs: &[u32],
    at: usize,
) -> [S::f32s; N] {
    let mut sum = *row::<S, N>(table.values(), table.width, inputs[0], at);
    if inputs.len() > 1 {
        for &input in &inputs[1..] {
            let row = row::<S, N>(table.values(), table.width, input, at);
            for register in 0..N {
                sum[register] = simd.add_f32s(sum[register], row[register]);
            }
        }
        let share = simd.splat_f32s(1.0 / inputs.len() as f32);
        for sum in &mut sum {
            *sum = simd.mul_f32s(*sum, share);
        }
    }
    sum
}

#[inline(always)]
fn row<S: Simd, const N: usize>(
    values: &[f32],
    width: usize,
    row: u32,
    at: usize,
) -> &[S::f32s; N] {
    let start = row as usize * width + at;
    let (registers, _) = S::as_simd_f32s(&values[start..start + N * S::F32_LANES]);
    registers.try_into().expect("as many registers as asked for")
}

#[inline(always)]
fn row_mut<S: Simd, const N: usize>(
    values: &mut [f32],
    width: usize,
    row: u32,
    at: usize,
) -> &mut [S::f32s; N] {
    let start = row as usize * width + at;
    let (registers, _) = S::as_mut_simd_f32s(&mut values[start..start + N * S::F32_LANES]);
    registers.try_into().expect("as many registers as asked for")
}
