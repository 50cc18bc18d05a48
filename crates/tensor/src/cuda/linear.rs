//! Affine maps and other matmuls: a GEMM of cuBLASLt with the bias in its epilogue, then the activation.

use std::ops::Range;

use super::fault::unknown;
use super::rows::clear;
use super::{
    Cuda, DeviceMemory, Matmul, Operand, Program, STRIPS, THREADS, at, block, lanes, launch, to,
};
use crate::kernels::{Activation, Grad, GramSum, LinearForward, LinearKernels, MatrixPrecision};
use crate::value::Tensor;

/// A matrix as an operand in the working precision: its rounded copy, where it is of full precision.
fn operand(cuda: &Cuda, x: &Tensor) -> Operand {
    let (precision, pitch) = (MatrixPrecision::Working, x.cols());
    Operand { pointer: cuda.rounded(x), precision, pitch, transposed: false }
}

/// A matrix as an operand in its own precision.
fn exact_operand(x: &Tensor) -> Operand {
    Operand { pointer: at(x), precision: x.precision(), pitch: x.cols(), transposed: false }
}

/// Both operands of a matmul: unrounded where both are of full precision.
fn operands(cuda: &Cuda, a: &Tensor, b: &Tensor) -> [Operand; 2] {
    match (a.precision(), b.precision()) {
        (MatrixPrecision::Full, MatrixPrecision::Full) => [exact_operand(a), exact_operand(b)],
        _ => [operand(cuda, a), operand(cuda, b)],
    }
}

fn transposed(operand: Operand) -> Operand {
    Operand { transposed: true, ..operand }
}

/// A result, in its own precision.
pub(super) fn result(y: &mut Tensor) -> Operand {
    let (precision, pitch) = (y.precision(), y.cols());
    Operand { pointer: to(y), precision, pitch, transposed: false }
}

/// `y = activation(z)`; `z` may be `y`.
fn activate(cuda: &Cuda, activation: Activation, z: u64, y: &mut Tensor) {
    let grid = [y.len().div_ceil(8 * THREADS as usize), 1, 1];
    launch!(
        cuda, Program::Activation(activation), "activation_forward", grid, [THREADS, 1, 1], 0;
        z, to(y), y.len() as u64,
    );
}

/// Sums up the columns of `size[0]` rows of `size[1]` columns that lie `size[2]` apart.
pub(super) fn column_sums(cuda: &Cuda, dy: u64, size: [usize; 3], db: Option<Grad<'_>>) {
    let [rows, cols, pitch] = size;
    let cut = Cut::of(cuda, rows, cols, pitch);
    let (out, accumulate) = sink(db);
    let name = if cut.lanes == 8 { "column_sums_8" } else { "column_sums_1" };
    launch!(
        cuda, Program::Sums, name, cut.grid, [THREADS, 1, 1], 0;
        dy, rows as i32, cols as i32, pitch as i32, cut.height, cut.partial.pointer,
        cuda.arrived.pointer, out, accumulate,
    );
}

/// How a matrix is cut to sum up its columns.
struct Cut {
    /// Columns that a lane takes at once: to the end of the pitch, where that is a multiple of eight.
    lanes: usize,
    grid: [usize; 3],
    /// Rows of a block.
    height: i32,
    /// What each block finds.
    partial: DeviceMemory,
}

impl Cut {
    fn of(cuda: &Cuda, rows: usize, cols: usize, pitch: usize) -> Self {
        /// More blocks below one another would make the last one's sum long.
        const MOST_DOWN: usize = 176;
        let lanes = lanes(pitch);
        let across = cols.div_ceil(32 * lanes);
        assert!(across <= STRIPS, "a matrix of at most {} columns", 32 * STRIPS);
        let blocks = (4 * cuda.context.sms as usize).div_ceil(across).min(MOST_DOWN);
        let height = rows.div_ceil(blocks).next_multiple_of(8);
        let down = rows.div_ceil(height);
        let partial = cuda.scratch(down * cols * 4);
        Self { lanes, grid: [across, down, 1], height: height as i32, partial }
    }
}

/// Where a sum goes, and whether it is added to what is there.
fn sink(grad: Option<Grad<'_>>) -> (u64, i32) {
    grad.map_or((0, 0), |Grad { tensor, accumulate }| (to(tensor), i32::from(accumulate)))
}

/// Adds up `count` rows of sums that lie `stride` apart; each row holds two lists of `cols`.
pub(super) fn sum_partials(
    cuda: &Cuda,
    partial: u64,
    count: usize,
    stride: usize,
    cols: usize,
    sinks: [Option<Grad<'_>>; 2],
) {
    let lists = if sinks[1].is_some() { 2 } else { 1 };
    let [(first, add_first), (second, add_second)] = sinks.map(sink);
    launch!(
        cuda, Program::Sums, "sum_partials", [cols.div_ceil(32), lists, 1], [32, 32, 1], 0;
        partial, count as i32, stride as i32, cols as i32, first, add_first, second, add_second,
    );
}

impl LinearKernels for Cuda {
    fn matmul(&self, a: &Tensor, b: &Tensor, y: &mut Tensor) {
        let [left, right] = operands(self, a, b);
        let size = [a.rows(), b.cols(), a.cols()];
        let out = result(y);
        self.blas.run(&Matmul { left, right, out, size, accumulate: false, bias: None });
    }

    fn add_gram(&self, a: &Tensor, b: &Tensor, sum: &mut GramSum) {
        let size = [a.cols(), b.cols(), a.rows()];
        let count = size[0] * size[1];
        let product = self.scratch(4 * count);
        let [left, right] = operands(self, a, b);
        let (pointer, pitch) = (product.pointer, size[1]);
        let out = Operand { pointer, precision: MatrixPrecision::Full, pitch, transposed: false };
        let left = transposed(left);
        self.blas.run(&Matmul { left, right, out, size, accumulate: false, bias: None });
        let grid = [count.div_ceil(THREADS as usize), 1, 1];
        launch!(
            self, Program::Sums, "add_f64", grid, [THREADS, 1, 1], 0;
            to(&mut sum.wide), product.pointer, count as u64, i32::from(sum.begun),
        );
    }

    fn linear(
        &self,
        x: &Tensor,
        weight: &Tensor,
        bias: Option<&Tensor>,
        activation: Activation,
        y: &mut Tensor,
        pre_activation: Option<&mut Tensor>,
    ) {
        let size = [x.rows(), weight.cols(), weight.rows()];
        let (left, right) = (operand(self, x), operand(self, weight));
        let bias = bias.map(|bias| self.rounded(bias));
        let multiply = |out: Operand| {
            self.blas.run(&Matmul { left, right, out, size, accumulate: false, bias });
        };
        // The library's own GELU epilogue is the tanh approximation; the activation is a kernel of ours.
        match pre_activation {
            Some(before) => {
                multiply(result(before));
                activate(self, activation, at(before), y);
            }
            None => {
                multiply(result(y));
                if activation != Activation::None {
                    activate(self, activation, at(y), y);
                }
            }
        }
    }

    fn gate(&self, _: &Tensor, _: Activation, _: &mut Tensor) {
        unknown("gated feed-forward parts");
    }

    fn gate_grad(&self, _: &Tensor, _: Activation, _: &Tensor, _: &mut Tensor) {
        unknown("gated feed-forward parts");
    }

    fn bias_grad(&self, dy: &mut Tensor, forward: LinearForward<'_>, db: Option<Grad<'_>>) {
        let LinearForward { activation, y, saved } = forward;
        let linear = activation == Activation::None;
        if linear && db.is_none() {
            return;
        }
        let (rows, cols) = dy.shape();
        if rows == 0 {
            return db.into_iter().for_each(|db| clear(self, db));
        }
        if linear {
            return match block(dy).parts() {
                Some(parts) => {
                    sum_partials(
                        self,
                        parts.pointer(),
                        parts.count,
                        parts.stride,
                        cols,
                        [db, None],
                    );
                }
                None => column_sums(self, to(dy), [rows, cols, cols], db),
            };
        }
        // What the derivative is a function of: the pre-activation where it was saved, else the result.
        let of = saved.unwrap_or(y);
        let cut = Cut::of(self, rows, cols, cols);
        let (out, accumulate) = sink(db);
        let name = if cut.lanes == 8 { "activation_backward_8" } else { "activation_backward_1" };
        launch!(
            self, Program::Activation(activation), name, cut.grid, [THREADS, 1, 1], 0;
            to(dy), at(of), rows as i32, cols as i32, cut.height, cut.partial.pointer,
            self.arrived.pointer, out, accumulate,
        );
    }

    fn linear_input_grad(&self, dy: &Tensor, weight: &Tensor, dx: Grad<'_>) {
        let size = [dy.rows(), weight.rows(), weight.cols()];
        let (left, right) = (operand(self, dy), transposed(operand(self, weight)));
        let (out, accumulate) = (result(dx.tensor), dx.accumulate);
        self.blas.run(&Matmul { left, right, out, size, accumulate, bias: None });
    }

    fn linear_weight_grad(&self, x: &Tensor, dy: &Tensor, dw: Grad<'_>) {
        if x.rows() == 0 {
            return clear(self, dw);
        }
        let size = [x.cols(), dy.cols(), x.rows()];
        let (left, right) = (transposed(operand(self, x)), operand(self, dy));
        let (out, accumulate) = (result(dw.tensor), dw.accumulate);
        self.blas.run(&Matmul { left, right, out, size, accumulate, bias: None });
    }

    fn logits(&self, hidden: &Tensor, table: &Tensor, bias: &Tensor, y: &mut Tensor) {
        logits(self, hidden, 0..hidden.rows(), table, bias, y);
    }
}

/// The logits of some rows of `hidden`. Matrices of full precision are multiplied unrounded.
pub(super) fn logits(
    cuda: &Cuda,
    hidden: &Tensor,
    rows: Range<usize>,
    table: &Tensor,
    bias: &Tensor,
    y: &mut Tensor,
) {
    let [mut left, right] = match hidden.precision() {
        MatrixPrecision::Full => [exact_operand(hidden), exact_operand(table)],
        MatrixPrecision::Working => [operand(cuda, hidden), operand(cuda, table)],
    };
    left.pointer += (rows.start * left.pitch * left.precision.bytes()) as u64;
    let (out, bias) = (result(y), Some(at(bias)));
    let size = [rows.len(), table.rows(), table.cols()];
    let right = transposed(right);
    cuda.blas.run(&Matmul { left, right, out, size, accumulate: false, bias });
}
