//! What is removed from vectors so that their language cannot be told.

use arrays::Matrix;
use faer::Mat;

use crate::normalize::{mean, subtract};
use crate::projection::principal_directions;

pub(super) enum Removal {
    Nothing,
    Means(Vec<Vec<f64>>),
    /// The components in some directions, each of length 1 and at right angles to the others.
    Subspace(Vec<Vec<f64>>),
}

impl Removal {
    pub(super) fn means(languages: &[Matrix]) -> Self {
        Self::Means(languages.iter().map(mean).collect())
    }

    /// The vectors of a language without what is removed.
    pub(super) fn apply(&self, language: usize, vectors: &Matrix) -> Matrix {
        let mut vectors = vectors.clone();
        match self {
            Self::Nothing => {}
            Self::Means(means) => subtract(&mut vectors, &means[language]),
            Self::Subspace(directions) => {
                let dim = vectors.cols();
                for row in vectors.values_mut().chunks_exact_mut(dim) {
                    for direction in directions {
                        let along: f64 =
                            row.iter().zip(direction).map(|(&x, d)| f64::from(x) * d).sum();
                        row.iter_mut()
                            .zip(direction)
                            .for_each(|(x, d)| *x = (f64::from(*x) - along * d) as f32);
                    }
                }
            }
        }
        vectors
    }
}

/// The subspace of language identity of LSAR (Xie et al. 2022, after Piratla et al. 2020): an orthonormal basis of the differences
/// of the languages' means, one direction fewer than there are languages. (Their second step moves the common mean to
/// where it is orthogonal to the subspace, which does not change the subspace.)
pub fn mean_subspace(languages: &[Matrix]) -> Vec<Vec<f64>> {
    let means: Vec<Vec<f64>> = languages.iter().map(mean).collect();
    subspace_of_means(&means)
}

/// The same of the means themselves.
pub fn subspace_of_means(means: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let dim = means[0].len();
    let of =
        |column: usize| means.iter().map(|mean| mean[column]).sum::<f64>() / means.len() as f64;
    let common: Vec<f64> = (0..dim).map(of).collect();
    let centred = Mat::from_fn(dim, means.len(), |row, col| means[col][row] - common[row]);
    let svd = centred.thin_svd().expect("the decomposition of a finite matrix converges");
    let lengths = svd.S().column_vector();
    let largest = lengths[0];
    let kept = (0..(means.len() - 1).min(dim)).filter(|&at| lengths[at] > 1e-9 * largest);
    kept.map(|at| (0..dim).map(|row| svd.U()[(row, at)]).collect()).collect()
}

/// The leading principal directions of all vectors together, about their mean.
pub fn leading_subspace(languages: &[Matrix], count: usize) -> Vec<Vec<f64>> {
    let groups: Vec<&Matrix> = languages.iter().collect();
    principal_directions(&groups, count)
}
