//! What can go wrong, said so that it can be put right.

use terms::Fault;

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The model or its text could not be read.
    #[error(transparent)]
    Input(#[from] terms::Error),
    /// The file of mean vectors could not be written or read.
    #[error(transparent)]
    Archive(#[from] encoder::archive::ArchiveError),
    /// What is done of a sweep could not be kept.
    #[error(transparent)]
    Files(#[from] files::Error),
    /// A sentence is empty, or longer than the model reads.
    #[error("the sentence {0}")]
    Sentence(String),
    /// What was asked for makes no sense for this model or these files.
    #[error("{0}")]
    Request(String),
}

impl Error {
    pub(crate) fn request(message: impl Into<String>) -> Self {
        Self::Request(message.into())
    }
}

impl From<models::OpenError> for Error {
    fn from(error: models::OpenError) -> Self {
        Error::Input(error.into())
    }
}

impl Fault for Error {
    fn is_usage(&self) -> bool {
        match self {
            Error::Input(error) => error.is_usage(),
            Error::Archive(_) | Error::Files(_) => false,
            Error::Sentence(_) | Error::Request(_) => true,
        }
    }

    fn key(&self) -> Option<&str> {
        match self {
            Error::Input(error) => error.key(),
            _ => None,
        }
    }
}
