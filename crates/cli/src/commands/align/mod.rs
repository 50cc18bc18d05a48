//! `isogloss align`: orthogonal maps between spaces of vectors.

mod contexts;
mod many;
mod words;
mod words_report;

use clap::Subcommand;

use crate::failure::Failure;
use crate::outcome::Outcome;

const EXAMPLES: &str = "Examples:
  isogloss align words --source fr.vec --target en.vec --init unsupervised --out fr-in-en.vec
  isogloss align contexts --model run --parallel fr=fr.txt --parallel en=en.txt \\
    --links links --out maps";

/// Learn orthogonal maps between spaces of vectors, and see what they recover.
#[derive(Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Align {
    /// Map the words of one language onto those of another, and look translations up.
    #[command(after_help = words::EXAMPLES)]
    Words(Box<words::Words>),

    /// Map the words of many languages into one space, from dictionaries of some pairs, and look up all pairs.
    #[command(after_help = many::EXAMPLES)]
    Many(Box<many::Many>),

    /// Learn a map for each layer from linked words of translated sentences.
    #[command(after_help = contexts::EXAMPLES)]
    Contexts(Box<contexts::Contexts>),
}

impl Align {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        match self {
            Align::Words(words) => words.run(),
            Align::Many(many) => many.run(),
            Align::Contexts(contexts) => contexts.run(),
        }
    }
}
