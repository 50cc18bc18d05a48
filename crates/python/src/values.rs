//! Results as plain Python values: the very object that `--json` prints, as a dictionary.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde::Serialize;
use serde_json::Value;

pub(crate) fn dictionary<'py>(
    py: Python<'py>,
    result: &impl Serialize,
) -> PyResult<Bound<'py, PyAny>> {
    let value = serde_json::to_value(result).expect("a result of ours is always valid JSON");
    python(py, &value)
}

pub(crate) fn python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::Bool(value) => value.into_bound_py_any(py),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => whole.into_bound_py_any(py),
            (None, Some(whole)) => whole.into_bound_py_any(py),
            _ => number.as_f64().into_bound_py_any(py),
        },
        Value::String(text) => text.into_bound_py_any(py),
        Value::Array(values) => {
            let list = PyList::empty(py);
            values.iter().try_for_each(|value| list.append(python(py, value)?))?;
            Ok(list.into_any())
        }
        Value::Object(entries) => {
            let dictionary = PyDict::new(py);
            entries
                .iter()
                .try_for_each(|(key, value)| dictionary.set_item(key, python(py, value)?))?;
            Ok(dictionary.into_any())
        }
    }
}
