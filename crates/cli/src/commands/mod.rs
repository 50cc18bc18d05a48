//! The commands, one file each.

mod bench;

use clap::Subcommand;

use crate::failure::Failure;
use crate::outcome::Outcome;

/// What can be asked of the laboratory.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Measure the speed of the engine on this machine.
    #[command(subcommand)]
    Bench(bench::Bench),
}

impl Command {
    /// Runs the command to its end.
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        match self {
            Command::Bench(bench) => bench.run(),
        }
    }
}
