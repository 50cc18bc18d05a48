//! `isogloss vectors`: train static word vectors, and convert files of them.

mod convert;
mod glove;
mod input;
mod shown;
mod word2vec;

pub use self::glove::Glove;
pub use self::input::{FormatFlag, Input};
pub use self::word2vec::Word2vec;

const EXAMPLES: &str = "Examples:
  isogloss vectors word2vec --text en=en.txt.zst --out en.vec
  isogloss vectors glove --text en=en.txt.zst --out en.glove.vec
  isogloss vectors convert en.vec --limit 50000 --out en.npy";

subcommands! {
    /// Train static word vectors, and convert files of them.
    #[command(after_help = EXAMPLES)]
    pub enum VectorsCommand {
        /// Train vectors by Word2Vec: skip-gram or CBOW with negative sampling.
        #[command(after_help = word2vec::EXAMPLES)]
        Word2vec(word2vec::Word2vec),

        /// Train vectors by GloVe, from co-occurrence counts.
        #[command(after_help = glove::EXAMPLES)]
        Glove(glove::Glove),

        /// Read vectors of any format, check them, and write them in another.
        #[command(after_help = convert::EXAMPLES)]
        Convert(convert::Convert),
    }
}
