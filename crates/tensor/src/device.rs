//! A place where numbers live and kernels run.

use std::fmt;
use std::ops::Range;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use crate::cpu::Cpu;
use crate::cuda::{Cuda, DeviceFault};
use crate::kernels::{Kernels, Precision};
use crate::value::{Indices, Tensor};

/// What all errors of a GPU end in: the way out for whoever insisted on one.
const INSTEAD: &str = "; or take --device cpu";

/// Why a device could not be had.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The name is of no device that this program knows.
    #[error("unknown device '{0}'; there are: auto, cpu, cuda")]
    Unknown(String),
    /// There is no driver of NVIDIA's.
    #[error("no GPU can be used: the driver (libcuda) is not installed{}", INSTEAD)]
    NoDriver,
    /// There is a driver, but no GPU.
    #[error("the driver finds no GPU{}", INSTEAD)]
    NoGpu,
    /// The GPU lacks what the kernels need.
    #[error(
        "{name} has compute capability {}.{}, and 8.0 is needed{}",
        capability.0, capability.1, INSTEAD
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
         nvidia-cublas nvidia-cuda-nvrtc`, or name its folder in LD_LIBRARY_PATH{}",
        INSTEAD
    )]
    NoLibrary {
        /// The library.
        name: &'static str,
        /// How many folders were looked through.
        searched: usize,
    },
    /// The driver or a library refused.
    #[error("cannot {what}: {reason}; a newer driver may help{}", INSTEAD)]
    Gpu {
        /// What was tried.
        what: &'static str,
        /// What was said.
        reason: String,
    },
    /// The GPU failed while it was being opened: its memory may be full of another program's.
    #[error("{reason}{}", INSTEAD)]
    Fault {
        /// How.
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

impl DeviceError {
    /// Why a GPU that is there cannot be used, with no word of the way out; nothing where there is
    /// none to use.
    fn obstacle(&self) -> Option<String> {
        if matches!(self, Self::NoDriver | Self::NoGpu) {
            return None;
        }
        self.to_string().strip_suffix(INSTEAD).map(str::to_owned)
    }
}

/// A device: a handle to its kernels, which own its memory. Clones share both.
#[derive(Clone)]
pub struct Device {
    kernels: Arc<dyn Kernels>,
    /// Why it is not the GPU that is there.
    obstacle: Option<Arc<str>>,
}

impl Device {
    /// The device of that name; `auto` is a GPU where one can be used, else the CPU. `threads` is for
    /// the CPU; 0 takes every core.
    pub fn named(name: &str, threads: usize) -> Result<Self, DeviceError> {
        match name {
            "auto" => Self::cuda().or_else(|error| Self::cpu_after(&error, threads)),
            "cpu" => Self::cpu(threads),
            "cuda" => Self::cuda(),
            _ => Err(DeviceError::Unknown(name.to_owned())),
        }
    }

    /// The CPU, with so many threads; 0 takes every core.
    pub fn cpu(threads: usize) -> Result<Self, DeviceError> {
        Ok(Self::of(Arc::new(Cpu::new(threads)?)))
    }

    /// The CPU, since the GPU could not be had.
    fn cpu_after(error: &DeviceError, threads: usize) -> Result<Self, DeviceError> {
        Ok(Self { obstacle: error.obstacle().map(Arc::from), ..Self::cpu(threads)? })
    }

    /// Why this is the CPU although there is a GPU: for whoever asked for `auto` to be told.
    pub fn obstacle(&self) -> Option<&str> {
        self.obstacle.as_deref()
    }

    /// The first GPU of NVIDIA's.
    pub fn cuda() -> Result<Self, DeviceError> {
        // What is taken of its memory on the way may be too much, which unwinds.
        let opened = panic::catch_unwind(AssertUnwindSafe(Cuda::new));
        let cuda = opened.unwrap_or_else(|payload| match payload.downcast::<DeviceFault>() {
            Ok(fault) => Err(DeviceError::Fault { reason: fault.to_string() }),
            Err(payload) => panic::resume_unwind(payload),
        });
        Ok(Self::of(Arc::new(cuda?)))
    }

    /// A device of these kernels.
    pub(crate) fn of(kernels: Arc<dyn Kernels>) -> Self {
        Self { kernels, obstacle: None }
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

    /// The means of some ranges of rows of a matrix, one after the other, in this process's memory.
    ///
    /// # Panics
    /// Where a range ends beyond the matrix or before it begins.
    pub fn row_means(&self, x: &Tensor, ranges: &[Range<usize>]) -> Vec<f32> {
        let whole = |range: &Range<usize>| range.start <= range.end && range.end <= x.rows();
        assert!(ranges.iter().all(whole), "ranges of rows that are there");
        let bounds = ranges.iter().flat_map(|range| [range.start as u32, range.end as u32]);
        let bounds: Indices = bounds.collect();
        let mut means = self.empty(ranges.len(), x.cols());
        self.kernels.row_means(x, &bounds, &mut means);
        means.to_vec()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_gpu_that_is_there_is_spoken_of() {
        let taken = |error: DeviceError| {
            assert!(error.to_string().ends_with("; or take --device cpu"), "{error}");
            Device::cpu_after(&error, 1).unwrap().obstacle().map(str::to_owned)
        };
        assert_eq!(taken(DeviceError::NoDriver), None);
        assert_eq!(taken(DeviceError::NoGpu), None);
        let old = DeviceError::OldGpu { name: "An old one".into(), capability: (7, 5) };
        let told = "An old one has compute capability 7.5, and 8.0 is needed";
        assert_eq!(taken(old).as_deref(), Some(told));
        let missing = taken(DeviceError::NoLibrary { name: "libnvrtc", searched: 3 }).unwrap();
        assert!(missing.starts_with("libnvrtc is not found in 3 folders; install"), "{missing}");
        assert!(missing.ends_with("LD_LIBRARY_PATH"), "{missing}");
        let refused = DeviceError::Gpu { what: "start the driver", reason: "no (NO)".into() };
        let told = "cannot start the driver: no (NO); a newer driver may help";
        assert_eq!(taken(refused).as_deref(), Some(told));
        let full = DeviceError::Fault { reason: "the GPU's memory is full".into() };
        assert_eq!(taken(full).as_deref(), Some("the GPU's memory is full"));
        assert_eq!(Device::cpu(1).unwrap().obstacle(), None);
    }
}
