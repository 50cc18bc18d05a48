//! Matrices and index lists.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::buffer::Buffer;

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
    pub fn as_slice(&self) -> &[f32] {
        self.buffer.as_slice()
    }

    /// The elements to write, where they are in host memory.
    pub fn as_mut_slice(&mut self) -> &mut [f32] {
        self.buffer.as_mut_slice()
    }

    /// A copy of the elements in host memory, wherever they are now.
    pub fn to_vec(&self) -> Vec<f32> {
        self.as_slice().to_vec()
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({} x {})", self.rows, self.cols)
    }
}

/// A list of row numbers or token ids, cheap to share between a batch and the tape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Indices(Arc<[u32]>);

impl From<Vec<u32>> for Indices {
    fn from(list: Vec<u32>) -> Self {
        Self(list.into())
    }
}

impl FromIterator<u32> for Indices {
    fn from_iter<I: IntoIterator<Item = u32>>(list: I) -> Self {
        Self(list.into_iter().collect())
    }
}

impl Deref for Indices {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        &self.0
    }
}
