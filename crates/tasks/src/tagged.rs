//! Tagged words, one on each line and a blank line between sentences: `word⇥tag`, WikiAnn's
//! `lang:word⇥tag`, and the columns of CoNLL-2003. Which of them a file is in can be seen from its lines.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::lines::NumberedLines;

/// What CoNLL-2003 puts between documents.
const DOCUMENT: &str = "-DOCSTART-";

/// How a file writes its words and tags.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ColumnLayout {
    /// A word, a tab, a tag; every word after this prefix.
    Tabs(String),
    /// Columns with spaces between, the word first and the tag last.
    Spaces,
}

/// A sentence of tagged words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaggedSentence<T> {
    /// The words.
    pub words: Vec<String>,
    /// Their tags.
    pub tags: Vec<T>,
    /// The line of each word.
    pub lines: Vec<usize>,
}

impl<T> TaggedSentence<T> {
    pub(crate) fn new() -> Self {
        Self { words: vec![], tags: vec![], lines: vec![] }
    }

    /// Its words, a line each.
    pub(crate) fn text(&self) -> String {
        self.words.join("\n")
    }

    pub(crate) fn words_and_tags(&self) -> (Vec<&str>, &[T]) {
        (self.words.iter().map(String::as_str).collect(), &self.tags)
    }
}

/// A file of tagged words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaggedFile<T> {
    /// Where it lies.
    pub path: PathBuf,
    /// Its sentences.
    pub sentences: Vec<TaggedSentence<T>>,
    layout: ColumnLayout,
}

/// How tags are read: what a tag stands for, or why it is none; and what a tag should look like.
pub(crate) struct TagFormat<T> {
    pub(crate) parse: fn(&str) -> std::result::Result<T, String>,
    pub(crate) remedy: &'static str,
}

impl<T: Display> TaggedFile<T> {
    /// Reads a file in any of the layouts.
    pub(crate) fn read(path: &Path, format: &TagFormat<T>) -> Result<Self> {
        let lines = NumberedLines::read(path)?;
        let layout = ColumnLayout::of(&lines);
        let mut sentences = Vec::new();
        for block in lines.blocks() {
            let sentence = layout.sentence(&lines, &block, format)?;
            if !sentence.words.is_empty() {
                sentences.push(sentence);
            }
        }
        if sentences.is_empty() {
            return Err(Error::file(
                path,
                "holds no word",
                "write a word, a tab and a tag on each line",
            ));
        }
        Ok(Self { path: path.to_owned(), sentences, layout })
    }

    /// Whether columns stand between spaces, as in CoNLL-2003.
    pub(crate) fn is_spaced(&self) -> bool {
        self.layout == ColumnLayout::Spaces
    }

    /// The words with other tags, in the layout of the file.
    pub fn render<'a>(&self, tags: impl IntoIterator<Item = &'a [T]>) -> String
    where
        T: 'a,
    {
        let mut text = String::new();
        for (sentence, tags) in self.sentences.iter().zip(tags) {
            for (word, tag) in sentence.words.iter().zip(tags) {
                match &self.layout {
                    ColumnLayout::Tabs(prefix) => {
                        text.push_str(&format!("{prefix}{word}\t{tag}\n"));
                    }
                    ColumnLayout::Spaces => text.push_str(&format!("{word} {tag}\n")),
                }
            }
            text.push('\n');
        }
        text
    }

    /// Whether another file holds the same words; if not, where it does not.
    pub fn check_same(&self, predicted: &TaggedFile<T>) -> Result<()> {
        let path = &predicted.path;
        if self.sentences.len() != predicted.sentences.len() {
            let (predicted, gold) = (predicted.sentences.len(), self.sentences.len());
            let reason = format!("{predicted} sentences, but the gold file has {gold}");
            return Err(Error::file(path, reason, "predict every sentence of the gold file"));
        }
        for (gold, predicted) in self.sentences.iter().zip(&predicted.sentences) {
            let mut words = gold.words.iter().zip(&predicted.words).zip(&predicted.lines);
            if let Some(((gold, predicted), &line)) = words.find(|((a, b), _)| a != b) {
                let reason = format!("`{predicted}` where the gold file has `{gold}`");
                return Err(Error::line(path, line, reason, "predict the same words"));
            }
            if gold.words.len() != predicted.words.len() {
                let (here, there) = (predicted.words.len(), gold.words.len());
                let reason = format!("a sentence of {here} words with {there} in the gold file");
                return Err(Error::line(
                    path,
                    predicted.lines[0],
                    reason,
                    "predict the same words",
                ));
            }
        }
        Ok(())
    }
}

impl ColumnLayout {
    /// A file without a tab has columns. If every word has the same short prefix up to a colon, that
    /// is the language's.
    fn of(lines: &NumberedLines) -> Self {
        let full = || lines.full().map(|(_, line)| line);
        if !full().any(|line| line.contains('\t')) {
            return ColumnLayout::Spaces;
        }
        let first = full().next().unwrap_or_default();
        let prefix = first.split_once(':').map_or("", |(name, _)| name);
        let plain = |c: char| c.is_ascii_lowercase() || c == '-';
        let prefix = match prefix {
            name if (2..=12).contains(&name.len()) && name.chars().all(plain) => format!("{name}:"),
            _ => String::new(),
        };
        match full().all(|line| line.starts_with(&prefix)) {
            true => ColumnLayout::Tabs(prefix),
            false => ColumnLayout::Tabs(String::new()),
        }
    }

    fn sentence<T>(
        &self,
        lines: &NumberedLines,
        block: &[(usize, &str)],
        format: &TagFormat<T>,
    ) -> Result<TaggedSentence<T>> {
        let mut sentence = TaggedSentence::new();
        for &(number, line) in block {
            if *self == ColumnLayout::Spaces && line.starts_with(DOCUMENT) {
                continue;
            }
            let (word, tag) = self.word(lines, number, line)?;
            let tag =
                (format.parse)(tag).map_err(|reason| lines.wrong(number, reason, format.remedy))?;
            sentence.words.push(word.to_owned());
            sentence.tags.push(tag);
            sentence.lines.push(number);
        }
        Ok(sentence)
    }

    fn word<'a>(
        &self,
        lines: &NumberedLines,
        number: usize,
        line: &'a str,
    ) -> Result<(&'a str, &'a str)> {
        match self {
            ColumnLayout::Tabs(prefix) => {
                let columns: Vec<&str> = line[prefix.len()..].split('\t').collect();
                match columns[..] {
                    ["", _] => Err(lines.wrong(
                        number,
                        "the word is empty",
                        "write a word, one tab and its tag",
                    )),
                    [word, tag] => Ok((word, tag.trim())),
                    _ => {
                        let reason = format!("{} columns, not a word and a tag", columns.len());
                        Err(lines.wrong(number, reason, "write a word, one tab and its tag"))
                    }
                }
            }
            ColumnLayout::Spaces => {
                let mut columns = line.split_whitespace();
                match (columns.next(), columns.last()) {
                    (Some(word), Some(tag)) => Ok((word, tag)),
                    _ => {
                        let reason = format!("`{}` is one column", line.trim());
                        Err(lines.wrong(number, reason, "write a word and its tag"))
                    }
                }
            }
        }
    }
}
