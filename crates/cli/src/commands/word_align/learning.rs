//! The flags by which alignment is learned.

use align::AlignmentConfig;
use clap::{Args, ValueEnum};

use crate::failure::Failure;

/// How alignment is learned.
#[derive(Args)]
pub(super) struct Learning {
    /// Passes through the text; the last one only links [default: 5].
    #[arg(long, value_name = "N")]
    passes: Option<usize>,

    /// The probability that a word is linked to nothing [default: 0.08].
    #[arg(long, value_name = "P")]
    null: Option<f64>,

    /// How strongly links keep to the diagonal, at first; 0 (fixed) is model 1 [default: 2].
    #[arg(long, value_name = "X")]
    tension: Option<f64>,

    /// The most that the tension grows to; more fits the text better and links it worse
    /// [default: 4].
    #[arg(long, value_name = "X", conflicts_with_all = ["fixed_tension", "compat"])]
    most_tension: Option<f64>,

    /// Keep the tension as it is.
    #[arg(long)]
    fixed_tension: bool,

    /// The Dirichlet prior of variational Bayes [default: 0.01].
    #[arg(long, value_name = "ALPHA", conflicts_with = "plain")]
    prior: Option<f64>,

    /// Plain expectation-maximisation, without a prior.
    #[arg(long)]
    plain: bool,

    /// Reproduce another program's arithmetic, with its faults (its tension begins at 4).
    #[arg(long, value_enum, value_name = "PROGRAM")]
    compat: Option<Compat>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Compat {
    /// fast_align as of 2016.
    #[value(name = "fast_align")]
    FastAlign,
}

impl Learning {
    /// What was typed, over what is usual.
    pub(super) fn config(&self) -> Result<AlignmentConfig, Failure> {
        let usual = AlignmentConfig::default();
        let config = AlignmentConfig {
            passes: self.passes.unwrap_or(usual.passes),
            null: self.null.unwrap_or(usual.null),
            tension: self.tension.unwrap_or(match self.compat {
                Some(Compat::FastAlign) => 4.0,
                None => usual.tension,
            }),
            most_tension: self.most_tension.unwrap_or(usual.most_tension),
            learn_tension: !self.fixed_tension,
            prior: if self.plain { None } else { self.prior.or(usual.prior) },
            like_fast_align: self.compat.is_some(),
        };
        config.check().map_err(|error| Failure::Usage(error.to_string()))?;
        Ok(config)
    }
}
