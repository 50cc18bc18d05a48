//! How a command fails: used wrongly (exit code 2) or failed while doing what it was asked (1).

use std::error::Error;
use std::fmt::Write as _;
use std::process::ExitCode;

/// Why a command gave no result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The request makes no sense: a flag, a key or a combination of them.
    Usage(String),
    /// The request was understood, and could not be carried out.
    Failed(Box<dyn Error + Send + Sync>),
}

impl Failure {
    /// Prints to standard error, with the chain of causes on one line.
    pub(crate) fn print(self) -> ExitCode {
        match self {
            Failure::Usage(message) => {
                say!("error: {message}");
                ExitCode::from(2)
            }
            Failure::Failed(error) => {
                let mut message = error.to_string();
                let mut cause = error.source();
                while let Some(error) = cause {
                    let _ = write!(message, ": {error}");
                    cause = error.source();
                }
                say!("error: {message}");
                ExitCode::FAILURE
            }
        }
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let error: Box<dyn Error + Send + Sync> = Box::new(error);
        if is_request(&*error) {
            return Failure::Usage(error.to_string());
        }
        Failure::Failed(error)
    }
}

/// Whether an error is of what was asked for, whatever the files hold.
fn is_request(error: &(dyn Error + Send + Sync + 'static)) -> bool {
    if let Some(error) = error.downcast_ref() {
        return matches!(error, catalogue::Error::Request { .. });
    }
    if let Some(error) = error.downcast_ref::<lab::study::Error>() {
        return terms::Fault::is_usage(error);
    }
    let inner = match error.downcast_ref() {
        Some(geometry::Error::Text(inner)) => Some(inner),
        _ => error.downcast_ref(),
    };
    matches!(inner, Some(text::Error::Request { .. }))
}
