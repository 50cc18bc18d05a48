//! Encoding at the speed of a hash table: words repeat, and a tokenizer that splits at whitespace treats
//! a word alike wherever it occurs, so its subwords are cached.

use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;
use terms::guarded;
use tokenizers::Tokenizer;

use super::unknown::UnknownMeter;
use super::{ImportedTokenizer, UnknownCounts};

/// Words cached at most; beyond that the cache is emptied, and so it follows the text.
const CACHED_WORDS: usize = 1 << 17;
/// Longer words are too rare to be worth caching.
const LONGEST_CACHED: usize = 64;

/// Turns prepared text of one language into ids. Each thread has its own.
#[derive(Clone, Debug)]
pub struct SubwordEncoder {
    tokenizer: Arc<Tokenizer>,
    unknown: u32,
    /// Whether a line is encoded as a whole: an imported tokenizer may treat a word by its context.
    whole: bool,
    /// The prefix of a word that is given by itself.
    before_word: &'static str,
    known: FxHashMap<Box<str>, (u32, u32)>,
    ids: Vec<u32>,
    meter: UnknownMeter,
}

/// Words as ids, with the place of each word's first subword.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EncodedWords {
    /// The subwords of all words.
    pub ids: Vec<u32>,
    /// For each word, the index of its first subword.
    pub firsts: Vec<u32>,
}

impl SubwordEncoder {
    pub(super) fn new(
        tokenizer: Arc<Tokenizer>,
        unknown: u32,
        imported: Option<&ImportedTokenizer>,
        language: &str,
    ) -> Self {
        let before_word = imported.map_or("", ImportedTokenizer::before_word);
        let whole = imported.is_some();
        let (known, ids, meter) = (FxHashMap::default(), Vec::new(), UnknownMeter::new(language));
        Self { tokenizer, unknown, whole, before_word, known, ids, meter }
    }

    /// What was encoded so far.
    pub fn unknown_counts(&self) -> UnknownCounts {
        self.meter.counts()
    }

    /// Appends the ids of a prepared sentence.
    pub fn encode(&mut self, sentence: &str, out: &mut Vec<u32>) {
        if self.whole {
            let ids = self.encode_uncached(sentence);
            self.meter.count(&ids, self.unknown);
            return out.extend(ids);
        }
        for word in sentence.split_whitespace() {
            self.encode_word(word, out);
        }
    }

    /// The ids of words that are given one by one, as labelled data has them. A word that leaves
    /// no subword at all is unknown, so that every word has a first subword.
    pub fn encode_words<'a>(&mut self, words: impl IntoIterator<Item = &'a str>) -> EncodedWords {
        let mut encoded = EncodedWords::default();
        for word in words {
            let first = encoded.ids.len();
            encoded.firsts.push(first as u32);
            match self.whole {
                true => self.encode_word(word, &mut encoded.ids),
                false => self.encode(word, &mut encoded.ids),
            }
            if encoded.ids.len() == first {
                encoded.ids.push(self.unknown);
            }
        }
        encoded
    }

    fn encode_word(&mut self, word: &str, out: &mut Vec<u32>) {
        if let Some(&(start, end)) = self.known.get(word) {
            let ids = &self.ids[start as usize..end as usize];
            self.meter.count(ids, self.unknown);
            return out.extend_from_slice(ids);
        }
        let ids = match self.before_word {
            "" => self.encode_uncached(word),
            before => self.encode_uncached(&format!("{before}{word}")),
        };
        self.meter.count(&ids, self.unknown);
        out.extend_from_slice(&ids);
        if word.len() > LONGEST_CACHED {
            return;
        }
        if self.known.len() >= CACHED_WORDS {
            self.known.clear();
            self.ids.clear();
        }
        let start = self.ids.len() as u32;
        self.ids.extend_from_slice(&ids);
        self.known.insert(word.into(), (start, self.ids.len() as u32));
    }

    fn encode_uncached(&self, text: &str) -> Vec<u32> {
        // A model fails only where it lacks its own unknown subword, which loading rules out.
        let encoding =
            guarded(|| self.tokenizer.encode_fast(text, false)).and_then(|done| done.ok());
        encoding.map_or_else(|| vec![self.unknown], |encoding| encoding.get_ids().to_vec())
    }
}

/// An encoder for each thread of the pool, each with its own cache.
#[derive(Debug)]
pub struct SubwordEncoders {
    of_threads: Vec<Mutex<SubwordEncoder>>,
}

impl SubwordEncoders {
    pub(super) fn new(encoder: SubwordEncoder) -> Self {
        let threads = rayon::current_num_threads();
        Self { of_threads: (0..threads).map(|_| Mutex::new(encoder.clone())).collect() }
    }

    /// Runs `work` with the calling thread's encoder.
    pub fn with<T>(&self, work: impl FnOnce(&mut SubwordEncoder) -> T) -> T {
        let thread = rayon::current_thread_index().unwrap_or(0) % self.of_threads.len();
        // An encoder is sound between any two words, so one that a panic left behind will do.
        let mut encoder = self.of_threads[thread].lock().unwrap_or_else(|held| held.into_inner());
        work(&mut encoder)
    }
}
