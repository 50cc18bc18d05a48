//! Arrays of Python as matrices: f16, f32 and f64 of any strides, read-only or not, and whatever NumPy makes an array of (lists,
//! tensors of other libraries in the host's memory); or a path, whose file is read as the command line reads it.
//!
//! Values are copied once, as f32, which is what is computed with: work must own what it reads, since Ctrl-C may leave it behind
//! and the caller may change the array meanwhile.

use std::path::PathBuf;

use arrays::{Matrix, Stack};
use half::f16;
use numpy::{
    PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyList;
use rayon::prelude::*;
use terms::memory;

use crate::errors::Failure;
use crate::work;

/// Values from which on a copy is made by several threads.
const LARGE: usize = 1 << 20;

/// The layers of an array: rows x dim, layers x rows x dim, or a list of the former; or of a file.
pub(crate) fn stack(name: &str, array: &Bound<'_, PyAny>) -> PyResult<Stack> {
    if let Some(stack) = of_file(array)? {
        return Ok(stack);
    }
    let layers = match array.cast::<PyList>() {
        Ok(list) if is_list_of_layers(list) => {
            let layer = |(number, layer): (usize, Bound<'_, PyAny>)| {
                let name = format!("{name}[{number}]");
                matrix(&name, &layer)
            };
            list.iter().enumerate().map(layer).collect::<PyResult<Vec<_>>>()?
        }
        _ => {
            let (shape, values) = read(name, array)?;
            match *shape.as_slice() {
                [rows, dim] => vec![Matrix::new(rows, dim, values)],
                [1, rows, dim] => vec![Matrix::new(rows, dim, values)],
                [_, rows, dim] => {
                    let layer = |layer: &[f32]| Matrix::new(rows, dim, layer.to_vec());
                    values.chunks_exact(rows * dim).map(layer).collect()
                }
                _ => return Err(wrong_shape(name, &shape, "rows x dim, or layers x rows x dim")),
            }
        }
    };
    if layers.windows(2).any(|two| two[0].rows() != two[1].rows()) {
        let message =
            format!("{name}: layers differ in their numbers of rows; give layers of the same rows");
        return Err(Failure::usage(name, message).into());
    }
    Ok(Stack::of(name, layers))
}

/// Whether a list holds arrays of two dimensions, not rows.
fn is_list_of_layers(list: &Bound<'_, PyList>) -> bool {
    let dimensions = |item: Bound<'_, PyAny>| item.getattr("ndim").ok()?.extract::<usize>().ok();
    list.iter().next().and_then(dimensions) == Some(2)
}

/// The layers of a file that is named by a string or another path; none of what is no path.
fn of_file(array: &Bound<'_, PyAny>) -> PyResult<Option<Stack>> {
    let Ok(path) = array.extract::<PathBuf>() else { return Ok(None) };
    Ok(Some(array.py().detach(|| Stack::open(&path)).map_err(Failure::from)?))
}

/// One matrix: rows x dim.
pub(crate) fn matrix(name: &str, array: &Bound<'_, PyAny>) -> PyResult<Matrix> {
    if let Some(stack) = of_file(array)? {
        let [layers, rows, dim] = [stack.layers(), stack.rows(), stack.dim(0)];
        return match layers {
            1 => Ok(stack.read(0, 0..rows).map_err(Failure::from)?),
            _ => Err(wrong_shape(name, &[layers, rows, dim], "rows x dim")),
        };
    }
    let (shape, values) = read(name, array)?;
    match *shape.as_slice() {
        [rows, dim] => Ok(Matrix::new(rows, dim, values)),
        _ => Err(wrong_shape(name, &shape, "rows x dim")),
    }
}

fn wrong_shape(name: &str, shape: &[usize], wanted: &str) -> PyErr {
    let message = format!("{name}: has the shape {shape:?}; give an array of {wanted}");
    Failure::usage(name, message).into()
}

/// The shape of an array, and its values in the order of C.
fn read(name: &str, array: &Bound<'_, PyAny>) -> PyResult<(Vec<usize>, Vec<f32>)> {
    let array = as_array(name, array)?;
    let shape = array.shape().to_vec();
    if shape.contains(&0) {
        return Err(Failure::usage(
            name,
            format!("{name}: holds no values; give an array with some"),
        )
        .into());
    }
    let any = array.as_any();
    let values = if let Ok(array) = any.cast::<PyArrayDyn<f32>>() {
        copied(name, &array.readonly(), |x| x)?
    } else if let Ok(array) = any.cast::<PyArrayDyn<f64>>() {
        copied(name, &array.readonly(), |x| x as f32)?
    } else if let Ok(array) = any.cast::<PyArrayDyn<f16>>() {
        copied(name, &array.readonly(), f16::to_f32)?
    } else {
        // Whole numbers, booleans, and floats in the other byte order.
        let kind: String = array.dtype().getattr("kind")?.extract()?;
        if !["b", "i", "u", "f"].contains(&kind.as_str()) {
            let kind = array.dtype();
            return Err(
                Failure::usage(name, format!("{name}: holds {kind}; give real numbers")).into()
            );
        }
        let cast = array.call_method1("astype", ("float64",))?;
        copied(name, &cast.cast::<PyArrayDyn<f64>>()?.readonly(), |x| x as f32)?
    };
    Ok((shape, values))
}

/// The object itself where it is an array, else what `numpy.asarray` makes of it.
fn as_array<'py>(name: &str, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyUntypedArray>> {
    if let Ok(array) = object.cast::<PyUntypedArray>() {
        return Ok(array.clone());
    }
    static ASARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = object.py();
    let load = || Ok::<_, PyErr>(py.import("numpy")?.getattr("asarray")?.unbind());
    let made = ASARRAY.get_or_try_init(py, load)?.bind(py).call1((object,)).map_err(|error| {
        let message = format!(
            "{name}: cannot be read as an array ({error}); give numbers in the host's memory (of a tensor: \
             .detach().cpu(), and .float() of bfloat16)"
        );
        Failure::usage(name, message)
    })?;
    Ok(made.cast_into::<PyUntypedArray>()?)
}

/// The values in the order of C, as f32. An array may have more of them than memory (`numpy.broadcast_to`).
fn copied<T: numpy::Element + Copy>(
    name: &str,
    array: &PyReadonlyArrayDyn<'_, T>,
    to_f32: impl Fn(T) -> f32 + Sync + Send,
) -> PyResult<Vec<f32>> {
    let mut copy = memory::reserve(array.len())
        .map_err(|shortage| PyMemoryError::new_err(format!("{name}: {shortage}")))?;
    // A slice may also be in the order of Fortran.
    match array.as_slice() {
        // The memory of a large copy is new to the process, and faulting it in takes longer than writing it.
        Ok(values) if array.is_c_contiguous() && values.len() >= LARGE => {
            work::check_process()?;
            copy.par_extend(values.par_iter().with_min_len(LARGE / 4).map(|&x| to_f32(x)));
        }
        Ok(values) if array.is_c_contiguous() => copy.extend(values.iter().map(|&x| to_f32(x))),
        _ => copy.extend(array.as_array().iter().map(|&x| to_f32(x))),
    }
    Ok(copy)
}
