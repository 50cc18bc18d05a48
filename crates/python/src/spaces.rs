//! Functions on arrays: orthogonal maps, retrieval, CKA.

use std::path::PathBuf;

use arrays::Matrix;
use geometry::cka::{CkaConfig, ComparedRows, FEWEST_SUBSAMPLES, compare, groups};
use geometry::learn::{Induction, MapFit, MapStart, fit};
use geometry::predictions::RetrievalSpace;
use geometry::retrieval::{RetrievalOutput, RetrievalSearch, RowPairs, TranslatedRows, retrieve};
use geometry::search::Measure;
use geometry::search::unwatched;
use geometry::{Map, Step, describe, normalize};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::Failure;
use crate::input;
use crate::values::dictionary;
use crate::work::{self, Place, Watched};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(fit_map, module)?)?;
    module.add_function(wrap_pyfunction!(load_map, module)?)?;
    module.add_function(wrap_pyfunction!(normalized, module)?)?;
    module.add_function(wrap_pyfunction!(retrieved, module)?)?;
    module.add_function(wrap_pyfunction!(compared, module)?)?;
    module.add_class::<LinearMap>()
}

/// A matrix for Python, without a copy.
pub(crate) fn rows_of<T: numpy::Element>(
    py: Python<'_>,
    values: Vec<T>,
    cols: usize,
) -> PyResult<Bound<'_, PyArray2<T>>> {
    let rows = values.len() / cols.max(1);
    PyArray1::from_vec(py, values).reshape([rows, cols])
}

pub(crate) fn steps(names: &[String]) -> Result<Vec<Step>, Failure> {
    let step = |name: &String| {
        Step::named(name).ok_or_else(|| {
            let message = format!("there is no `{name}`; give iterative, center, unit or none");
            Failure::usage("normalize", message)
        })
    };
    names.iter().filter(|name| *name != "none").map(step).collect()
}

/// An orthogonal map.
#[pyclass(frozen, module = "isogloss._isogloss")]
struct LinearMap {
    map: Map,
}

#[pymethods]
impl LinearMap {
    #[getter]
    fn dim(&self) -> usize {
        self.map.dim()
    }

    /// W of W x, dim x dim.
    fn matrix<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        rows_of(py, self.map.values().to_vec(), self.map.dim())
    }

    fn save(&self, path: PathBuf, force: bool) -> PyResult<()> {
        files::check_new_file(&path, force).map_err(Failure::from)?;
        Ok(self.map.save(&path).map_err(Failure::from)?)
    }

    /// Every row, mapped after these steps of normalisation.
    fn transform<'py>(
        &self,
        py: Python<'py>,
        z: &Bound<'py, PyAny>,
        normalize_by: Vec<String>,
        place: Place,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let mut z = input::matrix("z", z)?;
        let steps = steps(&normalize_by)?;
        if z.cols() != self.map.dim() {
            let (given, dim) = (z.cols(), self.map.dim());
            let message = format!("z: has {given} columns; give {dim}, as the map has");
            return Err(Failure::usage("z", message).into());
        }
        let (map, dim) = (self.map.clone(), self.map.dim());
        let mapped = work::run_on(py, z.values().len(), place, move |_, _| {
            normalize(&mut z, &steps);
            Ok(map.apply(&z).into_values())
        })?;
        rows_of(py, mapped, dim)
    }
}

/// Reads a map that was saved.
#[pyfunction]
fn load_map(path: PathBuf) -> PyResult<LinearMap> {
    Ok(LinearMap { map: Map::load(&path).map_err(Failure::from)? })
}

/// How a map is learned.
#[derive(FromPyObject)]
struct MapSettings {
    #[pyo3(item)]
    normalize: Vec<String>,
    #[pyo3(item)]
    refine: usize,
    #[pyo3(item)]
    cutoff: usize,
    #[pyo3(item)]
    neighbors: usize,
    #[pyo3(item)]
    seed: u64,
    /// Whether pairs are not given because there are none; else row i belongs to row i.
    #[pyo3(item)]
    unsupervised: bool,
}

/// Learns a map of x onto y. Gives the map, and a dictionary of what came of it.
#[pyfunction]
fn fit_map<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    y: &Bound<'py, PyAny>,
    pairs: Option<Vec<(u32, u32)>>,
    settings: MapSettings,
    place: Place,
) -> PyResult<(LinearMap, Bound<'py, PyDict>)> {
    let (x, y) = (input::matrix("x", x)?, input::matrix("y", y)?);
    let steps = steps(&settings.normalize)?;
    check_map_request(&x, &y, pairs.as_deref(), &settings)?;
    let size = x.values().len() + y.values().len();
    let (init, signature) = map_signature(&settings, &steps, &x, &y);
    let (fitted, cosine) = work::run_on(py, size, place, move |device, watched| {
        learned(x, y, pairs, &settings, &steps, device, watched)
    })?;
    let result = PyDict::new(py);
    result.set_item("init", init)?;
    result.set_item("cosine", cosine)?;
    result.set_item("rounds", dictionary(py, &fitted.rounds)?)?;
    result.set_item("signature", signature)?;
    Ok((LinearMap { map: fitted.map }, result))
}

fn check_map_request(
    x: &Matrix,
    y: &Matrix,
    pairs: Option<&[(u32, u32)]>,
    settings: &MapSettings,
) -> Result<(), Failure> {
    if x.cols() != y.cols() {
        let (a, b) = (x.cols(), y.cols());
        let message =
            format!("x has {a} columns, y has {b}; an orthogonal map needs the same of both");
        return Err(Failure::usage("y", message));
    }
    for (matrix, name) in [(x, "x"), (y, "y")] {
        matrix.check(name, |row| format!("row {row}"))?;
    }
    let [a, b] = [x.rows(), y.rows()];
    if pairs.is_none() && !settings.unsupervised && a != b {
        let message =
            format!("x has {a} rows, y has {b}; give pairs, or row i of y for row i of x");
        return Err(Failure::usage("pairs", message));
    }
    let outside = |&&(i, j): &&(u32, u32)| i as usize >= a || j as usize >= b;
    if let Some((i, j)) = pairs.unwrap_or_default().iter().find(outside) {
        let message =
            format!("pairs: ({i}, {j}) is not there; rows go from 0 to {} and {}", a - 1, b - 1);
        return Err(Failure::usage("pairs", message));
    }
    if pairs.is_some_and(<[_]>::is_empty) {
        return Err(Failure::usage(
            "pairs",
            "pairs: there are none; give some, or learn unsupervised",
        ));
    }
    Ok(())
}

/// What the map is first learned from, and every convention that it depends on.
fn map_signature(
    settings: &MapSettings,
    steps: &[Step],
    x: &Matrix,
    y: &Matrix,
) -> (&'static str, String) {
    let init = if settings.unsupervised { "unsupervised" } else { "dictionary" };
    let k = settings.neighbors.min(x.rows()).min(y.rows());
    let refined = match settings.refine {
        0 => String::new(),
        rounds => format!("|refine:{rounds},mutual-csls,k={k},cutoff={}", settings.cutoff),
    };
    let (norm, version) = (describe(steps), env!("CARGO_PKG_VERSION"));
    (init, format!("map:procrustes|init:{init}|norm:{norm}{refined}|v{version}"))
}

fn learned(
    mut x: Matrix,
    mut y: Matrix,
    pairs: Option<Vec<(u32, u32)>>,
    settings: &MapSettings,
    steps: &[Step],
    device: &tensor::Device,
    watched: &Watched,
) -> Result<(MapFit, f64), Failure> {
    normalize(&mut x, steps);
    normalize(&mut y, steps);
    let pairs = pairs.unwrap_or_else(|| (0..x.rows() as u32).map(|row| (row, row)).collect());
    let start = match settings.unsupervised {
        true => MapStart::Unsupervised { seed: settings.seed },
        false => MapStart::Pairs(&pairs),
    };
    let k = settings.neighbors.min(x.rows()).min(y.rows());
    let induction = Induction { cutoff: settings.cutoff, k };
    let mut round = 0;
    let fitted = fit(&x, &y, start, settings.refine, induction, device, |_, _| {
        round += 1;
        watched.show("round", round, 0, "");
    });
    let cosine = match fitted.rounds.last() {
        Some(_) => fitted.rounds.iter().map(|round| round.cosine).fold(f64::NEG_INFINITY, f64::max),
        None => fitted.map.mean_cosine(&x, &y, &pairs),
    };
    Ok((fitted, cosine))
}

/// Rows after these steps of normalisation.
#[pyfunction]
fn normalized<'py>(
    py: Python<'py>,
    z: &Bound<'py, PyAny>,
    normalize_by: Vec<String>,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    let mut z = input::matrix("z", z)?;
    let (steps, dim) = (steps(&normalize_by)?, z.cols());
    let values = work::run(py, z.values().len(), move |_| {
        normalize(&mut z, &steps);
        Ok(z.into_values())
    })?;
    rows_of(py, values, dim)
}

/// How translations are retrieved.
#[derive(FromPyObject)]
struct RetrievalSettings {
    #[pyo3(item)]
    method: String,
    #[pyo3(item)]
    k: Option<usize>,
    #[pyo3(item)]
    normalize: Vec<String>,
    #[pyo3(item)]
    top: usize,
}

/// Retrieves translations at each layer. Gives the result of `isogloss retrieve`, and the neighbours of the last layer in the raw
/// space, or the aligned one where maps were learned: for either direction rows and scores.
#[pyfunction]
fn retrieved<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    y: &Bound<'py, PyAny>,
    train: Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
    settings: RetrievalSettings,
    place: Place,
) -> PyResult<(Bound<'py, PyAny>, Vec<Bound<'py, PyAny>>)> {
    let (x, y) = (input::stack("x", x)?, input::stack("y", y)?);
    let stacks = |(x, y): (Bound<'py, PyAny>, Bound<'py, PyAny>)| {
        Ok::<_, PyErr>((input::stack("train[0]", &x)?, input::stack("train[1]", &y)?))
    };
    let train = train.map(stacks).transpose()?;
    let steps = steps(&settings.normalize)?;
    let size = x.rows() * y.rows();
    let (result, neighbours, kept) = work::run_on(py, size, place, move |device, _| {
        let pairs = RowPairs::of_vectors(&x, &y)?;
        let rows = pairs.counts.used;
        let measure = Measure::named(&settings.method, settings.k, rows)?;
        let keep = settings.top;
        let search = RetrievalSearch { measure, steps, device: device.clone(), keep };
        let of_train = train.as_ref().map(|(x, y)| RowPairs::of_vectors(x, y)).transpose()?;
        let train = train
            .as_ref()
            .zip(of_train.as_ref())
            .map(|((source, target), pairs)| TranslatedRows { source, target, pairs });
        let test = TranslatedRows { source: &x, target: &y, pairs: &pairs };
        let RetrievalOutput { result, kept, .. } = retrieve(test, train, &search)?;
        let space = if train.is_some() { RetrievalSpace::Aligned } else { RetrievalSpace::Raw };
        let last = kept.iter().rfind(|kept| kept.space() == space);
        let neighbours = last.map(|last| [0, 1].map(|side| last.of_side(&pairs, side)));
        let [source, target] = result.candidates;
        Ok((result, neighbours, [keep.min(target), keep.min(source)]))
    })?;
    let mut found = Vec::new();
    for ((rows, scores), kept) in neighbours.into_iter().flatten().zip(kept) {
        let rows: Vec<i64> = rows.into_iter().map(i64::from).collect();
        found.push(rows_of(py, rows, kept)?.into_any());
        found.push(rows_of(py, scores, kept)?.into_any());
    }
    Ok((dictionary(py, &result)?, found))
}

/// Refuses so few subsamples that they give no interval.
pub(crate) fn check_subsamples(subsamples: usize) -> Result<(), Failure> {
    match (1..FEWEST_SUBSAMPLES).contains(&subsamples) {
        false => Ok(()),
        true => {
            let message = format!(
                "subsamples: {subsamples} give no interval; give 0, or at least {FEWEST_SUBSAMPLES}"
            );
            Err(Failure::usage("subsamples", message))
        }
    }
}

/// Compares all layers of x with all of y by linear CKA.
#[pyfunction]
fn compared<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    y: &Bound<'py, PyAny>,
    within: Option<Vec<String>>,
    subsamples: Option<usize>,
    seed: u64,
    place: Place,
) -> PyResult<Bound<'py, PyAny>> {
    let (x, y) = (input::stack("x", x)?, input::stack("y", y)?);
    check_subsamples(subsamples.unwrap_or_default())?;
    let size = x.rows() * (x.dim(0) + y.dim(0)) * x.layers().max(y.layers());
    let result = work::run_on(py, size * 10, place, move |device, watched| {
        let labels = within
            .as_ref()
            .map(|labels| groups("within", labels.iter().map(String::as_str), x.rows()));
        let labels = labels.transpose()?;
        let rows = ComparedRows { groups: labels.as_deref(), ..ComparedRows::default() };
        let config = CkaConfig { subsamples, seed };
        let layers = |done, total| watched.show("layers", done, total, "");
        let samples = |done, total| watched.show("subsamples", done, total, "");
        Ok(compare(&x, &y, rows, config, device, [&layers, &samples, &unwatched])?)
    })?;
    dictionary(py, &result)
}
