//! How a model is named: the folder of a run, `RUN@STEP` for a snapshot that the run saved while it was
//! trained, a Hugging Face folder, a folder of saved states, or the name of a model in the hub's cache (`OWNER/MODEL`, `mbert`). The one place where
//! such names are read.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::OpenError;
use crate::pretrained::{MODEL_FILE, VOCABULARY_FOLDER};
use crate::saved::is_saved;

/// The folder of a run that holds snapshots of its weights, `STEP.safetensors` each.
pub const SNAPSHOT_FOLDER: &str = "snapshots";

/// Where the files of a model are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelLocation {
    /// A run of ours: its vocabulary, and a file of weights.
    Run {
        /// The folder of the run.
        folder: PathBuf,
        /// The weights: the run's best, or a snapshot.
        weights: PathBuf,
    },
    /// A Hugging Face folder.
    HuggingFace(PathBuf),
    /// Hidden states that were computed before.
    States(PathBuf),
}

impl ModelLocation {
    /// Finds the model of a name.
    ///
    /// # Errors
    /// Where there is none; for a snapshot that does not exist, with the steps of those that do.
    pub fn find(name: &Path) -> Result<Self, OpenError> {
        let is_run = |folder: &Path| folder.join(VOCABULARY_FOLDER).is_dir();
        let weights = name.join(MODEL_FILE);
        if weights.is_file() && is_run(name) {
            return Ok(Self::Run { folder: name.to_owned(), weights });
        }
        if hub::is_checkpoint(name) {
            return Ok(Self::HuggingFace(name.to_owned()));
        }
        if is_saved(name) {
            return Ok(Self::States(name.to_owned()));
        }
        let by_name = name.to_str().filter(|_| !name.exists()).and_then(hub::cached);
        if let Some(folder) = by_name {
            return Ok(Self::HuggingFace(folder));
        }
        let Some((folder, step)) = run_and_step(name).filter(|(folder, _)| is_run(folder)) else {
            return Err(OpenError::Nothing(name.to_owned()));
        };
        let weights = snapshot_file(&folder, step);
        match weights.is_file() {
            true => Ok(Self::Run { folder, weights }),
            false => {
                Err(OpenError::NoSnapshot { step, steps: in_words(&snapshots(&folder)), folder })
            }
        }
    }

    /// The folder of the run, without the step, or of the Hugging Face model.
    pub fn folder(&self) -> &Path {
        match self {
            Self::Run { folder, .. } | Self::HuggingFace(folder) | Self::States(folder) => folder,
        }
    }
}

/// The file of a run's snapshot after an update.
pub fn snapshot_file(run: &Path, step: u64) -> PathBuf {
    run.join(SNAPSHOT_FOLDER).join(format!("{step}.safetensors"))
}

/// The updates after which a run has saved snapshots, in order.
pub fn snapshots(run: &Path) -> Vec<u64> {
    let entries = fs::read_dir(run.join(SNAPSHOT_FOLDER)).into_iter().flatten().flatten();
    let step = |entry: fs::DirEntry| {
        entry.file_name().to_str()?.strip_suffix(".safetensors")?.parse().ok()
    };
    let mut steps: Vec<u64> = entries.filter_map(step).collect();
    steps.sort_unstable();
    steps
}

/// `RUN@STEP` as the folder and the step.
fn run_and_step(name: &Path) -> Option<(PathBuf, u64)> {
    let (run, step) = name.file_name()?.to_str()?.rsplit_once('@')?;
    Some((name.with_file_name(run), step.parse().ok()?))
}

fn in_words(steps: &[u64]) -> String {
    match steps {
        [] => {
            "it has none; they are saved while a run is trained, by the key `snapshots`".to_owned()
        }
        steps => {
            let steps: Vec<String> = steps.iter().map(u64::to_string).collect();
            format!("it has those of {}", steps.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_named_by_its_step() {
        let place = tempfile::tempdir().unwrap();
        let run = place.path().join("a@b");
        fs::create_dir_all(run.join(VOCABULARY_FOLDER)).unwrap();
        fs::create_dir_all(run.join(SNAPSHOT_FOLDER)).unwrap();
        for file in [run.join(MODEL_FILE), snapshot_file(&run, 400), snapshot_file(&run, 50)] {
            fs::write(file, "").unwrap();
        }
        fs::write(run.join(SNAPSHOT_FOLDER).join(".draft"), "").unwrap();
        let find = |name: &str| ModelLocation::find(&place.path().join(name));
        let weights = |name: &str| match find(name).unwrap() {
            ModelLocation::Run { weights, folder } => {
                assert_eq!(folder, run);
                weights
            }
            _ => panic!("{name} is a run"),
        };
        assert_eq!(weights("a@b"), run.join(MODEL_FILE));
        assert_eq!(weights("a@b@400"), snapshot_file(&run, 400));
        let error = find("a@b@300").unwrap_err().to_string();
        assert!(error.contains("no snapshot of step 300") && error.contains("50, 400"), "{error}");
        for nothing in ["a@b@", "a@b@x", "a@400", "c@400"] {
            assert!(matches!(find(nothing), Err(OpenError::Nothing(_))), "{nothing}");
        }
    }
}
