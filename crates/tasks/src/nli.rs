//! The score of natural language inference: accuracy, and which label was taken for which.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::registry::{TaskScore, signature};

/// The scores of NLI.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NliScore {
    /// The share of pairs with the gold label.
    pub accuracy: f64,
    /// Pairs.
    pub pairs: usize,
    /// For each gold label, how often each was predicted.
    pub confusion: BTreeMap<String, BTreeMap<String, usize>>,
    /// What exactly was computed.
    pub signature: String,
}

/// Scores pairs of a gold and a predicted label.
pub fn score<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> NliScore {
    let mut confusion: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    let (mut pairs, mut right) = (0, 0);
    for (gold, predicted) in labels {
        pairs += 1;
        right += usize::from(gold == predicted);
        let row = confusion.entry(gold.to_owned()).or_default();
        *row.entry(predicted.to_owned()).or_default() += 1;
    }
    let signature = signature("nli|accuracy");
    NliScore { accuracy: right as f64 / pairs.max(1) as f64, pairs, confusion, signature }
}

impl TaskScore for NliScore {
    fn value(&self) -> f64 {
        self.accuracy
    }

    fn signature(&self) -> &str {
        &self.signature
    }

    fn details(&self) -> Vec<(&'static str, String)> {
        vec![("pairs", self.pairs.to_string())]
    }
}

/// The accuracy, and the confusion matrix: gold labels down, predicted ones across.
impl fmt::Display for NliScore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "accuracy {:.4}  ({} pairs)", self.accuracy, self.pairs)?;
        let mut labels: Vec<&String> =
            self.confusion.iter().flat_map(|(gold, row)| row.keys().chain([gold])).collect();
        labels.sort();
        labels.dedup();
        let width = labels.iter().map(|label| label.len()).max().unwrap_or(0).max(6);
        let header: String = labels.iter().map(|label| format!("  {label:>width$}")).collect();
        writeln!(f, "{:width$}{header}", "gold")?;
        for (gold, row) in &self.confusion {
            let count = |label: &&String| row.get(*label).copied().unwrap_or(0);
            let cells = labels.iter().map(|label| format!("  {:>width$}", count(label)));
            writeln!(f, "{gold:width$}{}", cells.collect::<String>())?;
        }
        Ok(())
    }
}
