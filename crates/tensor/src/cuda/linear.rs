//! Affine maps: a product, and what follows it.

use super::{Cuda, Memory, Product, Program, STRIPS, Side, THREADS, at, block, lanes, launch, to};
use crate::kernels::{Grad, Precision};
use crate::value::Tensor;

/// A matrix of the working precision as a side of a product.
fn side(cuda: &Cuda, x: &Tensor) -> Side {
    Side { pointer: cuda.rounded(x), precision: Precision::Working, pitch: x.cols(), turned: false }
}

fn turned(side: Side) -> Side {
    Side { turned: true, ..side }
}

/// A result, in its own precision.
pub(super) fn result(y: &mut Tensor) -> Side {
    let (precision, pitch) = (block(y).precision, y.cols());
    Side { pointer: to(y), precision, pitch, turned: false }
}

pub(super) fn forward(
    cuda: &Cuda,
    x: &Tensor,
    weight: &Tensor,
    bias: &Tensor,
    y: &mut Tensor,
    slope: Option<&mut Tensor>,
) {
    let size = [x.rows(), weight.cols(), weight.rows()];
    let (left, right) = (side(cuda, x), side(cuda, weight));
    let bias = Some(cuda.rounded(bias));
    let Some(before) = slope else {
        let out = result(y);
        return cuda.products.run(&Product { left, right, out, size, accumulate: false, bias });
    };
    // GELU of the library is an approximation by a hyperbolic tangent; ours comes after.
    let out = result(before);
    cuda.products.run(&Product { left, right, out, size, accumulate: false, bias });
    let grid = [y.len().div_ceil(8 * THREADS as usize), 1, 1];
    launch!(
        cuda, Program::Sums, "gelu_forward", grid, [THREADS, 1, 1], 0;
        at(before), to(y), y.len() as u64,
    );
}

pub(super) fn bias_grad(
    cuda: &Cuda,
    dy: &mut Tensor,
    slope: Option<&Tensor>,
    db: Option<Grad<'_>>,
) {
    if slope.is_none() && db.is_none() {
        return;
    }
    let (rows, cols) = dy.shape();
    if rows == 0 {
        return db.into_iter().for_each(|db| super::rows::clear(cuda, db));
    }
    if let (None, Some(parts)) = (slope, block(dy).parts()) {
        return sum_partials(cuda, parts.pointer(), parts.count, parts.stride, cols, [db, None]);
    }
    let Some(before) = slope else {
        return column_sums(cuda, to(dy), [rows, cols, cols], db);
    };
    let cut = Cut::of(cuda, rows, cols, cols);
    let (out, accumulate) = sink(db);
    let name = if cut.lanes == 8 { "gelu_backward_8" } else { "gelu_backward_1" };
    launch!(
        cuda, Program::Sums, name, cut.grid, [THREADS, 1, 1], 0;
        to(dy), at(before), rows as i32, cols as i32, cut.height, cut.partial.pointer,
        cuda.arrived.pointer, out, accumulate,
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
    partial: Memory,
}

impl Cut {
    fn of(cuda: &Cuda, rows: usize, cols: usize, pitch: usize) -> Self {
        /// More blocks below one another would make the last one's sum long.
        const MOST_DOWN: usize = 176;
        let lanes = lanes(pitch);
        let across = cols.div_ceil(32 * lanes);
        assert!(across <= STRIPS, "a matrix of at most {} columns", 32 * STRIPS);
        let blocks = (4 * cuda.context.processors as usize).div_ceil(across).min(MOST_DOWN);
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

pub(super) fn input_grad(cuda: &Cuda, dy: &Tensor, weight: &Tensor, dx: Grad<'_>) {
    let size = [dy.rows(), weight.rows(), weight.cols()];
    let (left, right) = (side(cuda, dy), turned(side(cuda, weight)));
    let (out, accumulate) = (result(dx.tensor), dx.accumulate);
    cuda.products.run(&Product { left, right, out, size, accumulate, bias: None });
}

pub(super) fn weight_grad(cuda: &Cuda, x: &Tensor, dy: &Tensor, dw: Grad<'_>) {
    if x.rows() == 0 {
        return super::rows::clear(cuda, dw);
    }
    let size = [x.cols(), dy.cols(), x.rows()];
    let (left, right) = (turned(side(cuda, x)), side(cuda, dy));
    let (out, accumulate) = (result(dw.tensor), dw.accumulate);
    cuda.products.run(&Product { left, right, out, size, accumulate, bias: None });
}

/// Full numbers are multiplied as they are, so that vectors of one's own can be compared exactly.
pub(super) fn logits(cuda: &Cuda, hidden: &Tensor, table: &Tensor, bias: &Tensor, y: &mut Tensor) {
    let exact = |x: &Tensor| Side {
        pointer: at(x),
        precision: Precision::Full,
        pitch: x.cols(),
        turned: false,
    };
    let (left, right) = match block(hidden).precision {
        Precision::Full => (exact(hidden), exact(table)),
        Precision::Working => (side(cuda, hidden), side(cuda, table)),
    };
    let (out, bias) = (result(y), Some(at(bias)));
    let size = [hidden.rows(), table.rows(), table.cols()];
    let right = turned(right);
    cuda.products.run(&Product { left, right, out, size, accumulate: false, bias });
}
