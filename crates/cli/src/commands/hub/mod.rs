//! `isogloss hub`: models of Hugging Face's, in and out.

mod download;
mod export;
mod import;

use clap::Subcommand;

use crate::failure::Failure;
use crate::outcome::Outcome;

const EXAMPLES: &str = "Examples:
  isogloss hub download google-bert/bert-base-multilingual-cased
  isogloss hub import bert-base-multilingual-cased
  isogloss hub export run --out run-hf";

/// What can be done with models of Hugging Face's.
#[derive(Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Hub {
    /// Fetch a model into the cache that the hub's clients share, and say where it lies.
    #[command(after_help = download::EXAMPLES)]
    Download(download::Download),

    /// Look into a folder of Hugging Face's, and make a folder of ours of it.
    Import(import::Import),

    /// Write a run as a folder that `transformers` loads with no code of its own.
    Export(export::Export),
}

impl Hub {
    /// Runs the command to its end.
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        match self {
            Hub::Download(command) => command.run(),
            Hub::Import(command) => command.run(),
            Hub::Export(command) => command.run(),
        }
    }
}
