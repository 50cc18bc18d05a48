//! A linear probe: multinomial logistic regression with an L2 penalty, as scikit-learn's `LogisticRegression` with C = 1, on
//! standardised columns; and features in which it sees more than means. The optimum is found by L-BFGS (Liu & Nocedal 1989); sums are taken in an order that does not depend
//! on threads.

use arrays::Matrix;
use rayon::prelude::*;

use crate::normalize::mean;

/// StandardizedRows whose losses one thread adds up.
const CHUNK: usize = 256;
/// Pairs of steps that the quasi-Newton direction is made of.
const MEMORY: usize = 10;
/// The most iterations; a hundred are usually enough.
const ITERATIONS: usize = 500;
/// The largest entry of the gradient at which the search ends.
pub(super) const TOLERANCE: f64 = 1e-6;
/// The same where there are many more columns, and only what is told counts.
pub(super) const LOOSE: f64 = 1e-4;

/// Weights and bias of each class, for standardised columns.
pub(super) struct LinearProbe {
    /// For each class: dim weights, then the bias.
    weights: Vec<f64>,
    classes: usize,
    mean: Vec<f64>,
    scale: Vec<f64>,
}

struct StandardizedRows<'a> {
    /// rows x dim.
    values: Vec<f64>,
    dim: usize,
    labels: &'a [u32],
    classes: usize,
}

impl LinearProbe {
    /// Learns to tell the labels of the rows of some matrices, one after another.
    pub(super) fn train(
        matrices: &[Matrix],
        labels: &[u32],
        classes: usize,
        tolerance: f64,
    ) -> Self {
        let dim = matrices[0].cols();
        let (mean, scale) = standardization(matrices);
        let mut probe = Self { weights: vec![0.0; classes * (dim + 1)], classes, mean, scale };
        let rows = StandardizedRows { values: probe.standardized(matrices), dim, labels, classes };
        probe.weights = minimized(&rows, probe.weights.clone(), tolerance);
        probe
    }

    fn standardized(&self, matrices: &[Matrix]) -> Vec<f64> {
        let row = |row: &'_ [f32]| -> Vec<f64> {
            let column = row.iter().zip(&self.mean).zip(&self.scale);
            column.map(|((&x, mean), scale)| (f64::from(x) - mean) * scale).collect()
        };
        matrices.iter().flat_map(Matrix::iter).flat_map(row).collect()
    }

    /// The share of rows whose label it tells.
    pub(super) fn accuracy(&self, matrices: &[Matrix], labels: &[u32]) -> f64 {
        let dim = self.mean.len();
        let values = self.standardized(matrices);
        let right = values.par_chunks_exact(dim).zip(labels).filter(|(row, label)| {
            let scores = scores(&self.weights, row, self.classes);
            let best = (0..self.classes)
                .fold(0, |best, class| if scores[class] > scores[best] { class } else { best });
            best == **label as usize
        });
        right.count() as f64 / labels.len() as f64
    }
}

/// The mean of each column over all matrices, and what its deviations are multiplied by to have a variance of 1; 0 of a column
/// without any.
fn standardization(matrices: &[Matrix]) -> (Vec<f64>, Vec<f64>) {
    let dim = matrices[0].cols();
    let n = matrices.iter().map(Matrix::rows).sum::<usize>() as f64;
    let means: Vec<Vec<f64>> = matrices.iter().map(mean).collect();
    let weighted = |column: usize| {
        let sum = matrices.iter().zip(&means).map(|(one, mean)| one.rows() as f64 * mean[column]);
        sum.sum::<f64>() / n
    };
    let mean: Vec<f64> = (0..dim).map(weighted).collect();
    let mut squares = vec![0.0; dim];
    for row in matrices.iter().flat_map(Matrix::iter) {
        for ((square, &x), mean) in squares.iter_mut().zip(row).zip(&mean) {
            *square += (f64::from(x) - mean).powi(2);
        }
    }
    let inverse = |square: f64| if square > 0.0 { (square / n).sqrt().recip() } else { 0.0 };
    let scale = squares.into_iter().map(inverse).collect();
    (mean, scale)
}

/// What the second probe reads of a vector: its standardised columns, their squares and hyperbolic tangents (bounded, so that a few
/// large numbers do not decide), and products of components. A difference of spread, of skew or of correlations is a difference
/// of means in them.
pub(super) struct Features<'a> {
    mean: Vec<f64>,
    scale: Vec<f64>,
    components: &'a [Vec<f64>],
}

impl<'a> Features<'a> {
    /// Standardised by these vectors.
    pub(super) fn of(train: &[Matrix], components: &'a [Vec<f64>]) -> Self {
        let (mean, scale) = standardization(train);
        Self { mean, scale, components }
    }

    pub(super) fn apply(&self, languages: &[Matrix]) -> Vec<Matrix> {
        languages.iter().map(|vectors| self.of_vectors(vectors)).collect()
    }

    fn of_vectors(&self, vectors: &Matrix) -> Matrix {
        let count = self.components.len();
        let width = 3 * self.mean.len() + count * (count + 1) / 2;
        let mut values = Vec::with_capacity(vectors.rows() * width);
        for row in vectors.iter() {
            let deviations: Vec<f64> =
                row.iter().zip(&self.mean).map(|(&x, mean)| f64::from(x) - mean).collect();
            for (deviation, scale) in deviations.iter().zip(&self.scale) {
                let x = deviation * scale;
                values.extend([x, x * x, (2.0 * x).tanh()].map(|feature| feature as f32));
            }
            let along: Vec<f64> = self.components.iter().map(|one| dot(one, &deviations)).collect();
            for (place, first) in along.iter().enumerate() {
                values.extend(along[place..].iter().map(|second| (first * second) as f32));
            }
        }
        Matrix::new(vectors.rows(), width, values)
    }
}

fn scores(weights: &[f64], row: &[f64], classes: usize) -> Vec<f64> {
    let width = row.len() + 1;
    let score = |class: usize| {
        let own = &weights[class * width..][..width];
        own[row.len()] + own.iter().zip(row).map(|(w, x)| w * x).sum::<f64>()
    };
    (0..classes).map(score).collect()
}

impl StandardizedRows<'_> {
    /// The mean loss with its penalty, and the gradient.
    fn loss(&self, weights: &[f64]) -> (f64, Vec<f64>) {
        let (width, n) = (self.dim + 1, self.labels.len() as f64);
        let part = |(values, labels): (&[f64], &[u32])| {
            let (mut loss, mut gradient) = (0.0, vec![0.0; weights.len()]);
            for (row, &label) in values.chunks_exact(self.dim).zip(labels) {
                let mut scores = scores(weights, row, self.classes);
                let best = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                loss -= scores[label as usize] - best;
                scores.iter_mut().for_each(|score| *score = (*score - best).exp());
                let total: f64 = scores.iter().sum();
                loss += total.ln();
                for (class, score) in scores.iter().enumerate() {
                    let residual = score / total - f64::from(u8::from(class == label as usize));
                    let own = &mut gradient[class * width..][..width];
                    own.iter_mut().zip(row).for_each(|(sum, x)| *sum += residual * x);
                    own[self.dim] += residual;
                }
            }
            (loss, gradient)
        };
        let chunks = self.values.par_chunks(CHUNK * self.dim).zip(self.labels.par_chunks(CHUNK));
        let parts: Vec<(f64, Vec<f64>)> = chunks.map(part).collect();
        let (mut loss, mut gradient) = (0.0, vec![0.0; weights.len()]);
        for (own, more) in parts {
            loss += own;
            gradient.iter_mut().zip(more).for_each(|(sum, x)| *sum += x);
        }
        // The bias is not penalised.
        for (at, (sum, weight)) in gradient.iter_mut().zip(weights).enumerate() {
            if at % width != self.dim {
                loss += weight * weight / 2.0;
                *sum += weight;
            }
        }
        gradient.iter_mut().for_each(|x| *x /= n);
        (loss / n, gradient)
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn minimized(rows: &StandardizedRows<'_>, mut weights: Vec<f64>, tolerance: f64) -> Vec<f64> {
    let mut history: Vec<(Vec<f64>, Vec<f64>)> = Vec::new();
    let (mut loss, mut gradient) = rows.loss(&weights);
    for _ in 0..ITERATIONS {
        if gradient.iter().all(|x| x.abs() < tolerance) {
            break;
        }
        let direction = quasi_newton(&history, &gradient);
        let slope = dot(&direction, &gradient);
        let mut step =
            if history.is_empty() { 1.0 / dot(&gradient, &gradient).sqrt().max(1.0) } else { 1.0 };
        // Backtracking until the loss falls enough (Armijo 1966).
        let next = loop {
            let moved: Vec<f64> =
                weights.iter().zip(&direction).map(|(w, d)| w + step * d).collect();
            let (there, slopes) = rows.loss(&moved);
            if there <= loss + 1e-4 * step * slope {
                break Some((moved, there, slopes));
            }
            step /= 2.0;
            if step < 1e-12 {
                break None;
            }
        };
        // Rounding leaves nothing to gain.
        let Some((moved, there, slopes)) = next else { break };
        let moves = moved.iter().zip(&weights).map(|(a, b)| a - b).collect::<Vec<_>>();
        let turns = slopes.iter().zip(&gradient).map(|(a, b)| a - b).collect::<Vec<_>>();
        if dot(&moves, &turns) > 0.0 {
            if history.len() == MEMORY {
                history.remove(0);
            }
            history.push((moves, turns));
        }
        (weights, loss, gradient) = (moved, there, slopes);
    }
    weights
}

/// The direction of descent by the last steps (two-loop recursion).
fn quasi_newton(history: &[(Vec<f64>, Vec<f64>)], gradient: &[f64]) -> Vec<f64> {
    let mut direction: Vec<f64> = gradient.iter().map(|x| -x).collect();
    let mut factors = Vec::new();
    for (moves, turns) in history.iter().rev() {
        let factor = dot(moves, &direction) / dot(moves, turns);
        direction.iter_mut().zip(turns).for_each(|(d, y)| *d -= factor * y);
        factors.push(factor);
    }
    if let Some((moves, turns)) = history.last() {
        let scale = dot(moves, turns) / dot(turns, turns);
        direction.iter_mut().for_each(|d| *d *= scale);
    }
    for ((moves, turns), factor) in history.iter().zip(factors.into_iter().rev()) {
        let back = dot(turns, &direction) / dot(moves, turns);
        direction.iter_mut().zip(moves).for_each(|(d, s)| *d += (factor - back) * s);
    }
    direction
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::language_id::{leading_subspace, mean_subspace};

    fn fixture() -> Value {
        let text = include_str!("../../tests/fixtures/language-id.json");
        serde_json::from_str(text).unwrap()
    }

    fn numbers(value: &Value) -> Vec<f64> {
        value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
    }

    fn matrices(fixture: &Value, key: &str) -> Vec<Matrix> {
        let dim = fixture["dim"].as_u64().unwrap() as usize;
        let matrix = |values: &Value| {
            let values: Vec<f32> = numbers(values).iter().map(|&x| x as f32).collect();
            Matrix::new(values.len() / dim, dim, values)
        };
        fixture[key].as_array().unwrap().iter().map(matrix).collect()
    }

    fn labels(matrices: &[Matrix]) -> Vec<u32> {
        let of = |(at, one): (usize, &Matrix)| vec![at as u32; one.rows()];
        matrices.iter().enumerate().flat_map(of).collect()
    }

    /// Weights, biases and accuracy of scikit-learn's `LogisticRegression` (`tests/fixtures/make.py`).
    #[test]
    fn the_probe_is_that_of_scikit_learn() {
        let fixture = fixture();
        let (train, test) = (matrices(&fixture, "train"), matrices(&fixture, "test"));
        let probe = LinearProbe::train(&train, &labels(&train), 3, TOLERANCE);
        let width = train[0].cols() + 1;
        let biases: Vec<f64> = (0..3).map(|class| probe.weights[(class + 1) * width - 1]).collect();
        let mean = biases.iter().sum::<f64>() / 3.0;
        let classes = probe.weights.chunks(width).flat_map(|class| &class[..width - 1]);
        let theirs = numbers(&fixture["weights"]).into_iter().chain(numbers(&fixture["bias"]));
        let ours = classes.copied().chain(biases.iter().map(|bias| bias - mean));
        for (ours, theirs) in ours.zip(theirs) {
            assert!((ours - theirs).abs() < 1e-4, "{ours} is not {theirs}");
        }
        let accuracy = probe.accuracy(&test, &labels(&test));
        assert!((accuracy - fixture["accuracy"].as_f64().unwrap()).abs() < 1e-8, "{accuracy}");
    }

    /// The projections onto the subspaces that LSAR and PCA remove.
    #[test]
    fn subspaces_are_those_of_numpy() {
        let fixture = fixture();
        let train = matrices(&fixture, "train");
        let found = [("lsar", mean_subspace(&train)), ("leading", leading_subspace(&train, 2))];
        for (key, basis) in found {
            let dim = train[0].cols();
            for (at, theirs) in numbers(&fixture[key]).into_iter().enumerate() {
                let (row, col) = (at / dim, at % dim);
                let ours: f64 = basis.iter().map(|direction| direction[row] * direction[col]).sum();
                assert!((ours - theirs).abs() < 1e-6, "{key}: {ours} is not {theirs}");
            }
        }
    }
}
