//! Character n-grams (Bojanowski et al. 2017), split and hashed as fastText does: a word's vector is the
//! mean of its own and its n-grams', so that words of one stem start near each other.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Which n-grams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NGrams {
    /// The shortest, in characters; the marks of a word's beginning and end count.
    pub shortest: usize,
    /// The longest.
    pub longest: usize,
    /// Hash buckets; n-grams of one bucket share a row.
    pub buckets: u32,
}

impl Default for NGrams {
    fn default() -> Self {
        Self { shortest: 3, longest: 6, buckets: 2_000_000 }
    }
}

/// The input rows of each word: its own, then those of its n-grams. Only buckets that a word of the
/// vocabulary uses have a row.
pub(super) struct NGramRows {
    rows: Vec<u32>,
    /// Where each word's rows begin, and the end of the last.
    starts: Vec<usize>,
    pub(super) total: usize,
    /// The row of each bucket that has one.
    of_bucket: FxHashMap<u32, u32>,
    grams: NGrams,
}

impl NGramRows {
    pub(super) fn new(words: &[String], grams: NGrams) -> Self {
        let mut of_bucket: FxHashMap<u32, u32> = FxHashMap::default();
        let mut total = words.len();
        let (mut rows, mut starts) = (Vec::new(), vec![0]);
        for (number, word) in words.iter().enumerate() {
            rows.push(number as u32);
            each(&format!("<{word}>"), grams, |gram| {
                let row = *of_bucket.entry(hash(gram) % grams.buckets).or_insert_with(|| {
                    total += 1;
                    total as u32 - 1
                });
                rows.push(row);
            });
            starts.push(rows.len());
        }
        Self { rows, starts, total, of_bucket, grams }
    }

    /// The rows of a word that is not in the vocabulary: those of its n-grams that other words have.
    pub(super) fn of_other(&self, word: &str) -> Vec<u32> {
        let mut rows = Vec::new();
        each(&format!("<{word}>"), self.grams, |gram| {
            rows.extend(self.of_bucket.get(&(hash(gram) % self.grams.buckets)));
        });
        rows
    }

    pub(super) fn of(&self, word: u32) -> &[u32] {
        let word = word as usize;
        &self.rows[self.starts[word]..self.starts[word + 1]]
    }
}

/// Hands on the n-grams of a marked word. A mark alone is none.
fn each(marked: &str, grams: NGrams, mut hand_on: impl FnMut(&str)) {
    let places: Vec<usize> =
        marked.char_indices().map(|(at, _)| at).chain([marked.len()]).collect();
    let characters = places.len() - 1;
    for start in 0..characters {
        for length in grams.shortest..=grams.longest.min(characters - start) {
            let mark = length == 1 && (start == 0 || start + 1 == characters);
            if !mark {
                hand_on(&marked[places[start]..places[start + length]]);
            }
        }
    }
}

/// FNV-1a over bytes taken as signed, as fastText has it.
fn hash(gram: &str) -> u32 {
    gram.bytes().fold(2_166_136_261, |hash: u32, byte| {
        (hash ^ i32::from(byte as i8) as u32).wrapping_mul(16_777_619)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n_grams_are_those_of_fasttext() {
        let mut grams = Vec::new();
        let wanted = NGrams { shortest: 3, longest: 4, buckets: 10 };
        each("<für>", wanted, |gram| grams.push(gram.to_owned()));
        assert_eq!(grams, ["<fü", "<für", "für", "für>", "ür>"]);
        grams.clear();
        each("<a>", NGrams { shortest: 1, longest: 2, buckets: 10 }, |gram| {
            grams.push(gram.to_owned());
        });
        assert_eq!(grams, ["<a", "a", "a>"]);
    }

    #[test]
    fn hashes_are_those_of_fasttext() {
        // As gensim's `ft_hash_bytes` gives them.
        let expected = [("<fü", 365_038_320), ("für>", 2_179_962_838), ("<猫>", 3_691_757_861)];
        for (gram, number) in expected {
            assert_eq!(hash(gram), number, "{gram}");
        }
    }

    #[test]
    fn equal_n_grams_share_a_row() {
        let words = ["cat".to_owned(), "cats".to_owned()];
        let subwords =
            NGramRows::new(&words, NGrams { shortest: 3, longest: 3, ..NGrams::default() });
        // <ca cat at> | <ca cat ats ts>
        assert_eq!(subwords.of(0), [0, 2, 3, 4]);
        assert_eq!(subwords.of(1), [1, 2, 3, 5, 6]);
        assert_eq!(subwords.total, 7);
        // <sc sca cat at>, of which two are known.
        assert_eq!(subwords.of_other("scat"), [3, 4]);
        assert!(subwords.of_other("dog").is_empty());
    }
}
