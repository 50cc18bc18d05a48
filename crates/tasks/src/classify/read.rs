//! Sentences with labels: `sentence⇥label`.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::lines::{NumberedLines, check_labels, is_header};

/// A sentence and its label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelledSentence {
    /// The sentence.
    pub text: String,
    /// Its label.
    pub label: String,
    /// The line in the file.
    pub line: usize,
}

/// A file of sentences with labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassifyFile {
    /// Where it lies.
    pub path: PathBuf,
    /// Its sentences.
    pub sentences: Vec<LabelledSentence>,
}

impl ClassifyFile {
    /// Reads a file of two columns. A first line whose second column names it (`label`, `class`, …) is a
    /// header, unless it is the only line.
    pub fn read(path: &Path) -> Result<Self> {
        let lines = NumberedLines::read(path)?;
        let parse = |(number, line)| sentence(&lines, number, line);
        let mut sentences = lines.full().map(parse).collect::<Result<Vec<_>>>()?;
        if sentences.len() > 1 && is_header(&sentences[0].label) {
            sentences.remove(0);
        }
        let labels = sentences.iter().map(|sentence| sentence.label.as_str());
        check_labels(path, 2, labels, "write the sentence and its label, in this order")?;
        Ok(Self { path: path.to_owned(), sentences })
    }

    /// The sentences with other labels.
    pub fn render<'a>(&self, labels: impl IntoIterator<Item = &'a str>) -> String {
        let line =
            |(sentence, label): (&LabelledSentence, &str)| format!("{}\t{label}\n", sentence.text);
        self.sentences.iter().zip(labels).map(line).collect()
    }

    /// Whether another file holds the same sentences; if not, where it does not.
    pub fn check_same(&self, predicted: &Self) -> Result<()> {
        let path = &predicted.path;
        let mut both = self.sentences.iter().zip(&predicted.sentences);
        if let Some((_, sentence)) = both.find(|(a, b)| a.text != b.text) {
            let reason = "another sentence than in the gold file";
            return Err(Error::line(path, sentence.line, reason, "predict the same sentences"));
        }
        if self.sentences.len() != predicted.sentences.len() {
            let (predicted, gold) = (predicted.sentences.len(), self.sentences.len());
            let reason = format!("{predicted} sentences, but the gold file has {gold}");
            return Err(Error::file(path, reason, "predict every sentence of the gold file"));
        }
        Ok(())
    }
}

fn sentence(lines: &NumberedLines, number: usize, line: &str) -> Result<LabelledSentence> {
    let columns: Vec<&str> = line.split('\t').collect();
    let [text, label] = columns[..] else {
        let reason = format!("{} columns, not a sentence and a label", columns.len());
        return Err(lines.wrong(number, reason, "separate the two columns by one tab"));
    };
    for (name, column) in [("sentence", text), ("label", label)] {
        if column.trim().is_empty() {
            let reason = format!("a line without {name}");
            return Err(lines.wrong(number, reason, "fill in both columns"));
        }
    }
    Ok(LabelledSentence { text: text.to_owned(), label: label.trim().to_owned(), line: number })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn read(text: &str) -> Result<ClassifyFile> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("topics.tsv");
        fs::write(&path, text).unwrap();
        ClassifyFile::read(&path)
    }

    #[test]
    fn sentences_are_read_and_written() {
        let text = "The match ended in a draw.\tsports\nShares fell.\teconomy\n";
        let file = read(text).unwrap();
        assert_eq!(file.render(file.sentences.iter().map(|one| one.label.as_str())), text);
        let with_header = read(&format!("text\tLabel\n\n{text}")).unwrap();
        assert_eq!((with_header.sentences.len(), with_header.sentences[0].line), (2, 3));
        let error = file.check_same(&read(&text.replace("Shares", "Bonds")).unwrap());
        let error = error.unwrap_err().to_string();
        assert!(error.contains("topics.tsv:2: another sentence"), "{error}");
        let short = read("The match ended in a draw.\tsports\n").unwrap();
        let error = file.check_same(&short).unwrap_err().to_string();
        assert!(error.contains("1 sentences, but the gold file has 2"), "{error}");
    }

    #[test]
    fn a_single_line_is_no_header() {
        assert_eq!(read("text\tlabel\n").unwrap().sentences.len(), 1);
    }

    #[test]
    fn bad_lines_are_named() {
        let refused = |text: &str| read(text).unwrap_err().to_string();
        assert!(refused("a b\tx\n\ta\n").contains("topics.tsv:2: a line without sentence"));
        assert!(refused("a b\t \n").contains("topics.tsv:1: a line without label"));
        assert!(refused("a\tb\tc\n").contains("topics.tsv:1: 3 columns"));
    }
}
