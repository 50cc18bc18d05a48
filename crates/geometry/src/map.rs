//! The orthogonal map of one space onto another: the Procrustes problem (Schönemann 1966).

use std::path::Path;

use arrays::Matrix;
use arrays::npy::{self, Precision};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, get_global_parallelism as parallelism};

use crate::error::{Error, Result};
use crate::matmul::times_transposed;

/// Pairs whose products are added up at a time.
const STRIP: usize = 1024;

/// A square matrix W that maps a vector x of the source space to W x in the target space.
#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    dim: usize,
    /// W, row after row.
    values: Vec<f64>,
}

impl Map {
    /// Leaves vectors as they are.
    pub fn identity(dim: usize) -> Self {
        let values = (0..dim * dim).map(|i| f64::from(u8::from(i / dim == i % dim))).collect();
        Self { dim, values }
    }

    /// The orthogonal map that brings each `source` row closest to its `target` row: U Vᵀ, where
    /// U Σ Vᵀ is the singular value decomposition of Σ y xᵀ over all pairs.
    ///
    /// # Panics
    /// Where the two differ in shape.
    pub fn procrustes(source: &Matrix, target: &Matrix) -> Self {
        let pairs = (0..source.rows()).map(|row| (row as u32, row as u32)).collect::<Vec<_>>();
        assert_eq!(source.rows(), target.rows(), "every row has its counterpart");
        Self::of_pairs(source, target, &pairs)
    }

    /// The same over some pairs of rows.
    pub fn of_pairs(source: &Matrix, target: &Matrix, pairs: &[(u32, u32)]) -> Self {
        let mut cross = CrossProduct::new(source.cols());
        cross.add(source, target, pairs, true);
        cross.nearest_rotation()
    }

    /// First another map, then this one.
    pub fn after(&self, first: &Map) -> Map {
        assert_eq!(self.dim, first.dim, "maps of one dimension");
        let matrix =
            |map: &Map| Mat::from_fn(map.dim, map.dim, |row, col| map.values[row * map.dim + col]);
        let product = matrix(self) * matrix(first);
        let values = (0..self.dim * self.dim).map(|i| product[(i / self.dim, i % self.dim)]);
        Map { dim: self.dim, values: values.collect() }
    }

    /// U Vᵀ of a square matrix.
    fn nearest_rotation(cross: MatRef<'_, f64>) -> Self {
        let dim = cross.nrows();
        let svd = cross.svd().expect("the decomposition of a finite matrix converges");
        let rotation = svd.U() * svd.V().transpose();
        let values = (0..dim * dim).map(|i| rotation[(i / dim, i % dim)]).collect();
        Self { dim, values }
    }

    /// Dimension of both spaces.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// W, row after row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Maps every row.
    pub fn apply(&self, source: &Matrix) -> Matrix {
        assert_eq!(source.cols(), self.dim, "a map fits vectors of its dimension");
        let weights: Vec<f32> = self.values.iter().map(|&x| x as f32).collect();
        times_transposed(source, &weights)
    }

    /// The largest entry of W Wᵀ - I: 0 for a map that is orthogonal.
    pub fn distortion(&self) -> f64 {
        let map = MatRef::from_row_major_slice(&self.values, self.dim, self.dim);
        let product = map * map.transpose();
        let entry = |i: usize, j: usize| product[(i, j)] - f64::from(u8::from(i == j));
        let entries = (0..self.dim * self.dim).map(|at| entry(at / self.dim, at % self.dim).abs());
        entries.fold(0.0, f64::max)
    }

    /// Writes W as an array of NumPy, `dim x dim`.
    pub fn save(&self, path: &Path) -> Result<()> {
        Ok(npy::write(path, &[self.dim, self.dim], &self.values, Precision::Double)?)
    }

    /// Reads W.
    pub fn load(path: &Path) -> Result<Self> {
        let array = npy::read::<f64>(path)?.finite(path)?;
        let place = path.display();
        let &[rows, cols] = array.shape.as_slice() else {
            let reason = format!("has the shape {:?}", array.shape);
            return Err(Error::input(place, reason, "give a square matrix"));
        };
        if rows != cols || rows == 0 {
            let reason = format!("is {rows} x {cols}");
            return Err(Error::input(place, reason, "give a square matrix"));
        }
        Ok(Self { dim: rows, values: array.values })
    }
}

/// Σ y xᵀ over pairs of vectors: all that their map depends on.
pub(crate) struct CrossProduct {
    sum: Mat<f64>,
    pairs: usize,
}

impl CrossProduct {
    /// Of no pairs.
    pub(crate) fn new(dim: usize) -> Self {
        Self { sum: Mat::zeros(dim, dim), pairs: 0 }
    }

    /// Pairs that were added.
    pub(crate) fn pairs(&self) -> usize {
        self.pairs
    }

    /// Adds pairs of rows; `forward` says that the first of each is the source's.
    pub(crate) fn add(
        &mut self,
        source: &Matrix,
        target: &Matrix,
        pairs: &[(u32, u32)],
        forward: bool,
    ) {
        assert_eq!(source.cols(), target.cols(), "an orthogonal map keeps the dimension");
        let dim = source.cols();
        for strip in pairs.chunks(STRIP) {
            let rows = |matrix: &Matrix, first: bool| -> Vec<f64> {
                let row = |&(a, b): &(u32, u32)| matrix.row(if first { a } else { b } as usize);
                strip.iter().flat_map(row).map(|&x| f64::from(x)).collect()
            };
            let (x, y) = (rows(source, forward), rows(target, !forward));
            let matrix = |rows| MatRef::from_row_major_slice(rows, strip.len(), dim);
            matmul(
                self.sum.as_mut(),
                Accum::Add,
                matrix(&y).transpose(),
                matrix(&x),
                1.0,
                parallelism(),
            );
        }
        self.pairs += pairs.len();
    }

    /// Adds the pairs of another with their target mapped; of `exchanged` pairs, source and target change places first.
    pub(crate) fn add_mapped(&mut self, map: &Map, other: &CrossProduct, exchanged: bool) {
        let map = MatRef::from_row_major_slice(&map.values, map.dim, map.dim);
        match exchanged {
            false => self.sum += map * &other.sum,
            true => self.sum += map * other.sum.transpose(),
        }
        self.pairs += other.pairs;
    }

    /// The orthogonal map that brings each source closest to its target.
    pub(crate) fn nearest_rotation(&self) -> Map {
        Map::nearest_rotation(self.sum.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(rows: usize, cols: usize) -> Matrix {
        let number = |i: usize| (i * 7919 % 1009) as f32 / 1009.0 - 0.5;
        Matrix::new(rows, cols, (0..rows * cols).map(number).collect())
    }

    #[test]
    fn a_rotation_is_recovered() {
        let source = numbers(40, 2);
        let (sin, cos) = 0.7f32.sin_cos();
        let turned: Vec<f32> = source
            .iter()
            .flat_map(|v| [cos * v[0] - sin * v[1], sin * v[0] + cos * v[1]])
            .collect();
        let target = Matrix::new(40, 2, turned);
        let map = Map::procrustes(&source, &target);
        for (w, exact) in map.values().iter().zip([cos, -sin, sin, cos]) {
            assert!((w - f64::from(exact)).abs() < 1e-6, "{w} {exact}");
        }
        for (mapped, y) in map.apply(&source).values().iter().zip(target.values()) {
            assert!((mapped - y).abs() < 1e-6);
        }
        assert!(map.distortion() < 1e-12);
    }

    #[test]
    fn a_map_comes_back_from_its_file() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("w.npy");
        let map = Map::procrustes(&numbers(30, 5), &numbers(30, 5));
        map.save(&path).unwrap();
        assert_eq!(Map::load(&path).unwrap(), map);
        npy::write(&path, &[2, 3], &[0.0; 6], Precision::Double).unwrap();
        assert!(Map::load(&path).unwrap_err().to_string().contains("is 2 x 3"));
        npy::write(&path, &[1, 1], &[f64::NAN], Precision::Double).unwrap();
        assert!(Map::load(&path).unwrap_err().to_string().contains("value 1 of 1 is not finite"));
    }
}
