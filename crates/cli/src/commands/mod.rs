//! The commands, one file each.

mod corpus;
mod texts;
mod vocab;

use clap::Subcommand;

use crate::failure::Failure;
use crate::outcome::Outcome;

/// What can be asked of the laboratory.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Learn vocabularies, and see what languages share of them.
    #[command(subcommand)]
    Vocab(vocab::Vocab),

    /// Tokenise text into the form that training reads.
    #[command(subcommand)]
    Corpus(corpus::Corpus),
}

impl Command {
    /// Runs the command to its end.
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        match self {
            Command::Vocab(command) => command.run(),
            Command::Corpus(command) => command.run(),
        }
    }
}
