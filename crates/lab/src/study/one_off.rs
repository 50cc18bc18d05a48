//! Results of single commands, and numbers from elsewhere, in the store of a laboratory.
//!
//! They go through the same extraction as the results of studies, so that `results` and `report` find them under the same
//! measures and factors.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::error::{Error, Result};
use super::laboratory::Laboratory;
use crate::build::Build;
use crate::record::{Factors, Origin, Record, TextRecord};
use crate::store::StepFiling;
use commands::measured::{Extractor, Measurement, StepResults, TextSample};

/// The study that results of single commands belong to, where no other is named.
pub const ONE_OFF: &str = "one-off";
/// Their scale: they follow none of the study's scales.
pub const OWN_SCALE: &str = "own";

/// Where the result of a single command came from.
pub struct OneOffOrigin<'a> {
    pub study: &'a str,
    pub seed: u64,
    pub command: &'a str,
    pub build: &'a Build,
}

impl OneOffOrigin<'_> {
    /// The same command for the same study is the same step, whose records are replaced.
    fn origin(&self) -> Origin {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.study.as_bytes()).update(b"\n").update(self.command.as_bytes());
        let finished_at =
            SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Origin {
            study: self.study.to_owned(),
            scale: OWN_SCALE.to_owned(),
            seed: self.seed,
            step: hasher.finalize().to_hex()[..20].to_owned(),
            command: self.command.to_owned(),
            build: self.build.to_string(),
            finished_at,
        }
    }

    /// Records what a command's result holds, in place of what the same command gave before; says how many numbers.
    ///
    /// # Errors
    /// Where the result is not what the command prints, or the store refuses.
    pub fn record(
        &self,
        lab: &Path,
        extractor: &Extractor,
        result: &Value,
        factors: &Factors,
    ) -> Result<usize> {
        let found = extractor.read(result, factors).map_err(|reason| Error::Result {
            step: self.command.to_owned(),
            reason,
            folder: lab.to_owned(),
        })?;
        let origin = self.origin();
        let StepResults { measurements, texts, signature } = found;
        let record = |Measurement { measure, factors, value }| Record {
            origin: origin.clone(),
            measure,
            factors,
            value,
            signature: signature.clone(),
            files: Vec::new(),
        };
        let text = |TextSample { name, factors, text }| TextRecord {
            origin: origin.clone(),
            name,
            factors,
            text,
        };
        let records: Vec<Record> = measurements.into_iter().map(record).collect();
        let texts: Vec<TextRecord> = texts.into_iter().map(text).collect();
        let numbers = records.len();
        let filing = StepFiling { slot: None, origin, records, texts };
        Laboratory::open(lab)?.store()?.replace(&[filing])?;
        Ok(numbers)
    }

    /// Records one number; a number of the same study, seed, measure and factors is replaced.
    ///
    /// # Errors
    /// Where the number is not finite, or the store refuses.
    pub fn add(&self, lab: &Path, scale: &str, measurement: Measurement) -> Result<()> {
        let Measurement { measure, factors, value } = measurement;
        let origin = Origin { scale: scale.to_owned(), ..self.origin() };
        let (signature, files) = (String::new(), Vec::new());
        let record = Record { origin, measure, factors, value, signature, files };
        Ok(Laboratory::open(lab)?.store()?.add(&[record], &[])?)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::store::RecordFilter;

    #[test]
    fn a_command_that_is_run_again_replaces_what_it_gave() {
        let lab = tempfile::tempdir().unwrap();
        let build = Build {
            version: "0".into(),
            commit: None,
            target: "here".into(),
            features: String::new(),
        };
        let record = |command: &str, used: usize| {
            let origin = OneOffOrigin { study: ONE_OFF, seed: 1, command, build: &build };
            let layer = |layer: usize| {
                let accuracy = json!({ "forward": 0.2, "backward": 0.4, "mean": 0.3 });
                json!({ "layer": layer, "raw": accuracy, "centered": accuracy, "aligned": null })
            };
            let layers: Vec<Value> = (0..used).map(layer).collect();
            let result = json!({
                "rows": 3, "repeated": 0, "too_long": 0, "used": used, "candidates": [3, 3],
                "chance": 0.1, "train": null, "layers": layers, "signature": "retrieval",
            });
            let factors = Factors::from([("pair".to_owned(), "en-fr".to_owned())]);
            origin.record(lab.path(), &Extractor::Retrieval, &result, &factors).unwrap()
        };
        assert_eq!(record("isogloss retrieve", 3), 4 + 6);
        assert_eq!(record("isogloss retrieve", 2), 4 + 4);
        let store = Laboratory::open(lab.path()).unwrap().store().unwrap();
        let records = store.records(&RecordFilter::study(ONE_OFF)).unwrap();
        assert_eq!(records.len(), 8, "what the first run gave is gone");
        let origin = OneOffOrigin { study: "mine", seed: 2, command: "bc", build: &build };
        let measurement =
            |value| Measurement { measure: "f1".to_owned(), factors: Factors::new(), value };
        origin.add(lab.path(), OWN_SCALE, measurement(0.5)).unwrap();
        origin.add(lab.path(), OWN_SCALE, measurement(0.6)).unwrap();
        let records = store.records(&RecordFilter::study("mine")).unwrap();
        assert_eq!((records.len(), records[0].value), (1, 0.6));
        assert!(origin.add(lab.path(), OWN_SCALE, measurement(f64::NAN)).is_err());
    }
}
