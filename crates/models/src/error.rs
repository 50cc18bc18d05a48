//! What can go wrong with a model or with the text that it reads: where, what, and what to do about it.

use std::path::PathBuf;

use encoder::ConfigError;
use encoder::archive::ArchiveError;
use terms::Fault;

pub use terms::{Error, Result};

/// Why a model could not be opened or saved.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no model there.
    #[error(
        "{0} holds no model; name the folder of a pretraining run (RUN@STEP for a snapshot that it saved), a Hugging Face \
         folder with its config.json, or a model that `isogloss hub download` has brought, by its name at the hub"
    )]
    Nothing(PathBuf),
    /// The run has no snapshot of that step.
    #[error("{folder}: there is no snapshot of step {step}; {steps}", folder = folder.display())]
    NoSnapshot {
        /// The folder of the run.
        folder: PathBuf,
        /// The step that was asked for.
        step: u64,
        /// The steps that there are, in words.
        steps: String,
    },
    /// There are states of some text alone, and a model is needed.
    #[error(
        "{0} holds states of some text and no model; it serves `retrieve`, `cka`, `similarity`, `neighbours`, `map`, \
         `language-id`, `word-align` and `mine`"
    )]
    StatesAlone(PathBuf),
    /// The weights could not be read.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The vocabulary could not be read, or is not the one that the model was trained with.
    #[error(transparent)]
    Text(#[from] text::Error),
    /// The folder could not be written.
    #[error(transparent)]
    Files(#[from] files::Error),
    /// The encoder's configuration makes no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl Fault for OpenError {}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Self {
        Error::of(error)
    }
}
