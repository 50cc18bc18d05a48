//! 95 % confidence intervals: of the mean of a few numbers by Student's t, and of a share by Wilson's score.
//!
//! One number gives no interval, and nothing pretends that it does. A share of 0 or 1 has one all the same: none of a
//! hundred does not say that it never happens.

use serde::{Deserialize, Serialize};

/// The 97.5 % points of Student's t for 1 to 30 degrees of freedom.
const T: [f64; 30] = [
    12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004, 2.262157,
    2.228139, 2.200985, 2.178813, 2.160369, 2.144787, 2.131450, 2.119905, 2.109816, 2.100922,
    2.093024, 2.085963, 2.079614, 2.073873, 2.068658, 2.063899, 2.059539, 2.055529, 2.051831,
    2.048407, 2.045230, 2.042272,
];

/// The 97.5 % point of the normal distribution.
const Z: f64 = 1.959_963_985;

/// A mean with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half the width of the 95 % interval; none of a single number.
    pub half_width: Option<f64>,
    /// How many numbers it is the mean of.
    pub n: usize,
}

impl Estimate {
    /// The mean of some numbers, with its interval; `None` of an empty slice.
    pub fn of(numbers: &[f64]) -> Option<Self> {
        let n = numbers.len();
        if n == 0 {
            return None;
        }
        let mean = numbers.iter().sum::<f64>() / n as f64;
        let half_width = (n > 1).then(|| {
            let squares: f64 = numbers.iter().map(|x| (x - mean).powi(2)).sum();
            t_quantile(n - 1) * (squares / (n - 1) as f64 / n as f64).sqrt()
        });
        Some(Self { mean, half_width, n })
    }

    /// The bounds of the interval.
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.half_width.map(|half| (self.mean - half, self.mean + half))
    }
}

/// The ends of the 95 % score interval of a share of `n` independent trials (Wilson 1927).
///
/// ```
/// let (low, high) = terms::wilson(0.0, 100.0);
/// assert!(low == 0.0 && high > 0.03);
/// ```
pub fn wilson(share: f64, n: f64) -> (f64, f64) {
    let square = Z * Z;
    let centre = (share + square / (2.0 * n)) / (1.0 + square / n);
    let half = Z / (1.0 + square / n) * (share * (1.0 - share) / n + square / (4.0 * n * n)).sqrt();
    // Rounding must not leave the share outside.
    ((centre - half).clamp(0.0, share), (centre + half).clamp(share, 1.0))
}

/// The 97.5 % point of Student's t: tabulated, and beyond the table expanded around the normal's.
fn t_quantile(freedom: usize) -> f64 {
    if let Some(&t) = T.get(freedom - 1) {
        return t;
    }
    let (z, v) = (Z, freedom as f64);
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + first / v + second / v.powi(2) + third / v.powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against `scipy.stats.t.interval(0.95, n - 1, mean, sem)`.
    #[test]
    fn intervals_are_students() {
        let mean = Estimate::of(&[0.81, 0.84, 0.79, 0.86, 0.83]).unwrap();
        assert_eq!(mean.n, 5);
        let (low, high) = mean.interval().unwrap();
        assert!(
            (low - 0.792_452_1).abs() < 1e-6 && (high - 0.859_547_9).abs() < 1e-6,
            "{low} {high}"
        );
        let many: Vec<f64> = (0..40).map(f64::from).collect();
        let (low, high) = Estimate::of(&many).unwrap().interval().unwrap();
        assert!(
            (low - 15.761_212).abs() < 1e-5 && (high - 23.238_788).abs() < 1e-5,
            "{low} {high}"
        );
        assert_eq!(Estimate::of(&[0.5]).unwrap().half_width, None);
        assert_eq!(Estimate::of(&[]), None);
    }

    /// Against `statsmodels.stats.proportion.proportion_confint(count, n, method="wilson")`.
    #[test]
    fn intervals_of_shares_are_wilsons() {
        let cases = [
            (45.0, 50.0, 0.786_398, 0.956_524),
            (0.0, 50.0, 0.0, 0.071_348),
            (50.0, 50.0, 0.928_652, 1.0),
            (1.0, 1000.0, 0.000_177, 0.005_643),
        ];
        for (count, n, low, high) in cases {
            let found = wilson(count / n, n);
            assert!((found.0 - low).abs() < 1e-6 && (found.1 - high).abs() < 1e-6, "{found:?}");
        }
    }

    /// Against `scipy.stats.t.ppf(0.975, v)`.
    #[test]
    fn quantiles_beyond_the_table() {
        assert!((t_quantile(40) - 2.021_075).abs() < 1e-6);
        assert!((t_quantile(1000) - 1.962_339).abs() < 1e-6);
    }
}
