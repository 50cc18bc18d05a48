//! Commands within the interpreter: the script `isogloss`, and those that Python's functions call with arguments of their own.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use command_line::{CallFailure, CallResult, Host};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;

use crate::errors::Failure;
use crate::values::python;
use crate::work::{self, Watched};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(run_command, module)?)?;
    module.add_function(wrap_pyfunction!(call_command, module)?)?;
    module.add_function(wrap_pyfunction!(command_flags, module)?)
}

/// Runs a command line, whose first word is the program's name; gives its exit code. `program` is the script that starts
/// the command again, for studies.
#[pyfunction]
fn run_command(py: Python<'_>, program: PathBuf, typed: Vec<OsString>) -> u8 {
    py.detach(|| command_line::run(program, typed))
}

/// The flags of a command, by name: whether a value follows, and what stands between several.
#[pyfunction]
fn command_flags<'py>(py: Python<'py>, words: Vec<String>) -> PyResult<Bound<'py, PyDict>> {
    let flags = PyDict::new(py);
    for flag in command_line::command_flags(&words).unwrap_or_default() {
        flags.set_item(flag.name, (flag.takes_value, flag.delimiter))?;
    }
    Ok(flags)
}

/// Runs a command and gives the object that `--json` prints, with what it would have said on standard error. `callback` is called with a
/// dictionary for each line of metrics and each step of progress; what it raises stops the command.
#[pyfunction]
fn call_command<'py>(
    py: Python<'py>,
    words: Vec<OsString>,
    callback: Option<Py<PyAny>>,
) -> PyResult<(Bound<'py, PyAny>, Vec<String>)> {
    let raised = Arc::new(Mutex::new(None));
    let caught = Arc::clone(&raised);
    let called = work::run(py, usize::MAX, move |watched| {
        let host = Arc::new(Caller {
            watched: watched.clone(),
            callback,
            raised: caught,
            remarks: Mutex::new(Vec::new()),
        });
        let called = command_line::call(words, host.clone());
        let remarks =
            std::mem::take(&mut *host.remarks.lock().unwrap_or_else(PoisonError::into_inner));
        match called {
            Ok(CallResult { json, finished }) => Ok((json, finished, remarks)),
            Err(CallFailure { message, key: Some(key), .. }) if key == "device" => {
                Err(Failure::device(message, Some(&key)))
            }
            Err(CallFailure { message, usage: true, key }) => Err(Failure::Usage { message, key }),
            Err(CallFailure { message, usage: false, key }) => {
                Err(Failure::Failed { message, key })
            }
        }
    });
    // It stands for whatever the command made of being stopped by it, also where that unwound.
    if let Some(error) = raised.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(error);
    }
    let (json, finished, remarks) = called?;
    let result = python(py, &json)?;
    if let Ok(result) = result.cast::<PyDict>()
        && !finished
    {
        result.set_item("finished", false)?;
    }
    Ok((result, remarks))
}

/// The Python function that called a command.
struct Caller {
    watched: Watched,
    callback: Option<Py<PyAny>>,
    raised: Arc<Mutex<Option<PyErr>>>,
    remarks: Mutex<Vec<String>>,
}

impl Caller {
    fn call_back(&self, event: &Value) {
        let Some(callback) = &self.callback else { return };
        let called = Python::attach(|py| callback.call1(py, (python(py, event)?,)).map(|_| ()));
        if let Err(error) = called {
            self.watched.stop();
            self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }
}

impl Host for Caller {
    fn progress(&self, label: &str, done: u64, total: u64, note: &str) {
        self.watched.show(label, done, total, note);
        terms::interrupt::check();
    }

    fn remark(&self, text: &str) {
        self.remarks.lock().unwrap_or_else(PoisonError::into_inner).push(text.to_owned());
    }

    fn metrics(&self, line: &Value) {
        self.call_back(line);
    }

    fn stopped(&self) -> bool {
        self.watched.stops_itself();
        self.watched.stopped()
    }
}
