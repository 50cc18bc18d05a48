//! An NVIDIA GPU: kernels compiled for the card at run time by NVRTC, matmuls from cuBLASLt.
//!
//! Mixed precision (Micikevicius et al. 2018): what flows between operations is bf16; weights, gradients
//! of weights, statistics and losses are f32, and so is every sum inside a kernel. Matmuls read a rounded
//! copy of the weights, which Adam writes along with them. Everything runs on one stream, asynchronously;
//! only reading a result waits for it. No sum depends on timing (there are no atomic additions), so the
//! same input gives the same bits on the same card and libraries.

mod adam;
mod attention;
mod block;
mod code;
mod context;
mod events;
mod fault;
mod graph;
mod heads;
mod libraries;
mod linear;
mod lists;
mod map;
mod matmul;
mod nccl;
mod norm;
mod rows;
mod search;
mod softmax;
mod transfer;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys::CUdeviceptr;

pub(crate) use self::block::DeviceBlock;
use self::block::PartialSums;
use self::code::{Code, Program};
use self::context::{Context, DeviceMemory};
pub use self::fault::DeviceFault;
pub(crate) use self::fault::fail;
use self::matmul::{CublasLt, Matmul, Operand};
use crate::buffer::Buffer;
use crate::device::DeviceError;
use crate::kernels::{
    Activation, AdamSlot, AdamStep, DeviceGroup, ExpectedShape, Kernels, MatrixPrecision,
    TiedGrads, TiedSoftmax,
};
use crate::random::Dropout;
use crate::search::{BestScores, NearestSearch};
use crate::value::{DeferredRead, Tensor};

/// Threads of a block where nothing else decides.
const THREADS: u32 = 256;
/// Rows of a block where each warp has one.
const ROWS: usize = THREADS as usize / 32;

/// Strips of columns that sums are taken in at most.
const STRIPS: usize = 1 << 16;

/// Runs a kernel: what it needs to run on, its program, its name; blocks, threads and bytes of
/// shared memory; its arguments, whose types are those of its parameters.
macro_rules! launch {
    ($cuda:expr, $program:expr, $name:expr, $grid:expr, $threads:expr, $shared:expr; $($argument:expr),+ $(,)?) => {{
        let function = $cuda.code.get(&$cuda.context, $program, $name, $shared);
        #[allow(unsafe_code, reason = "arguments are passed by their addresses")]
        // SAFETY: arguments are listed as the kernel declares them, beside which this was written,
        // and live until the launch has copied them.
        unsafe {
            $cuda.context.launch(
                function,
                $grid,
                $threads,
                $shared as u32,
                &mut [$((&raw mut *&mut { $argument }).cast::<std::ffi::c_void>()),+],
            );
        }
    }};
}
use launch;

pub(crate) struct Cuda {
    context: Arc<Context>,
    code: Code,
    blas: CublasLt,
    adam: adam::AdamChunks,
    /// For every strip of columns, how many blocks have summed up theirs: 0 between kernels.
    arrived: DeviceMemory,
}

/// Dropout as the kernels have it.
#[derive(Clone, Copy)]
#[repr(C)]
struct Drops {
    seed_low: u32,
    seed_high: u32,
    step: u32,
    stream: u32,
    threshold: u32,
    scale: f32,
}

impl From<Dropout> for Drops {
    fn from(dropout: Dropout) -> Self {
        let key = dropout.key;
        Self {
            seed_low: key.seed as u32,
            seed_high: (key.seed >> 32) as u32,
            step: key.step,
            stream: key.stream,
            threshold: dropout.threshold(),
            scale: dropout.scale(),
        }
    }
}

impl Cuda {
    pub(crate) fn new(number: usize) -> Result<Self, DeviceError> {
        libraries::find()?;
        let context = Context::open(number)?;
        let blas = CublasLt::new(&context)?;
        let arrived = context.take(4 * STRIPS);
        context.set_bytes(arrived.pointer, 0, 4 * STRIPS);
        let (code, adam) = (Code::default(), adam::AdamChunks::default());
        Ok(Self { context, code, blas, adam, arrived })
    }

    /// Memory for the time of one operation.
    fn scratch(&self, bytes: usize) -> DeviceMemory {
        let memory = self.context.take(bytes);
        if cfg!(debug_assertions) {
            self.context.set_bytes(memory.pointer, 0xff, bytes);
        }
        memory
    }

    /// Memory for sums of columns, in so many parts.
    fn parts(&self, count: usize, cols: usize) -> PartialSums {
        PartialSums { memory: self.scratch(count * cols * 4), skip: 0, count, stride: cols }
    }

    /// The matrix in the precision of matmuls: itself, or its rounded copy.
    fn rounded(&self, x: &Tensor) -> CUdeviceptr {
        let block = block(x);
        match block.precision {
            MatrixPrecision::Working => block.pointer(),
            MatrixPrecision::Full => block.rounded(|to| self.round(block.pointer(), to, x.len())),
        }
    }

    /// Rounds full numbers.
    fn round(&self, from: CUdeviceptr, to: CUdeviceptr, count: usize) {
        let grid = [count.div_ceil(8 * THREADS as usize), 1, 1];
        launch!(self, Program::Elements, "narrow_all", grid, [THREADS, 1, 1], 0; from, to, count as u64);
    }
}

/// What a lock guards. A thread that panicked while it held one has left nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The block of a matrix of this device.
fn block(x: &Tensor) -> &DeviceBlock {
    x.buffer().block()
}

/// Where a matrix is, to read.
fn at(x: &Tensor) -> CUdeviceptr {
    block(x).pointer()
}

/// Where a matrix is, to write.
fn to(y: &mut Tensor) -> CUdeviceptr {
    y.buffer_mut().block_mut().pointer_mut()
}

/// How many columns a lane takes at once: eight where rows are whole multiples of that.
fn lanes(cols: usize) -> usize {
    if cols.is_multiple_of(8) { 8 } else { 1 }
}

impl Kernels for Cuda {
    fn description(&self) -> String {
        let (major, minor) = self.context.capability;
        format!("cuda, {} (compute capability {major}.{minor}), bf16", self.context.name)
    }

    fn is_gpu(&self) -> bool {
        true
    }

    fn run(&self, work: &mut (dyn FnMut() + Send)) {
        work();
    }

    fn as_one(&self, work: &mut dyn FnMut()) {
        self.context.as_one(work);
    }

    fn expect(&self, shape: ExpectedShape) {
        let attention = attention::expected(self, shape);
        let everywhere =
            [Program::Elements, Program::Sums, Program::Rows, Program::Softmax, Program::Adam];
        self.code.expect(&self.context, &everywhere);
        self.code.expect(&self.context, &[norm::program(shape.dim), attention]);
        if shape.activation != Activation::None {
            self.code.expect(&self.context, &[Program::Activation(shape.activation)]);
        }
    }

    fn empty(&self, rows: usize, cols: usize, precision: MatrixPrecision) -> Tensor {
        Tensor::new(
            Buffer::Cuda(DeviceBlock::new(&self.context, rows * cols, precision)),
            rows,
            cols,
        )
    }

    fn working(&self, x: Tensor) -> Tensor {
        if x.precision() == MatrixPrecision::Working {
            return x;
        }
        let mut y = self.empty(x.rows(), x.cols(), MatrixPrecision::Working);
        self.round(at(&x), to(&mut y), x.len());
        y
    }

    fn wait(&self) {
        self.context.wait();
    }

    fn read_later(&self, matrices: &[&Tensor]) -> DeferredRead {
        if matrices.iter().map(|x| x.len()).sum::<usize>() > transfer::PAGE {
            return DeferredRead::done(matrices);
        }
        let part = |x: &&Tensor| {
            assert_eq!(x.precision(), MatrixPrecision::Full, "what is read later is f32");
            (at(x), x.len())
        };
        let parts: Vec<_> = matrices.iter().map(part).collect();
        let numbers = self.context.receive(&parts);
        DeferredRead::pending(|| numbers.read())
    }

    fn group_id(&self) -> Result<Option<Vec<u8>>, DeviceError> {
        nccl::unique_id().map(Some)
    }

    fn join(
        &self,
        id: &[u8],
        rank: usize,
        ranks: usize,
    ) -> Result<Option<Box<dyn DeviceGroup>>, DeviceError> {
        Ok(Some(Box::new(nccl::NcclGroup::join(&self.context, id, rank, ranks)?)))
    }

    fn held_memory(&self) -> Option<usize> {
        Some(self.context.held())
    }

    fn nearest(
        &self,
        search: &NearestSearch<'_>,
        watch: &dyn Fn(u64, u64),
    ) -> Option<[BestScores; 2]> {
        Some(search::nearest(self, search, watch))
    }

    fn best_tokens(
        &self,
        hidden: &Tensor,
        table: &Tensor,
        bias: &Tensor,
        _copies: usize,
    ) -> Vec<u32> {
        search::best_tokens(self, hidden, table, bias)
    }

    fn tied_cross_entropy(
        &self,
        softmax: TiedSoftmax<'_>,
        score: &mut Tensor,
        grads: Option<TiedGrads<'_>>,
    ) {
        softmax::tied_cross_entropy(self, &softmax, score, grads);
    }

    fn adam(&self, slots: &mut [AdamSlot<'_>], step: AdamStep, norm: &mut Tensor) {
        adam::update(self, slots, step, norm);
    }
}
