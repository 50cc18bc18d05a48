//! `isogloss align`: orthogonal maps between spaces of vectors.

mod contexts;
mod many;
mod words;
mod words_report;

pub use self::contexts::Contexts;
pub use self::many::Many;
pub use self::words::{Init, Retrieval, Words};

const EXAMPLES: &str = "Examples:
  isogloss align words --source fr.vec --target en.vec --init unsupervised --out fr-in-en.vec
  isogloss align contexts --model run --parallel fr=fr.txt --parallel en=en.txt \\
    --links links --out maps";

subcommands! {
    /// Learn orthogonal maps between spaces of vectors, and see what they recover.
    #[command(after_help = EXAMPLES)]
    pub enum Align {
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
}
