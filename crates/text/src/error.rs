//! What can go wrong with text. Each message says where, what, and what to do about it.

use std::io;
use std::path::Path;

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure, with the place it happened and the way out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A line of a file is not what it should be.
    #[error("{file}:{line}: {reason}; {remedy}")]
    Line {
        /// The file's name, or `standard input`.
        file: String,
        /// The line's number, from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
        /// What to do about it.
        remedy: &'static str,
    },

    /// A file as a whole is not what it should be.
    #[error("{file}: {reason}; {remedy}")]
    File {
        /// The file's or folder's name.
        file: String,
        /// What is wrong with it.
        reason: String,
        /// What to do about it.
        remedy: &'static str,
    },

    /// The operating system refused to read or write.
    #[error(transparent)]
    Files(#[from] files::Error),

    /// A compressed file that cannot be decompressed to its end.
    #[error(
        "{file}: the compressed file is cut short or damaged (download or make it again, and test it \
         with `gzip -t` or `zstd -t`)"
    )]
    Damaged {
        /// The file's name, or `standard input`.
        file: String,
        /// The decompressor's message.
        source: io::Error,
    },

    /// A compressed file that holds more than one of its size may.
    #[error("{file}: the compressed file holds too much")]
    TooLarge {
        /// The file's name, or `standard input`.
        file: String,
        /// The limit, and how to raise it.
        source: io::Error,
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
}

impl terms::Fault for Error {
    fn is_usage(&self) -> bool {
        match self {
            Error::Request { .. } => true,
            Error::Files(error) => error.is_usage(),
            _ => false,
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
    /// A complaint about a line.
    pub fn line(file: &Path, line: u64, reason: impl Into<String>, remedy: &'static str) -> Self {
        Error::Line { file: file.display().to_string(), line, reason: reason.into(), remedy }
    }

    /// A complaint about a whole file.
    pub fn file(file: &Path, reason: impl Into<String>, remedy: &'static str) -> Self {
        Error::File { file: file.display().to_string(), reason: reason.into(), remedy }
    }

    /// A complaint about what was asked for.
    pub fn request(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Error::Request { reason: reason.into(), remedy: remedy.into(), key: None }
    }

    /// A complaint about the value of a configuration key.
    pub fn setting(
        key: &'static str,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Error::Request { reason: reason.into(), remedy: remedy.into(), key: Some(key) }
    }
}
