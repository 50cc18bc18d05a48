//! From a line of text to a model's input sequence: preprocessed, split into subwords, between special
//! tokens.

use super::{EncodedWords, Frame, SubwordEncoder, UnknownCounts, Vocabulary};
use crate::prepare::Preparer;

/// A sentence as a model's input: between special tokens, and no longer than the model reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedSentence {
    /// Ids of the vocabulary, special tokens included.
    pub ids: Vec<u32>,
    /// Whether the end was truncated.
    pub truncated: bool,
}

/// Turns lines and words of one language into input sequences.
#[derive(Clone, Debug)]
pub struct SentenceReader {
    language: usize,
    encoder: SubwordEncoder,
    preparer: Preparer,
    frame: Frame,
    unknown: u32,
    longest: usize,
    prepared: String,
}

impl SentenceReader {
    pub(super) fn new(
        vocabulary: &Vocabulary,
        (language, name): (usize, &str),
        longest: usize,
    ) -> Self {
        Self {
            language,
            encoder: vocabulary.encoder_of(language, name),
            preparer: vocabulary.preparer(language).clone(),
            frame: vocabulary.frame(),
            unknown: vocabulary.specials().unknown,
            longest,
            prepared: String::new(),
        }
    }

    /// The index of the language.
    pub fn language(&self) -> usize {
        self.language
    }

    /// What it has read so far, with what was truncated.
    pub fn unknown_counts(&self) -> UnknownCounts {
        self.encoder.unknown_counts()
    }

    /// The most subwords of a sequence, special tokens not counted.
    pub fn max_subwords(&self) -> usize {
        self.longest - self.frame.count()
    }

    /// Encodes a line as one sentence, truncated to the longest sequence.
    pub fn sentence(&mut self, line: &str) -> EncodedSentence {
        self.prepared.clear();
        self.preparer.prepare(line, &mut self.prepared);
        let Frame(start, end) = self.frame;
        let mut ids = Vec::from_iter(start);
        let empty = ids.len();
        self.encoder.encode(&self.prepared, &mut ids);
        if ids.len() == empty {
            ids.push(self.unknown);
        }
        let room = empty + self.max_subwords();
        let truncated = ids.len() > room;
        ids.truncate(room);
        ids.extend(end);
        EncodedSentence { ids, truncated }
    }

    /// The ids of words that are given one by one, each prepared as running text is.
    pub fn raw_words<'a>(&mut self, words: impl IntoIterator<Item = &'a str>) -> EncodedWords {
        let prepare = |word: &'a str| {
            let mut prepared = String::new();
            self.preparer.prepare(word, &mut prepared);
            prepared
        };
        let prepared: Vec<String> = words.into_iter().map(prepare).collect();
        self.encoder.encode_words(prepared.iter().map(String::as_str))
    }

    /// The ids of prepared words that are given one by one.
    pub fn words<'a>(&mut self, words: impl IntoIterator<Item = &'a str>) -> EncodedWords {
        self.encoder.encode_words(words)
    }

    /// Puts ids between the special tokens.
    pub fn with_special_tokens(&self, ids: &[u32]) -> Vec<u32> {
        self.frame.around(ids)
    }
}
