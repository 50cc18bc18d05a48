//! Named entities, a word a line: `word⇥tag`, WikiAnn's `lang:word⇥tag`, and the columns of
//! CoNLL-2003. Which of them a file is in can be told by looking.

use std::path::{Path, PathBuf};

use super::spans::{Repair, Tag, spans, tags};
use crate::error::{Error, Result};
use crate::lines::Lines;

/// What CoNLL-2003 puts between documents.
const DOCUMENT: &str = "-DOCSTART-";

/// How a file writes its words and tags.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Layout {
    /// A word, a tab, a tag; every word after this prefix.
    Tabs(String),
    /// Columns with spaces between, the word first and the tag last.
    Columns,
}

/// A sentence of tagged words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// The words.
    pub words: Vec<String>,
    /// Their tags.
    pub tags: Vec<Tag>,
    /// The line of each word.
    pub lines: Vec<usize>,
}

/// The sentences of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tagged {
    /// The file.
    pub path: PathBuf,
    /// Its sentences.
    pub sentences: Vec<Sentence>,
    layout: Layout,
}

impl Tagged {
    /// Reads a file in any of the layouts.
    pub fn read(path: &Path) -> Result<Self> {
        let lines = Lines::read(path)?;
        let layout = Layout::of(&lines);
        let mut sentences = Vec::new();
        for block in lines.blocks() {
            let sentence = layout.sentence(&lines, &block)?;
            if !sentence.words.is_empty() {
                sentences.push(sentence);
            }
        }
        if layout == Layout::Columns && sentences.iter().all(|sentence| begins_late(&sentence.tags))
        {
            for sentence in &mut sentences {
                let found = spans(&sentence.tags, Repair::Conventional);
                sentence.tags = tags(&found, sentence.words.len());
            }
        }
        if sentences.is_empty() {
            return Err(Error::file(path, "holds no word", "give a word, a tab and a tag a line"));
        }
        Ok(Self { path: path.to_owned(), sentences, layout })
    }

    /// The words with other tags, in the layout of the file.
    pub fn render<'a>(&self, tags: impl IntoIterator<Item = &'a [Tag]>) -> String {
        let mut text = String::new();
        for (sentence, tags) in self.sentences.iter().zip(tags) {
            for (word, tag) in sentence.words.iter().zip(tags) {
                match &self.layout {
                    Layout::Tabs(prefix) => text.push_str(&format!("{prefix}{word}\t{tag}\n")),
                    Layout::Columns => text.push_str(&format!("{word} {tag}\n")),
                }
            }
            text.push('\n');
        }
        text
    }

    /// Whether another file holds the same words; if not, where it does not.
    pub fn check_same(&self, predicted: &Tagged) -> Result<()> {
        let path = &predicted.path;
        if self.sentences.len() != predicted.sentences.len() {
            let (found, wanted) = (predicted.sentences.len(), self.sentences.len());
            let reason = format!("{found} sentences, but the gold file has {wanted}");
            return Err(Error::file(path, reason, "predict every sentence of the gold file"));
        }
        for (gold, found) in self.sentences.iter().zip(&predicted.sentences) {
            let mut words = gold.words.iter().zip(&found.words).zip(&found.lines);
            if let Some(((gold, found), &line)) = words.find(|((a, b), _)| a != b) {
                let reason = format!("`{found}` where the gold file has `{gold}`");
                return Err(Error::line(path, line, reason, "predict the same words"));
            }
            if gold.words.len() != found.words.len() {
                let (here, there) = (found.words.len(), gold.words.len());
                let reason = format!("a sentence of {here} words with {there} in the gold file");
                return Err(Error::line(path, found.lines[0], reason, "predict the same words"));
            }
        }
        Ok(())
    }
}

/// Whether tags are as CoNLL-2003 has them: an entity begins with B only where it follows another of
/// its type. Nothing is wrong with these, and so nothing is left for a rule of repair.
fn begins_late(tags: &[Tag]) -> bool {
    tags.iter().enumerate().all(|(at, tag)| match tag {
        Tag::Begin(kind) => {
            let before = at.checked_sub(1).map(|before| &tags[before]);
            matches!(before, Some(Tag::Begin(other) | Tag::Inside(other)) if other == kind)
        }
        _ => true,
    })
}

impl Layout {
    /// A file without a tab has columns. If every word has the same short prefix up to a colon, that
    /// is the language's.
    fn of(lines: &Lines) -> Self {
        let full = || lines.numbered().map(|(_, line)| line).filter(|line| !line.trim().is_empty());
        if !full().any(|line| line.contains('\t')) {
            return Layout::Columns;
        }
        let first = full().next().unwrap_or_default();
        let prefix = first.split_once(':').map_or("", |(name, _)| name);
        let plain = |c: char| c.is_ascii_lowercase() || c == '-';
        let prefix = match prefix {
            name if (2..=12).contains(&name.len()) && name.chars().all(plain) => format!("{name}:"),
            _ => String::new(),
        };
        match full().all(|line| line.starts_with(&prefix)) {
            true => Layout::Tabs(prefix),
            false => Layout::Tabs(String::new()),
        }
    }

    fn sentence(&self, lines: &Lines, block: &[(usize, &str)]) -> Result<Sentence> {
        let mut sentence = Sentence { words: vec![], tags: vec![], lines: vec![] };
        for &(number, line) in block {
            if *self == Layout::Columns && line.starts_with(DOCUMENT) {
                continue;
            }
            let (word, tag) = self.word(lines, number, line)?;
            let tag = tag.parse().map_err(|reason: String| {
                lines.wrong(number, reason, "write BIO tags, such as B-PER")
            })?;
            sentence.words.push(word.to_owned());
            sentence.tags.push(tag);
            sentence.lines.push(number);
        }
        Ok(sentence)
    }

    fn word<'a>(&self, lines: &Lines, number: usize, line: &'a str) -> Result<(&'a str, &'a str)> {
        match self {
            Layout::Tabs(prefix) => {
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
            Layout::Columns => {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn read(text: &str) -> Result<Tagged> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("words.tsv");
        fs::write(&path, text).unwrap();
        Tagged::read(&path)
    }

    fn again(tagged: &Tagged) -> String {
        tagged.render(tagged.sentences.iter().map(|sentence| sentence.tags.as_slice()))
    }

    #[test]
    fn the_layouts_are_told_apart() {
        let plain = "Ada\tB-PER\nen:x\tO\n\nHi\tO\n\n";
        let prefixed = "en:Ada\tB-PER\nen:::\tO\n\nen:Hi\tO\n\n";
        for text in [plain, prefixed] {
            let tagged = read(text).unwrap();
            assert_eq!(tagged.sentences.len(), 2);
            assert_eq!(tagged.sentences[0].words[0], "Ada");
            assert_eq!(again(&tagged), text);
        }
        assert_eq!(read(prefixed).unwrap().sentences[0].words[1], "::");
        assert_eq!(read(prefixed).unwrap().sentences[1].lines, [4]);
    }

    #[test]
    fn columns_of_conll_become_bio() {
        let text = "-DOCSTART- -X- -X- O\n\nEU NNP B-NP I-ORG\nAda NNP I-NP I-PER\nBob NNP I-NP \
                    B-PER\nsaid VBD O O\n\n";
        let tagged = read(text).unwrap();
        let tags: Vec<String> = tagged.sentences[0].tags.iter().map(Tag::to_string).collect();
        assert_eq!(tags, ["B-ORG", "B-PER", "B-PER", "O"]);
        assert_eq!(again(&tagged), "EU B-ORG\nAda B-PER\nBob B-PER\nsaid O\n\n");
    }

    #[test]
    fn columns_in_bio_are_left_to_the_rule_of_repair() {
        let text = "EU B-ORG\nAda I-PER\nsaid O\n\n";
        assert_eq!(again(&read(text).unwrap()), text);
    }

    #[test]
    fn bad_lines_are_named() {
        let says = |text: &str, reason: &str| {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        };
        says("a\tO\nb\tX-PER\n", "words.tsv:2: `X-PER` is no tag");
        says("a\tO\nb\n", "words.tsv:2: 1 columns");
        says("a\tO\tO\n", "words.tsv:1: 3 columns");
        says("a\tO\n\tO\n", "words.tsv:2: the word is empty");
        says("en:a\tO\nen:\tO\n", "words.tsv:2: the word is empty");
        says("\n", "holds nothing");
    }

    #[test]
    fn files_are_compared_word_by_word() {
        let gold = read("a\tO\nb\tO\n\nc\tO\n").unwrap();
        let refused = |text| gold.check_same(&read(text).unwrap()).unwrap_err().to_string();
        assert!(refused("a\tO\nx\tO\n\nc\tO\n").contains(":2: `x` where the gold file has `b`"));
        assert!(refused("a\tO\nb\tO\n").contains("1 sentences, but the gold file has 2"));
        assert!(refused("a\tO\n\nc\tO\n").contains("a sentence of 1 words"));
    }
}
