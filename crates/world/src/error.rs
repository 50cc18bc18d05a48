//! Errors, each with its cause and a remedy.

use std::io;
use std::path::{Path, PathBuf};

use terms::Fault;

/// Why no world came out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A key of the configuration has a value that makes no sense.
    #[error("{key}: {reason}; {remedy}")]
    Config {
        /// The key, dotted as in `language.1.anchors`.
        key: String,
        /// What is wrong with its value.
        reason: String,
        /// What to write instead.
        remedy: String,
    },
    /// The configuration is not TOML, or holds an unknown key or a value of the wrong type.
    #[error("{origin}: {message}")]
    Toml {
        /// The file or flag it came from.
        origin: String,
        /// The parser's words, with line and column.
        message: String,
    },
    /// The output folder holds a world already.
    #[error("{0} already holds a world; name another folder, or set `force` to replace it")]
    Exists(PathBuf),
    /// The output folder holds something that must not be overwritten.
    #[error("{path} {reason}; {remedy}")]
    Occupied {
        /// The folder.
        path: PathBuf,
        /// What stands there.
        reason: &'static str,
        /// What to do about it.
        remedy: &'static str,
    },
    /// So small a world cannot say so many different things.
    #[error(
        "only {found} different {what} found where {key} asks for {wanted}; \
         lower {key}, or raise meaning.lemmas"
    )]
    Exhausted {
        /// What was being collected.
        what: &'static str,
        /// The key that sets how many.
        key: &'static str,
        /// How many were asked for.
        wanted: usize,
        /// How many there were before the search was given up.
        found: usize,
    },
    /// The folder holds no world.
    #[error(
        "{folder} holds no world ({reason}); name a folder that `isogloss world generate` wrote"
    )]
    NoWorld {
        /// The folder.
        folder: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A file or folder could not be put in its place.
    #[error(transparent)]
    Files(#[from] files::Error),
    /// A file or folder could not be read or written.
    #[error("{path}: cannot {action}")]
    Io {
        /// What was being done.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl Fault for Error {
    fn is_usage(&self) -> bool {
        match self {
            Error::Files(error) => error.is_usage(),
            other => !matches!(other, Error::Io { .. }),
        }
    }

    fn key(&self) -> Option<&str> {
        match self {
            Error::Config { key, .. } => Some(key),
            Error::Exhausted { key, .. } => Some(key),
            Error::Exists(_) => Some("force"),
            _ => None,
        }
    }
}

impl Error {
    /// A refused key.
    pub(crate) fn config(
        key: impl Into<String>,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Error::Config { key: key.into(), reason: reason.into(), remedy: remedy.into() }
    }

    /// Wraps an error of the file system with the path it happened on.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Error::Io { action, path, source }
    }
}
