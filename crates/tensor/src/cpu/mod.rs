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
use crate::kernels::{AdamSlot, AdamStep, Kernels, MatrixPrecision, TiedGrads, TiedSoftmax};
use crate::value::Tensor;

/// How many elements one task is given where rows are independent: enough that handing it over
/// costs nothing, few enough that it fits the second cache.
const TASK: usize = 1 << 14;

/// More threads than any machine has; starting them one by one would take for ever.
const MOST_THREADS: usize = 4096;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::kernels::Activation;
    use crate::ops::{Affine, Norm};
    use crate::params::Params;
    use crate::random::{Draws, Key};
    use crate::spans::Spans;
    use crate::tape::{Mode, Tape};
    use crate::value::Indices;

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
