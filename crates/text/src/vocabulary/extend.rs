//! A further language for a vocabulary that a model has been trained with: new subwords behind the old ones, which
//! keep their ids, and a tokenizer for the new language. Old languages keep theirs, so that the model reads them as before.
//!
//! Where each language has a tokenizer of its own, the new one has a byte-pair encoding learned from its text. Where one
//! tokenizer serves all, the new language has that tokenizer and more subwords: characters that it lacks, and then
//! merges of its subwords on the new text, byte-pair encoding (Sennrich et al. 2016) continued from the segmentation that
//! the tokenizer gives. Appended to WordPiece's list as in extended multilingual BERT (Wang et al. 2020); to the merges of
//! a BPE; to a unigram model with their log-probabilities in the new text.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::str::FromStr;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};
use tokenizers::{
    Model, NormalizedString, Normalizer, OffsetReferential, OffsetType, PreTokenizedString,
    PreTokenizer, Tokenizer,
};

use super::disk::as_text;
use super::learn::{
    BpeMerges, balanced, bpe_tokenizer, language, library_failure, number_subwords, with_ids,
};
use super::{
    BpeSettings, LanguageText, SpecialTokens, Vocabulary, VocabularyKind, VocabularyLanguage,
    WordMark, check_language,
};
use crate::prepare::{Preparation, Preparer, WordTokenizer};
use crate::{Error, Result};

/// The most characters that are added to a tokenizer that lacks them: the most frequent ones.
const MOST_CHARACTERS: usize = 10_000;

/// A vocabulary with a language more.
#[derive(Clone, Debug)]
pub struct ExtendedVocabulary {
    /// The vocabulary: the old ids are as they were, the new language is the last.
    pub vocabulary: Vocabulary,
    /// For each new id, the earlier ones that its subword consists of; none where it has characters that were not known.
    pub parts: Vec<Vec<u32>>,
}

impl Vocabulary {
    /// How text of a language that is to be added is prepared: as that of the first language, with rules for words of
    /// its own where that has.
    pub fn preparer_for_new(&self, name: &str) -> Result<Preparer> {
        let first = &self.languages[0];
        let own = first.preparer.preparation();
        let by_language = own.words == WordTokenizer::for_language(&first.name);
        let words = if by_language { WordTokenizer::for_language(name) } else { own.words };
        let simplify = own.simplify && terms::is_chinese(name);
        let table = self.simplified().filter(|_| simplify).cloned().map(Arc::new);
        Preparer::new(name, Preparation { words, simplify, ..own }, table)
    }

    /// The vocabulary with a further language, and with at most `merges` new subwords for it besides single characters.
    ///
    /// # Errors
    /// Where it has the language already, or its tokenizer is of a kind that cannot be extended.
    pub fn with_language(&self, text: LanguageText, merges: usize) -> Result<ExtendedVocabulary> {
        check_language(&text.name)?;
        if self.languages().any(|known| known == text.name) {
            let reason = format!("the vocabulary has the language `{}` already", text.name);
            return Err(Error::request(reason, "train it further on text of the language"));
        }
        match self.kind {
            VocabularyKind::Union | VocabularyKind::Disjoint => self.with_tokenizer(text, merges),
            _ => self.with_grown_tokenizer(text, merges),
        }
    }

    /// Adds a language with a byte-pair encoding of its own.
    fn with_tokenizer(&self, text: LanguageText, merges: usize) -> Result<ExtendedVocabulary> {
        let settings = BpeSettings { kind: self.kind, merges, ..BpeSettings::default() };
        let learned = BpeMerges::from(balanced(std::slice::from_ref(&text), 1.0), settings)?;
        let known = match self.kind {
            VocabularyKind::Disjoint => with_ids(&SpecialTokens::LEARNED_NAMES.map(String::from)),
            _ => with_ids(&self.subwords),
        };
        let (mut ids, mut subwords) = (known.clone(), self.subwords.clone());
        number_subwords(&learned, (self.kind, &text.name), &mut ids, &mut subwords);
        let tokenizer = bpe_tokenizer(&learned, &ids, text.preparer.preparation())?;
        let mut parts = vec![Vec::new(); subwords.len() - self.len()];
        for (left, right) in &learned.merges {
            let made = ids[&format!("{left}{right}")] as usize;
            if made >= self.len() && parts[made - self.len()].is_empty() {
                parts[made - self.len()] =
                    joined_parts(&parts, self.len(), [ids[left], ids[right]]);
            }
        }
        self.extended(text, as_text(tokenizer), subwords, parts)
    }

    /// Adds a language with the tokenizer of the others and more subwords.
    fn with_grown_tokenizer(
        &self,
        text: LanguageText,
        merges: usize,
    ) -> Result<ExtendedVocabulary> {
        let mark = self.imported.as_ref().map(|imported| imported.mark.clone());
        let mark = mark.unwrap_or_else(|| WordMark::of_kind(self.kind));
        let before = self.imported.as_ref().map_or("", |imported| imported.before_word());
        let tokenizer = &self.languages[0].tokenizer;
        let words = pretokens(tokenizer, before, &text.words.sorted());
        let mut grown = GrowingTokenizer::of(tokenizer, self.subwords.clone())?;
        let tokens = words.values().sum::<u64>().max(1) as f64;
        for (character, count) in unknown_characters(&words, &mark, &grown.ids) {
            grown.add(character, (count as f64 / tokens).ln());
        }
        let with_characters = grown.tokenizer()?;
        let mut segmented = segmentation(&with_characters, &words, self.specials.unknown);
        let tokens = segmented.iter().map(|(ids, count)| ids.len() as u64 * count).sum::<u64>();
        let mut parts = vec![Vec::new(); grown.subwords.len() - self.len()];
        let mut pairs = PairCounts::of(&segmented);
        let most = grown.subwords.len() + merges;
        while let Some((pair, count)) =
            pairs.most_frequent().filter(|_| grown.subwords.len() < most)
        {
            let (id, is_new) = grown.merge(pair, &mark, (count as f64 / tokens.max(1) as f64).ln());
            if is_new {
                parts.push(joined_parts(&parts, self.len(), [pair.0, pair.1]));
            }
            pairs.replace(&mut segmented, pair, id);
        }
        let tokenizer = grown.tokenizer()?;
        self.extended(text, tokenizer, grown.subwords, parts)
    }

    fn extended(
        &self,
        text: LanguageText,
        tokenizer: Tokenizer,
        subwords: Vec<String>,
        parts: Vec<Vec<u32>>,
    ) -> Result<ExtendedVocabulary> {
        let size = subwords.len();
        let mut languages: Vec<VocabularyLanguage> = self.languages.clone();
        languages.iter_mut().for_each(|language| language.counts.resize(size, 0));
        languages.push(language(text, Arc::new(tokenizer), size));
        let imported = self.imported.clone();
        let vocabulary = Self::assemble(self.kind, self.specials, subwords, languages, imported)?;
        Ok(ExtendedVocabulary { vocabulary, parts })
    }

    /// Whether one tokenizer serves all languages.
    pub fn has_one_tokenizer(&self) -> bool {
        (0..self.languages.len()).all(|language| self.has_first_tokenizer(language))
    }

    /// Whether a language has the tokenizer of the first.
    pub(super) fn has_first_tokenizer(&self, language: usize) -> bool {
        Arc::ptr_eq(&self.languages[language].tokenizer, &self.languages[0].tokenizer)
    }
}

/// The earlier ids that two subwords consist of together; none where those of one are not known.
fn joined_parts(parts: &[Vec<u32>], known: usize, pair: [u32; 2]) -> Vec<u32> {
    let of = |id: u32| match (id as usize).checked_sub(known) {
        None => vec![id],
        Some(new) => parts[new].clone(),
    };
    let [left, right] = pair.map(of);
    if left.is_empty() || right.is_empty() { Vec::new() } else { [left, right].concat() }
}

/// The units that a tokenizer's model receives of each word, with their counts.
fn pretokens(
    tokenizer: &Tokenizer,
    before: &str,
    words: &BTreeMap<&str, u64>,
) -> BTreeMap<String, u64> {
    let mut units = BTreeMap::new();
    for (word, count) in words {
        let mut text = NormalizedString::from(format!("{before}{word}"));
        let normalized = tokenizer.get_normalizer().map_or(Ok(()), |one| one.normalize(&mut text));
        let mut text = PreTokenizedString::from(text);
        let cut = tokenizer.get_pre_tokenizer().map_or(Ok(()), |one| one.pre_tokenize(&mut text));
        // What the library cannot cut is not learned from.
        if normalized.is_err() || cut.is_err() {
            continue;
        }
        for (unit, ..) in text.get_splits(OffsetReferential::Normalized, OffsetType::None) {
            *units.entry(unit.to_owned()).or_insert(0) += count;
        }
    }
    units
}

/// The single characters of words, marked as the model has them, that are no subwords yet; the most frequent first.
fn unknown_characters(
    words: &BTreeMap<String, u64>,
    mark: &WordMark,
    known: &FxHashMap<String, u32>,
) -> Vec<(String, u64)> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for (word, count) in words {
        let last = word.chars().count().saturating_sub(1);
        for (at, letter) in word.chars().enumerate() {
            let form = match mark {
                WordMark::Ends(suffix) if at == last => format!("{letter}{suffix}"),
                WordMark::Continues(prefix) if at > 0 => format!("{prefix}{letter}"),
                _ => letter.to_string(),
            };
            *counts.entry(form).or_insert(0) += count;
        }
    }
    let mut unknown: Vec<_> =
        counts.into_iter().filter(|(form, _)| !known.contains_key(form)).collect();
    unknown.sort_by_key(|(form, count)| (Reverse(*count), form.clone()));
    unknown.truncate(MOST_CHARACTERS);
    unknown
}

/// The subwords of each unit; units with something unknown are left out.
fn segmentation(
    tokenizer: &Tokenizer,
    units: &BTreeMap<String, u64>,
    unknown: u32,
) -> Vec<(Vec<u32>, u64)> {
    let model = tokenizer.get_model();
    let segmented = units.iter().filter_map(|(unit, &count)| {
        let tokens = terms::guarded(|| model.tokenize(unit))?.ok()?;
        let ids: Vec<u32> = tokens.into_iter().map(|token| token.id).collect();
        (!ids.contains(&unknown)).then_some((ids, count))
    });
    segmented.collect()
}

/// How often subwords stand side by side, kept up to date while pairs are merged. Of pairs that are equally frequent, the
/// one with the lower ids comes first.
struct PairCounts {
    counts: FxHashMap<(u32, u32), u64>,
    /// The words in which a pair stands, or once stood.
    words: FxHashMap<(u32, u32), Vec<u32>>,
    queue: BinaryHeap<(u64, Reverse<(u32, u32)>)>,
}

impl PairCounts {
    fn of(words: &[(Vec<u32>, u64)]) -> Self {
        let mut pairs = Self {
            counts: FxHashMap::default(),
            words: FxHashMap::default(),
            queue: BinaryHeap::new(),
        };
        let mut changed = FxHashSet::default();
        for (number, word) in words.iter().enumerate() {
            pairs.add(number, word, &mut changed);
        }
        pairs.enqueue(changed);
        pairs
    }

    fn add(
        &mut self,
        number: usize,
        (ids, count): &(Vec<u32>, u64),
        changed: &mut FxHashSet<(u32, u32)>,
    ) {
        for pair in ids.windows(2).map(|pair| (pair[0], pair[1])) {
            *self.counts.entry(pair).or_insert(0) += count;
            self.words.entry(pair).or_default().push(number as u32);
            changed.insert(pair);
        }
    }

    fn enqueue(&mut self, changed: FxHashSet<(u32, u32)>) {
        for pair in changed {
            self.queue.push((self.counts.get(&pair).copied().unwrap_or(0), Reverse(pair)));
        }
    }

    /// The most frequent pair, if it occurs more than once.
    fn most_frequent(&mut self) -> Option<((u32, u32), u64)> {
        loop {
            let &(count, Reverse(pair)) = self.queue.peek()?;
            let current = self.counts.get(&pair).copied().unwrap_or(0);
            if count < 2 {
                return None;
            }
            if count == current {
                return Some((pair, count));
            }
            // Its count has changed since: it is in the queue again.
            self.queue.pop();
        }
    }

    /// Replaces a pair by one subword wherever it stands.
    fn replace(&mut self, words: &mut [(Vec<u32>, u64)], pair: (u32, u32), by: u32) {
        let mut numbers = self.words.remove(&pair).unwrap_or_default();
        numbers.sort_unstable();
        numbers.dedup();
        let mut changed = FxHashSet::default();
        for number in numbers {
            let number = number as usize;
            let (ids, count) = &mut words[number];
            for old in ids.windows(2).map(|pair| (pair[0], pair[1])) {
                if let Some(known) = self.counts.get_mut(&old) {
                    *known = known.saturating_sub(*count);
                }
                changed.insert(old);
            }
            let mut merged = Vec::with_capacity(ids.len());
            let mut rest = ids.as_slice();
            while let Some((&first, after)) = rest.split_first() {
                let is_pair = first == pair.0 && after.first() == Some(&pair.1);
                merged.push(if is_pair { by } else { first });
                rest = if is_pair { &after[1..] } else { after };
            }
            *ids = merged;
            self.add(number, &words[number], &mut changed);
        }
        self.enqueue(changed);
    }
}

/// A tokenizer to which subwords are added, by its description in JSON.
struct GrowingTokenizer {
    description: Value,
    subwords: Vec<String>,
    ids: FxHashMap<String, u32>,
}

impl GrowingTokenizer {
    fn of(tokenizer: &Tokenizer, subwords: Vec<String>) -> Result<Self> {
        let text = tokenizer.to_string(false);
        let text = text.map_err(|error| library_failure("describe the tokenizer", &error))?;
        let mut description: Value = serde_json::from_str(&text)
            .map_err(|error| library_failure("describe the tokenizer", &error))?;
        let model = &mut description["model"];
        match model["type"].as_str() {
            Some("BPE" | "WordPiece") if model["vocab"].is_object() => {}
            // Its ids are places in a list, which is as long as the table of embeddings from now on.
            Some("Unigram") if model["vocab"].is_array() => {
                let list = model["vocab"].as_array_mut().expect("just seen");
                let missing = subwords.iter().skip(list.len());
                let entries: Vec<Value> = missing.map(|subword| json!([subword, -100.0])).collect();
                list.extend(entries);
            }
            kind => {
                let kind = kind.unwrap_or("of an unknown kind");
                let reason = format!("a tokenizer of kind `{kind}` cannot be given new subwords");
                let remedy = "take a model whose tokenizer is BPE, WordPiece or unigram";
                return Err(Error::request(reason, remedy));
            }
        }
        let ids = subwords.iter().cloned().zip(0..).collect();
        Ok(Self { description, subwords, ids })
    }

    fn add(&mut self, subword: String, score: f64) -> u32 {
        let id = self.subwords.len() as u32;
        match &mut self.description["model"]["vocab"] {
            Value::Array(list) => list.push(json!([subword, score])),
            vocab => vocab[subword.as_str()] = json!(id),
        }
        self.ids.insert(subword.clone(), id);
        self.subwords.push(subword);
        id
    }

    /// Adds the subword that two make, unless there is one; its id, and whether it is new.
    fn merge(&mut self, pair: (u32, u32), mark: &WordMark, score: f64) -> (u32, bool) {
        let [left, right] = [pair.0, pair.1].map(|id| self.subwords[id as usize].clone());
        let rest = match mark {
            WordMark::Continues(prefix) => right.strip_prefix(prefix.as_str()).unwrap_or(&right),
            _ => &right,
        };
        let made = format!("{left}{rest}");
        let known = self.ids.get(&made).copied();
        let id = known.unwrap_or_else(|| self.add(made, score));
        if let Value::Array(merges) = &mut self.description["model"]["merges"] {
            merges.push(json!([left, right]));
        }
        (id, known.is_none())
    }

    fn tokenizer(&self) -> Result<Tokenizer> {
        let text = self.description.to_string();
        let made = terms::guarded(|| Tokenizer::from_str(&text));
        let made = made.ok_or_else(|| library_failure("extend the tokenizer", &"it fails"))?;
        made.map(as_text).map_err(|error| library_failure("extend the tokenizer", &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Corpus, LineRules, Selection, TextSource, WordCounts};

    /// Text of a language with its words, read from a file.
    fn text(folder: &std::path::Path, name: &str, lines: &str, preparer: Preparer) -> LanguageText {
        let file = folder.join(name);
        std::fs::write(&file, lines.repeat(20)).unwrap();
        let corpus = Corpus {
            source: TextSource::new(name, &[file.display().to_string()]).unwrap(),
            preparer,
            rules: LineRules::default(),
            selection: Selection::default(),
        };
        let (words, _) = WordCounts::of(&corpus, &mut |_| {}).unwrap();
        LanguageText { name: name.to_owned(), preparer: corpus.preparer, words }
    }

    fn encoded(vocabulary: &Vocabulary, language: &str, sentence: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        let language = vocabulary.language(language).unwrap();
        vocabulary.encoder(language).encode(sentence, &mut ids);
        ids
    }

    const OLD: &str = "the cat sat\nthe rat ate\n";
    const NEW: &str = "kätzchen schläft tief\nkätzchen the schläft\n";

    fn extended(kind: VocabularyKind) -> (Vocabulary, ExtendedVocabulary, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let plain =
            Preparation { words: WordTokenizer::Whitespace, split: false, ..Preparation::raw() };
        let preparer = Preparer::new("en", plain, None).unwrap();
        let settings = BpeSettings { kind, merges: 8, ..BpeSettings::default() };
        let old = Vocabulary::learn(vec![text(folder.path(), "en", OLD, preparer)], settings);
        let old = old.unwrap();
        let preparer = old.preparer_for_new("de").unwrap();
        assert_eq!(preparer.preparation(), plain);
        let new = old.with_language(text(folder.path(), "de", NEW, preparer), 30).unwrap();
        (old, new, folder)
    }

    #[test]
    fn a_language_is_added_behind_what_there_is() {
        for kind in [VocabularyKind::Joint, VocabularyKind::Union, VocabularyKind::Disjoint] {
            let (old, ExtendedVocabulary { vocabulary, parts }, folder) = extended(kind);
            assert_eq!(vocabulary.languages().collect::<Vec<_>>(), ["en", "de"]);
            assert_eq!(vocabulary.len(), old.len() + parts.len());
            for id in 0..old.len() as u32 {
                assert_eq!(vocabulary.subword(id), old.subword(id));
            }
            let sentence = "the cat ate";
            assert_eq!(encoded(&vocabulary, "en", sentence), encoded(&old, "en", sentence));
            let (before, after) =
                (encoded(&old, "en", "schläft tief"), encoded(&vocabulary, "de", "schläft tief"));
            assert!(before.contains(&old.specials().unknown), "{kind:?}");
            assert!(!after.contains(&old.specials().unknown), "{kind:?}");
            assert!(after.len() < before.len(), "{kind:?}: {before:?}, {after:?}");
            assert_eq!(vocabulary.decode(1, &after), "schläft tief");
            assert!(vocabulary.language_ids(1).contains(&after[0]));
            let place = folder.path().join("vocabulary");
            vocabulary.save(&place, false).unwrap();
            let again = Vocabulary::load(&place).unwrap();
            assert_eq!(again.fingerprint(), vocabulary.fingerprint());
            assert_eq!(encoded(&again, "de", "kätzchen"), encoded(&vocabulary, "de", "kätzchen"));
            let twice = text(folder.path(), "de", NEW, vocabulary.preparer(1).clone());
            assert!(vocabulary.with_language(twice, 9).is_err(), "it has the language already");
        }
    }

    #[test]
    fn what_a_new_subword_consists_of_is_known() {
        let (old, ExtendedVocabulary { vocabulary, parts }, _) = extended(VocabularyKind::Joint);
        let mut composed = 0;
        for (id, parts) in (old.len() as u32..).zip(&parts) {
            let spelled: String = parts.iter().filter_map(|&part| old.subword(part)).collect();
            assert!(parts.is_empty() || vocabulary.subword(id) == Some(&*spelled), "{spelled}");
            composed += usize::from(!parts.is_empty());
        }
        assert!(composed > 0, "some consist of old characters alone");
        let (_, disjoint, _) = extended(VocabularyKind::Disjoint);
        assert!(disjoint.parts.iter().all(Vec::is_empty), "nothing is shared");
    }

    /// The most frequent pair is merged first, and counts follow.
    #[test]
    fn pairs_are_merged_by_their_counts() {
        let mut words =
            vec![(vec![1, 2, 3], 5), (vec![1, 2, 2], 2), (vec![2, 3], 4), (vec![4, 4, 4], 1)];
        let mut pairs = PairCounts::of(&words);
        assert_eq!(pairs.most_frequent(), Some(((2, 3), 9)));
        pairs.replace(&mut words, (2, 3), 5);
        assert_eq!(words[0].0, [1, 5]);
        assert_eq!(pairs.most_frequent(), Some(((1, 5), 5)));
        pairs.replace(&mut words, (1, 5), 6);
        assert_eq!(pairs.most_frequent(), Some(((1, 2), 2)));
        pairs.replace(&mut words, (1, 2), 7);
        assert_eq!(pairs.most_frequent(), Some(((4, 4), 2)), "of three in a row, two pairs");
        pairs.replace(&mut words, (4, 4), 8);
        assert_eq!(words[3].0, [8, 4]);
        assert!(pairs.most_frequent().is_none_or(|(_, count)| count >= 2));
    }
}
