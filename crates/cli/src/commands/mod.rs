//! The commands, one file each.

mod bench;
mod world;

use clap::Subcommand;

use crate::failure::Failure;
use crate::outcome::Outcome;

/// What can be asked of the laboratory.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Measure the speed of the engine on this machine.
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Invent languages over one shared world of meaning, with the truth known.
    #[command(subcommand)]
    World(world::World),
}

impl Command {
    /// Runs the command to its end.
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        match self {
            Command::Bench(bench) => bench.run(),
            Command::World(world) => world.run(),
        }
    }
}
