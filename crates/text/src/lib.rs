//! From raw text to masked batches: corpora, sentences and words, vocabularies and the anchors
//! they share, code-switching, and the streams that a masked language model is trained on.
//!
//! The way of a text: a [`Source`] gives lines, a [`Preparer`] turns them into sentences of words,
//! a [`Corpus`] chooses among these, a [`Vocabulary`] turns words into ids, a [`Tokenised`] corpus
//! keeps the ids on disk, and [`Batches`] are cut from them, with words switched by a
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

pub use batch::{Batch, BatchReader, BatchSettings, Batches, BatchesAhead, Evaluation};
pub use corpus::{Block, Consume, Corpus, Progress, Report, Selection, Split, Take, Watch};
pub use error::{Error, Result};
pub use mask::{MaskSettings, Replacements};
pub use prepare::{Preparation, Preparer, Simplified, Words, chinese_words};
pub use random::{Chance, Stream};
pub use reader::{
    LineRules, Lines, Skipped, Source, open_file, plain_name, read_whole, sentence_on, unreadable,
};
pub use switch::{CodeSwitch, Dictionary, SwitchSettings};
pub use tokens::Tokenised;
pub use vocabulary::{
    Anchor, BpeSettings, Encoded, Encoder, Encoders, Foreign, Kind, LanguageCounts, LanguageText,
    Mark, PairSharing, Sentence, SentenceReader, Sharing, Specials, Vocabulary, WordCounts,
    check_language, count_pieces, sharing,
};
