//! The state of training between two epochs, in one file that is whole or absent.
//!
//! A line of JSON says what it is and how long its arrays are, the arrays follow as 32-bit floats,
//! and a BLAKE3 digest of all that ends it.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use files::{At, checkpoints};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::sentences::IndexedSentences;
use crate::{Error, Result};

const REMEDY: &str = "remove the file and start again";

/// The file that the state of training is saved to.
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

/// What a state is saved with; only a run that agrees in all but the losses may resume from it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StateHeader<C> {
    method: String,
    config: C,
    /// The fingerprint of the training text.
    sentences: String,
    #[serde(with = "terms::number")]
    pub(crate) losses: Vec<f64>,
}

impl<C: Clone> StateHeader<C> {
    pub(crate) fn new(method: &str, config: &C, sentences: &IndexedSentences) -> Self {
        let (method, sentences) = (method.to_owned(), sentences.fingerprint());
        Self { method, config: config.clone(), sentences, losses: Vec::new() }
    }
}

/// The losses of the epochs so far, and the `N` arrays of a model.
type SavedTraining<const N: usize> = (Vec<f64>, [Vec<f32>; N]);

/// The losses and the arrays of a saved state, where there is one and it agrees with `wanted`.
pub(crate) fn resume<C: Serialize + DeserializeOwned, const N: usize>(
    file: Option<&StateFile>,
    wanted: &StateHeader<C>,
    lengths: [usize; N],
    note: &mut dyn FnMut(&str),
) -> Result<Option<SavedTraining<N>>> {
    let Some(file) = file.filter(|file| checkpoints::exists(&file.path)) else { return Ok(None) };
    let (saved, arrays) = checkpoints::read(&file.path, load::<StateHeader<C>>, is_damage, note)?;
    check_agrees(&file.path, "method", &saved.method, &wanted.method)?;
    check_agrees(&file.path, "configuration", &saved.config, &wanted.config)?;
    check_agrees(&file.path, "text", &saved.sentences, &wanted.sentences)?;
    let arrays: [Vec<f32>; N] = arrays.try_into().map_err(|_| not_a_state(&file.path))?;
    if arrays.each_ref().map(Vec::len) != lengths {
        return Err(not_a_state(&file.path));
    }
    Ok(Some((saved.losses, arrays)))
}

/// Whether a file is not what was once written, so that an older one may take its place.
fn is_damage(error: &Error) -> bool {
    error.to_string().ends_with(REMEDY)
}

pub(crate) fn save(path: &Path, state: &impl Serialize, arrays: &[&[f32]]) -> Result<()> {
    let first = StateHead { state, lengths: arrays.iter().map(|array| array.len()).collect() };
    let mut first = serde_json::to_vec(&first).expect("plain data");
    first.push(b'\n');
    Ok(checkpoints::write(path, |file| {
        let mut writer = BufWriter::with_capacity(1 << 18, file);
        let mut hasher = blake3::Hasher::new();
        for bytes in
            std::iter::once(&first[..]).chain(arrays.iter().map(|a| bytemuck::cast_slice(a)))
        {
            hasher.update(bytes);
            writer.write_all(bytes)?;
        }
        writer.write_all(hasher.finalize().as_bytes())?;
        writer.flush()
    })?)
}

/// A state's header and its arrays.
type LoadedState<H> = (H, Vec<Vec<f32>>);

/// Reads a saved state; refuses one that was changed.
fn load<H: DeserializeOwned>(path: &Path) -> Result<LoadedState<H>> {
    let opened = File::open(path).at(path, "open")?;
    let size = opened.metadata().at(path, "look at")?.len();
    let mut reader = BufReader::with_capacity(1 << 18, opened);
    let mut hasher = blake3::Hasher::new();
    let mut first = Vec::new();
    reader.by_ref().take(1 << 20).read_until(b'\n', &mut first).at(path, "read")?;
    hasher.update(&first);
    let StateHead { state, lengths } =
        serde_json::from_slice::<StateHead<H>>(&first).map_err(|_| not_a_state(path))?;
    let bytes = lengths.iter().try_fold(first.len() as u64 + 32, |sum, &length| {
        u64::try_from(length).ok()?.checked_mul(4)?.checked_add(sum)
    });
    if bytes != Some(size) {
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
    Ok((state, arrays))
}

/// The complaint about a file that is no saved state.
fn not_a_state(path: &Path) -> Error {
    Error::file(path, "is no saved training state, or an incomplete one", REMEDY)
}

/// Refuses to resume where something differs. What is not saved, such as the number of threads, may
/// change.
fn check_agrees<T: Serialize>(path: &Path, what: &str, saved: &T, wanted: &T) -> Result<()> {
    let plain = |value: &T| serde_json::to_value(value).expect("plain data");
    if plain(saved) == plain(wanted) {
        return Ok(());
    }
    let remedy = "give the same again, or remove the file and start again";
    Err(Error::file(path, format!("was saved by a run with another {what}"), remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_comes_back_and_a_changed_one_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let file = StateFile { path: place.path().join("state") };
        let load = |file: &StateFile| load::<String>(&file.path);
        save(&file.path, &"header", &[&[1.0, 2.0], &[3.0]]).unwrap();
        let (header, arrays) = load(&file).unwrap();
        assert_eq!((header.as_str(), arrays), ("header", vec![vec![1.0, 2.0], vec![3.0]]));
        let whole = std::fs::read(&file.path).unwrap();
        for at in [whole.len() - 40, whole.len() - 1] {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            std::fs::write(&file.path, changed).unwrap();
            let message = load(&file).unwrap_err().to_string();
            assert!(message.contains("was changed"), "{message}");
        }
        std::fs::write(&file.path, &whole[..whole.len() - 1]).unwrap();
        assert!(load(&file).unwrap_err().to_string().contains("no saved training state"));
    }

    /// Lengths whose bytes would wrap around to the size of the file.
    #[test]
    fn lengths_that_overflow_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("state");
        for length in [1 << 62, usize::MAX, (1 << 61) + 1] {
            let head = format!("{{\"state\":\"header\",\"lengths\":[{length}]}}\n");
            for extra in [0, 4] {
                let mut bytes = head.clone().into_bytes();
                bytes.resize(bytes.len() + 32 + extra, 0);
                std::fs::write(&path, bytes).unwrap();
                let message = load::<String>(&path).unwrap_err().to_string();
                assert!(message.contains("no saved training state"), "{message}");
            }
        }
    }

    #[test]
    fn a_damaged_state_gives_way_to_the_one_before() {
        let place = tempfile::tempdir().unwrap();
        let file = StateFile { path: place.path().join("en.vec.state") };
        let header = |losses: &[f64]| StateHeader {
            method: "word2vec".to_owned(),
            config: 5,
            sentences: "text".to_owned(),
            losses: losses.to_vec(),
        };
        save(&file.path, &header(&[3.0]), &[&[1.0, 2.0]]).unwrap();
        save(&file.path, &header(&[3.0, f64::INFINITY]), &[&[3.0, 4.0]]).unwrap();
        let mut notes = Vec::new();
        let mut resumed = |length: usize| {
            let note = &mut |text: &str| notes.push(text.to_owned());
            resume(Some(&file), &header(&[]), [length], note)
        };
        let saved = resumed(2).unwrap().unwrap();
        assert_eq!(saved, (vec![3.0, f64::INFINITY], [vec![3.0, 4.0]]));
        assert!(resumed(3).unwrap_err().to_string().contains("no saved training state"));
        let mut bytes = std::fs::read(&file.path).unwrap();
        bytes[20] ^= 1;
        std::fs::write(&file.path, bytes).unwrap();
        assert_eq!(resumed(2).unwrap().unwrap(), (vec![3.0], [vec![1.0, 2.0]]));
        assert!(notes[0].contains("en.vec.previous.state"), "{notes:?}");
    }
}
