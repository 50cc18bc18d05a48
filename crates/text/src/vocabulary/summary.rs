//! Results of making and examining vocabularies: what `vocab train` and `vocab stats` report.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{
    LanguageCounts, LanguageText, PairSharing, Vocabulary, VocabularyKind, VocabularySharing,
    WordCounts, count_subwords, vocabulary_sharing,
};
use crate::Result;
use crate::corpus::{Corpus, CorpusReport, ReadProgress};
use crate::vocabulary::BpeSettings;

/// Is called now and then with how far the text of a language has been read.
pub type LanguageObserver<'a> = &'a mut dyn FnMut(&str, ReadProgress);

/// What a vocabulary is and was made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VocabularySummary {
    /// Where it was saved.
    pub folder: PathBuf,
    /// How the languages' vocabularies relate.
    pub kind: VocabularyKind,
    /// Ids over all languages, special tokens included.
    pub subwords: usize,
    /// Its fingerprint.
    pub fingerprint: String,
    /// Its languages.
    pub languages: Vec<LanguageSummary>,
}

/// One language of a new vocabulary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LanguageSummary {
    /// The language.
    pub language: String,
    /// Ids that belong to it, special tokens included.
    pub own_subwords: usize,
    /// The text that it was made from.
    pub report: CorpusReport,
}

/// How much languages share of a vocabulary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VocabularyStats {
    /// The vocabulary's folder.
    pub folder: PathBuf,
    /// How the languages' vocabularies relate.
    pub kind: VocabularyKind,
    /// Ids over all languages, special tokens included.
    pub subwords: usize,
    /// The vocabulary's fingerprint.
    pub fingerprint: String,
    /// The text that subwords were counted in.
    pub counted: CountedText,
    /// Occurrences from which on a subword counts as a language's.
    pub min_count: u64,
    /// Each language by itself.
    pub languages: Vec<LanguageCounts>,
    /// Each pair once, in the order of the languages.
    pub pairs: Vec<PairSharing>,
    /// How it was measured.
    pub signature: String,
}

/// The text that subwords were counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountedText {
    /// The text that the vocabulary was made from.
    TrainingText,
    /// Other text.
    GivenText,
}

impl Vocabulary {
    /// Learns a byte-pair encoding from corpora, one for each language.
    pub fn from_corpora(
        corpora: Vec<Corpus>,
        settings: BpeSettings,
        observer: LanguageObserver<'_>,
    ) -> Result<(Self, Vec<CorpusReport>)> {
        let (mut texts, mut reports) = (Vec::new(), Vec::new());
        for corpus in corpora {
            let name = corpus.source.language().to_owned();
            let (words, report) = WordCounts::of(&corpus, &mut |at| observer(&name, at))?;
            texts.push(LanguageText { name, preparer: corpus.preparer, words });
            reports.push(report);
        }
        Ok((Self::learn(texts, settings)?, reports))
    }

    /// Adopts a WordPiece vocabulary (see [`Vocabulary::wordpiece`]) and counts its subwords in corpora.
    pub fn wordpiece_from_corpora(
        file: &Path,
        uncased: bool,
        corpora: &[Corpus],
        observer: LanguageObserver<'_>,
    ) -> Result<(Self, Vec<CorpusReport>)> {
        let language =
            |corpus: &Corpus| (corpus.source.language().to_owned(), corpus.preparer.clone());
        let languages = corpora.iter().map(language).collect();
        Self::wordpiece(file, languages, uncased)?.counting(corpora, observer)
    }

    /// The same vocabulary with the counts of its subwords in corpora of its languages; one without a corpus keeps its own.
    pub fn counting(
        self,
        corpora: &[Corpus],
        observer: LanguageObserver<'_>,
    ) -> Result<(Self, Vec<CorpusReport>)> {
        let all = 0..self.languages().len();
        let mut counts: Vec<_> = all.map(|index| self.counts(index).to_vec()).collect();
        let mut reports = Vec::new();
        for corpus in corpora {
            let name = corpus.source.language();
            let (index, mut watch) = (self.language(name)?, |at| observer(name, at));
            let (counted, report) = count_subwords(&self, index, corpus, &mut watch)?;
            counts[index] = counted;
            reports.push(report);
        }
        Ok((self.with_counts(counts)?, reports))
    }

    /// Describes a vocabulary that was made from text of which these are the reports.
    pub fn summary(&self, folder: &Path, reports: Vec<CorpusReport>) -> VocabularySummary {
        let languages = self.languages().zip(reports).enumerate();
        let languages = languages.map(|(index, (language, report))| LanguageSummary {
            language: language.to_owned(),
            own_subwords: self.language_ids(index).len(),
            report,
        });
        VocabularySummary {
            folder: folder.to_owned(),
            kind: self.kind(),
            subwords: self.len(),
            fingerprint: self.fingerprint().to_owned(),
            languages: languages.collect(),
        }
    }
}

impl VocabularyStats {
    /// Loads a vocabulary and compares its languages in the text that it was made from.
    pub fn of_training_text(folder: &Path, min_count: u64, anchors: usize) -> Result<Self> {
        let vocabulary = Vocabulary::load(folder)?;
        let all = 0..vocabulary.languages().len();
        let counts: Vec<_> = all.map(|index| (index, vocabulary.counts(index).to_vec())).collect();
        let sharing = vocabulary_sharing(&vocabulary, &counts, min_count, anchors);
        Ok(Self::new(folder, &vocabulary, CountedText::TrainingText, min_count, sharing))
    }

    /// Compares a vocabulary's languages in other text.
    pub fn of_corpora(
        folder: &Path,
        vocabulary: &Vocabulary,
        corpora: &[Corpus],
        (min_count, anchors): (u64, usize),
        observer: LanguageObserver<'_>,
    ) -> Result<Self> {
        let mut counts = Vec::new();
        for corpus in corpora {
            let name = corpus.source.language();
            let language = vocabulary.language(name)?;
            let mut watch = |at| observer(name, at);
            counts.push((language, count_subwords(vocabulary, language, corpus, &mut watch)?.0));
        }
        let mut sharing = vocabulary_sharing(vocabulary, &counts, min_count, anchors);
        if vocabulary.takes_any_language() {
            sharing
                .rename(&corpora.iter().map(|corpus| corpus.source.language()).collect::<Vec<_>>());
        }
        Ok(Self::new(folder, vocabulary, CountedText::GivenText, min_count, sharing))
    }

    fn new(
        folder: &Path,
        vocabulary: &Vocabulary,
        counted: CountedText,
        min_count: u64,
        VocabularySharing { languages, pairs }: VocabularySharing,
    ) -> Self {
        let text = match counted {
            CountedText::TrainingText => "training",
            CountedText::GivenText => "given",
        };
        let fingerprint = vocabulary.fingerprint();
        let signature = format!(
            "vocabulary|sharing|text:{text}|min_count:{min_count}|vocabulary:{}|v:{}",
            &fingerprint[..12],
            env!("CARGO_PKG_VERSION")
        );
        Self {
            folder: folder.to_owned(),
            kind: vocabulary.kind(),
            subwords: vocabulary.len(),
            fingerprint: fingerprint.to_owned(),
            counted,
            min_count,
            languages,
            pairs,
            signature,
        }
    }
}
