//! `isogloss bench`: how fast this machine trains.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use encoder::{Batch, Encoder, EncoderConfig, Masked, Vocabulary};
use serde::Serialize;
use tensor::random::{Draws, Key};
use tensor::{Activation, Affine, Device, Indices, Mode, Params, Spans, Tape};
use train::{AdamConfig, Group, Schedule, Trainer};

use super::models::Place;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::Progress;

/// What can be measured.
#[derive(Subcommand)]
pub(crate) enum Bench {
    /// Train a masked language model on random tokens and print the rate.
    ///
    /// 15 % of the tokens are masked and dropout is 0.1, as in the papers. The first half of the
    /// steps warms up; the median of the second half counts. Operations are counted as a framework
    /// would carry them out, whether or not they were spared here.
    ///
    /// Example: isogloss bench mlm --batch 8 --length 128 --dim 256 --heads 4 --layers 4 --vocab 8000
    #[command(verbatim_doc_comment)]
    Mlm(Mlm),
}

impl Bench {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        match self {
            Bench::Mlm(mlm) => mlm.run(),
        }
    }
}

/// The shape of the model and of the batch.
#[derive(Args)]
pub(crate) struct Mlm {
    /// Sequences in a batch.
    #[arg(long, default_value_t = 8)]
    batch: usize,
    /// Tokens in a sequence.
    #[arg(long, default_value_t = 128)]
    length: usize,
    /// Dimension of the hidden states; the feed-forward part has four times as many.
    #[arg(long, default_value_t = 256)]
    dim: usize,
    /// Attention heads.
    #[arg(long, default_value_t = 4)]
    heads: usize,
    /// Layers.
    #[arg(long, default_value_t = 4)]
    layers: usize,
    /// Entries of the vocabulary.
    #[arg(long, default_value_t = 8000)]
    vocab: usize,
    /// Steps to run.
    #[arg(long, default_value_t = 30)]
    steps: usize,
    /// Seed of tokens, weights and dropout.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    place: Place,
}

/// The most tokens in a batch: more than any memory holds.
const MOST_TOKENS: usize = 100_000_000;

/// What was measured.
#[derive(Serialize)]
struct Facts {
    device: String,
    tokens_per_s: f64,
    gflops: f64,
    gemm_peak_gflops: f64,
    share_of_peak: f64,
    executed_gflops: f64,
    step_s: f64,
    fastest_step_s: f64,
    loss: f64,
    parameters: usize,
    peak_rss_bytes: Option<u64>,
    device_bytes: Option<usize>,
}

impl Mlm {
    fn run(self) -> Result<Outcome, Failure> {
        let tokens = self.batch.saturating_mul(self.length);
        if self.steps == 0 || !(7..=MOST_TOKENS).contains(&tokens) {
            let reason = format!(
                "--steps must not be 0, and --batch times --length must be at least 7, so that 15 % \
                 of it is a token, and at most {MOST_TOKENS}"
            );
            return Err(Failure::Usage(reason));
        }
        let masked = tokens * 15 / 100;
        let device = self.place.device()?;
        let mut params = Params::new(&device);
        let model = Encoder::new(self.config(), &mut params, self.seed)
            .map_err(|error| Failure::Usage(error.to_string()))?;
        let parameters = params.count();
        let adam = AdamConfig { schedule: Schedule::Constant, ..AdamConfig::default() };
        let mut trainer =
            Trainer::new(model.config(), params, adam, self.seed, |_| Group::default())?;

        let mut progress = Progress::new("steps", self.steps as u64);
        let mut times = Vec::with_capacity(self.steps);
        let mut loss = 0.0;
        for step in 0..self.steps {
            let piece = self.draw(step as u32, masked);
            let start = Instant::now();
            let report = trainer.step(&[piece], masked, |tape, (batch, targets)| {
                model.guess(tape, batch, targets, 1.0 / masked as f32)
            })?;
            times.push(start.elapsed());
            loss = report.loss;
            progress.step(&format!("loss {loss:.3}"));
        }
        drop(progress);
        let (peak_rss_bytes, device_bytes) = (peak_rss(), device.kernels().held_memory());
        drop(trainer);
        let peak = gemm_peak(&device);

        let counted = &mut times[self.steps / 2..];
        counted.sort_unstable();
        let step_s = counted[counted.len() / 2].as_secs_f64();
        let gflops = self.operations(masked) / step_s / 1e9;
        let facts = Facts {
            device: format!("{device:?}"),
            tokens_per_s: (self.batch * self.length) as f64 / step_s,
            gflops,
            gemm_peak_gflops: peak,
            share_of_peak: gflops / peak,
            executed_gflops: gflops - self.spared(masked) / step_s / 1e9,
            step_s,
            fastest_step_s: counted[0].as_secs_f64(),
            loss,
            parameters,
            peak_rss_bytes,
            device_bytes,
        };
        Ok(Outcome::new(facts.text(), &facts))
    }

    fn config(&self) -> EncoderConfig {
        EncoderConfig {
            vocabulary: Vocabulary::Size(self.vocab),
            layers: self.layers,
            heads: self.heads,
            dim: self.dim,
            hidden: self.dim.saturating_mul(4),
            positions: self.length,
            transform: true,
            ..EncoderConfig::default()
        }
    }

    /// A batch of random tokens, the masked ones spread evenly.
    fn draw(&self, step: u32, masked: usize) -> (Batch, Masked) {
        let total = self.batch * self.length;
        let mut draws = Draws::new(Key { seed: self.seed, step, stream: u32::MAX });
        let tokens: Indices = (0..total).map(|_| draws.below(self.vocab as u32)).collect();
        let rows: Indices = (0..masked).map(|at| (at * total / masked) as u32).collect();
        let targets = rows.iter().map(|&row| tokens[row as usize]).collect();
        let spans = Spans::uniform(self.batch, self.length);
        (Batch { language: 0, tokens, spans, segments: None }, Masked { rows, targets })
    }

    /// Floating-point operations of a step, forward and backward, of the products alone.
    fn operations(&self, masked: usize) -> f64 {
        let [dim, layers, length, vocab] =
            [self.dim, self.layers, self.length, self.vocab].map(|size| size as f64);
        let weights = 6.0 * layers * 12.0 * dim * dim;
        let attention = 12.0 * layers * length * dim;
        let tokens = (self.batch * self.length) as f64;
        (weights + attention) * tokens + 6.0 * masked as f64 * (dim * vocab + dim * dim)
    }

    /// Those that are spared because the last layer computes only masked positions: all but keys
    /// and values.
    fn spared(&self, masked: usize) -> f64 {
        let (dim, length) = (self.dim as f64, self.length as f64);
        let unmasked = (self.batch * self.length - masked) as f64;
        (6.0 * 10.0 * dim * dim + 12.0 * length * dim) * unmasked
    }
}

impl Facts {
    fn text(&self) -> String {
        let mut memory = self
            .peak_rss_bytes
            .map_or("unknown".to_owned(), |bytes| format!("{:.2} GB", bytes as f64 / 1e9));
        if let Some(bytes) = self.device_bytes {
            let _ =
                write!(memory, ", and {:.2} GiB of the GPU's", bytes as f64 / (1_u64 << 30) as f64);
        }
        format!(
            "device            {}\n\
             tokens/s          {:.0}\n\
             GFLOP/s           {:.1} ({:.0} % of the {:.1} of a plain large product)\n\
             carried out       {:.1} (the rest is spared: the last layer computes masked positions only)\n\
             step              {:.1} ms (fastest {:.1} ms)\n\
             parameters        {:.1} M\n\
             peak memory       {memory}",
            self.device,
            self.tokens_per_s,
            self.gflops,
            100.0 * self.share_of_peak,
            self.gemm_peak_gflops,
            self.executed_gflops,
            1e3 * self.step_s,
            1e3 * self.fastest_step_s,
            self.parameters as f64 / 1e6,
        )
    }
}

/// The best rate of a plain large product on this device, in GFLOP/s.
fn gemm_peak(device: &Device) -> f64 {
    const TRIES: usize = 8;
    let on_gpu = device.kernels().held_memory().is_some();
    let side: usize = if on_gpu { 8192 } else { 2048 };
    // Random numbers: a GPU multiplies zeros faster than it multiplies anything else.
    let mut draws = Draws::new(Key { seed: 1, step: 0, stream: 0 });
    let some: Vec<f32> = (0..1 << 16).map(|_| draws.normal()).collect();
    let elements: Vec<f32> =
        (0..side * side).map(|at| some[(at + at / 9973) % some.len()]).collect();
    let mut params = Params::new(device);
    let weight = params.add("weight", device.tensor(side, side, &elements));
    let bias = params.add("bias", device.zeros(1, side));
    let fastest = (0..TRIES).map(|_| {
        let mut tape = Tape::new(&mut params, Mode::Evaluate);
        let x = tape.input(device.tensor(side, side, &elements), false);
        device.kernels().wait();
        let start = Instant::now();
        tape.linear(x, Affine { weight, bias }, Activation::None);
        device.kernels().wait();
        start.elapsed()
    });
    let fastest = fastest.min().unwrap_or(Duration::MAX);
    2.0 * (side as f64).powi(3) / fastest.as_secs_f64() / 1e9
}

/// The most memory that this process has held, where the system tells.
fn peak_rss() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}
