//! Digests of what a run reads, so that a run that is resumed does not go on with other data.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use files::{At, sealed};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::config::{FeaturesConfig, SetConfig, ShiftSource, TransferConfig};
use crate::error::{Error, Result};
use crate::features::Features;

const INPUTS: &str = "inputs.json";

/// The fingerprints of encoders or vectors, and a digest of every other file.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct InputDigests {
    features: Value,
    files: BTreeMap<PathBuf, String>,
}

impl InputDigests {
    pub(super) fn of(config: &TransferConfig, features: &dyn Features) -> Result<Self> {
        let digest = |path: PathBuf| {
            let bytes = fs::read(&path).at(&path, "read")?;
            Ok((path, blake3::hash(&bytes).to_hex().to_string()))
        };
        let files = named(config).into_iter().map(digest).collect::<Result<_>>()?;
        Ok(Self { features: features.metadata(), files })
    }

    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).expect("digests are valid JSON");
        Ok(files::write(&folder.join(INPUTS), sealed::seal_json(&text) + "\n")?)
    }

    /// Refuses a folder whose run has read other data.
    pub(super) fn check(&self, folder: &Path) -> Result<()> {
        let path = folder.join(INPUTS);
        let text = fs::read_to_string(&path).at(&path, "read")?;
        let wrong = |reason: String| Error::file(&path, reason, "begin a new run");
        let before: Self = sealed::read_json(&text).map_err(wrong)?;
        let changed = self.files.iter().find(|(file, now)| before.files.get(*file) != Some(*now));
        let what = match changed {
            Some((file, _)) => file.display().to_string(),
            None if self.features != before.features => "the encoder".to_owned(),
            None => return Ok(()),
        };
        let reason = format!("{what} is not what it was when {} began", folder.display());
        Err(Error::request(reason, "put it back, or begin a new run in another folder"))
    }
}

/// The files of a configuration, but for encoders and static vectors, which have fingerprints.
fn named(config: &TransferConfig) -> Vec<PathBuf> {
    let devs = config.shift.iter().flat_map(|shift| &shift.devs);
    let sets = [&config.train, &config.dev].into_iter().chain(&config.tests).chain(devs);
    let mut files: Vec<PathBuf> = sets.map(|set: &SetConfig| set.file.clone()).collect();
    if let FeaturesConfig::Layer { maps, .. } = &config.features {
        files.extend(maps.values().cloned());
    }
    match config.shift.as_ref().map(|shift| &shift.by) {
        None => {}
        Some(ShiftSource::Means { file, .. }) => files.push(file.clone()),
        Some(ShiftSource::Vectors(vectors)) => files.extend(vectors.values().cloned()),
    }
    files
}

/// A file or folder of a configuration that is not where it says.
pub(super) fn missing(config: &TransferConfig) -> Option<PathBuf> {
    let sources: Vec<&PathBuf> = match &config.features {
        FeaturesConfig::Encoder { model, .. } => vec![model],
        FeaturesConfig::Layer { models, .. } => models.values().collect(),
        FeaturesConfig::Vectors { files, .. } => files.values().collect(),
    };
    sources.into_iter().cloned().chain(named(config)).find(|path| !path.exists())
}
