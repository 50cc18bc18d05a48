//! Matmuls, by the `gemm` crate on one thread a block.
//!
//! The result is cut into blocks by its shape alone, and every block is computed by one thread from
//! beginning to end. So the bits do not depend on the number of threads, and what follows a matmul
//! (a bias, an activation) is applied while the block is still in the cache.

#![allow(
    unsafe_code,
    reason = "`gemm` takes pointers, and blocks of one matrix are written at once"
)]

use std::marker::PhantomData;
use std::ops::Range;

use gemm::Parallelism;
use rayon::prelude::*;

use crate::dispatch;
use crate::value::Tensor;

/// The columns of a block: a multiple of what the kernel of `gemm` computes at once, few enough
/// that every thread has some, and no more than it takes without packing its other operand into
/// memory that it would have to allocate.
const COLUMNS: usize = 64;
pub(super) const MAX_COLUMNS: usize = 128;
/// The blocks that a matrix is cut into from left to right, where its columns suffice.
const ACROSS: usize = 8;
/// The rows of a block where there are too few columns to cut, and where there are enough.
const ROWS_OF_NARROW: usize = 512;
const ROWS_OF_WIDE: usize = 2048;

/// A matrix to read: elements `row · row_stride + col · col_stride`.
#[derive(Clone, Copy)]
pub(super) struct MatrixView<'a> {
    data: &'a [f32],
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
}

impl<'a> MatrixView<'a> {
    /// Rows of `stride` elements, of which the first `cols` are meant.
    pub(super) fn new(data: &'a [f32], rows: usize, cols: usize, stride: usize) -> Self {
        assert!(rows == 0 || cols <= stride && (rows - 1) * stride + cols <= data.len());
        Self { data, rows, cols, row_stride: stride, col_stride: 1 }
    }

    pub(super) fn of(tensor: &'a Tensor) -> Self {
        Self::new(tensor.as_slice(), tensor.rows(), tensor.cols(), tensor.cols())
    }

    pub(super) fn shape(self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    /// One row, of a matrix that is not transposed.
    pub(super) fn row(self, row: usize) -> &'a [f32] {
        assert!(row < self.rows && self.col_stride == 1);
        &self.data[row * self.row_stride..][..self.cols]
    }

    pub(super) fn rows(self, rows: Range<usize>) -> Self {
        self.t().cols(rows).t()
    }

    pub(super) fn cols(self, cols: Range<usize>) -> Self {
        assert!(cols.start <= cols.end && cols.end <= self.cols);
        Self { data: &self.data[cols.start * self.col_stride..], cols: cols.len(), ..self }
    }

    /// The transpose, without moving anything.
    pub(super) fn t(self) -> Self {
        Self {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            ..self
        }
    }
}

/// A matrix to write, parts of which can be handed to several threads.
pub(super) struct MatrixViewMut<'a> {
    data: *mut f32,
    rows: usize,
    cols: usize,
    stride: usize,
    whole: PhantomData<&'a mut [f32]>,
}

// SAFETY: it stands for a `&mut [f32]`, which may be sent; sharing it gives out elements only
// through `segment`, whose caller promises that no two threads ask for the same ones.
unsafe impl Send for MatrixViewMut<'_> {}
// SAFETY: as above.
unsafe impl Sync for MatrixViewMut<'_> {}

impl<'a> MatrixViewMut<'a> {
    /// Rows of `stride` elements, of which the first `cols` are meant.
    pub(super) fn new(data: &'a mut [f32], rows: usize, cols: usize, stride: usize) -> Self {
        assert!(rows == 0 || cols <= stride && (rows - 1) * stride + cols <= data.len());
        Self { data: data.as_mut_ptr(), rows, cols, stride, whole: PhantomData }
    }

    pub(super) fn of(tensor: &'a mut Tensor) -> Self {
        let (rows, cols) = tensor.shape();
        Self::new(tensor.as_mut_slice(), rows, cols, cols)
    }

    pub(super) fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    /// Part of one row.
    ///
    /// # Safety
    /// No two live segments may overlap.
    #[allow(clippy::mut_from_ref, reason = "that is the point: see the contract")]
    pub(super) unsafe fn segment(&self, row: usize, cols: Range<usize>) -> &mut [f32] {
        assert!(row < self.rows && cols.start <= cols.end && cols.end <= self.cols);
        // SAFETY: in bounds by the assertion above and by construction; alone by contract.
        unsafe {
            std::slice::from_raw_parts_mut(
                self.data.add(row * self.stride + cols.start),
                cols.len(),
            )
        }
    }

    pub(super) fn fill(&mut self, value: f32) {
        for row in 0..self.rows {
            // SAFETY: the matrix is borrowed mutably, and one segment is live at a time.
            unsafe { self.segment(row, 0..self.cols) }.fill(value);
        }
    }

    /// A block of the matrix as a matrix of its own.
    ///
    /// # Safety
    /// No two live blocks may overlap.
    pub(super) unsafe fn block(&self, rows: Range<usize>, cols: Range<usize>) -> MatrixViewMut<'_> {
        assert!(rows.start < rows.end && rows.end <= self.rows);
        assert!(cols.start < cols.end && cols.end <= self.cols);
        // SAFETY: in bounds by the assertion above; alone by contract.
        let data = unsafe { self.data.add(rows.start * self.stride + cols.start) };
        MatrixViewMut {
            data,
            rows: rows.len(),
            cols: cols.len(),
            stride: self.stride,
            whole: PhantomData,
        }
    }
}

/// What happens to the elements that a matmul is written over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Write {
    Overwrite,
    Add,
}

impl Write {
    /// From the flag of a gradient.
    pub(super) fn accumulate(accumulate: bool) -> Self {
        if accumulate { Self::Add } else { Self::Overwrite }
    }
}

/// `c (+)= scale · a · b`, on this thread.
pub(super) fn multiply(
    c: &mut MatrixViewMut<'_>,
    write: Write,
    scale: f32,
    a: MatrixView<'_>,
    b: MatrixView<'_>,
) {
    assert_eq!((a.rows, a.cols, b.cols), (c.rows, b.rows, c.cols), "shapes of a matmul");
    if c.rows == 0 || c.cols == 0 {
        return;
    }
    // SAFETY: every view was checked to lie within its slice when it was made, `c` is borrowed
    // mutably and so overlaps neither `a` nor `b`, and the shapes agree.
    unsafe {
        gemm::gemm(
            c.rows,
            c.cols,
            a.cols,
            c.data,
            1,
            c.stride as isize,
            write == Write::Add,
            a.data.as_ptr(),
            a.col_stride as isize,
            a.row_stride as isize,
            b.data.as_ptr(),
            b.col_stride as isize,
            b.row_stride as isize,
            1.0,
            scale,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

/// `c (+)= a · b` on all threads; `finish` is called once for each block of `c` when it is done,
/// with the rows and columns of the block.
pub(super) fn multiply_parallel(
    c: &MatrixViewMut<'_>,
    write: Write,
    a: MatrixView<'_>,
    b: MatrixView<'_>,
    finish: impl Fn(Range<usize>, Range<usize>) + Sync,
) {
    assert_eq!((a.rows, a.cols, b.cols), (c.rows, b.rows, c.cols), "shapes of a matmul");
    if c.rows == 0 || c.cols == 0 {
        return;
    }
    let width = c.cols.div_ceil(ACROSS).next_multiple_of(COLUMNS).min(MAX_COLUMNS);
    let height = if c.cols < 2 * COLUMNS { ROWS_OF_NARROW } else { ROWS_OF_WIDE };
    let (across, down) = (c.cols.div_ceil(width), c.rows.div_ceil(height));
    (0..across * down).into_par_iter().with_max_len(1).for_each(|block| {
        let (row, col) = (block / across * height, block % across * width);
        let rows = row..c.rows.min(row + height);
        let cols = col..c.cols.min(col + width);
        let a_block = MatrixView { data: &a.data[row * a.row_stride..], rows: rows.len(), ..a };
        let b_block = MatrixView { data: &b.data[col * b.col_stride..], cols: cols.len(), ..b };
        // SAFETY: blocks of different numbers share no element.
        let mut c_block = unsafe { c.block(rows.clone(), cols.clone()) };
        multiply(&mut c_block, write, 1.0, a_block, b_block);
        finish(rows, cols);
    });
}

/// The side of the tiles in which a matrix is transposed: a row of one is a cache line.
const TILE: usize = 16;

/// `dst = srcᵀ`, where `src` has `cols` columns, on all threads.
pub(super) fn transpose(arch: pulp::Arch, src: &[f32], cols: usize, dst: &mut [f32]) {
    let rows = src.len() / cols.max(1);
    if rows == 0 {
        return;
    }
    dst.par_chunks_mut(rows * TILE).enumerate().for_each(|(strip, dst)| {
        let strip = MatrixView::new(&src[strip * TILE..], rows, dst.len() / rows, cols);
        dispatch!(arch, || transpose_padded(strip, dst, rows));
    });
}

/// `dst = srcᵀ` on this thread, with rows of `stride` elements of which those beyond are zero.
#[inline(always)]
pub(super) fn transpose_padded(src: MatrixView<'_>, dst: &mut [f32], stride: usize) {
    if src.rows == 0 {
        return dst.fill(0.0);
    }
    for row in (0..src.rows).step_by(TILE) {
        let height = TILE.min(src.rows - row);
        for (col, dst) in dst.chunks_mut(stride).enumerate() {
            for (i, dst) in dst[row..row + height].iter_mut().enumerate() {
                *dst = src.data[(row + i) * src.row_stride + col];
            }
        }
    }
    for dst in dst.chunks_mut(stride) {
        dst[src.rows..].fill(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(len: usize) -> Vec<f32> {
        (0..len).map(|i| (i * 7919 % 1009) as f32 / 1009.0 - 0.5).collect()
    }

    #[test]
    fn matmuls_of_awkward_shapes() {
        for (m, n, k) in [(1, 1, 1), (3, 200, 5), (700, 33, 17), (65, 300, 64), (5, 7, 0)] {
            let (a, b) = (numbers(m * k), numbers(k * n));
            let mut c = vec![1.0; m * n];
            let view = MatrixViewMut::new(&mut c, m, n, n);
            multiply_parallel(
                &view,
                Write::Add,
                MatrixView::new(&a, m, k, k),
                MatrixView::new(&b, k, n, n),
                |_, _| {},
            );
            for (at, &c) in c.iter().enumerate() {
                let products = (0..k).map(|i| f64::from(a[at / n * k + i] * b[i * n + at % n]));
                let exact = 1.0 + products.sum::<f64>();
                assert!((f64::from(c) - exact).abs() < 1e-4, "{m}x{n}x{k} at {at}: {c} {exact}");
            }
        }
    }

    #[test]
    fn transposes() {
        let (rows, cols) = (37, 53);
        let src = numbers(rows * cols);
        let mut dst = vec![0.0; rows * cols];
        transpose(pulp::Arch::new(), &src, cols, &mut dst);
        for row in 0..rows {
            for col in 0..cols {
                assert_eq!(dst[col * rows + row], src[row * cols + col]);
            }
        }
    }
}
