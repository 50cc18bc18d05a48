//! What the links of a text say in words: pairs of linked words (`chat=cat`), and the lexicon that they
//! make up.

use std::fmt::Write as _;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use text::TableRecord;

use crate::links::WordLinks;

/// The words of sentence pairs as they were linked: unlike ids, they tell words apart that a saved model does
/// not know.
#[derive(Default)]
pub(crate) struct PairTexts {
    text: String,
    /// Where each source and then each target ends.
    ends: Vec<usize>,
}

impl PairTexts {
    pub(crate) fn push(&mut self, source: &str, target: &str) {
        for side in [source, target] {
            self.text.push_str(side.trim());
            self.ends.push(self.text.len());
        }
    }

    pub(crate) fn words(&self, pair: usize) -> [Vec<&str>; 2] {
        [2 * pair, 2 * pair + 1].map(|at| {
            let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
            self.text[start..self.ends[at]].split_ascii_whitespace().collect()
        })
    }

    /// Appends the links of a pair in words: `le=the chat=cat`.
    pub(crate) fn put(&self, pair: usize, links: &WordLinks, text: &mut String) {
        let [source, target] = self.words(pair);
        for (index, (i, j)) in links.iter().enumerate() {
            let space = if index > 0 { " " } else { "" };
            let _ = write!(text, "{space}{}={}", source[usize::from(i)], target[usize::from(j)]);
        }
    }
}

/// An entry of a lexicon made from links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkedPair {
    /// The source word.
    pub source: String,
    /// The target word.
    pub target: String,
    /// How often the two are linked.
    pub links: u64,
    /// The share of the source word's links that lead to the target word.
    pub target_given_source: f64,
    /// The share of the target word's links that lead to the source word.
    pub source_given_target: f64,
}

impl TableRecord for LinkedPair {
    const COLUMNS: &'static [&'static str] =
        &["source", "target", "links", "target_given_source", "source_given_target"];

    fn lines(&self, line: &mut dyn FnMut(&[&str])) {
        line(&[
            &self.source,
            &self.target,
            &self.links.to_string(),
            &format!("{:.6}", self.target_given_source),
            &format!("{:.6}", self.source_given_target),
        ]);
    }
}

/// Counts the linked words of a text; the most frequent pair comes first, and of equals the first in
/// alphabetical order.
pub(crate) fn lexicon(
    texts: &PairTexts,
    pairs: usize,
    links: impl Fn(usize) -> WordLinks,
) -> Vec<LinkedPair> {
    let mut counts: FxHashMap<(&str, &str), u64> = FxHashMap::default();
    let (mut of_source, mut of_target) = (FxHashMap::default(), FxHashMap::default());
    for pair in 0..pairs {
        let [source, target] = texts.words(pair);
        for (i, j) in links(pair).iter() {
            let (a, b) = (source[usize::from(i)], target[usize::from(j)]);
            *counts.entry((a, b)).or_default() += 1;
            *of_source.entry(a).or_insert(0_u64) += 1;
            *of_target.entry(b).or_insert(0_u64) += 1;
        }
    }
    let mut entries: Vec<((&str, &str), u64)> = counts.into_iter().collect();
    entries.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    let entry = |((source, target), links): ((&str, &str), u64)| LinkedPair {
        source: source.to_owned(),
        target: target.to_owned(),
        links,
        target_given_source: links as f64 / of_source[source] as f64,
        source_given_target: links as f64 / of_target[target] as f64,
    };
    entries.into_iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Worked by hand: `chat` is linked to `cat` twice and to `tom` once.
    #[test]
    fn links_in_words_and_as_a_lexicon() {
        let mut texts = PairTexts::default();
        texts.push(" le chat", "the cat ");
        texts.push("chat", "cat");
        texts.push("un chat dort", "tom sleeps");
        texts.push("", "nothing");
        let all = ["0-0 1-1", "0-0", "1-0 2-1", ""].map(|text| WordLinks::parse(text).unwrap());
        let mut text = String::new();
        texts.put(0, &all[0], &mut text);
        assert_eq!(text, "le=the chat=cat");
        let lexicon = lexicon(&texts, 4, |pair| all[pair].clone());
        let rows: Vec<_> = lexicon.iter().map(|e| (&*e.source, &*e.target, e.links)).collect();
        assert_eq!(
            rows,
            [("chat", "cat", 2), ("chat", "tom", 1), ("dort", "sleeps", 1), ("le", "the", 1)]
        );
        assert_eq!(lexicon[0].target_given_source, 2.0 / 3.0);
        assert_eq!(lexicon[0].source_given_target, 1.0);
        assert_eq!(lexicon[1].target_given_source, 1.0 / 3.0);
    }
}
