//! What benchmarks of the encoder have in common: its shape, its batches, and how speed is reported.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use clap::Args;
use encoder::{Batch, EncoderConfig, VocabularySize};
use serde::Serialize;
use tensor::random::{Draws, Key};
use tensor::{Activation, Affine, Device, Indices, Mode, Params, Spans, Tape};

use crate::failure::Failure;
use crate::models::Compute;

/// The shape of the model and of the batch.
#[derive(Args)]
pub(super) struct BenchShape {
    /// Sequences in a batch.
    #[arg(long, default_value_t = 8)]
    pub(super) batch: usize,
    /// Tokens in a sequence.
    #[arg(long, default_value_t = 128)]
    pub(super) length: usize,
    /// Dimension of the hidden states; the feed-forward part has four times as many.
    #[arg(long, default_value_t = 256)]
    pub(super) dim: usize,
    /// Attention heads.
    #[arg(long, default_value_t = 4)]
    pub(super) heads: usize,
    /// Layers.
    #[arg(long, default_value_t = 4)]
    pub(super) layers: usize,
    /// Entries of the vocabulary.
    #[arg(long, default_value_t = 8000)]
    pub(super) vocab: usize,
    /// Steps to run.
    #[arg(long, default_value_t = 30)]
    pub(super) steps: usize,
    /// Seed of tokens, weights and dropout.
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    #[command(flatten)]
    pub(super) compute: Compute,
}

/// The most tokens in a batch: more than any memory holds.
pub(super) const MOST_TOKENS: usize = 100_000_000;

impl BenchShape {
    pub(super) fn tokens(&self) -> usize {
        self.batch.saturating_mul(self.length)
    }

    pub(super) fn config(&self) -> EncoderConfig {
        EncoderConfig {
            vocabulary: VocabularySize::Size(self.vocab),
            layers: self.layers,
            heads: self.heads,
            dim: self.dim,
            hidden: self.dim.saturating_mul(4),
            positions: self.length,
            transform: true,
            ..EncoderConfig::default()
        }
    }

    pub(super) fn draw(&self, step: u32) -> Batch {
        let mut draws = Draws::new(Key { seed: self.seed, step, stream: u32::MAX });
        let tokens: Indices = (0..self.tokens()).map(|_| draws.below(self.vocab as u32)).collect();
        let spans = Spans::uniform(self.batch, self.length);
        Batch { language: 0, tokens, spans, segments: None }
    }

    /// Floating-point operations of the layers' matmuls, the forward pass alone.
    pub(super) fn forward_operations(&self) -> f64 {
        let [dim, layers, length] = [self.dim, self.layers, self.length].map(|size| size as f64);
        layers * (2.0 * 12.0 * dim * dim + 4.0 * length * dim) * self.tokens() as f64
    }
}

#[derive(Serialize)]
pub(super) struct SpeedResult {
    device: String,
    pub(super) tokens_per_s: f64,
    pub(super) gflops: f64,
    gemm_peak_gflops: f64,
    share_of_peak: f64,
    pub(super) step_s: f64,
    fastest_step_s: f64,
    parameters: usize,
    peak_rss_bytes: Option<u64>,
    device_bytes: Option<usize>,
}

/// What the device held when the steps were done.
pub(super) struct PeakMemory(Option<u64>, Option<usize>);

impl PeakMemory {
    pub(super) fn of(device: &Device) -> Self {
        Self(terms::memory::peak_of(std::process::id()), device.kernels().held_memory())
    }
}

impl SpeedResult {
    /// From the times of all steps, each of so many operations. Measures the device's peak.
    pub(super) fn new(
        shape: &BenchShape,
        device: &Device,
        mut times: Vec<Duration>,
        operations: f64,
        parameters: usize,
        PeakMemory(peak_rss_bytes, device_bytes): PeakMemory,
    ) -> Self {
        let peak = gemm_peak(device);
        let counted = &mut times[shape.steps / 2..];
        counted.sort_unstable();
        let step_s = counted[counted.len() / 2].as_secs_f64();
        let gflops = operations / step_s / 1e9;
        Self {
            device: format!("{device:?}"),
            tokens_per_s: shape.tokens() as f64 / step_s,
            gflops,
            gemm_peak_gflops: peak,
            share_of_peak: gflops / peak,
            step_s,
            fastest_step_s: counted[0].as_secs_f64(),
            parameters,
            peak_rss_bytes,
            device_bytes,
        }
    }

    /// In words, with what else there is to say of the operations.
    pub(super) fn text(&self, of_operations: &str) -> String {
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
             GFLOP/s           {:.1} ({:.0} % of the {:.1} of a plain large matmul)\n\
             {of_operations}\
             step              {:.1} ms (fastest {:.1} ms)\n\
             parameters        {:.1} M\n\
             peak memory       {memory}",
            self.device,
            self.tokens_per_s,
            self.gflops,
            100.0 * self.share_of_peak,
            self.gemm_peak_gflops,
            1e3 * self.step_s,
            1e3 * self.fastest_step_s,
            self.parameters as f64 / 1e6,
        )
    }
}

/// Refuses a request that makes no sense.
pub(super) fn usage(error: &dyn std::fmt::Display) -> Failure {
    Failure::Usage(error.to_string())
}

/// The best speed of a plain large matmul on this device, in GFLOP/s.
fn gemm_peak(device: &Device) -> f64 {
    const TRIES: usize = 8;
    let side: usize = if device.is_gpu() { 8192 } else { 2048 };
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
        tape.linear(x, Affine { weight, bias: Some(bias) }, Activation::None);
        device.kernels().wait();
        start.elapsed()
    });
    let fastest = fastest.min().unwrap_or(Duration::MAX);
    2.0 * (side as f64).powi(3) / fastest.as_secs_f64() / 1e9
}
