//! What can go wrong with word alignment, said so that a person can mend it.

use std::path::PathBuf;

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure, with the place it happened and the way out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting that makes no sense.
    #[error("{name} is {value}; {remedy}")]
    Setting {
        /// Which setting.
        name: &'static str,
        /// What it is.
        value: f64,
        /// What it may be.
        remedy: &'static str,
    },

    /// Text that cannot be read, or is not parallel text.
    #[error(transparent)]
    Text(#[from] text::Error),

    /// A file that cannot be written.
    #[error(transparent)]
    Files(#[from] files::Error),

    /// A file that is not a saved model, or no longer whole.
    #[error("{path}: {reason}; save the model anew with `isogloss word-align --save`")]
    Model {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
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
