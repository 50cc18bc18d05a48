//! How a run begins, and begins again.

use std::fs;
use std::path::Path;

use files::At;
use tensor::Device;
use train::pretrain::Observer;

use super::config::{FeaturesConfig, TransferConfig};
use super::inputs::Inputs;
use super::run::transfer;
use super::sets::Sets;
use super::summary::Summary;
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
    fs::create_dir_all(folder).at(folder, "make the folder")?;
    Inputs::of(config, &*features)?.write(folder)?;
    let text = toml::to_string(config).expect("a configuration is valid TOML");
    files::write(&folder.join(CONFIG), text)?;
    transfer(config, &*features, &sets, folder, observer)
}

/// Goes on with the run in `folder`. One that is done stays as it is.
pub fn resume(folder: &Path, device: &Device, observer: &mut dyn Observer) -> Result<Summary> {
    let path = folder.join(CONFIG);
    if !path.is_file() {
        let remedy = "leave out --resume to begin one";
        return Err(Error::request(format!("{} holds no run", folder.display()), remedy));
    }
    let text = fs::read_to_string(&path).at(&path, "read")?;
    let config: TransferConfig = toml::from_str(&text)
        .map_err(|error| Error::file(&path, error.to_string(), "restore it, or begin a new run"))?;
    config.check()?;
    if let Some(summary) = Summary::read(folder)?.filter(|summary| summary.finished) {
        observer.note(&format!("{} is done; nothing was changed", folder.display()));
        return Ok(summary);
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
