//! The folder of a laboratory: which steps are complete in it, and how long the others may take.

use std::fs;
use std::path::{Path, PathBuf};

use files::At;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::cost::{CostHistory, Workload};
use super::error::{Error, Result};
use super::pool::{PooledStep, StepPool};
use super::step::{CPU, KeyedWord, StepId, StudyStep};
use crate::build::BuildCounts;
use crate::store::{self, Store};

pub(super) const RESULT: &str = "result.json";
pub(super) const STEP: &str = "step.json";
pub(super) const LOG: &str = "log";

/// What is recorded of a completed step, in `step.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StepMetadata {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) command: String,
    pub(super) revision: u32,
    pub(super) seconds: f64,
    /// When it ended, in seconds since 1970.
    pub(super) finished_at: u64,
    /// The build of the program that ran it.
    pub(super) build: String,
    /// Where it computed; none where the command has no such choice.
    pub(super) device: Option<String>,
    /// The most memory that its command held, in bytes, where that is known.
    #[serde(default)]
    pub(super) peak_memory: Option<u64>,
    /// The words as the key has them, for keys that a later release makes otherwise.
    #[serde(default)]
    pub(super) words: Vec<KeyedWord>,
    /// Whether the result alone is here, out of a pack, and none of the files that the command made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) without_files: bool,
}

/// The folder of a laboratory: steps, and the store of their records.
pub struct Laboratory {
    /// Its absolute path, since commands are run from anywhere.
    pub(super) root: PathBuf,
    /// Its path as the user typed it, which commands and files are shown with.
    shown: PathBuf,
}

impl Laboratory {
    /// Opens a laboratory; a folder that does not exist is created with the first step.
    ///
    /// # Errors
    /// Where its path cannot be written into a command: it is not UTF-8, or has control characters.
    pub fn open(root: &Path) -> Result<Self> {
        let shown = root.to_owned();
        let root = std::path::absolute(root).at(root, "find")?;
        match root.to_str() {
            Some(path) if !path.contains(char::is_control) => Ok(Self { root, shown }),
            _ => Err(Error::data(
                format!("{root:?}"),
                "its path is not UTF-8, or has control characters, and could not be written into a command",
                "name another folder",
            )),
        }
    }

    pub fn store(&self) -> Result<Store> {
        Ok(Store::open(&self.root.join(store::FILE))?)
    }

    pub fn folder(&self, key: &str) -> PathBuf {
        self.root.join("steps").join(key)
    }

    /// The file of a step that is there once it is complete.
    pub(super) fn result_path(&self, key: &str) -> PathBuf {
        self.folder(key).join(RESULT)
    }

    /// The result of a step, if it is complete and what is recorded of it is as it was written.
    pub fn result(&self, key: &str) -> Option<Value> {
        self.sealed(key, STEP)?;
        self.sealed(key, RESULT)
    }

    /// Whether the files of a complete step are here, and not its result alone.
    pub(super) fn has_files(&self, key: &str) -> bool {
        self.metadata(key).is_some_and(|metadata| !metadata.without_files)
    }

    /// The file of a step that has a result, but was altered since.
    pub(super) fn altered(&self, key: &str) -> Option<PathBuf> {
        let folder = self.folder(key);
        let complete = folder.join(RESULT).is_file();
        let altered = [RESULT, STEP].into_iter().find(|name| self.sealed(key, name).is_none());
        altered.filter(|_| complete).map(|name| folder.join(name))
    }

    /// A file of a step; none where it is not there, or was altered since it was written.
    pub(super) fn sealed(&self, key: &str, name: &str) -> Option<Value> {
        let text = fs::read(self.folder(key).join(name)).ok()?;
        let mut value = serde_json::from_slice(&text).ok()?;
        files::sealed::open_json(&mut value).then_some(value)
    }

    pub(super) fn metadata(&self, key: &str) -> Option<StepMetadata> {
        serde_json::from_value(self.sealed(key, STEP)?).ok()
    }

    /// The builds that ran the completed steps of a pool.
    pub fn builds(&self, pool: &StepPool<'_>) -> BuildCounts {
        let steps = pool.steps.iter().filter_map(|pooled| self.metadata(&pooled.step.key));
        let metadata: Vec<StepMetadata> = steps.collect();
        BuildCounts::of(metadata.iter().map(|step| &*step.build))
    }

    /// How long steps have taken here, the latest first.
    fn history(&self) -> CostHistory {
        let entries = fs::read_dir(self.root.join("steps")).into_iter().flatten().flatten();
        let mut steps: Vec<StepMetadata> = entries
            .filter_map(|entry| self.metadata(&entry.file_name().to_string_lossy()))
            .collect();
        steps.sort_by_key(|step| std::cmp::Reverse(step.finished_at));
        let mut history = CostHistory::default();
        for step in steps {
            let device = step.device.as_deref().unwrap_or(CPU);
            history.add(&step.kind, device, Workload::of(&step.command), step.seconds);
            history.add_peak(&step.kind, device, step.peak_memory);
        }
        history
    }

    /// Which steps of a pool are complete, and how long the others may take.
    pub fn status(&self, pool: &StepPool<'_>) -> PlanStatus {
        self.costs(pool).status
    }

    /// The same, to be kept up to date while the steps are run.
    pub(super) fn costs(&self, pool: &StepPool<'_>) -> PlanCosts {
        let history = self.history();
        let result = |number: usize| self.result(&pool.steps[number].step.key).is_some();
        let open = pool.open(result, |number| self.has_files(&pool.steps[number].step.key));
        let (mut work, mut steps) = (Vec::new(), Vec::new());
        for (PooledStep { step, places, .. }, open) in pool.steps.iter().zip(open) {
            let (plan, number) = places[0];
            let of_step = Workload::of(&self.command(&plan.steps, number));
            steps.push((!open, history.expect(&step.kind, device(step), of_step)));
            work.push(of_step);
        }
        PlanCosts { history, work, status: PlanStatus { steps } }
    }

    pub fn command(&self, steps: &[StudyStep], step: StepId) -> String {
        shell_line(&words(&self.shown, steps, step))
    }

    /// The folder of a step as the user would type it.
    pub(super) fn shown_folder(&self, key: &str) -> String {
        self.shown.join("steps").join(key).display().to_string()
    }
}

/// The words of a step's command after the program's name, for a laboratory at `root`.
pub(super) fn words(root: &Path, steps: &[StudyStep], step: StepId) -> Vec<String> {
    let folder = |StepId(number): StepId| root.join("steps").join(&steps[number].key);
    steps[step.0].words(step, folder)
}

fn device(step: &StudyStep) -> &str {
    step.device.as_deref().unwrap_or(CPU)
}

/// The status of a pool's steps with what expectations come from.
pub(super) struct PlanCosts {
    history: CostHistory,
    work: Vec<Workload>,
    pub(super) status: PlanStatus,
}

impl PlanCosts {
    /// The most memory that a step like this one is known to have held, in bytes; 0 where none is known.
    pub(super) fn peak_memory(&self, pool: &StepPool<'_>, number: usize) -> u64 {
        let step = pool.steps[number].step;
        self.history.peak(&step.kind, device(step))
    }

    pub(super) fn held(&mut self, pool: &StepPool<'_>, number: usize, bytes: Option<u64>) {
        let step = pool.steps[number].step;
        self.history.add_peak(&step.kind, device(step), bytes);
    }

    /// A step took so many seconds, which holds for the open steps of its kind as well.
    pub(super) fn measured(&mut self, pool: &StepPool<'_>, number: usize, seconds: f64) {
        let of = pool.steps[number].step;
        self.history.add_latest(&of.kind, device(of), self.work[number], seconds);
        let open = self.status.steps.iter_mut().zip(&pool.steps).zip(&self.work);
        for ((cost, PooledStep { step, .. }), &work) in open {
            if !cost.0 && step.kind == of.kind && device(step) == device(of) {
                cost.1 = self.history.expect(&step.kind, device(step), work);
            }
        }
    }
}

/// Which steps of a pool are to be run, and how long they may take.
pub struct PlanStatus {
    /// For each step: whether nothing is to be done, since it is complete or nothing needs it, and the seconds that a step like it takes, if known.
    pub steps: Vec<(bool, Option<f64>)>,
}

impl PlanStatus {
    /// Expected seconds of the open steps, one after another; those of unknown cost count nothing.
    pub fn seconds(&self) -> f64 {
        let open = self.steps.iter().filter(|(complete, _)| !complete);
        // `sum` of an empty iterator of floats would be -0.
        open.filter_map(|(_, seconds)| *seconds).fold(0.0, |sum, seconds| sum + seconds)
    }

    pub fn unknown(&self) -> usize {
        self.steps.iter().filter(|(complete, seconds)| !complete && seconds.is_none()).count()
    }

    pub fn open(&self) -> usize {
        self.steps.iter().filter(|(complete, _)| !complete).count()
    }
}

/// A command line of the program, quoted for a POSIX shell.
pub fn shell_line(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    format!("isogloss {}", words.join(" "))
}

/// A word, quoted where it has to be: for a POSIX shell, and for the `#SBATCH` lines of Slurm, to which a backslash
/// between quotation marks means what it means outside.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:@+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    let escaped = |c: char| match c {
        '\'' | '\\' => format!(r"'\{c}'"),
        c => c.to_string(),
    };
    format!("'{}'", word.chars().map(escaped).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_typed_as_it_is_shown() {
        let words = ["world", "--set", "a b", "it's", ""].map(str::to_owned);
        assert_eq!(shell_line(&words), r"isogloss world --set 'a b' 'it'\''s' ''");
    }
}
