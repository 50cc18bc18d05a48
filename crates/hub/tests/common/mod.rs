//! Fixtures: found, copied, altered.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tensor::Device;

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

pub(crate) fn floats(path: &Path) -> Vec<f32> {
    let bytes = fs::read(path).unwrap();
    bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
}

/// A copy of a fixture to be altered.
pub(crate) fn copy(family: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(fixture(family)).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    folder
}

pub(crate) fn edit_json(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    change(&mut value);
    fs::write(path, value.to_string()).unwrap();
}

/// Why an altered fixture is refused.
pub(crate) fn refused(family: &str, change: impl FnOnce(&Path)) -> String {
    let folder = copy(family);
    change(folder.path());
    hub::open(folder.path(), &Device::cpu(1).unwrap()).err().expect("refused").to_string()
}
