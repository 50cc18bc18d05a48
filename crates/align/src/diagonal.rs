//! The alignment prior of fast_align (Dyer et al. 2013): positions far from the diagonal are less likely.
//!
//! Word j of m (from 1) is aligned to position i of n with weight exp(-λ |i/n - j/m|). On either side of
//! the diagonal the weights are a geometric series with ratio exp(-λ/n), so the powers of that ratio and
//! their sums, precomputed for each length n, give every weight, the normaliser and its derivative by λ
//! without a loop over positions.

pub(crate) const LEAST_TENSION: f64 = 0.1;

/// Powers of exp(-λ/n) for each length n that occurs.
pub(crate) struct Diagonal {
    tension: f64,
    /// By n; empty where no sentence is so long.
    powers: Vec<GeometricSeries>,
}

/// What is needed of the geometric series with ratio r = exp(-λ/n).
#[derive(Clone, Default)]
struct GeometricSeries {
    /// r^k for k in 0..=n.
    power: Vec<f64>,
    /// The sum of r^q over q < k, for k in 0..=n.
    sum: Vec<f64>,
    /// The sum of q r^q over q < k, for k in 0..=n.
    moment: Vec<f64>,
}

/// The weights of all places for one word.
pub(crate) struct DiagonalRow<'a> {
    /// Places up to this one lie below the diagonal or on it.
    pub(crate) floor: usize,
    /// The weight of place `floor`, and what is multiplied by it: r^k for the place k below.
    pub(crate) below: f64,
    /// The weight of place `floor + 1`, and what is multiplied by it likewise.
    pub(crate) above: f64,
    /// The sum of all weights.
    pub(crate) normaliser: f64,
    /// r^k.
    pub(crate) power: &'a [f64],
}

impl Diagonal {
    /// Prepares the lengths that occur.
    pub(crate) fn new(tension: f64, lengths: impl Iterator<Item = usize>) -> Self {
        let mut powers = Vec::new();
        for n in lengths {
            if powers.len() <= n {
                powers.resize_with(n + 1, GeometricSeries::default);
            }
            if powers[n].power.is_empty() {
                powers[n] = GeometricSeries::new(tension, n);
            }
        }
        Self { tension, powers }
    }

    /// The weights of n places for word j of m, from 1.
    pub(crate) fn row(&self, j: usize, m: usize, n: usize) -> DiagonalRow<'_> {
        let powers = &self.powers[n];
        let (floor, rest) = split(j, m, n);
        let below = (-self.tension * rest / n as f64).exp();
        let above = powers.power[1] / below;
        let normaliser = below * powers.sum[floor] + above * powers.sum[n - floor];
        DiagonalRow { floor, below, above, normaliser, power: &powers.power }
    }

    /// The mean of -|i/n - j/m| over the places, which is the derivative of the normaliser's
    /// logarithm by λ.
    pub(crate) fn mean_feature(&self, j: usize, m: usize, n: usize) -> f64 {
        self.weighted_feature(j, m, n) / self.row(j, m, n).normaliser
    }

    /// The derivative of the normaliser by λ.
    pub(crate) fn weighted_feature(&self, j: usize, m: usize, n: usize) -> f64 {
        let GeometricSeries { sum, moment, .. } = &self.powers[n];
        let (floor, rest) = split(j, m, n);
        let row = self.row(j, m, n);
        let top = n - floor;
        let below = row.below * (rest * sum[floor] + moment[floor]);
        let above = row.above * ((1.0 - rest) * sum[top] + moment[top]);
        -(below + above) / n as f64
    }
}

impl DiagonalRow<'_> {
    /// Weights whose sum is `total`.
    pub(crate) fn scaled_to(mut self, total: f64) -> Self {
        let scale = total / self.normaliser;
        self.below *= scale;
        self.above *= scale;
        self.normaliser = total;
        self
    }

    /// The weight of place i, from 1.
    pub(crate) fn weight(&self, i: usize) -> f64 {
        match i {
            i if i <= self.floor => self.below * self.power[self.floor - i],
            i => self.above * self.power[i - self.floor - 1],
        }
    }
}

impl GeometricSeries {
    fn new(tension: f64, n: usize) -> Self {
        let rate = tension / n as f64;
        let power: Vec<f64> = (0..=n).map(|k| (-rate * k as f64).exp()).collect();
        let (mut sum, mut moment) = (vec![0.0], vec![0.0]);
        for (k, power) in power[..n].iter().enumerate() {
            sum.push(sum[k] + power);
            moment.push(moment[k] + k as f64 * power);
        }
        Self { power, sum, moment }
    }
}

/// Where the diagonal crosses row j of m: after so many of n places, and so far towards the next.
fn split(j: usize, m: usize, n: usize) -> (usize, f64) {
    (j * n / m, (j * n % m) as f64 / m as f64)
}

/// The λ, up to `most`, at which the mean feature is what was observed: the maximum of a concave
/// function, so that a likelihood that depends on it never falls. `mean` gives the model's mean
/// for a λ, which grows with it.
pub(crate) fn solve_tension(observed: f64, most: f64, mean: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (LEAST_TENSION, most);
    if mean(low) >= observed {
        return low;
    }
    if mean(high) <= observed {
        return high;
    }
    while high - low > 1e-10 {
        let middle = 0.5 * (low + high);
        *(if mean(middle) < observed { &mut low } else { &mut high }) = middle;
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brute(tension: f64, j: usize, m: usize, n: usize) -> (Vec<f64>, f64) {
        let feature = |i: usize| -(i as f64 / n as f64 - j as f64 / m as f64).abs();
        let weights: Vec<f64> = (1..=n).map(|i| (tension * feature(i)).exp()).collect();
        let derivative = (1..=n).map(|i| feature(i) * weights[i - 1]).sum();
        (weights, derivative)
    }

    #[test]
    fn sums_of_series_are_sums_over_places() {
        for tension in [0.0, 0.1, 4.0, 14.0] {
            for (m, n) in [(1, 1), (7, 10), (10, 7), (5, 5), (1, 9), (9, 1), (30, 64)] {
                let diagonal = Diagonal::new(tension, [n].into_iter());
                for j in 1..=m {
                    let (weights, derivative) = brute(tension, j, m, n);
                    let row = diagonal.row(j, m, n);
                    for (i, weight) in (1..).zip(&weights) {
                        assert!((row.weight(i) / weight - 1.0).abs() < 1e-12);
                    }
                    let z: f64 = weights.iter().sum();
                    assert!((row.normaliser / z - 1.0).abs() < 1e-12);
                    let ours = diagonal.weighted_feature(j, m, n);
                    assert!((ours - derivative).abs() < 1e-12 * z);
                }
            }
        }
    }

    #[test]
    fn the_derivative_is_that_of_the_normaliser() {
        // The example of the original's issue 11, which found 2.77 in place of 4.23.
        let z = |tension| Diagonal::new(tension, [10].into_iter()).row(3, 7, 10).normaliser;
        assert!((z(4.0) - 4.23).abs() < 0.01, "{}", z(4.0));
        let numeric = (z(4.0 + 1e-5).ln() - z(4.0 - 1e-5).ln()) / 2e-5;
        let exact = Diagonal::new(4.0, [10].into_iter()).mean_feature(3, 7, 10);
        assert!((numeric - exact).abs() < 1e-9, "{numeric} {exact}");
    }

    #[test]
    fn the_tension_is_found_again() {
        let mean = |tension: f64| Diagonal::new(tension, [12].into_iter()).mean_feature(5, 9, 12);
        for tension in [0.5, 4.0, 11.0] {
            assert!((solve_tension(mean(tension), 14.0, mean) - tension).abs() < 1e-8);
        }
        assert_eq!(solve_tension(0.0, 4.0, mean), 4.0);
        assert_eq!(solve_tension(-1.0, 4.0, mean), LEAST_TENSION);
    }
}
