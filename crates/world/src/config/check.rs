//! Validity of a configuration: each refusal names the key, the reason and a remedy.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use super::{
    CorpusLayout, DomainConfig, LanguageConfig, MeaningConfig, SplitSizes, TreebankSizes,
    WorldConfig,
};
use crate::error::{self, Error};
use crate::meaning::LemmaCounts;

/// Beyond this many weights the sampling tables would not fit an ordinary machine's memory.
const MOST_WEIGHTS: usize = 40_000_000;

/// Items in any one set. More would fill a disk; a number so large is a slip.
const MOST_ITEMS: usize = 100_000_000;

impl WorldConfig {
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.layout == CorpusLayout::Paragraphs && !self.punctuation {
            return Err(error::config(
                "layout",
                "sentences on one line need a mark between them",
                "set punctuation = true, or layout = \"sentences\"",
            ));
        }
        self.check_sizes()?;
        within("dictionary_test", self.dictionary_test, 0.0..=0.9)?;
        self.meaning.check()?;
        let weights = self.meaning.topics * self.meaning.classes * self.meaning.lemmas;
        if weights.saturating_mul(self.domain.len()) > MOST_WEIGHTS {
            return Err(error::config(
                "meaning",
                format!("domains x topics x classes x lemmas exceeds {MOST_WEIGHTS}"),
                "lower meaning.topics, meaning.classes or meaning.lemmas",
            ));
        }
        let names = self.domain.iter().map(|domain| domain.name.as_str());
        names_are_sound("domain", "name", names)?;
        let codes = self.language.iter().map(|language| language.code.as_str());
        names_are_sound("language", "code", codes)?;
        self.domain.iter().enumerate().try_for_each(|(i, domain)| domain.check(i))?;
        self.language.iter().enumerate().try_for_each(|(i, language)| self.allows(i, language))
    }

    /// A set may be left out, but a language without text is none.
    fn check_sizes(&self) -> Result<(), Error> {
        between("sentences", self.sentences, 1..=MOST_ITEMS)?;
        for (index, language) in self.language.iter().enumerate() {
            let sentences = language.sentences.unwrap_or(self.sentences);
            between(&format!("language.{index}.sentences"), sentences, 1..=MOST_ITEMS)?;
        }
        between("tatoeba", self.tatoeba, 0..=MOST_ITEMS)?;
        between("treebank.parallel", self.treebank.parallel, 0..=MOST_ITEMS)?;
        let TreebankSizes { train, dev, test, .. } = self.treebank;
        for (set, splits) in [
            ("parallel", self.parallel),
            ("treebank", SplitSizes { train, dev, test }),
            ("ner", self.ner),
            ("nli", self.nli),
            ("classify", self.classify),
        ] {
            for (split, size) in splits.named() {
                between(&format!("{set}.{split}"), size, 0..=MOST_ITEMS)?;
            }
        }
        Ok(())
    }

    fn allows(&self, index: usize, language: &LanguageConfig) -> Result<(), Error> {
        let key = |name: &str| format!("language.{index}.{name}");
        let related = [
            ("distance", language.distance),
            ("anchors", language.anchors),
            ("cognates", language.cognates),
        ];
        for (name, value) in related {
            within(&key(name), value.unwrap_or(0.0), 0.0..=1.0)?;
            if index == 0 && value.unwrap_or(0.0) != 0.0 {
                return Err(error::config(
                    key(name),
                    "the first language is what the others are compared with",
                    "set it on another language",
                ));
            }
        }
        let mut seen = HashSet::new();
        for name in language.domains.iter().flatten() {
            if !self.domain.iter().any(|domain| domain.name == *name) {
                let known: Vec<_> = self.domain.iter().map(|d| d.name.as_str()).collect();
                return Err(error::config(
                    key("domains"),
                    format!("there is no domain {name:?}"),
                    format!("add a [[domain]] of that name, or use one of {}", known.join(", ")),
                ));
            }
            if !seen.insert(name) {
                return Err(error::config(
                    key("domains"),
                    format!("{name:?} occurs twice"),
                    "name each domain once",
                ));
            }
        }
        Ok(())
    }
}

impl MeaningConfig {
    fn check(&self) -> Result<(), Error> {
        between("meaning.topics", self.topics, 1..=256)?;
        between("meaning.classes", self.classes, 2..=1000)?;
        between("meaning.superclasses", self.superclasses, 1..=self.classes)?;
        between("meaning.latent", self.latent, 1..=64)?;
        let least = LemmaCounts::least_lemmas(self.classes, self.superclasses);
        between("meaning.lemmas", self.lemmas, least..=50_000)?;
        within("meaning.zipf", self.zipf, 0.0..=3.0)?;
        within("meaning.topic_contrast", self.topic_contrast, 0.0..=5.0)?;
        within("meaning.topic_skew", self.topic_skew, 0.0..=5.0)?;
        within("meaning.latent_decay", self.latent_decay, 0.0..=5.0)?;
        within("meaning.class_spread", self.class_spread, 0.0..=3.0)?;
        within("meaning.preference", self.preference, 0.0..=5.0)?;
        within("meaning.off_preference", self.off_preference, 0.0..=1.0)?;
        within("meaning.recurrence", self.recurrence, 0.0..=1.0)?;
        within("meaning.facts", self.facts, 0.0..=1.0)
    }
}

impl DomainConfig {
    fn check(&self, index: usize) -> Result<(), Error> {
        let key = |name: &str| format!("domain.{index}.{name}");
        within(&key("hidden"), self.hidden, 0.0..=0.9)?;
        within(&key("relatives"), self.relatives, 0.0..=0.5)?;
        within(&key("genitives"), self.genitives, 0.0..=0.5)?;
        for (name, value) in [
            ("shift", self.shift),
            ("adjectives", self.adjectives),
            ("adjuncts", self.adjuncts),
            ("negation", self.negation),
            ("pronouns", self.pronouns),
        ] {
            within(&key(name), value, 0.0..=1.0)?;
        }
        let [least, most] = self.document;
        between(&key("document"), least, 1..=1000)?;
        between(&key("document"), most, least..=1000)
    }
}

fn within(key: &str, value: f64, range: RangeInclusive<f64>) -> Result<(), Error> {
    if range.contains(&value) {
        return Ok(());
    }
    let (low, high) = range.into_inner();
    Err(error::config(key, format!("{value} is out of range"), format!("use {low} to {high}")))
}

fn between(key: &str, value: usize, range: RangeInclusive<usize>) -> Result<(), Error> {
    if range.contains(&value) {
        return Ok(());
    }
    let (low, high) = range.into_inner();
    Err(error::config(key, format!("{value} is out of range"), format!("use {low} to {high}")))
}

/// Names become parts of file names, so they are plain and differ.
fn names_are_sound<'a>(
    table: &str,
    key: &str,
    names: impl Iterator<Item = &'a str>,
) -> Result<(), Error> {
    let mut seen = HashSet::new();
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    for (index, name) in names.enumerate() {
        let key = format!("{table}.{index}.{key}");
        if name.is_empty() || name.len() > 24 || !name.chars().all(plain) {
            let remedy = "use 1 to 24 of the letters a-z and digits";
            return Err(error::config(key, format!("{name:?} cannot be in a file name"), remedy));
        }
        if !seen.insert(name) {
            return Err(error::config(key, format!("{name:?} occurs twice"), "rename one"));
        }
    }
    Ok(())
}
