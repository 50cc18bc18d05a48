//! Learning-rate schedules: linear warm-up (Goyal et al. 2017), then constant, linear decay (Devlin et
//! al. 2019) or inverse square root (Vaswani et al. 2017).

use encoder::ConfigError;
use serde::{Deserialize, Serialize};

/// The factor of the peak learning rate at each step. Steps are counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Schedule {
    /// Always the peak learning rate.
    Constant,
    /// Linear warm-up, then decay with the inverse square root of the step, as in the papers.
    InverseSqrt {
        /// Steps of warm-up.
        warmup: u64,
    },
    /// Linear warm-up, then linear decay to zero after the last step.
    Linear {
        /// Steps of warm-up.
        warmup: u64,
        /// Steps in all.
        total: u64,
    },
}

impl Schedule {
    /// The factor of the peak learning rate at a step.
    pub fn factor(self, step: u64) -> f64 {
        let step = step.max(1) as f64;
        let rising = |warmup: u64| step / warmup.max(1) as f64;
        match self {
            Schedule::Constant => 1.0,
            Schedule::InverseSqrt { warmup } => {
                rising(warmup).min((warmup.max(1) as f64 / step).sqrt())
            }
            Schedule::Linear { warmup, total } => {
                let left = (total as f64 + 1.0 - step).max(0.0);
                rising(warmup).min(left / (total as f64 + 1.0 - warmup as f64)).min(1.0)
            }
        }
    }

    /// Whether it makes sense.
    pub fn check(self) -> Result<(), ConfigError> {
        match self {
            Schedule::Linear { total: 0, .. } => {
                Err(ConfigError::new("schedule.total", "must not be 0"))
            }
            Schedule::Linear { warmup, total } if warmup > total => {
                let reason = format!("{warmup} steps are more than schedule.total = {total}");
                Err(ConfigError::new("schedule.warmup", reason))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_square_root() {
        let schedule = Schedule::InverseSqrt { warmup: 100 };
        assert_eq!(schedule.factor(1), 0.01);
        assert_eq!(schedule.factor(100), 1.0);
        assert_eq!(schedule.factor(400), 0.5);
        assert_eq!(Schedule::InverseSqrt { warmup: 0 }.factor(4), 0.5);
    }

    #[test]
    fn linear_warm_up_and_decay() {
        let schedule = Schedule::Linear { warmup: 10, total: 109 };
        assert_eq!(schedule.factor(5), 0.5);
        assert_eq!(schedule.factor(10), 1.0);
        assert_eq!(schedule.factor(60), 0.5);
        assert_eq!(schedule.factor(109), 0.01);
        assert_eq!(schedule.factor(200), 0.0);
        assert!((1..=109).all(|step| (0.0..=1.0).contains(&schedule.factor(step))));
        assert_eq!(Schedule::Linear { warmup: 0, total: 4 }.factor(1), 0.8);
    }

    #[test]
    fn invalid_values_are_refused() {
        let error = Schedule::Linear { warmup: 20, total: 10 }.check().unwrap_err();
        assert_eq!(
            error.to_string(),
            "schedule.warmup: 20 steps are more than schedule.total = 10"
        );
        assert!(Schedule::Linear { warmup: 0, total: 0 }.check().is_err());
    }
}
