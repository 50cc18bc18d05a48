//! BLEU-1 (Papineni et al. 2002) as sacreBLEU computes it: clipped unigrams of the whole corpus, with the
//! brevity penalty; from 0 to 1.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

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
        let mut left: HashMap<u32, u32> = HashMap::new();
        reference.iter().for_each(|&token| *left.entry(token).or_default() += 1);
        for token in output {
            if let Some(count @ 1..) = left.get_mut(token) {
                *count -= 1;
                self.right += 1;
            }
        }
        self.output += output.len() as u64;
        self.reference += reference.len() as u64;
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

/// What exactly was computed; `tokens` says what a token is.
pub fn signature(tokens: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!("BLEU-1|nrefs:1|case:mixed|eff:no|tok:{tokens}|smooth:none|max_order:1|v:{version}")
}
