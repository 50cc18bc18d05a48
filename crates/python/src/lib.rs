//! The Python package `isogloss`: the laboratory's libraries behind plain functions on arrays.
//!
//! This crate converts: arrays and keyword arguments into the libraries' types (`input`), their results into dictionaries
//! and arrays (`values`), their errors, device faults and panics into exceptions (`errors`). Long work runs on a thread of its
//! own while the calling one shows progress and looks for Ctrl-C (`work`). Names, defaults, documentation and result types are those
//! of the Python modules beside it, under `python/isogloss`.

mod bitext;
mod command;
mod encoder;
mod errors;
mod input;
mod measures;
mod pictures;
mod spaces;
mod values;
mod wordvectors;
mod work;

use pyo3::prelude::*;

/// The extension module; `isogloss` wraps it.
#[pymodule]
fn _isogloss(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    bitext::register(module)?;
    command::register(module)?;
    encoder::register(module)?;
    measures::register(module)?;
    pictures::register(module)?;
    spaces::register(module)?;
    wordvectors::register(module)?;
    module.add_function(wrap_pyfunction!(work::panic_for_tests, module)?)
}
