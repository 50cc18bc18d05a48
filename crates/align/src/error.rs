//! What can go wrong with word alignment. Each message says where, what, and what to do about it.

use std::path::PathBuf;

use terms::Fault;

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure, with the place it happened and the way out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A configuration key whose value is out of range.
    #[error("{key} is {value}; {remedy}")]
    Setting {
        /// The key.
        key: &'static str,
        /// What it is.
        value: f64,
        /// What it may be.
        remedy: &'static str,
    },

    /// A request that cannot be met.
    #[error("{reason}; {remedy}")]
    Request {
        /// What does not fit.
        reason: String,
        /// What to ask for instead.
        remedy: String,
    },

    /// Text that cannot be read, or is not parallel text.
    #[error(transparent)]
    Text(#[from] text::Error),

    /// A file that cannot be written.
    #[error(transparent)]
    Files(#[from] files::Error),

    /// An encoder that cannot be opened, or text that it cannot read.
    #[error(transparent)]
    Encoder(#[from] models::Error),

    /// A file that is not a saved model, or no longer whole.
    #[error("{path}: {reason}; train and save the model again")]
    Model {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl Fault for Error {
    fn is_usage(&self) -> bool {
        match self {
            Error::Setting { .. } | Error::Request { .. } => true,
            Error::Text(error) => error.is_usage(),
            Error::Files(error) => error.is_usage(),
            Error::Encoder(error) => error.is_usage(),
            Error::Model { .. } => false,
        }
    }

    fn key(&self) -> Option<&str> {
        match self {
            Error::Setting { key, .. } => Some(key),
            Error::Text(error) => error.key(),
            Error::Files(error) => error.key(),
            Error::Encoder(error) => error.key(),
            Error::Request { .. } | Error::Model { .. } => None,
        }
    }
}

impl Error {
    /// A line of a file that is not what it should be.
    pub(crate) fn line(file: &str, line: u64, reason: String, remedy: &'static str) -> Self {
        text::Error::Line { file: file.to_owned(), line, reason, remedy }.into()
    }

    /// A file that is not what it should be.
    pub(crate) fn file(file: &str, reason: String, remedy: &'static str) -> Self {
        text::Error::File { file: file.to_owned(), reason, remedy }.into()
    }
}
