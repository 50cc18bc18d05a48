//! Static word vectors: a table of them, the files they come in, and how they are learned.
//!
//! [`WordVectors`] is the table. [`formats`] reads and writes it in the formats of the field. [`word2vec`] and [`glove`] learn vectors from
//! [`IndexedSentences`].

mod columns;
mod error;
pub mod formats;
pub mod glove;
mod random;
mod sentences;
mod state;
mod table;
mod watch;
pub mod word2vec;

pub use crate::error::{Error, Result};
pub use crate::sentences::{IndexedSentences, TokenUnit};
pub use crate::state::StateFile;
pub use crate::table::WordVectors;
pub use crate::watch::{EpochLoss, TrainingObserver, TrainingProgress};

/// More threads than this would only wait for each other.
const MOST_THREADS: usize = 256;

/// As many threads as asked for; every core for 0.
fn threads(asked: usize) -> usize {
    let all = || std::thread::available_parallelism().map_or(1, usize::from);
    if asked == 0 { all() } else { asked }.min(MOST_THREADS)
}
