//! Static word vectors: a table of them, the files they come in, and (in time) how they are learned.
//!
//! [`Vectors`] is the table. [`files`] reads and writes it in the formats of the field; [`npy`] does
//! the same for plain arrays.

mod error;
pub mod files;
pub mod npy;
mod table;

pub use crate::error::{Error, Result};
pub use crate::table::Vectors;
