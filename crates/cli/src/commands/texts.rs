//! The flags by which any command is given text, and what is built from them.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use text::{
    Corpus, LineRules, Preparation, Preparer, Selection, SimplificationTable, Subset, TextSource,
    Vocabulary, WordTokenizer,
};

use crate::failure::Failure;
use crate::progress::Progress;

/// Which text, and which sentences of it.
#[derive(Args)]
pub(crate) struct TextFlags {
    /// Text of a language: a file, a glob, or `-` for standard input; plain, gzip or zstd.
    /// Repeat for more files and more languages.
    #[arg(long = "text", value_name = "LANG=FILE", value_parser = parse_text)]
    pub(crate) texts: Vec<(String, String)>,

    /// Take a line as a sentence, rather than split lines into sentences.
    #[arg(long)]
    lines: bool,

    /// Take the first N sentences of each language.
    #[arg(long, value_name = "N", conflicts_with = "sample",
        value_parser = clap::value_parser!(u64).range(1..))]
    first: Option<u64>,

    /// Take a random sample of N sentences of each language.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    sample: Option<u64>,

    /// Drop sentences that came before.
    #[arg(long)]
    distinct: bool,

    /// Hold out N of the sentences taken for development.
    #[arg(long, value_name = "N", default_value_t = 0)]
    dev: u64,

    /// Hold out N of the sentences taken for test.
    #[arg(long, value_name = "N", default_value_t = 0)]
    test: u64,

    /// Decides the sample, what is held out, and whatever else is left to chance.
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Skip and count bad lines and empty files, rather than stop at the first.
    #[arg(long)]
    tolerant: bool,

    /// The longest line to read.
    #[arg(long, value_name = "BYTES", default_value_t = LineRules::default().longest)]
    longest_line: usize,
}

pub(super) fn parse_text(argument: &str) -> Result<(String, String), String> {
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
        let given = [
            ("--lines", self.lines),
            ("--first", self.first.is_some()),
            ("--sample", self.sample.is_some()),
            ("--distinct", self.distinct),
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

    /// Decides the sample and what is held out; other chance of a command follows it.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// The languages in the order in which they were first named, each with its files.
    pub(crate) fn sources(&self) -> Result<Vec<TextSource>, Failure> {
        let mut languages: Vec<(&str, Vec<String>)> = Vec::new();
        for (language, file) in &self.texts {
            match languages.iter_mut().find(|(known, _)| known == language) {
                Some((_, files)) => files.push(file.clone()),
                None => languages.push((language, vec![file.clone()])),
            }
        }
        languages.iter().map(|(language, files)| Ok(TextSource::new(language, files)?)).collect()
    }

    /// Puts a source together with how it is prepared and what is wanted of it.
    pub(crate) fn corpus(&self, source: TextSource, preparer: Preparer) -> Corpus {
        Corpus { source, preparer, rules: self.rules(), selection: self.selection() }
    }

    /// A vocabulary's own preparation, but for whether lines are split, which is up to the text.
    pub(crate) fn adapt(&self, preparer: &Preparer) -> Preparer {
        preparer.splitting(preparer.preparation().split && !self.lines)
    }

    /// The text as a vocabulary's languages take it.
    pub(crate) fn corpora_for(&self, vocabulary: &Vocabulary) -> Result<Vec<Corpus>, Failure> {
        let mut corpora = Vec::new();
        for source in self.sources()? {
            let number = vocabulary.language(source.language())?;
            let preparer = self.adapt(vocabulary.preparer(number));
            corpora.push(self.corpus(source, preparer));
        }
        if corpora.is_empty() {
            return Err(Failure::Usage("there is no text; give --text LANG=FILE".to_owned()));
        }
        Ok(corpora)
    }

    fn rules(&self) -> LineRules {
        LineRules { longest: self.longest_line, tolerant: self.tolerant, adjustable: true }
    }

    fn selection(&self) -> Selection {
        let take = match (self.first, self.sample) {
            (Some(count), _) => Subset::First(count),
            (_, Some(count)) => Subset::Sample(count),
            _ => Subset::All,
        };
        let &Self { distinct, dev, test, seed, .. } = self;
        Selection { take, distinct, dev, test, seed }
    }
}

/// How a new vocabulary's text is prepared; later text is prepared likewise.
#[derive(Args)]
pub(crate) struct PreparationFlags {
    /// How words are told apart.
    #[arg(long, value_enum, default_value_t = WordsFlag::Auto)]
    words: WordsFlag,

    /// Make all letters small.
    #[arg(long)]
    lowercase: bool,

    /// Take accents off.
    #[arg(long)]
    strip_accents: bool,

    /// Turn traditional Chinese characters into simplified ones, by a table of two columns
    /// (applies to `zh`).
    #[arg(long, value_name = "TABLE")]
    simplify: Option<PathBuf>,
}

/// How words are told apart.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WordsFlag {
    /// What suits the language: `jieba` for Chinese, `moses` for others.
    Auto,
    /// Where the text has spaces.
    Spaces,
    /// By rules like those of the Moses tokeniser.
    Moses,
    /// By dictionary, for Chinese.
    Jieba,
}

impl PreparationFlags {
    /// One preparer for each source. A vocabulary of word pieces cuts words for itself.
    pub(crate) fn preparers(
        &self,
        flags: &TextFlags,
        languages: &[String],
        cuts_itself: bool,
    ) -> Result<Vec<Preparer>, Failure> {
        let chinese =
            |language: &String| WordTokenizer::for_language(language) == WordTokenizer::Jieba;
        if self.simplify.is_some() && !languages.iter().any(chinese) {
            let message = "--simplify is for Chinese, and no --text is `zh`; leave it out";
            return Err(Failure::Usage(message.into()));
        }
        let table =
            self.simplify.as_deref().map(SimplificationTable::read).transpose()?.map(Arc::new);
        let prepare = |language: &String| {
            let words = match self.words {
                WordsFlag::Auto if cuts_itself => WordTokenizer::Whitespace,
                WordsFlag::Auto => WordTokenizer::for_language(language),
                WordsFlag::Spaces => WordTokenizer::Whitespace,
                WordsFlag::Moses => WordTokenizer::Moses,
                WordsFlag::Jieba => WordTokenizer::Jieba,
            };
            let preparation = Preparation {
                split: !flags.lines,
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

/// Draws progress through a corpus, a step for each mebibyte read from disk.
pub(crate) fn watch(label: String) -> impl FnMut(text::ReadProgress) {
    let mut shown: Option<Progress> = None;
    let mut steps = 0;
    move |at: text::ReadProgress| {
        let bar = shown.get_or_insert_with(|| Progress::new(&label, at.total >> 20));
        while steps < at.bytes >> 20 {
            steps += 1;
            bar.step("MiB");
        }
    }
}

/// What was left out, in words; nothing if nothing was.
pub(crate) fn describe_skipped(skipped: text::SkipCounts) -> String {
    if skipped.total() == 0 {
        return String::new();
    }
    let text::SkipCounts { invalid, too_long, empty_files } = skipped;
    format!(
        ", skipped {invalid} lines that are not UTF-8, {too_long} too long, {empty_files} empty files"
    )
}
