//! Memory that is taken from a pool and goes back to it by itself.
//!
//! A training step asks for the same sizes again and again. Buffers that are dropped return to the
//! pool of their device, so that a steady step allocates nothing and never faults a fresh page in.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A cache line of host memory: the unit in which it is allocated, so that rows are aligned.
#[derive(Clone, Copy, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C, align(64))]
struct Line([f32; LINE]);

/// Floats in a cache line.
const LINE: usize = 16;

/// Memory of one device. A second device adds its own variant.
pub(crate) enum Memory {
    /// Ordinary memory of this process.
    Host(HostMemory),
}

/// Aligned host memory.
pub(crate) struct HostMemory(Vec<Line>);

impl HostMemory {
    fn zeroed(lines: usize) -> Self {
        Self(vec![Line([0.0; LINE]); lines])
    }
}

/// The free memory of a device, by size.
#[derive(Default)]
pub(crate) struct Pool {
    free: Mutex<BTreeMap<usize, Vec<Memory>>>,
}

impl Pool {
    /// The smallest free memory of at least so many lines, and less than twice as many: batches of
    /// all lengths then share memory instead of each length keeping its own.
    fn take(&self, lines: usize) -> Option<Memory> {
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

/// A run of floats on a device. Its content is whatever was there before, until it is written.
pub(crate) struct Buffer {
    memory: Option<Memory>,
    len: usize,
    pool: Arc<Pool>,
}

impl Buffer {
    /// Takes host memory for `len` floats: from the pool where it has some, else newly allocated.
    pub(crate) fn host(pool: &Arc<Pool>, len: usize) -> Self {
        let lines = size_class(len.div_ceil(LINE));
        let recycled = pool.take(lines);
        let memory = recycled.unwrap_or_else(|| Memory::Host(HostMemory::zeroed(lines)));
        let mut buffer = Self { memory: Some(memory), len, pool: Arc::clone(pool) };
        if cfg!(debug_assertions) {
            // A kernel that reads before it writes shows itself.
            buffer.as_mut_slice().fill(f32::NAN);
        }
        buffer
    }

    /// The floats, in host memory.
    pub(crate) fn as_slice(&self) -> &[f32] {
        match self.memory.as_ref().expect("memory is there until the buffer is dropped") {
            Memory::Host(HostMemory(lines)) => &bytemuck::cast_slice(lines)[..self.len],
        }
    }

    /// The floats, in host memory, to write.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [f32] {
        match self.memory.as_mut().expect("memory is there until the buffer is dropped") {
            Memory::Host(HostMemory(lines)) => &mut bytemuck::cast_slice_mut(lines)[..self.len],
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let Some(memory) = self.memory.take() else { return };
        let class = match &memory {
            Memory::Host(HostMemory(lines)) => lines.len(),
        };
        let mut free = self.pool.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.entry(class).or_default().push(memory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_back() {
        let pool = Arc::new(Pool::default());
        let first = Buffer::host(&pool, 1000);
        let address = first.as_slice().as_ptr();
        drop(first);
        let second = Buffer::host(&pool, 999);
        assert_eq!(address, second.as_slice().as_ptr());
        assert_eq!(address as usize % 64, 0);
        assert_eq!(second.as_slice().len(), 999);
    }

    #[test]
    fn a_smaller_need_takes_what_a_larger_one_left() {
        let pool = Arc::new(Pool::default());
        let address = |len: usize| Buffer::host(&pool, len).as_slice().as_ptr();
        let large = address(10_000);
        assert_eq!(address(6_000), large);
        assert_ne!(address(1_000), large, "not what is ten times too large");
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
