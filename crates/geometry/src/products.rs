//! Products of columns summed over batches of rows, on the CPU or on a GPU.
//!
//! Products are in single precision within a batch, sums over batches in double, wherever they are
//! made.

use arrays::Matrix;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;
use tensor::kernels::GramSum;
use tensor::{Device, Tensor};

/// Additions and multiplications from which on a GPU is asked: fewer are done before one has been
/// told of them (a hundredth of a second on two cores).
const WORTH_IT: f64 = 2e9;
/// Columns of a product that one thread computes.
const COLUMNS: usize = 64;

/// Whether the device is a GPU and there is enough to do for it.
pub(crate) fn worth_a_gpu(device: &Device, operations: f64) -> bool {
    device.is_gpu() && operations >= WORTH_IT
}

/// Where products of columns are made.
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
    right: usize,
    /// Of products of a matrix with itself only the blocks on and above the diagonal are here.
    symmetric: bool,
}

impl<'a> Columns<'a> {
    /// For so many operations in all.
    pub(crate) fn on(device: &'a Device, operations: f64) -> Self {
        Self { gpu: worth_a_gpu(device, operations).then_some(device) }
    }

    /// Whether that is a GPU.
    pub(crate) fn on_gpu(self) -> bool {
        self.gpu.is_some()
    }

    /// Brings rows there.
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
            None => {
                let values = vec![0.0; left * right];
                Summed::Here(HostSum { values, right, symmetric: false })
            }
            Some(device) => Summed::There(device.gram_sum(left, right)),
        }
    }

    /// `sum += aᵀ b`.
    pub(crate) fn add(self, a: &Placed, b: &Placed, sum: &mut Summed) {
        match (self.gpu, a, b, sum) {
            (None, Placed::Here(a), Placed::Here(b), Summed::Here(sum)) => add_product(a, b, sum),
            (Some(device), Placed::There(a), Placed::There(b), Summed::There(sum)) => {
                device.gram(a, b, sum);
            }
            _ => unreachable!("rows and sums are in one place"),
        }
    }
}

impl Summed {
    /// The sum of its squares.
    pub(crate) fn squared(&self) -> f64 {
        let squared = |sum: &[f64]| sum.iter().map(|x| x * x).sum::<f64>();
        match self {
            Summed::Here(HostSum { values, symmetric: false, .. }) => squared(values),
            Summed::Here(HostSum { values, right, symmetric: true }) => {
                let of_row = |(row, sum): (usize, &[f64])| {
                    let (start, end) = block(row, *right);
                    squared(&sum[start..end]) + 2.0 * squared(&sum[end..])
                };
                values.chunks_exact(*right).enumerate().map(of_row).sum()
            }
            Summed::There(sum) => squared(&sum.to_vec()),
        }
    }

    /// The sum itself, row after row.
    pub(crate) fn into_values(self) -> Vec<f64> {
        match self {
            Summed::Here(HostSum { mut values, right, symmetric }) => {
                for row in if symmetric { 0..right } else { 0..0 } {
                    for col in 0..block(row, right).0 {
                        values[row * right + col] = values[col * right + row];
                    }
                }
                values
            }
            Summed::There(sum) => sum.to_vec(),
        }
    }
}

/// The columns of the block on the diagonal that a row is in.
fn block(row: usize, columns: usize) -> (usize, usize) {
    let start = row / COLUMNS * COLUMNS;
    (start, columns.min(start + COLUMNS))
}

/// `sum += aᵀ b`, columns of `a` by columns of `b`, on all threads. Of a matrix with itself only the blocks on and above
/// the diagonal are multiplied, half of the operations.
fn add_product(a: &Matrix, b: &Matrix, sum: &mut HostSum) {
    let symmetric = std::ptr::eq(a, b);
    sum.symmetric |= symmetric;
    let matrix = |matrix: &'_ Matrix| (matrix.rows(), matrix.cols());
    let ((rows, left), (_, right)) = (matrix(a), matrix(b));
    let a = MatRef::from_row_major_slice(a.values(), rows, left);
    let b = MatRef::from_row_major_slice(b.values(), rows, right);
    sum.values.par_chunks_mut(COLUMNS * right).enumerate().for_each(|(strip, sum)| {
        let first = if symmetric { strip * COLUMNS } else { 0 };
        let (columns, width) = (a.subcols(strip * COLUMNS, sum.len() / right), right - first);
        let mut product = vec![0.0; columns.ncols() * width];
        let out = MatMut::from_row_major_slice_mut(&mut product, columns.ncols(), width);
        let others = b.subcols(first, width);
        faer::linalg::matmul::matmul(
            out,
            Accum::Replace,
            columns.transpose(),
            others,
            1.0,
            Par::Seq,
        );
        for (sum, product) in sum.chunks_mut(right).zip(product.chunks(width)) {
            sum[first..].iter_mut().zip(product).for_each(|(sum, &x)| *sum += f64::from(x));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_with_itself_is_as_with_its_copy() {
        // More columns than two strips, and no whole number of them.
        let (rows, cols) = (37, 2 * COLUMNS + 5);
        let value = |place: usize| ((place * 7919 % 1009) as f32 - 500.0) / 250.0;
        let x = Matrix::new(rows, cols, (0..rows * cols).map(value).collect());
        let copy = x.clone();
        let sums = |other: &Matrix| {
            let mut sum = HostSum { values: vec![0.0; cols * cols], right: cols, symmetric: false };
            (0..2).for_each(|_| add_product(&x, other, &mut sum));
            let sum = Summed::Here(sum);
            (sum.squared(), sum.into_values())
        };
        let ((squared, own), (expected, other)) = (sums(&x), sums(&copy));
        assert!((squared / expected - 1.0).abs() < 1e-6, "{squared} {expected}");
        assert!(own.iter().zip(&other).all(|(own, other)| (own - other).abs() < 1e-3));
        assert!(other.iter().any(|x| x.abs() > 10.0));
    }
}
