//! How a run begins, and how it is resumed.

use std::fs;
use std::path::Path;

use files::At;
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
    check_folder(folder, force)?;
    let features = open_all(config, devices)?;
    let sets = LabelledSets::read(config, features[0].source())?;
    let new = !folder.exists();
    fs::create_dir_all(folder).at(folder, "make the folder")?;
    if force {
        drop(files::lock(folder)?);
        files::clear(folder, false);
    }
    InputDigests::of(config, &*features[0])?.write(folder)?;
    let text = toml::to_string(config).expect("a configuration is valid TOML");
    files::write(&folder.join(CONFIG), text)?;
    run(config, &features, &sets, folder, observer).inspect_err(|error| {
        // Where nothing was trained yet, what lies there only stands in the way of the corrected command.
        let busy = matches!(error, Error::Files(files::Error::Busy(_)));
        if !busy && !has_begun(folder) {
            files::clear(folder, new);
        }
    })
}

/// Whether an epoch of any setting is done.
fn has_begun(folder: &Path) -> bool {
    let left = |name: &str| name.starts_with(STATE) || name == RESULTS;
    let mut entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.any(|entry| entry.file_name().to_str().is_some_and(left))
}

fn check_folder(folder: &Path, force: bool) -> Result<()> {
    let is_empty = !fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if is_empty || (force && saved_config(folder).is_ok()) {
        return Ok(());
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
    InputDigests::of(config, &*features[0])?.check(folder)?;
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
                features.check_layers(&layers)?;
            }
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
