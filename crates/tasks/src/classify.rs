//! The score of single-sentence classification: accuracy and macro-averaged F1, as scikit-learn's `accuracy_score` and `f1_score(average="macro")`.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::counts::{PrecisionRecall, accuracy, count_labels, label_table};
use crate::registry::{TaskScore, signature};

/// The scores of single-sentence classification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassifyScore {
    /// The share of sentences with the gold label.
    pub accuracy: f64,
    /// The mean of the labels' F1, over all that are gold or predicted somewhere.
    pub macro_f1: f64,
    /// Sentences.
    pub sentences: usize,
    /// For each label.
    pub labels: BTreeMap<String, PrecisionRecall>,
    /// What exactly was computed.
    pub signature: String,
}

/// Scores pairs of a gold and a predicted label.
pub fn score<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> ClassifyScore {
    let labels = count_labels(labels);
    let macro_f1 = labels.values().map(|of| of.f1).sum::<f64>() / labels.len().max(1) as f64;
    let sentences = labels.values().map(|of| of.gold).sum();
    let signature = signature("classify|accuracy|f1:macro");
    ClassifyScore { accuracy: accuracy(&labels), macro_f1, sentences, labels, signature }
}

impl TaskScore for ClassifyScore {
    fn value(&self) -> f64 {
        self.accuracy
    }

    fn signature(&self) -> &str {
        &self.signature
    }

    fn details(&self) -> Vec<(&'static str, String)> {
        vec![
            ("macro F1", format!("{:.4}", self.macro_f1)),
            ("sentences", self.sentences.to_string()),
        ]
    }
}

impl fmt::Display for ClassifyScore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { accuracy, macro_f1, sentences, labels, .. } = self;
        writeln!(f, "accuracy {accuracy:.4}  macro F1 {macro_f1:.4}  ({sentences} sentences)")?;
        f.write_str(&label_table(labels.iter().map(|(label, counts)| (label.as_str(), counts))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Worked by hand; scikit-learn gives the same: a label that is predicted and never gold counts with an
    /// F1 of 0.
    #[test]
    fn a_worked_example() {
        let score = score([("a", "a"), ("a", "b"), ("b", "b"), ("b", "b"), ("b", "c")]);
        assert_eq!((score.accuracy, score.sentences), (0.6, 5));
        // F1 of a: 2·1·½ / 1½ = 2/3; of b: precision and recall 2/3; of c: 0.
        assert!((score.macro_f1 - 4.0 / 9.0).abs() < 1e-12, "{}", score.macro_f1);
        assert_eq!(score.labels["c"].predicted, 1);
        assert!(score.signature.starts_with("classify|accuracy|f1:macro|v:"));
    }
}
