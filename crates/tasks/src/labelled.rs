//! What all tasks have in common: the items of a labelled file become inputs with gold annotations, and
//! predicted annotations become scores and files again.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::features::TokenSource;
use crate::registry::ScoreResult;

/// The id of a label or a head that there is none of.
pub const NONE: u32 = u32::MAX;

/// The annotation of one word, sentence or pair of sentences, gold or predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// The id of its label; [`NONE`] where training never saw it.
    pub label: u32,
    /// In a tree, the head among the words of the input, counted from 1; 0 for the root, [`NONE`]
    /// where it lies elsewhere.
    pub head: u32,
}

impl Annotation {
    /// A label without a tree.
    pub fn of_label(label: u32) -> Self {
        Self { label, head: 0 }
    }
}

/// One input with its gold annotations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// The token ids, special tokens included.
    pub tokens: Vec<u32>,
    /// The positions whose vectors the head reads, in ascending order.
    pub positions: Vec<u32>,
    /// The gold annotations: one for each position, but for the root's in a tree.
    pub gold: Vec<Annotation>,
    /// The number of the item that it is, or is a segment of.
    pub item: usize,
}

/// The items of a file as inputs.
#[derive(Clone, Debug, Default)]
pub struct PreparedInputs {
    /// The inputs; those of one item follow one another.
    pub examples: Vec<Example>,
    /// Items that were too long and became several inputs.
    pub split: usize,
    /// Items that were too long and lost their end, or a part of one word.
    pub truncated: usize,
}

/// The labels of the training file, in alphabetical order; a label's id is its place there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelSet(Vec<String>);

impl LabelSet {
    /// All labels among these.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let names: BTreeSet<&str> = names.into_iter().collect();
        Self(names.into_iter().map(str::to_owned).collect())
    }

    /// How many there are.
    #[expect(clippy::len_without_is_empty, reason = "a labelled file always has a label")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The id of a label, [`NONE`] where training never saw it.
    pub fn id(&self, name: &str) -> u32 {
        self.0.binary_search_by(|known| known.as_str().cmp(name)).map_or(NONE, |at| at as u32)
    }

    /// The label of an id.
    pub fn name(&self, id: u32) -> &str {
        self.0.get(id as usize).map_or("_", String::as_str)
    }

    /// The labels.
    pub fn names(&self) -> &[String] {
        &self.0
    }
}

/// A file of labelled items.
pub trait LabelledFile: Sync {
    /// Where it lies.
    fn path(&self) -> &Path;

    /// How many items it has.
    fn items(&self) -> usize;

    /// What its items are, in the plural.
    fn unit(&self) -> &'static str {
        "sentences"
    }

    /// Keeps some of the items, given by number in ascending order.
    fn select(&mut self, items: &[usize]);

    /// The text of every item without its labels: what is equal here is the same input.
    fn texts(&self) -> Vec<String>;

    /// Every label that occurs, with its line.
    fn labels(&self) -> Vec<(String, usize)>;

    /// The items as inputs of a model.
    fn prepare(
        &self,
        source: &dyn TokenSource,
        language: usize,
        labels: &LabelSet,
    ) -> PreparedInputs;

    /// The annotations of an item, given those of its segments.
    fn join(&self, _labels: &LabelSet, segments: &[&[Annotation]]) -> Vec<Annotation> {
        segments.concat()
    }

    /// Scores the predictions for every item.
    fn score(&self, labels: &LabelSet, predictions: &[Vec<Annotation>]) -> ScoreResult;

    /// The file again, with these predictions in place of its labels.
    fn render(&self, labels: &LabelSet, predictions: &[Vec<Annotation>]) -> String;

    /// What is cut from an item that is too long, as a note says it.
    fn truncation(&self) -> &'static str {
        "with a word longer than any input, its end cut"
    }

    /// How many words were segmented from characters; none where the file has words.
    fn segmented_words(&self) -> Option<usize> {
        None
    }
}

/// Keeps some elements, given by number in ascending order.
pub(crate) fn select<T>(elements: &mut Vec<T>, chosen: &[usize]) {
    let mut chosen = chosen.iter().copied().peekable();
    let mut number = 0;
    elements.retain(|_| {
        let keep = chosen.next_if_eq(&number).is_some();
        number += 1;
        keep
    });
}

/// The name of a label that is predicted for an item as a whole.
pub(crate) fn item_labels<'a>(
    labels: &'a LabelSet,
    predictions: &'a [Vec<Annotation>],
) -> impl Iterator<Item = &'a str> {
    predictions.iter().map(|item| labels.name(item[0].label))
}
