//! Trained encoders, opened for use.
//!
//! - [`PretrainedModel`]: the encoder of a run's folder, of a snapshot (`RUN@STEP`) or of a Hugging Face
//!   checkpoint, with its weights, its vocabulary and the [`TokenIdMap`] between the two.
//! - [`ModelLocation`]: how models are named.
//! - [`SavedStates`]: hidden states that were computed before, in place of a model.
//! - [`states`]: the one loop from sentences to hidden states, in batches that fill a CPU or a GPU.
//! - [`inspect`]: what a file or folder holds.
//! - [`masked`]: what a model predicts at masked positions; sentences with masked tokens.
//! - [`neurons`]: language-specific neurons (LAPE), and a model without them.
//! - [`parallel`]: parallel text.
//! - [`paraphrases`]: different sentences of one language with the same translation.
//! - [`row_filter`]: parallel text that encoders with different tokenizers all read whole.
//! - [`sentences`]: files of sentences, and the vector of every sentence at every layer.
//! - [`words`]: the vectors of words: rows of the embedding table, and means over contexts.
//! - [`contexts`]: the vectors of linked words in translated sentences.
//!
//! ```
//! use models::{PretrainedModel, states};
//! use tensor::Device;
//!
//! let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../hub/tests/fixtures/bert");
//! let mut model = PretrainedModel::open(folder.as_ref(), &Device::cpu(1)?)?;
//! let language = model.vocabulary.languages().next().unwrap().to_owned();
//! let mut reader = model.reader(&language)?;
//! let ids = reader.sentence("A sentence.").ids;
//! let mut vectors = Vec::new(); // 1 x dim
//! states::for_each(model.parts(), reader.language(), [Ok::<_, models::Error>(ids)], |states| {
//!     states::Pooling::Mean.push(states, 1, &mut vectors);
//!     Ok(())
//! })?;
//! assert_eq!(vectors.len(), model.encoder.config().dim);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod contexts;
mod error;
pub mod inspect;
mod location;
pub mod masked;
pub mod neurons;
pub mod parallel;
pub mod paraphrases;
mod pooling;
mod pretrained;
pub mod row_filter;
mod saved;
pub mod sentences;
pub mod states;
mod token_ids;
pub mod words;

pub use crate::error::{Error, OpenError, Result};
pub use crate::location::{ModelLocation, SNAPSHOT_FOLDER, snapshot_file, snapshots};
pub use crate::pooling::SentenceVectors;
pub use crate::pretrained::{
    EncoderParts, MODEL_FILE, PretrainedModel, VOCABULARY_FOLDER, architecture,
};
pub use crate::saved::{SavedStates, StateReader};
pub use crate::token_ids::TokenIdMap;
