//! `isogloss vectors glove`.

use std::time::Instant;

use clap::Args;
use serde::Serialize;
use vectors::TrainingResult;
use vectors::glove::{self, GloveConfig};

use super::input::Input;
use super::shown::TrainingDisplay;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::request::Request;

pub(super) const EXAMPLES: &str = "Examples:
  Vectors of English words:
    isogloss vectors glove --out en.vec --text en=en.txt.zst
  Of two languages together, on a vocabulary's subwords:
    isogloss vectors glove --out joint.vec --dim 768 \\
      --tokenizer joint --text en=en.txt --text fr=fr.txt
  With little memory, as the original computes it:
    isogloss vectors glove --out en.vec --text en=en.txt \\
      --memory 256 --compat";

#[derive(Args, Serialize)]
pub struct Glove {
    /// The dimension of the vectors.
    #[arg(long, value_name = "N", default_value_t = 100, help_heading = "Training")]
    pub dim: usize,

    /// The window size.
    #[arg(long, value_name = "N", default_value_t = 15, help_heading = "Training")]
    pub window: usize,

    /// Count context words on the left alone.
    #[arg(long, help_heading = "Training")]
    pub left: bool,

    /// Count every context word as 1, rather than by the inverse of its distance.
    #[arg(long, help_heading = "Training")]
    pub flat: bool,

    /// Epochs.
    #[arg(long, value_name = "N", default_value_t = 25, help_heading = "Training")]
    pub epochs: usize,

    /// The learning rate.
    #[arg(long, default_value_t = 0.05, help_heading = "Training")]
    pub lr: f32,

    /// The co-occurrence count from which on a pair has full weight.
    #[arg(long, value_name = "COUNT", default_value_t = 100.0, help_heading = "Training")]
    pub x_max: f64,

    /// The exponent of the weight of rarer pairs (the paper's alpha).
    #[arg(long, value_name = "POWER", default_value_t = 0.75, help_heading = "Training")]
    pub weight_power: f64,

    /// Reproduce the original program since 2019: biases have no learning rate, and a last row `<unk>`
    /// is the mean of the 100 rarest words.
    #[arg(long, help_heading = "Training")]
    pub compat: bool,

    /// Memory to count pairs in; what does not fit is spilled to disk.
    #[arg(long, value_name = "MB", default_value_t = 1024, help_heading = "Compute")]
    pub memory: u64,

    #[command(flatten)]
    pub input: Input,
}

impl Request for Glove {
    const NAME: &str = "vectors glove";
    const REVISION: u32 = 2;
    const LAST: &[&str] = &["dim", "seed", "out"];
    const ON_DEVICE: bool = false;

    fn is_spelt(&self, field: &str) -> bool {
        field == "seed" && self.input.is_placed()
    }
}

impl Glove {
    pub fn run(self) -> Result<Outcome, Failure> {
        let config = self.config();
        config.check()?;
        self.input.check()?;
        let sentences = self.input.sentences()?;
        let started = Instant::now();
        let mut shown = TrainingDisplay::new("pairs");
        let state = self.input.state_file();
        let trained = glove::train(&sentences, &config, Some(&state), &mut shown)?;
        drop(shown);
        let Some(trained) = trained else { return Err(self.input.stopped()) };
        let seconds = started.elapsed().as_secs_f64();
        let out = self.input.out();
        let result = TrainingResult::new("glove", &config, &sentences, &trained, out, seconds);
        self.input.finish(&trained, result, &[])
    }

    fn config(&self) -> GloveConfig {
        GloveConfig {
            dim: self.dim,
            window: self.window,
            symmetric: !self.left,
            flat: self.flat,
            epochs: self.epochs,
            lr: self.lr,
            x_max: self.x_max,
            alpha: self.weight_power,
            compat: self.compat,
            seed: self.input.seed(),
            memory: self.memory.saturating_mul(1 << 20),
            threads: self.input.threads(),
            ..GloveConfig::default()
        }
    }
}
