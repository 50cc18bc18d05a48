//! The tasks on which zero-shot transfer is measured.
//!
//! A task's reader, head and score live in crate `tasks`; what other crates need to know of it (names,
//! measure, chance level, where its files lie) stands in one row of [`TASKS`].

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::language::is_chinese;

/// A task with labelled files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// Natural language inference.
    Nli,
    /// Named entity recognition.
    Ner,
    /// Dependency parsing.
    Parse,
    /// Part-of-speech tagging.
    Pos,
    /// Single-sentence classification.
    Classify,
}

struct Row {
    task: Task,
    /// In configurations and on the command line.
    name: &'static str,
    /// The measure that counts, as records name it.
    measure: &'static str,
    /// The measure as a reader knows it.
    unit: &'static str,
    /// The task as a reader knows it.
    title: &'static str,
    /// In a sentence, for help.
    summary: &'static str,
    /// The score of a system that guesses; 0 where that depends on the labels of the data.
    chance: f64,
    /// The kind of its labelled files in the manifest of an invented world.
    kind: &'static str,
    /// The names of a labelled file, by part (`train`, `dev`, `test`) and language, in a folder of real
    /// data; the first that exists is taken.
    files: fn(&str, &str) -> Vec<String>,
}

#[rustfmt::skip]
const TASKS: [Row; 5] = [
    Row { task: Task::Nli, name: "nli", measure: "accuracy", unit: "accuracy", title: "NLI", summary: "natural language inference: accuracy", chance: 1.0 / 3.0, kind: "nli", files: nli_files },
    Row { task: Task::Ner, name: "ner", measure: "f1", unit: "F1", title: "NER", summary: "named entity recognition: F1 over spans", chance: 0.0, kind: "ner", files: ner_files },
    Row { task: Task::Parse, name: "parse", measure: "las", unit: "LAS", title: "Parsing", summary: "dependency parsing: labelled attachment score", chance: 0.0, kind: "treebank", files: treebanks },
    Row { task: Task::Pos, name: "pos", measure: "accuracy", unit: "accuracy", title: "POS tagging", summary: "part-of-speech tagging: accuracy by word", chance: 1.0 / 17.0, kind: "treebank", files: treebanks },
    Row { task: Task::Classify, name: "classify", measure: "accuracy", unit: "accuracy", title: "Classification", summary: "single-sentence classification: accuracy", chance: 0.0, kind: "classify", files: classify_files },
];

/// MultiNLI or LingNLI to train on, XNLI to evaluate on.
fn nli_files(part: &str, language: &str) -> Vec<String> {
    let own = format!("xnli/{part}-{language}.tsv");
    match part {
        "train" => ["nli/multinli.train.tsv".into(), "nli/lingnli.train.tsv".into(), own].into(),
        _ => vec![own],
    }
}

/// WikiAnn, in the splits of Rahimi et al. 2019 (PAN-X of XTREME) or of the original. Where a language has a
/// development file only, its test file is the same, and its halves are taken.
fn ner_files(part: &str, language: &str) -> Vec<String> {
    let panx = |part: &str| format!("ner/panx-{part}-{language}.tsv");
    match part {
        "test" => vec![panx("test"), format!("ner/wikiann-test-{language}.txt"), panx("dev")],
        _ => vec![panx(part)],
    }
}

/// Universal Dependencies.
fn treebanks(part: &str, language: &str) -> Vec<String> {
    let name = |treebank| format!("ud/{language}_{treebank}-ud-{part}.conllu");
    ["ewt", "gsd", "gsdsimp"].map(name).to_vec()
}

fn classify_files(part: &str, language: &str) -> Vec<String> {
    vec![format!("classify/{part}-{language}.tsv")]
}

impl Task {
    /// Every task.
    pub fn all() -> impl Iterator<Item = Self> {
        TASKS.iter().map(|row| row.task)
    }

    fn row(self) -> &'static Row {
        TASKS.iter().find(|row| row.task == self).expect("every task has a row")
    }

    /// Its name in configurations and on the command line.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The measure that counts, as records name it.
    pub fn measure(self) -> &'static str {
        self.row().measure
    }

    /// The measure as a reader knows it.
    pub fn unit(self) -> &'static str {
        self.row().unit
    }

    /// The task as a reader knows it.
    pub fn title(self) -> &'static str {
        self.row().title
    }

    /// What it is and how it is scored, for help.
    pub fn summary(self) -> &'static str {
        self.row().summary
    }

    /// The score of a system that guesses; 0 where that depends on the labels of the data, which the
    /// result of a transfer then states for each test set.
    pub fn chance(self) -> f64 {
        self.row().chance
    }

    /// The kind of its labelled files in the manifest of an invented world.
    pub fn kind(self) -> &'static str {
        self.row().kind
    }

    /// The name of its labelled file in the data set that Conneau et al. 2020 take in place of that of
    /// [`Task::files`], where they do: NER in English and Chinese is of CoNLL 2003 and of SIGHAN 2006 (MSRA).
    /// Data sets differ in their labels and texts, so that either all files of a transfer are of it or none is.
    pub fn other_file(self, part: &str, language: &str) -> Option<String> {
        match (self, part) {
            (Self::Ner, _) if language == "en" => Some(format!("ner/conll2003-{part}-en.txt")),
            (Self::Ner, "test") if is_chinese(language) => {
                Some(format!("ner/msra-test-{language}.txt"))
            }
            _ => None,
        }
    }

    /// The names that its labelled file of a part (`train`, `dev` or `test`) and language may have in a
    /// folder of real data, the preferred first.
    pub fn files(self, part: &str, language: &str) -> Vec<String> {
        (self.row().files)(part, language)
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Task {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::all().find(|task| task.name() == name);
        known.ok_or_else(|| {
            let names: Vec<_> = TASKS.iter().map(|row| row.name).collect();
            format!("unknown task '{name}'; there are: {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_configurations() {
        for task in Task::all() {
            assert_eq!(task.name().parse(), Ok(task));
            assert_eq!(task.name(), format!("{task:?}").to_lowercase());
            assert!(!task.files("test", "fr").is_empty());
        }
        let other = |part, language| Task::Ner.other_file(part, language);
        assert_eq!(other("train", "en").unwrap(), "ner/conll2003-train-en.txt");
        assert_eq!(other("test", "zh").unwrap(), "ner/msra-test-zh.txt");
        assert_eq!((other("dev", "zh"), other("test", "fr")), (None, None));
        assert_eq!(Task::Ner.files("test", "zh")[0], "ner/panx-test-zh.tsv");
        assert!("tag".parse::<Task>().unwrap_err().ends_with("nli, ner, parse, pos, classify"));
    }
}
