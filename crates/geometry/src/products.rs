//! Products of columns summed over batches of rows, on the CPU or on a GPU.
//!
//! Products are in single precision within a batch, sums over batches in double, wherever they are
//! made.

use arrays::Matrix;
use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;
use tensor::kernels::GramSum;
use tensor::{Device, Tensor};

/// Additions and multiplications from which on a GPU is asked: fewer are done before one has been
/// told of them (a hundredth of a second on two cores).
const WORTH_IT: f64 = 2e9;
/// Columns of a product that one thread computes: a quarter of them, within these bounds. Wider strips are multiplied faster
/// (of 768 columns those of 64 at 92 % of the speed of all at once, those of 192 at 97 %), narrower ones keep more threads busy.
const NARROWEST: usize = 64;
const WIDEST: usize = 256;
/// Rows that are multiplied at a time, so that what a thread reads again and again stays in its cache.
const DEPTH: usize = 1024;

/// Whether the device is a GPU and there is enough to do for it.
pub(crate) fn worth_a_gpu(device: &Device, operations: f64) -> bool {
    device.is_gpu() && operations >= WORTH_IT
}

#[derive(Clone, Copy)]
pub(crate) struct Columns<'a> {
    gpu: Option<&'a Device>,
}

/// A batch of rows where its products are made.
pub(crate) enum Placed {
    Here(Matrix),
    There(Tensor),
}

/// A sum of products where it is made.
pub(crate) enum Summed {
    Here(HostSum),
    There(GramSum),
}

/// A sum of products in the host's memory, row after row.
pub(crate) struct HostSum {
    values: Vec<f64>,
    /// The product that is being added, kept so that its memory is asked for once.
    product: Vec<f32>,
    right: usize,
    /// Of products of a matrix with itself only what is on and above the diagonal is here.
    symmetric: bool,
}

/// Two batches of rows, and the sum that the product of their columns is added to.
pub(crate) struct AddedProduct<'a> {
    pub(crate) left: &'a Placed,
    pub(crate) right: &'a Placed,
    pub(crate) sum: &'a mut Summed,
}

impl<'a> Columns<'a> {
    pub(crate) fn on(device: &'a Device, operations: f64) -> Self {
        Self { gpu: worth_a_gpu(device, operations).then_some(device) }
    }

    pub(crate) fn on_gpu(self) -> bool {
        self.gpu.is_some()
    }

    pub(crate) fn place(self, matrix: Matrix) -> Placed {
        match self.gpu {
            None => Placed::Here(matrix),
            Some(device) => {
                Placed::There(device.tensor(matrix.rows(), matrix.cols(), matrix.values()))
            }
        }
    }

    /// Nothing yet: columns of one by columns of the other.
    pub(crate) fn sum(self, left: usize, right: usize) -> Summed {
        match self.gpu {
            None => Summed::Here(HostSum::new(left, right)),
            Some(device) => Summed::There(device.gram_sum(left, right)),
        }
    }

    /// `sum += aᵀ b`.
    pub(crate) fn add(self, left: &Placed, right: &Placed, sum: &mut Summed) {
        self.add_all(vec![AddedProduct { left, right, sum }]);
    }

    /// The same of several products, on all threads at once.
    pub(crate) fn add_all(self, products: Vec<AddedProduct<'_>>) {
        let Some(device) = self.gpu else { return add_here(products) };
        for AddedProduct { left, right, sum } in products {
            match (left, right, sum) {
                (Placed::There(left), Placed::There(right), Summed::There(sum)) => {
                    device.gram(left, right, sum);
                }
                _ => unreachable!("rows and sums are in one place"),
            }
        }
    }
}

impl Placed {
    /// The memory of rows that are done with, for the next ones.
    pub(crate) fn into_buffer(self) -> Vec<f32> {
        match self {
            Placed::Here(matrix) => matrix.into_values(),
            Placed::There(_) => Vec::new(),
        }
    }
}

impl Summed {
    pub(crate) fn squared(&self) -> f64 {
        let squared = |sum: &[f64]| sum.iter().map(|x| x * x).sum::<f64>();
        match self {
            Summed::Here(HostSum { values, right, symmetric, .. }) => {
                let of_row = |(row, sum): (usize, &[f64])| match symmetric {
                    false => squared(sum),
                    true => sum[row].powi(2) + 2.0 * squared(&sum[row + 1..]),
                };
                let rows = values.par_chunks_exact(*right).enumerate().with_min_len(64);
                rows.map(of_row).collect::<Vec<f64>>().iter().sum()
            }
            Summed::There(sum) => squared(&sum.to_vec()),
        }
    }

    pub(crate) fn into_values(self) -> Vec<f64> {
        match self {
            Summed::Here(sum) => sum.into_values(),
            Summed::There(sum) => sum.to_vec(),
        }
    }
}

/// Adds products of columns on all threads, the longest strips first. Of a matrix with itself only what is on and above
/// the diagonal is multiplied, half of the operations.
fn add_here(products: Vec<AddedProduct<'_>>) {
    let mut strips = Vec::new();
    for AddedProduct { left, right, sum } in products {
        match (left, right, sum) {
            (Placed::Here(left), Placed::Here(right), Summed::Here(sum)) => {
                let symmetric = std::ptr::eq(left, right);
                strips.extend(sum.strips(left.values(), right.values(), symmetric));
            }
            _ => unreachable!("rows and sums are in one place"),
        }
    }
    add_strips(strips);
}

fn add_strips(mut strips: Vec<ProductStrip<'_>>) {
    strips.sort_by_key(|strip| std::cmp::Reverse(strip.size()));
    strips.into_iter().par_bridge().for_each(ProductStrip::add);
}

/// Some rows of a sum, and what is added to them.
struct ProductStrip<'a> {
    /// The columns that these rows are of: batch x rows.
    left: MatRef<'a, f32>,
    /// All others: batch x columns.
    right: MatRef<'a, f32>,
    /// The column of the first row's diagonal element, of a matrix with itself.
    diagonal: Option<usize>,
    sum: &'a mut [f64],
    product: &'a mut [f32],
}

impl HostSum {
    pub(crate) fn new(left: usize, right: usize) -> Self {
        let (values, product) = (vec![0.0; left * right], vec![0.0; left * right]);
        Self { values, product, right, symmetric: false }
    }

    /// Adds the product of the columns of two matrices, given row after row.
    pub(crate) fn add(&mut self, left: &[f32], right: &[f32]) {
        add_strips(self.strips(left, right, false).collect());
    }

    pub(crate) fn into_values(self) -> Vec<f64> {
        let Self { mut values, right, symmetric, .. } = self;
        for row in if symmetric { 0..right } else { 0..0 } {
            for col in 0..row {
                values[row * right + col] = values[col * right + row];
            }
        }
        values
    }

    /// Cuts the product that is to be added into strips, by its shape alone.
    fn strips<'a>(
        &'a mut self,
        left: &'a [f32],
        right: &'a [f32],
        symmetric: bool,
    ) -> impl Iterator<Item = ProductStrip<'a>> {
        self.symmetric |= symmetric;
        let (cols, of_left) = (self.right, self.values.len() / self.right);
        let rows = right.len() / cols;
        let width = (of_left / 4).next_multiple_of(16).clamp(NARROWEST, WIDEST);
        let lefts = MatRef::from_row_major_slice(left, rows, of_left);
        let right = MatRef::from_row_major_slice(right, rows, cols);
        let sums = self.values.chunks_mut(width * cols).zip(self.product.chunks_mut(width * cols));
        sums.enumerate().map(move |(strip, (sum, product))| ProductStrip {
            left: lefts.subcols(strip * width, sum.len() / cols),
            right,
            diagonal: symmetric.then_some(strip * width),
            sum,
            product,
        })
    }
}

impl ProductStrip<'_> {
    /// About how many numbers are to be computed.
    fn size(&self) -> usize {
        let (width, cols) = (self.left.ncols(), self.right.ncols());
        width * (cols - self.diagonal.map_or(0, |diagonal| diagonal + width / 2))
    }

    fn add(self) {
        let Self { left, right, diagonal, sum, product } = self;
        if left.nrows() == 0 {
            return;
        }
        let (rows, cols) = (left.nrows(), right.ncols());
        for start in (0..rows).step_by(DEPTH) {
            let depth = DEPTH.min(rows - start);
            let (left, right) = (left.subrows(start, depth), right.subrows(start, depth));
            let out = MatMut::from_row_major_slice_mut(product, left.ncols(), cols);
            let add = if start == 0 { Accum::Replace } else { Accum::Add };
            multiply(out, add, left, right, diagonal);
        }
        for (row, (sum, product)) in sum.chunks_mut(cols).zip(product.chunks(cols)).enumerate() {
            let first = diagonal.map_or(0, |diagonal| diagonal + row);
            let pairs = sum[first..].iter_mut().zip(&product[first..]);
            pairs.for_each(|(sum, &x)| *sum += f64::from(x));
        }
    }
}

/// `out (+)= leftᵀ right`, or of it what is on and above the diagonal, which begins at a column.
fn multiply(
    mut out: MatMut<'_, f32>,
    add: Accum,
    left: MatRef<'_, f32>,
    right: MatRef<'_, f32>,
    diagonal: Option<usize>,
) {
    let first = diagonal.map_or(0, |diagonal| diagonal + left.ncols());
    if let Some(diagonal) = diagonal {
        triangular::matmul(
            out.as_mut().subcols_mut(diagonal, left.ncols()),
            BlockStructure::TriangularUpper,
            add,
            left.transpose(),
            BlockStructure::Rectangular,
            right.subcols(diagonal, left.ncols()),
            BlockStructure::Rectangular,
            1.0,
            Par::Seq,
        );
    }
    let rest = right.ncols() - first;
    let (out, right) = (out.subcols_mut(first, rest), right.subcols(first, rest));
    matmul(out, add, left.transpose(), right, 1.0, Par::Seq);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_with_itself_is_as_with_its_copy() {
        // More columns than two strips and more rows than one depth, and no whole number of them.
        let (rows, cols) = (DEPTH + 37, 2 * NARROWEST + 5);
        let value = |place: usize| ((place * 7919 % 1009) as f32 - 500.0) / 250.0;
        let x = Matrix::new(rows, cols, (0..rows * cols).map(value).collect());
        let (x, copy) = (Placed::Here(x.clone()), Placed::Here(x));
        let sums = |other: &Placed| {
            let mut sum = Summed::Here(HostSum::new(cols, cols));
            for _ in 0..2 {
                add_here(vec![AddedProduct { left: &x, right: other, sum: &mut sum }]);
            }
            (sum.squared(), sum.into_values())
        };
        let ((squared, own), (expected, other)) = (sums(&x), sums(&copy));
        assert!((squared / expected - 1.0).abs() < 1e-6, "{squared} {expected}");
        assert!(own.iter().zip(&other).all(|(own, other)| (own - other).abs() < 1e-3));
        assert!(other.iter().any(|x| x.abs() > 10.0));
    }
}
