//! From raw text to batches for masked language modelling: corpora, sentences and words, subword
//! vocabularies and the anchors that languages share, code-switching, and masked batches.
//!
//! A [`TextSource`] reads lines, a [`Preparer`] turns them into tokenized sentences, a [`Corpus`]
//! deduplicates, samples and splits these, a [`Vocabulary`] encodes words as subword ids, a
//! [`TokenizedCorpus`] keeps the ids on disk, and [`MlmBatches`] are drawn from it, with words replaced by a
//! [`CodeSwitch`] where asked for and tokens masked. Whatever is random depends on a seed and a number
//! alone ([`RandomStreams`]), so that results are the same on any number of threads.
//!
//! ```
//! use text::{
//!     BpeSettings, Corpus, LineRules, Preparation, Preparer, Selection, TextSource, Vocabulary,
//! };
//!
//! let folder = tempfile::tempdir().unwrap();
//! let file = folder.path().join("en.txt");
//! std::fs::write(&file, "The cat sat. The cat slept.\nA cat is a cat.\n").unwrap();
//! let corpus = Corpus {
//!     source: TextSource::new("en", &[file.display().to_string()])?,
//!     preparer: Preparer::new("en", Preparation::for_language("en"), None)?,
//!     rules: LineRules::default(),
//!     selection: Selection::default(),
//! };
//! let settings = BpeSettings { merges: 20, ..BpeSettings::default() };
//! let (vocabulary, reports) =
//!     Vocabulary::from_corpora(vec![corpus], settings, &mut |_, _| {})?;
//! assert_eq!(reports[0].sentences, 3);
//! let sentence = vocabulary.reader("en", 16)?.sentence("The cat");
//! let subwords: Vec<_> = sentence.ids.iter().map(|&id| vocabulary.subword(id).unwrap()).collect();
//! assert_eq!(subwords, ["</s>", "The</w>", "cat</w>", "</s>"]);
//! # Ok::<(), text::Error>(())
//! ```

mod alter;
mod batch;
mod corpus;
mod exclusion;
mod mask;
mod moses;
mod prepare;
mod random;
mod reader;
mod records;
mod switch;
mod tokens;
mod vocabulary;

pub use alter::{
    Alteration, AlterationResult, AlteredFiles, AlteredOrder, LanguageAlterer, MOST_ENDINGS,
};
pub use batch::{BatchPrefetcher, BatchReader, BatchSettings, MlmBatch, MlmBatches, MlmEvaluation};
pub use corpus::{
    BlockConsumer, Corpus, CorpusReport, ReadObserver, ReadProgress, Selection, SentenceBlock,
    Split, Subset,
};
pub use exclusion::{
    ExclusionConfig, ExclusionResult, count_without_tests, exclude_tests, letters,
};
pub use mask::{MaskSettings, MaskedPositions, Replacements, mask_for_evaluation};
pub use prepare::{
    Preparation, Preparer, SimplificationTable, TokenizerChoice, WordTokenizer, chinese_words,
    has_tokenizer_rules,
};
pub use random::{RandomStream, RandomStreams};
pub use reader::{
    LineReader, LineRules, SkipCounts, TextSource, TsvColumns, is_tsv, open_file, plain_name,
    read_whole, unreadable,
};
pub use records::{TableRecord, check_table_name, write_table};
pub use switch::{CodeSwitch, Dictionary, SwitchSettings};
pub use terms::{Error, Result};
pub use tokens::{CorpusSummary, TokenizedCorpus, TokenizedCorpusSummary};
pub use vocabulary::{
    Anchor, BpeSettings, CountedText, EncodedSentence, EncodedWords, ExtendedVocabulary, Frame,
    ImportedTokenizer, LanguageCounts, LanguageObserver, LanguageSummary, LanguageText,
    PairSharing, SentenceReader, SpecialTokens, SubwordEncoder, SubwordEncoders, UnknownCounts,
    Vocabulary, VocabularyKind, VocabularySharing, VocabularyStats, VocabularySummary, WordCounts,
    WordMark, check_language, count_subwords, read_tokenizer, take_unknown_counts, tokenizer_of,
    vocabulary_sharing,
};
