//! What can go wrong between a server and a folder. Each message says where, what, and what to do.

use std::path::{Path, PathBuf};

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure, with the place it happened and the way out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A request that cannot be met whatever the network and the files hold.
    #[error("{reason}; {remedy}")]
    Request {
        /// What does not fit.
        reason: String,
        /// What to ask for instead.
        remedy: String,
        /// The configuration key to change, where it is one.
        key: Option<&'static str>,
    },

    /// A file is not what it should be.
    #[error("{file}: {reason}; {remedy}")]
    File {
        /// The file, or the file and the member of it.
        file: String,
        /// What is wrong with it.
        reason: String,
        /// What to do about it.
        remedy: String,
    },

    /// Something could not be fetched.
    #[error("cannot fetch {url}: {reason}\n{remedy}")]
    Fetch {
        /// What was asked for.
        url: String,
        /// Why it did not come.
        reason: String,
        /// What to do about it.
        remedy: String,
    },

    /// The operating system refused to read or write.
    #[error(transparent)]
    Files(#[from] files::Error),
}

impl terms::Fault for Error {
    fn is_usage(&self) -> bool {
        match self {
            Error::Request { .. } => true,
            Error::Files(error) => error.is_usage(),
            Error::File { .. } | Error::Fetch { .. } => false,
        }
    }

    fn key(&self) -> Option<&str> {
        match self {
            Error::Request { key, .. } => *key,
            Error::Files(error) => error.key(),
            _ => None,
        }
    }
}

impl Error {
    /// A complaint about what was asked for.
    pub(crate) fn request(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Error::Request { reason: reason.into(), remedy: remedy.into(), key: None }
    }

    /// A complaint about the value of a configuration key.
    pub(crate) fn setting(
        key: &'static str,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Error::Request { reason: reason.into(), remedy: remedy.into(), key: Some(key) }
    }

    /// A complaint about a file.
    pub(crate) fn file(file: &Path, reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        let file = file.display().to_string();
        Error::File { file, reason: reason.into(), remedy: remedy.into() }
    }

    /// A complaint about a line of a member of an archive.
    pub(crate) fn line(
        member: &Path,
        line: usize,
        reason: impl Into<String>,
        remedy: &str,
    ) -> Self {
        let file = PathBuf::from(format!("{}:{line}", member.display()));
        Error::file(&file, reason, remedy)
    }
}
