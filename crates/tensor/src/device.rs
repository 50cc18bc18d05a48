//! A place where numbers live and kernels run.

use std::fmt;
use std::sync::Arc;

use crate::cpu::Cpu;
use crate::kernels::Kernels;
use crate::value::Tensor;

/// Why a device could not be had.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The name is of no device that this program knows.
    #[error("unknown device '{0}'; this build knows: cpu")]
    Unknown(String),
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
    /// The device of that name. `threads` is for the CPU; 0 takes every core.
    pub fn named(name: &str, threads: usize) -> Result<Self, DeviceError> {
        match name {
            "cpu" => Self::cpu(threads),
            _ => Err(DeviceError::Unknown(name.to_owned())),
        }
    }

    /// The CPU, with so many threads; 0 takes every core.
    pub fn cpu(threads: usize) -> Result<Self, DeviceError> {
        Ok(Self::of(Arc::new(Cpu::new(threads)?)))
    }

    /// A device of these kernels.
    pub(crate) fn of(kernels: Arc<dyn Kernels>) -> Self {
        Self { kernels }
    }

    /// A matrix whose content is yet to be written.
    pub fn empty(&self, rows: usize, cols: usize) -> Tensor {
        self.kernels.empty(rows, cols)
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
        self.kernels.upload(elements, &mut tensor);
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
