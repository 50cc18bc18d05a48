//! Affine maps: one product, and what follows it while the block is warm.

#![allow(unsafe_code, reason = "blocks of one matrix are finished by different threads")]

use pulp::Arch;
use std::ops::Range;

use super::Cpu;
use super::math::gelu;
use super::matmul::{View, ViewMut, Write, multiply_parallel, transpose};
use crate::kernels::Grad;
use crate::value::Tensor;

pub(super) fn forward(
    arch: Arch,
    x: &Tensor,
    weight: &Tensor,
    bias: &Tensor,
    y: &mut Tensor,
    slope: Option<&mut Tensor>,
) {
    let y = ViewMut::of(y);
    let slope = slope.map(ViewMut::of);
    let finish = |rows: Range<usize>, cols: Range<usize>| {
        let bias = &bias.as_slice()[cols.clone()];
        arch.dispatch(|| {
            for row in rows.clone() {
                // SAFETY: `finish` is called once for each block, and blocks share no element.
                let y = unsafe { y.segment(row, cols.clone()) };
                for (y, &b) in y.iter_mut().zip(bias) {
                    *y += b;
                }
                if let Some(slope) = &slope {
                    // SAFETY: as above.
                    let slope = unsafe { slope.segment(row, cols.clone()) };
                    for (y, slope) in y.iter_mut().zip(slope) {
                        (*y, *slope) = gelu(*y);
                    }
                }
            }
        });
    };
    multiply_parallel(&y, Write::Overwrite, View::of(x), View::of(weight), finish);
}

pub(super) fn input_grad(cpu: &Cpu, dy: &Tensor, weight: &Tensor, dx: Grad<'_>) {
    // The product wants its right side row after row; transposing the weights once is cheaper than
    // having every block pack them column after column.
    let mut turned = cpu.scratch(weight.len());
    transpose(cpu.arch, weight.as_slice(), weight.cols(), turned.as_mut_slice());
    let turned = View::new(turned.as_slice(), weight.cols(), weight.rows(), weight.rows());
    let write = Write::accumulate(dx.accumulate);
    multiply_parallel(&ViewMut::of(dx.tensor), write, View::of(dy), turned, |_, _| {});
}

pub(super) fn weight_grad(x: &Tensor, dy: &Tensor, dw: Grad<'_>) {
    let write = Write::accumulate(dw.accumulate);
    multiply_parallel(&ViewMut::of(dw.tensor), write, View::of(x).t(), View::of(dy), |_, _| {});
}

pub(super) fn logits(arch: Arch, hidden: &Tensor, table: &Tensor, bias: &Tensor, y: &mut Tensor) {
    let y = ViewMut::of(y);
    let finish = |rows: Range<usize>, cols: Range<usize>| {
        arch.dispatch(|| {
            for row in rows.clone() {
                // SAFETY: `finish` is called once for each block, and blocks share no element.
                let y = unsafe { y.segment(row, cols.clone()) };
                for (y, &b) in y.iter_mut().zip(&bias.as_slice()[cols.clone()]) {
                    *y += b;
                }
            }
        });
    };
    multiply_parallel(&y, Write::Overwrite, View::of(hidden), View::of(table).t(), finish);
}
