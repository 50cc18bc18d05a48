//! Static word vectors: trained on sentences in memory, read and written.

use std::path::{Path, PathBuf};
use std::time::Instant;

use numpy::PyArray2;
use pyo3::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use vectors::formats::{self, ReadOptions};
use vectors::glove::{self, GloveConfig};
use vectors::word2vec::{self, Word2VecConfig};
use vectors::{IndexedSentences, TrainingObserver, TrainingProgress, TrainingResult, WordVectors};

use crate::errors::Failure;
use crate::input;
use crate::spaces::rows_of;
use crate::values::dictionary;
use crate::work::{self, Watched};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(train_vectors, module)?)?;
    module.add_function(wrap_pyfunction!(read_vectors, module)?)?;
    module.add_function(wrap_pyfunction!(write_vectors, module)?)
}

/// Words and their vectors, words x dim.
type Table<'py> = (Vec<String>, Bound<'py, PyArray2<f32>>);

fn table(py: Python<'_>, vectors: WordVectors) -> PyResult<Table<'_>> {
    let dim = vectors.dim();
    let (words, values) = vectors.into_parts();
    Ok((words, rows_of(py, values, dim)?))
}

struct TrainingShown<'a> {
    watched: &'a Watched,
}

impl TrainingObserver for TrainingShown<'_> {
    fn progress(&mut self, at: &TrainingProgress) {
        let note = format!("epoch {}/{}", at.epoch + 1, at.epochs);
        let (done, all) = (at.total * at.epoch as u64 + at.done, at.total * at.epochs as u64);
        self.watched.show("training", done, all, &note);
    }

    fn counting(&mut self, done: u64, total: u64) {
        self.watched.show("counting", done, total, "");
    }

    fn stop(&self) -> bool {
        self.watched.stopped()
    }
}

/// A configuration from its keys in JSON; those that are left out have their defaults.
fn configured<T: Default + Serialize + DeserializeOwned>(keys: &str) -> Result<T, Failure> {
    let wrong = |error: serde_json::Error| Failure::Usage { message: error.to_string(), key: None };
    let keys: serde_json::Map<String, Value> = serde_json::from_str(keys).map_err(wrong)?;
    let mut config = serde_json::to_value(T::default()).map_err(wrong)?;
    if let Some(config) = config.as_object_mut() {
        config.extend(keys);
    }
    serde_json::from_value(config).map_err(wrong)
}

/// Trains vectors of sentences by `word2vec` or `glove`. Gives the table, the counts of its words, and the result of `isogloss vectors`.
#[pyfunction]
fn train_vectors<'py>(
    py: Python<'py>,
    method: String,
    sentences: Vec<Vec<String>>,
    min_count: u64,
    keys: String,
    threads: usize,
) -> PyResult<(Table<'py>, Vec<u64>, Bound<'py, PyAny>)> {
    let trained = work::run(py, usize::MAX, move |watched| {
        let words = sentences.iter().map(|sentence| sentence.iter().map(String::as_str));
        let sentences = IndexedSentences::of_words(words, min_count)?;
        let mut shown = TrainingShown { watched };
        let started = Instant::now();
        let seconds = || started.elapsed().as_secs_f64();
        let out = Path::new("");
        let (trained, result) = match method.as_str() {
            "glove" => {
                let config = GloveConfig { threads, ..configured(&keys)? };
                config.check()?;
                let trained = glove::train(&sentences, &config, None, &mut shown)?;
                let trained = trained.ok_or(Failure::Interrupted)?;
                let result =
                    TrainingResult::new(&method, &config, &sentences, &trained, out, seconds());
                (trained, result)
            }
            _ => {
                let config = Word2VecConfig { threads, ..configured(&keys)? };
                config.check()?;
                let trained = word2vec::train(&sentences, &config, None, &mut shown)?;
                let trained = trained.ok_or(Failure::Interrupted)?;
                let result =
                    TrainingResult::new(&method, &config, &sentences, &trained, out, seconds());
                (trained, result)
            }
        };
        Ok((trained, sentences.counts().to_vec(), result))
    })?;
    let (trained, counts, result) = trained;
    Ok((table(py, trained.vectors)?, counts, dictionary(py, &result)?))
}

/// Reads vectors of any format.
#[pyfunction]
fn read_vectors(py: Python<'_>, path: PathBuf, limit: Option<usize>) -> PyResult<Table<'_>> {
    let vectors = work::run(py, usize::MAX, move |_| {
        Ok(formats::read(&path, ReadOptions { format: None, limit })?)
    })?;
    table(py, vectors)
}

/// Writes vectors in the format that the name of the file says.
#[pyfunction]
fn write_vectors(
    py: Python<'_>,
    path: PathBuf,
    words: Vec<String>,
    vectors: &Bound<'_, PyAny>,
    force: bool,
) -> PyResult<()> {
    let matrix = input::matrix("vectors", vectors)?;
    work::run(py, usize::MAX, move |_| {
        files::check_new_file(&path, force)?;
        formats::check_name(&path)?;
        let dim = matrix.cols();
        let vectors = WordVectors::new(words, dim, matrix.into_values())?;
        Ok(formats::write(&path, &vectors, None)?)
    })
}
