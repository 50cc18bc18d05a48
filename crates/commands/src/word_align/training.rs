//! The flags of training.

use align::AlignmentConfig;
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::failure::Failure;

#[derive(Args, Serialize)]
pub struct TrainingFlags {
    /// Iterations of expectation-maximisation; the last one only links [default: 5].
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub iterations: Option<usize>,

    /// The probability of the null alignment [default: 0.08].
    #[arg(long, value_name = "P", help_heading = "Training")]
    pub p_null: Option<f64>,

    /// The initial tension, how strongly links favour the diagonal; 0 (fixed) is IBM model 1
    /// [default: 2].
    #[arg(long, value_name = "X", help_heading = "Training")]
    pub tension: Option<f64>,

    /// The largest tension; more fits the text better and links it worse [default: 4].
    #[arg(long, value_name = "X", conflicts_with_all = ["fixed_tension", "compat"],
        help_heading = "Training")]
    pub max_tension: Option<f64>,

    /// Do not train the tension.
    #[arg(long, help_heading = "Training")]
    pub fixed_tension: bool,

    /// The Dirichlet prior of variational Bayes [default: 0.01].
    #[arg(long, value_name = "ALPHA", conflicts_with = "plain", help_heading = "Training")]
    pub prior: Option<f64>,

    /// Plain expectation-maximisation, without a prior.
    #[arg(long, help_heading = "Training")]
    pub plain: bool,

    /// Reproduce another program's arithmetic, with its faults (its tension begins at 4).
    #[arg(long, value_enum, value_name = "PROGRAM", help_heading = "Training")]
    pub compat: Option<CompatFlag>,
}

#[derive(Clone, Copy, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum CompatFlag {
    /// fast_align as of 2016.
    #[value(name = "fast_align")]
    FastAlign,
}

impl TrainingFlags {
    /// The configuration, with defaults where nothing was given.
    pub(super) fn config(&self) -> Result<AlignmentConfig, Failure> {
        let usual = AlignmentConfig::default();
        let config = AlignmentConfig {
            iterations: self.iterations.unwrap_or(usual.iterations),
            p_null: self.p_null.unwrap_or(usual.p_null),
            tension: self.tension.unwrap_or(match self.compat {
                Some(CompatFlag::FastAlign) => 4.0,
                None => usual.tension,
            }),
            max_tension: self.max_tension.unwrap_or(usual.max_tension),
            learn_tension: !self.fixed_tension,
            prior: if self.plain { None } else { self.prior.or(usual.prior) },
            fast_align_compat: self.compat.is_some(),
        };
        config.check()?;
        Ok(config)
    }
}
