//! What can go wrong with an array: where, what, and what to do about it.

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an array could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file is not what it should be.
    #[error("{place}: {reason}; {remedy}")]
    Input {
        /// The file, and the layer or row in it.
        place: String,
        /// What is wrong there.
        reason: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// A file could not be read or written.
    #[error(transparent)]
    Files(#[from] files::Error),
}

impl Error {
    pub(crate) fn input(
        place: impl std::fmt::Display,
        reason: impl Into<String>,
        remedy: &'static str,
    ) -> Self {
        Error::Input { place: place.to_string(), reason: reason.into(), remedy }
    }
}

impl terms::Fault for Error {}
