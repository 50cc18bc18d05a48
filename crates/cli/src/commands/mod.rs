//! The commands, one file each.

mod bench;
mod corpus;
mod pretrain;
mod shift;
mod texts;
mod vocab;
mod word_align;
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

    /// Learn vocabularies, and see what languages share of them.
    #[command(subcommand)]
    Vocab(vocab::Vocab),

    /// Tokenise text into the form that training reads.
    #[command(subcommand)]
    Corpus(corpus::Corpus),

    /// Pretrain an encoder under a condition of the papers.
    Pretrain(pretrain::Pretrain),

    /// Find out which words of parallel text stand for one another.
    WordAlign(word_align::WordAlign),

    /// See a language inside the vectors, and shift them to another.
    #[command(subcommand)]
    Shift(shift::Shift),

    /// Measure the speed of the engine on this machine.
    #[command(subcommand)]
    Bench(bench::Bench),
}

impl Command {
    /// Runs the command to its end.
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        match self {
            Command::World(command) => command.run(),
            Command::Vocab(command) => command.run(),
            Command::Corpus(command) => command.run(),
            Command::Pretrain(command) => command.run(),
            Command::WordAlign(command) => command.run(),
            Command::Shift(command) => command.run(),
            Command::Bench(command) => command.run(),
        }
    }
}
