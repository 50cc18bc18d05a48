//! How a run begins, and begins again.

use std::fs;
use std::path::Path;

use files::At;
use tensor::Device;
use train::pretrain::Observer;

use super::config::{FeaturesConfig, TransferConfig};
use super::inputs::{Inputs, missing};
use super::run::{STATE, transfer};
use super::sets::Sets;
use super::summary::{RESULTS, Summary};
use crate::error::{Error, Result};
use crate::features::{EncoderFeatures, Features, GivenFeatures, LayerVectors, StaticVectors};

const CONFIG: &str = "config.toml";

/// Begins a run in `folder`.
pub fn begin(
    config: &TransferConfig,
    folder: &Path,
    device: &Device,
    observer: &mut dyn Observer,
) -> Result<Summary> {
    config.check()?;
    if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        let remedy = "go on with --resume, or name another folder";
        return Err(Error::request(format!("{} is not empty", folder.display()), remedy));
    }
    let features = open_features(config, device)?;
    let sets = Sets::read(config, &*features)?;
    let new = !folder.exists();
    fs::create_dir_all(folder).at(folder, "make the folder")?;
    Inputs::of(config, &*features)?.write(folder)?;
    let text = toml::to_string(config).expect("a configuration is valid TOML");
    files::write(&folder.join(CONFIG), text)?;
    transfer(config, &*features, &sets, folder, observer).inspect_err(|error| {
        // Where nothing was learned yet, what lies there only stands in the way of the mended command.
        let busy = matches!(error, Error::Files(files::Error::Busy(_)));
        if !busy && ![STATE, RESULTS].iter().any(|name| folder.join(name).exists()) {
            files::clear(folder, new);
        }
    })
}

/// Goes on with the run in `folder`. One that is done stays as it is.
pub fn resume(folder: &Path, device: &Device, observer: &mut dyn Observer) -> Result<Summary> {
    let path = folder.join(CONFIG);
    if !path.is_file() {
        let remedy = "leave out --resume to begin one";
        return Err(Error::request(format!("{} holds no run", folder.display()), remedy));
    }
    let text = fs::read_to_string(&path).at(&path, "read")?;
    let unreadable = |error: toml::de::Error| {
        Error::file(&path, error.to_string(), "restore it, or begin a new run")
    };
    let table: toml::Table = toml::from_str(&text).map_err(unreadable)?;
    if table.contains_key("preset") {
        let folder = folder.display();
        let remedy = format!("go on with: isogloss pretrain --resume --out {folder}");
        return Err(Error::request(format!("{folder} is a run of pretrain"), remedy));
    }
    let config: TransferConfig = toml::from_str(&text).map_err(unreadable)?;
    config.check()?;
    if let Some(summary) = Summary::read(folder)?.filter(|summary| summary.finished) {
        observer.note(&format!("{} is done; nothing was changed", folder.display()));
        return Ok(summary);
    }
    if let Some(path) = missing(&config) {
        let remedy =
            "paths in config.toml are meant from where the run was begun: resume it from there";
        return Err(Error::request(format!("{} is not there", path.display()), remedy));
    }
    let features = open_features(&config, device)?;
    Inputs::of(&config, &*features)?.check(folder)?;
    let sets = Sets::read(&config, &*features)?;
    transfer(&config, &*features, &sets, folder, observer)
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
            let given = LayerVectors::open(models, *layer, maps, device)?;
            Box::new(GivenFeatures::new(given, *above, device)?)
        }
        FeaturesConfig::Vectors { files, above } => {
            let given = StaticVectors::open(files, device)?;
            Box::new(GivenFeatures::new(given, *above, device)?)
        }
    })
}
