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
                eprintln!("error: {message}");
                ExitCode::from(2)
            }
            Failure::Failed(error) => {
                let mut message = error.to_string();
                let mut cause = error.source();
                while let Some(error) = cause {
                    let _ = write!(message, ": {error}");
                    cause = error.source();
                }
                eprintln!("error: {message}");
                ExitCode::FAILURE
            }
        }
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let error: Box<dyn Error + Send + Sync> = Box::new(error);
        let of_text = match error.downcast_ref::<geometry::Error>() {
            Some(geometry::Error::Text(error)) => Some(error),
            _ => error.downcast_ref::<text::Error>(),
        };
        match of_text {
            Some(request @ text::Error::Request { .. }) => Failure::Usage(request.to_string()),
            _ => Failure::Failed(error),
        }
    }
}
