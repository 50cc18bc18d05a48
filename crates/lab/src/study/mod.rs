//! Studies: what they ask, the steps they come to, and how these are run.
//!
//! One way: a [`Study`] (what was written down) → its [`Plan`] (steps, each a command that could be
//! typed, and readings of their results) → [`run()`] (what is missing is run, what any study has done
//! before is found again) → records in the store.

mod cost;
mod error;
mod file;
mod laboratory;
mod materials;
mod plan;
mod readings;
mod recipes;
mod run;
mod sizes;
mod step;
mod systems;

pub use cost::UPDATES;
pub use error::{Error, Result};
pub use file::{Evaluation, Model, Real, Scale, Study, System, World};
pub use laboratory::{Lab, Outlook};
pub use plan::Plan;
pub use readings::{Found, Number, Reader, Reading, Said};
pub use run::{Done, Watch, run};
pub use sizes::{Count, sentences};
pub use step::{Arg, CPU, Draft, Resume, Step, StepId, Steps};
