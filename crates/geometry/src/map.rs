//! The orthogonal map of one space onto another: the Procrustes problem (Schönemann 1966).

use std::borrow::Cow;
use std::path::Path;

use arrays::Matrix;
use arrays::npy::{self, Precision};
use faer::{Mat, MatRef};
use rayon::prelude::*;

use crate::matmul::{rows_by_rows, times_transposed};
use crate::products::HostSum;
use crate::{Error, Result};

/// Pairs whose products are added up in single precision, and pairs that one thread maps at a time; sums over more are in double.
const STRIP: usize = 512;

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
        times_transposed(source, &self.weights())
    }

    /// The mean cosine of mapped rows and their counterparts. No mapped row is kept.
    pub fn mean_cosine(&self, source: &Matrix, target: &Matrix, pairs: &[(u32, u32)]) -> f64 {
        let (dim, weights) = (self.dim, self.weights());
        let of_strip = |mapped: &mut Vec<f32>, strip: &[(u32, u32)]| {
            let [x, y] = paired_rows(source, target, strip);
            mapped.resize(x.len(), 0.0);
            rows_by_rows(&x, &weights, dim, mapped);
            mapped
                .chunks_exact(dim)
                .zip(y.chunks_exact(dim))
                .map(|(x, y)| cosine(x, y))
                .sum::<f64>()
        };
        let sums = pairs.par_chunks(STRIP).map_init(Vec::new, of_strip).collect::<Vec<f64>>();
        sums.iter().sum::<f64>() / pairs.len().max(1) as f64
    }

    /// W in single precision, row after row.
    fn weights(&self) -> Vec<f32> {
        self.values.iter().map(|&x| x as f32).collect()
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
        npy::write(path, &[self.dim, self.dim], &self.values, Precision::Double)
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
    pub(crate) fn new(dim: usize) -> Self {
        Self { sum: Mat::zeros(dim, dim), pairs: 0 }
    }

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
        let mut sum = HostSum::new(dim, dim);
        for strip in pairs.chunks(STRIP) {
            let [x, y] = match forward {
                true => paired_rows(source, target, strip),
                false => {
                    let [y, x] = paired_rows(target, source, strip);
                    [x, y]
                }
            };
            sum.add(&y, &x);
        }
        let sum = sum.into_values();
        self.sum += MatRef::from_row_major_slice(&sum, dim, dim);
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

/// The rows of pairs, one after another on each side, without a copy where they follow one another already.
fn paired_rows<'a>(
    source: &'a Matrix,
    target: &'a Matrix,
    pairs: &[(u32, u32)],
) -> [Cow<'a, [f32]>; 2] {
    let side = |matrix: &'a Matrix, rows: &mut dyn Iterator<Item = usize>| {
        let rows: Vec<usize> = rows.collect();
        let start = rows.first().copied().unwrap_or_default();
        match rows.iter().enumerate().all(|(at, &row)| row == start + at) {
            true => Cow::Borrowed(matrix.strip(start..start + rows.len())),
            false => Cow::Owned(rows.iter().flat_map(|&row| matrix.row(row)).copied().collect()),
        }
    };
    let mut rows = pairs.iter().map(|&(row, _)| row as usize);
    let mut others = pairs.iter().map(|&(_, row)| row as usize);
    [side(source, &mut rows), side(target, &mut others)]
}

/// The cosine of two vectors; 0 where one has no length.
pub(crate) fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (a, b) in a.iter().zip(b).map(|(&a, &b)| (f64::from(a), f64::from(b))) {
        ab += a * b;
        aa += a * a;
        bb += b * b;
    }
    ab / (aa * bb).sqrt().max(f64::MIN_POSITIVE)
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
    fn pairs_in_any_order_give_the_same_map_and_cosine() {
        let (rows, cols) = (STRIP + 100, 6);
        let (source, target) = (numbers(rows, cols), numbers(rows + 1, cols));
        let target = Matrix::new(rows, cols, target.values()[cols..].to_vec());
        let pairs: Vec<(u32, u32)> = (0..rows as u32).map(|row| (row, row)).collect();
        let reversed: Vec<(u32, u32)> = pairs.iter().rev().copied().collect();
        let map = Map::of_pairs(&source, &target, &pairs);
        let other = Map::of_pairs(&source, &target, &reversed);
        assert!(map.values().iter().zip(other.values()).all(|(a, b)| (a - b).abs() < 1e-5));
        let mapped = map.apply(&source);
        let each = mapped.iter().zip(target.iter()).map(|(x, y)| cosine(x, y));
        let expected = each.sum::<f64>() / rows as f64;
        for pairs in [&pairs, &reversed] {
            let found = map.mean_cosine(&source, &target, pairs);
            assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        }
        assert!(expected > 0.1);
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
