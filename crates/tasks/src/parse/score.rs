//! Attachment scores, as the CoNLL 2018 shared task evaluates them on gold words: the share of words with the
//! gold head (UAS), and with the gold head and relation (LAS).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::conllu::{Treebank, universal};
use crate::error::Result;
use crate::registry::{TaskScore, signature};

/// Parts of speech that are left out where punctuation does not count.
const PUNCTUATION: [&str; 2] = ["PUNCT", "SYM"];

/// Which part of a relation's name is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RelationLabels {
    /// The universal part, before the colon: `nmod` of `nmod:poss`.
    #[default]
    Universal,
    /// The whole name.
    Full,
}

impl RelationLabels {
    /// The part of a relation that is compared.
    pub fn of(self, relation: &str) -> &str {
        match self {
            RelationLabels::Universal => universal(relation),
            RelationLabels::Full => relation,
        }
    }
}

/// Attachment scores over some words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AttachmentScore {
    /// How many words.
    pub words: usize,
    /// The share with the gold head.
    pub uas: f64,
    /// The share with the gold head and relation.
    pub las: f64,
}

/// The scores of a parse.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParseScore {
    /// Over all words.
    pub all: AttachmentScore,
    /// Over all but punctuation and symbols.
    pub without_punctuation: AttachmentScore,
    /// Sentences.
    pub sentences: usize,
    /// What exactly was computed.
    pub signature: String,
}

/// How many words there are, and how many are correct.
#[derive(Default)]
struct AttachmentCounts {
    words: usize,
    heads: usize,
    relations: usize,
}

impl AttachmentCounts {
    fn add(&mut self, head: bool, relation: bool) {
        self.words += 1;
        self.heads += usize::from(head);
        self.relations += usize::from(head && relation);
    }

    fn shares(&self) -> AttachmentScore {
        let share = |count: usize| count as f64 / self.words.max(1) as f64;
        AttachmentScore { words: self.words, uas: share(self.heads), las: share(self.relations) }
    }
}

/// Scores heads and relations, given for each word of each sentence, against a treebank.
pub fn score<'a>(
    gold: &Treebank,
    relations: RelationLabels,
    predicted: impl Fn(usize, usize) -> (u32, &'a str),
) -> ParseScore {
    let (mut all, mut without) = (AttachmentCounts::default(), AttachmentCounts::default());
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
    let kind = if relations == RelationLabels::Full { "full" } else { "universal" };
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
pub fn compare(
    gold: &Treebank,
    predicted: &Treebank,
    relations: RelationLabels,
) -> Result<ParseScore> {
    gold.check_same(predicted)?;
    Ok(score(gold, relations, |sentence, at| {
        let word = &predicted.sentences[sentence].words[at];
        (word.head, &word.relation)
    }))
}

impl TaskScore for ParseScore {
    fn value(&self) -> f64 {
        self.all.las
    }

    fn signature(&self) -> &str {
        &self.signature
    }

    fn details(&self) -> Vec<(&'static str, String)> {
        let (all, without) = (self.all, self.without_punctuation);
        vec![
            ("UAS", format!("{:.4}", all.uas)),
            ("LAS without punct.", format!("{:.4}", without.las)),
            ("UAS without punct.", format!("{:.4}", without.uas)),
            ("words", all.words.to_string()),
        ]
    }
}

impl fmt::Display for ParseScore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "                        LAS     UAS   words")?;
        for (name, over) in
            [("all words", self.all), ("without punctuation", self.without_punctuation)]
        {
            writeln!(f, "{name:20} {:.4}  {:.4}  {:>6}", over.las, over.uas, over.words)?;
        }
        Ok(())
    }
}
