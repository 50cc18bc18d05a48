//! WordVectors in rows.

use std::ops::Range;

use crate::{Error, Result};

/// WordVectors of one dimension in rows, one after another.
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
    pub fn values_mut(&mut self) -> &mut [f32] {
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

    /// Refuses a value that is not finite and a vector of no length, naming the first by `name`, whose number counts from 0 as columns and
    /// layers do.
    pub fn check(&self, file: &str, name: impl Fn(usize) -> String) -> Result<()> {
        // Without a branch for each value: the bits of all magnitudes, and whether any is not finite.
        let good = |vector: &[f32]| {
            let look = |(bits, odd): (u32, bool), x: &f32| {
                (bits | x.abs().to_bits(), odd | !x.is_finite())
            };
            let (bits, odd) = vector.iter().fold((0, false), look);
            bits != 0 && !odd
        };
        for (row, vector) in self.iter().enumerate().filter(|(_, vector)| !good(vector)) {
            let place = || format!("{file}: {}", name(row));
            if let Some(column) = vector.iter().position(|x| !x.is_finite()) {
                let reason = format!(
                    "has {} in column {column} (rows and columns count from 0)",
                    vector[column]
                );
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
        assert!(
            error.starts_with("a.npy: row 1: has NaN in column 1 (rows and columns count from 0)"),
            "{error}"
        );
        let error = check(vec![0.0, 0.0, 0.0, 1.0]).unwrap_err();
        assert!(error.starts_with("a.npy: row 0: is a vector of zeros"), "{error}");
    }
}
