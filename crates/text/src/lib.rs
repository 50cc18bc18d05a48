//! From raw text to masked batches: corpora, sentences and words, vocabularies and the anchors
//! they share, code-switching, and the streams that a masked language model is trained on.
//!
//! The way of a text: a [`TextSource`] gives lines, a [`Preparer`] turns them into sentences of words,
//! a [`Corpus`] chooses among these, a [`Vocabulary`] turns words into ids, a [`TokenizedCorpus`] corpus
//! keeps the ids on disk, and [`MlmBatches`] are cut from them, with words switched by a
//! [`CodeSwitch`] where asked and tokens hidden.

mod batch;
mod corpus;
mod error;
mod mask;
mod moses;
mod prepare;
mod random;
mod reader;
mod switch;
mod tokens;
mod vocabulary;

pub use batch::{BatchPrefetcher, BatchReader, BatchSettings, MlmBatch, MlmBatches, MlmEvaluation};
pub use corpus::{
    BlockConsumer, Corpus, CorpusReport, ReadObserver, ReadProgress, Selection, SentenceBlock,
    Split, Subset,
};
pub use error::{Error, Result};
pub use mask::{MaskSettings, Replacements};
pub use prepare::{Preparation, Preparer, SimplificationTable, WordTokenizer, chinese_words};
pub use random::{RandomStream, RandomStreams};
pub use reader::{
    LineReader, LineRules, SkipCounts, TextSource, display_name, open_file, plain_name, read_whole,
    sentence_on, unreadable,
};
pub use switch::{CodeSwitch, Dictionary, SwitchSettings};
pub use tokens::TokenizedCorpus;
pub use vocabulary::{
    Anchor, BpeSettings, EncodedSentence, EncodedWords, ImportedTokenizer, LanguageCounts,
    LanguageText, PairSharing, SentenceReader, SpecialTokens, SubwordEncoder, SubwordEncoders,
    Vocabulary, VocabularyKind, VocabularySharing, WordCounts, WordMark, check_language,
    count_subwords, vocabulary_sharing,
};
