//! Means of a few numbers, and how sure they are.

use serde::{Deserialize, Serialize};

/// Student's t for 95 %, two-sided, by degrees of freedom from 1.
const T: [f64; 30] = [
    12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004, 2.262157,
    2.228139, 2.200985, 2.178813, 2.160369, 2.144787, 2.131450, 2.119905, 2.109816, 2.100922,
    2.093024, 2.085963, 2.079614, 2.073873, 2.068658, 2.063899, 2.059539, 2.055529, 2.051831,
    2.048407, 2.045230, 2.042272,
];

/// A mean over runs, with half the width of its 95 % interval by Student's t.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// Half the width of the interval; none where one run says nothing of the spread.
    pub interval: Option<f64>,
    /// How many runs.
    pub runs: usize,
}

impl Mean {
    /// Of these numbers.
    ///
    /// # Panics
    /// Where there are none.
    pub fn of(numbers: &[f64]) -> Self {
        assert!(!numbers.is_empty(), "a mean of something");
        let runs = numbers.len();
        let mean = numbers.iter().sum::<f64>() / runs as f64;
        let interval = (runs > 1).then(|| {
            let squares = numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
            let deviation = (squares / (runs - 1) as f64).sqrt();
            student(runs - 1) * deviation / (runs as f64).sqrt()
        });
        Self { mean, interval, runs }
    }
}

/// Student's t; beyond the table expanded around the normal quantile. The report has the same of its
/// own (crate `lab`), since neither room knows of the other.
fn student(freedom: usize) -> f64 {
    if let Some(&t) = T.get(freedom - 1) {
        return t;
    }
    let (z, v) = (1.959_963_985_f64, freedom as f64);
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + first / v + second / v.powi(2) + third / v.powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_student_s() {
        let mean = Mean::of(&[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(mean.mean, 2.5);
        // 3.182 · 1.29099 / 2, as any table has it.
        assert!((mean.interval.unwrap() - 2.054).abs() < 1e-3, "{mean:?}");
        assert_eq!(Mean::of(&[7.0]), Mean { mean: 7.0, interval: None, runs: 1 });
        // `scipy.stats.t.ppf(0.975, v)`.
        assert!((student(40) - 2.021_075).abs() < 1e-6);
        assert!((student(1000) - 1.962_339).abs() < 1e-6);
    }
}
