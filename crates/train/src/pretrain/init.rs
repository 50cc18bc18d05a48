//! Continued pretraining: a run that begins with the weights and the vocabulary of a model that there is
//! already, a run or a Hugging Face checkpoint.

use std::path::Path;

use encoder::{ConfigError, EncoderConfig};
use models::{PretrainedModel, VOCABULARY_FOLDER};
use tensor::{Device, Params};
use terms::Preset;
use text::Vocabulary;
use toml::{Table, Value};

use super::PretrainError;
use super::config::{DERIVED, PretrainConfig};
use super::data::corpora;

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

/// Puts the vocabulary of the model that a run begins with into the run's folder, unless there is one.
pub(super) fn put_vocabulary(
    config: &PretrainConfig,
    model: &PretrainedModel,
    folder: &Path,
) -> Result<(), PretrainError> {
    let folder = folder.join(VOCABULARY_FOLDER);
    if folder.is_dir() {
        return Ok(());
    }
    let vocabulary = vocabulary(config, &model.vocabulary)?;
    vocabulary.save(&folder, false)?;
    Ok(())
}

/// The vocabulary of a model for the languages of a run, with the counts of its text.
fn vocabulary(config: &PretrainConfig, own: &Vocabulary) -> Result<Vocabulary, PretrainError> {
    let vocabulary = own.for_languages(&config.languages)?;
    if !vocabulary.languages().eq(&config.languages) {
        let of = vocabulary.languages().collect::<Vec<_>>().join(", ");
        let reason =
            format!("is a model of {of}; give the text of the same languages in the same order");
        return Err(ConfigError::new("init", reason).into());
    }
    let corpora = corpora(config, config.text.preparers_of(&vocabulary, &config.languages)?)?;
    Ok(vocabulary.counting(&corpora, &mut |_, _| {})?.0)
}

/// Copies the weights of a model, each by its name.
pub(super) fn copy_weights(
    model: &PretrainedModel,
    params: &mut Params,
) -> Result<(), ConfigError> {
    let refuse = |name: &str| {
        let reason = format!(
            "weights `{name}` are not in both the model and the encoder that is asked for, or of another \
             shape; leave the keys of `encoder` as they are in the model"
        );
        Err(ConfigError::new("init", reason))
    };
    let names = model.params.ids().map(|id| model.params.name(id));
    if let Some(unused) = names.into_iter().find(|name| params.find(name).is_none()) {
        return refuse(unused);
    }
    for id in params.ids() {
        let name = params.name(id).to_owned();
        let other = model.params.find(&name).map(|id| model.params.value(id));
        let Some(other) = other.filter(|other| other.shape() == params.value(id).shape()) else {
            return refuse(&name);
        };
        params.value_mut(id).write(&other.to_vec());
    }
    Ok(())
}
