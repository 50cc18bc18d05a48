//! From the files of a configuration to batches that the encoder takes.

use std::path::Path;
use std::sync::Arc;

use encoder::{Batch, EncoderConfig, Masked};
use tensor::{Indices, Spans};
use text::{
    BatchSettings, Batches, BpeSettings, CodeSwitch, Corpus, Dictionary, Evaluation, LanguageText,
    LineRules, Preparer, Selection, Source, Split, Take, Tokenised, Vocabulary, WordCounts,
};

use super::config::PretrainConfig;
use super::log::Watch;
use super::numbering::Numbering;
use crate::pretrained::VOCABULARY;

/// Everything that a run reads.
pub(crate) struct Data {
    pub(crate) vocabulary: Arc<Vocabulary>,
    pub(crate) batches: Arc<Batches>,
    /// Held-out text of each language.
    pub(crate) dev: Vec<Evaluation>,
    numbering: Numbering,
}

impl Data {
    /// Learns or loads the vocabulary and tokenises or finds the corpora, in the run's folder.
    pub(crate) fn prepare(
        config: &PretrainConfig,
        folder: &Path,
        watch: &mut Watch<'_>,
    ) -> text::Result<Self> {
        let vocabulary = Arc::new(vocabulary(config, &folder.join(VOCABULARY), watch)?);
        let mut corpora = Vec::new();
        for language in &config.languages {
            watch(&format!("tokenising {language}"));
            let corpus = corpus(config, language)?;
            let shelf = folder.join("corpora");
            let (corpus, _) = Tokenised::prepare(&corpus, &vocabulary, &shelf, &mut |_| {})?;
            corpora.push(Arc::new(corpus));
        }
        let switch = config.switch.as_ref().map(|switch| {
            let mut dictionaries = Vec::new();
            for entry in &switch.dictionaries {
                let dictionary =
                    Dictionary::read(&entry.file, &entry.from, &entry.to, LineRules::default())?;
                dictionaries.push(dictionary.reversed());
                dictionaries.push(dictionary);
            }
            CodeSwitch::new(&vocabulary, &dictionaries, switch.settings)
        });
        let dev = corpora
            .iter()
            .map(|corpus| {
                let (vocabulary, corpus) = (Arc::clone(&vocabulary), Arc::clone(corpus));
                Evaluation::new(vocabulary, corpus, Split::Dev, config.batch)
            })
            .collect::<text::Result<_>>()?;
        let numbering = Numbering::new(&vocabulary, config.encoder.separate.tokens);
        let settings: BatchSettings = config.batch;
        let batches = Batches::new(
            Arc::clone(&vocabulary),
            corpora,
            settings,
            switch.transpose()?,
            config.seed,
        )?;
        Ok(Self { vocabulary, batches: Arc::new(batches), dev, numbering })
    }

    /// The encoder's configuration for this vocabulary.
    pub(crate) fn encoder_config(&self, config: &PretrainConfig) -> EncoderConfig {
        let entries = self.numbering.entries(&self.vocabulary);
        let languages = self.vocabulary.languages().map(str::to_owned).collect();
        EncoderConfig { languages, vocabulary: entries, ..config.encoder.clone() }
    }

    /// Token ids as the encoder numbers them.
    pub(crate) fn ids(&self, language: usize, ids: &[u32]) -> Indices {
        self.numbering.to_encoder(language, ids)
    }

    /// A batch of text as the encoder takes it.
    pub(crate) fn piece(&self, batch: &text::Batch) -> (Batch, Masked) {
        let language = batch.language;
        let lengths = batch.starts.windows(2).map(|pair| (pair[1] - pair[0]) as usize);
        let spans = Spans::of_lengths(lengths);
        let tokens = self.ids(language, &batch.tokens);
        let targets = self.ids(language, &batch.targets);
        let rows = batch.masked.iter().copied().collect();
        (Batch { language, tokens, spans }, Masked { rows, targets })
    }
}

/// Whether every language's files are there, before a folder is made for the run.
pub(crate) fn check(config: &PretrainConfig) -> text::Result<()> {
    config.languages.iter().try_for_each(|language| corpus(config, language).map(drop))
}

fn corpus(config: &PretrainConfig, language: &str) -> text::Result<Corpus> {
    let text = &config.text;
    Ok(Corpus {
        source: Source::new(language, &config.files[language])?,
        preparer: Preparer::new(language, text.preparation(language), None)?,
        rules: LineRules::default(),
        selection: Selection {
            take: text.first.map_or(Take::All, Take::First),
            dev: text.dev,
            seed: config.seed,
            ..Selection::default()
        },
    })
}

/// The vocabulary of the run: learned once, then found.
fn vocabulary(
    config: &PretrainConfig,
    folder: &Path,
    watch: &mut Watch<'_>,
) -> text::Result<Vocabulary> {
    if folder.is_dir() {
        return Vocabulary::load(folder);
    }
    let mut texts = Vec::new();
    for language in &config.languages {
        watch(&format!("counting words of {language}"));
        let corpus = corpus(config, language)?;
        let (words, _) = WordCounts::of(&corpus, &mut |_| {})?;
        texts.push(LanguageText { name: language.clone(), preparer: corpus.preparer, words });
    }
    let merges = config.vocabulary.merges;
    watch(&format!("learning {merges} merges"));
    let settings = BpeSettings { kind: config.vocabulary.kind, merges, ..BpeSettings::default() };
    let vocabulary = Vocabulary::learn(texts, settings)?;
    vocabulary.save(folder)?;
    Vocabulary::load(folder)
}
