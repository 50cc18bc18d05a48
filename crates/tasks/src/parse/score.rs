//! How many words found their head, and their head and relation.

use serde::{Deserialize, Serialize};

use super::conllu::{Treebank, universal};
use crate::error::{Error, Result};
use crate::signature;

/// Parts of speech that are left out where punctuation does not count.
const PUNCTUATION: [&str; 2] = ["PUNCT", "SYM"];

/// Which relations are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Relations {
    /// Cut at the colon: `nmod` for `nmod:poss`.
    #[default]
    Universal,
    /// As they stand.
    Full,
}

impl Relations {
    /// The part of a relation that is compared.
    pub fn of(self, relation: &str) -> &str {
        match self {
            Relations::Universal => universal(relation),
            Relations::Full => relation,
        }
    }
}

/// Attachment scores over some words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Attachment {
    /// How many words.
    pub words: usize,
    /// The share with the right head.
    pub uas: f64,
    /// The share with the right head and relation.
    pub las: f64,
}

/// The scores of a parse.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParseScore {
    /// Over all words.
    pub all: Attachment,
    /// Over all but punctuation and symbols.
    pub without_punctuation: Attachment,
    /// Sentences.
    pub sentences: usize,
    /// What exactly was computed.
    pub signature: String,
}

/// Counts words, and those that are right.
#[derive(Default)]
struct Counts {
    words: usize,
    heads: usize,
    relations: usize,
}

impl Counts {
    fn add(&mut self, head: bool, relation: bool) {
        self.words += 1;
        self.heads += usize::from(head);
        self.relations += usize::from(head && relation);
    }

    fn shares(&self) -> Attachment {
        let share = |count: usize| count as f64 / self.words.max(1) as f64;
        Attachment { words: self.words, uas: share(self.heads), las: share(self.relations) }
    }
}

/// Scores heads and relations, given for each word of each sentence, against a treebank.
pub fn score<'a>(
    gold: &Treebank,
    relations: Relations,
    predicted: impl Fn(usize, usize) -> (u32, &'a str),
) -> ParseScore {
    let (mut all, mut without) = (Counts::default(), Counts::default());
    for (number, sentence) in gold.sentences.iter().enumerate() {
        for (at, word) in sentence.words.iter().enumerate() {
            let (head, relation) = predicted(number, at);
            let right = (head == word.head, relations.of(relation) == relations.of(&word.relation));
            all.add(right.0, right.1);
            if !PUNCTUATION.contains(&word.upos.as_str()) {
                without.add(right.0, right.1);
            }
        }
    }
    let kind = if relations == Relations::Full { "full" } else { "universal" };
    let punctuation = PUNCTUATION.join("+");
    let signature = signature(&format!("parse|las|labels:{kind}|nopunct:{punctuation}"));
    ParseScore {
        all: all.shares(),
        without_punctuation: without.shares(),
        sentences: gold.sentences.len(),
        signature,
    }
}

/// Scores one file against another, which must hold the same words.
pub fn compare(gold: &Treebank, predicted: &Treebank, relations: Relations) -> Result<ParseScore> {
    let path = &predicted.path;
    if gold.sentences.len() != predicted.sentences.len() {
        let (found, wanted) = (predicted.sentences.len(), gold.sentences.len());
        let reason = format!("{found} sentences, but the gold file has {wanted}");
        return Err(Error::file(path, reason, "predict every sentence of the gold file"));
    }
    for (gold, found) in gold.sentences.iter().zip(&predicted.sentences) {
        for (gold, found) in gold.words.iter().zip(&found.words) {
            if gold.form != found.form {
                let reason = format!("`{}` where the gold file has `{}`", found.form, gold.form);
                return Err(Error::line(path, found.line, reason, "predict the same words"));
            }
        }
        if gold.words.len() != found.words.len() {
            let line = found.words.last().map_or(1, |word| word.line);
            let (here, there) = (found.words.len(), gold.words.len());
            let reason = format!("a sentence of {here} words that has {there} in the gold file");
            return Err(Error::line(path, line, reason, "predict the same words"));
        }
    }
    Ok(score(gold, relations, |sentence, at| {
        let word = &predicted.sentences[sentence].words[at];
        (word.head, &word.relation)
    }))
}
