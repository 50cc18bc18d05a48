//! What `isogloss align words` says when done.

use std::fmt::Write as _;

use geometry::learn::Round;
use geometry::lexicon::{Candidates, Found};
use serde::Serialize;

/// What `align words` says when done.
#[derive(Serialize)]
pub(super) struct Aligned {
    #[serde(flatten)]
    pub(super) found: Option<Found>,
    /// The share of the test dictionary's source words that have a pair.
    pub(super) coverage: Option<f64>,
    /// Source words of the test dictionary, and how many of them have a pair.
    pub(super) words: Option<[usize; 2]>,
    /// Pairs of the test dictionary, and how many of them could be used.
    pub(super) pairs: Option<[usize; 2]>,
    /// The share of the test dictionary's pairs that could be used.
    pub(super) pair_coverage: Option<f64>,
    /// Word retrieval among the dictionary's translations.
    pub(super) candidates: Option<Candidates>,
    /// What was computed, so that numbers can be compared.
    pub(super) signature: String,
    pub(super) start: &'static str,
    /// Pairs that the first map was learned from.
    pub(super) train_pairs: Option<usize>,
    pub(super) rounds: Vec<Round>,
    pub(super) source_words: usize,
    pub(super) target_words: Option<usize>,
    pub(super) dim: usize,
}

impl Aligned {
    pub(super) fn in_words(&self) -> String {
        let target = self.target_words.map_or(String::new(), |words| format!(" x {words}"));
        let mut text = format!("{}{target} words, {} dimensions", self.source_words, self.dim);
        match self.train_pairs {
            Some(pairs) => _ = write!(text, ", map learned from {pairs} pairs"),
            None => _ = write!(text, ", start: {}", self.start),
        }
        if !self.rounds.is_empty() {
            let last = self.rounds[self.rounds.len() - 1];
            let _ = write!(text, ", {} rounds (mean cosine {:.3})", self.rounds.len(), last.cosine);
        }
        if let (Some(found), Some(words), Some(pairs)) = (self.found, self.words, self.pairs) {
            let _ = write!(
                text,
                "\n\n                          queries    P@1    P@5   P@10    MRR\n\
                 whole vocabulary       {:>10}  {:.3}  {:.3}  {:.3}  {:.3}\n",
                found.queries, found.p1, found.p5, found.p10, found.mrr
            );
            if let Some(Candidates { words, found }) = self.candidates {
                let label = format!("{words} candidates");
                let _ = writeln!(
                    text,
                    "{label:<22} {:>10}  {:.3}  {:.3}  {:.3}  {:.3}",
                    found.queries, found.p1, found.p5, found.p10, found.mrr
                );
            }
            let _ = write!(
                text,
                "\ncoverage: {}, {}\n{}",
                share(words, "source words"),
                share(pairs, "pairs"),
                self.signature
            );
        }
        text
    }
}

/// `116 of 1500 words (0.077)`.
fn share([all, part]: [usize; 2], what: &str) -> String {
    format!("{part} of {all} {what} ({:.3})", part as f64 / all.max(1) as f64)
}
