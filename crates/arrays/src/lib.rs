//! Matrices in memory and on disk, in the formats that NumPy and safetensors read.
//!
//! - [`npy`]: one array (`.npy`) or several by name (`.npz`), in half, single or double precision.
//! - [`Matrix`]: vectors of one dimension in rows.
//! - [`Stack`]: the layers of an encoder, rows x dimension each, read a range of rows at a time from
//!   `.npy`, `.npz` or safetensors, so that more rows can be worked on than memory holds;
//!   [`StackWriter`] writes one as its rows come.
//!
//! ```
//! use arrays::{Stack, StackWriter};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("states.npy");
//! // Two layers of three rows of two columns, which come a row of each layer at a time.
//! let mut writer = StackWriter::new(std::fs::File::create(&path)?, 2, 3, 2)?;
//! for row in 0..3 {
//!     let x = row as f32;
//!     writer.append(1, &[vec![x, 0.0], vec![0.0, x]])?;
//! }
//! writer.finish()?;
//!
//! let stack = Stack::open(&path)?;
//! assert_eq!((stack.layers(), stack.rows(), stack.dim(1)), (2, 3, 2));
//! assert_eq!(stack.read(1, 1..3)?.values(), [0.0, 1.0, 0.0, 2.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod matrix;
pub mod npy;
mod stack;

pub use crate::matrix::Matrix;
pub use crate::stack::{Stack, StackWriter};
pub use terms::{Error, Result};
