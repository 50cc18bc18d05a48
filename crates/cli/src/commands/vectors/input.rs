//! What both kinds of training have in common: the text, the words, the file to make, and going on
//! after a kill.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::Serialize;
use text::{Corpus, Preparation, Preparer, TextSource, TokenizedCorpus, Vocabulary, WordTokenizer};
use vectors::formats::{self, VectorFormat};
use vectors::{IndexedSentences, StateFile, TokenUnit};

use crate::commands::texts::{TextFlags, describe_skipped, watch};
use crate::failure::Failure;

/// Flags of `vectors word2vec` and `vectors glove` alike.
#[derive(Args)]
pub(super) struct Input {
    /// What a word is: `whitespace`, what stands between spaces; `words`, as suits the language; or
    /// the folder of a vocabulary, whose subwords are the words then.
    #[arg(long, value_name = "whitespace|words|DIR", default_value = "words")]
    tokenizer: String,

    /// Learn from the sentences and subwords of a pretrained encoder's run, in the place of --text.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["texts", "tokenizer"])]
    run: Option<PathBuf>,

    /// Make all letters small.
    #[arg(long)]
    lowercase: bool,

    /// Leave out words that occur fewer times, over all languages.
    #[arg(long, value_name = "N", default_value_t = 5)]
    min_count: u64,

    /// The file to make; its name decides its format: `.bin` is Word2Vec's binary, `.npy` an array
    /// beside a `.vocab`, `.glove` GloVe's text, anything else Word2Vec's text.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// Write this format, whatever the file is called.
    #[arg(long, value_enum)]
    format: Option<FormatFlag>,

    /// Go on with a run that was stopped or killed.
    #[arg(long)]
    resume: bool,

    #[command(flatten)]
    text: TextFlags,
}

/// How vectors lie in a file.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum FormatFlag {
    /// Word2Vec's and fastText's text, with a header.
    #[value(alias = "vec")]
    Text,
    /// Word2Vec's binary.
    #[value(alias = "bin")]
    Binary,
    /// GloVe's text, without a header.
    Glove,
    /// An array of NumPy, and the words beside it.
    Npy,
}

impl FormatFlag {
    pub(super) fn format(self) -> VectorFormat {
        match self {
            FormatFlag::Text => VectorFormat::Text,
            FormatFlag::Binary => VectorFormat::Binary,
            FormatFlag::Glove => VectorFormat::Glove,
            FormatFlag::Npy => VectorFormat::Npy,
        }
    }
}

/// What a finished training says of itself.
#[derive(Serialize)]
pub(super) struct Learned {
    pub(super) file: PathBuf,
    pub(super) words: usize,
    pub(super) dim: usize,
    pub(super) tokens: u64,
    pub(super) losses: Vec<f64>,
    pub(super) seconds: f64,
    /// Words asked for that have no vector.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) without: Vec<String>,
}

impl Input {
    /// Decides chance in text and training alike.
    pub(super) fn seed(&self) -> u64 {
        self.text.seed()
    }

    /// Refuses what can be refused before the text is read.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.text.texts.is_empty() && self.run.is_none() {
            let message = "no text; give some for each language, as --text LANG=FILE";
            return Err(Failure::Usage(message.into()));
        }
        if self.run.is_some() {
            self.text.refuse_selection("the run's own sentences are read")?;
        }
        let own = matches!(self.tokenizer.as_str(), "whitespace" | "words") && self.run.is_none();
        if self.lowercase && !own {
            let message = "a vocabulary decides for itself whether letters are made small; leave \
                           --lowercase out";
            return Err(Failure::Usage(message.into()));
        }
        self.text.languages().try_for_each(text::check_language)?;
        files::check_new_file(&self.out, true)?;
        formats::check_name(&self.out)?;
        let state = self.keep().path;
        match (self.resume, state.exists()) {
            (false, true) => Err(Failure::Usage(format!(
                "{} is of an unfinished run; go on with it by --resume, or remove it",
                state.display()
            ))),
            (true, false) => Err(Failure::Usage(format!(
                "nothing to go on with: there is no {}; leave --resume out",
                state.display()
            ))),
            _ => Ok(()),
        }
    }

    /// Where the state between epochs lies: beside the file to make.
    pub(super) fn keep(&self) -> StateFile {
        StateFile { path: self.out.with_added_extension("state") }
    }

    /// Reads the text.
    pub(super) fn sentences(&self) -> Result<IndexedSentences, Failure> {
        if let Some(run) = &self.run {
            return of_run(run, self.min_count);
        }
        let vocabulary = match self.tokenizer.as_str() {
            "whitespace" | "words" => None,
            folder => Some(Vocabulary::load(Path::new(folder))?),
        };
        let corpora = self.corpora(vocabulary.as_ref())?;
        let tokens = vocabulary.as_ref().map_or(TokenUnit::Words, TokenUnit::Subwords);
        let mut bars = std::collections::HashMap::new();
        let mut tell = |language: &str, at: text::ReadProgress| {
            let bar = || watch(format!("reading {language}"));
            bars.entry(language.to_owned()).or_insert_with(bar)(at);
        };
        let (sentences, reports) =
            IndexedSentences::read(&corpora, tokens, self.min_count, &mut tell)?;
        drop(bars);
        for (corpus, report) in corpora.iter().zip(reports) {
            let (language, skipped) = (corpus.source.language(), describe_skipped(report.skipped));
            say!("{language}: {} sentences{skipped}", report.kept[0]);
        }
        Ok(sentences)
    }

    fn corpora(&self, vocabulary: Option<&Vocabulary>) -> Result<Vec<Corpus>, Failure> {
        let sources = self.text.sources()?;
        let prepared = |source: TextSource| {
            let preparer = self.preparer(source.language(), vocabulary)?;
            Ok(self.text.corpus(source, preparer))
        };
        sources.into_iter().map(prepared).collect()
    }

    fn preparer(
        &self,
        language: &str,
        vocabulary: Option<&Vocabulary>,
    ) -> Result<Preparer, Failure> {
        if let Some(vocabulary) = vocabulary {
            return Ok(self.text.adapt(vocabulary.preparer(vocabulary.language(language)?)));
        }
        let words = match self.tokenizer.as_str() {
            "whitespace" => WordTokenizer::Whitespace,
            _ => WordTokenizer::for_language(language),
        };
        let plain = Preparation::for_language(language);
        let preparation = Preparation { words, lowercase: self.lowercase, ..plain };
        Ok(self.text.adapt(&Preparer::new(language, preparation, None)?))
    }

    /// Writes what was learned, and takes the state away.
    pub(super) fn write(&self, vectors: &vectors::WordVectors) -> Result<(), Failure> {
        formats::write(&self.out, vectors, self.format.map(FormatFlag::format))?;
        // Where there was but one epoch, there is none.
        let _ = std::fs::remove_file(self.keep().path);
        Ok(())
    }

    /// What to say when it is done.
    pub(super) fn learned(
        &self,
        sentences: &IndexedSentences,
        vectors: &vectors::WordVectors,
        losses: Vec<f64>,
        seconds: f64,
    ) -> Learned {
        Learned {
            file: self.out.clone(),
            words: vectors.len(),
            dim: vectors.dim(),
            tokens: sentences.total(),
            losses,
            seconds,
            without: Vec::new(),
        }
    }

    /// What to say when it was stopped.
    pub(super) fn stopped(&self) -> Failure {
        let state = self.keep().path;
        let next = if state.exists() {
            "go on by the same command with --resume"
        } else {
            "not one epoch was done, so there is nothing to go on with"
        };
        Failure::Failed(format!("stopped; {next}").into())
    }
}

impl Learned {
    pub(super) fn describe(&self) -> String {
        let losses: Vec<_> = self.losses.iter().map(|loss| format!("{loss:.4}")).collect();
        let without = match &self.without[..] {
            [] => String::new(),
            words => format!("\n  no vector, having no n-gram of the text: {}", words.join(" ")),
        };
        format!(
            "{}: {} words, {} columns, from {} words of text in {:.1} s\n  loss by epoch: {}{without}",
            self.file.display(),
            self.words,
            self.dim,
            self.tokens,
            self.seconds,
            losses.join(" ")
        )
    }
}

/// The training part of a run's corpora, in the run's own subwords.
fn of_run(run: &Path, least: u64) -> Result<IndexedSentences, Failure> {
    let vocabulary = Vocabulary::load(&run.join("vocabulary"))?;
    let shelf = run.join("corpora");
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(&shelf).map_err(|source| files_error(&shelf, source))? {
        let entry = entry.map_err(|source| files_error(&shelf, source))?;
        // One that was never finished has a name that begins with a dot.
        let begun = entry.file_name().to_string_lossy().starts_with('.');
        if !begun && entry.path().join("corpus.json").is_file() {
            folders.push(entry.path());
        }
    }
    // A folder lists its entries in no order.
    folders.sort();
    let open = |folder: &PathBuf| TokenizedCorpus::open(folder, &vocabulary);
    let corpora = folders.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let mut languages = HashSet::new();
    if let Some(twice) = corpora.iter().find(|corpus| !languages.insert(corpus.language())) {
        let reason = format!(
            "{} holds two corpora of `{}`, and only one can be what the encoder read; remove the other",
            shelf.display(),
            twice.language_name()
        );
        return Err(Failure::Usage(reason));
    }
    Ok(IndexedSentences::of_tokenized(&corpora, &vocabulary, least)?)
}

fn files_error(path: &Path, source: std::io::Error) -> files::Error {
    files::Error::Io { doing: "list", path: path.to_owned(), source }
}
