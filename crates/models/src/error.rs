//! What can go wrong with a model or with the text that it reads: where, what, and what to do about it.

use std::path::PathBuf;

use encoder::ConfigError;
use encoder::archive::ArchiveError;
use terms::Fault;

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

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
    /// The model sees only what came before, and something else is needed.
    #[error(
        "{0} is a decoder, and tasks are not learned on decoders yet: a head would read the first token, which sees nothing; \
         take an encoder, or compare its states with `encode`, `retrieve` or `similarity`"
    )]
    Decoder(PathBuf),
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

/// Why there are no vectors.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file, or a word or line of it, is not what it should be.
    #[error("{place}: {reason}; {remedy}")]
    Input {
        /// The file, and the line or word in it.
        place: String,
        /// What is wrong there.
        reason: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// The request makes no sense, whatever the files hold.
    #[error("{reason}")]
    Request {
        /// What is wrong, and what to ask for instead.
        reason: String,
        /// The configuration key to change.
        key: &'static str,
    },
    /// The model could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Text could not be read.
    #[error(transparent)]
    Text(#[from] text::Error),
    /// Word vectors could not be read or written.
    #[error(transparent)]
    Vectors(#[from] vectors::Error),
    /// An array could not be read.
    #[error(transparent)]
    Arrays(#[from] arrays::Error),
    /// A file could not be read or written.
    #[error(transparent)]
    Files(#[from] files::Error),
}

impl Error {
    pub(crate) fn input(
        place: impl std::fmt::Display,
        reason: impl Into<String>,
        remedy: &'static str,
    ) -> Self {
        Error::Input { place: place.to_string(), reason: reason.into(), remedy }
    }

    pub(crate) fn request(key: &'static str, reason: impl Into<String>) -> Self {
        Error::Request { reason: reason.into(), key }
    }
}

impl Fault for Error {
    fn is_usage(&self) -> bool {
        match self {
            Error::Input { .. } => false,
            Error::Request { .. } => true,
            Error::Open(error) => error.is_usage(),
            Error::Text(error) => error.is_usage(),
            Error::Vectors(error) => error.is_usage(),
            Error::Arrays(error) => error.is_usage(),
            Error::Files(error) => error.is_usage(),
        }
    }

    fn key(&self) -> Option<&str> {
        match self {
            Error::Input { .. } => None,
            Error::Request { key, .. } => Some(key),
            Error::Open(error) => error.key(),
            Error::Text(error) => error.key(),
            Error::Vectors(error) => error.key(),
            Error::Arrays(error) => error.key(),
            Error::Files(error) => error.key(),
        }
    }
}
