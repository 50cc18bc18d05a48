//! The CPU: rayon for threads, `gemm` for matmuls, loops that the compiler vectorises between.
//!
//! One file for each operation. Work is cut by the shape of the data alone, never by the number of
//! threads, and sums across chunks are taken in the order of the chunks: the same seed gives the
//! same bits on any number of threads.

mod adam;
mod attention;
mod best_tokens;
mod bf16;
mod byte_bounds;
mod classes;
mod cross_entropy;
mod linear;
mod math;
mod matmul;
mod norm;
mod pairs;
mod rows;
mod turn;

use std::sync::Arc;

use pulp::Arch;
use rayon::{ThreadPool, ThreadPoolBuilder};

use self::bf16::Bf16Dots;
use crate::buffer::{Buffer, HostBuffer, Pool};
use crate::device::DeviceError;
use crate::kernels::{
    Activation, AdamSlot, AdamStep, AttentionForward, AttentionGrads, AttentionKernels,
    AttentionShape, ClassSoftmax, Grad, GramSum, HeadKernels, HeadTurn, Kernels, LinearForward,
    LinearKernels, MatrixPrecision, NormForward, NormGrads, NormKernels, NormWeights, PairGrads,
    PairSpans, ResidualSum, RowKernels, TiedGrads, TiedSoftmax, Transpose,
};
use crate::random::Dropout;
use crate::value::{Indices, Tensor};

/// How many elements one task is given where rows are independent: enough that handing it over
/// costs nothing, few enough that it fits the second cache.
const TASK: usize = 1 << 14;

/// More threads than any machine has; starting them one by one would take for ever.
const MOST_THREADS: usize = 4096;

/// The CPU that this program runs on.
pub(crate) struct Cpu {
    threads: ThreadPool,
    arch: Arch,
    /// Where affine maps are computed in bf16.
    bf16: Option<Bf16Dots>,
    pool: Arc<Pool>,
}

impl Cpu {
    pub(crate) fn new(threads: usize) -> Result<Self, DeviceError> {
        if threads > MOST_THREADS {
            return Err(DeviceError::TooManyThreads { threads, most: MOST_THREADS });
        }
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|number| format!("cpu-{number}"))
            .build()
            .map_err(|source| DeviceError::Threads { threads, source })?;
        Ok(Self { threads: pool, arch: Arch::new(), bf16: None, pool: Arc::default() })
    }

    /// The same with affine maps in bf16: operands are rounded, sums and everything else stay f32.
    pub(crate) fn with_bf16(threads: usize) -> Result<Self, DeviceError> {
        let dots = Bf16Dots::detect().ok_or_else(|| {
            let lacks =
                "this processor has no AVX-512 BF16 instructions, which cpu-bf16 needs; use cpu";
            DeviceError::Unusable(lacks.to_owned())
        })?;
        Ok(Self { bf16: Some(dots), ..Self::new(threads)? })
    }

    /// Memory for the time of one kernel.
    fn scratch(&self, len: usize) -> HostBuffer {
        HostBuffer::take(&self.pool, len)
    }
}

/// Rows in a task.
fn task_rows(cols: usize) -> usize {
    (TASK / cols.max(1)).max(1)
}

impl Kernels for Cpu {
    fn description(&self) -> String {
        let threads = self.threads.current_num_threads();
        let vectors = match format!("{:?}", self.arch) {
            name if name.starts_with("V4") => "AVX-512",
            name if name.starts_with("V3") => "AVX2",
            name if name.starts_with("Scalar") => "no vectors",
            _ => "vectors",
        };
        let threads =
            if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") };
        let precision = if self.bf16.is_some() { ", matmuls in bf16" } else { "" };
        format!("cpu, {threads}, {vectors}{precision}")
    }

    fn run(&self, work: &mut (dyn FnMut() + Send)) {
        self.threads.install(work);
    }

    fn empty(&self, rows: usize, cols: usize, _: MatrixPrecision) -> Tensor {
        Tensor::new(Buffer::Host(HostBuffer::take(&self.pool, rows * cols)), rows, cols)
    }

    fn best_tokens(
        &self,
        hidden: &Tensor,
        table: &Tensor,
        bias: &Tensor,
        copies: usize,
    ) -> Vec<u32> {
        self.threads.install(|| best_tokens::run(self, hidden, table, bias, copies))
    }

    fn tied_cross_entropy(
        &self,
        softmax: TiedSoftmax<'_>,
        score: &mut Tensor,
        grads: Option<TiedGrads<'_>>,
    ) {
        self.threads.install(|| cross_entropy::run(self, &softmax, score, grads));
    }

    fn adam(&self, slots: &mut [AdamSlot<'_>], step: AdamStep, norm: &mut Tensor) {
        self.threads.install(|| adam::update(self.arch, slots, step, norm));
    }
}

impl RowKernels for Cpu {
    fn fill(&self, y: &mut Tensor, value: f32) {
        self.threads.install(|| rows::fill(y, value));
    }

    fn zero_front(&self, y: &mut Tensor, count: usize) {
        y.as_mut_slice()[..count].fill(0.0);
    }

    fn add(&self, y: &mut Tensor, x: &Tensor) {
        self.threads.install(|| rows::add(self.arch, y, x));
    }

    fn scale(&self, x: &Tensor, factor: f32, y: &mut Tensor) {
        self.threads.install(|| rows::combine(self.arch, y, x, |_, x| factor * x));
    }

    fn add_rows(&self, x: &Tensor, table: &Tensor, rows: &Indices, scales: &[f32], y: &mut Tensor) {
        self.threads.install(|| rows::add_rows(self.arch, x, table, rows, scales, y));
    }

    fn dropout(&self, x: &Tensor, dropout: Dropout, y: &mut Tensor) {
        self.threads.install(|| rows::dropout(self.arch, x, dropout, y));
    }

    fn gather_sum(&self, tables: &[(&Tensor, &Indices)], sum: &mut Tensor) {
        self.threads.install(|| rows::gather_sum(self.arch, tables, sum));
    }

    fn scatter_add(&self, x: &Tensor, rows: &Indices, table: &mut Tensor) {
        self.threads.install(|| rows::scatter_add(self.arch, x, rows, table));
    }

    fn select(&self, x: &Tensor, rows: &Indices, y: &mut Tensor) {
        self.threads.install(|| rows::gather_sum(self.arch, &[(x, rows)], y));
    }

    fn row_means(&self, x: &Tensor, ranges: &Indices, y: &mut Tensor) {
        self.threads.install(|| rows::row_means(self.arch, x, ranges, y));
    }
}

impl LinearKernels for Cpu {
    fn matmul(&self, a: &Tensor, b: &Tensor, transpose: Transpose, y: &mut Tensor) {
        self.threads.install(|| linear::matmul(a, b, transpose, y));
    }

    fn add_gram(&self, a: &Tensor, b: &Tensor, sum: &mut GramSum) {
        self.threads.install(|| linear::add_gram(self, a, b, sum));
    }

    fn linear(
        &self,
        x: &Tensor,
        weight: &Tensor,
        bias: Option<&Tensor>,
        activation: Activation,
        y: &mut Tensor,
        saved: Option<&mut Tensor>,
    ) {
        self.threads.install(|| linear::forward(self, x, weight, bias, activation, y, saved));
    }

    fn gate(&self, x: &Tensor, activation: Activation, y: &mut Tensor) {
        self.threads.install(|| linear::gate(self.arch, x, activation, y));
    }

    fn gate_grad(&self, x: &Tensor, activation: Activation, dy: &Tensor, dx: &mut Tensor) {
        self.threads.install(|| linear::gate_grad(self.arch, x, activation, dy, dx));
    }

    fn bias_grad(&self, dy: &mut Tensor, forward: LinearForward<'_>, db: Option<Grad<'_>>) {
        self.threads.install(|| {
            linear::activation_grad(self.arch, dy, forward);
            if let Some(db) = db {
                rows::column_sum(self.arch, dy, db);
            }
        });
    }

    fn linear_input_grad(&self, dy: &Tensor, weight: &Tensor, dx: Grad<'_>) {
        self.threads.install(|| linear::input_grad(self, dy, weight, dx));
    }

    fn linear_weight_grad(&self, x: &Tensor, dy: &Tensor, dw: Grad<'_>) {
        self.threads.install(|| linear::weight_grad(x, dy, dw));
    }

    fn logits(&self, hidden: &Tensor, table: &Tensor, bias: &Tensor, y: &mut Tensor) {
        self.threads.install(|| linear::logits(self.arch, hidden, table, bias, y));
    }
}

impl NormKernels for Cpu {
    fn residual(&self, residual: ResidualSum<'_>, sum: &mut Tensor) {
        self.threads.install(|| norm::residual(self.arch, residual, sum));
    }

    fn residual_norm(
        &self,
        residual: ResidualSum<'_>,
        weights: NormWeights<'_>,
        sum: &mut Tensor,
        y: &mut Tensor,
        stats: &mut Tensor,
    ) {
        self.threads.install(|| norm::residual_norm(self.arch, residual, weights, sum, y, stats));
    }

    fn norm(&self, x: &Tensor, weights: NormWeights<'_>, y: &mut Tensor, stats: &mut Tensor) {
        self.threads.install(|| norm::forward(self.arch, x, weights, y, stats));
    }

    fn norm_grad(
        &self,
        forward: NormForward<'_>,
        dy: &Tensor,
        dx: Grad<'_>,
        dropped: Option<(Dropout, &mut Tensor)>,
        weight_grads: NormGrads<'_>,
    ) {
        self.threads.install(|| {
            let Grad { tensor, accumulate } = dx;
            let written = Grad { tensor: &mut *tensor, accumulate };
            norm::backward(self, forward, dy, written, weight_grads);
            if let Some((dropout, dropped)) = dropped {
                rows::dropout(self.arch, tensor, dropout, dropped);
            }
        });
    }

    fn turn(&self, x: &Tensor, turn: HeadTurn<'_>, y: &mut Tensor, stats: Option<&mut Tensor>) {
        self.threads.install(|| turn::forward(self, x, turn, y, stats));
    }

    fn turn_grad(
        &self,
        x: &Tensor,
        turn: HeadTurn<'_>,
        stats: Option<&Tensor>,
        dy: &Tensor,
        dx: &mut Tensor,
        weight_grads: NormGrads<'_>,
    ) {
        self.threads.install(|| turn::backward(self, x, turn, stats, dy, dx, weight_grads));
    }
}

impl AttentionKernels for Cpu {
    fn attention(
        &self,
        q: &Tensor,
        kv: &Tensor,
        shape: &AttentionShape,
        y: &mut Tensor,
        lse: &mut Tensor,
    ) {
        self.threads.install(|| attention::forward(self, q, kv, shape, y, lse));
    }

    fn attention_grad(
        &self,
        forward: AttentionForward<'_>,
        shape: &AttentionShape,
        dy: &Tensor,
        grads: AttentionGrads<'_>,
    ) {
        self.threads.install(|| attention::backward(self, forward, shape, dy, grads));
    }
}

impl HeadKernels for Cpu {
    fn cross_entropy(
        &self,
        softmax: ClassSoftmax<'_>,
        score: &mut Tensor,
        dscores: Option<&mut Tensor>,
    ) {
        self.threads.install(|| classes::run(self, &softmax, score, dscores));
    }

    fn pair_scores(&self, q: &Tensor, k: &Tensor, spans: PairSpans<'_>, y: &mut Tensor) {
        self.threads.install(|| pairs::scores(q, k, spans, y));
    }

    fn pair_scores_grad(
        &self,
        q: &Tensor,
        k: &Tensor,
        spans: PairSpans<'_>,
        dy: &Tensor,
        grads: PairGrads<'_>,
    ) {
        self.threads.install(|| pairs::scores_grad(q, k, spans, dy, grads));
    }

    fn block_dots(&self, x: &Tensor, z: &Tensor, y: &mut Tensor) {
        self.threads.install(|| pairs::block_dots(self.arch, x, z, y));
    }

    fn block_dots_grad(&self, x: &Tensor, z: &Tensor, dy: &Tensor, grads: PairGrads<'_>) {
        self.threads.install(|| pairs::block_dots_grad(self.arch, x, z, dy, grads));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::ops::{Affine, Norm};
    use crate::params::Params;
    use crate::random::{Draws, Key};
    use crate::spans::Spans;
    use crate::tape::{Mode, Tape};

    /// Runs most operations forward and backward; returns the result and a gradient.
    fn result_of(cpu: Cpu) -> Vec<f32> {
        let device = Device::of(Arc::new(cpu));
        let mut params = Params::new(&device);
        let mut draws = Draws::new(Key { seed: 1, step: 0, stream: 0 });
        let mut add = |name: &str, rows: usize, cols: usize| {
            let elements: Vec<f32> = (0..rows * cols).map(|_| 0.3 * draws.normal()).collect();
            params.add(name, device.tensor(rows, cols, &elements))
        };
        let query = Affine { weight: add("q", 24, 24), bias: Some(add("qb", 1, 24)) };
        let key_value = Affine { weight: add("kv", 24, 48), bias: Some(add("kvb", 1, 48)) };
        let norm = Norm::layer([add("g", 1, 24), add("b", 1, 24)], 1e-5);
        let (table, bias) = (add("table", 50, 24), add("tb", 1, 50));
        let mut tape = Tape::new(&mut params, Mode::Train { seed: 1, step: 1, micro_batch: 0 });
        let rows: Indices = (0..9).map(|row| row * 5 % 50).collect();
        let x = tape.embed(vec![(table, rows.clone())], Some(norm), 0.1);
        let (q, kv) =
            (tape.linear(x, query, Activation::Gelu), tape.linear(x, key_value, Activation::None));
        let spans = Spans::of_lengths([4, 5]);
        let y = tape.attention(q, kv, 3, &spans, &spans, 0.1);
        let (_, y) = tape.residual_norm(x, y, 0.1, norm);
        let mut result = tape.tied_cross_entropy(y, table, bias, &rows, 1.0).to_vec();
        tape.backward();
        result.extend(params.grad(table).expect("the table learns").as_slice());
        result
    }

    #[test]
    fn plain_loops_compute_what_vectors_compute() {
        let fast = result_of(Cpu::new(2).unwrap());
        let plain = result_of(Cpu { arch: Arch::Scalar, ..Cpu::new(2).unwrap() });
        assert!(fast.iter().any(|&x| x != 0.0));
        for (at, (a, b)) in fast.iter().zip(&plain).enumerate() {
            assert!((a - b).abs() < 1e-4 * (1.0 + a.abs()), "{at}: {a} {b}");
        }
    }
}
