//! A place where numbers live and kernels run.

use std::fmt;
use std::sync::Arc;

use crate::cpu::Cpu;
use crate::cuda::Cuda;
use crate::kernels::{Kernels, Precision};
use crate::value::Tensor;

/// Why a device could not be had.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The name is of no device that this program knows.
    #[error("unknown device '{0}'; there are: auto, cpu, cuda")]
    Unknown(String),
    /// There is no driver of NVIDIA's.
    #[error("no GPU can be used: the driver (libcuda) is not installed; take --device cpu")]
    NoDriver,
    /// There is a driver, but no GPU.
    #[error("the driver finds no GPU; take --device cpu")]
    NoGpu,
    /// The GPU lacks what the kernels need.
    #[error(
        "{name} has compute capability {}.{}, and 8.0 is needed; take --device cpu",
        capability.0, capability.1
    )]
    OldGpu {
        /// What it is called.
        name: String,
        /// What it can do.
        capability: (i32, i32),
    },
    /// A library is missing.
    #[error(
        "{name} is not found in {searched} folders; install the CUDA toolkit, or `pip install \
         nvidia-cublas nvidia-cuda-nvrtc`, or name its folder in LD_LIBRARY_PATH; or take --device cpu"
    )]
    NoLibrary {
        /// The library.
        name: &'static str,
        /// How many folders were looked through.
        searched: usize,
    },
    /// The driver or a library refused.
    #[error("cannot {what}: {reason}; a newer driver may help, or take --device cpu")]
    Gpu {
        /// What was tried.
        what: &'static str,
        /// What was said.
        reason: String,
    },
    /// No machine has so many.
    #[error("{threads} threads are more than {most}; give the number of cores, or 0 for all")]
    TooManyThreads {
        /// How many were asked for.
        threads: usize,
        /// How many are taken.
        most: usize,
    },
    /// The threads could not be started.
    #[error("cannot start {threads} threads; ask for fewer with --threads")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// What the system said.
        source: rayon::ThreadPoolBuildError,
    },
}

/// A device: a handle to its kernels, which own its memory. Clones share both.
#[derive(Clone)]
pub struct Device {
    kernels: Arc<dyn Kernels>,
}

impl Device {
    /// The device of that name; `auto` is a GPU where one can be used, else the CPU. `threads` is for
    /// the CPU; 0 takes every core.
    pub fn named(name: &str, threads: usize) -> Result<Self, DeviceError> {
        match name {
            "auto" => Self::cuda().or_else(|_| Self::cpu(threads)),
            "cpu" => Self::cpu(threads),
            "cuda" => Self::cuda(),
            _ => Err(DeviceError::Unknown(name.to_owned())),
        }
    }

    /// The CPU, with so many threads; 0 takes every core.
    pub fn cpu(threads: usize) -> Result<Self, DeviceError> {
        Ok(Self::of(Arc::new(Cpu::new(threads)?)))
    }

    /// The first GPU of NVIDIA's.
    pub fn cuda() -> Result<Self, DeviceError> {
        Ok(Self::of(Arc::new(Cuda::new()?)))
    }

    /// A device of these kernels.
    pub(crate) fn of(kernels: Arc<dyn Kernels>) -> Self {
        Self { kernels }
    }

    /// A matrix whose content is yet to be written.
    pub fn empty(&self, rows: usize, cols: usize) -> Tensor {
        self.kernels.empty(rows, cols, Precision::Full)
    }

    /// A matrix for what flows between operations, in the precision that the device computes in;
    /// its content is yet to be written.
    pub(crate) fn working(&self, rows: usize, cols: usize) -> Tensor {
        self.kernels.empty(rows, cols, Precision::Working)
    }

    /// A matrix of zeros.
    pub fn zeros(&self, rows: usize, cols: usize) -> Tensor {
        let mut tensor = self.empty(rows, cols);
        self.kernels.fill(&mut tensor, 0.0);
        tensor
    }

    /// A matrix with the given elements, row after row.
    ///
    /// # Panics
    /// Where there are not `rows * cols` of them.
    pub fn tensor(&self, rows: usize, cols: usize, elements: &[f32]) -> Tensor {
        let mut tensor = self.empty(rows, cols);
        tensor.write(elements);
        tensor
    }

    /// What the device can do.
    pub fn kernels(&self) -> &dyn Kernels {
        &*self.kernels
    }

    /// Runs a whole piece of work on the device's own threads, so that the many kernels inside need
    /// not be handed over to them one by one.
    pub fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        let mut work = Some(work);
        let mut result = None;
        self.kernels.run(&mut || result = work.take().map(|work| work()));
        result.expect("the device runs the work once")
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kernels.description())
    }
}
