//! What a world says of its files.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::failure::Failure;

/// What is needed of a world's manifest.
#[derive(Deserialize)]
pub(super) struct Manifest {
    pub(super) languages: Vec<ManifestLanguage>,
    pub(super) files: Vec<ManifestFile>,
}

#[derive(Deserialize)]
pub(super) struct ManifestLanguage {
    pub(super) code: String,
}

#[derive(Deserialize)]
pub(super) struct ManifestFile {
    pub(super) path: String,
    pub(super) kind: String,
    pub(super) languages: Vec<String>,
    pub(super) split: Option<String>,
    pub(super) domain: Option<String>,
}

impl Manifest {
    /// Reads the manifest of a folder that `world generate` made.
    pub(super) fn read(folder: &Path) -> Result<Self, Failure> {
        let path = folder.join("manifest.json");
        let text = fs::read_to_string(&path).map_err(|error| {
            let path = path.display();
            Failure::Usage(format!(
                "cannot read {path}: {error}; make a world with `isogloss world generate`"
            ))
        })?;
        serde_json::from_str(&text)
            .map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
    }
}
