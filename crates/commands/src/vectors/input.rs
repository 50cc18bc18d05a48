//! What both kinds of training have in common: the text, its words, the file to write, and resuming.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use files::checkpoints;
use serde::Serialize;
use text::{Corpus, Preparation, Preparer, TextSource, TokenizerChoice, Vocabulary};
use train::pretrain::PretrainConfig;
use vectors::formats::{self, VectorFormat};
use vectors::{IndexedSentences, StateFile, TokenUnit, TrainedVectors, TrainingResult};

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::texts::{TextFlags, TokenizerFlag, describe_skipped, watch_languages};

#[derive(Args, Serialize)]
pub struct Input {
    /// How text is tokenized into words: auto (the language's default), whitespace, moses or jieba; or
    /// the folder of a vocabulary, whose subwords get the vectors then.
    #[arg(
        long,
        value_name = "auto|whitespace|moses|jieba|DIR",
        default_value = "auto",
        help_heading = "Input"
    )]
    pub tokenizer: String,

    /// Train on the sentences and subwords of a pretraining run, in place of --text; where the run cut
    /// its inputs (batch.max_tokens), sentences are cut to the same length.
    #[arg(long, short, value_name = "DIR", conflicts_with_all = ["texts", "tokenizer"],
        help_heading = "Input")]
    pub model: Option<PathBuf>,

    /// Lowercase.
    #[arg(long, help_heading = "Input")]
    pub lowercase: bool,

    /// Drop words that occur fewer times, over all languages.
    #[arg(long, value_name = "N", default_value_t = 5, help_heading = "Input")]
    pub min_count: u64,

    /// The file to write, or `-` for standard output; its name decides its format: `.bin` is Word2Vec's
    /// binary, `.npy` an array beside a `.vocab`, `.glove` GloVe's text, `.vec` and `.txt` Word2Vec's
    /// text.
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    pub out: PathBuf,

    /// Write this format, whatever the file is called.
    #[arg(long, value_enum, help_heading = "Output")]
    pub format: Option<FormatFlag>,

    /// Replace the file if it exists.
    #[arg(long, short, help_heading = "Output")]
    pub force: bool,

    /// Resume a run that was stopped or killed.
    #[arg(long, help_heading = "Training")]
    pub resume: bool,

    /// Threads; 0 takes every core.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Compute")]
    pub threads: usize,

    #[command(flatten)]
    pub text: TextFlags,
}

#[derive(Clone, Copy, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum FormatFlag {
    /// Word2Vec's and fastText's text, with a header.
    #[value(alias = "vec")]
    Text,
    /// Word2Vec's binary.
    #[value(alias = "bin")]
    Binary,
    /// GloVe's text, without a header.
    Glove,
    /// A NumPy array, and the words beside it.
    Npy,
}

impl FormatFlag {
    pub(crate) fn format(self) -> VectorFormat {
        match self {
            FormatFlag::Text => VectorFormat::Text,
            FormatFlag::Binary => VectorFormat::Binary,
            FormatFlag::Glove => VectorFormat::Glove,
            FormatFlag::Npy => VectorFormat::Npy,
        }
    }

    pub(crate) fn ending(self) -> &'static str {
        match self {
            FormatFlag::Text => "vec",
            FormatFlag::Binary => "bin",
            FormatFlag::Glove => "glove",
            FormatFlag::Npy => "npy",
        }
    }
}

impl Input {
    /// Whether the file to write is known.
    pub(super) fn is_placed(&self) -> bool {
        self.out != Path::new("-")
    }

    pub(super) fn seed(&self) -> u64 {
        self.text.seed()
    }

    /// Refuses what can be refused before the text is read.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.text.texts.is_empty() && self.model.is_none() {
            let message = "no text; give some for each language, as --text LANG=FILE";
            return Err(Failure::Usage(message.into()));
        }
        if self.model.is_some() {
            self.text.refuse_selection("the run's own sentences are read")?;
        }
        let words = self.tokenizer_choice().is_some() && self.model.is_none();
        if self.lowercase && !words {
            let message = "a vocabulary itself decides whether text is lowercased; leave --lowercase \
                           out";
            return Err(Failure::Usage(message.into()));
        }
        self.text.languages().try_for_each(text::check_language)?;
        let state = self.state_file().path;
        let saved = checkpoints::exists(&state);
        // A run that was killed between the two left its vectors beside its state.
        files::check_new_file(&self.out, self.force || self.resume && saved)?;
        if self.format.is_none() {
            formats::check_name(&self.out)?;
        }
        match (self.resume, saved) {
            (false, true) => Err(Failure::Usage(format!(
                "{} is of an unfinished run; resume it by --resume, or remove it",
                state.display()
            ))),
            (true, false) => {
                say!("there is no {}: no epoch was saved, so from the start", state.display());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The saved state between epochs, beside the file to write.
    pub(super) fn state_file(&self) -> StateFile {
        let out = if files::is_stream(&self.out) { Path::new("vectors") } else { &self.out };
        StateFile { path: out.with_added_extension("state") }
    }

    pub(super) fn threads(&self) -> usize {
        self.threads
    }

    /// The tokenizer by name; none where it is a vocabulary's folder.
    fn tokenizer_choice(&self) -> Option<TokenizerChoice> {
        TokenizerFlag::from_str(&self.tokenizer, false).ok().map(TokenizerChoice::from)
    }

    pub(super) fn sentences(&self) -> Result<IndexedSentences, Failure> {
        if let Some(run) = &self.model {
            let config = run.join("config.toml").is_file().then(|| PretrainConfig::read(run));
            let max_tokens = config.transpose()?.and_then(|config| config.batch.max_tokens);
            return Ok(IndexedSentences::of_run(run, self.min_count, max_tokens)?);
        }
        let vocabulary = match self.tokenizer_choice() {
            Some(_) => None,
            None => Some(Vocabulary::load(Path::new(&self.tokenizer))?),
        };
        let corpora = self.corpora(vocabulary.as_ref())?;
        let unit = vocabulary.as_ref().map_or(TokenUnit::Words, TokenUnit::Subwords);
        let mut watch = watch_languages("reading");
        let (sentences, reports) =
            IndexedSentences::read(&corpora, unit, self.min_count, &mut watch)?;
        drop(watch);
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
        let words = self.tokenizer_choice().unwrap_or_default().for_language(language);
        let plain = Preparation::for_language(language);
        let preparation = Preparation { words, lowercase: self.lowercase, ..plain };
        Ok(self.text.adapt(&Preparer::new(language, preparation, None)?))
    }

    /// Writes the vectors, removes the saved state, and reports.
    pub(super) fn finish(
        &self,
        trained: &TrainedVectors,
        mut result: TrainingResult,
        wanted: &[String],
    ) -> Result<Outcome, Failure> {
        formats::write(&self.out, &trained.vectors, self.format.map(FormatFlag::format))?;
        // Where there was but one epoch, there is none.
        checkpoints::remove(&self.state_file().path)?;
        let lacks = |word: &&String| trained.vectors.position(word).is_none();
        result.without = wanted.iter().filter(lacks).cloned().collect();
        Ok(Outcome::new(describe(&result), &result).beside(&self.out))
    }

    pub(super) fn out(&self) -> &Path {
        &self.out
    }

    pub(super) fn stopped(&self) -> Failure {
        let state = self.state_file().path;
        let next = if checkpoints::exists(&state) {
            "resume by the same command with --resume"
        } else {
            "no epoch was finished, so there is nothing to resume"
        };
        Failure::Failed(format!("stopped; {next}"))
    }
}

fn describe(result: &TrainingResult) -> String {
    let losses: Vec<_> = result.losses.iter().map(|loss| format!("{loss:.4}")).collect();
    let without = match &result.without[..] {
        [] => String::new(),
        words => format!("\n  no vector, for lack of an n-gram of the text: {}", words.join(" ")),
    };
    let cut = match result.cut {
        0 => String::new(),
        cut => format!("\n  {cut} of {} sentences cut as the run's inputs", result.sentences),
    };
    format!(
        "{}: {} words, {} columns, from {} words of text in {:.1} s\n  loss by epoch: {}{cut}{without}",
        result.file.display(),
        result.words,
        result.dim,
        result.tokens,
        result.seconds,
        losses.join(" ")
    )
}
