//! What can go wrong with a study: where, why, and what to do.

use std::path::{Path, PathBuf};

pub type Result<T> = std::result::Result<T, Error>;

/// Why a study could not be read, planned or run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no study is called `{name}`; there are {known}, or name a file that ends in .toml")]
    Unknown { name: String, known: String },
    #[error("{place}, `{key}`: {reason}; {remedy}")]
    Definition {
        /// The study or its file, with the line where it is known.
        place: String,
        key: String,
        reason: String,
        remedy: String,
    },
    /// Data that a study needs is missing or too little.
    #[error("{place}: {reason}; {remedy}")]
    Data { place: String, reason: String, remedy: String },
    /// A file that a step reads cannot be read.
    #[error("{path}: cannot read it ({reason}); {remedy}")]
    Unreadable { path: PathBuf, reason: String, remedy: &'static str },
    /// The sentences of a text could not be counted.
    #[error("{0}")]
    Text(String),
    #[error("{0}")]
    Failed(String),
    /// A step's result is not what its command prints.
    #[error(
        "{step}: its result does not parse ({reason}); run the step again: remove the folder {folder} or \
         run the study with fresh steps"
    )]
    Result { step: String, reason: String, folder: PathBuf },
    #[error(
        "{study} at {scale}: the laboratory has results with other settings, which cannot be averaged or compared with \
         these:{differing}\nname another laboratory (--lab DIR), or drop those results (--force): completed steps are kept, so \
         that the former command restores them at once"
    )]
    Settings { study: String, scale: String, differing: String },
    #[error("stopped; completed steps are kept, and the same command continues from here")]
    Stopped,
    #[error(transparent)]
    Files(#[from] files::Error),
    #[error(transparent)]
    Store(#[from] crate::store::Error),
}

impl terms::Fault for Error {
    fn is_usage(&self) -> bool {
        match self {
            Error::Unknown { .. } | Error::Definition { .. } | Error::Settings { .. } => true,
            Error::Files(error) => error.is_usage(),
            _ => false,
        }
    }

    fn key(&self) -> Option<&str> {
        match self {
            Error::Definition { key, .. } => Some(key),
            Error::Files(error) => error.key(),
            _ => None,
        }
    }
}

impl Error {
    pub(super) fn definition(
        place: impl Into<String>,
        key: impl Into<String>,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (place, key) = (place.into(), key.into());
        Error::Definition { place, key, reason: reason.into(), remedy: remedy.into() }
    }

    pub(super) fn data(
        place: impl Into<String>,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Error::Data { place: place.into(), reason: reason.into(), remedy: remedy.into() }
    }

    pub(super) fn unreadable(path: &Path, error: &std::io::Error) -> Self {
        Error::Unreadable {
            path: path.to_owned(),
            reason: error.to_string(),
            remedy: "put it there (`isogloss data list` says where data sets come from), or name \
                     another folder of data (`real.data`)",
        }
    }
}
