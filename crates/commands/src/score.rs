//! `isogloss score`: a file of predictions against a gold file.

use std::path::PathBuf;

use crate::measured::Extractor;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use serde::Serialize;
use tasks::ScoringRules;
use tasks::ner::Repair;
use tasks::parse::RelationLabels;
use terms::Task;

use super::record::RecordFlags;
use super::transfer::of_tasks;
use crate::failure::Failure;
use crate::outcome::Outcome;

const EXAMPLES: &str = "Examples:
  isogloss score --task ner --gold panx-test-fr.tsv \\
    --predicted ner/predictions/fr.panx-test-fr.tsv
  isogloss score --task parse --full-labels --gold fr_gsd-ud-test.conllu \\
    --predicted parsed.conllu
  isogloss score --task pos --gold fr_gsd-ud-test.conllu --predicted tagged.conllu";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Score {
    /// The task.
    #[arg(long, value_parser = task_values())]
    task: Task,

    /// The gold file, plain, gzip or zstd: premise, hypothesis, label (nli); word and tag (ner, pos); CoNLL-U
    /// (parse, pos); sentence and label (classify).
    #[arg(long, value_name = "FILE")]
    gold: PathBuf,

    /// The predictions, over the same words, sentences or pairs.
    #[arg(long, value_name = "FILE")]
    predicted: PathBuf,

    #[command(flatten)]
    rules: RuleFlags,

    #[command(flatten)]
    record: RecordFlags,
}

pub fn task_values() -> impl TypedValueParser<Value = Task> {
    let value = |task: Task| PossibleValue::new(task.name()).help(task.summary());
    let values = PossibleValuesParser::new(Task::all().map(value));
    values.map(|name| name.parse().expect("only tasks are listed"))
}

#[derive(Args, Serialize)]
pub struct RuleFlags {
    /// NER: what becomes of tag sequences that are no valid spans [default: paper].
    #[arg(long, value_name = "RULE", help_heading = "Evaluation")]
    pub repair: Option<RepairName>,

    /// Parsing: compare relations in full, such as nmod:poss, and not only nmod.
    #[arg(long, help_heading = "Evaluation")]
    pub full_labels: bool,
}

#[derive(Clone, Copy, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum RepairName {
    /// B-X I-Y I-Z is one entity of type Z (Conneau et al. 2020).
    Paper,
    /// I-Y after X begins an entity of its own, as in conlleval and seqeval.
    Conventional,
}

impl RuleFlags {
    /// The rules, with defaults for those that are not given.
    pub(super) fn rules(&self, defaults: ScoringRules) -> ScoringRules {
        let repair = match self.repair {
            None => defaults.repair,
            Some(RepairName::Paper) => Repair::Paper,
            Some(RepairName::Conventional) => Repair::Conventional,
        };
        let relations = if self.full_labels { RelationLabels::Full } else { defaults.relations };
        ScoringRules { repair, relations }
    }
}

impl Score {
    pub fn run(self) -> Result<Outcome, Failure> {
        let rules = self.rules.rules(ScoringRules::default());
        let score = tasks::score(self.task, &self.gold, &self.predicted, rules);
        let score = score.map_err(of_tasks)?;
        let outcome = Outcome::new(score.to_string(), &score);
        Ok(self.record.keep(outcome, Extractor::Score(self.task), 1, []))
    }
}
