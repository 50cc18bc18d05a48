//! How much languages share of a vocabulary: by types, by tokens, and the anchors by name.

use std::cmp::Reverse;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::Vocabulary;
use crate::Result;
use crate::corpus::{Corpus, CorpusReport, ReadObserver, SentenceBlock};

/// What languages share, two by two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VocabularySharing {
    /// Each language by itself.
    pub languages: Vec<LanguageCounts>,
    /// Each pair once, in the order of the languages.
    pub pairs: Vec<PairSharing>,
}

/// One language's use of the vocabulary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LanguageCounts {
    /// The language.
    pub language: String,
    /// |V_lang|: subwords that occur in its text. The unknown token counts, as in Table 3 of Liu et al.
    /// 2020; other special tokens do not.
    pub types: u64,
    /// Subwords in its text, unknown ones included.
    pub tokens: u64,
    /// The share of its tokens that are unknown.
    pub unknown: f64,
}

/// What two languages share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairSharing {
    /// The first language.
    pub first: String,
    /// The second language.
    pub second: String,
    /// |V_first ∩ V_second|, the unknown subword included if both have it.
    pub shared_types: u64,
    /// Shared types with a letter: names, loans and cognates rather than digits or punctuation.
    pub shared_with_letters: u64,
    /// The share of types in either language that are in both.
    pub of_types: f64,
    /// The share of the first language's tokens that are of shared types.
    pub of_first_tokens: f64,
    /// The share of the second language's tokens that are of shared types.
    pub of_second_tokens: f64,
    /// The most frequent anchors, by their lower relative frequency of the two.
    pub anchors: Vec<Anchor>,
}

/// A subword that two languages share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Anchor {
    /// The subword.
    pub subword: String,
    /// Its count in the first language.
    pub first: u64,
    /// Its count in the second language.
    pub second: u64,
}

impl VocabularySharing {
    /// Gives the languages other names: an imported vocabulary has one name for all.
    pub(super) fn rename(&mut self, names: &[&str]) {
        for (language, name) in self.languages.iter_mut().zip(names) {
            language.language = (*name).to_owned();
        }
        let pairs = (0..names.len()).flat_map(|i| (i + 1..names.len()).map(move |j| (i, j)));
        for (pair, (i, j)) in self.pairs.iter_mut().zip(pairs) {
            (pair.first, pair.second) = (names[i].to_owned(), names[j].to_owned());
        }
    }
}

/// Counts each subword in a corpus, held-out sentences included.
pub fn count_subwords(
    vocabulary: &Vocabulary,
    language: usize,
    corpus: &Corpus,
    watch: ReadObserver<'_>,
) -> Result<(Vec<u64>, CorpusReport)> {
    let encoders = vocabulary.encoders(language);
    let mut counts = vec![0; vocabulary.len()];
    let report = corpus.read(watch, &mut |blocks| {
        let encode = |block: &SentenceBlock| {
            encoders.with(|encoder| {
                let mut ids = Vec::new();
                block.sentences().for_each(|(_, sentence)| encoder.encode(sentence, &mut ids));
                ids
            })
        };
        let encoded: Vec<Vec<u32>> = blocks.par_iter().map(encode).collect();
        encoded.iter().flatten().for_each(|&id| counts[id as usize] += 1);
        Ok(())
    })?;
    Ok((counts, report))
}

/// Compares languages by the counts of their subwords. A type belongs to a language if it occurs
/// at least `min_count` times; of the anchors, the `anchors` most frequent are named.
pub fn vocabulary_sharing(
    vocabulary: &Vocabulary,
    counts: &[(usize, Vec<u64>)],
    min_count: u64,
    anchors: usize,
) -> VocabularySharing {
    let min_count = min_count.max(1);
    let texts: Vec<_> = counts
        .iter()
        .map(|(language, counts)| UsedSubwords::new(vocabulary, *language, counts, min_count))
        .collect();
    let pairs = (0..texts.len()).flat_map(|i| (i + 1..texts.len()).map(move |j| (i, j)));
    VocabularySharing {
        languages: texts.iter().map(UsedSubwords::counts).collect(),
        pairs: pairs.map(|(i, j)| texts[i].share(&texts[j], anchors)).collect(),
    }
}

/// One language's counts, those of rare subwords and of special tokens but the unknown one set to 0.
struct UsedSubwords<'a> {
    vocabulary: &'a Vocabulary,
    name: &'a str,
    used: Vec<u64>,
    tokens: u64,
    unknown: u64,
}

impl<'a> UsedSubwords<'a> {
    fn new(vocabulary: &'a Vocabulary, language: usize, counts: &[u64], min_count: u64) -> Self {
        let unknown = vocabulary.specials().unknown as usize;
        let text = |id: usize| id == unknown || !vocabulary.is_special(id as u32);
        let used = counts.iter().enumerate();
        let used = used.map(|(id, &count)| if text(id) && count >= min_count { count } else { 0 });
        Self {
            vocabulary,
            name: vocabulary.languages().nth(language).unwrap_or_default(),
            used: used.collect(),
            tokens: (0..counts.len()).filter(|&id| text(id)).map(|id| counts[id]).sum(),
            unknown: counts[unknown],
        }
    }

    fn counts(&self) -> LanguageCounts {
        LanguageCounts {
            language: self.name.to_owned(),
            types: self.used.iter().filter(|&&count| count > 0).count() as u64,
            tokens: self.tokens,
            unknown: share(self.unknown, self.tokens),
        }
    }

    fn share(&self, other: &UsedSubwords<'_>, anchors: usize) -> PairSharing {
        let both = |&id: &usize| self.used[id] > 0 && other.used[id] > 0;
        let either = |&id: &usize| self.used[id] > 0 || other.used[id] > 0;
        let types = (0..self.used.len()).filter(both).count() as u64;
        // The unknown token is no anchor.
        let unknown = self.vocabulary.specials().unknown as usize;
        let mut shared: Vec<usize> =
            (0..self.used.len()).filter(both).filter(|&id| id != unknown).collect();
        let tokens = |text: &UsedSubwords<'_>| shared.iter().map(|&id| text.used[id]).sum::<u64>();
        let subword = |id: usize| self.vocabulary.subword(id as u32).unwrap_or_default();
        let letters = |id: &&usize| {
            let bare = subword(**id).trim_end_matches(super::WORD_END);
            bare.contains(char::is_alphabetic)
        };
        let (of_first, of_second) = (tokens(self), tokens(other));
        let with_letters = shared.iter().filter(letters).count() as u64;
        let in_either = (0..self.used.len()).filter(either).count() as u64;
        // Cross-multiplied, frequencies compare exactly.
        let rarer = |id: usize| {
            let first = u128::from(self.used[id]) * u128::from(other.tokens);
            first.min(u128::from(other.used[id]) * u128::from(self.tokens))
        };
        shared.sort_by_key(|&id| (Reverse(rarer(id)), id));
        let anchor = |&id: &usize| Anchor {
            subword: subword(id).to_owned(),
            first: self.used[id],
            second: other.used[id],
        };
        PairSharing {
            first: self.name.to_owned(),
            second: other.name.to_owned(),
            shared_types: types,
            shared_with_letters: with_letters,
            of_types: share(types, in_either),
            of_first_tokens: share(of_first, self.tokens),
            of_second_tokens: share(of_second, other.tokens),
            anchors: shared.iter().take(anchors).map(anchor).collect(),
        }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
