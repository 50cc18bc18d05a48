//! The records of a study: measured numbers, and texts that are shown verbatim.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

pub use commands::measured::Factors;

/// Whether the languages that factors name are invented: ISO 639 reserves `qaa` to `qtz` for local use.
pub(crate) fn invented(factors: &Factors) -> Option<bool> {
    let names = ["pair", "language", "direction"];
    let mut codes =
        names.iter().filter_map(|name| factors.get(*name)).flat_map(|text| text.split('-'));
    let first = codes.next()?.as_bytes();
    Some(matches!(first, [b'q', b'a'..=b't', b'a'..=b'z']))
}

/// Where a number or a text came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    pub study: String,
    pub scale: String,
    /// The random seed of the world, the weights and everything else that is drawn.
    pub seed: u64,
    /// The key of the step that gave it, which names the step's folder.
    pub step: String,
    /// The command of that step, as it could be typed.
    pub command: String,
    /// The build of the program that ran it.
    pub build: String,
    /// When the step ended, in seconds since 1970.
    pub finished_at: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub origin: Origin,
    /// What was measured, such as `f1`, `retrieval` or `cka`.
    pub measure: String,
    /// What it depends on. Levels that are numbers are numbers in JSON.
    #[serde(serialize_with = "typed_levels", deserialize_with = "text_levels")]
    pub factors: Factors,
    /// The number; always finite.
    pub value: f64,
    /// What exactly was computed, in the manner of sacreBLEU's signatures.
    pub signature: String,
    pub files: Vec<String>,
}

impl Record {
    /// A number of one's own at `tiny`, with its factors as `pair=qaa-qab layer=2`.
    pub fn written(study: &str, seed: u64, measure: &str, factors: &str, value: f64) -> Self {
        let origin = Origin {
            study: study.into(),
            scale: "tiny".into(),
            seed,
            step: format!("{study}-{seed}"),
            command: "isogloss pretrain".into(),
            build: "0.1.0".into(),
            finished_at: 1_794_000_000,
        };
        let factor = |part: &str| part.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned()));
        let factors = factors.split(' ').filter_map(factor).collect();
        Self { origin, measure: measure.into(), factors, value, ..Self::default() }
    }
}

/// A text that is shown verbatim, such as a sentence and its token translation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextRecord {
    pub origin: Origin,
    /// What it is, such as `translation`.
    pub name: String,
    /// What it depends on. Levels that are numbers are numbers in JSON.
    #[serde(serialize_with = "typed_levels", deserialize_with = "text_levels")]
    pub factors: Factors,
    pub text: String,
}

/// A factor's level as JSON: a number where its text is exactly how that number is written, else text.
fn typed(level: &str) -> Value {
    let number =
        level.parse::<i64>().ok().filter(|number| number.to_string() == level).map(Value::from);
    let real =
        || level.parse::<f64>().ok().filter(|real| real.is_finite() && real.to_string() == level);
    number.or_else(|| real().map(Value::from)).unwrap_or_else(|| Value::from(level))
}

fn typed_levels<S: Serializer>(factors: &Factors, out: S) -> Result<S::Ok, S::Error> {
    out.collect_map(factors.iter().map(|(name, level)| (name, typed(level))))
}

fn text_levels<'de, D: Deserializer<'de>>(from: D) -> Result<Factors, D::Error> {
    let text = |level: Value| match level {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let levels = BTreeMap::<String, Value>::deserialize(from)?;
    Ok(levels.into_iter().map(|(name, level)| (name, text(level))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_that_are_numbers_are_numbers_in_json() {
        let levels = ["3", "0.5", "-1", "1e3", "007", "inf", "en-fr", ""].map(typed);
        let json = serde_json::to_string(&levels).unwrap();
        assert_eq!(json, r#"[3,0.5,-1,"1e3","007","inf","en-fr",""]"#);
    }

    #[test]
    fn records_survive_json() {
        let origin = Origin {
            study: "anchors".into(),
            scale: "tiny".into(),
            seed: 1,
            step: "abc".into(),
            command: "isogloss shift sweep".into(),
            build: "0.1.0".into(),
            finished_at: 5,
        };
        let factors = [("layer", "3"), ("alpha", "-1"), ("kind", "mean"), ("distance", "0.15")];
        let factors = factors.map(|(name, level)| (name.to_owned(), level.to_owned())).into();
        let record = Record {
            origin,
            measure: "bleu1".into(),
            factors,
            value: 0.25,
            signature: String::new(),
            files: Vec::new(),
        };
        let json = serde_json::to_value(&record).unwrap();
        assert_eq!(json["factors"]["layer"], 3);
        let back: Record = serde_json::from_value(json).unwrap();
        assert_eq!(back, record);
    }
}
