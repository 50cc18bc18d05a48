//! Vectors of a layer of frozen encoders, mapped into another's space where a map is given.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ::encoder::Request;
use arrays::npy;
use models::PretrainedModel;
use serde_json::{Value, json};
use shift::means::MeanVectors;
use tensor::{Device, Mode, Tape, Tensor};
use text::EncodedWords;

use super::encoder::WordTokenizers;
use super::frozen::FrozenVectors;
use super::{FeatureInput, InputForm, TokenSource};
use crate::error::{Error, Result};

/// A layer of an encoder for each language.
pub struct LayerVectors {
    models: Vec<FrozenEncoder>,
    languages: Vec<LanguageEncoder>,
    layer: usize,
    dim: usize,
    device: Device,
}

struct FrozenEncoder {
    /// A tape borrows the weights even where it changes none.
    pretrained: Mutex<PretrainedModel>,
    tokenizers: WordTokenizers,
    fingerprint: String,
}

struct LanguageEncoder {
    name: String,
    model: usize,
    number: usize,
    /// dim x dim, to be multiplied from the right.
    map: Option<Tensor>,
}

impl LayerVectors {
    /// Opens the encoder of each language; languages may share one. A map W, where a language has
    /// one, takes each of its vectors x to W x.
    pub fn open(
        folders: &BTreeMap<String, PathBuf>,
        layer: usize,
        maps: &BTreeMap<String, PathBuf>,
        device: &Device,
    ) -> Result<Self> {
        let mut opened: Vec<&PathBuf> = Vec::new();
        let (mut models, mut languages) = (Vec::new(), Vec::new());
        for (name, folder) in folders {
            let model = match opened.iter().position(|known| *known == folder) {
                Some(known) => known,
                None => {
                    opened.push(folder);
                    models.push(FrozenEncoder::open(folder, layer, device)?);
                    models.len() - 1
                }
            };
            let pretrained = models[model].pretrained.get_mut();
            let pretrained = pretrained.unwrap_or_else(PoisonError::into_inner);
            let number = pretrained.vocabulary.language(name)?;
            let dim = pretrained.encoder.config().dim;
            let map = maps.get(name).map(|path| read_map(path, dim, device)).transpose()?;
            languages.push(LanguageEncoder { name: name.clone(), model, number, map });
        }
        if let Some(name) = maps.keys().find(|name| !folders.contains_key(*name)) {
            let remedy = "map a language that has a model";
            return Err(Error::request(format!("a map for {name}, which has no model"), remedy));
        }
        let dim = width(&models)?;
        Ok(Self { models, languages, layer, dim, device: device.clone() })
    }
}

/// The width of all encoders, which must be the same, since one head reads them all.
fn width(models: &[FrozenEncoder]) -> Result<usize> {
    let mut widths = models.iter().map(|model| model.with(|opened| opened.encoder.config().dim));
    let first = widths.next().unwrap_or(0);
    match widths.all(|width| width == first) {
        true => Ok(first),
        false => Err(Error::request(
            "the encoders are of different widths",
            "use encoders that were trained with the same encoder.dim",
        )),
    }
}

impl FrozenEncoder {
    fn open(folder: &Path, layer: usize, device: &Device) -> Result<Self> {
        let pretrained = PretrainedModel::open(folder, device)?;
        let deepest = pretrained.encoder.config().layers;
        if layer > deepest {
            let reason = format!("layer {layer} of {}, which has {deepest}", folder.display());
            let remedy = format!("name a layer from 0, the embeddings, to {deepest}");
            return Err(Error::request(reason, remedy));
        }
        let tokenizers = WordTokenizers::of(&pretrained);
        let fingerprint = pretrained.fingerprint.clone();
        Ok(Self { pretrained: Mutex::new(pretrained), tokenizers, fingerprint })
    }

    fn with<T>(&self, work: impl FnOnce(&mut PretrainedModel) -> T) -> T {
        work(&mut self.pretrained.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Reads W and transposes it, since vectors are rows.
fn read_map(path: &Path, dim: usize, device: &Device) -> Result<Tensor> {
    let array: npy::Array<f32> = npy::read(path)?.finite(path)?;
    if array.shape != [dim, dim] {
        let reason = format!("a map of shape {:?}, but vectors of {dim} columns", array.shape);
        return Err(Error::file(path, reason, "learn the map on the same encoders"));
    }
    let transposed: Vec<f32> =
        (0..dim * dim).map(|at| array.values[at % dim * dim + at / dim]).collect();
    Ok(device.tensor(dim, dim, &transposed))
}

impl TokenSource for LayerVectors {
    fn dim(&self) -> usize {
        self.dim
    }

    fn longest(&self) -> usize {
        let longest =
            |model: &FrozenEncoder| model.with(|pretrained| pretrained.encoder.config().positions);
        self.models.iter().map(longest).min().unwrap_or(0)
    }

    /// A shift after the layer that is read would not be seen.
    fn layers(&self) -> Option<usize> {
        Some(self.layer)
    }

    /// Means are of one encoder.
    fn means(&self, file: &Path) -> Result<MeanVectors> {
        match self.models.as_slice() {
            [model] => Ok(model.with(|pretrained| MeanVectors::open(file, pretrained))?),
            _ => Err(Error::request(
                "the languages are read by different encoders, which share no mean vectors",
                "shift within one encoder: give one model for all languages",
            )),
        }
    }

    /// The vocabularies of all encoders have the same special tokens.
    fn input(&self) -> InputForm {
        self.models[0].with(|pretrained| InputForm::of(pretrained))
    }

    fn language(&self, name: &str) -> Result<usize> {
        self.languages.iter().position(|own| own.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.languages.iter().map(|own| own.name.as_str()).collect();
            let remedy = format!("add one to `models`; there are {}", names.join(", "));
            Error::request(format!("no encoder for {name}"), remedy)
        })
    }

    fn encode(&self, language: usize, words: &[&str]) -> EncodedWords {
        let own = &self.languages[language];
        let model = &self.models[own.model];
        model.with(|pretrained| model.tokenizers.encode(pretrained, own.number, words))
    }

    fn encode_text(&self, language: usize, text: &str) -> Vec<u32> {
        let own = &self.languages[language];
        let model = &self.models[own.model];
        model.with(|pretrained| model.tokenizers.encode_text(pretrained, own.number, text))
    }

    fn metadata(&self) -> Value {
        let models: Vec<&str> =
            self.models.iter().map(|model| model.fingerprint.as_str()).collect();
        json!({ "layer": self.layer, "encoders": models })
    }
}

impl FrozenVectors for LayerVectors {
    fn vectors(&self, input: &FeatureInput<'_>) -> Tensor {
        let own = &self.languages[input.language];
        let hidden = self.states(input, self.layer);
        let Some(map) = &own.map else { return hidden };
        self.device.matmul(&hidden, map)
    }

    fn states(&self, input: &FeatureInput<'_>, layer: usize) -> Tensor {
        let own = &self.languages[input.language];
        self.models[own.model].with(|pretrained| {
            let batch = pretrained.batch(own.number, input.sequences.iter().copied());
            let PretrainedModel { encoder: model, params, .. } = pretrained;
            let mut tape = Tape::new(params, Mode::Evaluate);
            let request = Request { until: Some(layer), ..Request::default() };
            let encoded = match input.start {
                None => model.encode(&mut tape, &batch, request),
                Some(start) => {
                    let states = start.shifted(&self.device);
                    model.encode_from(&mut tape, &batch, start.layer, states, request)
                }
            };
            let last = *encoded.hidden.last().expect("at least the states that were started from");
            tape.take_value(last)
        })
    }
}
