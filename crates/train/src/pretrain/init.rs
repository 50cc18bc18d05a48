//! Continued pretraining: a run that begins with the weights and the vocabulary of a model that there is
//! already, a run or a Hugging Face checkpoint, and may give it languages that it does not know: new subwords
//! ([`Vocabulary::with_language`]) with new embeddings, trained with everything else or alone (Artetxe et al. 2020).

use std::path::Path;

use encoder::{ConfigError, Encoder, EncoderConfig, EncoderParam, ParamRole};
use files::At;
use models::{PretrainedModel, VOCABULARY_FOLDER};
use serde::{Deserialize, Serialize};
use tensor::random::{Key, normals};
use tensor::{Device, Params, Tensor};
use terms::Preset;
use text::{BpeSettings, ExtendedVocabulary, LanguageText, Vocabulary, WordCounts};
use toml::{Table, Value};

use super::PretrainError;
use super::config::{DERIVED, PretrainConfig, TrainableWeights};
use super::data::{RunData, corpora, corpus};

/// The model that a run begins with, on a device.
pub(super) fn open(folder: &Path, device: &Device) -> Result<PretrainedModel, ConfigError> {
    let model = PretrainedModel::open(folder, device);
    let model = model.map_err(|error| ConfigError::new("init", error.to_string()))?;
    if model.has_mlm_head {
        return Ok(model);
    }
    let reason = format!("{} has no MLM head, which pretraining trains", folder.display());
    Err(ConfigError::new("init", reason))
}

/// The keys of the encoder of a model that a run begins with; none if it begins anew.
pub(super) fn encoder_keys(preset: Preset, table: &Table) -> Result<Option<Table>, ConfigError> {
    let Some(folder) = table.get("init").and_then(Value::as_str) else { return Ok(None) };
    // What a preset changes in vocabulary or encoder is the model's already, or never will be.
    let fits = preset.sentences(terms::Scale::Tiny).is_some()
        || matches!(
            preset,
            Preset::Default
                | Preset::WikiCc
                | Preset::ExtraAnchors
                | Preset::Monolingual
                | Preset::Window20
        );
    if !fits {
        let reason = format!(
            "vocabulary and encoder are those of {folder}, and preset `{preset}` has its own; take another \
             preset, or leave init out"
        );
        return Err(ConfigError::new("init", reason));
    }
    if let Some(key) = ["folder", "file"].into_iter().find(|&key| has_vocabulary(table, key)) {
        let reason = format!("the vocabulary is that of {folder}; leave it out");
        return Err(ConfigError::new(format!("vocabulary.{key}"), reason));
    }
    let device = Device::cpu(0).map_err(|error| ConfigError::new("init", error.to_string()))?;
    let model = open(Path::new(folder), &device)?;
    Ok(Some(as_keys(model.encoder.config())))
}

fn has_vocabulary(table: &Table, key: &str) -> bool {
    table.get("vocabulary").is_some_and(|vocabulary| vocabulary.get(key).is_some())
}

fn as_keys(config: &EncoderConfig) -> Table {
    let text = toml::to_string(config).expect("a configuration is valid TOML");
    let mut table: Table = text.parse().expect("just written");
    DERIVED.iter().for_each(|&key| _ = table.remove(key));
    table
}

/// What a model was given with its new languages, as a file of the run: what is new is known when the run is resumed, or
/// when another rank makes the same weights.
#[derive(Serialize, Deserialize)]
struct AddedSubwords {
    /// Subwords of the model before.
    known_subwords: usize,
    /// Languages of the model before.
    known_languages: usize,
    /// For each new subword, the known ones that it consists of; none where it has characters that were not known.
    parts: Vec<Vec<u32>>,
}

impl AddedSubwords {
    const FILE: &str = "added.json";

    fn write(&self, folder: &Path) -> Result<(), PretrainError> {
        let text = serde_json::to_string(self).expect("plain data");
        Ok(files::write(&folder.join(Self::FILE), files::sealed::seal_json(&text))?)
    }

    fn read(folder: &Path) -> Result<Self, PretrainError> {
        let path = folder.join(Self::FILE);
        let text = std::fs::read_to_string(&path).at(&path, "read")?;
        let altered = |reason: String| {
            let remedy = "restore the file, or begin the run anew";
            PretrainError::Input(text::Error::file(&path, reason, remedy))
        };
        files::sealed::read_json(&text).map_err(altered)
    }

    /// The known subwords that a new one consists of.
    fn parts(&self, id: usize) -> &[u32] {
        let new = id.checked_sub(self.known_subwords).and_then(|new| self.parts.get(new));
        new.map_or(&[], Vec::as_slice)
    }
}

/// Puts the vocabulary of the model that a run begins with into the run's folder, unless there is one: with new
/// subwords where the model is given languages.
pub(super) fn put_vocabulary(
    config: &PretrainConfig,
    model: &PretrainedModel,
    folder: &Path,
    watch: &mut dyn FnMut(&str),
) -> Result<(), PretrainError> {
    let place = folder.join(VOCABULARY_FOLDER);
    if place.is_dir() {
        return Ok(());
    }
    let separate = model.encoder.config().separate.tokens;
    let mut vocabulary = known_vocabulary(config, &model.vocabulary, separate)?;
    if let Some(add) = &config.add {
        let mut added = AddedSubwords {
            known_subwords: vocabulary.len(),
            known_languages: vocabulary.languages().len(),
            parts: Vec::new(),
        };
        for language in &add.languages {
            let extended = add_language(config, &vocabulary, language, watch)?;
            vocabulary = extended.vocabulary;
            added.parts.extend(extended.parts);
        }
        added.write(folder)?;
    }
    vocabulary.save(&place, false)?;
    Ok(())
}

/// The vocabulary of a model with the counts of the run's text, for the languages that the model knows.
fn known_vocabulary(
    config: &PretrainConfig,
    own: &Vocabulary,
    separate: bool,
) -> Result<Vocabulary, PretrainError> {
    let known: Vec<String> =
        config.languages.iter().filter(|language| !config.is_added(language)).cloned().collect();
    let vocabulary = own.for_languages(&known)?;
    let of = || vocabulary.languages().collect::<Vec<_>>().join(", ");
    let has = |language: &String| vocabulary.languages().any(|one| one == language);
    if let Some(unknown) = known.iter().find(|language| !has(language)) {
        let reason = format!(
            "is a model of {}, and not of {unknown}; add the language, or give text of those",
            of()
        );
        return Err(ConfigError::new("init", reason).into());
    }
    if let Some(added) = config.add.iter().flat_map(|add| &add.languages).find(|one| has(one)) {
        let reason = format!("the model knows {} already; give text of {added} as it is", of());
        return Err(ConfigError::new("add.languages", reason).into());
    }
    // Where embeddings are separate, their rows are those of the counts that there are.
    if known.is_empty() || separate {
        return Ok(vocabulary);
    }
    let corpora = corpora(config, config.text.preparers_of(&vocabulary, &known)?)?;
    Ok(vocabulary.counting(&corpora, &mut |_, _| {})?.0)
}

fn add_language(
    config: &PretrainConfig,
    vocabulary: &Vocabulary,
    language: &str,
    watch: &mut dyn FnMut(&str),
) -> Result<ExtendedVocabulary, PretrainError> {
    let preparer = config.text.preparer_like(vocabulary.preparer_for_new(language)?)?;
    let corpus = corpus(config, preparer)?;
    watch(&format!("counting words of {language}"));
    let (words, _) = WordCounts::of(&corpus, &mut |_| {})?;
    let text = LanguageText { name: language.to_owned(), preparer: corpus.preparer, words };
    let merges = config.vocabulary.merges.unwrap_or(BpeSettings::default().merges);
    let extended = vocabulary.with_language(text, merges)?;
    let new = extended.vocabulary.len() - vocabulary.len();
    watch(&format!("{language}: {new} new subwords beside {}", vocabulary.len()));
    Ok(extended)
}

/// The encoder of a run: new, or with the weights of the model that it begins with; what is frozen is frozen.
pub(super) fn encoder(
    config: &PretrainConfig,
    folder: &Path,
    data: &RunData,
    init: Option<PretrainedModel>,
    device: &Device,
) -> Result<(Encoder, Params), PretrainError> {
    let mut params = Params::new(device);
    let encoder = Encoder::new(data.encoder_config(config), &mut params, config.seed)?;
    let added = config.add.as_ref().map(|_| AddedSubwords::read(folder)).transpose()?;
    if let Some(model) = &init {
        let copy = WeightCopy { model, encoder: &encoder, data, added: added.as_ref() };
        copy.copy(&mut params, config.seed)?;
    }
    let trainable = config.add.as_ref().map(|add| add.trainable);
    if let (Some(TrainableWeights::New), Some(added)) = (trainable, &added) {
        freeze_known(&encoder, &mut params, added);
    }
    Ok((encoder, params))
}

/// Freezes what the model had before: whole matrices, and the first rows of tables that have new ones behind.
fn freeze_known(encoder: &Encoder, params: &mut Params, added: &AddedSubwords) {
    let dim = encoder.config().dim;
    for param in encoder.params() {
        let is_new = param.language.is_some_and(|language| language >= added.known_languages);
        let frozen = match (param.language, param.role) {
            (None, ParamRole::TokenEmbedding | ParamRole::MlmDecoder) => added.known_subwords * dim,
            (None, ParamRole::MlmBias) => added.known_subwords,
            (None, ParamRole::LanguageEmbedding) => added.known_languages * dim,
            _ if is_new => 0,
            _ => params.value(param.id).len(),
        };
        if frozen == params.value(param.id).len() {
            params.set_trainable(param.id, false);
        } else {
            params.freeze_front(param.id, frozen);
        }
    }
}

/// From the weights of a model to those of a run's encoder, which may have more languages and subwords.
struct WeightCopy<'a> {
    model: &'a PretrainedModel,
    encoder: &'a Encoder,
    data: &'a RunData,
    added: Option<&'a AddedSubwords>,
}

impl WeightCopy<'_> {
    fn copy(&self, params: &mut Params, seed: u64) -> Result<(), ConfigError> {
        let names = self.model.params.ids().map(|id| self.model.params.name(id));
        // A language of any name has no weights of its own.
        if let Some(unused) = names.into_iter().find(|name| params.find(name).is_none()) {
            return Err(misfit(unused));
        }
        for param in self.encoder.params() {
            let name = params.name(param.id).to_owned();
            let source = self.source(param).ok_or_else(|| misfit(&name))?;
            let (shape, known) = (params.value(param.id).shape(), source.elements());
            let key = Key::named(seed, &format!("added/{name}"));
            let values = match param.role {
                _ if self.is_known(param) && source.shape() == shape => known.into_owned(),
                _ if self.added.is_none() => return Err(misfit(&name)),
                ParamRole::TokenEmbedding | ParamRole::MlmDecoder if source.cols() == shape.1 => {
                    self.rows(param, &known, shape, Some(key))
                }
                ParamRole::MlmBias => self.rows(param, &known, (shape.1, 1), None),
                ParamRole::LanguageEmbedding if source.cols() == shape.1 => {
                    let mean = mean_and_deviation(&known, shape.1).0;
                    let new = (source.rows()..shape.0).flat_map(|_| mean.iter().copied());
                    known.iter().copied().chain(new).collect()
                }
                _ if source.shape() == shape => known.into_owned(),
                _ => return Err(misfit(&name)),
            };
            params.value_mut(param.id).write(&values);
        }
        Ok(())
    }

    /// Whether a matrix is of a language that the model knows, or of all.
    fn is_known(&self, param: &EncoderParam) -> bool {
        let known = self.added.map_or(usize::MAX, |added| added.known_languages);
        param.language.is_none_or(|language| language < known)
    }

    /// The model's matrix that one of the encoder begins with: that of the same name or, of a new language, that of the
    /// model's first.
    fn source(&self, param: &EncoderParam) -> Option<&Tensor> {
        let language = if self.is_known(param) { param.language } else { Some(0) };
        let source = self.model.encoder.param(param.role, language)?;
        Some(self.model.params.value(source))
    }

    /// Rows for each subword of a table: those of known ones as they are, others the mean of the subwords that they
    /// consist of or, where these are not known, drawn from a normal distribution of the known rows' mean and deviation.
    fn rows(
        &self,
        param: &EncoderParam,
        known: &[f32],
        (rows, dim): (usize, usize),
        key: Option<Key>,
    ) -> Vec<f32> {
        let language = param.language.unwrap_or(0);
        let separate = param.language.is_some();
        let own = self.model.vocabulary.language_ids(0);
        let row_of = |id: u32| match separate {
            true => own.binary_search(&id).ok(),
            false => Some(id as usize).filter(|&row| row < self.model.vocabulary.len()),
        };
        let (mean, deviation) = mean_and_deviation(known, dim);
        let noise = key.map(|key| normals(key, 1.0, rows * dim));
        let mut values = Vec::with_capacity(rows * dim);
        for row in 0..rows {
            let id =
                self.data.token_ids().to_vocabulary(&self.data.vocabulary, language, row as u32);
            let parts = match row_of(id) {
                Some(known) => vec![known],
                None => self
                    .added
                    .map_or(&[][..], |added| added.parts(id as usize))
                    .iter()
                    .filter_map(|&part| row_of(part))
                    .collect(),
            };
            for col in 0..dim {
                let of_parts = parts.iter().map(|part| known[part * dim + col]);
                values.push(match (parts.len(), &noise) {
                    (1, _) => known[parts[0] * dim + col],
                    (0, Some(noise)) => mean[col] + deviation[col] * noise[row * dim + col],
                    (0, None) => mean[col],
                    (several, _) => of_parts.sum::<f32>() / several as f32,
                });
            }
        }
        values
    }
}

/// The mean and the standard deviation of each column.
fn mean_and_deviation(rows: &[f32], dim: usize) -> (Vec<f32>, Vec<f32>) {
    let count = (rows.len() / dim).max(1) as f64;
    let (mut sum, mut squares) = (vec![0.0; dim], vec![0.0; dim]);
    for row in rows.chunks_exact(dim) {
        for ((sum, square), &x) in sum.iter_mut().zip(&mut squares).zip(row) {
            *sum += f64::from(x);
            *square += f64::from(x) * f64::from(x);
        }
    }
    let mean: Vec<f64> = sum.iter().map(|sum| sum / count).collect();
    let deviation = squares.iter().zip(&mean).map(|(square, mean)| {
        let variance = (square / count - mean * mean).max(0.0);
        variance.sqrt() as f32
    });
    let deviation = deviation.collect();
    (mean.into_iter().map(|mean| mean as f32).collect(), deviation)
}

fn misfit(name: &str) -> ConfigError {
    let reason = format!(
        "weights `{name}` are not in both the model and the encoder that is asked for, or of another \
         shape; leave the keys of `encoder` as they are in the model"
    );
    ConfigError::new("init", reason)
}
