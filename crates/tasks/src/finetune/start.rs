//! How a run begins, and how it is resumed.

use std::fs;
use std::path::Path;

use files::{At, FolderKind, FolderLock, sealed};
use tensor::Device;
use train::pretrain::Observer;

use super::config::{FeaturesConfig, TransferConfig};
use super::digests::{InputDigests, missing};
use super::result::{RESULTS, TransferResult};
use super::run::{STATE, run};
use super::sets::LabelledSets;
use crate::error::{Error, Result};
use crate::features::{EncoderFeatures, Features, FrozenFeatures, LayerVectors, StaticVectors};

const CONFIG: &str = "config.toml";

/// What a run may hold.
const RUN: FolderKind = FolderKind {
    mark: CONFIG,
    files: &[
        "epoch-#.previous.safetensors",
        "epoch-#.safetensors",
        "inputs.json",
        "metrics.jsonl",
        "model.safetensors",
        "predictions/",
        "results.json",
        "state-#.previous.safetensors",
        "state-#.safetensors",
        "summary.json",
    ],
};

/// Begins a run in `folder`. A folder that is not empty is refused or, with `force`, cleared if it holds a
/// run of transfer. So many settings are trained side by side as there are devices, at least one; it changes
/// no result.
pub fn begin(
    config: &TransferConfig,
    folder: &Path,
    force: bool,
    devices: &[Device],
    observer: &mut (dyn Observer + Send),
) -> Result<TransferResult> {
    config.check()?;
    // Before the folder is touched, and again under its lock.
    check_folder(config, folder, force)?;
    let features = open_all(config, devices)?;
    let sets = LabelledSets::read(config, features[0].source())?;
    let lock = FolderLock::take(folder)?;
    check_folder(config, folder, force)?;
    if force {
        lock.clear(&RUN);
    }
    let new = lock.is_empty();
    let text = toml::to_string(config).expect("a configuration is valid TOML");
    let written = files::write(&folder.join(CONFIG), sealed::seal_toml(&text)).map_err(Error::from);
    let result = written
        .and_then(|()| InputDigests::of(config, &*features[0])?.write(folder))
        .and_then(|()| run(config, &features, &sets, folder, observer));
    if result.is_err() && new && !has_begun(folder) {
        // Where nothing was trained yet, what lies there only stands in the way of the corrected command.
        lock.discard(&RUN);
    }
    result
}

/// Whether an epoch of any setting is done.
fn has_begun(folder: &Path) -> bool {
    let left = |name: &str| name.starts_with(STATE) || name == RESULTS;
    let mut entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.any(|entry| entry.file_name().to_str().is_some_and(left))
}

/// Refuses a folder that holds anything but the beginning of this very run: a process that was killed
/// in its first epoch may have left one.
fn check_folder(config: &TransferConfig, folder: &Path, force: bool) -> Result<()> {
    if files::is_vacant(folder) {
        return Ok(());
    }
    let own = |saved: TransferConfig| {
        force || !has_begun(folder) && config.differences(&saved).is_empty()
    };
    if saved_config(folder).is_ok_and(own) {
        return if force { Ok(RUN.refuse_others(folder)?) } else { Ok(()) };
    }
    let remedy = match force {
        true => "only a run of transfer is replaced: name another folder",
        false => "resume it, replace it by force, or name another folder",
    };
    Err(Error::request(format!("{} is not empty", folder.display()), remedy))
}

/// The configuration of the run in `folder`.
pub fn saved_config(folder: &Path) -> Result<TransferConfig> {
    let path = folder.join(CONFIG);
    if !path.is_file() {
        let remedy = "leave out resume to begin one";
        return Err(Error::request(format!("{} holds no run", folder.display()), remedy));
    }
    let text = fs::read_to_string(&path).at(&path, "read")?;
    let unreadable = |error: toml::de::Error| {
        Error::file(&path, error.to_string(), "restore it, or begin a new run")
    };
    if !sealed::is_sound_toml(&text) {
        let remedy = "put back what was there, or remove its last line to take it as it is";
        return Err(Error::file(&path, sealed::ALTERED, remedy));
    }
    let table: toml::Table = toml::from_str(&text).map_err(unreadable)?;
    if table.contains_key("preset") {
        let folder = folder.display();
        let remedy = format!("resume it with: isogloss pretrain --resume --out {folder}");
        return Err(Error::request(format!("{folder} is a run of pretrain"), remedy));
    }
    toml::from_str(&text).map_err(unreadable)
}

/// Resumes the run in `folder`, whose configuration must be `config`. A run that is done stays as it is.
/// There may be more or fewer devices than before.
pub fn resume(
    config: &TransferConfig,
    folder: &Path,
    devices: &[Device],
    observer: &mut (dyn Observer + Send),
) -> Result<TransferResult> {
    // A folder without a run gets no lock either.
    saved_config(folder)?;
    let _lock = files::lock(folder)?;
    let saved = saved_config(folder)?;
    let differences = config.differences(&saved);
    if !differences.is_empty() {
        let reason = format!(
            "{} was begun with other settings: {}",
            folder.display(),
            differences.join(", ")
        );
        return Err(Error::request(reason, "leave them out, or begin a new run in another folder"));
    }
    config.check()?;
    if let Some(result) = TransferResult::read(folder)?.filter(|result| result.finished) {
        observer.note(&format!("{} is done; nothing was changed", folder.display()));
        return Ok(result);
    }
    if let Some(path) = missing(config) {
        let remedy =
            "paths in config.toml are relative to where the run was begun: resume it from there";
        return Err(Error::request(format!("{} is not there", path.display()), remedy));
    }
    let features = open_all(config, devices)?;
    let digests = InputDigests::of(config, &*features[0])?;
    match has_begun(folder) {
        true => digests.check(folder)?,
        // A process that was killed in its first epoch may not have come to it.
        false => digests.write(folder)?,
    }
    let sets = LabelledSets::read(config, features[0].source())?;
    run(config, &features, &sets, folder, observer)
}

/// Features on each device that a setting can be trained on at the same time.
fn open_all(config: &TransferConfig, devices: &[Device]) -> Result<Vec<Box<dyn Features>>> {
    let used = devices.len().min(config.settings().len()).max(1);
    devices[..used].iter().map(|device| open_features(config, device)).collect()
}

fn open_features(config: &TransferConfig, device: &Device) -> Result<Box<dyn Features>> {
    Ok(match &config.features {
        FeaturesConfig::Encoder { model, .. } => {
            let features = EncoderFeatures::open(model, device)?;
            if let Some(layers) = config.train_layers()? {
                features.check_layers(&layers, "trained")?;
            }
            let features = features.reinitializing(config.reinit_layers()?)?;
            Box::new(features)
        }
        FeaturesConfig::Layer { models, layer, maps, above } => {
            let frozen = LayerVectors::open(models, *layer, maps, device)?;
            Box::new(FrozenFeatures::new(frozen, *above, device)?)
        }
        FeaturesConfig::Vectors { files, above } => {
            let frozen = StaticVectors::open(files, device)?;
            Box::new(FrozenFeatures::new(frozen, *above, device)?)
        }
    })
}
