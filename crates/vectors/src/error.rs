//! What can go wrong with vectors, said so that a person can mend it: where, what, and what to do.

use std::path::Path;

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure, with the place it happened and the way out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A line (or, in a binary file, a row) is not what it should be.
    #[error("{file}:{line}: {reason}; {remedy}")]
    Line {
        /// The file's name.
        file: String,
        /// The number of the line or row, from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
        /// What to do about it.
        remedy: &'static str,
    },

    /// A file as a whole is not what it should be.
    #[error("{file}: {reason}; {remedy}")]
    File {
        /// The file's name.
        file: String,
        /// What is wrong with it.
        reason: String,
        /// What to do about it.
        remedy: &'static str,
    },

    /// A request that cannot be met whatever the files hold.
    #[error("{reason}; {remedy}")]
    Request {
        /// What does not fit.
        reason: String,
        /// What to ask for instead.
        remedy: String,
    },

    /// Something is wrong with the text that vectors are learned from.
    #[error(transparent)]
    Text(#[from] text::Error),

    /// The operating system refused, or something stands in the way.
    #[error(transparent)]
    Files(#[from] files::Error),
}

impl Error {
    pub(crate) fn line(
        file: &Path,
        line: u64,
        reason: impl Into<String>,
        remedy: &'static str,
    ) -> Self {
        Error::Line { file: file.display().to_string(), line, reason: reason.into(), remedy }
    }

    pub(crate) fn file(file: &Path, reason: impl Into<String>, remedy: &'static str) -> Self {
        Error::File { file: file.display().to_string(), reason: reason.into(), remedy }
    }

    pub(crate) fn request(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Error::Request { reason: reason.into(), remedy: remedy.into() }
    }
}
