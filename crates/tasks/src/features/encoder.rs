//! Features of a pretrained encoder that is fine-tuned.

use std::collections::BTreeSet;
use std::path::Path;

use ::encoder::{Part, Place, Request};
use models::PretrainedModel;
use serde_json::{Value, json};
use shift::means::Means;
use tensor::{Device, Params, Tape, Var};
use text::{EncodedWords, SubwordEncoders};

use super::{Features, Input, Midway};
use crate::error::{Error, Result};

/// A pretrained encoder, whose weights are where every run starts.
pub struct EncoderFeatures {
    pretrained: PretrainedModel,
    words: Words,
}

/// Words as ids of a vocabulary.
pub(super) struct Words(Vec<SubwordEncoders>);

impl Words {
    pub(super) fn of(pretrained: &PretrainedModel) -> Self {
        let languages = 0..pretrained.vocabulary.languages().len();
        Self(languages.map(|language| pretrained.vocabulary.encoders(language)).collect())
    }

    /// The ids of words. Each is prepared as running text was when the vocabulary was made.
    pub(super) fn encode(
        &self,
        from: &PretrainedModel,
        language: usize,
        words: &[&str],
    ) -> EncodedWords {
        let preparer = from.vocabulary.preparer(language);
        let prepare = |word: &&str| {
            let mut prepared = String::new();
            preparer.prepare(word, &mut prepared);
            prepared
        };
        let prepared: Vec<String> = words.iter().map(prepare).collect();
        self.0[language].with(|encoder| encoder.encode_words(prepared.iter().map(String::as_str)))
    }

    pub(super) fn encode_text(
        &self,
        from: &PretrainedModel,
        language: usize,
        text: &str,
    ) -> Vec<u32> {
        let (mut prepared, mut ids) = (String::new(), Vec::new());
        from.vocabulary.preparer(language).prepare(text, &mut prepared);
        self.0[language].with(|encoder| encoder.encode(&prepared, &mut ids));
        ids
    }
}

impl EncoderFeatures {
    /// Opens the model of a run's folder.
    pub fn open(folder: &Path, device: &Device) -> Result<Self> {
        let pretrained = PretrainedModel::open(folder, device)?;
        let words = Words::of(&pretrained);
        Ok(Self { pretrained, words })
    }

    /// Refuses layers that the encoder does not have.
    pub fn check_layers(&self, layers: &BTreeSet<usize>) -> Result<()> {
        let deepest = self.pretrained.encoder.config().layers;
        match layers.iter().find(|&&layer| layer > deepest) {
            None => Ok(()),
            Some(layer) => Err(Error::request(
                format!("layer {layer} is to learn, but the encoder has {deepest}"),
                format!("name layers from 1 to {deepest}"),
            )),
        }
    }
}

/// A copy of weights, under the same names and numbers.
fn copy(params: &Params) -> Params {
    let device = params.device();
    let mut copy = Params::new(device);
    for id in params.ids() {
        let value = params.value(id);
        let value = device.tensor(value.rows(), value.cols(), &value.to_vec());
        copy.add(params.name(id), value);
    }
    copy
}

impl Features for EncoderFeatures {
    fn dim(&self) -> usize {
        self.pretrained.encoder.config().dim
    }

    fn longest(&self) -> usize {
        self.pretrained.encoder.config().positions
    }

    fn layers(&self) -> Option<usize> {
        Some(self.pretrained.encoder.config().layers)
    }

    fn means(&self, file: &Path) -> Result<Means> {
        Ok(Means::open(file, &self.pretrained)?)
    }

    fn frame(&self) -> (u32, u32) {
        self.pretrained.vocabulary.bos_eos()
    }

    fn language(&self, name: &str) -> Result<usize> {
        Ok(self.pretrained.vocabulary.language(name)?)
    }

    fn encode(&self, language: usize, words: &[&str]) -> EncodedWords {
        self.words.encode(&self.pretrained, language, words)
    }

    fn encode_text(&self, language: usize, text: &str) -> Vec<u32> {
        self.words.encode_text(&self.pretrained, language, text)
    }

    /// What a language has for itself never learns: it would leave the others behind.
    fn start(&self, _seed: u64, layers: Option<&BTreeSet<usize>>) -> Result<Params> {
        let mut params = copy(&self.pretrained.params);
        let learns = |part: Part| match (part.language, part.place) {
            (Some(_), _) => false,
            (None, Place::Embeddings) => layers.is_none(),
            (None, Place::Layer(number)) => layers.is_none_or(|layers| layers.contains(&number)),
            (None, Place::Head) => true,
        };
        self.pretrained.encoder.set_trainable(&mut params, learns);
        Ok(params)
    }

    fn vectors(&self, tape: &mut Tape<'_>, input: &Input<'_>) -> Var {
        let batch = self.pretrained.batch(input.language, input.sequences.iter().copied());
        let request = Request { rows: Some(&input.rows), ..Request::default() };
        let model = &self.pretrained.encoder;
        let encoded = match input.midway {
            None => model.encode(tape, &batch, request),
            Some(Midway { layer, states }) => {
                let device = self.pretrained.params.device();
                let states = device.tensor(batch.tokens.len(), self.dim(), states);
                model.encode_from(tape, &batch, layer, states, request)
            }
        };
        encoded.output
    }

    fn states(&self, tape: &mut Tape<'_>, input: &Input<'_>, layer: usize) -> Vec<f32> {
        let batch = self.pretrained.batch(input.language, input.sequences.iter().copied());
        let request = Request { until: Some(layer), ..Request::default() };
        let encoded = self.pretrained.encoder.encode(tape, &batch, request);
        tape.value(encoded.hidden[layer]).to_vec()
    }

    fn facts(&self) -> Value {
        json!({ "encoder": self.pretrained.fingerprint })
    }
}
