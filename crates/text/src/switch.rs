//! Extra anchors by code-switching (Conneau et al. 2020, section 4.1): words are replaced by their
//! dictionary translations with some probability, so that two languages occur in one sentence.
//!
//! It is applied to batches, not to files: a word is recognised by its subwords, each epoch has other
//! replacements, and the limit holds for every batch. Where a word has translations into several
//! languages, the language is drawn uniformly.

use std::collections::BTreeMap;
use std::path::Path;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::random::RandomStream;
use crate::reader::{LineRules, SkipCounts, TextSource};
use crate::vocabulary::Vocabulary;
use crate::{Error, Result};

/// A bilingual dictionary as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Dictionary {
    /// The language of the words.
    pub from: String,
    /// The language of their translations.
    pub to: String,
    /// Word, translation, and the translation's weight.
    pub entries: Vec<(String, String, f64)>,
    /// Lines that a tolerant reader skipped for lack of two columns or a weight.
    pub malformed: u64,
    /// Lines that a tolerant reader could not read.
    pub skipped: SkipCounts,
}

impl Dictionary {
    /// Reads a dictionary: a word, white space and a translation on each line, as MUSE writes
    /// them, or columns with tabs between, where words may hold spaces and a third column is the
    /// translation's weight, as PanLex gives it. Without a weight, translations are alike.
    pub fn read(path: &Path, from: &str, to: &str, rules: LineRules) -> Result<Self> {
        let source = TextSource::new(from, &[path.display().to_string()])?;
        let mut lines = source.lines(rules);
        let (mut entries, mut malformed) = (Vec::new(), 0);
        while let Some(line) = lines.next_line()? {
            match parse(line) {
                Some(entry) => entries.push(entry),
                None if rules.tolerant => malformed += 1,
                None => {
                    let reason = "not a word, a translation and perhaps a weight above 0";
                    let remedy = "write `word translation`, or `word<TAB>translation<TAB>weight`";
                    return Err(Error::line(path, lines.number(), reason, remedy));
                }
            }
        }
        if entries.is_empty() {
            return Err(Error::file(path, "holds no entry", "give a dictionary with entries"));
        }
        let (from, to, skipped) = (from.to_owned(), to.to_owned(), lines.skipped());
        Ok(Self { from, to, entries, malformed, skipped })
    }

    /// The dictionary in the opposite direction.
    pub fn reversed(&self) -> Self {
        let swap = |(word, translation, weight): &(String, String, f64)| {
            (translation.clone(), word.clone(), *weight)
        };
        Self {
            from: self.to.clone(),
            to: self.from.clone(),
            entries: self.entries.iter().map(swap).collect(),
            ..*self
        }
    }
}

fn parse(line: &str) -> Option<(String, String, f64)> {
    let tabs = line.contains('\t') && line.matches('\t').count() <= 2;
    let columns: Vec<&str> = if tabs {
        line.split('\t').map(str::trim).collect()
    } else {
        line.split_whitespace().collect()
    };
    let (word, translation, weight) = match columns[..] {
        [word, translation] => (word, translation, 1.0),
        [word, translation, weight] if tabs => (word, translation, weight.parse().ok()?),
        _ => return None,
    };
    let sound =
        !word.is_empty() && !translation.is_empty() && f64::is_finite(weight) && weight > 0.0;
    sound.then(|| (word.to_owned(), translation.to_owned(), weight))
}

/// How many words are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SwitchSettings {
    /// The probability that a word of the dictionary is replaced.
    pub probability: f64,
    /// The largest share of a batch's words that may be replaced.
    pub most: f64,
}

impl Default for SwitchSettings {
    fn default() -> Self {
        Self { probability: 0.3, most: 0.15 }
    }
}

/// A translation's subwords, and the cumulative weight up to it.
type TranslationChoice = (Box<[u32]>, f64);

/// Dictionaries encoded as subwords, to be applied to batches.
#[derive(Clone, Debug)]
pub struct CodeSwitch {
    settings: SwitchSettings,
    /// For each language of the vocabulary, words by their subwords.
    words: Vec<FxHashMap<Box<[u32]>, Vec<TranslationChoice>>>,
    unusable: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SwitchedBatch {
    pub(crate) sequences: Vec<Vec<u32>>,
    pub(crate) words: u32,
}

impl CodeSwitch {
    /// Encodes both sides of every dictionary. Words that preprocessing splits into several cannot be
    /// recognised by their subwords; they are counted as unusable.
    pub fn new(
        vocabulary: &Vocabulary,
        dictionaries: &[Dictionary],
        settings: SwitchSettings,
    ) -> Result<Self> {
        let share = |value: f64| (0.0..=1.0).contains(&value);
        if !share(settings.probability) || !share(settings.most) {
            let reason = "the probability and the limit of code-switching are shares from 0 to 1";
            return Err(Error::request(reason, "Conneau et al. 2020 use 0.3 and 0.15"));
        }
        let mut words: Vec<FxHashMap<_, _>> =
            vec![FxHashMap::default(); vocabulary.languages().len()];
        let mut unusable = 0;
        for (from, entries) in gather(vocabulary, dictionaries)? {
            let (language, word) = from;
            let Some(key) = encode_one(vocabulary, language, &word) else {
                unusable += 1;
                continue;
            };
            let choices = encode_choices(vocabulary, &entries);
            if !choices.is_empty() {
                words[language].insert(key, choices);
            }
        }
        Ok(Self { settings, words, unusable })
    }

    /// Words of a language that can be replaced.
    pub fn words(&self, language: usize) -> usize {
        self.words[language].len()
    }

    /// Entries of the dictionaries that cannot be found in text.
    pub fn unusable(&self) -> u64 {
        self.unusable
    }

    /// Replaces words of a batch, and truncates its sequences to `length` again.
    pub(crate) fn apply(
        &self,
        vocabulary: &Vocabulary,
        language: usize,
        sequences: Vec<Vec<u32>>,
        length: usize,
        random: &mut RandomStream,
    ) -> SwitchedBatch {
        let known = &self.words[language];
        let (mut total, mut chosen) = (0u64, Vec::new());
        for (row, tokens) in sequences.iter().enumerate() {
            for word in vocabulary.words(tokens) {
                total += u64::from(!vocabulary.is_special(tokens[word.start]));
                // At the edge of a sequence, what looks like a word may be part of one.
                let whole = word.start > 0 && word.end < tokens.len();
                if whole
                    && known.contains_key(&tokens[word.clone()])
                    && random.unit() < self.settings.probability
                {
                    chosen.push((row, word));
                }
            }
        }
        let limit = (self.settings.most * total as f64).floor() as usize;
        if chosen.len() > limit {
            random.shuffle(&mut chosen);
            chosen.truncate(limit);
            chosen.sort_by_key(|(row, word)| (*row, word.start));
        }
        let words = chosen.len() as u32;
        let mut chosen = chosen.into_iter().peekable();
        let mut rebuilt = Vec::with_capacity(sequences.len());
        for (row, tokens) in sequences.into_iter().enumerate() {
            let (mut out, mut at) = (Vec::with_capacity(length), 0);
            while let Some((_, word)) = chosen.next_if(|(of, _)| *of == row) {
                out.extend_from_slice(&tokens[at..word.start]);
                out.extend_from_slice(draw(&known[&tokens[word.clone()]], random));
                at = word.end;
            }
            out.extend_from_slice(&tokens[at..]);
            out.truncate(length);
            rebuilt.push(out);
        }
        SwitchedBatch { sequences: rebuilt, words }
    }
}

fn draw<'a>(choices: &'a [TranslationChoice], random: &mut RandomStream) -> &'a [u32] {
    let total = choices.last().map_or(0.0, |(_, sum)| *sum);
    let drawn = random.unit() * total;
    let at = choices.partition_point(|(_, sum)| *sum <= drawn);
    &choices[at.min(choices.len() - 1)].0
}

/// A language's index and a word as prepared.
type DictionaryWord = (usize, String);

/// All entries by word, with weights that sum to one for each word and language of translation.
/// In order, so that a draw depends on what the dictionaries say and not on hash tables.
fn gather(
    vocabulary: &Vocabulary,
    dictionaries: &[Dictionary],
) -> Result<BTreeMap<DictionaryWord, Vec<(DictionaryWord, f64)>>> {
    let mut gathered: BTreeMap<DictionaryWord, Vec<(DictionaryWord, f64)>> = BTreeMap::new();
    for dictionary in dictionaries {
        let from = vocabulary.language(&dictionary.from)?;
        let to = vocabulary.language(&dictionary.to)?;
        let prepare = |language: usize, word: &str| {
            let mut prepared = String::new();
            vocabulary.preparer(language).prepare(word, &mut prepared);
            (language, prepared)
        };
        let cased = !vocabulary.preparer(from).preparation().lowercase;
        for (word, translation, weight) in &dictionary.entries {
            let mut add = |word: &str, translation: &str| {
                let entries = gathered.entry(prepare(from, word)).or_default();
                entries.push((prepare(to, translation), *weight));
            };
            add(word, translation);
            // Dictionaries are mostly lowercase, and sentences start with a capital.
            if let Some(capital) = capitalised(word).filter(|_| cased) {
                add(&capital, &capitalised(translation).unwrap_or(translation.clone()));
            }
        }
    }
    for entries in gathered.values_mut() {
        let mut sums: BTreeMap<usize, f64> = BTreeMap::new();
        for ((language, _), weight) in entries.iter() {
            *sums.entry(*language).or_insert(0.0) += weight;
        }
        for ((language, _), weight) in entries.iter_mut() {
            *weight /= sums[language];
        }
    }
    Ok(gathered)
}

/// The word with a capital at its start; none if it has one already or can have none.
fn capitalised(word: &str) -> Option<String> {
    let first = word.chars().next().filter(|first| first.is_lowercase())?;
    let capital: String = first.to_uppercase().chain(word.chars().skip(1)).collect();
    (capital != word).then_some(capital)
}

/// The subwords of one word; none where the text is not one word.
fn encode_one(vocabulary: &Vocabulary, language: usize, word: &str) -> Option<Box<[u32]>> {
    let mut ids = Vec::new();
    vocabulary.encoder(language).encode(word, &mut ids);
    let unknown = ids.contains(&vocabulary.specials().unknown);
    let one = vocabulary.words(&ids).count() == 1;
    (one && !unknown).then(|| ids.into())
}

fn encode_choices(
    vocabulary: &Vocabulary,
    entries: &[(DictionaryWord, f64)],
) -> Vec<TranslationChoice> {
    let mut sum = 0.0;
    let mut choices = Vec::with_capacity(entries.len());
    for ((language, translation), weight) in entries {
        let mut ids = Vec::new();
        vocabulary.encoder(*language).encode(translation, &mut ids);
        if !ids.is_empty() {
            sum += weight;
            choices.push((ids.into(), sum));
        }
    }
    choices
}
