//! Sentences, and pairs of sentences, with a label each: `sentence⇥label`, `premise⇥hypothesis⇥label`.
//!
//! They stand in one input, `[CLS] premise [SEP] hypothesis [SEP]` or what the vocabulary has for these, and a
//! linear classifier reads the first token (Devlin et al. 2019, §4.1), of a decoder the last (Radford et al. 2018). An input that is too long loses tokens
//! at the end of its longest sentence, and is counted.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::features::TokenSource;
use crate::finetune::{FinetuneRecipe, LrSchedule};
use crate::labelled::{
    Annotation, Example, LabelSet, LabelledFile, PreparedInputs, item_labels, select,
};
use crate::lines::{NumberedLines, check_labels, is_header};
use crate::registry::{ScoreResult, ScoringRules, TaskDefinition};
use crate::{classify, nli};

/// What stands on a line before the label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextColumns {
    /// Natural language inference: does a hypothesis follow from a premise?
    Pair,
    /// Single-sentence classification, such as by topic, sentiment or language.
    Sentence,
}

impl TextColumns {
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Pair => &["premise", "hypothesis"],
            Self::Sentence => &["sentence"],
        }
    }

    /// One line of a file, and several.
    fn item(self) -> [&'static str; 2] {
        match self {
            Self::Pair => ["pair", "pairs"],
            Self::Sentence => ["sentence", "sentences"],
        }
    }

    fn described(self) -> &'static str {
        match self {
            Self::Pair => "premise, hypothesis and label",
            Self::Sentence => "a sentence and a label",
        }
    }

    fn score<'a>(self, labels: impl Iterator<Item = (&'a str, &'a str)>) -> ScoreResult {
        match self {
            Self::Pair => nli::score(labels).into(),
            Self::Sentence => classify::score(labels).into(),
        }
    }
}

/// The texts of a line and their label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelledText {
    /// A sentence, or premise and hypothesis.
    pub texts: Vec<String>,
    /// The gold label.
    pub label: String,
    /// The line in the file.
    pub line: usize,
}

/// A file of sentences or pairs with labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelledTexts {
    /// Where it lies.
    pub path: PathBuf,
    /// Its lines.
    pub rows: Vec<LabelledText>,
    columns: TextColumns,
}

impl LabelledTexts {
    /// Reads a file whose last column is the label. A first line whose last column names it (`label`, `class`, …) is
    /// a header, unless it is the only line.
    pub fn read(path: &Path, columns: TextColumns) -> Result<Self> {
        let lines = NumberedLines::read(path)?;
        let row = |(number, line)| row(&lines, columns, number, line);
        let mut rows = lines.full().map(row).collect::<Result<Vec<_>>>()?;
        if rows.len() > 1 && is_header(&rows[0].label) {
            rows.remove(0);
        }
        let (labels, count) = (rows.iter().map(|row| &*row.label), columns.names().len() + 1);
        let remedy = format!("write {}, in this order", columns.described());
        check_labels(path, count, labels, &remedy)?;
        Ok(Self { path: path.to_owned(), rows, columns })
    }

    /// The lines with other labels.
    pub fn render<'a>(&self, labels: impl IntoIterator<Item = &'a str>) -> String {
        let line =
            |(row, label): (&LabelledText, _)| format!("{}\t{label}\n", row.texts.join("\t"));
        self.rows.iter().zip(labels).map(line).collect()
    }

    /// Whether another file holds the same texts; if not, where it does not.
    pub fn check_same(&self, predicted: &Self) -> Result<()> {
        let (path, [item, items]) = (&predicted.path, self.columns.item());
        let mut both = self.rows.iter().zip(&predicted.rows);
        if let Some((_, row)) = both.find(|(a, b)| a.texts != b.texts) {
            let reason = format!("another {item} than in the gold file");
            return Err(Error::line(path, row.line, reason, format!("predict the same {items}")));
        }
        if self.rows.len() != predicted.rows.len() {
            let (predicted, gold) = (predicted.rows.len(), self.rows.len());
            let reason = format!("{predicted} {items}, but the gold file has {gold}");
            let remedy = format!("predict every {item} of the gold file");
            return Err(Error::file(path, reason, remedy));
        }
        Ok(())
    }
}

fn row(
    lines: &NumberedLines,
    columns: TextColumns,
    number: usize,
    line: &str,
) -> Result<LabelledText> {
    let mut cells: Vec<String> = line.split('\t').map(str::to_owned).collect();
    if cells.len() != columns.names().len() + 1 {
        let reason = format!("{} columns, not {}", cells.len(), columns.described());
        return Err(lines.wrong(number, reason, "separate the columns by tabs"));
    }
    for (name, cell) in columns.names().iter().chain(&["label"]).zip(&cells) {
        if cell.trim().is_empty() {
            let reason =
                format!("a {} without {name}", columns.item()[0].replace("sentence", "line"));
            return Err(lines.wrong(number, reason, "fill in all columns"));
        }
    }
    let label = cells.pop().expect("a column").trim().to_owned();
    Ok(LabelledText { texts: cells, label, line: number })
}

impl TaskDefinition for TextColumns {
    fn read(&self, path: &Path, _: &str, _: ScoringRules) -> Result<Box<dyn LabelledFile>> {
        Ok(Box::new(LabelledTexts::read(path, *self)?))
    }

    fn compare(&self, gold: &Path, predicted: &Path, _: ScoringRules) -> Result<ScoreResult> {
        let read = |path| LabelledTexts::read(path, *self);
        let (gold, predicted) = (read(gold)?, read(predicted)?);
        gold.check_same(&predicted)?;
        let both = gold.rows.iter().zip(&predicted.rows);
        Ok(self.score(both.map(|(a, b)| (&*a.label, &*b.label))))
    }

    fn paper_recipe(&self) -> FinetuneRecipe {
        match self {
            // The grid of Conneau et al. 2020.
            Self::Pair => FinetuneRecipe {
                batch: vec![4, 8],
                lr: vec![1.25e-6, 2.5e-6, 5e-6],
                head_lr: vec![5e-6, 2.5e-5, 1.25e-4],
                epochs: 200,
                schedule: LrSchedule::Constant,
                dropout: 0.1,
                restarts: 0,
            },
            // The grid of Devlin et al. 2019 (A.3), at the largest of its numbers of epochs.
            Self::Sentence => FinetuneRecipe { epochs: 4, ..FinetuneRecipe::tagging() },
        }
    }

    fn quick_recipe(&self) -> FinetuneRecipe {
        FinetuneRecipe::quick(if *self == Self::Pair { 10 } else { 5 })
    }

    fn chance(&self, labels: &LabelSet) -> f64 {
        1.0 / labels.len() as f64
    }
}

impl LabelledFile for LabelledTexts {
    fn path(&self) -> &Path {
        &self.path
    }

    fn items(&self) -> usize {
        self.rows.len()
    }

    fn unit(&self) -> &'static str {
        self.columns.item()[1]
    }

    fn select(&mut self, items: &[usize]) {
        select(&mut self.rows, items);
    }

    fn texts(&self) -> Vec<String> {
        self.rows.iter().map(|row| row.texts.join("\t")).collect()
    }

    fn labels(&self) -> Vec<(String, usize)> {
        self.rows.iter().map(|row| (row.label.clone(), row.line)).collect()
    }

    fn prepare(
        &self,
        source: &dyn TokenSource,
        language: usize,
        labels: &LabelSet,
    ) -> PreparedInputs {
        let mut prepared = PreparedInputs::default();
        let form = source.input();
        let room = source.longest() + 1 - form.frame.count() - self.columns.names().len();
        for (item, row) in self.rows.iter().enumerate() {
            let encode = |text: &String| source.encode_text(language, text);
            let mut sentences: Vec<Vec<u32>> = row.texts.iter().map(encode).collect();
            let length = |sentences: &[Vec<u32>]| sentences.iter().map(Vec::len).sum::<usize>();
            prepared.truncated += usize::from(length(&sentences) > room);
            while length(&sentences) > room {
                // Of equals the last.
                sentences.iter_mut().max_by_key(|ids| ids.len()).expect("a sentence").pop();
            }
            let mut tokens = Vec::from_iter(form.frame.0);
            tokens.extend(sentences.join(&form.specials.1));
            tokens.extend(form.frame.1);
            // Of no token there is no state.
            if tokens.is_empty() {
                tokens.push(form.specials.1);
            }
            let positions = vec![form.place(0..tokens.len())];
            let gold = vec![Annotation::of_label(labels.id(&row.label))];
            prepared.examples.push(Example { tokens, positions, gold, item });
        }
        prepared
    }

    fn score(&self, labels: &LabelSet, predictions: &[Vec<Annotation>]) -> ScoreResult {
        let gold = self.rows.iter().map(|row| row.label.as_str());
        self.columns.score(gold.zip(item_labels(labels, predictions)))
    }

    fn render(&self, labels: &LabelSet, predictions: &[Vec<Annotation>]) -> String {
        self.render(item_labels(labels, predictions))
    }

    fn truncation(&self) -> &'static str {
        match self.columns {
            TextColumns::Pair => "too long, the end of the longer sentence cut",
            TextColumns::Sentence => "too long, the end cut",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn read(columns: TextColumns, text: &str) -> Result<LabelledTexts> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("set.tsv");
        fs::write(&path, text).unwrap();
        LabelledTexts::read(&path, columns)
    }

    #[test]
    fn what_is_read_is_written() {
        for (columns, text, from, to, reason) in [
            (
                TextColumns::Pair,
                "A dog.\tAn animal.\tentailment\nA dog.\tA cat.\tcontradiction\n",
                "A cat",
                "One cat",
                "set.tsv:2: another pair",
            ),
            (
                TextColumns::Sentence,
                "The match ended in a draw.\tsports\nShares fell.\teconomy\n",
                "Shares",
                "Bonds",
                "set.tsv:2: another sentence",
            ),
        ] {
            let file = read(columns, text).unwrap();
            assert_eq!(file.render(file.rows.iter().map(|row| row.label.as_str())), text);
            let other = read(columns, &text.replace(from, to)).unwrap();
            let error = file.check_same(&other).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
            let short = read(columns, text.lines().next().unwrap()).unwrap();
            let error = file.check_same(&short).unwrap_err().to_string();
            assert!(error.contains("s, but the gold file has 2"), "{error}");
        }
    }

    /// A line that long helps nobody: the error of a real file with its label in front had 2.6 million characters.
    #[test]
    fn labels_in_another_column_are_noticed() {
        let line = |n: usize| format!("{}\tpremise {n}\thypothesis {n} \n", ["yes", "no"][n % 2]);
        let text: String = (0..500).map(line).collect();
        let error = read(TextColumns::Pair, &text).unwrap_err().to_string();
        assert!(error.contains("500 different labels in 500 lines"), "{error}");
        assert!(error.contains("is the label in column 3?") && error.len() < 300, "{error}");
        let right: String = (0..500).map(|n| format!("a {n}\tb {n}\tkind {}\n", n % 30)).collect();
        assert_eq!(read(TextColumns::Pair, &right).unwrap().rows.len(), 500);
    }

    #[test]
    fn a_header_is_no_item_unless_it_is_alone() {
        let text = "A dog.\tAn animal.\tentailment\n";
        let pairs = format!("premise\thypothesis\tgold_label\n{text}");
        let pairs = read(TextColumns::Pair, &pairs).unwrap();
        assert_eq!((pairs.rows.len(), pairs.rows[0].line), (1, 2));
        assert_eq!(pairs.render(["entailment"]), text);
        let sentences = read(TextColumns::Sentence, "text\tLabel\n\na\tx\nb\ty\n").unwrap();
        assert_eq!((sentences.rows.len(), sentences.rows[0].line), (2, 3));
        assert_eq!(read(TextColumns::Sentence, "text\tlabel\n").unwrap().rows.len(), 1);
    }

    #[test]
    fn bad_lines_are_named() {
        for (columns, text, reason) in [
            (
                TextColumns::Pair,
                "a\tb\tneutral\na\t\tneutral\n",
                "set.tsv:2: a pair without hypothesis",
            ),
            (TextColumns::Pair, "a\tb\n", "set.tsv:1: 2 columns"),
            (TextColumns::Sentence, "a b\tx\n\ta\n", "set.tsv:2: a line without sentence"),
            (TextColumns::Sentence, "a b\t \n", "set.tsv:1: a line without label"),
            (TextColumns::Sentence, "a\tb\tc\n", "set.tsv:1: 3 columns"),
        ] {
            let error = read(columns, text).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
