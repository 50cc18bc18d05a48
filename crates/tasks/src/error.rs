//! What can go wrong, with its place and a remedy. Messages name configuration keys, never flags.

use std::fmt::Display;
use std::path::Path;

use terms::Fault;

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure, with its place and the way out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or put in its place.
    #[error(transparent)]
    Files(#[from] files::Error),
    /// Text, vectors or arrays are not what they should be, or a request cannot be met.
    #[error(transparent)]
    Input(#[from] terms::Error),
    /// A pretrained model could not be opened.
    #[error(transparent)]
    Open(#[from] models::OpenError),
    /// Training failed.
    #[error(transparent)]
    Train(#[from] train::TrainError),
    /// The loss or the gradient of a setting is not finite any more.
    #[error("{setting}: at step {step} the {what} is {value}; try a lower `lr`, or `head_lr`")]
    Diverged {
        /// The setting in words.
        setting: String,
        /// The step that failed.
        step: u64,
        /// Loss or norm of the gradient.
        what: &'static str,
        /// NaN or infinite.
        value: f32,
    },
    /// A key of the configuration makes no sense.
    #[error(transparent)]
    Config(#[from] encoder::ConfigError),
    /// Language mean vectors are not there, or not of this encoder.
    #[error(transparent)]
    Shift(#[from] shift::Error),
    /// Weights could not be written or read.
    #[error(transparent)]
    Archive(#[from] encoder::archive::ArchiveError),
}

impl Fault for Error {
    fn is_usage(&self) -> bool {
        match self {
            Error::Config(_) | Error::Shift(shift::Error::Request(_)) => true,
            Error::Files(error) => error.is_usage(),
            Error::Input(error) => error.is_usage(),
            _ => false,
        }
    }

    fn key(&self) -> Option<&str> {
        match self {
            Error::Config(error) => Some(&error.key),
            Error::Input(error) => error.key(),
            Error::Diverged { .. } => Some("lr"),
            _ => None,
        }
    }
}

impl Error {
    /// The same, with the setting that failed where its learning rate was too high.
    pub(crate) fn of_setting(self, label: &str) -> Self {
        match self {
            Error::Train(train::TrainError::Diverged { step, what, value }) => {
                Error::Diverged { setting: label.to_owned(), step, what, value }
            }
            error => error,
        }
    }

    pub(crate) fn line(
        file: &Path,
        line: usize,
        reason: impl Display,
        remedy: impl Display,
    ) -> Self {
        text::Error::line(file, line as u64, reason, remedy).into()
    }

    pub(crate) fn file(file: &Path, reason: impl Display, remedy: impl Display) -> Self {
        text::Error::file(file, reason, remedy).into()
    }

    pub(crate) fn request(reason: impl Display, remedy: impl Display) -> Self {
        text::Error::request(reason, remedy).into()
    }

    pub(crate) fn key(key: &'static str, reason: impl Into<String>) -> Self {
        encoder::ConfigError::new(key, reason).into()
    }
}
