//! How vectors are normalised before a map is learned or neighbours are searched. Iterative
//! normalisation is that of Zhang et al. 2019.
//!
//! An orthogonal map keeps lengths and fixes the origin, so two spaces can only fit where lengths
//! and means agree. Iterative normalisation brings about both at once.

use arrays::Matrix;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Rounds of iterative normalisation, as its authors have it.
const ROUNDS: usize = 5;
/// What its authors add to a length before dividing by it.
const EPSILON: f64 = 1e-8;
/// Rows summed up at a time: cut by the data alone, so that the sum is the same on any threads.
const STRIP: usize = 1024;

/// One step of normalisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// Every vector is divided by its length.
    Unit,
    /// The mean is taken away.
    Center,
    /// Unit length and centring by turns, five times, and unit length at last.
    Iterative,
}

terms::named!(Step { Unit => "unit", Center => "center", Iterative => "iterative" });

impl Step {
    /// The step of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|step| step.name() == name)
    }
}

/// Steps as a signature names them.
pub fn describe(steps: &[Step]) -> String {
    if steps.is_empty() {
        return "none".to_owned();
    }
    steps.iter().map(|step| step.name()).collect::<Vec<_>>().join("+")
}

/// Carries out the steps one after another, on all threads.
pub fn normalize(matrix: &mut Matrix, steps: &[Step]) {
    for step in steps {
        match step {
            Step::Unit => unit(matrix, 0.0),
            Step::Center => subtract(matrix, &mean(matrix)),
            Step::Iterative => {
                for _ in 0..ROUNDS {
                    unit(matrix, EPSILON);
                    subtract(matrix, &mean(matrix));
                }
                unit(matrix, EPSILON);
            }
        }
    }
}

pub(crate) fn mean(matrix: &Matrix) -> Vec<f64> {
    let dim = matrix.cols();
    let sums: Vec<Vec<f64>> = matrix
        .values()
        .par_chunks(STRIP * dim)
        .map(|strip| {
            let mut sum = vec![0.0; dim];
            for row in strip.chunks_exact(dim) {
                sum.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x));
            }
            sum
        })
        .collect();
    let mut mean = vec![0.0; dim];
    for sum in sums {
        mean.iter_mut().zip(sum).for_each(|(mean, sum)| *mean += sum);
    }
    mean.iter_mut().for_each(|mean| *mean /= matrix.rows().max(1) as f64);
    mean
}

/// Takes a vector away from every row.
pub(crate) fn subtract(matrix: &mut Matrix, vector: &[f64]) {
    let dim = matrix.cols();
    matrix.values_mut().par_chunks_exact_mut(dim).for_each(|row| {
        row.iter_mut().zip(vector).for_each(|(x, &mean)| *x = (f64::from(*x) - mean) as f32);
    });
}

/// Divides every row by its length; one of no length stays as it is.
fn unit(matrix: &mut Matrix, epsilon: f64) {
    let dim = matrix.cols();
    matrix.values_mut().par_chunks_exact_mut(dim).for_each(|row| {
        let length = length(row) + epsilon;
        if length > 0.0 {
            row.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
        }
    });
}

fn length(vector: &[f32]) -> f64 {
    vector.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(rows: usize, cols: usize) -> Matrix {
        let number = |i: usize| (i * 7919 % 1009) as f32 / 1009.0 - 0.3;
        Matrix::new(rows, cols, (0..rows * cols).map(number).collect())
    }

    #[test]
    fn iterative_normalisation_gives_both_at_once() {
        let mut matrix = numbers(3000, 7);
        normalize(&mut matrix, &[Step::Iterative]);
        assert!(matrix.iter().all(|row| (length(row) - 1.0).abs() < 1e-6));
        assert!(mean(&matrix).iter().all(|mean| mean.abs() < 1e-3), "{:?}", mean(&matrix));
    }

    #[test]
    fn steps_follow_one_another() {
        let mut matrix = numbers(10, 3);
        normalize(&mut matrix, &[Step::Center]);
        assert!(mean(&matrix).iter().all(|mean| mean.abs() < 1e-7));
        normalize(&mut matrix, &[Step::Unit]);
        assert!(matrix.iter().all(|row| (length(row) - 1.0).abs() < 1e-6));
        assert_eq!(describe(&[Step::Center, Step::Unit]), "center+unit");
        assert_eq!(describe(&[]), "none");
    }

    #[test]
    fn a_vector_of_no_length_stays() {
        let mut matrix = Matrix::new(2, 2, vec![0.0, 0.0, 3.0, 4.0]);
        normalize(&mut matrix, &[Step::Unit]);
        assert_eq!(matrix.values(), [0.0, 0.0, 0.6, 0.8]);
    }
}
