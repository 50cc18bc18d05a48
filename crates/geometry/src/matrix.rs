//! Vectors in rows.

use std::ops::Range;

use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;
use vectors::WordVectors;

use crate::error::{Error, Result};

/// Rows given to one thread at a time.
const STRIP: usize = 512;

/// Vectors of one dimension in rows, one after another.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    rows: usize,
    cols: usize,
    values: Vec<f32>,
}

impl Matrix {
    /// A matrix of these values, row after row.
    ///
    /// # Panics
    /// Where there are not `rows * cols` of them, or no columns.
    pub fn new(rows: usize, cols: usize, values: Vec<f32>) -> Self {
        assert!(cols > 0, "vectors have a dimension");
        assert_eq!(rows * cols, values.len(), "values fill the matrix");
        Self { rows, cols, values }
    }

    /// The vectors of words, in their order.
    pub fn of(vectors: &WordVectors) -> Self {
        Self::new(vectors.len(), vectors.dim(), vectors.values().to_vec())
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// One row.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.cols..(row + 1) * self.cols]
    }

    /// Some rows, one after another.
    pub fn strip(&self, rows: Range<usize>) -> &[f32] {
        &self.values[rows.start * self.cols..rows.end * self.cols]
    }

    /// Every row in turn.
    pub fn iter(&self) -> std::slice::ChunksExact<'_, f32> {
        self.values.chunks_exact(self.cols)
    }

    /// All values, row after row.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// All values to write.
    pub(crate) fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }

    /// The values themselves.
    pub fn into_values(self) -> Vec<f32> {
        self.values
    }

    /// The chosen rows, in the order in which they are named.
    pub fn select(&self, rows: impl IntoIterator<Item = usize>) -> Self {
        let mut values = Vec::new();
        rows.into_iter().for_each(|row| values.extend_from_slice(self.row(row)));
        Self::new(values.len() / self.cols, self.cols, values)
    }

    /// The first rows, at most `count` of them.
    pub fn head(&self, count: usize) -> Self {
        let rows = count.min(self.rows);
        Self::new(rows, self.cols, self.strip(0..rows).to_vec())
    }

    /// `self · otherᵀ` where `other` is `n x cols` in the same order: rows x n, on all threads, the
    /// same bits on any number of them.
    pub(crate) fn times_transposed(&self, other: &[f32]) -> Matrix {
        let n = other.len() / self.cols;
        let mut product = Matrix::new(self.rows, n, vec![0.0; self.rows * n]);
        let strips =
            product.values.par_chunks_mut(STRIP * n).zip(self.values.par_chunks(STRIP * self.cols));
        strips.for_each(|(out, strip)| rows_by_rows(strip, other, self.cols, out));
        product
    }

    /// Refuses a value that is not finite and a vector of no length, naming the first by `name`.
    pub fn check(&self, file: &str, name: impl Fn(usize) -> String) -> Result<()> {
        for (row, vector) in self.iter().enumerate() {
            let place = || format!("{file}: {}", name(row));
            if let Some(column) = vector.iter().position(|x| !x.is_finite()) {
                let reason = format!("has {} in column {}", vector[column], column + 1);
                return Err(Error::input(place(), reason, "mend or leave out the vector"));
            }
            if vector.iter().all(|&x| x == 0.0) {
                let reason = "is a vector of zeros, which has no direction";
                return Err(Error::input(place(), reason, "leave it out"));
            }
        }
        Ok(())
    }
}

/// `out = a · bᵀ`, where rows of `a` and of `b` have `dim` values, on this thread.
pub(crate) fn rows_by_rows(a: &[f32], b: &[f32], dim: usize, out: &mut [f32]) {
    let (m, n) = (a.len() / dim, b.len() / dim);
    let (a, b) = (MatRef::from_row_major_slice(a, m, dim), MatRef::from_row_major_slice(b, n, dim));
    let out = MatMut::from_row_major_slice_mut(out, m, n);
    faer::linalg::matmul::matmul(out, Accum::Replace, a, b.transpose(), 1.0, Par::Seq);
}

/// The length of a vector.
pub(crate) fn length(vector: &[f32]) -> f64 {
    vector.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_vector_is_named() {
        let check = |values: Vec<f32>| {
            let matrix = Matrix::new(2, 2, values);
            matrix.check("a.npy", |row| format!("row {row}")).map_err(|error| error.to_string())
        };
        assert_eq!(check(vec![1.0, 0.0, 0.0, 2.0]), Ok(()));
        let error = check(vec![1.0, 0.0, 0.0, f32::NAN]).unwrap_err();
        assert!(error.starts_with("a.npy: row 1: has NaN in column 2"), "{error}");
        let error = check(vec![0.0, 0.0, 0.0, 1.0]).unwrap_err();
        assert!(error.starts_with("a.npy: row 0: is a vector of zeros"), "{error}");
    }

    #[test]
    fn products_are_those_of_plain_sums() {
        let number = |i: usize| (i * 7919 % 1009) as f32 / 1009.0 - 0.5;
        let a = Matrix::new(700, 5, (0..3500).map(number).collect());
        let b = Matrix::new(3, 5, (50..65).map(number).collect());
        let product = a.times_transposed(b.values());
        for (i, row) in product.iter().enumerate() {
            for (j, &x) in row.iter().enumerate() {
                let exact: f32 = a.row(i).iter().zip(b.row(j)).map(|(a, b)| a * b).sum();
                assert!((x - exact).abs() < 1e-6);
            }
        }
    }
}
