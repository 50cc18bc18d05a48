//! Dependency parsing: which word hangs from which, and how?
//!
//! A word is read at its first piece, the root at the first token. A sentence that is too long is
//! parsed in parts: in training, words whose head lies in another part are passed over; in the
//! result, the roots of later parts hang from that of the first.

pub mod conllu;
mod score;
mod tree;

use std::path::Path;

pub use self::conllu::Treebank;
pub use self::score::{Attachment, ParseScore, Relations, compare, score};
pub use self::tree::{Scores, is_tree};

use crate::error::Result;
use crate::features::Features;
use crate::labelled::{Answer, Example, Labelled, Labels, NONE, Piece, Prepared, Score, pieces};

/// The relation of the word that hangs from the root.
pub(crate) const ROOT: &str = "root";
/// The relation of a part's root to that of the first part: clauses side by side.
const SIDE_BY_SIDE: &str = "parataxis";

/// A treebank, and which relations count.
pub struct Trees {
    bank: Treebank,
    relations: Relations,
}

impl Trees {
    /// Reads a treebank.
    pub fn read(path: &Path, relations: Relations) -> Result<Self> {
        Ok(Self { bank: Treebank::read(path)?, relations })
    }

    fn example(&self, labels: &Labels, item: usize, part: Piece) -> Example {
        let words = &self.bank.sentences[item].words;
        let target = |at: usize| {
            let word = &words[at];
            let inside = (word.head as usize).wrapping_sub(part.words.start + 1);
            let head = match word.head {
                0 => 0,
                _ if inside < part.words.len() => inside as u32 + 1,
                _ => NONE,
            };
            Answer { class: labels.id(self.relations.of(&word.relation)), head }
        };
        let targets = part.words.clone().map(target).collect();
        let wanted = std::iter::once(0).chain(part.firsts).collect();
        Example { tokens: part.tokens, wanted, targets, item }
    }
}

impl Labelled for Trees {
    fn path(&self) -> &Path {
        &self.bank.path
    }

    fn items(&self) -> usize {
        self.bank.sentences.len()
    }

    fn called(&self) -> &'static str {
        "sentences"
    }

    fn truncate(&mut self, items: usize) {
        self.bank.sentences.truncate(items);
    }

    fn labels(&self) -> Vec<(String, usize)> {
        let words = self.bank.sentences.iter().flat_map(|sentence| &sentence.words);
        words.map(|word| (self.relations.of(&word.relation).to_owned(), word.line)).collect()
    }

    fn prepare(&self, features: &dyn Features, language: usize, labels: &Labels) -> Prepared {
        let mut prepared = Prepared::default();
        for (item, sentence) in self.bank.sentences.iter().enumerate() {
            let forms = sentence.words.iter().map(|word| word.form.as_str());
            let (parts, cut) = pieces(features, language, forms);
            prepared.cut += usize::from(cut);
            prepared.split += usize::from(parts.len() > 1);
            let examples = parts.into_iter().map(|part| self.example(labels, item, part));
            prepared.examples.extend(examples);
        }
        prepared
    }

    fn join(&self, labels: &Labels, parts: &[&[Answer]]) -> Vec<Answer> {
        let root_of = |part: &[Answer]| part.iter().position(|answer| answer.head == 0);
        let top = parts.first().and_then(|part| root_of(part)).map_or(0, |at| at as u32 + 1);
        let beside = labels.id(SIDE_BY_SIDE);
        let mut joined: Vec<Answer> = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            let before = joined.len() as u32;
            joined.extend(part.iter().map(|answer| match answer.head {
                0 if number > 0 => {
                    let class = if beside == NONE { answer.class } else { beside };
                    Answer { class, head: top }
                }
                0 => *answer,
                head => Answer { head: head + before, ..*answer },
            }));
        }
        joined
    }

    fn score(&self, labels: &Labels, answers: &[Vec<Answer>]) -> Score {
        Score::Parse(score(&self.bank, self.relations, |sentence, word| {
            let answer = answers[sentence][word];
            (answer.head, labels.name(answer.class))
        }))
    }

    fn render(&self, labels: &Labels, answers: &[Vec<Answer>]) -> String {
        self.bank.render(|sentence, word| {
            let answer = answers[sentence][word];
            (answer.head, labels.name(answer.class))
        })
    }
}
