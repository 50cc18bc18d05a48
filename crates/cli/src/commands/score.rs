//! `isogloss score`: any predicted file against any gold file.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use tasks::ner::{NerScore, Repair, Tagged};
use tasks::nli::{NliScore, Pairs};
use tasks::parse::{ParseScore, Relations, Treebank};
use tasks::{Score as TaskScore, Task, ner, nli, parse};

use crate::failure::Failure;
use crate::outcome::Outcome;

const EXAMPLES: &str = "Examples:
  isogloss score --task ner --gold panx-test-fr.tsv \\
    --predicted ner/predictions/fr.panx-test-fr.tsv
  isogloss score --task parse --full-labels --gold fr_gsd-ud-test.conllu \\
    --predicted parsed.conllu";

/// Flags of `score`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Score {
    /// The task.
    #[arg(long)]
    task: TaskName,

    /// What is right: premise, hypothesis, label; word and tag; or CoNLL-U. Plain, gzip or zstd.
    #[arg(long, value_name = "FILE")]
    gold: PathBuf,

    /// What was predicted, over the same words or pairs.
    #[arg(long, value_name = "FILE")]
    predicted: PathBuf,

    #[command(flatten)]
    rules: Rules,
}

/// A task by name.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum TaskName {
    /// Natural language inference: accuracy.
    Nli,
    /// Named entities: F1 over spans.
    Ner,
    /// Dependencies: labelled attachment.
    Parse,
}

impl From<TaskName> for Task {
    fn from(name: TaskName) -> Self {
        match name {
            TaskName::Nli => Task::Nli,
            TaskName::Ner => Task::Ner,
            TaskName::Parse => Task::Parse,
        }
    }
}

/// How tags and relations are read.
#[derive(Args)]
pub(super) struct Rules {
    /// Entities: what becomes of tags that mean no span.
    #[arg(long, value_name = "RULE", default_value = "paper")]
    repair: RepairName,

    /// Dependencies: compare relations in full, such as nmod:poss, and not only nmod.
    #[arg(long)]
    full_labels: bool,
}

impl Rules {
    /// Refuses a rule that the task does not ask.
    pub(super) fn check(&self, task: Task) -> Result<(), Failure> {
        let refuse = |flag: &str, of: &str| {
            let task = task.name();
            Err(Failure::Usage(format!("{flag} is for --task {of}, not {task}; leave it out")))
        };
        match (self.repair, task) {
            (RepairName::Conventional, Task::Nli | Task::Parse) => {
                refuse("--repair conventional", "ner")
            }
            (_, Task::Nli | Task::Ner) if self.full_labels => refuse("--full-labels", "parse"),
            _ => Ok(()),
        }
    }
}

/// A rule by name.
#[derive(Clone, Copy, ValueEnum)]
enum RepairName {
    /// B-X I-Y I-Z is one entity of type Z.
    Paper,
    /// I-Y after X begins an entity of its own, as in seqeval and conlleval.
    Conventional,
}

impl Rules {
    pub(super) fn repair(&self) -> Repair {
        match self.repair {
            RepairName::Paper => Repair::Paper,
            RepairName::Conventional => Repair::Conventional,
        }
    }

    pub(super) fn relations(&self) -> Relations {
        if self.full_labels { Relations::Full } else { Relations::Universal }
    }
}

impl Score {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        self.rules.check(self.task.into())?;
        let score = self.compare(&self.gold, &self.predicted)?;
        Ok(Outcome::new(in_words(&score), &score))
    }

    fn compare(&self, gold: &Path, predicted: &Path) -> Result<TaskScore, Failure> {
        Ok(match self.task {
            TaskName::Nli => {
                let (gold, predicted) = (Pairs::read(gold)?, Pairs::read(predicted)?);
                gold.check_same(&predicted)?;
                let both = gold.pairs.iter().zip(&predicted.pairs);
                TaskScore::Nli(nli::score(both.map(|(a, b)| (&*a.label, &*b.label))))
            }
            TaskName::Ner => {
                let (gold, predicted) = (Tagged::read(gold)?, Tagged::read(predicted)?);
                gold.check_same(&predicted)?;
                let both = gold.sentences.iter().zip(&predicted.sentences);
                let tags = both.map(|(a, b)| (a.tags.as_slice(), b.tags.as_slice()));
                TaskScore::Ner(ner::score(tags, self.rules.repair()))
            }
            TaskName::Parse => {
                let (gold, predicted) = (Treebank::read(gold)?, Treebank::read(predicted)?);
                TaskScore::Parse(parse::compare(&gold, &predicted, self.rules.relations())?)
            }
        })
    }
}

/// A score in full.
pub(super) fn in_words(score: &TaskScore) -> String {
    let mut text = match score {
        TaskScore::Nli(score) => inference(score),
        TaskScore::Ner(score) => entities(score),
        TaskScore::Parse(score) => trees(score),
    };
    let _ = writeln!(text, "{}", score.signature());
    text
}

fn inference(score: &NliScore) -> String {
    let mut text = format!("accuracy {:.4}  ({} pairs)\n", score.accuracy, score.pairs);
    let mut labels: Vec<&String> =
        score.confusion.iter().flat_map(|(gold, row)| row.keys().chain([gold])).collect();
    labels.sort();
    labels.dedup();
    let width = labels.iter().map(|label| label.len()).max().unwrap_or(0).max(6);
    let cell = |text: &str| format!("  {text:>width$}");
    let header: String = labels.iter().map(|label| cell(label)).collect();
    let _ = writeln!(text, "{:width$}{header}", "right");
    for (gold, row) in &score.confusion {
        let count = |label: &&String| cell(&row.get(*label).copied().unwrap_or(0).to_string());
        let _ = writeln!(text, "{gold:width$}{}", labels.iter().map(count).collect::<String>());
    }
    text
}

fn entities(score: &NerScore) -> String {
    let width = score.types.keys().map(String::len).max().unwrap_or(0).max(5);
    let mut text = format!("{:width$}      F1  precision  recall   gold  predicted\n", "");
    let all = [("all", &score.micro)];
    let types = score.types.iter().map(|(kind, found)| (kind.as_str(), found));
    for (kind, found) in all.into_iter().chain(types) {
        let _ = writeln!(
            text,
            "{kind:width$}  {:.4}     {:.4}  {:.4}  {:>5}  {:>9}",
            found.f1, found.precision, found.recall, found.gold, found.predicted
        );
    }
    text
}

fn trees(score: &ParseScore) -> String {
    let mut text = "                        LAS     UAS   words\n".to_owned();
    for (name, scores) in
        [("all words", score.all), ("without punctuation", score.without_punctuation)]
    {
        let _ =
            writeln!(text, "{name:20} {:.4}  {:.4}  {:>6}", scores.las, scores.uas, scores.words);
    }
    text
}
