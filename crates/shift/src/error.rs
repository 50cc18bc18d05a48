//! What can go wrong, said so that it can be put right.

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The model could not be opened.
    #[error(transparent)]
    Open(#[from] models::OpenError),
    /// Text could not be read.
    #[error(transparent)]
    Text(#[from] text::Error),
    /// The file of means could not be written or read.
    #[error(transparent)]
    Archive(#[from] encoder::archive::ArchiveError),
    /// The file of means is not what was written.
    #[error("{0} (`isogloss shift means` makes it)")]
    Means(encoder::archive::ArchiveError),
    /// A sentence is none, or more than the model reads.
    #[error("the sentence {0}")]
    Sentence(String),
    /// What was asked for makes no sense for this model or these files.
    #[error("{0}")]
    Request(String),
}

impl Error {
    pub(crate) fn request(message: impl Into<String>) -> Self {
        Self::Request(message.into())
    }
}
