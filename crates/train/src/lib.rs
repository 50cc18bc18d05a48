//! How weights learn: the optimiser, its schedules, the step, and checkpoints.
//!
//! - [`AdamConfig`] and [`Adam`]: Adam with decoupled weight decay and clipping, with a rate of its
//!   own for every [`Group`] of weights.
//! - [`Schedule`]: how the rate of learning changes with the step.
//! - [`Trainer`]: gradient accumulation, the update, and the watch for a loss that is no number.
//! - [`Trainer::save`] and [`Trainer::resume`]: checkpoints from which a run goes on as if it had
//!   never stopped, to the bit.
//! - [`pretrain`]: from a configuration to a folder with a trained encoder.

mod adam;
mod events;
pub mod pretrain;
mod schedule;
mod trainer;

pub use crate::adam::{Adam, AdamConfig, Group, Updated};
pub use crate::schedule::Schedule;
pub use crate::trainer::{Pending, Report, TrainError, Trainer};
