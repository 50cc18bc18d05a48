//! Why a request has no answer: what the page shows, and the status by which it knows.

use commands::failure::explained;
use terms::Fault;

#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ExploreError {
    message: String,
    usage: bool,
}

impl Fault for ExploreError {
    fn is_usage(&self) -> bool {
        self.usage
    }
}

impl From<ApiFailure> for ExploreError {
    fn from(failure: ApiFailure) -> Self {
        Self { usage: failure.status < 500, message: failure.message }
    }
}

#[derive(Debug)]
pub(crate) struct ApiFailure {
    pub(crate) status: u16,
    pub(crate) message: String,
}

impl ApiFailure {
    pub(crate) fn request(message: impl Into<String>) -> Self {
        Self { status: 400, message: message.into() }
    }

    /// There is no such thing: of an export, an absence that is no failure.
    pub(crate) fn unknown(message: impl Into<String>) -> Self {
        Self { status: 404, message: message.into() }
    }

    /// It was there.
    pub(crate) fn gone(message: impl Into<String>) -> Self {
        Self { status: 410, message: message.into() }
    }
}

impl<E: Fault> From<E> for ApiFailure {
    fn from(error: E) -> Self {
        Self { status: if error.is_usage() { 400 } else { 500 }, message: explained(&error) }
    }
}

pub(crate) type ApiResult<T> = Result<T, ApiFailure>;
