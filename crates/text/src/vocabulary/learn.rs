//! Learning byte-pair encodings (BPE; Sennrich et al. 2016), and adopting WordPiece vocabularies
//! (Schuster and Nakajima 2012; Wu et al. 2016) such as multilingual BERT's. The merges are learned by
//! Hugging Face's `tokenizers`; what is added here makes them independent of hash tables and threads.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;
use tokenizers::decoders::bpe::BPEDecoder;
use tokenizers::decoders::wordpiece::WordPiece as WordPieceDecoder;
use tokenizers::models::bpe::{BPE, BpeTrainer, Merges, Vocab};
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::bert::BertNormalizer;
use tokenizers::normalizers::strip::StripAccents;
use tokenizers::normalizers::unicode::{NFC, NFD};
use tokenizers::normalizers::utils::{Lowercase, Sequence};
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::pre_tokenizers::whitespace::WhitespaceSplit;
use tokenizers::processors::template::{Template, TemplateProcessing};
use tokenizers::{AddedToken, NormalizerWrapper, Tokenizer};

use super::{
    CONTINUATION, SpecialTokens, Vocabulary, VocabularyKind, VocabularyLanguage, WORD_END,
    check_languages,
};
use crate::corpus::{Corpus, CorpusReport, ReadObserver, SentenceBlock, Split};
use crate::prepare::{Preparation, Preparer};
use crate::{Error, Result};
use files::At;

/// Word types counted at most; beyond that, the rarest are dropped.
const MOST_WORDS: usize = 4 << 20;

/// How often each word occurs in a corpus.
#[derive(Clone, Debug, Default)]
pub struct WordCounts {
    counts: FxHashMap<Box<str>, u64>,
    /// Words of at most this count have been dropped.
    dropped: u64,
}

impl WordCounts {
    /// Counts the words of the training part of a corpus.
    pub fn of(corpus: &Corpus, watch: ReadObserver<'_>) -> Result<(Self, CorpusReport)> {
        let mut words = Self::default();
        let report = corpus.read(watch, &mut |blocks| {
            words.add_blocks(blocks, MOST_WORDS);
            Ok(())
        })?;
        Ok((words, report))
    }

    /// Rare words are dropped after each block: where blocks end depends on the text alone, while how
    /// many arrive at a time depends on how fast they were read.
    fn add_blocks(&mut self, blocks: &[SentenceBlock], most: usize) {
        let counted: Vec<_> = blocks.par_iter().map(count_block).collect();
        for block in counted {
            for (word, count) in block {
                self.add(word, count);
            }
            self.drop_rarest(most);
        }
    }

    pub(super) fn sorted(&self) -> BTreeMap<&str, u64> {
        self.counts.iter().map(|(word, &count)| (word.as_ref(), count)).collect()
    }

    /// Word types.
    pub fn types(&self) -> usize {
        self.counts.len()
    }

    /// Word tokens.
    pub fn tokens(&self) -> u64 {
        self.counts.values().sum()
    }

    fn add(&mut self, word: &str, count: u64) {
        match self.counts.get_mut(word) {
            Some(known) => *known += count,
            None => {
                self.counts.insert(word.into(), count);
            }
        }
    }

    /// Keeps memory bounded: words of count 1 are dropped first, then 2, and so on.
    fn drop_rarest(&mut self, most: usize) {
        while self.counts.len() > most {
            self.dropped += 1;
            let dropped = self.dropped;
            self.counts.retain(|_, &mut count| count > dropped);
        }
    }
}

fn count_block(block: &SentenceBlock) -> FxHashMap<&str, u64> {
    let mut counts = FxHashMap::default();
    for (_, sentence) in block.sentences().filter(|&(split, _)| split == Split::Train) {
        for word in sentence.split_whitespace() {
            *counts.entry(word).or_insert(0) += 1;
        }
    }
    counts
}

/// A language as a vocabulary is learned from it.
#[derive(Debug)]
pub struct LanguageText {
    /// The language's name.
    pub name: String,
    /// How its text is prepared.
    pub preparer: Preparer,
    /// Its words.
    pub words: WordCounts,
}

/// What kind of byte-pair encoding to learn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BpeSettings {
    /// How the languages' vocabularies relate; not [`VocabularyKind::WordPiece`].
    pub kind: VocabularyKind,
    /// Merges to learn: in all for a joint vocabulary, per language otherwise.
    pub merges: usize,
    /// The size of the alphabet: only the most frequent characters are known, and words with others are
    /// not learned from.
    pub characters: usize,
    /// For a joint vocabulary, languages are weighted by their share of words to this power: 1 is the
    /// text as given, 0 makes all languages equal.
    pub balance: f64,
}

impl Default for BpeSettings {
    fn default() -> Self {
        Self { kind: VocabularyKind::Joint, merges: 80_000, characters: 10_000, balance: 1.0 }
    }
}

impl Vocabulary {
    /// Learns a byte-pair encoding from the words of each language. The same words give the same
    /// vocabulary, whatever the number of threads.
    pub fn learn(texts: Vec<LanguageText>, settings: BpeSettings) -> Result<Self> {
        check_languages(texts.iter().map(|text| text.name.as_str()))?;
        if settings.characters == 0 {
            let reason = "the alphabet of a vocabulary has at least one character";
            return Err(Error::setting("characters", reason, "give 1 or more"));
        }
        let mut subwords: Vec<String> = SpecialTokens::LEARNED_NAMES.map(String::from).to_vec();
        let languages = match settings.kind {
            VocabularyKind::Joint => learn_joint(texts, settings, &mut subwords)?,
            VocabularyKind::Union | VocabularyKind::Disjoint => {
                learn_apart(texts, settings, &mut subwords)?
            }
            VocabularyKind::WordPiece => {
                let remedy = "give the subwords as a file, one a line";
                return Err(Error::request(
                    "WordPiece vocabularies are adopted, not learned",
                    remedy,
                ));
            }
            VocabularyKind::Imported => {
                let remedy = "learn a joint, union or disjoint one";
                return Err(Error::request("an imported tokenizer is not learned", remedy));
            }
        };
        Self::assemble(settings.kind, SpecialTokens::LEARNED, subwords, languages, None)
    }

    /// Adopts a WordPiece vocabulary, one subword a line, such as multilingual BERT's `vocab.txt`.
    /// `uncased` must say how the list was made.
    pub fn wordpiece(
        file: &Path,
        languages: Vec<(String, Preparer)>,
        uncased: bool,
    ) -> Result<Self> {
        check_languages(languages.iter().map(|(name, _)| name.as_str()))?;
        let subwords = read_subwords(file)?;
        let find = |name: &str| {
            let at = subwords.iter().position(|subword| subword == name).ok_or_else(|| {
                let remedy =
                    "give the vocabulary of a BERT model, which has it on a line of its own";
                Error::file(file, format!("has no subword `{name}`"), remedy)
            });
            at.map(|at| at as u32)
        };
        let specials = SpecialTokens {
            start: find("[CLS]")?,
            end: find("[SEP]")?,
            pad: find("[PAD]")?,
            unknown: find("[UNK]")?,
            mask: find("[MASK]")?,
        };
        let tokenizer = Arc::new(wordpiece_tokenizer(&subwords, specials, uncased)?);
        let language = |(name, preparer): (String, Preparer)| VocabularyLanguage {
            name,
            tokenizer: Arc::clone(&tokenizer),
            preparer,
            counts: vec![0; subwords.len()],
            own: Vec::new(),
        };
        let languages = languages.into_iter().map(language).collect();
        Self::assemble(VocabularyKind::WordPiece, specials, subwords, languages, None)
    }

    /// Replaces the counts, in the order of the languages.
    pub fn with_counts(mut self, counts: Vec<Vec<u64>>) -> Result<Self> {
        for (language, counts) in self.languages.iter_mut().zip(counts) {
            language.counts = counts;
        }
        Self::assemble(self.kind, self.specials, self.subwords, self.languages, self.imported)
    }
}

fn learn_joint(
    texts: Vec<LanguageText>,
    settings: BpeSettings,
    subwords: &mut Vec<String>,
) -> Result<Vec<VocabularyLanguage>> {
    let preparation = texts[0].preparer.preparation();
    let learned = BpeMerges::from(balanced(&texts, settings.balance), settings)?;
    subwords.extend(learned.subwords.iter().cloned());
    let tokenizer = Arc::new(bpe_tokenizer(&learned, &with_ids(subwords), preparation)?);
    let shared = |text: LanguageText| language(text, Arc::clone(&tokenizer), subwords.len());
    Ok(texts.into_iter().map(shared).collect())
}

fn learn_apart(
    texts: Vec<LanguageText>,
    settings: BpeSettings,
    subwords: &mut Vec<String>,
) -> Result<Vec<VocabularyLanguage>> {
    let mut ids = with_ids(subwords);
    let mut tokenizers = Vec::new();
    for text in &texts {
        let learned = BpeMerges::from(balanced(std::slice::from_ref(text), 1.0), settings)?;
        if settings.kind == VocabularyKind::Disjoint {
            ids = with_ids(&SpecialTokens::LEARNED_NAMES.map(String::from));
        }
        number_subwords(&learned, (settings.kind, &text.name), &mut ids, subwords);
        tokenizers.push(bpe_tokenizer(&learned, &ids, text.preparer.preparation())?);
    }
    let both = texts.into_iter().zip(tokenizers);
    Ok(both.map(|(text, tokenizer)| language(text, Arc::new(tokenizer), subwords.len())).collect())
}

/// Gives the subwords of a language that have no id yet the next ones.
pub(super) fn number_subwords(
    learned: &BpeMerges,
    (kind, language): (VocabularyKind, &str),
    ids: &mut BTreeMap<String, u32>,
    subwords: &mut Vec<String>,
) {
    for subword in &learned.subwords {
        if !ids.contains_key(subword) {
            ids.insert(subword.clone(), subwords.len() as u32);
            subwords.push(match kind {
                VocabularyKind::Disjoint => format!("{language}:{subword}"),
                _ => subword.clone(),
            });
        }
    }
}

pub(super) fn with_ids(subwords: &[String]) -> BTreeMap<String, u32> {
    subwords.iter().cloned().zip(0..).collect()
}

/// Counts subwords from word counts: each word is encoded once, however often it occurs.
pub(super) fn language(
    text: LanguageText,
    tokenizer: Arc<Tokenizer>,
    size: usize,
) -> VocabularyLanguage {
    let mut counts = vec![0; size];
    for (word, count) in &text.words.counts {
        if let Ok(encoding) = tokenizer.encode_fast(word.as_ref(), false) {
            for &id in encoding.get_ids() {
                counts[id as usize] += count;
            }
        }
    }
    VocabularyLanguage {
        name: text.name,
        tokenizer,
        preparer: text.preparer,
        counts,
        own: Vec::new(),
    }
}

/// The weighted word counts of all languages together, in order, so that nothing depends on the order
/// of a hash table.
pub(super) fn balanced(texts: &[LanguageText], power: f64) -> BTreeMap<&str, u64> {
    let sizes: Vec<f64> = texts.iter().map(|text| text.words.tokens() as f64).collect();
    let all: f64 = sizes.iter().sum();
    let powers: f64 = sizes.iter().map(|size| (size / all).powf(power)).sum();
    let mut words = BTreeMap::new();
    for (text, size) in texts.iter().zip(&sizes) {
        let share = size / all;
        let weight = if power == 1.0 { 1.0 } else { share.powf(power) / powers / share };
        for (word, &count) in &text.words.counts {
            let count = ((count as f64 * weight).round() as u64).max(1);
            *words.entry(word.as_ref()).or_insert(0) += count;
        }
    }
    words
}

/// A byte-pair encoding: subwords in the order in which they were merged.
pub(super) struct BpeMerges {
    subwords: Vec<String>,
    pub(super) merges: Merges,
}

impl BpeMerges {
    pub(super) fn from(words: BTreeMap<&str, u64>, settings: BpeSettings) -> Result<Self> {
        let letters = frequent_characters(&words, settings.characters);
        let words: Vec<_> = words
            .into_iter()
            .filter(|(word, _)| word.chars().all(|letter| letters.contains(&letter)))
            .collect();
        // The library assigns ids to single characters in the order of a hash table, and breaks ties by
        // id; given as special tokens, they have the same ids every time.
        let base = base_subwords(&words);
        let trainer = BpeTrainer::builder()
            .show_progress(false)
            .special_tokens(
                base.iter().map(|subword| AddedToken::from(subword.clone(), false)).collect(),
            )
            .end_of_word_suffix(WORD_END.into())
            .vocab_size(base.len() + settings.merges.min(possible_merges(&words)))
            .build();
        let scale = overflow_guard(&words);
        let counts =
            words.iter().map(|&(word, count)| (word.into(), count.div_ceil(scale))).collect();
        let mut model = BPE::default();
        let trained = trainer.do_train(&counts, &mut model);
        trained.map_err(|error| library_failure("learn a byte-pair encoding", &error))?;
        let mut merges = merges_of(&model)?;
        merges.truncate(settings.merges);
        let mut known: FxHashSet<String> = base.iter().cloned().collect();
        let mut subwords = base;
        for (left, right) in &merges {
            let merged = format!("{left}{right}");
            if known.insert(merged.clone()) {
                subwords.push(merged);
            }
        }
        Ok(Self { subwords, merges })
    }
}

fn frequent_characters(words: &BTreeMap<&str, u64>, most: usize) -> FxHashSet<char> {
    let mut counts: BTreeMap<char, u64> = BTreeMap::new();
    for (word, count) in words {
        for letter in word.chars() {
            *counts.entry(letter).or_insert(0) += count;
        }
    }
    let mut letters: Vec<_> = counts.into_iter().collect();
    letters.sort_by_key(|&(letter, count)| (std::cmp::Reverse(count), letter));
    letters.into_iter().take(most).map(|(letter, _)| letter).collect()
}

/// Every character, within a word and at its end.
fn base_subwords(words: &[(&str, u64)]) -> Vec<String> {
    let mut within = std::collections::BTreeSet::new();
    let mut at_end = std::collections::BTreeSet::new();
    for (word, _) in words {
        within.extend(word.chars());
        at_end.extend(word.chars().next_back());
    }
    let ends = at_end.into_iter().map(|letter| format!("{letter}{WORD_END}"));
    within.into_iter().map(String::from).chain(ends).collect()
}

/// Each merge shortens at least one word by one subword, which bounds their number; the library
/// allocates memory for as many as it is asked for.
fn possible_merges(words: &[(&str, u64)]) -> usize {
    words.iter().map(|(word, _)| word.chars().count().saturating_sub(1)).sum()
}

/// The library counts pairs in signed 32-bit integers. The divisor by which no count can overflow: 1
/// up to some billions of characters.
fn overflow_guard(words: &[(&str, u64)]) -> u64 {
    let letters = words.iter().map(|(word, count)| word.len() as u64 * count).sum::<u64>();
    letters.div_ceil(i32::MAX as u64).max(1)
}

/// The library exposes a model's merges only through its JSON.
fn merges_of(model: &BPE) -> Result<Merges> {
    let merges = serde_json::to_value(model).map(|mut json| json["merges"].take());
    let merges = merges.and_then(serde_json::from_value::<Vec<Value>>);
    let merges = merges.map_err(|error| library_failure("list the merges", &error))?;
    let pair = |merge: &Value| {
        let side = |at: usize| merge.get(at).and_then(Value::as_str).map(String::from);
        Some((side(0)?, side(1)?))
    };
    let merges: Option<Merges> = merges.iter().map(pair).collect();
    merges.ok_or_else(|| library_failure("list the merges", &"not pairs of subwords"))
}

pub(super) fn bpe_tokenizer(
    learned: &BpeMerges,
    ids: &BTreeMap<String, u32>,
    preparation: Preparation,
) -> Result<Tokenizer> {
    let names = SpecialTokens::LEARNED_NAMES.iter().copied();
    let known = names.chain(learned.subwords.iter().map(String::as_str));
    let vocab: Vocab = known.map(|subword| (subword.to_owned(), ids[subword])).collect();
    let model = BPE::builder()
        .vocab_and_merges(vocab, learned.merges.clone())
        .unk_token("<unk>".into())
        .end_of_word_suffix(WORD_END.into())
        .build()
        .map_err(|error| library_failure("build a tokenizer", &error))?;
    let mut tokenizer = Tokenizer::new(model);
    tokenizer.with_pre_tokenizer(Some(WhitespaceSplit));
    tokenizer.with_decoder(Some(BPEDecoder::new(WORD_END.into())));
    tokenizer
        .with_normalizer(normalizer(preparation))
        .map_err(|error| library_failure("build a tokenizer", &error))?;
    let end = SpecialTokens::LEARNED.end;
    tokenizer.with_post_processor(Some(special_tokens_template("</s>", end, "</s>", end)?));
    add_specials(tokenizer, &SpecialTokens::LEARNED_NAMES)
}

/// The part of the preprocessing that a tokenizer file can express, for those who load it elsewhere.
fn normalizer(preparation: Preparation) -> Option<NormalizerWrapper> {
    let mut steps: Vec<NormalizerWrapper> = Vec::new();
    if preparation.strip_accents {
        steps.extend([NFD.into(), StripAccents.into(), NFC.into()]);
    }
    if preparation.lowercase {
        steps.push(Lowercase.into());
    }
    (!steps.is_empty()).then(|| Sequence::new(steps).into())
}

fn wordpiece_tokenizer(
    subwords: &[String],
    specials: SpecialTokens,
    uncased: bool,
) -> Result<Tokenizer> {
    let vocab: Vocab = subwords.iter().cloned().zip(0..).collect();
    let model = WordPiece::builder()
        .vocab(vocab)
        .unk_token("[UNK]".into())
        .continuing_subword_prefix(CONTINUATION.into())
        .build()
        .map_err(|error| library_failure("build a tokenizer", &error))?;
    let mut tokenizer = Tokenizer::new(model);
    tokenizer
        .with_normalizer(Some(BertNormalizer::new(true, true, Some(uncased), uncased)))
        .map_err(|error| library_failure("build a tokenizer", &error))?;
    tokenizer.with_pre_tokenizer(Some(BertPreTokenizer));
    tokenizer.with_decoder(Some(WordPieceDecoder::new(CONTINUATION.into(), true)));
    let template = special_tokens_template("[CLS]", specials.start, "[SEP]", specials.end)?;
    tokenizer.with_post_processor(Some(template));
    add_specials(tokenizer, &["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
}

fn special_tokens_template(
    start: &str,
    start_id: u32,
    end: &str,
    end_id: u32,
) -> Result<TemplateProcessing> {
    let template = |text: String| {
        Template::try_from(text).map_err(|error| library_failure("build a template", &error))
    };
    let mut specials = vec![(start.to_owned(), start_id)];
    if start != end {
        specials.push((end.to_owned(), end_id));
    }
    TemplateProcessing::builder()
        .single(template(format!("{start} $A {end}"))?)
        .pair(template(format!("{start} $A {end} $B:1 {end}:1"))?)
        .special_tokens(specials)
        .build()
        .map_err(|error| library_failure("build a template", &error))
}

fn add_specials(mut tokenizer: Tokenizer, names: &[&str]) -> Result<Tokenizer> {
    let tokens = names.iter().map(|&name| AddedToken::from(name, true));
    tokenizer
        .add_special_tokens(tokens)
        .map_err(|error| library_failure("add the special tokens", &error))?;
    Ok(super::disk::as_text(tokenizer))
}

fn read_subwords(file: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(file).at(file, "read")?;
    let mut seen = FxHashSet::default();
    let mut subwords = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let subword = line.trim_end();
        let fault = match subword {
            "" => "an empty line",
            subword if !seen.insert(subword) => "a subword that came before",
            subword if subword.contains('\t') => "a tab within a subword",
            _ => {
                subwords.push(subword.to_owned());
                continue;
            }
        };
        let remedy = "give one subword a line, each once, as in BERT's vocab.txt";
        return Err(Error::line(file, number, fault, remedy));
    }
    Ok(subwords)
}

pub(super) fn library_failure(doing: &str, error: &impl std::fmt::Display) -> Error {
    let reason = format!("cannot {doing} ({error})");
    Error::request(reason, "check the text and the settings the vocabulary is made from")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rarest_words_are_forgotten_first() {
        let mut words = WordCounts::default();
        for (word, count) in [("a", 9), ("b", 1), ("c", 2), ("d", 1), ("e", 5)] {
            words.add(word, count);
        }
        words.drop_rarest(3);
        assert_eq!((words.types(), words.dropped), (3, 1));
        words.drop_rarest(2);
        assert!(words.counts.contains_key("a") && words.counts.contains_key("e"));
    }

    #[test]
    fn words_are_forgotten_alike_however_many_blocks_come_at_a_time() {
        let block = |text: &str| {
            let mut block = SentenceBlock::default();
            block.push(text, Split::Train);
            block
        };
        let blocks = [block("a a b c"), block("b d e"), block("c c d a")];
        let mut together = WordCounts::default();
        together.add_blocks(&blocks, 2);
        let mut apart = WordCounts::default();
        for block in &blocks {
            apart.add_blocks(std::slice::from_ref(block), 2);
        }
        assert_eq!(together.counts, apart.counts);
        assert_eq!(together.dropped, apart.dropped);
    }

    #[test]
    fn more_merges_than_there_can_be_are_all_that_there_are() {
        let words = || BTreeMap::from([("abc", 3), ("bc", 2)]);
        let learned = |merges| {
            let settings = BpeSettings { merges, ..BpeSettings::default() };
            BpeMerges::from(words(), settings).unwrap().merges
        };
        assert_eq!(learned(usize::MAX), learned(100));
        assert!(!learned(usize::MAX).is_empty());
        assert_eq!(learned(1).len(), 1);
    }

    #[test]
    fn counts_that_would_overflow_are_scaled() {
        assert_eq!(overflow_guard(&[("word", 1_000_000)]), 1);
        assert_eq!(overflow_guard(&[("word", 1 << 31)]), 5);
    }

    #[test]
    fn balance_makes_small_languages_weigh_more() {
        let text = |name: &str, word: &str, count| {
            let mut words = WordCounts::default();
            words.add(word, count);
            let preparer = Preparer::new(name, Preparation::none(), None).unwrap();
            LanguageText { name: name.into(), preparer, words }
        };
        let texts = [text("en", "big", 900), text("fr", "petit", 100)];
        let at = |power| balanced(&texts, power);
        assert_eq!(at(1.0), BTreeMap::from([("big", 900), ("petit", 100)]));
        assert_eq!(at(0.0), BTreeMap::from([("big", 500), ("petit", 500)]));
        assert!(at(0.5)["petit"] > 100 && at(0.5)["petit"] < 500);
    }

    #[test]
    fn a_bad_list_of_subwords_is_an_error_with_its_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let preparer = Preparer::new("en", Preparation::none(), None).unwrap();
        for (text, fault) in [
            ("[PAD]\n\n[UNK]", ":2: an empty line"),
            ("a\nb\na", ":3: a subword that"),
            ("a", "has no subword `[CLS]`"),
        ] {
            std::fs::write(file.path(), text).unwrap();
            let made =
                Vocabulary::wordpiece(file.path(), vec![("en".into(), preparer.clone())], false);
            let error = made.unwrap_err().to_string();
            assert!(error.contains(fault), "{error}");
        }
    }
}
