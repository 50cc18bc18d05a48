//! Devices, memory, and a reverse-mode tape over a few fused operations.
//!
//! A Transformer needs about fifteen operations, not hundreds. Each is written whole here, with its
//! gradient by hand, so that what a framework would do in five passes over memory is one pass.
//! Matmuls come from a library (`gemm`, cuBLASLt); what lies between them is written here.
//!
//! - [`Device`] hands out memory from a pool and runs kernels. What a device must be able to do is
//!   the trait [`kernels::Kernels`]; `cpu/` and `cuda/` implement it, and another device is another
//!   folder beside them.
//! - [`Params`] holds named weights and their gradients.
//! - [`Tape`] runs operations forward, records them, and runs their backward passes.
//! - [`random`] draws numbers as a function of where they are used, [`search`] describes the search for
//!   nearest vectors on a GPU.
//!
//! Every value is a matrix, rows by columns: `f32` on the CPU, bf16 between operations on a GPU. Sequences
//! are *ragged*: the rows of all sequences of a batch follow one another with no padding, and a
//! [`Spans`] says where each begins.
//!
//! ```
//! use tensor::{Activation, Affine, Device, Mode, Params, Tape};
//!
//! let device = Device::cpu(1)?;
//! let mut params = Params::new(&device);
//! let weight = params.add("weight", device.tensor(2, 1, &[0.5, -1.0]));
//! let bias = params.add("bias", device.zeros(1, 1));
//!
//! let mut tape = Tape::new(&mut params, Mode::Train { seed: 1, step: 1, micro_batch: 0 });
//! let x = tape.input(device.tensor(1, 2, &[3.0, 1.0]), true);
//! let y = tape.linear(x, Affine { weight, bias: Some(bias) }, Activation::Relu);
//! assert_eq!(tape.value(y).to_vec(), [0.5]);
//!
//! tape.seed_grad(y, device.tensor(1, 1, &[1.0]));
//! tape.backward();
//! assert_eq!(tape.grad(x).unwrap().to_vec(), [0.5, -1.0]);
//! assert_eq!(params.grad(weight).unwrap().to_vec(), [3.0, 1.0]);
//! # Ok::<(), tensor::DeviceError>(())
//! ```

mod allocator;
mod buffer;
mod cpu;
mod cuda;
mod device;
pub mod kernels;
pub mod math;
mod ops;
mod params;
pub mod random;
pub mod search;
mod spans;
mod tape;
mod value;

pub use crate::allocator::OrderlyAllocator;
pub use crate::cuda::DeviceFault;
pub use crate::device::{Device, DeviceError};
pub use crate::kernels::{Activation, Heads, NormKind, Reach};
pub use crate::ops::{Affine, EmbedTables, Norm, Turn};
pub use crate::params::{ParamId, Params};
pub use crate::spans::Spans;
pub use crate::tape::{Mode, Tape, Var};
pub use crate::value::{DeferredRead, Indices, Tensor};
