//! Counts of gold, predicted and correct labels, and the measures made of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Precision, recall and F1 of a label or of a type of span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PrecisionRecall {
    /// How many the gold file has.
    pub gold: usize,
    /// How many were predicted.
    pub predicted: usize,
    /// How many were predicted correctly.
    pub right: usize,
    /// The share of the predicted that are correct.
    pub precision: f64,
    /// The share of the gold ones that were predicted.
    pub recall: f64,
    /// Their harmonic mean.
    pub f1: f64,
}

impl PrecisionRecall {
    /// Fills in the shares; 0 where there is nothing to divide by.
    pub(crate) fn with_shares(mut self) -> Self {
        let share = |of: usize| if of == 0 { 0.0 } else { self.right as f64 / of as f64 };
        (self.precision, self.recall) = (share(self.predicted), share(self.gold));
        let sum = self.precision + self.recall;
        self.f1 = if sum == 0.0 { 0.0 } else { 2.0 * self.precision * self.recall / sum };
        self
    }
}

pub(crate) type LabelCounts = BTreeMap<String, PrecisionRecall>;

/// Counts each pair of a gold and a predicted label.
pub(crate) fn count_labels<'a>(
    labels: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> LabelCounts {
    let mut counts = LabelCounts::new();
    for (gold, predicted) in labels {
        let of_gold = counts.entry(gold.to_owned()).or_default();
        of_gold.gold += 1;
        of_gold.right += usize::from(gold == predicted);
        counts.entry(predicted.to_owned()).or_default().predicted += 1;
    }
    counts.into_iter().map(|(label, count)| (label, count.with_shares())).collect()
}

/// The share of correct labels; 0 where there are none.
pub(crate) fn accuracy(counts: &LabelCounts) -> f64 {
    let (right, gold) = counts
        .values()
        .fold((0, 0), |(right, gold), count| (right + count.right, gold + count.gold));
    right as f64 / gold.max(1) as f64
}

/// A table of F1, precision and recall, a row for each label.
pub(crate) fn label_table<'a>(
    rows: impl Iterator<Item = (&'a str, &'a PrecisionRecall)> + Clone,
) -> String {
    let width = rows.clone().map(|(name, _)| name.chars().count()).max().unwrap_or(0).max(5);
    let mut text = format!("{:width$}      F1  precision  recall   gold  predicted\n", "");
    for (name, of) in rows {
        text.push_str(&format!(
            "{name:width$}  {:.4}     {:.4}  {:.4}  {:>5}  {:>9}\n",
            of.f1, of.precision, of.recall, of.gold, of.predicted
        ));
    }
    text
}
