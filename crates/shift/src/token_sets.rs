//! The subwords that each language uses: the token sets V_lang of Liu et al. 2020, §4.2, which decide of
//! which language a predicted token is.
//!
//! A language uses what occurs in text of it. Such text holds foreign words too, and the more of it there
//! is the more of them, so that the paper takes the sentences of XNLI; where no text is given, it is that of
//! the language mean vectors.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use text::{Corpus, LanguageObserver, Vocabulary, count_subwords};

use crate::error::{Error, Result};
use crate::means::MeanVectors;

/// How often each subword occurs in text of each language.
#[derive(Clone, Debug)]
pub struct TokenSets {
    languages: Vec<(String, Vec<u64>)>,
}

/// The size of a token set: a column of Liu et al. 2020, Table 3.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenSetSize {
    /// The language.
    pub language: String,
    /// Different subwords that it uses.
    pub subwords: usize,
    /// How many of them each other language uses too.
    pub shared: BTreeMap<String, usize>,
}

impl TokenSets {
    /// The subwords of the text that mean vectors were computed from.
    pub fn of_means(means: &MeanVectors) -> Self {
        let of = |mean: &crate::means::LanguageMean| (mean.name.clone(), mean.subwords.clone());
        Self { languages: means.languages.iter().map(of).collect() }
    }

    /// The subwords of text of each language.
    ///
    /// # Errors
    /// Where text cannot be read, or the vocabulary does not have its language.
    pub fn of_corpora(
        vocabulary: &Vocabulary,
        corpora: &[Corpus],
        observer: LanguageObserver<'_>,
    ) -> Result<Self> {
        let mut languages = Vec::new();
        for corpus in corpora {
            let name = corpus.source.language();
            let number = vocabulary.language(name)?;
            let counts =
                count_subwords(vocabulary, number, corpus, &mut |at| observer(name, at))?.0;
            languages.push((name.to_owned(), counts));
        }
        Ok(Self { languages })
    }

    /// How often each subword occurs in a language.
    ///
    /// # Errors
    /// Where there is no text of it.
    pub fn counts(&self, language: &str) -> Result<&[u64]> {
        let known = self.languages.iter().find(|(name, _)| name == language);
        known.map(|(_, counts)| counts.as_slice()).ok_or_else(|| {
            Error::request(format!(
                "there is no text of `{language}` to take its token set from; give some for every language"
            ))
        })
    }

    /// For each subword, which of two languages use it, and whether any other does.
    ///
    /// # Errors
    /// Where there is no text of one of the two.
    pub fn users(&self, source: &str, target: &str) -> Result<Vec<TokenUsers>> {
        let (from, to) = (self.counts(source)?, self.counts(target)?);
        let others: Vec<&Vec<u64>> =
            self.others(source, target).map(|(_, counts)| counts).collect();
        let user = |id: usize| TokenUsers {
            source: from[id] > 0,
            target: to[id] > 0,
            third: others.iter().any(|counts| counts[id] > 0),
        };
        Ok((0..from.len()).map(user).collect())
    }

    /// Whether there is any language but these two.
    pub fn has_third(&self, source: &str, target: &str) -> bool {
        self.others(source, target).next().is_some()
    }

    fn others(&self, source: &str, target: &str) -> impl Iterator<Item = &(String, Vec<u64>)> {
        self.languages.iter().filter(move |(name, _)| name != source && name != target)
    }

    /// The size of every set, and of what it has in common with each other.
    pub fn sizes(&self) -> Vec<TokenSetSize> {
        let count = |keep: &dyn Fn(usize) -> bool, counts: &[u64]| {
            counts.iter().enumerate().filter(|&(id, &count)| count > 0 && keep(id)).count()
        };
        let size = |(name, counts): &(String, Vec<u64>)| TokenSetSize {
            language: name.clone(),
            subwords: count(&|_| true, counts),
            shared: self
                .languages
                .iter()
                .filter(|(other, _)| other != name)
                .map(|(other, theirs)| (other.clone(), count(&|id| theirs[id] > 0, counts)))
                .collect(),
        };
        self.languages.iter().map(size).collect()
    }
}

/// Which languages use a subword.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenUsers {
    /// The language that is read.
    pub source: bool,
    /// The language that is shifted to.
    pub target: bool,
    /// Any other language whose token set is known.
    pub third: bool,
}

impl TokenUsers {
    /// Whether each of the two languages uses it.
    pub fn pair(self) -> (bool, bool) {
        (self.source, self.target)
    }

    /// Whether the language that is read uses it, and the one that is shifted to does not.
    pub fn only_source(self) -> bool {
        self.pair() == (true, false)
    }

    /// Whether the language that is shifted to uses it, and the one that is read does not.
    pub fn only_target(self) -> bool {
        self.pair() == (false, true)
    }

    /// Whether neither uses it.
    pub fn neither(self) -> bool {
        self.pair() == (false, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five subwords: of a and b, of a alone, of b and c, of c alone, of none.
    #[test]
    fn a_subword_is_of_the_languages_in_whose_text_it_occurs() {
        let language = |name: &str, counts: [u64; 5]| (name.to_owned(), counts.to_vec());
        let sets = TokenSets {
            languages: vec![
                language("a", [3, 1, 0, 0, 0]),
                language("b", [1, 0, 4, 0, 0]),
                language("c", [0, 0, 1, 2, 0]),
            ],
        };
        let users = sets.users("a", "b").unwrap();
        assert_eq!(
            users.iter().map(|user| user.pair()).collect::<Vec<_>>(),
            [(true, true), (true, false), (false, true), (false, false), (false, false)]
        );
        let third: Vec<bool> = users.iter().map(|user| user.third).collect();
        assert_eq!(third, [false, false, true, true, false]);
        assert!(
            sets.has_third("a", "b")
                && !TokenSets { languages: sets.languages[..2].to_vec() }.has_third("a", "b")
        );
        let sizes = sets.sizes();
        assert_eq!(sizes.iter().map(|size| size.subwords).collect::<Vec<_>>(), [2, 2, 2]);
        assert_eq!(
            sizes[0].shared,
            [("b", 1), ("c", 0)].map(|(name, size)| (name.to_owned(), size)).into()
        );
        assert_eq!(sizes[1].shared["c"], 1);
        assert!(sets.users("a", "d").unwrap_err().to_string().contains("no text of `d`"));
    }
}
