//! Measures of two spaces beside CKA: similarity by many measures, the language-ID probe, bitext mining.

use std::collections::HashSet;
use std::str::FromStr as _;
use std::time::Instant;

use arrays::Stack;
use geometry::language_id::{LanguageIdConfig, language_id};
use geometry::mining::{
    Margin, MinedPair, MiningDirection, MiningResult, MiningSpace, NeighbourSearch, mine, signature,
};
use geometry::similarity::{SimilarityConfig, SimilarityMeasure, similarity};
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::errors::Failure;
use crate::input;
use crate::spaces::{check_subsamples, rows_of};
use crate::values::dictionary;
use crate::work::{self, Place};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(similar, module)?)?;
    module.add_function(wrap_pyfunction!(language_probed, module)?)?;
    module.add_function(wrap_pyfunction!(mined, module)?)
}

/// Compares the same layers of x and y. Gives the result of `isogloss similarity`.
#[pyfunction]
fn similar<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    y: &Bound<'py, PyAny>,
    measures: Vec<String>,
    subsamples: usize,
    seed: u64,
    place: Place,
) -> PyResult<Bound<'py, PyAny>> {
    let (x, y) = (input::stack("x", x)?, input::stack("y", y)?);
    let measure = |name: &String| {
        SimilarityMeasure::from_str(name).map_err(|message| Failure::usage("measures", message))
    };
    let measures = match measures.as_slice() {
        [] => SimilarityMeasure::ALL.into(),
        chosen => chosen.iter().map(measure).collect::<Result<_, _>>()?,
    };
    check_subsamples(subsamples)?;
    let config = SimilarityConfig { measures, subsamples, seed };
    let result = work::run_on(py, usize::MAX, place, move |device, watched| {
        let layers = |done, total| watched.show("layers", done, total, "");
        Ok(similarity(&x, &y, None, &config, device, &layers)?)
    })?;
    dictionary(py, &result)
}

/// Probes for the language at each layer. Gives the result of `isogloss language-id`.
#[pyfunction]
fn language_probed<'py>(
    py: Python<'py>,
    vectors: Vec<(String, Bound<'py, PyAny>)>,
    directions: usize,
    seed: u64,
    threads: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let stack = |(language, array): (String, Bound<'py, PyAny>)| {
        let stack = input::stack(&format!("vectors[{language:?}]"), &array)?;
        Ok::<(String, Stack), PyErr>((language, stack))
    };
    let languages = vectors.into_iter().map(stack).collect::<PyResult<Vec<_>>>()?;
    let config = LanguageIdConfig { directions, seed };
    let result = work::run_on(py, usize::MAX, work::on_cpu(threads), move |_, watched| {
        let layers = |done, total| watched.show("layers", done, total, "");
        Ok(language_id(&languages, config, &layers)?)
    })?;
    dictionary(py, &result)
}

/// How pairs are mined.
#[derive(FromPyObject)]
struct MiningSettings {
    #[pyo3(item)]
    margin: String,
    #[pyo3(item)]
    direction: String,
    #[pyo3(item)]
    neighbors: usize,
    #[pyo3(item)]
    center: bool,
    #[pyo3(item)]
    threshold: Option<f64>,
}

fn choice<T: DeserializeOwned>(key: &str, name: &str, there: &str) -> Result<T, Failure> {
    serde_json::from_value(Value::String(name.to_owned()))
        .map_err(|_| Failure::usage(key, format!("there is no `{name}`; give {there}")))
}

/// The result of mining, the rows of each pair, and the scores.
type Mined<'py> = (Bound<'py, PyAny>, Bound<'py, PyArray2<i64>>, Bound<'py, PyArray1<f32>>);

/// Mines pairs of rows. Gives the result of `isogloss mine` and the pairs, best first.
#[pyfunction]
fn mined<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    y: &Bound<'py, PyAny>,
    gold: Option<HashSet<(u32, u32)>>,
    settings: MiningSettings,
    place: Place,
) -> PyResult<Mined<'py>> {
    let stack =
        |name: &str, array| Ok::<_, PyErr>(Stack::of(name, vec![input::matrix(name, array)?]));
    let (x, y) = (stack("x", x)?, stack("y", y)?);
    let MiningSettings { margin, direction, neighbors, center, threshold } = settings;
    let margin: Margin = choice("margin", &margin, "ratio, distance or absolute")?;
    let direction: MiningDirection =
        choice("direction", &direction, "forward, backward, intersection or max")?;
    if !(1..=64).contains(&neighbors) {
        let message = format!("neighbors: {neighbors} cannot be; give 1 to 64");
        return Err(Failure::usage("neighbors", message).into());
    }
    let rows = [x.rows(), y.rows()];
    let space = |stack: &Stack| MiningSpace { model: None, layer: None, dim: stack.dim(0) };
    let spaces = Some([space(&x), space(&y)]);
    let outside = |pair: &&(u32, u32)| pair.0 as usize >= rows[0] || pair.1 as usize >= rows[1];
    if let Some((i, j)) = gold.iter().flatten().find(outside) {
        let [a, b] = rows.map(|rows| rows - 1);
        let message = format!("gold: ({i}, {j}) is not there; rows go from 0 to {a} and {b}");
        return Err(Failure::usage("gold", message).into());
    }
    let (result, kept) = work::run_on(py, usize::MAX, place, move |device, watched| {
        let began = Instant::now();
        let search = NeighbourSearch::new(&x, &y, center, device)?;
        let show = |done, total| watched.show("searching", done, total, "");
        let found = search.run(search.start(neighbors, ""), |_| Ok(()), &show)?;
        let seconds = began.elapsed().as_secs_f64();
        let pairs = mine([&found[0], &found[1]], margin, direction);
        let gold = gold.map(|gold| gold.into_iter().collect());
        let signature = signature((margin, direction), neighbors, center);
        let known =
            MiningResult { rows, threshold, spaces, seconds, signature, ..Default::default() };
        Ok(known.keep(pairs, gold.as_ref()))
    })?;
    let of_pair = |pair: &MinedPair| [i64::from(pair.source), i64::from(pair.target)];
    let pairs = rows_of(py, kept.iter().flat_map(of_pair).collect(), 2)?;
    let scores = PyArray1::from_vec(py, kept.iter().map(|pair| pair.score).collect());
    Ok((dictionary(py, &result)?, pairs, scores))
}
