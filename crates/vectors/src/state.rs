//! The state of training between two epochs, in one file that is whole or absent.
//!
//! A line of JSON says what it is and how long its arrays are, the arrays follow as 32-bit floats,
//! and a BLAKE3 digest of all that ends it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use files::At;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

const REMEDY: &str = "remove the file and begin anew";

/// Where the state of a run is kept.
#[derive(Clone, Debug)]
pub struct StateFile {
    /// The file.
    pub path: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct StateHead<H> {
    state: H,
    lengths: Vec<usize>,
}

pub(crate) fn save(path: &Path, state: &impl Serialize, arrays: &[&[f32]]) -> Result<()> {
    let first = StateHead { state, lengths: arrays.iter().map(|array| array.len()).collect() };
    let mut first = serde_json::to_vec(&first).expect("plain data");
    first.push(b'\n');
    Ok(files::write_with(path, |writer| {
        let mut hasher = blake3::Hasher::new();
        for bytes in
            std::iter::once(&first[..]).chain(arrays.iter().map(|a| bytemuck::cast_slice(a)))
        {
            hasher.update(bytes);
            writer.write_all(bytes)?;
        }
        writer.write_all(hasher.finalize().as_bytes())
    })?)
}

/// A state's header and its arrays.
pub(crate) type LoadedState<H> = (H, Vec<Vec<f32>>);

/// Reads a state, if one is there; refuses one that was changed.
pub(crate) fn load<H: DeserializeOwned>(keep: &StateFile) -> Result<Option<LoadedState<H>>> {
    let path = &keep.path;
    if !path.exists() {
        return Ok(None);
    }
    let file = File::open(path).at(path, "open")?;
    let size = file.metadata().at(path, "look at")?.len();
    let mut reader = BufReader::with_capacity(1 << 18, file);
    let mut hasher = blake3::Hasher::new();
    let mut first = Vec::new();
    reader.by_ref().take(1 << 20).read_until(b'\n', &mut first).at(path, "read")?;
    hasher.update(&first);
    let StateHead { state, lengths } =
        serde_json::from_slice::<StateHead<H>>(&first).map_err(|_| not_a_state(path))?;
    let values: usize = lengths.iter().fold(0, |sum: usize, &n| sum.saturating_add(n));
    if size != (first.len() as u64).saturating_add(4 * values as u64).saturating_add(32) {
        return Err(not_a_state(path));
    }
    let mut arrays = Vec::new();
    for length in lengths {
        let mut array = vec![0.0f32; length];
        let bytes = bytemuck::cast_slice_mut(&mut array);
        reader.read_exact(bytes).at(path, "read")?;
        hasher.update(bytes);
        arrays.push(array);
    }
    let mut digest = [0; 32];
    reader.read_exact(&mut digest).at(path, "read")?;
    if hasher.finalize() != digest {
        return Err(Error::file(path, "was changed since it was written", REMEDY));
    }
    Ok(Some((state, arrays)))
}

/// That a file is none of ours.
pub(crate) fn not_a_state(path: &Path) -> Error {
    Error::file(path, "is no state of training, or not a whole one", REMEDY)
}

/// Refuses to go on where something is not as it was. What is not kept, such as the number of threads,
/// may change.
pub(crate) fn check_agrees<T: Serialize>(
    path: &Path,
    what: &str,
    kept: &T,
    wanted: &T,
) -> Result<()> {
    let plain = |value: &T| serde_json::to_value(value).expect("plain data");
    if plain(kept) == plain(wanted) {
        return Ok(());
    }
    let remedy = "give what it was begun with, or remove the file and begin anew";
    Err(Error::file(path, format!("was kept by a run of another {what}"), remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_comes_back_and_a_changed_one_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let keep = StateFile { path: place.path().join("state") };
        assert!(load::<String>(&keep).unwrap().is_none());
        save(&keep.path, &"header", &[&[1.0, 2.0], &[3.0]]).unwrap();
        let (header, arrays) = load::<String>(&keep).unwrap().unwrap();
        assert_eq!((header.as_str(), arrays), ("header", vec![vec![1.0, 2.0], vec![3.0]]));
        let whole = std::fs::read(&keep.path).unwrap();
        for at in [whole.len() - 40, whole.len() - 1] {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            std::fs::write(&keep.path, changed).unwrap();
            let message = load::<String>(&keep).unwrap_err().to_string();
            assert!(message.contains("was changed"), "{message}");
        }
        std::fs::write(&keep.path, &whole[..whole.len() - 1]).unwrap();
        assert!(load::<String>(&keep).unwrap_err().to_string().contains("no state"));
    }
}
