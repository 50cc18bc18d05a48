//! A device: memory for matrices, and the kernels that run on them.

use std::fmt;
use std::ops::Range;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use crate::cpu::Cpu;
use crate::cuda::{Cuda, DeviceFault};
use crate::kernels::{GramSum, Kernels, MatrixPrecision};
use crate::value::{Indices, Tensor};

/// Why a device cannot be used. Messages name no flags: [`terms::Fault::key`] says which key is to blame,
/// and the surface how to set it.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// There is no device of that name.
    #[error("unknown device '{0}'; there are: auto, cpu, cpu-bf16, cuda")]
    Unknown(String),
    /// There is no NVIDIA driver.
    #[error("no GPU can be used: the driver (libcuda) is not installed")]
    NoDriver,
    /// There is a driver, but no GPU.
    #[error("the driver finds no GPU")]
    NoGpu,
    /// The GPU, or the processor, lacks something or has failed, which the message says.
    #[error("{0}")]
    Unusable(String),
    /// No machine has so many.
    #[error("{threads} threads are more than {most}; give the number of cores, or 0 for all")]
    TooManyThreads {
        /// How many were asked for.
        threads: usize,
        /// How many are taken.
        most: usize,
    },
    /// The threads could not be started.
    #[error("cannot start {threads} threads; ask for fewer")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// What the system said.
        source: rayon::ThreadPoolBuildError,
    },
}

impl DeviceError {
    /// The driver or a library refused to do something.
    pub(crate) fn refused(what: &str, reason: impl fmt::Display) -> Self {
        Self::Unusable(format!("cannot {what}: {reason}; a newer driver may help"))
    }

    /// Why a GPU that is there cannot be used; none where there is no GPU.
    fn obstacle(&self) -> Option<String> {
        (!matches!(self, Self::NoDriver | Self::NoGpu)).then(|| self.to_string())
    }
}

impl terms::Fault for DeviceError {
    fn is_usage(&self) -> bool {
        true
    }

    fn key(&self) -> Option<&str> {
        Some(match self {
            Self::TooManyThreads { .. } | Self::Threads { .. } => "threads",
            _ => "device",
        })
    }
}

/// A device: a handle to its kernels, which own its memory. Clones share both.
#[derive(Clone)]
pub struct Device {
    kernels: Arc<dyn Kernels>,
    /// Why this is the CPU although there is a GPU.
    obstacle: Option<Arc<str>>,
}

impl Device {
    /// The device of that name; `auto` is a GPU where one can be used, else the CPU. On `cpu-bf16`, a CPU with
    /// AVX-512 BF16, affine maps are computed from operands rounded to bf16, with sums in f32: about twice as fast, with
    /// the error that a GPU makes. `threads` is for the CPU; 0 takes every core.
    pub fn named(name: &str, threads: usize) -> Result<Self, DeviceError> {
        Self::numbered(name, threads, 0)
    }

    /// The same, of several GPUs the one of this number, counted from 0. A process that is shown a single GPU takes
    /// that, whatever the number.
    pub fn numbered(name: &str, threads: usize, gpu: usize) -> Result<Self, DeviceError> {
        match name {
            "auto" => Self::open_gpu(gpu).or_else(|error| Self::cpu_after(&error, threads)),
            "cpu" => Self::cpu(threads),
            "cpu-bf16" => Ok(Self::of(Arc::new(Cpu::with_bf16(threads)?))),
            "cuda" => Self::open_gpu(gpu),
            _ => Err(DeviceError::Unknown(name.to_owned())),
        }
    }

    /// The CPU, with so many threads; 0 takes every core.
    pub fn cpu(threads: usize) -> Result<Self, DeviceError> {
        Ok(Self::of(Arc::new(Cpu::new(threads)?)))
    }

    /// The CPU, since the GPU cannot be used.
    fn cpu_after(error: &DeviceError, threads: usize) -> Result<Self, DeviceError> {
        Ok(Self { obstacle: error.obstacle().map(Arc::from), ..Self::cpu(threads)? })
    }

    /// Why this is the CPU although there is a GPU: to be reported where `auto` was asked for.
    pub fn obstacle(&self) -> Option<&str> {
        self.obstacle.as_deref()
    }

    /// The first NVIDIA GPU.
    pub fn cuda() -> Result<Self, DeviceError> {
        Self::open_gpu(0)
    }

    fn open_gpu(number: usize) -> Result<Self, DeviceError> {
        // Taking its memory may fail, which unwinds.
        let opened = panic::catch_unwind(AssertUnwindSafe(|| Cuda::new(number)));
        let cuda = opened.unwrap_or_else(|payload| match payload.downcast::<DeviceFault>() {
            Ok(fault) => Err(DeviceError::Unusable(fault.to_string())),
            Err(payload) => panic::resume_unwind(payload),
        });
        Ok(Self::of(Arc::new(cuda?)))
    }

    /// Whether this is a GPU.
    pub fn is_gpu(&self) -> bool {
        self.kernels.is_gpu()
    }

    pub(crate) fn of(kernels: Arc<dyn Kernels>) -> Self {
        Self { kernels, obstacle: None }
    }

    /// A matrix whose content is yet to be written.
    pub fn empty(&self, rows: usize, cols: usize) -> Tensor {
        self.kernels.empty(rows, cols, MatrixPrecision::Full)
    }

    /// A matrix for what flows between operations, in the precision that the device computes in;
    /// its content is yet to be written.
    pub(crate) fn working(&self, rows: usize, cols: usize) -> Tensor {
        self.kernels.empty(rows, cols, MatrixPrecision::Working)
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

    /// The same of ranges of `rows`: the means of chosen rows, wherever they stand in a matrix of hidden states. Rows that belong
    /// together need not be read one by one.
    ///
    /// # Panics
    /// Where there is no such row, or a range ends beyond them.
    pub fn selected_means(&self, x: &Tensor, rows: &Indices, ranges: &[Range<usize>]) -> Vec<f32> {
        rows.assert_below(x.rows(), "row");
        let mut chosen = self.working(rows.len(), x.cols());
        self.kernels.select(x, rows, &mut chosen);
        self.row_means(&chosen, ranges)
    }

    /// `a · b`, of full precision. Two matrices of full precision are multiplied in `f32`.
    ///
    /// # Shapes
    /// `a`: rows x inner; `b`: inner x cols; result: rows x cols.
    pub fn matmul(&self, a: &Tensor, b: &Tensor) -> Tensor {
        assert_eq!(a.cols(), b.rows(), "shapes of a matmul");
        let mut y = self.empty(a.rows(), b.cols());
        self.kernels.matmul(a, b, &mut y);
        y
    }

    /// An empty sum of `aᵀ · b` (rows x cols) for [`Device::gram`].
    pub fn gram_sum(&self, rows: usize, cols: usize) -> GramSum {
        GramSum { wide: self.empty(rows, 2 * cols), begun: false }
    }

    /// `sum += aᵀ · b`: a matmul in `f32`, added up in `f64`, so that a sum over many batches loses
    /// nothing.
    ///
    /// # Shapes
    /// `a`: n x rows; `b`: n x cols; sum: rows x cols.
    pub fn gram(&self, a: &Tensor, b: &Tensor, sum: &mut GramSum) {
        let shape = (a.cols(), 2 * b.cols());
        assert_eq!((a.rows(), sum.wide.shape()), (b.rows(), shape), "shapes of a Gram matrix");
        if a.rows() > 0 {
            self.kernels.add_gram(a, b, sum);
            sum.begun = true;
        }
    }

    /// `x[i] + scale · table[rows[i]]` of each scale in turn, in the precision of `x`, computed where `x` is: shifts of
    /// hidden states.
    ///
    /// # Shapes
    /// `x`: n x dim; `table`: entries x dim, of full precision; `rows`: n; the result: (scales · n) x dim.
    ///
    /// # Panics
    /// Where a row is not in the table.
    pub fn add_rows(&self, x: &Tensor, table: &Tensor, rows: &Indices, scales: &[f32]) -> Tensor {
        assert_eq!((x.rows(), x.cols()), (rows.len(), table.cols()), "a row for every row");
        rows.assert_below(table.rows(), "row");
        let mut y = self.kernels.empty(scales.len() * x.rows(), x.cols(), x.precision());
        self.kernels.add_rows(x, table, rows, scales, &mut y);
        y
    }

    /// What the device can do.
    pub fn kernels(&self) -> &dyn Kernels {
        &*self.kernels
    }

    /// Runs work on the device's own threads, so that the many kernels inside need not be handed over
    /// to them one by one.
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
    fn only_a_gpu_that_is_there_is_reported() {
        let taken = |error: DeviceError| {
            assert_eq!(terms::Fault::key(&error), Some("device"));
            Device::cpu_after(&error, 1).unwrap().obstacle().map(str::to_owned)
        };
        assert_eq!(taken(DeviceError::NoDriver), None);
        assert_eq!(taken(DeviceError::NoGpu), None);
        let refused = DeviceError::refused("start the driver", "no (NO)");
        let expected = "cannot start the driver: no (NO); a newer driver may help";
        assert_eq!(taken(refused).as_deref(), Some(expected));
        assert_eq!(Device::cpu(1).unwrap().obstacle(), None);
    }

    #[test]
    fn a_gram_matrix_is_summed_over_batches() {
        let device = Device::cpu(2).unwrap();
        let (a, b) =
            (device.tensor(2, 3, &[1., 2., 3., 4., 5., 6.]), device.tensor(2, 1, &[2., -1.]));
        let mut sum = device.gram_sum(3, 1);
        assert_eq!(sum.to_vec(), [0.0; 3]);
        device.gram(&a, &b, &mut sum);
        assert_eq!(sum.to_vec(), [-2.0, -1.0, 0.0]);
        device.gram(&a, &b, &mut sum);
        device.gram(&device.zeros(0, 3), &device.zeros(0, 1), &mut sum);
        assert_eq!(sum.to_vec(), [-4.0, -2.0, 0.0]);
    }

    #[test]
    fn matmuls_and_shifted_rows() {
        let device = Device::cpu(2).unwrap();
        let (a, b) = (device.tensor(1, 2, &[1., 2.]), device.tensor(2, 2, &[3., 4., 5., 6.]));
        assert_eq!(device.matmul(&a, &b).to_vec(), [13., 16.]);
        let shifted = device.add_rows(&b, &a, &vec![0, 0].into(), &[2.0]);
        assert_eq!(shifted.to_vec(), [5., 8., 7., 10.]);
        let both = device.add_rows(&b, &a, &vec![0, 0].into(), &[2.0, 0.0]);
        assert_eq!(both.to_vec(), [shifted.to_vec(), b.to_vec()].concat());
        let one_of_two = device.add_rows(&a, &b, &vec![1].into(), &[-1.0]);
        assert_eq!(one_of_two.to_vec(), [-4., -4.]);
        assert!(!device.is_gpu());
    }
}
