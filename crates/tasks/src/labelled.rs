//! What the three tasks have in common: labelled items become inputs with answers, and answers
//! become scores and files again.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::features::Features;
use crate::ner::NerScore;
use crate::nli::NliScore;
use crate::parse::ParseScore;

/// The tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// Natural language inference.
    Nli,
    /// Named entity recognition.
    Ner,
    /// Dependency parsing.
    Parse,
}

impl Task {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Task::Nli => "nli",
            Task::Ner => "ner",
            Task::Parse => "parse",
        }
    }

    /// The name of the score that counts.
    pub fn headline(self) -> &'static str {
        match self {
            Task::Nli => "accuracy",
            Task::Ner => "F1",
            Task::Parse => "LAS",
        }
    }
}

/// Stands for a class or a head that there is none of.
pub const NONE: u32 = u32::MAX;

/// What is said of one word or pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The number of its label; [`NONE`] where training never saw it.
    pub class: u32,
    /// In a tree, the head among the words of the input, counted from 1; 0 for the root, [`NONE`]
    /// where it lies elsewhere.
    pub head: u32,
}

/// One input and the right answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// The tokens, frame and all, as the features number them.
    pub tokens: Vec<u32>,
    /// The positions whose vectors the head reads, in ascending order.
    pub wanted: Vec<u32>,
    /// What is right: one for each wanted position, but for the root's in a tree.
    pub targets: Vec<Answer>,
    /// The number of the item that it is, or is a part of.
    pub item: usize,
}

/// A set of items as inputs.
#[derive(Clone, Debug, Default)]
pub struct Prepared {
    /// The inputs; those of one item follow one another.
    pub examples: Vec<Example>,
    /// Items that were too long and became several inputs.
    pub split: usize,
    /// Items that were too long and lost their end, or a part of one word.
    pub cut: usize,
}

/// The labels that training has seen, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labels(Vec<String>);

impl Labels {
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

    /// The number of a label, [`NONE`] where training never saw it.
    pub fn id(&self, name: &str) -> u32 {
        self.0.binary_search_by(|known| known.as_str().cmp(name)).map_or(NONE, |at| at as u32)
    }

    /// The label of a number.
    pub fn name(&self, id: u32) -> &str {
        self.0.get(id as usize).map_or("_", String::as_str)
    }

    /// The labels.
    pub fn names(&self) -> &[String] {
        &self.0
    }
}

/// A file of labelled items.
pub trait Labelled: Sync {
    /// The file.
    fn path(&self) -> &Path;

    /// How many items there are.
    fn items(&self) -> usize;

    /// What an item is called, in the plural.
    fn called(&self) -> &'static str;

    /// Keeps the first items only.
    fn truncate(&mut self, items: usize);

    /// Every label that occurs, with its line.
    fn labels(&self) -> Vec<(String, usize)>;

    /// The items as inputs for a model.
    fn prepare(&self, features: &dyn Features, language: usize, labels: &Labels) -> Prepared;

    /// The answers of an item, given those of its inputs.
    fn join(&self, _labels: &Labels, parts: &[&[Answer]]) -> Vec<Answer> {
        parts.concat()
    }

    /// Scores the answers of every item.
    fn score(&self, labels: &Labels, answers: &[Vec<Answer>]) -> Score;

    /// The file again, with these answers.
    fn render(&self, labels: &Labels, answers: &[Vec<Answer>]) -> String;
}

/// The scores of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "task", rename_all = "lowercase")]
pub enum Score {
    /// Of inference.
    Nli(NliScore),
    /// Of named entities.
    Ner(NerScore),
    /// Of a parse.
    Parse(ParseScore),
}

impl Score {
    /// The number that counts: accuracy, F1 or LAS, from 0 to 1.
    pub fn headline(&self) -> f64 {
        match self {
            Score::Nli(score) => score.accuracy,
            Score::Ner(score) => score.micro.f1,
            Score::Parse(score) => score.all.las,
        }
    }

    /// What exactly was computed.
    pub fn signature(&self) -> &str {
        match self {
            Score::Nli(score) => &score.signature,
            Score::Ner(score) => &score.signature,
            Score::Parse(score) => &score.signature,
        }
    }
}

/// A run of words that fits into one input.
pub(crate) struct Piece {
    /// Which words.
    pub(crate) words: std::ops::Range<usize>,
    /// Their tokens, framed.
    pub(crate) tokens: Vec<u32>,
    /// The position of each word's first token.
    pub(crate) firsts: Vec<u32>,
}

/// Cuts a sentence where it would be longer than the features allow, between words. Says also
/// whether a single word was too long and lost its end.
pub(crate) fn pieces<'a>(
    features: &dyn Features,
    language: usize,
    words: impl Iterator<Item = &'a str>,
) -> (Vec<Piece>, bool) {
    let words: Vec<&str> = words.collect();
    let encoded = features.encode(language, &words);
    let (start, end) = features.frame();
    let room = features.longest() - 2;
    let new = |first: usize| Piece { words: first..first, tokens: vec![start], firsts: vec![] };
    let (mut pieces, mut cut) = (vec![new(0)], false);
    for word in 0..words.len() {
        let from = encoded.firsts[word] as usize;
        let to = encoded.firsts.get(word + 1).map_or(encoded.ids.len(), |&next| next as usize);
        cut |= to - from > room;
        let ids = &encoded.ids[from..to.min(from + room)];
        let mut piece = pieces.pop().expect("there is always one under way");
        if piece.tokens.len() - 1 + ids.len() > room {
            pieces.push(piece);
            piece = new(word);
        }
        piece.firsts.push(piece.tokens.len() as u32);
        piece.tokens.extend_from_slice(ids);
        piece.words.end = word + 1;
        pieces.push(piece);
    }
    for piece in &mut pieces {
        piece.tokens.push(end);
    }
    (pieces, cut)
}
