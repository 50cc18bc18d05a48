//! Means of a few numbers, and how sure they are.

use serde::{Deserialize, Serialize};

/// Student's t for 95 %, two-sided, by degrees of freedom from 1.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
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

/// Student's t; beyond the table by the first term of its expansion around the normal quantile.
fn student(freedom: usize) -> f64 {
    const NORMAL: f64 = 1.959_964;
    let expanded = || NORMAL + (NORMAL.powi(3) + NORMAL) / (4.0 * freedom as f64);
    T.get(freedom - 1).copied().unwrap_or_else(expanded)
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
        assert!((student(40) - 2.021).abs() < 3e-3);
        assert!((student(1000) - 1.962).abs() < 1e-3);
    }
}
