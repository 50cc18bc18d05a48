//! From the files of a configuration to batches that the encoder takes. Languages are drawn with
//! probabilities smoothed by an exponent (Conneau & Lample 2019), tokens masked as in BERT (Devlin et al.
//! 2019); both in crate `text`.

use std::path::Path;
use std::sync::Arc;

use encoder::{Batch, Encoder, EncoderConfig, MaskedTokens};
use models::{EncoderParts, TokenIdMap, VOCABULARY_FOLDER};
use tensor::{Indices, Params, Spans};
use text::{
    BatchPrefetcher, BatchSettings, BpeSettings, CodeSwitch, Corpus, Dictionary, LanguageText,
    LineRules, MlmBatches, MlmEvaluation, Preparation, Preparer, Selection, Split, Subset,
    TextSource, TokenizedCorpus, TsvColumns, Vocabulary, WordCounts, WordTokenizer,
    count_without_tests,
};

use super::config::PretrainConfig;

/// Batches made ahead of training, in updates.
const AHEAD: usize = 8;

/// Updates of a run whose batches have one shape.
struct BatchStage {
    /// The first update after it, or never.
    until: u64,
    accumulate: usize,
    batches: Arc<MlmBatches>,
    /// Held-out text of each language, in rows of the same length: positions beyond it are not trained yet.
    dev: Vec<MlmEvaluation>,
}

/// The micro-batches of one update after another, made ahead of training on threads of their own.
pub struct BatchFeed {
    stage: usize,
    /// Updates fed so far, over all stages.
    step: u64,
    /// Which rank is fed, of how many.
    rank: (usize, usize),
    batches: BatchPrefetcher,
}

impl BatchFeed {
    /// The micro-batches of the next update, or this rank's share of them, with the masked positions to predict.
    pub fn next_step(&mut self, data: &RunData) -> text::Result<Vec<(Batch, MaskedTokens)>> {
        if self.step >= data.stages[self.stage].until {
            *self = data.feed_rank(self.step, self.rank.0, self.rank.1);
        }
        self.step += 1;
        let accumulate = data.stages[self.stage].accumulate / self.rank.1;
        self.batches.by_ref().take(accumulate).map(|batch| Ok(data.micro_batch(&batch?))).collect()
    }
}

/// The text of a run, ready for training: vocabulary, batches, held-out text.
pub struct RunData {
    /// The vocabulary of all languages.
    pub vocabulary: Arc<Vocabulary>,
    /// Batches by stage; the last goes on to the end.
    stages: Vec<BatchStage>,
    /// A fingerprint of each language's text.
    pub(crate) fingerprints: Vec<String>,
    /// The number that each language with text has in the vocabulary.
    numbers: Vec<usize>,
    /// How often each subword occurs in the text of each.
    counts: Vec<Vec<u64>>,
    token_ids: TokenIdMap,
}

impl RunData {
    /// Learns or loads the vocabulary and tokenises or finds the corpora, in the run's folder. `watch` is
    /// called with what is being prepared.
    pub fn prepare(
        config: &PretrainConfig,
        folder: &Path,
        watch: &mut dyn FnMut(&str),
    ) -> text::Result<Self> {
        let vocabulary = Arc::new(vocabulary(config, &folder.join(VOCABULARY_FOLDER), watch)?);
        let mut corpora = Vec::new();
        for preparer in config.text.preparers_of(&vocabulary, &config.languages)? {
            watch(&format!("tokenising {}", preparer.language()));
            let corpus = corpus(config, preparer)?;
            let (shelf, other) = (folder.join("corpora"), config.text.corpora.as_deref());
            let (corpus, _) =
                TokenizedCorpus::prepare_or_link(&corpus, &vocabulary, &shelf, other, &mut |_| {})?;
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
        let token_ids = TokenIdMap::new(&vocabulary, &config.encoder.separate);
        let switch = switch.transpose()?;
        let numbers: Vec<usize> = corpora.iter().map(|corpus| corpus.language()).collect();
        // An imported vocabulary has no counts of its own.
        let counts = corpora.iter().map(|corpus| {
            let own = vocabulary.counts(corpus.language());
            let own = if own.iter().any(|&count| count > 0) { own } else { corpus.counts() };
            own.to_vec()
        });
        let counts = counts.collect();
        let fingerprints = corpora
            .iter()
            .map(|corpus: &Arc<TokenizedCorpus>| corpus.fingerprint().to_owned())
            .collect();
        let mut stages: Vec<BatchStage> = Vec::new();
        for (until, accumulate, settings) in shapes(config) {
            let held_out = |corpus: &Arc<TokenizedCorpus>| {
                let (vocabulary, corpus) = (Arc::clone(&vocabulary), Arc::clone(corpus));
                MlmEvaluation::new(vocabulary, corpus, Split::Dev, settings)
            };
            let dev = corpora.iter().map(held_out).collect::<text::Result<_>>()?;
            let batches = MlmBatches::new(
                Arc::clone(&vocabulary),
                corpora.clone(),
                settings,
                switch.clone(),
                config.seed,
            )?;
            stages.push(BatchStage { until, accumulate, batches: Arc::new(batches), dev });
        }
        Ok(Self { vocabulary, stages, fingerprints, numbers, counts, token_ids })
    }

    /// Held-out text of each language, in rows as long as those of update `step`.
    pub(crate) fn dev(&self, step: u64) -> &[MlmEvaluation] {
        let stage = self.stages.partition_point(|stage| stage.until < step);
        &self.stages[stage].dev
    }

    /// The batches of a run after update `step`.
    pub fn feed(&self, step: u64) -> BatchFeed {
        self.feed_rank(step, 0, 1)
    }

    /// Of those, every so manieth for one of so many ranks; their number divides the micro-batches of an update.
    pub(crate) fn feed_rank(&self, step: u64, rank: usize, ranks: usize) -> BatchFeed {
        let stage = self.stages.partition_point(|stage| stage.until <= step);
        let begun = stage.checked_sub(1).map_or(0, |before| self.stages[before].until);
        let BatchStage { accumulate, batches, .. } = &self.stages[stage];
        let first = (step - begun) * *accumulate as u64 + rank as u64;
        let batches = batches.every_ahead(first, ranks as u64, AHEAD * accumulate / ranks);
        BatchFeed { stage, step, rank: (rank, ranks), batches }
    }

    /// The place of a language of the vocabulary among those with text.
    pub(crate) fn place(&self, language: usize) -> usize {
        self.numbers.iter().position(|&number| number == language).expect("a batch is of text")
    }

    /// How often each subword occurs in the text of each language that has some.
    pub(crate) fn counts(&self) -> &[Vec<u64>] {
        &self.counts
    }

    /// The mapping between ids of the vocabulary and those of the encoder.
    pub(crate) fn token_ids(&self) -> &TokenIdMap {
        &self.token_ids
    }

    /// The probability of each language's batches.
    pub(crate) fn chances(&self) -> Vec<f64> {
        self.stages[0].batches.probabilities()
    }

    /// The encoder's configuration for this vocabulary.
    pub fn encoder_config(&self, config: &PretrainConfig) -> EncoderConfig {
        let entries = self.token_ids.entries(&self.vocabulary);
        let languages = self.vocabulary.languages().map(str::to_owned).collect();
        EncoderConfig { languages, vocabulary: entries, ..config.encoder.clone() }
    }

    /// An encoder of this run with what turns text into its input.
    pub(crate) fn parts<'a>(
        &'a self,
        encoder: &'a Encoder,
        params: &'a mut Params,
    ) -> EncoderParts<'a> {
        let (vocabulary, token_ids) = (&self.vocabulary, &self.token_ids);
        EncoderParts { encoder, params, vocabulary, token_ids, saved: None }
    }

    /// Token ids as the encoder numbers them.
    pub(crate) fn ids(&self, language: usize, ids: &[u32]) -> Indices {
        self.token_ids.to_encoder(language, ids)
    }

    /// A batch of text as the encoder takes it.
    pub(crate) fn micro_batch(&self, batch: &text::MlmBatch) -> (Batch, MaskedTokens) {
        let language = batch.language;
        let lengths = batch.starts.windows(2).map(|pair| (pair[1] - pair[0]) as usize);
        let spans = Spans::of_lengths(lengths);
        let tokens = self.ids(language, &batch.tokens);
        let targets = self.ids(language, &batch.targets);
        let rows = batch.masked.iter().copied().collect();
        (Batch { language, tokens, spans, segments: None }, MaskedTokens { rows, targets })
    }
}

/// When each stage ends, how many micro-batches make an update, and their shape.
fn shapes(config: &PretrainConfig) -> Vec<(u64, usize, BatchSettings)> {
    let mut until = 0;
    let mut shapes: Vec<_> = config
        .stages
        .iter()
        .map(|stage| {
            until += stage.steps;
            let settings = BatchSettings {
                length: stage.length.unwrap_or(config.batch.length),
                sequences: stage.sequences.unwrap_or(config.batch.sequences),
                ..config.batch
            };
            (until, stage.accumulate.unwrap_or(config.accumulate), settings)
        })
        .collect();
    shapes.push((u64::MAX, config.accumulate, config.batch));
    shapes
}

/// Whether every file is there, before a folder is made for the run.
pub(crate) fn check(config: &PretrainConfig) -> text::Result<()> {
    if config.files.values().flatten().any(|file| file == "-") {
        let reason = "a run reads its text more than once, and standard input can be read once";
        return Err(text::Error::request(reason, "give a file in place of `-`"));
    }
    let named = |file: &Path| TextSource::new("text", &[file.display().to_string()]).map(drop);
    let dictionaries = config.switch.iter().flat_map(|switch| &switch.dictionaries);
    dictionaries.into_iter().try_for_each(|dictionary| named(&dictionary.file))?;
    let probes = config.probes.iter().flat_map(|probe| &probe.files);
    let tables = config.text.simplify.iter().chain(&config.vocabulary.file);
    probes.chain(tables).try_for_each(|file| named(file))?;
    let texts = config.languages.iter().map(|language| (language, &config.files[language]));
    texts.into_iter().try_for_each(|(language, files)| TextSource::new(language, files).map(drop))
}

pub(super) fn corpora(
    config: &PretrainConfig,
    preparers: Vec<Preparer>,
) -> text::Result<Vec<Corpus>> {
    preparers.into_iter().map(|preparer| corpus(config, preparer)).collect()
}

pub(super) fn corpus(config: &PretrainConfig, preparer: Preparer) -> text::Result<Corpus> {
    let text = &config.text;
    let language = preparer.language();
    let take = text.subset(language);
    Ok(Corpus {
        source: TextSource::new(language, &config.files[language])?,
        preparer,
        rules: LineRules::default(),
        selection: Selection {
            take,
            distinct: text.distinct,
            dev: text.dev,
            seed: text.seed.unwrap_or(config.seed),
            ..Selection::default()
        },
    })
}

/// How many sentences a run would read from files of a language's raw text, up to `most`: without those of tests, in these
/// columns of `.tsv` files, where there are some.
pub fn count_sentences(
    language: &str,
    [files, tests]: [&[String]; 2],
    columns: &TsvColumns,
    most: u64,
) -> text::Result<u64> {
    if !tests.is_empty() {
        return count_without_tests(language, [files, tests], columns, most);
    }
    let raw = Preparation {
        split: true,
        words: WordTokenizer::for_language(language),
        lowercase: false,
        strip_accents: false,
        simplify: false,
    };
    let corpus = Corpus {
        source: TextSource::new(language, files)?,
        preparer: Preparer::new(language, raw, None)?,
        rules: LineRules::default(),
        selection: Selection { take: Subset::First(most), ..Selection::default() },
    };
    Ok(corpus.read(&mut |_| {}, &mut |_| Ok(()))?.kept[0])
}

/// The vocabulary of the run: learned once, then loaded.
fn vocabulary(
    config: &PretrainConfig,
    folder: &Path,
    watch: &mut dyn FnMut(&str),
) -> text::Result<Vocabulary> {
    if folder.is_dir() {
        return Vocabulary::load(folder);
    }
    let vocabulary = match (&config.vocabulary.folder, &config.vocabulary.file) {
        (Some(existing), _) => load_vocabulary(config, existing, watch)?,
        (None, Some(file)) => adopt_vocabulary(config, file, watch)?,
        (None, None) => learn_vocabulary(config, watch)?,
    };
    vocabulary.save(folder, false)?;
    Vocabulary::load(folder)
}

/// A vocabulary that exists, if it is of the run's languages.
fn load_vocabulary(
    config: &PretrainConfig,
    folder: &Path,
    watch: &mut dyn FnMut(&str),
) -> text::Result<Vocabulary> {
    let vocabulary = Vocabulary::load(folder)?;
    if vocabulary.languages().eq(&config.languages) {
        let (kind, subwords) = (vocabulary.kind(), vocabulary.len());
        watch(&format!("vocabulary of {}: {kind:?}, {subwords} subwords", folder.display()));
        return Ok(vocabulary);
    }
    let of = vocabulary.languages().collect::<Vec<_>>().join(", ");
    let own = config.languages.join(", ");
    let reason = format!("is a vocabulary of {of}, and the run is of {own}");
    Err(text::Error::file(folder, reason, "give the text of the same languages in the same order"))
}

/// A WordPiece vocabulary as it is, with the counts of its subwords in the run's text.
fn adopt_vocabulary(
    config: &PretrainConfig,
    file: &Path,
    watch: &mut dyn FnMut(&str),
) -> text::Result<Vocabulary> {
    let corpora = corpora(config, config.text.preparers(&config.languages, true)?)?;
    watch(&format!("counting subwords of {}", file.display()));
    let uncased = config.vocabulary.uncased;
    Ok(Vocabulary::wordpiece_from_corpora(file, uncased, &corpora, &mut |_, _| {})?.0)
}

fn learn_vocabulary(
    config: &PretrainConfig,
    watch: &mut dyn FnMut(&str),
) -> text::Result<Vocabulary> {
    let mut texts = Vec::new();
    for preparer in config.text.preparers(&config.languages, false)? {
        let name = preparer.language().to_owned();
        watch(&format!("counting words of {name}"));
        let corpus = corpus(config, preparer)?;
        let (words, _) = WordCounts::of(&corpus, &mut |_| {})?;
        texts.push(LanguageText { name, preparer: corpus.preparer, words });
    }
    let mut settings = BpeSettings::default();
    settings.kind = config.vocabulary.kind.unwrap_or(settings.kind);
    settings.merges = config.vocabulary.merges.unwrap_or(settings.merges);
    watch(&format!("learning {} merges", settings.merges));
    Vocabulary::learn(texts, settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_of_raw_text_are_counted_up_to_a_number() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let files = [file("a", "It rains. We stay.\n\nWhy?\n"), file("b", "Nobody knows.\n")];
        let count = |files: &[String], tests: &[String], most| {
            count_sentences("en", [files, tests], &TsvColumns::default(), most)
        };
        assert_eq!(count(&files, &[], 100).unwrap(), 4);
        assert_eq!(count(&files, &[], 3).unwrap(), 3);
        assert_eq!(count(&files, &[file("test", "it rains\n")], 100).unwrap(), 3);
        assert!(count(&[file("c", "\n")], &[], 3).is_err());
    }
}
