//! The commands, one file each.

mod world;

use clap::Subcommand;

use crate::failure::Failure;
use crate::outcome::Outcome;

/// What can be asked of the laboratory.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Invent languages over one shared world of meaning, with the truth known.
    #[command(subcommand)]
    World(world::World),
}

impl Command {
    /// Runs the command to its end.
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        match self {
            Command::World(world) => world.run(),
        }
    }
}
