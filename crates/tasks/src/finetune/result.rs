//! The result of a transfer: the settings that are best on the source language, and their scores on the test
//! sets.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use files::{At, sealed};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use terms::{Estimate, Task};

use super::config::GridSetting;
use super::sets::{LabelledSet, LabelledSets, SetMetadata};
use super::shift::{ShiftResult, ShiftedScore};
use crate::error::{Error, Result};
use crate::registry::ScoreResult;

pub(super) const RESULTS: &str = "results.json";
const SUMMARY: &str = "summary.json";

/// How many of the best settings are averaged.
const BEST: usize = 2;

/// One epoch of a setting, a line of `metrics.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochMetrics {
    /// The setting.
    #[serde(flatten)]
    pub setting: GridSetting,
    /// The epoch, counted from 1.
    pub epoch: u32,
    /// Updates so far.
    pub step: u64,
    /// The mean training loss of the epoch.
    #[serde(with = "terms::number")]
    pub loss: f64,
    /// The score on the source language's development set.
    #[serde(with = "terms::number")]
    pub dev: f64,
    /// The same in full.
    pub score: ScoreResult,
}

/// One setting, trained to its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SettingResult {
    /// The setting.
    #[serde(flatten)]
    pub setting: GridSetting,
    /// The epoch that was best on the source language's development set, counted from 1.
    pub epoch: u32,
    /// Its score there.
    #[serde(with = "terms::number")]
    pub dev: f64,
    /// Its scores on every test set.
    pub tests: BTreeMap<String, ScoreResult>,
    /// The same without the items that training or development has too, of the sets that hold such.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub without_overlap: BTreeMap<String, ScoreResult>,
    /// The same for languages that were shifted, with the weight that was chosen.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub shifted: BTreeMap<String, ShiftedScore>,
    /// Every epoch; left out of a [`TransferResult`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<EpochMetrics>,
}

/// The result on a test set: for each seed the mean over the best settings, and the mean of those.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestResult {
    /// The name of the set.
    pub name: String,
    /// The mean over seeds.
    #[serde(flatten)]
    pub score: Estimate,
    /// The score of uniform guessing among the labels of the training file.
    pub chance: f64,
    /// The score of predicting the most frequent label of the training file everywhere; none where a
    /// prediction is more than a label.
    pub majority: Option<f64>,
    /// Items of the set whose text stands in what was trained on; the score counts them, as published ones do.
    pub overlap: usize,
    /// Others whose text stands in what the epoch, the setting or a weight was chosen on.
    #[serde(default)]
    pub dev_overlap: usize,
    /// The score without all of these; none where there are none, or nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_overlap: Option<Estimate>,
}

/// Speeds in tokens per second, special tokens included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TransferSpeed {
    /// Tokens trained on by this process.
    pub trained: u64,
    /// Seconds that took; settings that are trained side by side share the time that passes.
    pub train_seconds: f64,
    /// Tokens evaluated by this process.
    pub evaluated: u64,
    /// Seconds that took.
    pub evaluate_seconds: f64,
}

impl TransferSpeed {
    /// Tokens per second when training; 0 where nothing was trained.
    pub fn train(&self) -> f64 {
        self.trained as f64 / self.train_seconds.max(1e-9)
    }

    /// Tokens per second when evaluating.
    pub fn evaluate(&self) -> f64 {
        self.evaluated as f64 / self.evaluate_seconds.max(1e-9)
    }
}

/// The result of a transfer: what `transfer --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransferResult {
    /// What exactly the scores are.
    pub signature: String,
    /// The task.
    pub task: Task,
    /// The language that was trained on; empty in results of versions that did not say.
    #[serde(default)]
    pub source: String,
    /// The measure that counts, as records name it.
    pub measure: String,
    /// Whether every setting was trained to its end.
    pub finished: bool,
    /// The setting whose predictions and weights stand in the folder.
    pub best: Option<GridSetting>,
    /// The score on the source language's development set.
    pub dev: Option<Estimate>,
    /// The score on every test set: the mean of the best two settings, over seeds.
    pub results: Vec<TestResult>,
    /// Scores in full, of the setting whose predictions stand in the folder.
    pub scores: BTreeMap<String, ScoreResult>,
    /// The effect of shifting the target languages, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shift: Option<ShiftResult>,
    /// All settings that were trained, without their histories.
    pub settings: Vec<SettingResult>,
    /// Sizes of each labelled set.
    pub sets: BTreeMap<String, SetMetadata>,
    /// Parameters that are trained.
    pub parameters: usize,
    /// The layers that began with new weights, where any did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reinit_layers: Option<String>,
    /// How fast it was.
    pub speed: TransferSpeed,
    /// The share of positions that are padding: none, since sequences are packed.
    pub padding: f64,
}

impl TransferResult {
    /// The result in a run's folder, where there is one.
    pub(super) fn read(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(SUMMARY);
        if !path.is_file() {
            return Ok(None);
        }
        let text = fs::read_to_string(&path).at(&path, "read")?;
        let wrong = |reason: String| Error::file(&path, reason, "remove it, and resume the run");
        sealed::read_json(&text).map(Some).map_err(wrong)
    }

    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).expect("a result is valid JSON");
        Ok(files::write(&folder.join(SUMMARY), sealed::seal_json(&text) + "\n")?)
    }
}

/// The settings that are done, in a run's folder; each must have a result for every test set.
pub(super) fn read_settings(folder: &Path, sets: &LabelledSets) -> Result<Vec<SettingResult>> {
    let path = &folder.join(RESULTS);
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(path).at(path, "read")?;
    let wrong = |reason: String| Error::file(path, reason, "begin the run anew");
    let mut settings: Vec<Value> =
        serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    if !settings.iter_mut().all(sealed::open_json) {
        return Err(wrong(sealed::ALTERED.to_owned()));
    }
    let settings: Vec<SettingResult> =
        serde_json::from_value(Value::Array(settings)).map_err(|error| wrong(error.to_string()))?;
    let is_shifted =
        |set: &LabelledSet| sets.targets.iter().any(|target| target.language == set.language);
    let lacks = |set: &&LabelledSet| {
        let shifted = |setting: &SettingResult| setting.shifted.contains_key(&set.name);
        let novel = |setting: &SettingResult| setting.without_overlap.contains_key(&set.name);
        let whole = |setting: &SettingResult| {
            setting.tests.contains_key(&set.name)
                && (shifted(setting) || !is_shifted(set))
                && (novel(setting) || set.novel.is_none())
        };
        !settings.iter().all(whole)
    };
    match sets.tests.iter().find(lacks) {
        None => Ok(settings),
        Some(set) => Err(wrong(format!("a setting has no result for {}", set.name))),
    }
}

pub(super) fn write_settings<'a>(
    folder: &Path,
    settings: impl Iterator<Item = &'a SettingResult>,
) -> Result<()> {
    let sealed = |setting: &SettingResult| {
        let text = serde_json::to_string_pretty(setting).expect("results are valid JSON");
        sealed::seal_json(&text)
    };
    let settings: Vec<String> = settings.map(sealed).collect();
    Ok(files::write(&folder.join(RESULTS), format!("[{}]\n", settings.join(", ")))?)
}

/// The settings of each seed, the best on the development set first.
fn ranked(settings: &[SettingResult]) -> BTreeMap<u64, Vec<&SettingResult>> {
    let mut seeds: BTreeMap<u64, Vec<&SettingResult>> = BTreeMap::new();
    for setting in settings {
        seeds.entry(setting.setting.seed).or_default().push(setting);
    }
    for settings in seeds.values_mut() {
        // Stable: of equals, the one tried first.
        settings.sort_by(|a, b| b.dev.total_cmp(&a.dev));
    }
    seeds
}

/// The mean over seeds of the mean over each seed's best two settings; none of no settings.
pub(super) fn mean_of_best(
    settings: &[SettingResult],
    score: impl Fn(&SettingResult) -> f64,
) -> Option<Estimate> {
    let of_seed = |ranked: &Vec<&SettingResult>| {
        let best = &ranked[..BEST.min(ranked.len())];
        best.iter().map(|setting| score(setting)).sum::<f64>() / best.len() as f64
    };
    let seeds: Vec<f64> = ranked(settings).values().map(of_seed).collect();
    Estimate::of(&seeds)
}

pub(super) fn of_best(settings: &[SettingResult]) -> Vec<&SettingResult> {
    let best = |ranked: Vec<_>| ranked.into_iter().take(BEST);
    ranked(settings).into_values().flat_map(best).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nli::score;

    fn setting(seed: u64, lr: f64, dev: f64, right: usize) -> SettingResult {
        let labels = (0..10).map(|at| ("a", if at < right { "a" } else { "b" }));
        let tests = BTreeMap::from([("fr".to_owned(), ScoreResult::Nli(score(labels)))]);
        let setting = GridSetting { seed, batch: 8, lr, head_lr: lr };
        let (without_overlap, shifted, history) = (BTreeMap::new(), BTreeMap::new(), vec![]);
        SettingResult { setting, epoch: 1, dev, tests, without_overlap, shifted, history }
    }

    #[test]
    fn the_best_two_by_dev_are_averaged_and_seeds_compared() {
        let settings = [
            setting(1, 1e-3, 0.9, 5),
            setting(1, 2e-3, 0.8, 9),
            setting(1, 3e-3, 0.95, 7),
            setting(2, 1e-3, 0.7, 8),
        ];
        let mean = mean_of_best(&settings, |setting| setting.tests["fr"].value()).unwrap();
        assert!((mean.mean - (0.6 + 0.8) / 2.0).abs() < 1e-12, "{mean:?}");
        assert_eq!((mean.n, mean.half_width.is_some()), (2, true));
        assert_eq!(mean_of_best(&[], |setting| setting.dev), None);
    }
}
