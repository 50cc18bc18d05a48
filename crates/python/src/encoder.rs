//! Encoders, kept loaded: hidden states, tokens, predictions, language mean vectors and mean difference shift.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use models::masked::predict_masked;
use models::sentences::{self, EncodedLines, encode_lines};
use models::states::Pooling;
use models::{PretrainedModel, SentenceVectors};
use numpy::{PyArray1, PyArray3, PyArrayMethods};
use pyo3::prelude::*;
use shift::means::{MeanVectors, compute};
use shift::shifter::{ShiftKind, Shifter};
use shift::token_sets::TokenSets;
use shift::translate::{ShiftDirection, TranslatedSentence, TranslationResult, translate};
use tensor::Device;
use text::{Corpus, LineRules, Selection, Subset, TextSource, TsvColumns};

use crate::errors::Failure;
use crate::values::dictionary;
use crate::work::{self, Watched};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(sentences_of, module)?)?;
    module.add_class::<LoadedModel>()?;
    module.add_class::<LoadedMeans>()
}

/// A model that was opened. Calls take turns.
#[pyclass(frozen, module = "isogloss._isogloss")]
struct LoadedModel {
    model: Arc<Mutex<PretrainedModel>>,
    device: Device,
    #[pyo3(get)]
    name: String,
    #[pyo3(get)]
    languages: Vec<String>,
    #[pyo3(get)]
    any_language: bool,
    #[pyo3(get)]
    layers: usize,
    /// Where a shift is made, if nothing else is asked for.
    #[pyo3(get)]
    shifted_layer: usize,
    #[pyo3(get)]
    dim: usize,
    #[pyo3(get)]
    fingerprint: String,
    #[pyo3(get)]
    has_mlm_head: bool,
    #[pyo3(get)]
    on: String,
}

/// Language mean vectors of a model.
#[pyclass(frozen, module = "isogloss._isogloss")]
struct LoadedMeans {
    means: Arc<MeanVectors>,
    device: Device,
}

/// Vectors of sentences, tokens of each, how many sentences were truncated, and the share of unknown subwords.
type Encoded<'py> = (Bound<'py, PyArray3<f32>>, Vec<usize>, usize, f64);

fn lock(model: &Mutex<PretrainedModel>) -> MutexGuard<'_, PretrainedModel> {
    // What a forward pass leaves behind when it unwinds is no part of the model.
    model.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LoadedModel {
    /// Runs work with the model; `size` as for [`work::run`].
    fn with<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut PretrainedModel, &Device, &Watched) -> Result<T, Failure>
        + Send
        + 'static,
    ) -> PyResult<T> {
        let (model, device) = (Arc::clone(&self.model), self.device.clone());
        work::run(py, usize::MAX, move |watched| work(&mut lock(&model), &device, watched))
    }
}

#[pymethods]
impl LoadedModel {
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf, device: String, threads: usize) -> PyResult<Self> {
        let name = path.display().to_string();
        let (model, device) = work::run(py, usize::MAX, move |_| {
            let device = work::device(&device, threads)?;
            Ok((PretrainedModel::open(&path, &device)?, device))
        })?;
        let config = model.encoder.config();
        let languages: Vec<String> = model.vocabulary.languages().map(str::to_owned).collect();
        Ok(Self {
            name,
            any_language: model.vocabulary.takes_any_language(),
            languages,
            layers: config.layers,
            shifted_layer: lab::spaces::translating_layer(config.layers),
            dim: config.dim,
            fingerprint: model.fingerprint.clone(),
            has_mlm_head: model.has_mlm_head,
            on: format!("{device:?}"),
            model: Arc::new(Mutex::new(model)),
            device,
        })
    }

    /// layers x rows x dim.
    fn encode<'py>(
        &self,
        py: Python<'py>,
        texts: Vec<String>,
        language: String,
        layers: Vec<usize>,
        pool: &str,
        prompt: Option<String>,
    ) -> PyResult<Encoded<'py>> {
        let pooling = match pool {
            "mean" => Some(Pooling::Mean),
            "first" => Some(Pooling::First),
            "last" => Some(Pooling::Last),
            "weighted" => Some(Pooling::Weighted),
            "none" => Some(Pooling::None),
            "own" => None,
            _ => {
                let message =
                    format!("there is no `{pool}`; give mean, first, last, weighted, none or own");
                return Err(Failure::usage("pool", message).into());
            }
        };
        let count = layers.len();
        let encoded = self.with(py, move |model, _, watched| {
            let show = |done, all| watched.show("sentences", done as u64, all as u64, "");
            let place = (language.as_str(), "texts");
            model.set_sentence_vectors(pooling, prompt.as_deref())?;
            let encoded = encode_lines(model, place, &texts, &layers, show);
            model.sentence_vectors = SentenceVectors::default();
            Ok(encoded?)
        })?;
        let EncodedLines { layers, lengths, truncated, unknown_share } = encoded;
        let rows = if pool == "none" { lengths.iter().sum() } else { lengths.len() };
        let dim = layers.first().map_or(0, Vec::len) / rows.max(1);
        if layers.iter().any(|values| values.len() != rows * dim) {
            let message = "vectors have more columns at one layer than at another; name one layer";
            return Err(Failure::usage("layers", message.to_owned()).into());
        }
        // One layer is handed over as it is; several become one array.
        let values = match <[Vec<f32>; 1]>::try_from(layers) {
            Ok([layer]) => layer,
            Err(layers) => layers.concat(),
        };
        let array = PyArray1::from_vec(py, values).reshape([count, rows, dim])?;
        Ok((array, lengths, truncated, unknown_share))
    }

    /// The subwords of each text, special tokens left out.
    fn tokens(
        &self,
        py: Python<'_>,
        texts: Vec<String>,
        language: String,
    ) -> PyResult<Vec<Vec<String>>> {
        self.with(py, move |model, _, _| {
            let mut reader = model.reader(&language)?;
            let vocabulary = &model.vocabulary;
            let subword = |&id: &u32| vocabulary.subword(id).unwrap_or_default().to_owned();
            let tokens = texts.iter().map(|text| {
                let ids = reader.sentence(text).ids;
                ids[vocabulary.frame().within(0..ids.len())].iter().map(subword).collect()
            });
            Ok(tokens.collect())
        })
    }

    /// For each masked position the most likely tokens: token, id, probability.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        text: String,
        language: String,
        top: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let predicted =
            self.with(py, move |model, _, _| Ok(predict_masked(model, &language, &text, top)?))?;
        dictionary(py, &predicted)
    }

    /// The mean vectors of languages, from files of text.
    fn means(
        &self,
        py: Python<'_>,
        texts: Vec<(String, Vec<String>)>,
        lines: bool,
        take: (Option<u64>, Option<u64>, u64),
    ) -> PyResult<LoadedMeans> {
        let means = self.with(py, move |model, device, watched| {
            let corpora = texts
                .iter()
                .map(|(language, files)| corpus(model, language, files, lines, take))
                .collect::<Result<Vec<_>, Failure>>()?;
            let mut show = |doing: &str, at: text::ReadProgress| {
                watched.show(doing, at.bytes >> 10, at.total >> 10, "KiB");
            };
            Ok(device.run(|| compute(model, &corpora, &mut show))?)
        })?;
        Ok(LoadedMeans { means: Arc::new(means), device: self.device.clone() })
    }

    /// Mean vectors that were saved.
    fn load_means(&self, py: Python<'_>, path: PathBuf) -> PyResult<LoadedMeans> {
        let means = self.with(py, move |model, _, _| Ok(MeanVectors::open(&path, model)?))?;
        Ok(LoadedMeans { means: Arc::new(means), device: self.device.clone() })
    }

    /// Token translations of a sentence, as `isogloss shift translate --json` prints them.
    fn shift<'py>(
        &self,
        py: Python<'py>,
        means: &LoadedMeans,
        texts: Vec<String>,
        languages: (String, String),
        place: (usize, String, Vec<f32>),
    ) -> PyResult<Bound<'py, PyAny>> {
        let (means, (from, to), (layer, kind, alphas)) =
            (Arc::clone(&means.means), languages, place);
        let kind = ShiftKind::parse(&kind).map_err(|kinds| {
            Failure::usage("shift_kind", format!("there is no `{kind}`; give {kinds}"))
        })?;
        let result = self.with(py, move |model, device, watched| {
            let sets = TokenSets::of_means(&means);
            let direction = ShiftDirection::new(&means, &sets, &from, &to)?;
            let mut sentences = Vec::new();
            for (number, sentence) in texts.iter().enumerate() {
                terms::interrupt::check();
                let outputs =
                    device.run(|| translate(model, &direction, layer, kind, &alphas, sentence))?;
                sentences.push(TranslatedSentence {
                    sentence: sentence.clone(),
                    outputs,
                    reference: None,
                });
                watched.show("sentences", number as u64 + 1, texts.len() as u64, "");
            }
            Ok(TranslationResult { from: from.clone(), to: to.clone(), layer, kind, sentences })
        })?;
        dictionary(py, &result)
    }
}

/// The sentences of a file, as `isogloss encode` reads them.
#[pyfunction]
fn sentences_of(py: Python<'_>, path: String) -> PyResult<Vec<String>> {
    work::run(py, usize::MAX, move |_| {
        let source = sentences::open(&[path], &TsvColumns::default())?;
        let lines = sentences::lines(&source).collect::<Result<_, _>>()?;
        Ok(lines)
    })
}

/// Text of a language as the model's vocabulary prepares it.
fn corpus(
    model: &PretrainedModel,
    language: &str,
    files: &[String],
    lines: bool,
    (limit, sample_size, seed): (Option<u64>, Option<u64>, u64),
) -> Result<Corpus, Failure> {
    let number = model.vocabulary.language(language)?;
    let preparer = model.vocabulary.preparer(number);
    let take = match (limit, sample_size) {
        (Some(count), _) => Subset::First(count),
        (_, Some(count)) => Subset::Sample(count),
        _ => Subset::All,
    };
    Ok(Corpus {
        source: TextSource::new(language, files)?,
        preparer: preparer.splitting(preparer.preparation().split && !lines),
        rules: LineRules::default(),
        selection: Selection { take, seed, ..Selection::default() },
    })
}

#[pymethods]
impl LoadedMeans {
    #[getter]
    fn languages(&self) -> Vec<String> {
        self.means.languages.iter().map(|language| language.name.clone()).collect()
    }

    fn save(&self, py: Python<'_>, path: PathBuf, force: bool) -> PyResult<()> {
        let (means, device) = (Arc::clone(&self.means), self.device.clone());
        work::run(py, usize::MAX, move |_| {
            files::check_new_file(&path, force)?;
            Ok(means.save(&path, &device)?)
        })
    }

    /// What `isogloss shift means --json` prints.
    fn summary<'py>(&self, py: Python<'py>, out: PathBuf) -> PyResult<Bound<'py, PyAny>> {
        dictionary(py, &self.means.summary(&out))
    }

    /// The mean vector of a language at each layer: layers x dim.
    fn vectors<'py>(&self, py: Python<'py>, language: &str) -> PyResult<Bound<'py, PyAny>> {
        let number = self.means.language(language).map_err(Failure::from)?;
        let dim = self.means.dim();
        let layers = &self.means.languages[number].layers;
        let values = layers.iter().flat_map(|layer| &layer[..dim]).copied().collect();
        Ok(crate::spaces::rows_of(py, values, dim)?.into_any())
    }

    /// The difference of two languages' mean vectors after a layer, as `isogloss shift difference` writes it.
    fn difference<'py>(
        &self,
        py: Python<'py>,
        from: &str,
        to: &str,
        layer: usize,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let make = || {
            let (from, to) = (self.means.language(from)?, self.means.language(to)?);
            Shifter::new(&self.means, from, to, layer, ShiftKind::Mean)
        };
        let shifter = make().map_err(Failure::from)?;
        Ok(PyArray1::from_vec(py, shifter.vector(0).to_vec()))
    }
}
