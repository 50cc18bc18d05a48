//! How a command fails: used wrongly (exit code 2) or failed while doing what it was asked (1).

use std::error::Error;
use std::fmt::Write as _;
use std::process::ExitCode;

use crate::stop;

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
                complain!("error: {message}");
                ExitCode::from(2)
            }
            Failure::Failed(error) => {
                let mut message = error.to_string();
                let mut cause = error.source();
                while let Some(error) = cause {
                    let _ = write!(message, ": {error}");
                    cause = error.source();
                }
                complain!("error: {message}");
                stop::exit_code()
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
    use terms::Fault;
    let faults = [
        error.downcast_ref::<files::Error>().map(Fault::is_usage),
        error.downcast_ref::<text::Error>().map(Fault::is_usage),
        error.downcast_ref::<align::Error>().map(Fault::is_usage),
        error.downcast_ref::<vectors::Error>().map(Fault::is_usage),
        error.downcast_ref::<arrays::Error>().map(Fault::is_usage),
        error.downcast_ref::<geometry::Error>().map(Fault::is_usage),
        error.downcast_ref::<models::Error>().map(Fault::is_usage),
        error.downcast_ref::<models::OpenError>().map(Fault::is_usage),
        error.downcast_ref::<shift::Error>().map(Fault::is_usage),
        error.downcast_ref::<catalogue::Error>().map(Fault::is_usage),
        error.downcast_ref::<world::Error>().map(Fault::is_usage),
        error.downcast_ref::<train::pretrain::PretrainError>().map(Fault::is_usage),
    ];
    if let Some(usage) = faults.into_iter().flatten().next() {
        return usage;
    }
    if let Some(error) = error.downcast_ref::<lab::study::Error>() {
        return terms::Fault::is_usage(error);
    }
    false
}
