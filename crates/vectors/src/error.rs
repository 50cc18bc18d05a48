//! What can go wrong with vectors. Each message says where, what, and what to do about it.

use std::path::Path;

use terms::Fault;

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure, with its place and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of vectors, or a line of one, is not what it should be.
    #[error("{place}: {reason}; {remedy}")]
    Format {
        /// The file, and the line in it.
        place: String,
        /// What is wrong there.
        reason: String,
        /// What to do about it.
        remedy: String,
    },

    /// A request that cannot be met whatever the files hold.
    #[error("{reason}; {remedy}")]
    Request {
        /// What does not fit.
        reason: String,
        /// What to ask for instead.
        remedy: String,
        /// The configuration key to change, where it is one.
        key: Option<&'static str>,
    },

    /// The training text could not be read.
    #[error(transparent)]
    Text(#[from] text::Error),

    /// An array could not be read or written.
    #[error(transparent)]
    Arrays(#[from] arrays::Error),

    /// The operating system refused to read or write.
    #[error(transparent)]
    Files(#[from] files::Error),
}

impl Fault for Error {
    fn is_usage(&self) -> bool {
        match self {
            Error::Format { .. } => false,
            Error::Request { .. } => true,
            Error::Text(error) => error.is_usage(),
            Error::Arrays(error) => error.is_usage(),
            Error::Files(error) => error.is_usage(),
        }
    }

    fn key(&self) -> Option<&str> {
        match self {
            Error::Format { .. } => None,
            Error::Request { key, .. } => *key,
            Error::Text(error) => error.key(),
            Error::Arrays(error) => error.key(),
            Error::Files(error) => error.key(),
        }
    }
}

impl Error {
    pub(crate) fn line(
        file: &Path,
        line: u64,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let place = format!("{}:{line}", text::display_name(file));
        Error::Format { place, reason: reason.into(), remedy: remedy.into() }
    }

    pub(crate) fn file(file: &Path, reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        let place = text::display_name(file);
        Error::Format { place, reason: reason.into(), remedy: remedy.into() }
    }

    pub(crate) fn request(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Error::Request { reason: reason.into(), remedy: remedy.into(), key: None }
    }

    /// The value of a configuration key.
    pub(crate) fn setting(
        key: &'static str,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Error::Request { reason: reason.into(), remedy: remedy.into(), key: Some(key) }
    }
}
