//! Numbers: devices, buffers, and a reverse-mode tape over a few fused operations.
//!
//! A Transformer needs about fifteen operations, not hundreds. Each is written whole here, with its
//! gradient by hand, so that what a framework would do in five passes over memory is one pass.
//! Matrix products come from a library; what lies between them is ours.
//!
//! - [`Device`] hands out memory from a pool and runs kernels. What a device must be able to do is
//!   the trait [`kernels::Kernels`]; `cpu/` implements it, and another device is another folder
//!   beside it (`cuda/` is the second).
//! - [`Params`] holds named weights and their gradients.
//! - [`Tape`] runs operations forward, remembers them, and walks them backward.
//!
//! Every value is a matrix of `f32`, rows by columns. Sequences are *ragged*: the rows of all
//! sequences of a batch follow one another with no padding, and a [`Spans`] says where each begins.

mod buffer;
mod cpu;
mod cuda;
mod device;
pub mod exact;
pub mod kernels;
mod ops;
mod params;
pub mod random;
mod spans;
mod tape;
mod value;

pub use crate::cuda::DeviceFault;
pub use crate::device::{Device, DeviceError};
pub use crate::ops::{Activation, Affine, EmbedTables, LayerNorm};
pub use crate::params::{ParamId, Params};
pub use crate::spans::Spans;
pub use crate::tape::{Mode, Tape, Var};
pub use crate::value::{Indices, Later, Tensor};
