//! Static word vectors: the table, the file formats of the field, and training by Word2Vec and GloVe.
//!
//! [`WordVectors`] is the table. [`formats`] reads and writes it as Word2Vec's text and binary,
//! fastText's `.vec`, GloVe's text and NumPy arrays. [`word2vec`] and [`glove`] train vectors on
//! [`IndexedSentences`], with the same bits on any number of threads.
//!
//! ```
//! use vectors::word2vec::{self, Word2VecConfig};
//! use vectors::{IndexedSentences, formats};
//!
//! let text = ["the cat sees the dog", "the dog sees the cat"];
//! let sentences = IndexedSentences::of_words(text.map(|line| line.split(' ')), 1)?;
//! let config = Word2VecConfig { dim: 8, epochs: 2, subsample: Some(0.0), ..Word2VecConfig::default() };
//! let trained = word2vec::train(&sentences, &config, None, &mut ())?.expect("nobody asked to stop");
//! assert_eq!((trained.vectors.len(), trained.vectors.dim()), (4, 8));
//!
//! let folder = tempfile::tempdir().unwrap();
//! let file = folder.path().join("cats.vec");
//! formats::write(&file, &trained.vectors, None)?;
//! assert_eq!(formats::read(&file, Default::default())?, trained.vectors);
//! # Ok::<(), vectors::Error>(())
//! ```

mod columns;
pub mod formats;
pub mod glove;
mod random;
mod result;
mod sentences;
mod state;
mod table;
mod watch;
pub mod word2vec;

pub use crate::result::{ConversionResult, TrainedVectors, TrainingResult};
pub use crate::sentences::{IndexedSentences, TokenUnit};
pub use crate::state::StateFile;
pub use crate::table::WordVectors;
pub use crate::watch::{EpochLoss, TrainingObserver, TrainingProgress};
pub use terms::{Error, Result};

/// More threads than this would only wait for each other.
const MOST_THREADS: usize = 256;

/// As many threads as asked for; every core for 0.
fn threads(asked: usize) -> usize {
    let all = || std::thread::available_parallelism().map_or(1, usize::from);
    if asked == 0 { all() } else { asked }.min(MOST_THREADS)
}
