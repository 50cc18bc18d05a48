//! From a line of text to the sequence that an encoder reads: prepared, in subwords, between its frame.

use super::{EncodedWords, SubwordEncoder, Vocabulary};
use crate::prepare::Preparer;

/// A sentence in the form that an encoder reads: between its frame, and no longer than it may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedSentence {
    /// Ids of the vocabulary, frame included.
    pub ids: Vec<u32>,
    /// Whether the end was cut off.
    pub truncated: bool,
}

/// Turns lines and words of one language into what an encoder reads.
#[derive(Clone, Debug)]
pub struct SentenceReader {
    language: usize,
    encoder: SubwordEncoder,
    preparer: Preparer,
    frame: (u32, u32),
    unknown: u32,
    longest: usize,
    prepared: String,
}

impl SentenceReader {
    pub(super) fn new(vocabulary: &Vocabulary, language: usize, longest: usize) -> Self {
        Self {
            language,
            encoder: vocabulary.encoder(language),
            preparer: vocabulary.preparer(language).clone(),
            frame: vocabulary.bos_eos(),
            unknown: vocabulary.specials().unknown,
            longest,
            prepared: String::new(),
        }
    }

    /// The number of the language.
    pub fn language(&self) -> usize {
        self.language
    }

    /// The longest run of tokens that the model reads, its frame left out.
    pub fn max_subwords(&self) -> usize {
        self.longest - 2
    }

    /// Prepares and encodes a line as one sentence; what is too long is cut off.
    pub fn sentence(&mut self, line: &str) -> EncodedSentence {
        self.prepared.clear();
        self.preparer.prepare(line, &mut self.prepared);
        let mut ids = vec![self.frame.0];
        self.encoder.encode(&self.prepared, &mut ids);
        if ids.len() == 1 {
            ids.push(self.unknown);
        }
        let truncated = ids.len() > self.longest - 1;
        ids.truncate(self.longest - 1);
        ids.push(self.frame.1);
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

    /// Puts ids between the frame.
    pub fn with_special_tokens(&self, ids: &[u32]) -> Vec<u32> {
        std::iter::once(self.frame.0).chain(ids.iter().copied()).chain([self.frame.1]).collect()
    }
}
