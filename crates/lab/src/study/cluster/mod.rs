//! Studies on a cluster: the steps of a plan as jobs of Slurm, on nodes that share nothing but the folder of the
//! laboratory.
//!
//! [`StepGraph`] (the steps of a plan and what each needs, saved as a file, so that a node need not plan again) →
//! [`slurm`] (a job array for each level of the graph) → [`run_step`] on a node (one step under a lease, since
//! locks and SQLite are not to be trusted on network file systems) → the store, which only the collecting job writes.

mod graph;
mod lease;
pub mod slurm;
mod state;

pub use graph::StepGraph;
pub use lease::Holder;
pub(super) use lease::{Lease, LeaseWatch};
pub(super) use state::FAILURE;
pub use state::{FailedStep, StepStanding, run_step};

/// A name within a comment of a generated file, which ends with its line.
fn comment(name: &str) -> String {
    name.replace(char::is_control, "\u{fffd}")
}

#[cfg(test)]
mod tests;
