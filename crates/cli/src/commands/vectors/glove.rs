//! `isogloss vectors glove`.

use std::time::Instant;

use clap::Args;
use vectors::glove::{self, GloveConfig};

use super::input::Input;
use super::shown::Shown;
use crate::failure::Failure;
use crate::outcome::Outcome;

pub(super) const EXAMPLES: &str = "Examples:
  Vectors of English words:
    isogloss vectors glove --out en.vec --text en=en.txt.zst
  Of two languages together, on an encoder's own subwords:
    isogloss vectors glove --out joint.vec --dim 768 \\
      --tokenizer joint --text en=en.txt --text fr=fr.txt
  With little memory, as the original computes it:
    isogloss vectors glove --out en.vec --text en=en.txt \\
      --memory 256 --compat";

/// Flags of `vectors glove`.
#[derive(Args)]
pub(crate) struct Glove {
    /// Columns.
    #[arg(long, value_name = "N", default_value_t = 100)]
    dim: usize,

    /// The farthest neighbour that counts.
    #[arg(long, value_name = "N", default_value_t = 15)]
    window: usize,

    /// Count neighbours on the left alone.
    #[arg(long)]
    left: bool,

    /// Count every neighbour as one, rather than by the inverse of its distance.
    #[arg(long)]
    flat: bool,

    /// Times to go through all pairs.
    #[arg(long, value_name = "N", default_value_t = 25)]
    epochs: usize,

    /// The learning rate.
    #[arg(long, default_value_t = 0.05)]
    rate: f32,

    /// Pairs that occur this often have full weight.
    #[arg(long, value_name = "TIMES", default_value_t = 100.0)]
    x_max: f64,

    /// Rarer ones have their share of that to this power.
    #[arg(long, value_name = "POWER", default_value_t = 0.75)]
    alpha: f64,

    /// Compute as the original does since 2019: biases learn without a rate, and a last row `<unk>`
    /// is the mean of the 100 rarest words.
    #[arg(long)]
    compat: bool,

    /// Memory to count pairs in; what does not fit goes to disk.
    #[arg(long, value_name = "MB", default_value_t = 1024)]
    memory: u64,

    /// Threads; 0 takes every core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,

    #[command(flatten)]
    input: Input,
}

impl Glove {
    pub(super) fn run(self) -> Result<Outcome, Failure> {
        let config = self.config();
        config.check()?;
        self.input.check()?;
        let sentences = self.input.sentences()?;
        let started = Instant::now();
        let mut shown = Shown::new("pairs");
        let trained = glove::train(&sentences, &config, Some(&self.input.keep()), &mut shown)?;
        drop(shown);
        let Some(trained) = trained else { return Err(self.input.stopped()) };
        let seconds = started.elapsed().as_secs_f64();
        self.input.write(&trained.vectors)?;
        let learned = self.input.learned(&sentences, &trained.vectors, trained.losses, seconds);
        Ok(Outcome::new(learned.describe(), &learned))
    }

    fn config(&self) -> GloveConfig {
        GloveConfig {
            dim: self.dim,
            window: self.window,
            symmetric: !self.left,
            flat: self.flat,
            epochs: self.epochs,
            rate: self.rate,
            full: self.x_max,
            power: self.alpha,
            compat: self.compat,
            seed: self.input.seed(),
            memory: self.memory.saturating_mul(1 << 20),
            threads: self.threads,
            ..GloveConfig::default()
        }
    }
}
