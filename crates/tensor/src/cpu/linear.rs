//! Affine maps: one matmul, and bias and activation while the block is in the cache.

#![allow(unsafe_code, reason = "blocks of one matrix are finished by different threads")]

use std::ops::Range;

use pulp::Arch;
use rayon::prelude::*;

use super::math::{elu, elu_derivative, gelu, gelu_tanh, relu, relu_derivative, silu};
use super::matmul::{MatrixView, MatrixViewMut, Write, multiply_parallel, transpose};
use super::{Cpu, TASK, rows, task_rows};
use crate::dispatch;
use crate::kernels::{Activation, Grad, GramSum, LinearForward, LinearKernels};
use crate::value::Tensor;

impl LinearKernels for Cpu {
    fn matmul(&self, a: &Tensor, b: &Tensor, y: &mut Tensor) {
        self.threads.install(|| {
            multiply_parallel(
                &MatrixViewMut::of(y),
                Write::Overwrite,
                MatrixView::of(a),
                MatrixView::of(b),
                |_, _| {},
            );
        });
    }

    fn add_gram(&self, a: &Tensor, b: &Tensor, sum: &mut GramSum) {
        self.threads.install(|| {
            let (rows, cols, begun) = (a.cols(), b.cols(), sum.begun);
            let mut product = self.scratch(rows * cols);
            let out = MatrixViewMut::new(product.as_mut_slice(), rows, cols, cols);
            multiply_parallel(
                &out,
                Write::Overwrite,
                MatrixView::of(a).t(),
                MatrixView::of(b),
                |_, _| {},
            );
            let sums: &mut [f64] = bytemuck::cast_slice_mut(sum.wide.as_mut_slice());
            sums.par_chunks_mut(TASK).zip(product.as_slice().par_chunks(TASK)).for_each(
                |(sums, product)| {
                    for (sum, &x) in sums.iter_mut().zip(product) {
                        *sum = if begun { *sum } else { 0.0 } + f64::from(x);
                    }
                },
            );
        });
    }

    fn linear(
        &self,
        x: &Tensor,
        weight: &Tensor,
        bias: Option<&Tensor>,
        activation: Activation,
        y: &mut Tensor,
        derivative: Option<&mut Tensor>,
    ) {
        self.threads.install(|| {
            let y = MatrixViewMut::of(y);
            let derivative = derivative.map(MatrixViewMut::of);
            let finish = |rows: Range<usize>, cols: Range<usize>| {
                let bias = bias.map_or(&[][..], |bias| &bias.as_slice()[cols.clone()]);
                dispatch!(self.arch, || {
                    for row in rows.clone() {
                        // SAFETY: `finish` is called once for each block, and blocks share no element.
                        let y = unsafe { y.segment(row, cols.clone()) };
                        for (y, &b) in y.iter_mut().zip(bias) {
                            *y += b;
                        }
                        // SAFETY: as above.
                        let derivative = derivative
                            .as_ref()
                            .map(|all| unsafe { all.segment(row, cols.clone()) });
                        activate(activation, y, derivative);
                    }
                });
            };
            let (x, weight) = (MatrixView::of(x), MatrixView::of(weight));
            match self.bf16 {
                Some(dots) => dots.multiply_parallel(self, &y, x, weight, finish),
                None => multiply_parallel(&y, Write::Overwrite, x, weight, finish),
            }
        });
    }

    fn gate(&self, x: &Tensor, activation: Activation, y: &mut Tensor) {
        self.threads.install(|| {
            let (half, height) = (y.cols(), task_rows(x.cols()));
            let tasks = y.as_mut_slice().par_chunks_mut(height * half);
            tasks.zip(x.as_slice().par_chunks(2 * height * half)).for_each(|(y, x)| {
                dispatch!(self.arch, || {
                    for (y, x) in y.chunks_mut(half).zip(x.chunks(2 * half)) {
                        let (gate, through) = x.split_at(half);
                        let (y, through) = (&mut y[..half], &through[..half]);
                        each(activation, gate, |at, (value, _)| y[at] = value * through[at]);
                    }
                });
            });
        });
    }

    fn gate_grad(&self, x: &Tensor, activation: Activation, dy: &Tensor, dx: &mut Tensor) {
        self.threads.install(|| {
            let (half, height) = (dy.cols(), task_rows(x.cols()));
            let tasks = dx
                .as_mut_slice()
                .par_chunks_mut(2 * height * half)
                .zip(x.as_slice().par_chunks(2 * height * half))
                .zip(dy.as_slice().par_chunks(height * half));
            tasks.for_each(|((dx, x), dy)| {
                dispatch!(self.arch, || {
                    for ((dx, x), dy) in
                        dx.chunks_mut(2 * half).zip(x.chunks(2 * half)).zip(dy.chunks(half))
                    {
                        let (gate, through) = x.split_at(half);
                        let (dgate, dthrough) = dx.split_at_mut(half);
                        each(activation, gate, |at, (value, derivative)| {
                            dgate[at] = dy[at] * through[at] * derivative;
                            dthrough[at] = dy[at] * value;
                        });
                    }
                });
            });
        });
    }

    fn bias_grad(&self, dy: &mut Tensor, forward: LinearForward<'_>, db: Option<Grad<'_>>) {
        self.threads.install(|| {
            activation_grad(self.arch, dy, forward);
            if let Some(db) = db {
                rows::column_sum(self.arch, dy, db);
            }
        });
    }

    fn linear_input_grad(&self, dy: &Tensor, weight: &Tensor, dx: Grad<'_>) {
        self.threads.install(|| {
            // The matmul wants its right side row after row; transposing the weights once is cheaper than
            // having every block pack them column after column.
            let mut transposed = self.scratch(weight.len());
            transpose(self.arch, weight.as_slice(), weight.cols(), transposed.as_mut_slice());
            let transposed =
                MatrixView::new(transposed.as_slice(), weight.cols(), weight.rows(), weight.rows());
            let write = Write::accumulate(dx.accumulate);
            multiply_parallel(
                &MatrixViewMut::of(dx.tensor),
                write,
                MatrixView::of(dy),
                transposed,
                |_, _| {},
            );
        });
    }

    fn linear_weight_grad(&self, x: &Tensor, dy: &Tensor, dw: Grad<'_>) {
        self.threads.install(|| {
            let write = Write::accumulate(dw.accumulate);
            multiply_parallel(
                &MatrixViewMut::of(dw.tensor),
                write,
                MatrixView::of(x).t(),
                MatrixView::of(dy),
                |_, _| {},
            );
        });
    }

    fn logits(&self, hidden: &Tensor, table: &Tensor, bias: &Tensor, y: &mut Tensor) {
        self.threads.install(|| {
            let y = MatrixViewMut::of(y);
            let finish = |rows: Range<usize>, cols: Range<usize>| {
                dispatch!(self.arch, || {
                    for row in rows.clone() {
                        // SAFETY: `finish` is called once for each block, and blocks share no element.
                        let y = unsafe { y.segment(row, cols.clone()) };
                        for (y, &b) in y.iter_mut().zip(&bias.as_slice()[cols.clone()]) {
                            *y += b;
                        }
                    }
                });
            };
            multiply_parallel(
                &y,
                Write::Overwrite,
                MatrixView::of(hidden),
                MatrixView::of(table).t(),
                finish,
            );
        });
    }
}

/// Applies an activation to part of a row, and keeps its derivative where the result does not tell it.
#[inline(always)]
fn activate(activation: Activation, y: &mut [f32], derivative: Option<&mut [f32]>) {
    /// Value and derivative in one pass, since they share an exponential; the value alone where no backward pass will be.
    #[inline(always)]
    fn both(y: &mut [f32], derivative: Option<&mut [f32]>, f: impl Fn(f32) -> (f32, f32)) {
        match derivative {
            None => y.iter_mut().for_each(|y| *y = f(*y).0),
            Some(derivative) => {
                for (y, derivative) in y.iter_mut().zip(derivative) {
                    (*y, *derivative) = f(*y);
                }
            }
        }
    }
    match activation {
        Activation::None => {}
        Activation::Gelu => both(y, derivative, gelu),
        Activation::GeluTanh => both(y, derivative, gelu_tanh),
        Activation::Silu => both(y, derivative, silu),
        Activation::Relu => y.iter_mut().for_each(|y| *y = relu(*y)),
        Activation::Elu => y.iter_mut().for_each(|y| *y = elu(*y)),
    }
}

/// The value and the derivative of an activation at each element in turn.
#[inline(always)]
fn each(activation: Activation, x: &[f32], mut take: impl FnMut(usize, (f32, f32))) {
    #[inline(always)]
    fn all(x: &[f32], f: impl Fn(f32) -> (f32, f32), take: &mut impl FnMut(usize, (f32, f32))) {
        x.iter().enumerate().for_each(|(at, &x)| take(at, f(x)));
    }
    match activation {
        Activation::None => all(x, |x| (x, 1.0), &mut take),
        Activation::Gelu => all(x, gelu, &mut take),
        Activation::GeluTanh => all(x, gelu_tanh, &mut take),
        Activation::Silu => all(x, silu, &mut take),
        Activation::Relu => all(x, |x| (relu(x), relu_derivative(relu(x))), &mut take),
        Activation::Elu => all(x, |x| (elu(x), elu_derivative(elu(x))), &mut take),
    }
}

/// `dy *= activation'`.
fn activation_grad(arch: Arch, dy: &mut Tensor, forward: LinearForward<'_>) {
    let derivative = || forward.saved.expect("the derivative was saved");
    match forward.activation {
        Activation::None => {}
        Activation::Gelu | Activation::GeluTanh | Activation::Silu => {
            rows::combine(arch, dy, derivative(), |dy, derivative| dy * derivative);
        }
        Activation::Relu => rows::combine(arch, dy, forward.y, |dy, y| dy * relu_derivative(y)),
        Activation::Elu => rows::combine(arch, dy, forward.y, |dy, y| dy * elu_derivative(y)),
    }
}
