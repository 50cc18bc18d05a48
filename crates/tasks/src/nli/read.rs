//! NliFile of sentences, as XNLI has them: `premise⇥hypothesis⇥label`.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::lines::{NumberedLines, check_labels, is_header};

/// A pair of sentences and how they relate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NliPair {
    /// What is taken to be true.
    pub premise: String,
    /// What may follow from it.
    pub hypothesis: String,
    /// Whether it does: the gold label.
    pub label: String,
    /// The line in the file.
    pub line: usize,
}

/// A file of pairs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NliFile {
    /// The file.
    pub path: PathBuf,
    /// Its pairs.
    pub pairs: Vec<NliPair>,
}

impl NliFile {
    /// Reads a file of three columns. A first line whose third column names it is a header.
    pub fn read(path: &Path) -> Result<Self> {
        let lines = NumberedLines::read(path)?;
        let mut pairs = lines
            .full()
            .map(|(number, line)| pair(&lines, number, line))
            .collect::<Result<Vec<_>>>()?;
        if pairs.len() > 1 && is_header(&pairs[0].label) {
            pairs.remove(0);
        }
        let labels = pairs.iter().map(|pair| pair.label.as_str());
        check_labels(path, 3, labels, "write premise, hypothesis and label, in this order")?;
        Ok(Self { path: path.to_owned(), pairs })
    }

    /// The pairs with other labels.
    pub fn render<'a>(&self, labels: impl IntoIterator<Item = &'a str>) -> String {
        let line = |(pair, label): (&NliPair, &str)| {
            format!("{}\t{}\t{label}\n", pair.premise, pair.hypothesis)
        };
        self.pairs.iter().zip(labels).map(line).collect()
    }

    /// Whether another file holds the same pairs; if not, where it does not.
    pub fn check_same(&self, predicted: &NliFile) -> Result<()> {
        let path = &predicted.path;
        let mut both = self.pairs.iter().zip(&predicted.pairs);
        let differ = |(a, b): &(&NliPair, &NliPair)| {
            (&a.premise, &a.hypothesis) != (&b.premise, &b.hypothesis)
        };
        if let Some((_, pair)) = both.find(differ) {
            let reason = "another pair than in the gold file";
            return Err(Error::line(path, pair.line, reason, "predict the same pairs"));
        }
        if self.pairs.len() != predicted.pairs.len() {
            let (predicted, gold) = (predicted.pairs.len(), self.pairs.len());
            let reason = format!("{predicted} pairs, but the gold file has {gold}");
            return Err(Error::file(path, reason, "predict every pair of the gold file"));
        }
        Ok(())
    }
}

fn pair(lines: &NumberedLines, number: usize, line: &str) -> Result<NliPair> {
    let columns: Vec<&str> = line.split('\t').collect();
    let [premise, hypothesis, label] = columns[..] else {
        let reason = format!("{} columns, not premise, hypothesis and label", columns.len());
        return Err(lines.wrong(number, reason, "separate the three columns by tabs"));
    };
    for (name, text) in [("premise", premise), ("hypothesis", hypothesis), ("label", label)] {
        if text.trim().is_empty() {
            let reason = format!("a pair without {name}");
            return Err(lines.wrong(number, reason, "fill in all three columns"));
        }
    }
    let own = str::to_owned;
    Ok(NliPair {
        premise: own(premise),
        hypothesis: own(hypothesis),
        label: own(label.trim()),
        line: number,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn read(text: &str) -> Result<NliFile> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pairs.tsv");
        fs::write(&path, text).unwrap();
        NliFile::read(&path)
    }

    #[test]
    fn pairs_are_read_and_written() {
        let text = "A dog.\tAn animal.\tentailment\nA dog.\tA cat.\tcontradiction\n";
        let pairs = read(text).unwrap();
        assert_eq!(pairs.render(pairs.pairs.iter().map(|pair| pair.label.as_str())), text);
        let other = read(&text.replace("A cat", "One cat")).unwrap();
        let error = pairs.check_same(&other).unwrap_err().to_string();
        assert!(error.contains("pairs.tsv:2: another pair"), "{error}");
    }

    /// A line that long helps nobody: the error of a real file with its label in front had 2.6 million characters.
    #[test]
    fn labels_in_another_column_are_noticed() {
        let line = |n: usize| format!("{}\tpremise {n}\thypothesis {n} \n", ["yes", "no"][n % 2]);
        let text: String = (0..500).map(line).collect();
        let error = read(&text).unwrap_err().to_string();
        assert!(error.contains("500 different labels in 500 lines"), "{error}");
        assert!(error.contains("is the label in column 3?") && error.len() < 300, "{error}");
        let right: String = (0..500).map(|n| format!("a {n}\tb {n}\tkind {}\n", n % 30)).collect();
        assert_eq!(read(&right).unwrap().pairs.len(), 500);
    }

    #[test]
    fn a_header_is_no_pair() {
        let text = "A dog.\tAn animal.\tentailment\n";
        let with_header = read(&format!("premise\thypothesis\tgold_label\n{text}")).unwrap();
        assert_eq!((with_header.pairs.len(), with_header.pairs[0].line), (1, 2));
        assert_eq!(with_header.render(["entailment"]), text);
    }

    #[test]
    fn half_a_pair_is_named() {
        let error = read("a\tb\tneutral\na\t\tneutral\n").unwrap_err().to_string();
        assert!(error.contains("pairs.tsv:2: a pair without hypothesis"), "{error}");
        let error = read("a\tb\n").unwrap_err().to_string();
        assert!(error.contains("pairs.tsv:1: 2 columns"), "{error}");
    }
}
