//! What can go wrong, said so that a person can mend it.

use std::path::{Path, PathBuf};

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure, with its place and the way out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A line of a labelled file is not what it should be.
    #[error("{file}:{line}: {reason}; {remedy}")]
    Line {
        /// The file.
        file: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        reason: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// A file as a whole is not what it should be.
    #[error("{file}: {reason}; {remedy}")]
    File {
        /// The file.
        file: PathBuf,
        /// What is wrong.
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
    /// A file could not be read or put in its place.
    #[error(transparent)]
    Files(#[from] files::Error),
    /// Text or vocabulary.
    #[error(transparent)]
    Text(#[from] text::Error),
    /// Static vectors, maps and shifts.
    #[error(transparent)]
    Vectors(#[from] vectors::Error),
    /// A pretrained model could not be opened.
    #[error(transparent)]
    Open(#[from] train::OpenError),
    /// Training failed.
    #[error(transparent)]
    Train(#[from] train::TrainError),
    /// Settings make no sense.
    #[error(transparent)]
    Config(#[from] encoder::ConfigError),
    /// Weights could not be written or read.
    #[error(transparent)]
    Archive(#[from] encoder::archive::ArchiveError),
}

impl Error {
    pub(crate) fn line(
        file: &Path,
        line: usize,
        reason: impl Into<String>,
        remedy: &'static str,
    ) -> Self {
        Error::Line { file: file.to_owned(), line, reason: reason.into(), remedy }
    }

    pub(crate) fn file(file: &Path, reason: impl Into<String>, remedy: &'static str) -> Self {
        Error::File { file: file.to_owned(), reason: reason.into(), remedy }
    }

    pub(crate) fn request(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Error::Request { reason: reason.into(), remedy: remedy.into() }
    }
}
