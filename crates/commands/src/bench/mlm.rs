//! `isogloss bench mlm`: the speed of MLM training.

use std::time::Instant;

use clap::Args;
use encoder::{Batch, Encoder, MaskedTokens};
use serde::Serialize;
use tensor::{Indices, Params};
use train::{AdamConfig, AdamGroup, Schedule, Trainer};

use super::rate::{BenchShape, MOST_TOKENS, PeakMemory, SpeedResult, usage};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::Progress;

#[derive(Args)]
pub struct BenchMlm {
    #[command(flatten)]
    shape: BenchShape,
    /// Launch the kernels of a GPU one by one, instead of a step as one CUDA graph.
    #[arg(long)]
    one_by_one: bool,
}

#[derive(Serialize)]
struct TrainingSpeed {
    #[serde(flatten)]
    rate: SpeedResult,
    /// Seconds from the start of the command to the end of the first step.
    first_step_s: f64,
    executed_gflops: f64,
    loss: f64,
}

impl BenchMlm {
    pub fn run(self) -> Result<Outcome, Failure> {
        let began = Instant::now();
        let shape = &self.shape;
        let tokens = shape.tokens();
        if shape.steps == 0 || !(7..=MOST_TOKENS).contains(&tokens) {
            let reason = format!(
                "--steps must not be 0, and --batch times --length must be at least 7, so that 15 % \
                 of it is a token, and at most {MOST_TOKENS}"
            );
            return Err(Failure::Usage(reason));
        }
        let masked = tokens * 15 / 100;
        let device = shape.compute.device()?;
        let mut params = Params::new(&device);
        let model =
            Encoder::new(shape.config(), &mut params, shape.seed).map_err(|error| usage(&error))?;
        let parameters = params.count();
        let adam = AdamConfig { schedule: Schedule::Constant, ..AdamConfig::default() };
        let mut trainer =
            Trainer::new(model.config(), params, adam, shape.seed, |_| AdamGroup::default())?;

        if !self.one_by_one {
            trainer.expect_same_shape();
        }
        let mut progress = Progress::new("steps", shape.steps as u64);
        let mut times = Vec::with_capacity(shape.steps);
        let (mut loss, mut first_step_s) = (0.0, 0.0);
        // As in a real run, the next step is begun before the last one is waited for.
        let begin = |trainer: &mut Trainer, step: usize| {
            let micro_batch = self.draw(step as u32, masked);
            trainer.begin(&[micro_batch], masked, |tape, (batch, targets)| {
                model.mlm_loss(tape, batch, targets, 1.0 / masked as f32)
            })
        };
        let mut begun = begin(&mut trainer, 0);
        let mut start = Instant::now();
        for step in 1..=shape.steps {
            let next = begin(&mut trainer, step);
            let report = trainer.finish(std::mem::replace(&mut begun, next))?;
            times.push(std::mem::replace(&mut start, Instant::now()).elapsed());
            if step == 1 {
                first_step_s = began.elapsed().as_secs_f64();
            }
            loss = report.loss;
            progress.step(&format!("loss {loss:.3}"));
        }
        trainer.finish(begun)?;
        drop(progress);
        let memory = PeakMemory::of(&device);
        drop(trainer);
        let rate =
            SpeedResult::new(shape, &device, times, self.operations(masked), parameters, memory);
        let executed_gflops = rate.gflops - self.saved(masked) / rate.step_s / 1e9;
        let speed = TrainingSpeed { rate, first_step_s, executed_gflops, loss };
        Ok(Outcome::new(speed.text(), &speed))
    }

    /// A batch of random tokens, the masked ones spread evenly.
    fn draw(&self, step: u32, masked: usize) -> (Batch, MaskedTokens) {
        let batch = self.shape.draw(step);
        let total = batch.tokens.len();
        let rows: Indices = (0..masked).map(|at| (at * total / masked) as u32).collect();
        let targets = rows.iter().map(|&row| batch.tokens[row as usize]).collect();
        (batch, MaskedTokens { rows, targets })
    }

    /// Floating-point operations of a step, forward and backward pass, of the matmuls alone.
    fn operations(&self, masked: usize) -> f64 {
        let (dim, vocab) = (self.shape.dim as f64, self.shape.vocab as f64);
        3.0 * self.shape.forward_operations() + 6.0 * masked as f64 * (dim * vocab + dim * dim)
    }

    /// Those that are saved because the last layer computes only masked positions: all but keys and
    /// values.
    fn saved(&self, masked: usize) -> f64 {
        let (dim, length) = (self.shape.dim as f64, self.shape.length as f64);
        let unmasked = (self.shape.tokens() - masked) as f64;
        (6.0 * 10.0 * dim * dim + 12.0 * length * dim) * unmasked
    }
}

impl TrainingSpeed {
    fn text(&self) -> String {
        self.rate.text(&format!(
            "executed          {:.1} (the last layer computes masked positions only)\n\
             first step        done {:.2} s after the start\n",
            self.executed_gflops, self.first_step_s,
        ))
    }
}
