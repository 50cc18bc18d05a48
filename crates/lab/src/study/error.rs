//! What can go wrong with a study, said so that a person can mend it.

use std::path::{Path, PathBuf};

/// Results of studies.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a study could not be read, planned or run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No study has that name.
    #[error("no study is called `{name}`; there are {known}, or name a file that ends in .toml")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// A study's file makes no sense.
    #[error("{place}: {reason}; {remedy}")]
    File {
        /// The file, and the key where it is known.
        place: String,
        /// What is wrong.
        reason: String,
        /// What to do.
        remedy: String,
    },
    /// A file that a step reads is not there.
    #[error("{path}: cannot read it ({reason}); {remedy}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: String,
        /// What to do.
        remedy: &'static str,
    },
    /// Text cannot be counted.
    #[error("{0}")]
    Text(String),
    /// Steps failed; the others were done.
    #[error("{0}")]
    Failed(String),
    /// A step printed something that is not its result.
    #[error(
        "{step}: its result has no `{key}`; remove the folder {folder} and run the study again"
    )]
    Result {
        /// The step.
        step: String,
        /// What was looked for.
        key: String,
        /// The step's folder.
        folder: PathBuf,
    },
    /// Somebody asked to stop.
    #[error("stopped; what is done is kept, and the same command goes on from here")]
    Stopped,
    /// A file or folder could not be made.
    #[error(transparent)]
    Files(#[from] files::Error),
    /// The store refused.
    #[error(transparent)]
    Store(#[from] crate::store::Error),
}

impl Error {
    pub(super) fn file(
        place: impl Into<String>,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Error::File { place: place.into(), reason: reason.into(), remedy: remedy.into() }
    }

    pub(super) fn unreadable(path: &Path, error: &std::io::Error) -> Self {
        Error::Unreadable {
            path: path.to_owned(),
            reason: error.to_string(),
            remedy: "put it there (`isogloss data list` says where data sets come from), or name \
                     another folder with --data",
        }
    }
}
