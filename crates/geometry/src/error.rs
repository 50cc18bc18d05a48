//! What can go wrong, said so that a person can mend it: where, what, and what to do.

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure, with the place it happened and the way out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something that was given is not what it should be.
    #[error("{place}: {reason}; {remedy}")]
    Input {
        /// The file, and the line, row or word in it.
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
        key: Option<&'static str>,
    },
    /// An array could not be read or written, or holds what no vector does.
    #[error(transparent)]
    Arrays(#[from] arrays::Error),
    /// Text or vectors could not be read.
    #[error(transparent)]
    Text(#[from] text::Error),
    /// Word vectors could not be read, written or learned.
    #[error(transparent)]
    Vectors(#[from] vectors::Error),
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
        Error::Request { reason: reason.into(), key: Some(key) }
    }
}

impl terms::Fault for Error {
    fn is_usage(&self) -> bool {
        match self {
            Error::Input { .. } => false,
            Error::Request { .. } => true,
            Error::Arrays(error) => error.is_usage(),
            Error::Text(error) => error.is_usage(),
            Error::Vectors(error) => error.is_usage(),
            Error::Files(error) => error.is_usage(),
        }
    }

    fn key(&self) -> Option<&str> {
        match self {
            Error::Input { .. } => None,
            Error::Request { key, .. } => *key,
            Error::Arrays(error) => error.key(),
            Error::Text(error) => error.key(),
            Error::Vectors(error) => error.key(),
            Error::Files(error) => error.key(),
        }
    }
}
