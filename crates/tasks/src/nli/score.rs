//! How many pairs were judged right, and which label was taken for which.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::signature;

/// The scores of inference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NliScore {
    /// The share of pairs judged right.
    pub accuracy: f64,
    /// Pairs.
    pub pairs: usize,
    /// For each label that is right, how often each was given.
    pub confusion: BTreeMap<String, BTreeMap<String, usize>>,
    /// What exactly was computed.
    pub signature: String,
}

/// Scores labels: each pair is of the right one and the one given.
pub fn score<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> NliScore {
    let mut confusion: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    let (mut pairs, mut right) = (0, 0);
    for (gold, given) in labels {
        pairs += 1;
        right += usize::from(gold == given);
        *confusion.entry(gold.to_owned()).or_default().entry(given.to_owned()).or_default() += 1;
    }
    let signature = signature("nli|accuracy");
    NliScore { accuracy: right as f64 / pairs.max(1) as f64, pairs, confusion, signature }
}
