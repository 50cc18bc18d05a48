//! `isogloss hub`: models of the Hugging Face hub.

use clap::Subcommand;

use super::download;
use crate::failure::Failure;
use crate::outcome::Outcome;

/// Bring models from the Hugging Face hub.
#[derive(Subcommand)]
pub(crate) enum Hub {
    /// Fetch a model into the cache that the hub's clients share, and say where it lies.
    #[command(after_help = download::EXAMPLES)]
    Download(download::Download),
}

impl Hub {
    /// Runs the command to its end.
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        match self {
            Hub::Download(command) => command.run(),
        }
    }
}
