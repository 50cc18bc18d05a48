//! Memory that is taken from a pool and goes back to it by itself.
//!
//! A training step asks for the same sizes again and again. Buffers that are dropped return to the
//! pool of their device, so that a steady step allocates nothing and never faults a fresh page in.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use terms::memory::{self, Shortage};

use crate::allocator::trying;
use crate::cuda::{DeviceBlock, fail};
use crate::kernels::MatrixPrecision;

/// A cache line of host memory: the unit in which it is allocated, so that rows are aligned.
#[derive(Clone, Copy, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C, align(64))]
struct BufferLine([f32; LINE]);

/// Floats in a cache line.
const LINE: usize = 16;

/// The elements of a matrix, on the device that it belongs to.
pub(crate) enum Buffer {
    /// In ordinary memory of this process.
    Host(HostBuffer),
    /// In the memory of a GPU.
    Cuda(DeviceBlock),
}

impl Buffer {
    pub(crate) fn precision(&self) -> MatrixPrecision {
        match self {
            Self::Host(_) => MatrixPrecision::Full,
            Self::Cuda(block) => block.precision,
        }
    }

    pub(crate) fn as_slice(&self) -> &[f32] {
        match self {
            Self::Host(buffer) => buffer.as_slice(),
            Self::Cuda(_) => panic!("{ELSEWHERE}"),
        }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [f32] {
        match self {
            Self::Host(buffer) => buffer.as_mut_slice(),
            Self::Cuda(_) => panic!("{ELSEWHERE}"),
        }
    }

    /// The block in the memory of a GPU.
    pub(crate) fn block(&self) -> &DeviceBlock {
        match self {
            Self::Cuda(block) => block,
            Self::Host(_) => panic!("{HERE}"),
        }
    }

    /// The block in the memory of a GPU, to write.
    pub(crate) fn block_mut(&mut self) -> &mut DeviceBlock {
        match self {
            Self::Cuda(block) => block,
            Self::Host(_) => panic!("{HERE}"),
        }
    }
}

const ELSEWHERE: &str = "this matrix is in the memory of a GPU; copy it with to_vec";
const HERE: &str = "this matrix is in the memory of the CPU, and a GPU is to read it";

/// The free host memory of a device, by size.
#[derive(Default)]
pub(crate) struct Pool {
    free: Mutex<BTreeMap<usize, Vec<Vec<BufferLine>>>>,
}

impl Pool {
    /// The smallest free memory of at least so many lines, and less than twice as many: batches of
    /// all lengths then share memory instead of each length keeping its own.
    fn take(&self, lines: usize) -> Option<Vec<BufferLine>> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut fitting = free.range_mut(lines..(2 * lines).max(1));
        fitting.find_map(|(_, memory)| memory.pop())
    }
}

/// Rounds a number of lines up so that nearly equal sizes share memory: at most an eighth is spare.
fn size_class(lines: usize) -> usize {
    let step = (lines.next_power_of_two() / 16).max(1);
    lines.next_multiple_of(step)
}

/// Memory that is new, or a fault that the caller of the operation can report: sizes come from configurations and input.
fn new_memory(lines: usize) -> Vec<BufferLine> {
    trying(|| bytemuck::try_zeroed_vec(lines)).unwrap_or_else(|()| {
        let needed = lines as u128 * size_of::<BufferLine>() as u128;
        let shortage = Shortage { needed, obtainable: memory::obtainable() };
        fail(format!("{shortage} for one matrix; take a smaller model or smaller batches"))
    })
}

/// A run of floats in host memory. Its content is whatever was there before, until it is written.
pub(crate) struct HostBuffer {
    lines: Vec<BufferLine>,
    len: usize,
    pool: Arc<Pool>,
}

impl HostBuffer {
    /// Takes memory for `len` floats: from the pool where it has some, else newly allocated.
    pub(crate) fn take(pool: &Arc<Pool>, len: usize) -> Self {
        let lines = size_class(len.div_ceil(LINE));
        let recycled = pool.take(lines);
        let lines = recycled.unwrap_or_else(|| new_memory(lines));
        let mut buffer = Self { lines, len, pool: Arc::clone(pool) };
        if cfg!(debug_assertions) {
            // A kernel that reads before it writes shows itself.
            buffer.as_mut_slice().fill(f32::NAN);
        }
        buffer
    }

    pub(crate) fn as_slice(&self) -> &[f32] {
        &bytemuck::cast_slice(&self.lines)[..self.len]
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [f32] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.len]
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        let mut free = self.pool.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.entry(lines.len()).or_default().push(lines);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_back() {
        let pool = Arc::new(Pool::default());
        let first = HostBuffer::take(&pool, 1000);
        let address = first.as_slice().as_ptr();
        drop(first);
        let second = HostBuffer::take(&pool, 999);
        assert_eq!(address, second.as_slice().as_ptr());
        assert_eq!(address as usize % 64, 0);
        assert_eq!(second.as_slice().len(), 999);
    }

    #[test]
    fn a_smaller_need_takes_what_a_larger_one_left() {
        let pool = Arc::new(Pool::default());
        let address = |len: usize| HostBuffer::take(&pool, len).as_slice().as_ptr();
        let large = address(10_000);
        assert_eq!(address(6_000), large);
        assert_ne!(address(1_000), large, "not what is ten times too large");
    }

    #[test]
    fn memory_that_cannot_be_had_is_a_fault_with_the_number() {
        let taken = std::panic::catch_unwind(|| HostBuffer::take(&Arc::default(), 1 << 60));
        let fault = taken.err().unwrap().downcast::<crate::DeviceFault>().unwrap().to_string();
        assert!(fault.contains("GB of memory are needed"), "{fault}");
    }

    #[test]
    fn size_classes_waste_little() {
        for lines in 1..5000 {
            let class = size_class(lines);
            assert!(class >= lines && class <= lines + lines.div_ceil(8), "{lines} -> {class}");
            assert_eq!(class, size_class(class));
        }
    }
}
