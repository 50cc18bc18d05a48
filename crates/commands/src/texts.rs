//! The flags by which any command is given text, and what is built from them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use models::parallel::RowSelection;
use serde::Serialize;
use terms::Scale;
use text::{
    Corpus, LineRules, Preparation, Preparer, Selection, SimplificationTable, Subset, TextSource,
    TokenizerChoice, TsvColumns, Vocabulary, WordTokenizer,
};

use crate::failure::Failure;
use crate::progress::Progress;
use crate::request::{one_or_more, shown};

/// Which columns of `.tsv` files hold sentences.
#[derive(Args, Default, Serialize)]
pub struct ColumnsFlag {
    /// Of .tsv files, read these columns as sentences, row by row: 1,2 takes XNLI's premises and
    /// hypotheses.
    #[arg(long, value_name = "N,…", default_value_t = TsvColumns::default(), help_heading = "Input")]
    #[serde(serialize_with = "shown")]
    pub columns: TsvColumns,
}

/// Which sentences of a text are read; the command has the seed.
#[derive(Args, Default, Serialize)]
pub struct RowFlags {
    /// Read at most the first N sentences of each language.
    #[arg(long, short = 'n', value_name = "N", conflicts_with = "sample_size", help_heading = "Input", value_parser = one_or_more())]
    pub limit: Option<usize>,

    /// Draw a random sample of N sentences of each language, by --seed: of parallel text the same lines.
    #[arg(long, value_name = "N", help_heading = "Input", value_parser = one_or_more())]
    pub sample_size: Option<usize>,
}

impl RowFlags {
    pub(crate) fn is_given(&self) -> bool {
        self.limit.is_some() || self.sample_size.is_some()
    }

    pub(crate) fn selection(&self, seed: u64) -> RowSelection {
        self.selection_or(RowSelection::All, seed)
    }

    /// What was asked for; something else where nothing was.
    pub(crate) fn selection_or(&self, otherwise: RowSelection, seed: u64) -> RowSelection {
        match (self.limit, self.sample_size) {
            (Some(first), _) => RowSelection::First(first),
            (_, Some(size)) => RowSelection::Sample { size, seed },
            _ => otherwise,
        }
    }
}

/// How files become sentences, and which of these are taken.
#[derive(Args, Serialize)]
pub struct SentenceFlags {
    #[command(flatten)]
    pub columns: ColumnsFlag,

    /// Treat every line as one sentence, rather than split lines into sentences.
    #[arg(long, help_heading = "Input")]
    pub lines: bool,

    #[command(flatten)]
    pub rows: RowFlags,

    /// Drop duplicate sentences.
    #[arg(long, help_heading = "Input")]
    pub distinct: bool,
}

impl SentenceFlags {
    /// Files of a language, of which the chosen columns are read.
    pub(super) fn source(&self, language: &str, files: &[String]) -> Result<TextSource, Failure> {
        Ok(TextSource::new(language, files)?.with_columns(&self.columns.columns))
    }

    /// The sentences that are taken, none of which is held out; the seed is that of the sample.
    pub(super) fn selection(&self, seed: u64) -> Selection {
        let take = match self.rows.selection(seed) {
            RowSelection::First(count) => Subset::First(count as u64),
            RowSelection::Sample { size, .. } => Subset::Sample(size as u64),
            RowSelection::All => Subset::All,
        };
        Selection { take, distinct: self.distinct, seed, ..Selection::default() }
    }
}

#[derive(Args, Serialize)]
pub struct TextFlags {
    /// Text of a language: a file, a glob, or `-` for standard input; plain, gzip or zstd.
    /// Repeat for more files and more languages.
    #[arg(long = "text", short = 't', value_name = "LANG=FILE", value_parser = parse_text,
        help_heading = "Input")]
    pub texts: Vec<(String, String)>,

    #[command(flatten)]
    pub sentences: SentenceFlags,

    /// Hold out N sentences for development.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Input")]
    pub dev: u64,

    /// Hold out N sentences for test.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Input")]
    pub test: u64,

    /// The random seed of the sample, the held-out sentences and training.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Skip and count bad lines and empty files, rather than stop at the first.
    #[arg(long, help_heading = "Input")]
    pub tolerant: bool,

    /// The longest line to read.
    #[arg(long, value_name = "BYTES", default_value_t = LineRules::default().longest,
        help_heading = "Input")]
    pub longest_line: usize,
}

/// A language and its file, `LANG=FILE`.
pub fn parse_text(argument: &str) -> Result<(String, String), String> {
    match argument.split_once('=') {
        Some((language, file)) if !language.is_empty() && !file.is_empty() => {
            Ok((language.to_owned(), file.to_owned()))
        }
        _ => Err("write LANG=FILE, such as en=wiki.en.txt.zst".to_owned()),
    }
}

impl TextFlags {
    /// The languages' names, as often as they are given.
    pub(crate) fn languages(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(|(language, _)| language.as_str())
    }

    /// Refuses flags that choose among sentences where no text is read.
    pub(crate) fn refuse_selection(&self, instead: &str) -> Result<(), Failure> {
        let SentenceFlags { columns, lines, rows, distinct } = &self.sentences;
        let RowFlags { limit, sample_size } = rows;
        let given = [
            ("--lines", *lines),
            ("--columns", columns.columns != TsvColumns::default()),
            ("--limit", limit.is_some()),
            ("--sample-size", sample_size.is_some()),
            ("--distinct", *distinct),
            ("--dev", self.dev > 0),
            ("--test", self.test > 0),
            ("--tolerant", self.tolerant),
        ];
        match given.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((flag, _)) => Err(Failure::Usage(format!(
                "{flag} has no effect: without --text, {instead}; give --text LANG=FILE, or leave it out"
            ))),
        }
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// The languages in the order in which they were first named, each with its files.
    pub(crate) fn sources(&self) -> Result<Vec<TextSource>, Failure> {
        let languages = by_language(&self.texts);
        languages.iter().map(|(language, files)| self.sentences.source(language, files)).collect()
    }

    /// Puts a source together with how it is prepared and what is wanted of it.
    pub(crate) fn corpus(&self, source: TextSource, preparer: Preparer) -> Corpus {
        Corpus { source, preparer, rules: self.rules(), selection: self.selection() }
    }

    /// A vocabulary's own preprocessing, but whether lines are split is up to the text.
    pub(crate) fn adapt(&self, preparer: &Preparer) -> Preparer {
        preparer.splitting(preparer.preparation().split && !self.sentences.lines)
    }

    /// The text as a vocabulary's languages preprocess it.
    pub(crate) fn corpora_for(&self, vocabulary: &Vocabulary) -> Result<Vec<Corpus>, Failure> {
        let mut corpora = Vec::new();
        for source in self.sources()? {
            let number = vocabulary.language(source.language())?;
            let preparer = self.adapt(vocabulary.preparer(number));
            corpora.push(self.corpus(source, preparer));
        }
        if corpora.is_empty() {
            return Err(Failure::Usage(
                "no text; give some for each language, as --text LANG=FILE".to_owned(),
            ));
        }
        Ok(corpora)
    }

    fn rules(&self) -> LineRules {
        LineRules { longest: self.longest_line, tolerant: self.tolerant, adjustable: true }
    }

    fn selection(&self) -> Selection {
        let &Self { dev, test, seed, .. } = self;
        Selection { dev, test, ..self.sentences.selection(seed) }
    }
}

/// How a new vocabulary's text is preprocessed; later text is preprocessed alike.
#[derive(Args, Serialize)]
pub struct PreparationFlags {
    /// How text is tokenized into words.
    #[arg(long, value_enum, default_value_t = TokenizerFlag::Auto, help_heading = "Preprocessing")]
    pub tokenizer: TokenizerFlag,

    /// Lowercase.
    #[arg(long, help_heading = "Preprocessing")]
    pub lowercase: bool,

    /// Remove accents.
    #[arg(long, help_heading = "Preprocessing")]
    pub strip_accents: bool,

    /// Map traditional Chinese characters to simplified ones, by a table of two columns (applies to
    /// `zh`).
    #[arg(long, value_name = "TABLE", help_heading = "Preprocessing")]
    pub simplify: Option<PathBuf>,
}

flag_values! {
    /// How text is tokenized into words.
    pub enum TokenizerFlag => TokenizerChoice {
        /// The language's default: `jieba` for Chinese, `moses` for others.
        Auto,
        /// At whitespace.
        Whitespace,
        /// By rules like those of the Moses tokenizer.
        Moses,
        /// By jieba, for Chinese.
        Jieba,
    }
}

#[derive(Args, Serialize)]
pub struct ParallelFlags {
    /// Parallel text: LANG=FILE twice, where line i translates line i and the first is the source (of
    /// a `.tsv` file, the columns named by --columns); or LANG1-LANG2=FILE once, with two columns separated by a tab
    /// or `|||`. Plain, gzip or zstd, `-` for standard input; repeat for more files.
    #[arg(long, short = 'p', value_name = "LANG=FILE|LANG1-LANG2=FILE", value_parser = parse_text,
        help_heading = "Input")]
    pub parallel: Vec<(String, String)>,

    #[command(flatten)]
    pub columns: ColumnsFlag,
}

/// Where parallel text is, and its two languages.
pub enum ParallelFiles {
    /// Two columns of a file, or of several.
    Columns([String; 2], Vec<String>),
    /// A file for each side, or several, parallel line by line.
    Files([String; 2], [Vec<String>; 2]),
}

impl ParallelFlags {
    /// What was given, or how to give it.
    pub(crate) fn files(&self) -> Result<ParallelFiles, Failure> {
        let usage = |message: String| Err(Failure::Usage(message));
        match &by_language(&self.parallel)[..] {
            [(pair, files)] => match pair.split_once('-') {
                Some((source, target)) if !source.is_empty() && !target.is_empty() => {
                    let languages = [source.to_owned(), target.to_owned()];
                    Ok(ParallelFiles::Columns(languages, files.clone()))
                }
                _ => usage(format!(
                    "--parallel {pair}={}: give the other side too, as a second --parallel LANG=FILE, or \
                     a file of two columns as --parallel LANG1-LANG2=FILE",
                    files[0]
                )),
            },
            [(source, a), (target, b)] => Ok(ParallelFiles::Files(
                [(*source).to_owned(), (*target).to_owned()],
                [a.clone(), b.clone()],
            )),
            [] => usage(
                "no parallel text; give --parallel LANG=FILE twice, or --parallel LANG1-LANG2=FILE"
                    .to_owned(),
            ),
            more => usage(format!("--parallel names {} languages, not two", more.len())),
        }
    }
}

/// The languages in the order in which they were first named, each with its files.
pub(super) fn by_language(texts: &[(String, String)]) -> Vec<(&str, Vec<String>)> {
    let mut languages: Vec<(&str, Vec<String>)> = Vec::new();
    for (language, file) in texts {
        match languages.iter_mut().find(|(known, _)| known == language) {
            Some((_, files)) => files.push(file.clone()),
            None => languages.push((language, vec![file.clone()])),
        }
    }
    languages
}

impl PreparationFlags {
    /// One preparer for each source. WordPiece has a tokenizer of its own.
    pub(crate) fn preparers(
        &self,
        flags: &TextFlags,
        languages: &[String],
        own_tokenizer: bool,
    ) -> Result<Vec<Preparer>, Failure> {
        let chinese = |language: &String| terms::is_chinese(language);
        if self.simplify.is_some() && !languages.iter().any(chinese) {
            let message = "--simplify is for Chinese, and no --text is `zh`; leave it out";
            return Err(Failure::Usage(message.into()));
        }
        let table =
            self.simplify.as_deref().map(SimplificationTable::read).transpose()?.map(Arc::new);
        let prepare = |language: &String| {
            let words = match self.tokenizer {
                TokenizerFlag::Auto if own_tokenizer => WordTokenizer::Whitespace,
                choice => TokenizerChoice::from(choice).for_language(language),
            };
            let preparation = Preparation {
                split: !flags.sentences.lines,
                words,
                lowercase: self.lowercase,
                strip_accents: self.strip_accents,
                simplify: chinese(language) && table.is_some(),
            };
            Ok(Preparer::new(language, preparation, table.clone())?)
        };
        languages.iter().map(prepare).collect()
    }
}

/// Draws progress through a text, a step for each mebibyte read from disk.
pub(crate) fn watch(label: String) -> impl FnMut(text::ReadProgress) {
    let mut shown: Option<Progress> = None;
    move |at: text::ReadProgress| {
        let bar = shown.get_or_insert_with(|| Progress::new(&label, at.total >> 20));
        bar.reach(at.bytes >> 20, "MiB");
    }
}

/// Draws progress through the texts of several languages, a bar for each.
pub(crate) fn watch_languages(doing: &str) -> impl FnMut(&str, text::ReadProgress) {
    let mut bars = HashMap::new();
    move |language: &str, at| {
        let bar = || watch(format!("{doing} {language}"));
        bars.entry(language.to_owned()).or_insert_with(bar)(at);
    }
}

/// Runs work on so many threads of the CPU; 0 takes every core.
pub(crate) fn with_threads<T: Send>(
    threads: u16,
    work: impl FnOnce() -> Result<T, Failure> + Send,
) -> Result<T, Failure> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.into()).build();
    pool.map_err(|error| Failure::Failed(error.to_string()))?.install(work)
}

/// What was skipped, in words; nothing if nothing was.
pub(crate) fn describe_skipped(skipped: text::SkipCounts) -> String {
    if skipped.total() == 0 {
        return String::new();
    }
    let text::SkipCounts { invalid, too_long, empty_files } = skipped;
    format!(
        ", skipped {invalid} lines that are not UTF-8, {too_long} too long, {empty_files} empty files"
    )
}

/// A parser of scales that lists them.
pub fn scales() -> impl clap::builder::TypedValueParser<Value = Scale> {
    use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
    let named = |scale: Scale| PossibleValue::new(scale.name()).help(scale.summary());
    PossibleValuesParser::new(Scale::ALL.map(named))
        .map(|name| name.parse().expect("one of the listed values"))
}
