//! Accuracy by word: UPOS of the CoNLL 2018 shared task's evaluation on gold words, and `accuracy_score` of
//! scikit-learn.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::counts::{PrecisionRecall, accuracy, count_labels, label_table};
use crate::registry::{TaskScore, signature};

/// The scores of POS tagging.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PosScore {
    /// The share of words with the gold tag.
    pub accuracy: f64,
    /// Words; a multiword token is none, its parts are.
    pub words: usize,
    /// Sentences.
    pub sentences: usize,
    /// For each tag.
    pub tags: BTreeMap<String, PrecisionRecall>,
    /// What exactly was computed.
    pub signature: String,
}

/// Scores the tags of sentences, each a pair of gold and predicted.
pub fn score<'a>(sentences: impl IntoIterator<Item = (&'a [String], Vec<&'a str>)>) -> PosScore {
    let mut labels = Vec::new();
    let mut count = 0;
    for (gold, predicted) in sentences {
        count += 1;
        labels.extend(gold.iter().map(String::as_str).zip(predicted));
    }
    let (words, tags) = (labels.len(), count_labels(labels));
    let signature = signature("pos|accuracy:words");
    PosScore { accuracy: accuracy(&tags), words, sentences: count, tags, signature }
}

impl TaskScore for PosScore {
    fn value(&self) -> f64 {
        self.accuracy
    }

    fn signature(&self) -> &str {
        &self.signature
    }

    fn details(&self) -> Vec<(&'static str, String)> {
        vec![("words", self.words.to_string()), ("sentences", self.sentences.to_string())]
    }
}

impl fmt::Display for PosScore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "accuracy {:.4}  ({} words)", self.accuracy, self.words)?;
        f.write_str(&label_table(self.tags.iter().map(|(tag, counts)| (tag.as_str(), counts))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Worked by hand; `sklearn.metrics.accuracy_score` and `precision_recall_fscore_support` give the same,
    /// and so does UPOS of `conll18_ud_eval.py` on these words.
    #[test]
    fn a_worked_example() {
        let gold: Vec<Vec<String>> =
            [&["DET", "NOUN", "VERB", "DET", "NOUN"][..], &["NOUN", "PUNCT"]]
                .map(|tags| tags.iter().map(|&tag| tag.to_owned()).collect())
                .to_vec();
        let predicted = [vec!["DET", "NOUN", "NOUN", "DET", "VERB"], vec!["NOUN", "PUNCT"]];
        let score = score(gold.iter().map(Vec::as_slice).zip(predicted));
        assert_eq!((score.words, score.sentences), (7, 2));
        assert!((score.accuracy - 5.0 / 7.0).abs() < 1e-12);
        let noun = score.tags["NOUN"];
        assert_eq!((noun.gold, noun.predicted, noun.right), (3, 3, 2));
        assert!((noun.f1 - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(score.tags["VERB"].f1, 0.0);
        assert!(score.signature.starts_with("pos|accuracy:words|v:"));
    }
}
