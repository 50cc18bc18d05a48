//! BLEU-1 (Papineni et al. 2002) as sacreBLEU computes it: clipped unigrams of the whole corpus, with the
//! brevity penalty; from 0 to 1.
//!
//! Whoever emits frequent words of a language is right about some of any sentence's: so BLEU-1 rises above that of
//! untranslated text without a single translation. [`References`] computes what such output scores, by two controls:
//! the same output against the references of other sentences of like length, and the most frequent words in its place.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use text::RandomStreams;

/// How many other sentences' references stand in for a sentence's own.
const OTHERS: usize = 5;

/// The counts of BLEU-1; sentences are added one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bleu {
    /// Tokens of the output that the reference has too, each at most as often as there.
    pub right: u64,
    /// Tokens of the output.
    pub output: u64,
    /// Tokens of the reference.
    pub reference: u64,
}

impl Bleu {
    /// Adds a sentence and its reference.
    pub fn add(&mut self, output: &[u32], reference: &[u32]) {
        self.add_sorted(&sorted(output), &sorted(reference));
    }

    fn add_sorted(&mut self, output: &[u32], reference: &[u32]) {
        self.output += output.len() as u64;
        self.reference += reference.len() as u64;
        let (mut output, mut reference) = (output, reference);
        while let ([a, others @ ..], [b, rest @ ..]) = (output, reference) {
            let order = a.cmp(b);
            self.right += u64::from(order == Ordering::Equal);
            if order != Ordering::Greater {
                output = others;
            }
            if order != Ordering::Less {
                reference = rest;
            }
        }
    }

    /// Adds another corpus.
    pub fn merge(&mut self, other: &Self) {
        self.right += other.right;
        self.output += other.output;
        self.reference += other.reference;
    }

    /// The score, from 0 to 1.
    pub fn score(&self) -> f64 {
        if self.right == 0 {
            return 0.0;
        }
        let (output, reference) = (self.output as f64, self.reference as f64);
        let penalty = if output < reference { (1.0 - reference / output).exp() } else { 1.0 };
        penalty * self.right as f64 / output
    }
}

fn sorted(tokens: &[u32]) -> Vec<u32> {
    let mut tokens = tokens.to_vec();
    tokens.sort_unstable();
    tokens
}

/// BLEU-1 beside that of the same output against other sentences' references.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlledBleu {
    /// Against a sentence's own reference.
    pub own: Bleu,
    /// Against those of others: the mean of as many permutations, whose lengths add up to the same.
    pub permuted: Bleu,
}

impl ControlledBleu {
    /// Adds another corpus.
    pub fn merge(&mut self, other: &Self) {
        self.own.merge(&other.own);
        self.permuted.merge(&other.permuted);
    }
}

/// The references of a corpus, and for each sentence those that stand in for its own.
pub struct References {
    /// The tokens of each, sorted.
    references: Vec<Vec<u32>>,
    others: Vec<Vec<usize>>,
}

impl References {
    /// Permutes the references of a corpus: within blocks of like length, since a long output is right about more of a long
    /// reference, whatever either says. No sentence keeps its own.
    pub fn new<'a>(references: impl IntoIterator<Item = &'a [u32]>, seed: u64) -> Self {
        let references: Vec<Vec<u32>> = references.into_iter().map(sorted).collect();
        let streams = RandomStreams::new(seed, "permuted references");
        let mut order: Vec<usize> = (0..references.len()).collect();
        order.sort_by_key(|&at| (references[at].len(), streams.rank(at as u64)));
        let mut others = vec![Vec::new(); references.len()];
        let size = OTHERS + 1;
        let blocks = (order.len() / size).max(1);
        for number in 0..blocks {
            // The last block has what is left over, too.
            let end = if number + 1 == blocks { order.len() } else { (number + 1) * size };
            let block = &order[number * size..end];
            for (place, &own) in block.iter().enumerate() {
                let steps = 1..=OTHERS.min(block.len() - 1);
                others[own] = steps.map(|step| block[(place + step) % block.len()]).collect();
            }
        }
        Self { references, others }
    }

    /// The counts of a sentence's output.
    pub fn score(&self, sentence: usize, output: &[u32]) -> ControlledBleu {
        let output = sorted(output);
        let mut counts = ControlledBleu::default();
        counts.own.add_sorted(&output, &self.references[sentence]);
        for &other in &self.others[sentence] {
            counts.permuted.add_sorted(&output, &self.references[other]);
        }
        counts
    }

    /// BLEU-1 of the same words for every sentence, `words` from the most frequent down, as many as each output is long.
    pub fn constant(&self, words: &[u32], lengths: impl IntoIterator<Item = usize>) -> Bleu {
        let mut counts = Bleu::default();
        for (reference, length) in self.references.iter().zip(lengths) {
            counts.add_sorted(&sorted(&words[..length.min(words.len())]), reference);
        }
        counts
    }
}

/// What exactly was computed; `tokens` says what a token is.
pub fn signature(tokens: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!("BLEU-1|nrefs:1|case:mixed|eff:no|tok:{tokens}|smooth:none|max_order:1|v:{version}")
}
