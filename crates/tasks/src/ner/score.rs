//! How many entities were found, and how many of those found are there.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::spans::{Repair, Span, Tag, spans};
use crate::signature;

/// Precision and recall of entities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// Entities that are there.
    pub gold: usize,
    /// Entities that were predicted.
    pub predicted: usize,
    /// Entities that were predicted and are there, with the same words and type.
    pub right: usize,
    /// The share of the predicted that are there.
    pub precision: f64,
    /// The share of those there that were predicted.
    pub recall: f64,
    /// Their harmonic mean.
    pub f1: f64,
}

impl Found {
    /// Fills in the shares; 0 where there is nothing to divide by.
    fn finish(mut self) -> Self {
        let share = |of: usize| if of == 0 { 0.0 } else { self.right as f64 / of as f64 };
        (self.precision, self.recall) = (share(self.predicted), share(self.gold));
        let sum = self.precision + self.recall;
        self.f1 = if sum == 0.0 { 0.0 } else { 2.0 * self.precision * self.recall / sum };
        self
    }
}

/// The scores of named entities.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NerScore {
    /// Over all entities together.
    pub micro: Found,
    /// For each type.
    pub types: BTreeMap<String, Found>,
    /// Sentences.
    pub sentences: usize,
    /// Words.
    pub words: usize,
    /// The same over characters, where words were made of them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub characters: Option<Found>,
    /// What exactly was computed.
    pub signature: String,
}

/// Scores the tags of sentences against those that are right.
pub fn score<'a>(
    sentences: impl IntoIterator<Item = (&'a [Tag], &'a [Tag])>,
    repair: Repair,
) -> NerScore {
    let mut types: BTreeMap<String, Found> = BTreeMap::new();
    let (mut count, mut words) = (0, 0);
    for (gold, predicted) in sentences {
        count += 1;
        words += gold.len();
        let (gold, predicted) = (spans(gold, repair), spans(predicted, repair));
        for span in &gold {
            types.entry(span.kind.clone()).or_default().gold += 1;
        }
        for span in &predicted {
            let found = types.entry(span.kind.clone()).or_default();
            found.predicted += 1;
            let same = |other: &Span| (other.start, other.end).cmp(&(span.start, span.end));
            let there = gold.binary_search_by(same).is_ok_and(|at| gold[at].kind == span.kind);
            found.right += usize::from(there);
        }
    }
    let micro = types.values().fold(Found::default(), |sum, found| Found {
        gold: sum.gold + found.gold,
        predicted: sum.predicted + found.predicted,
        right: sum.right + found.right,
        ..sum
    });
    let rule = if repair == Repair::Paper { "paper" } else { "conventional" };
    let signature = signature(&format!("ner|f1:micro|spans:exact|repair:{rule}"));
    let types = types.into_iter().map(|(kind, found)| (kind, found.finish())).collect();
    NerScore { micro: micro.finish(), types, sentences: count, words, characters: None, signature }
}
