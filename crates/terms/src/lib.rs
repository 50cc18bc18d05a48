//! The terms that all crates share, each defined once: what a task is and what chance scores on it,
//! how large an experiment is, under which conditions encoders are pretrained, language codes, means and shares with their confidence intervals, which errors
//! are mistakes of use, how much memory can be had, and how long strangers at a port are listened to.
//!
//! This crate depends on no other of the workspace, so that every other may depend on it.
//!
//! ```
//! use terms::{Estimate, Preset, Scale, Task};
//!
//! let task: Task = "ner".parse().unwrap();
//! assert_eq!((task.measure(), task.chance()), ("f1", 0.0));
//! assert_eq!("small".parse(), Ok(Scale::Small));
//! assert_eq!(Preset::Sentences200k.sentences(Scale::Tiny), Some(20_000));
//! let f1 = Estimate::of(&[0.81, 0.84, 0.79]).unwrap();
//! assert_eq!(f1.n, 3);
//! ```

mod estimate;
mod fault;
mod guarded;
pub mod interrupt;
mod language;
pub mod memory;
mod named;
pub mod number;
mod preset;
mod printable;
mod rows;
mod scale;
pub mod strangers;
mod task;
pub mod tests;

pub use estimate::{Estimate, wilson};
pub use fault::{Error, Fault, Result, display_name};
pub use guarded::guarded;
pub use language::{SECOND_COPY, is_chinese, iso639_3, written_language};
pub use preset::Preset;
pub use printable::printable;
pub use rows::RowCounts;
pub use scale::Scale;
pub use task::Task;
