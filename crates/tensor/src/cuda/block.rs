//! The elements of a matrix in the GPU's memory.

#![allow(unsafe_code, reason = "numbers are seen as bytes")]

use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::CUdeviceptr;

use super::context::{Context, DeviceMemory};
use super::lock;
use crate::kernels::MatrixPrecision;

/// A run of numbers: f32 where precision is full, bf16 where it is the working one.
pub(crate) struct DeviceBlock {
    memory: DeviceMemory,
    pub(crate) precision: MatrixPrecision,
    len: usize,
    /// Of full numbers, a rounded copy for matmuls.
    rounded: Mutex<Option<Rounded>>,
    /// Sums of the matrix's columns, where the kernel that wrote it computed them too.
    parts: Option<PartialSums>,
}

/// Partial column sums, which lie below one another and are yet to be added up.
pub(super) struct PartialSums {
    pub(super) memory: DeviceMemory,
    /// Numbers before the first.
    pub(super) skip: usize,
    pub(super) count: usize,
    /// Numbers from one to the next.
    pub(super) stride: usize,
}

impl PartialSums {
    pub(super) fn pointer(&self) -> CUdeviceptr {
        self.memory.pointer + (self.skip * size_of::<f32>()) as u64
    }
}

/// A rounded copy, and whether it is up to date.
struct Rounded {
    memory: DeviceMemory,
    fresh: bool,
}

impl DeviceBlock {
    pub(super) fn new(context: &Arc<Context>, len: usize, precision: MatrixPrecision) -> Self {
        let bytes = len * precision.bytes();
        let memory = context.take(bytes);
        if cfg!(debug_assertions) {
            // Bytes of ones are NaN: a kernel that reads before it writes shows itself.
            context.set_bytes(memory.pointer, 0xff, bytes);
        }
        Self { memory, precision, len, rounded: Mutex::default(), parts: None }
    }

    pub(super) fn pointer(&self) -> CUdeviceptr {
        self.memory.pointer
    }

    /// Where to write: a rounded copy and sums are then out of date.
    pub(super) fn pointer_mut(&mut self) -> CUdeviceptr {
        if let Some(rounded) = self.rounded.get_mut().unwrap_or_else(PoisonError::into_inner) {
            rounded.fresh = false;
        }
        self.parts = None;
        self.memory.pointer
    }

    /// Sums of the columns of what was just written.
    pub(super) fn take_parts(&mut self, parts: PartialSums) {
        self.parts = Some(parts);
    }

    pub(super) fn parts(&self) -> Option<&PartialSums> {
        self.parts.as_ref()
    }

    /// A copy of the numbers in this process's memory.
    pub(crate) fn to_vec(&self) -> Vec<f32> {
        let context = &self.memory.context;
        match self.precision {
            MatrixPrecision::Full => {
                let mut elements = vec![0.0_f32; self.len];
                context.download(self.pointer(), bytemuck::cast_slice_mut(&mut elements));
                elements
            }
            MatrixPrecision::Working => {
                let mut halves = vec![0_u16; self.len];
                context.download(self.pointer(), bytemuck::cast_slice_mut(&mut halves));
                halves.iter().map(|&half| f32::from_bits(u32::from(half) << 16)).collect()
            }
        }
    }

    pub(crate) fn write(&mut self, elements: &[f32]) {
        assert_eq!(elements.len(), self.len, "as many elements as the matrix has");
        let pointer = self.pointer_mut();
        match self.precision {
            MatrixPrecision::Full => {
                self.memory.context.upload(bytemuck::cast_slice(elements), pointer)
            }
            MatrixPrecision::Working => {
                let halves: Vec<u16> = elements.iter().map(|&x| narrow(x)).collect();
                self.memory.context.upload(bytemuck::cast_slice(&halves), pointer);
            }
        }
    }

    /// The rounded copy of full numbers; `round` makes it where there is none that is up to date.
    pub(super) fn rounded(&self, round: impl FnOnce(CUdeviceptr)) -> CUdeviceptr {
        let mut rounded = lock(&self.rounded);
        let rounded = rounded.get_or_insert_with(|| {
            let bytes = self.len * MatrixPrecision::Working.bytes();
            Rounded { memory: self.memory.context.take(bytes), fresh: false }
        });
        if !rounded.fresh {
            round(rounded.memory.pointer);
            rounded.fresh = true;
        }
        rounded.memory.pointer
    }

    /// Where the rounded copy is, where it is up to date: for kernels that write both.
    pub(super) fn kept_rounded(&self) -> Option<CUdeviceptr> {
        lock(&self.rounded).as_ref().filter(|rounded| rounded.fresh).map(|r| r.memory.pointer)
    }
}

impl MatrixPrecision {
    /// What a number takes up on a GPU.
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::Full => 4,
            Self::Working => 2,
        }
    }
}

/// Rounds to the nearest bf16, to even where two are equally near; a NaN stays one.
fn narrow(x: f32) -> u16 {
    let bits = x.to_bits();
    if x.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}
