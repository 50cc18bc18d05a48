//! How a command fails: used wrongly (exit code 2), failed (1) or interrupted (130; 143 and 129 by SIGTERM and SIGHUP).
//!
//! Libraries say through [`Fault`] whether a request was wrong and which configuration key is to blame.

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
        let key = error.key().map(str::to_owned);
        Failure::Library { message: explained(&error), usage: error.is_usage(), key }
    }
}

/// What an error says, with the chain of its causes, on one line.
pub fn explained(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |message, cause| format!("{message}: {cause}"))
}
