//! Products of matrices whose vectors stand in rows.

use arrays::Matrix;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

/// Rows given to one thread at a time.
const STRIP: usize = 512;

/// `a · bᵀ` where the rows of `b` (n x cols) follow one another: rows x n, on all threads, the same
/// bits on any number of them.
pub(crate) fn times_transposed(a: &Matrix, b: &[f32]) -> Matrix {
    let n = b.len() / a.cols();
    let mut product = Matrix::new(a.rows(), n, vec![0.0; a.rows() * n]);
    let out = product.values_mut().par_chunks_mut(STRIP * n);
    let strips = out.zip(a.values().par_chunks(STRIP * a.cols()));
    strips.for_each(|(out, strip)| rows_by_rows(strip, b, a.cols(), out));
    product
}

/// `out = a · bᵀ`, where rows of `a` and of `b` have `dim` values, on this thread.
pub(crate) fn rows_by_rows(a: &[f32], b: &[f32], dim: usize, out: &mut [f32]) {
    let (m, n) = (a.len() / dim, b.len() / dim);
    let (a, b) = (MatRef::from_row_major_slice(a, m, dim), MatRef::from_row_major_slice(b, n, dim));
    let out = MatMut::from_row_major_slice_mut(out, m, n);
    faer::linalg::matmul::matmul(out, Accum::Replace, a, b.transpose(), 1.0, Par::Seq);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matmul_is_that_of_plain_sums() {
        let number = |i: usize| (i * 7919 % 1009) as f32 / 1009.0 - 0.5;
        let a = Matrix::new(700, 5, (0..3500).map(number).collect());
        let b = Matrix::new(3, 5, (50..65).map(number).collect());
        let product = times_transposed(&a, b.values());
        for (i, row) in product.iter().enumerate() {
            for (j, &x) in row.iter().enumerate() {
                let exact: f32 = a.row(i).iter().zip(b.row(j)).map(|(a, b)| a * b).sum();
                assert!((x - exact).abs() < 1e-6);
            }
        }
    }
}
