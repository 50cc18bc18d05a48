//! What can go wrong between a server and a folder. Each message says where, what, and what to do.

use std::fmt::Display;
use std::path::Path;

use terms::Error as Complaint;

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure, with the place it happened and the way out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
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
    /// A request that cannot be met, or a file that is not what it should be.
    #[error(transparent)]
    Other(#[from] Complaint),
}

impl From<files::Error> for Error {
    fn from(error: files::Error) -> Self {
        Self::Other(error.into())
    }
}

impl terms::Fault for Error {
    fn is_usage(&self) -> bool {
        matches!(self, Self::Other(error) if error.is_usage())
    }

    fn key(&self) -> Option<&str> {
        match self {
            Self::Fetch { .. } => None,
            Self::Other(error) => error.key(),
        }
    }
}

impl Error {
    pub(crate) fn request(reason: impl Display, remedy: impl Display) -> Self {
        Complaint::request(reason, remedy).into()
    }

    pub(crate) fn setting(key: &'static str, reason: impl Display, remedy: impl Display) -> Self {
        Complaint::setting(key, reason, remedy).into()
    }

    pub(crate) fn file(file: &Path, reason: impl Display, remedy: impl Display) -> Self {
        Complaint::file(file, reason, remedy).into()
    }

    /// A complaint about a line of a member of an archive.
    pub(crate) fn line(member: &Path, line: usize, reason: impl Display, remedy: &str) -> Self {
        Complaint::line(member, line as u64, reason, remedy).into()
    }
}
