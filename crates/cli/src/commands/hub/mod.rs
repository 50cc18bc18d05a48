//! `isogloss hub`: Hugging Face models, in and out.

mod download;
mod export;
mod import;

use clap::Subcommand;

pub(crate) use self::import::in_words as checkpoint_in_words;

use crate::failure::Failure;
use crate::outcome::Outcome;

const EXAMPLES: &str = "Examples:
  isogloss hub download google-bert/bert-base-multilingual-cased
  isogloss hub import bert-base-multilingual-cased --out mbert
  isogloss hub export --model run --out run-hf";

/// What can be done with Hugging Face models.
#[derive(Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Hub {
    /// Fetch a model into the cache that the hub's clients share, and say where it lies.
    #[command(after_help = download::EXAMPLES)]
    Download(download::Download),

    /// Make the folder of a run from a Hugging Face folder.
    Import(import::Import),

    /// Write a run as a folder that `transformers` loads with no code of its own.
    Export(export::Export),
}

impl Hub {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        match self {
            Hub::Download(command) => command.run(),
            Hub::Import(command) => command.run(),
            Hub::Export(command) => command.run(),
        }
    }
}
