//! `isogloss hub`: models of Hugging Face's, in and out.

mod export;
mod import;

use clap::Subcommand;

use crate::failure::Failure;
use crate::outcome::Outcome;

/// What can be done with models of Hugging Face's.
#[derive(Subcommand)]
pub(crate) enum Hub {
    /// Look into a folder of Hugging Face's, and make a folder of ours of it.
    Import(import::Import),

    /// Write a run as a folder that `transformers` loads with no code of its own.
    Export(export::Export),
}

impl Hub {
    /// Runs the command to its end.
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        match self {
            Hub::Import(command) => command.run(),
            Hub::Export(command) => command.run(),
        }
    }
}
