//! Errors of the libraries as exceptions of the package, with the key to blame, the reason and the remedy.

use std::any::Any;
use std::error::Error;
use std::fmt::Write as _;

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tensor::{DeviceError, DeviceFault};
use terms::Fault;
use terms::interrupt::Interrupted;

/// Why a function gave no result, until an exception can be made of it.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The request makes no sense: `isogloss.UsageError`.
    Usage {
        message: String,
        key: Option<String>,
    },
    /// It was understood, and could not be carried out: `isogloss.Error`.
    Failed {
        message: String,
        key: Option<String>,
    },
    /// A device that cannot be used, or that failed: `isogloss.DeviceError`.
    Device {
        message: String,
        key: Option<String>,
    },
    /// A fault of this package: `isogloss.InternalError`.
    Internal(String),
    Interrupted,
}

impl Failure {
    /// A wrong request, by the key to blame.
    pub(crate) fn usage(key: &str, message: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), key: Some(key.to_owned()) }
    }

    /// A device that cannot be used or failed, with a remedy where none is named.
    pub(crate) fn device(message: String, key: Option<&str>) -> Self {
        let message = message.replace("--device cpu", "device=\"cpu\"");
        let message = match message.contains("; ") {
            true => message,
            false => format!("{message}; take device=\"cpu\""),
        };
        Self::Device { message, key: key.map(str::to_owned) }
    }

    /// What a thread unwound with.
    pub(crate) fn of_panic(payload: Box<dyn Any + Send>) -> Self {
        let payload = match payload.downcast::<Interrupted>() {
            Ok(_) => return Self::Interrupted,
            Err(payload) => payload,
        };
        let payload = match payload.downcast::<DeviceFault>() {
            Ok(fault) => return Self::device(with_causes(&*fault), Some("device")),
            Err(payload) => payload,
        };
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        Self::Internal(text.unwrap_or("a panic without a message").to_owned())
    }
}

impl<E: Fault> From<E> for Failure {
    fn from(error: E) -> Self {
        let any: &dyn Any = &error;
        if any.is::<DeviceFault>() || any.is::<DeviceError>() {
            return Self::device(with_causes(&error), error.key());
        }
        let (message, key) = (with_causes(&error), error.key().map(str::to_owned));
        match error.is_usage() {
            true => Self::Usage { message, key },
            false => Self::Failed { message, key },
        }
    }
}

/// An error with the chain of its causes on one line.
fn with_causes(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = write!(message, ": {error}");
        cause = error.source();
    }
    message
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        let (class, message, key) = match failure {
            Failure::Usage { message, key } => ("UsageError", message, key),
            Failure::Failed { message, key } => ("Error", message, key),
            Failure::Device { message, key } => ("DeviceError", message, key),
            Failure::Internal(message) => ("InternalError", message, None),
            Failure::Interrupted => return PyKeyboardInterrupt::new_err(()),
        };
        Python::attach(|py| match exception(py, class, &message, key.as_deref()) {
            Ok(exception) => PyErr::from_value(exception),
            Err(error) => error,
        })
    }
}

fn exception<'py>(
    py: Python<'py>,
    class: &str,
    message: &str,
    key: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || py.import("isogloss._errors").map(Bound::unbind))?;
    module.bind(py).getattr(class)?.call1((message, key))
}
