//! The folder of a laboratory: what is done in it, and how long the rest may take.

use std::fs;
use std::path::{Path, PathBuf};

use files::At;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::cost::{Costs, Work};
use super::error::Result;
use super::plan::Plan;
use super::step::{CPU, Step, StepId};
use crate::store::{self, Store};

pub(super) const RESULT: &str = "result.json";
pub(super) const STEP: &str = "step.json";
pub(super) const LOG: &str = "log";

/// What is kept of a step that is done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) command: String,
    pub(super) seconds: f64,
    pub(super) made: u64,
    pub(super) version: String,
    /// Where it computed; none where there is no choice, or where that was not yet noted.
    #[serde(default)]
    pub(super) device: Option<String>,
}

/// The folder of a laboratory: steps, and the store of their numbers.
pub struct Lab {
    /// Where it is, wherever commands are run.
    pub(super) root: PathBuf,
    /// What its user calls it: so commands and files are shown.
    called: PathBuf,
}

impl Lab {
    /// Opens a laboratory; where there is no folder, it is made by what is first kept in it.
    pub fn open(root: &Path) -> Result<Self> {
        let called = root.to_owned();
        Ok(Self { root: std::path::absolute(root).at(root, "find")?, called })
    }

    /// The store of its numbers.
    pub fn store(&self) -> Result<Store> {
        Ok(Store::open(&self.root.join(store::FILE))?)
    }

    /// The folder of a step.
    pub fn folder(&self, key: &str) -> PathBuf {
        self.root.join("steps").join(key)
    }

    /// What a step's command printed, if it is done.
    pub fn result(&self, key: &str) -> Option<Value> {
        serde_json::from_slice(&fs::read(self.folder(key).join(RESULT)).ok()?).ok()
    }

    pub(super) fn kept(&self, key: &str) -> Option<Kept> {
        serde_json::from_slice(&fs::read(self.folder(key).join(STEP)).ok()?).ok()
    }

    /// How long steps have taken here, the last ones first.
    fn history(&self) -> Costs {
        let entries = fs::read_dir(self.root.join("steps")).into_iter().flatten().flatten();
        let mut kept: Vec<Kept> =
            entries.filter_map(|entry| self.kept(&entry.file_name().to_string_lossy())).collect();
        kept.sort_by_key(|kept| std::cmp::Reverse(kept.made));
        let mut costs = Costs::default();
        for kept in kept {
            let device = kept.device.as_deref().unwrap_or(CPU);
            costs.add(&kept.kind, device, Work::of(&kept.command), kept.seconds);
        }
        costs
    }

    /// What of a plan is done, and how long the rest may take.
    pub fn outlook(&self, plan: &Plan) -> Outlook {
        let history = self.history();
        let seconds = |number: usize, step: &Step| {
            let device = step.device.as_deref().unwrap_or(CPU);
            history.expect(&step.kind, device, Work::of(&self.command(plan, StepId(number))))
        };
        let done = |step: &Step| self.folder(&step.key).join(RESULT).is_file();
        let steps = plan.steps.iter().enumerate();
        let steps = steps.map(|(number, step)| (done(step), seconds(number, step))).collect();
        Outlook { steps }
    }

    /// A step's command as its user could type it.
    pub fn command(&self, plan: &Plan, step: StepId) -> String {
        typed(&words(&self.called, plan, step))
    }

    /// The folder of a step as its user calls it.
    pub(super) fn called(&self, key: &str) -> String {
        self.called.join("steps").join(key).display().to_string()
    }
}

/// The words of a step's command after the program's name, for a laboratory at `root`.
pub(super) fn words(root: &Path, plan: &Plan, step: StepId) -> Vec<String> {
    let folder = |StepId(number): StepId| root.join("steps").join(&plan.steps[number].key);
    plan.steps[step.0].words(step, folder)
}

/// What of a plan is done, and how long the rest may take.
pub struct Outlook {
    /// For each step: whether it is done, and how many seconds one like it takes, if that is known.
    pub steps: Vec<(bool, Option<f64>)>,
}

impl Outlook {
    /// Seconds for what is not done from a step on; of steps that nothing is known about, none.
    pub fn left(&self, from: usize) -> f64 {
        let open = self.steps[from..].iter().filter(|(done, _)| !done);
        // The sum of nothing would be minus zero.
        open.filter_map(|(_, seconds)| *seconds).fold(0.0, |sum, seconds| sum + seconds)
    }

    /// Steps that are not done and of which nothing is known.
    pub fn unknown(&self) -> usize {
        self.steps.iter().filter(|(done, seconds)| !done && seconds.is_none()).count()
    }

    /// Steps that are not done.
    pub fn open(&self) -> usize {
        self.steps.iter().filter(|(done, _)| !done).count()
    }
}

/// A command as it could be typed.
fn typed(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:@+%".contains(c);
    let quoted = |word: &String| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    let words: Vec<String> = words.iter().map(quoted).collect();
    format!("isogloss {}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_typed_as_it_is_shown() {
        let words = ["world", "--set", "a b", "it's", ""].map(str::to_owned);
        assert_eq!(typed(&words), r"isogloss world --set 'a b' 'it'\''s' ''");
    }
}
