//! Static word vectors: a table of them, the files they come in, and how they are learned.
//!
//! [`Vectors`] is the table. [`files`] reads and writes it in the formats of the field.
//! [`word2vec`] and [`glove`] learn vectors from
//! [`Sentences`].

mod columns;
pub mod files;
pub mod glove;
mod random;
mod sentences;
mod state;
mod table;
mod watch;
pub mod word2vec;

pub use crate::sentences::{Sentences, Tokens};
pub use crate::state::Keep;
pub use crate::table::Vectors;
pub use crate::watch::{Epoch, Observer, Progress};
pub use text::{Error, Result};

/// More threads than this would only wait for each other.
const MOST_THREADS: usize = 256;

/// As many threads as asked for; every core for 0.
fn threads(asked: usize) -> usize {
    let all = || std::thread::available_parallelism().map_or(1, usize::from);
    if asked == 0 { all() } else { asked }.min(MOST_THREADS)
}
