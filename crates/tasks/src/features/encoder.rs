//! Features of a pretrained encoder that is fine-tuned with the head (Devlin et al. 2019).

use std::collections::BTreeSet;
use std::path::Path;

use ::encoder::{EncoderParam, ParamGroup, Request};
use models::PretrainedModel;
use serde_json::{Value, json};
use shift::means::MeanVectors;
use tensor::{Device, Params, Tape, Tensor, Var};
use text::{EncodedWords, SubwordEncoders};

use super::{FeatureInput, Features, InputForm, TokenSource};
use crate::error::{Error, Result};

/// A pretrained encoder, with whose weights every setting starts.
pub struct EncoderFeatures {
    pretrained: PretrainedModel,
    tokenizers: WordTokenizers,
    /// Layers that every setting starts with new weights of.
    new_layers: BTreeSet<usize>,
}

/// The tokenizer of each language of a vocabulary.
pub(super) struct WordTokenizers(Vec<SubwordEncoders>);

impl WordTokenizers {
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

/// Tells the weights of layers that begin anew from those that pretraining with the same seed began with: given back, these would
/// still fit the layers around them, which grew from that beginning.
const REINIT_SEED: u64 = 0x7265_696e_6974;

impl EncoderFeatures {
    /// Opens the model of a run's folder.
    pub fn open(folder: &Path, device: &Device) -> Result<Self> {
        let pretrained = PretrainedModel::open(folder, device)?;
        let tokenizers = WordTokenizers::of(&pretrained);
        Ok(Self { pretrained, tokenizers, new_layers: BTreeSet::new() })
    }

    /// The same with new weights in some layers, drawn by the seed of each setting.
    pub fn reinitializing(self, layers: BTreeSet<usize>) -> Result<Self> {
        self.check_layers(&layers, "initialised anew")?;
        Ok(Self { new_layers: layers, ..self })
    }

    /// Refuses layers that the encoder does not have.
    pub fn check_layers(&self, layers: &BTreeSet<usize>, doing: &str) -> Result<()> {
        let deepest = self.pretrained.encoder.config().layers;
        match layers.iter().find(|&&layer| layer > deepest) {
            None => Ok(()),
            Some(layer) => Err(Error::request(
                format!("layer {layer} is to be {doing}, but the encoder has {deepest}"),
                format!("name layers from 1 to {deepest}"),
            )),
        }
    }
}

/// A copy of weights, under the same names and ids.
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

impl TokenSource for EncoderFeatures {
    fn dim(&self) -> usize {
        self.pretrained.encoder.config().dim
    }

    fn longest(&self) -> usize {
        self.pretrained.encoder.config().positions
    }

    fn layers(&self) -> Option<usize> {
        Some(self.pretrained.encoder.config().layers)
    }

    fn means(&self, file: &Path) -> Result<MeanVectors> {
        Ok(MeanVectors::open(file, &self.pretrained)?)
    }

    fn input(&self) -> InputForm {
        InputForm::of(&self.pretrained)
    }

    fn language(&self, name: &str) -> Result<usize> {
        Ok(self.pretrained.vocabulary.language(name)?)
    }

    fn encode(&self, language: usize, words: &[&str]) -> EncodedWords {
        self.tokenizers.encode(&self.pretrained, language, words)
    }

    fn encode_text(&self, language: usize, text: &str) -> Vec<u32> {
        self.tokenizers.encode_text(&self.pretrained, language, text)
    }

    fn metadata(&self) -> Value {
        json!({ "encoder": self.pretrained.fingerprint })
    }
}

impl Features for EncoderFeatures {
    fn source(&self) -> &dyn TokenSource {
        self
    }

    /// What is separate for a language is never trained: the other languages' parts would stay behind.
    fn start(&self, seed: u64, layers: Option<&BTreeSet<usize>>) -> Result<Params> {
        let mut params = copy(&self.pretrained.params);
        if !self.new_layers.is_empty() {
            self.pretrained.encoder.reinitialize(&mut params, &self.new_layers, seed ^ REINIT_SEED);
        }
        let trainable = |param: &EncoderParam| match (param.language, param.group()) {
            (Some(_), _) => false,
            (None, ParamGroup::Embeddings) => layers.is_none(),
            (None, ParamGroup::Layer(number)) => {
                layers.is_none_or(|layers| layers.contains(&number))
            }
            (None, ParamGroup::Head) => true,
        };
        self.pretrained.encoder.set_trainable(&mut params, trainable);
        Ok(params)
    }

    fn vectors(&self, tape: &mut Tape<'_>, input: &FeatureInput<'_>) -> Var {
        let batch = self.pretrained.batch(input.language, input.sequences.iter().copied());
        let request = Request { rows: Some(&input.rows), ..Request::default() };
        let model = &self.pretrained.encoder;
        let encoded = match input.start {
            None => model.encode(tape, &batch, request),
            Some(start) => {
                let states = start.shifted(self.pretrained.params.device());
                model.encode_from(tape, &batch, start.layer, states, request)
            }
        };
        encoded.output
    }

    fn states(&self, tape: &mut Tape<'_>, input: &FeatureInput<'_>, layer: usize) -> Tensor {
        let batch = self.pretrained.batch(input.language, input.sequences.iter().copied());
        let request = Request { until: Some(layer), ..Request::default() };
        let encoded = self.pretrained.encoder.encode(tape, &batch, request);
        tape.take_value(encoded.hidden[layer])
    }

    fn metadata(&self) -> Value {
        TokenSource::metadata(self)
    }
}
