//! How much languages really share of a vocabulary: by types, by tokens, and by name.

use std::cmp::Reverse;

use rayon::prelude::*;
use serde::Serialize;

use super::Vocabulary;
use crate::corpus::{Corpus, CorpusReport, ReadObserver, SentenceBlock};
use crate::error::Result;

/// What languages share, two by two.
#[derive(Clone, Debug, Serialize)]
pub struct VocabularySharing {
    /// Each language by itself.
    pub languages: Vec<LanguageCounts>,
    /// Each pair once, in the order of the languages.
    pub pairs: Vec<PairSharing>,
}

/// One language's use of the vocabulary.
#[derive(Clone, Debug, Serialize)]
pub struct LanguageCounts {
    /// The language.
    pub language: String,
    /// |V_lang|: subwords that its text uses. The unknown one counts, as it does in paper 2's
    /// Table 3; other special ones do not.
    pub types: u64,
    /// Subwords in its text, unknown ones included.
    pub tokens: u64,
    /// The share of its tokens that are unknown.
    pub unknown: f64,
}

/// What two languages share.
#[derive(Clone, Debug, Serialize)]
pub struct PairSharing {
    /// The first language.
    pub first: String,
    /// The second language.
    pub second: String,
    /// |V_first ∩ V_second|, the unknown subword included if both have it.
    pub shared_types: u64,
    /// Those of the shared types that hold a letter: names, loans and cognates, and not digits or
    /// punctuation.
    pub shared_with_letters: u64,
    /// The share of types in either language that are in both.
    pub of_types: f64,
    /// The share of the first language's tokens that are of shared types.
    pub of_first_tokens: f64,
    /// The share of the second language's tokens that are of shared types.
    pub of_second_tokens: f64,
    /// The anchors that are most frequent in both, by the rarer side.
    pub anchors: Vec<Anchor>,
}

/// A subword that two languages share.
#[derive(Clone, Debug, Serialize)]
pub struct Anchor {
    /// The subword.
    pub subword: String,
    /// Its count in the first language.
    pub first: u64,
    /// Its count in the second language.
    pub second: u64,
}

/// Counts each subword in a corpus (all of it, held out or not).
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
/// at least `least` times; of the anchors, the `most` most frequent are named.
pub fn vocabulary_sharing(
    vocabulary: &Vocabulary,
    counts: &[(usize, Vec<u64>)],
    least: u64,
    most: usize,
) -> VocabularySharing {
    let least = least.max(1);
    let texts: Vec<_> = counts
        .iter()
        .map(|(language, counts)| Text::new(vocabulary, *language, counts, least))
        .collect();
    let pairs = (0..texts.len()).flat_map(|i| (i + 1..texts.len()).map(move |j| (i, j)));
    VocabularySharing {
        languages: texts.iter().map(Text::counts).collect(),
        pairs: pairs.map(|(i, j)| texts[i].share(&texts[j], most)).collect(),
    }
}

/// One language's counts, rare subwords and special ones but the unknown set to nothing.
struct Text<'a> {
    vocabulary: &'a Vocabulary,
    name: &'a str,
    used: Vec<u64>,
    tokens: u64,
    unknown: u64,
}

impl<'a> Text<'a> {
    fn new(vocabulary: &'a Vocabulary, language: usize, counts: &[u64], least: u64) -> Self {
        let unknown = vocabulary.specials().unknown as usize;
        let text = |id: usize| id == unknown || !vocabulary.is_special(id as u32);
        let used = counts.iter().enumerate();
        let used = used.map(|(id, &count)| if text(id) && count >= least { count } else { 0 });
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

    fn share(&self, other: &Text<'_>, most: usize) -> PairSharing {
        let both = |&id: &usize| self.used[id] > 0 && other.used[id] > 0;
        let either = |&id: &usize| self.used[id] > 0 || other.used[id] > 0;
        let types = (0..self.used.len()).filter(both).count() as u64;
        // What neither language could spell is no anchor between them.
        let unknown = self.vocabulary.specials().unknown as usize;
        let mut shared: Vec<usize> =
            (0..self.used.len()).filter(both).filter(|&id| id != unknown).collect();
        let tokens = |text: &Text<'_>| shared.iter().map(|&id| text.used[id]).sum::<u64>();
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
            anchors: shared.iter().take(most).map(anchor).collect(),
        }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
