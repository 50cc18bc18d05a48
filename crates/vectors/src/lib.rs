//! Static word vectors: a table of them, the files they come in, and how they are learned.
//!
//! [`Vectors`] is the table. [`files`] reads and writes it in the formats of the field; [`npy`] does
//! the same for plain arrays. [`word2vec`] and [`glove`] learn vectors from
//! [`Sentences`].

mod columns;
mod error;
pub mod files;
pub mod glove;
pub mod npy;
mod random;
mod sentences;
mod state;
mod table;
mod watch;
pub mod word2vec;

pub use crate::error::{Error, Result};
pub use crate::sentences::{Sentences, Tokens};
pub use crate::state::Keep;
pub use crate::table::Vectors;
pub use crate::watch::{Epoch, Observer, Progress};

/// As many threads as asked for; every core for 0.
fn threads(asked: usize) -> usize {
    match asked {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        asked => asked,
    }
}
