//! What came of a run: the best settings by the source language, and their scores on the tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use files::At;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::config::Setting;
use super::sets::{Set, SetFacts, Sets};
use super::shifted::{ShiftSummary, Shifted};
use crate::error::{Error, Result};
use crate::labelled::{Score, Task};
use crate::statistics::Mean;

pub(super) const RESULTS: &str = "results.json";
const SUMMARY: &str = "summary.json";

/// How many of the best settings are averaged.
const BEST: usize = 2;

/// One setting, trained to its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The setting.
    #[serde(flatten)]
    pub setting: Setting,
    /// The epoch that was best on the source language's development set, counted from 1.
    pub epoch: u32,
    /// Its score there.
    pub dev: f64,
    /// Its scores on every test set.
    pub tests: BTreeMap<String, Score>,
    /// The same for languages that were shifted, with the weight that was chosen.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub shifted: BTreeMap<String, Shifted>,
    /// A line for every epoch.
    pub history: Vec<Value>,
}

/// The result of a test set: for each seed the mean over the best settings, and the mean of those.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The name of the set.
    pub name: String,
    /// The mean over seeds.
    #[serde(flatten)]
    pub score: Mean,
}

/// Speeds in tokens a second, frames included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Speed {
    /// Tokens trained on by this process.
    pub trained: u64,
    /// Seconds that took.
    pub train_seconds: f64,
    /// Tokens evaluated by this process.
    pub evaluated: u64,
    /// Seconds that took.
    pub evaluate_seconds: f64,
}

impl Speed {
    /// Tokens a second when training; 0 where nothing was trained.
    pub fn train(&self) -> f64 {
        self.trained as f64 / self.train_seconds.max(1e-9)
    }

    /// Tokens a second when evaluating.
    pub fn evaluate(&self) -> f64 {
        self.evaluated as f64 / self.evaluate_seconds.max(1e-9)
    }
}

/// What came of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// The task.
    pub task: Task,
    /// The score that counts.
    pub headline: String,
    /// Whether every setting was trained to its end.
    pub finished: bool,
    /// The setting whose predictions and weights stand in the folder.
    pub best: Option<Setting>,
    /// The score on the source language's development set.
    pub dev: Option<Mean>,
    /// The score on every test set: the mean of the best two settings, over seeds.
    pub results: Vec<Outcome>,
    /// Scores in full, of the setting whose predictions stand in the folder.
    pub scores: BTreeMap<String, Score>,
    /// What shifting the target languages made of their scores, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shift: Option<ShiftSummary>,
    /// All settings that were trained, without their histories.
    pub settings: Vec<Value>,
    /// What is worth telling of each file.
    pub sets: BTreeMap<String, SetFacts>,
    /// Numbers that learn.
    pub parameters: usize,
    /// How fast it was.
    pub speed: Speed,
    /// The share of positions that are padding. Inputs follow one another without any.
    pub padding: f64,
}

impl Summary {
    /// The summary in a run's folder, where there is one.
    pub(super) fn read(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(SUMMARY);
        if !path.is_file() {
            return Ok(None);
        }
        let text = fs::read_to_string(&path).at(&path, "read")?;
        let wrong = |error: serde_json::Error| {
            Error::file(&path, error.to_string(), "remove it, and resume the run")
        };
        Ok(Some(serde_json::from_str(&text).map_err(wrong)?))
    }

    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).expect("a summary is valid JSON");
        Ok(files::write(&folder.join(SUMMARY), text + "\n")?)
    }
}

/// The settings that are done, in a run's folder; each must have a result for every test set.
pub(super) fn read_records(folder: &Path, sets: &Sets) -> Result<Vec<Record>> {
    let path = &folder.join(RESULTS);
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(path).at(path, "read")?;
    let wrong = |reason: String| Error::file(path, reason, "begin the run anew");
    let records: Vec<Record> =
        serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let moved = |set: &Set| sets.targets.iter().any(|target| target.language == set.language);
    let lacks = |set: &&Set| {
        let shifted = |record: &Record| record.shifted.contains_key(&set.name);
        let whole = |record: &Record| {
            record.tests.contains_key(&set.name) && (shifted(record) || !moved(set))
        };
        !records.iter().all(whole)
    };
    match sets.tests.iter().find(lacks) {
        None => Ok(records),
        Some(set) => Err(wrong(format!("a setting has no result for {}", set.name))),
    }
}

/// Notes down the settings that are done.
pub(super) fn write_records(folder: &Path, records: &[Record]) -> Result<()> {
    let text = serde_json::to_string_pretty(records).expect("records are valid JSON");
    Ok(files::write(&folder.join(RESULTS), text + "\n")?)
}

/// The records of each seed, the best on the development set first.
pub fn ranked(records: &[Record]) -> BTreeMap<u64, Vec<&Record>> {
    let mut seeds: BTreeMap<u64, Vec<&Record>> = BTreeMap::new();
    for record in records {
        seeds.entry(record.setting.seed).or_default().push(record);
    }
    for records in seeds.values_mut() {
        // Stable: of equals, the one tried first.
        records.sort_by(|a, b| b.dev.total_cmp(&a.dev));
    }
    seeds
}

/// The mean over seeds of the mean over each seed's best two settings.
pub fn mean_of_best(records: &[Record], score: impl Fn(&Record) -> f64) -> Option<Mean> {
    let of_seed = |ranked: &Vec<&Record>| {
        let best = &ranked[..BEST.min(ranked.len())];
        best.iter().map(|record| score(record)).sum::<f64>() / best.len() as f64
    };
    let seeds: Vec<f64> = ranked(records).values().map(of_seed).collect();
    (!seeds.is_empty()).then(|| Mean::of(&seeds))
}

/// The settings that results are means of.
pub(super) fn of_best(records: &[Record]) -> Vec<&Record> {
    let best = |ranked: Vec<_>| ranked.into_iter().take(BEST);
    ranked(records).into_values().flat_map(best).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nli::score;

    fn record(seed: u64, rate: f64, dev: f64, right: usize) -> Record {
        let labels = (0..10).map(|at| ("a", if at < right { "a" } else { "b" }));
        let tests = BTreeMap::from([("fr".to_owned(), Score::Nli(score(labels)))]);
        let setting = Setting { seed, batch: 8, rate, head_rate: rate };
        Record { setting, epoch: 1, dev, tests, shifted: BTreeMap::new(), history: vec![] }
    }

    #[test]
    fn the_best_two_by_dev_are_averaged_and_seeds_compared() {
        let records = [
            record(1, 1e-3, 0.9, 5),
            record(1, 2e-3, 0.8, 9),
            record(1, 3e-3, 0.95, 7),
            record(2, 1e-3, 0.7, 8),
        ];
        let mean = mean_of_best(&records, |record| record.tests["fr"].headline()).unwrap();
        assert!((mean.mean - (0.6 + 0.8) / 2.0).abs() < 1e-12, "{mean:?}");
        assert_eq!((mean.runs, mean.interval.is_some()), (2, true));
        assert_eq!(mean_of_best(&[], |record| record.dev), None);
    }
}
