//! Paraphrases in real text: different sentences of one language that have the same translation.
//!
//! Conneau et al. 2020 (section 5.2) compare a language with itself, written en-en′, on sentences that say
//! the same in other words. Collections of translations such as Tatoeba hold such sentences: two English
//! ones that one French sentence translates. Sentences that are linked by translations, directly or over
//! others, may all mean the same; only one pair is taken of each such group, so that nothing else in the
//! result is also right.

use std::path::PathBuf;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use text::{LineRules, TextSource, TsvColumns, letters};

use crate::error::{Error, Result};
use crate::parallel::{ParallelSide, read_pair};

/// Where paraphrases are looked for.
#[derive(Clone, Debug)]
pub struct ParaphraseConfig {
    /// Files of two columns, each with its pair of languages, `A-B`.
    pub parallel: Vec<(String, String)>,
    /// The language of the paraphrases, one side of every file.
    pub language: String,
    /// Text whose lines must not be among them, such as that of pretraining.
    pub exclude: Vec<String>,
    /// The file of two columns to write.
    pub out: PathBuf,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParaphraseResult {
    /// The file.
    pub out: PathBuf,
    /// The language.
    pub language: String,
    /// Pairs of paraphrases.
    pub pairs: usize,
    /// Translated sentences that were read.
    pub rows: usize,
    /// Different sentences of the language among them.
    pub sentences: usize,
    /// How many of these stand in text that is excluded.
    pub excluded: usize,
}

/// Finds paraphrases and writes them, a pair a line.
///
/// # Errors
/// Where files cannot be read, or hold no paraphrase.
pub fn find(config: &ParaphraseConfig) -> Result<ParaphraseResult> {
    let mut sentences = SentenceGroups::default();
    let mut rows = 0;
    for (pair, file) in &config.parallel {
        let texts = [(pair.clone(), file.clone())];
        let sides = read_pair(&texts, &TsvColumns::default())?;
        let own = side_of(&sides, &config.language)?;
        rows += sides[own].lines.len();
        sentences.add(&sides[own].lines, &sides[1 - own]);
    }
    let excluded = sentences.exclude(&config.exclude)?;
    let pairs = sentences.pairs(&excluded);
    if pairs.is_empty() {
        let remedy = match config.exclude.is_empty() {
            true => "give text in which sentences have several translations, such as Tatoeba's",
            false => "give more parallel text, or exclude less",
        };
        let reason = format!("no two sentences of `{}` have one translation", config.language);
        return Err(Error::input(&config.parallel[0].1, reason, remedy));
    }
    let text: String = pairs.iter().map(|(a, b)| format!("{a}\t{b}\n")).collect();
    files::write(&config.out, text)?;
    Ok(ParaphraseResult {
        out: config.out.clone(),
        language: config.language.clone(),
        pairs: pairs.len(),
        rows,
        sentences: sentences.texts.len(),
        excluded: excluded.len(),
    })
}

fn side_of(sides: &[ParallelSide; 2], language: &str) -> Result<usize> {
    sides.iter().position(|side| side.language == language).ok_or_else(|| {
        let there = format!("{} and {}", sides[0].language, sides[1].language);
        let reason = format!("is of {there}, not of `{language}`");
        Error::input(&sides[0].file, reason, "name files of which one side is of the language")
    })
}

/// The sentences of the language, in groups of those that translations link.
#[derive(Default)]
struct SentenceGroups {
    numbers: FxHashMap<String, usize>,
    texts: Vec<String>,
    /// For each sentence another of its group; the first of a group is its own.
    parents: Vec<usize>,
    /// The sentences that each sentence of another language translates, in order.
    translations: Vec<Vec<usize>>,
}

impl SentenceGroups {
    fn add(&mut self, own: &[String], other: &ParallelSide) {
        let mut of: FxHashMap<&str, usize> = FxHashMap::default();
        for (own, other) in own.iter().zip(&other.lines) {
            if own.is_empty() || other.is_empty() {
                continue;
            }
            let number = self.number(own);
            let at = *of.entry(other).or_insert_with(|| {
                self.translations.push(Vec::new());
                self.translations.len() - 1
            });
            if !self.translations[at].contains(&number) {
                self.translations[at].push(number);
            }
            let first = self.translations[at][0];
            let (a, b) = (self.root(first), self.root(number));
            self.parents[a.max(b)] = a.min(b);
        }
    }

    fn number(&mut self, sentence: &str) -> usize {
        if let Some(&number) = self.numbers.get(sentence) {
            return number;
        }
        let number = self.texts.len();
        self.numbers.insert(sentence.to_owned(), number);
        self.texts.push(sentence.to_owned());
        self.parents.push(number);
        number
    }

    fn root(&self, mut number: usize) -> usize {
        while self.parents[number] != number {
            number = self.parents[number];
        }
        number
    }

    /// The sentences that stand in some text as a line.
    fn exclude(&self, files: &[String]) -> Result<FxHashSet<usize>> {
        let mut excluded = FxHashSet::default();
        if files.is_empty() {
            return Ok(excluded);
        }
        let source = TextSource::new("text", files)?;
        let mut lines = source.lines(LineRules::default());
        while let Some(sentence) = lines.next_sentence()? {
            excluded.extend(self.numbers.get(sentence));
        }
        Ok(excluded)
    }

    /// One pair of each group: the first two sentences with one translation that differ in more than
    /// punctuation and case.
    fn pairs(&self, excluded: &FxHashSet<usize>) -> Vec<(&str, &str)> {
        let mut done = FxHashSet::default();
        let mut pairs = Vec::new();
        for sentences in &self.translations {
            let usable: Vec<usize> =
                sentences.iter().copied().filter(|number| !excluded.contains(number)).collect();
            let Some(&first) = usable.first() else { continue };
            let words = letters(&self.texts[first]);
            let second = usable[1..].iter().find(|&&other| letters(&self.texts[other]) != words);
            if let Some(&second) = second
                && done.insert(self.root(first))
            {
                pairs.push((self.texts[first].as_str(), self.texts[second].as_str()));
            }
        }
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Worked by hand: `Hi!` and `Hello.` have one translation, and so has `Good day.` by a chain, of which
    /// nothing more is taken; `Yes!` and `yes` say the same in the same words.
    #[test]
    fn one_pair_of_each_group() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let fr = file(
            "en-fr.tsv",
            "Hi!\tSalut\nHello.\tSalut\nHello.\tBonjour\nGood day.\tBonjour\nYes!\tOui\nyes\tOui\n",
        );
        let de = file("de-en.tsv", "Es regnet\tIt rains.\nEs regnet\tIt's raining.\nJa\tYes!\n");
        let parallel = vec![("en-fr".to_owned(), fr), ("de-en".to_owned(), de)];
        let out = folder.path().join("out.tsv");
        let mut config = ParaphraseConfig {
            parallel,
            language: "en".to_owned(),
            exclude: Vec::new(),
            out: out.clone(),
        };
        let found = find(&config).unwrap();
        let read = || std::fs::read_to_string(&out).unwrap();
        assert_eq!(read(), "Hi!\tHello.\nIt rains.\tIt's raining.\n");
        assert_eq!((found.pairs, found.rows, found.sentences), (2, 9, 7));
        // Without `Hi!`, the chain's other pair is found.
        config.exclude = vec![file("train.txt", "Hi!\nIt rains.\n")];
        let found = find(&config).unwrap();
        assert_eq!((read().as_str(), found.excluded), ("Hello.\tGood day.\n", 2));
        config.language = "fr".to_owned();
        assert!(find(&config).unwrap_err().to_string().contains("is of de and en, not of `fr`"));
    }
}
