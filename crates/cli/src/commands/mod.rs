//! The commands, one file each.

use clap::Subcommand;

use crate::failure::Failure;
use crate::outcome::Outcome;

/// What can be asked of the laboratory.
#[derive(Subcommand)]
pub(crate) enum Command {}

impl Command {
    /// Runs the command to its end.
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        match self {}
    }
}
