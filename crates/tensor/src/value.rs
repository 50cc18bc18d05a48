//! Matrices and index lists.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use crate::buffer::Buffer;
use crate::kernels::MatrixPrecision;

/// A matrix of `f32` on a device, rows by columns, row after row.
pub struct Tensor {
    buffer: Buffer,
    rows: usize,
    cols: usize,
}

impl Tensor {
    pub(crate) fn new(buffer: Buffer, rows: usize, cols: usize) -> Self {
        Self { buffer, rows, cols }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.rows * self.cols
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    /// The elements, where they are in host memory.
    ///
    /// # Panics
    /// Where they are not: [`Tensor::to_vec`] reads them wherever they are.
    pub fn as_slice(&self) -> &[f32] {
        self.buffer.as_slice()
    }

    /// The elements to write, where they are in host memory.
    ///
    /// # Panics
    /// Where they are not: [`Tensor::write`] writes them wherever they are.
    pub fn as_mut_slice(&mut self) -> &mut [f32] {
        self.buffer.as_mut_slice()
    }

    /// A copy of the elements in host memory, wherever they are now.
    pub fn to_vec(&self) -> Vec<f32> {
        match &self.buffer {
            Buffer::Host(buffer) => buffer.as_slice().to_vec(),
            Buffer::Cuda(block) => block.to_vec(),
        }
    }

    /// The elements in host memory: as they are where they are there, else a copy.
    pub fn elements(&self) -> Cow<'_, [f32]> {
        match &self.buffer {
            Buffer::Host(buffer) => Cow::Borrowed(buffer.as_slice()),
            Buffer::Cuda(block) => Cow::Owned(block.to_vec()),
        }
    }

    /// Overwrites the elements, row after row.
    ///
    /// # Panics
    /// Where there are not as many as the matrix has.
    pub fn write(&mut self, elements: &[f32]) {
        match &mut self.buffer {
            Buffer::Host(buffer) => buffer.as_mut_slice().copy_from_slice(elements),
            Buffer::Cuda(block) => block.write(elements),
        }
    }

    /// Lets `write` overwrite every element, row after row, without a copy where that is possible.
    pub fn write_with(&mut self, write: impl FnOnce(&mut [f32])) {
        match &mut self.buffer {
            Buffer::Host(buffer) => write(buffer.as_mut_slice()),
            Buffer::Cuda(block) => {
                let mut elements = vec![0.0; self.rows * self.cols];
                write(&mut elements);
                block.write(&elements);
            }
        }
    }

    /// How exactly the elements are kept.
    pub(crate) fn precision(&self) -> MatrixPrecision {
        self.buffer.precision()
    }

    pub(crate) fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    pub(crate) fn buffer_mut(&mut self) -> &mut Buffer {
        &mut self.buffer
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({} x {})", self.rows, self.cols)
    }
}

/// Numbers of a device that may still be under way.
pub struct DeferredRead(Box<dyn FnOnce() -> Vec<f32> + Send>);

impl DeferredRead {
    /// The elements of these matrices, read now.
    pub(crate) fn done(matrices: &[&Tensor]) -> Self {
        let numbers = matrices.iter().flat_map(|x| x.to_vec()).collect();
        Self(Box::new(|| numbers))
    }

    /// What `wait` gives, which is called once at most.
    pub(crate) fn pending(wait: impl FnOnce() -> Vec<f32> + Send + 'static) -> Self {
        Self(Box::new(wait))
    }

    /// Waits for them.
    pub fn read(self) -> Vec<f32> {
        (self.0)()
    }
}

/// A list of row numbers or token ids, cheap to share between a batch and the tape.
#[derive(Clone)]
pub struct Indices(Arc<IndexList>);

struct IndexList {
    numbers: Vec<u32>,
    /// The largest of them, known before any device reads the list.
    largest: Option<u32>,
    /// What a device keeps of the list, made when it first reads it: each knows its own type.
    device_copy: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl Indices {
    /// Makes sure that every number is that of a row. A kernel does not look: on a GPU, a number beyond a table
    /// would be read from, or written to, whatever lies there. One comparison a list, since the largest is known.
    ///
    /// # Panics
    /// Where a number is `rows` or more.
    #[track_caller]
    pub(crate) fn assert_below(&self, rows: usize, what: &str) {
        if let Some(largest) = self.0.largest {
            assert!((largest as usize) < rows, "{what} {largest} of a table of {rows} rows");
        }
    }

    /// What a device keeps of the list; `make` is called the first time.
    ///
    /// # Panics
    /// Where another kind of device has used the list: lists are made for one.
    pub(crate) fn device_copy<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> &T {
        let copy = self.0.device_copy.get_or_init(|| Box::new(make()));
        copy.downcast_ref().expect("a list is used on one device")
    }
}

impl fmt::Debug for Indices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.numbers.fmt(f)
    }
}

impl PartialEq for Indices {
    fn eq(&self, other: &Self) -> bool {
        self.0.numbers == other.0.numbers
    }
}

impl Eq for Indices {}

impl From<Vec<u32>> for Indices {
    fn from(numbers: Vec<u32>) -> Self {
        let largest = numbers.iter().copied().max();
        Self(Arc::new(IndexList { numbers, largest, device_copy: OnceLock::new() }))
    }
}

impl FromIterator<u32> for Indices {
    fn from_iter<I: IntoIterator<Item = u32>>(list: I) -> Self {
        list.into_iter().collect::<Vec<_>>().into()
    }
}

impl Deref for Indices {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        &self.0.numbers
    }
}
