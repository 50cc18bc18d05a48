//! How a command fails: used wrongly (exit code 2), failed (1) or interrupted (130; 143 and 129 by SIGTERM and SIGHUP).
//!
//! Libraries say through [`Fault`] whether a request was wrong and which configuration key is to blame.

use std::fmt::Write as _;

use terms::Fault;

#[derive(Debug)]
pub enum Failure {
    /// The request makes no sense: a flag, a key or a combination of them.
    Usage(String),
    /// The request was understood, and could not be carried out.
    Failed(String),
    /// Another process, with which this one works together, reports it.
    Reported(String),
    Library {
        /// With the chain of causes on one line.
        message: String,
        usage: bool,
        /// The configuration key that would have to change.
        key: Option<String>,
    },
}

impl Failure {
    pub fn message(&self) -> &str {
        match self {
            Failure::Usage(message)
            | Failure::Failed(message)
            | Failure::Reported(message)
            | Failure::Library { message, .. } => message,
        }
    }
}

impl<E: Fault> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            let _ = write!(message, ": {error}");
            cause = error.source();
        }
        Failure::Library { message, usage: error.is_usage(), key: error.key().map(str::to_owned) }
    }
}
