//! The tasks, a line for each: everything that differs between them is behind [`TaskDefinition`] and
//! [`TaskScore`], so that fine-tuning, the command line, studies and the report name no task.
//!
//! To add one: a row in `terms::Task`, a folder here with a definition and a score, and a line in the
//! list below.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tensor::Params;
use terms::Task;

use crate::error::{Error, Result};
use crate::finetune::FinetuneRecipe;
use crate::heads::{Classifier, Head, ParserSizes};
use crate::labelled::{LabelSet, LabelledFile};
use crate::labelled_text::TextColumns;
use crate::ner::Repair;
use crate::parse::RelationLabels;
use crate::{classify, ner, nli, parse, pos};

/// How tags and relations are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScoringRules {
    /// NER: what becomes of tag sequences that are no valid spans.
    #[serde(default)]
    pub repair: Repair,
    /// Parsing: which part of a relation's name counts.
    #[serde(default)]
    pub relations: RelationLabels,
}

impl ScoringRules {
    /// Refuses a rule that does not apply to the task.
    pub fn check(&self, task: Task) -> Result<()> {
        let defaults = Self::default();
        let rules = [
            ("repair", self.repair != defaults.repair, Task::Ner),
            ("relations", self.relations != defaults.relations, Task::Parse),
        ];
        match rules.into_iter().find(|(_, set, applies)| *set && task != *applies) {
            None => Ok(()),
            Some((key, _, applies)) => {
                Err(Error::key(key, format!("applies to task {applies}, not {task}; leave it out")))
            }
        }
    }
}

/// What a head is made for.
pub struct HeadShape<'a> {
    /// Decides its first weights.
    pub seed: u64,
    /// Columns of the vectors that it reads.
    pub dim: usize,
    /// What it predicts.
    pub labels: &'a LabelSet,
    /// Dropout within it.
    pub dropout: f32,
    /// How wide a parser is; by the vectors' width where there is none.
    pub parser: Option<ParserSizes>,
}

/// A task: how its files are read, what predicts, and how it is fine-tuned.
pub trait TaskDefinition: Sync {
    /// Reads a labelled file in a language.
    fn read(
        &self,
        path: &Path,
        language: &str,
        rules: ScoringRules,
    ) -> Result<Box<dyn LabelledFile>>;

    /// Scores a file of predictions against a gold file over the same items.
    fn compare(&self, gold: &Path, predicted: &Path, rules: ScoringRules) -> Result<ScoreResult>;

    /// The grid of settings of the literature.
    fn paper_recipe(&self) -> FinetuneRecipe;

    /// One setting that suits encoders like scale `tiny`: a minute or two on two cores.
    fn quick_recipe(&self) -> FinetuneRecipe;

    /// Adds the weights of its head: a linear classifier, unless it says otherwise.
    fn head(&self, params: &mut Params, shape: &HeadShape<'_>) -> Box<dyn Head> {
        Box::new(Classifier::new(params, shape))
    }

    /// The score of uniform guessing among the labels.
    fn chance(&self, labels: &LabelSet) -> f64;

    /// Whether a prediction is a label and nothing else, so that there is a majority-class baseline.
    fn is_labelling(&self) -> bool {
        true
    }
}

/// The scores of a task; `Display` prints them in full.
pub trait TaskScore: fmt::Display {
    /// The number that counts, from 0 to 1.
    fn value(&self) -> f64;

    /// What exactly was computed, in the manner of sacreBLEU.
    fn signature(&self) -> &str;

    /// What stands beside the number that counts in a table of several files.
    fn details(&self) -> Vec<(&'static str, String)>;
}

/// Makes the registry: for each task its type of score and its definition.
macro_rules! registry {
    ($($task:ident: $score:ty, $definition:expr;)*) => {
        /// The scores of a file of predictions: what `score` prints, and `transfer` for each test set.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "task", rename_all = "lowercase")]
        pub enum ScoreResult {
            $(
                #[doc = concat!("Of [`Task::", stringify!($task), "`].")]
                $task($score),
            )*
        }

        impl ScoreResult {
            fn task_score(&self) -> &dyn TaskScore {
                match self {
                    $(ScoreResult::$task(score) => score,)*
                }
            }
        }

        $(
            impl From<$score> for ScoreResult {
                fn from(score: $score) -> Self {
                    ScoreResult::$task(score)
                }
            }
        )*

        /// The definition of a task.
        pub fn definition(task: Task) -> &'static dyn TaskDefinition {
            match task {
                $(Task::$task => &$definition,)*
            }
        }
    };
}

registry! {
    Nli: nli::NliScore, TextColumns::Pair;
    Ner: ner::NerScore, ner::NerTask;
    Parse: parse::ParseScore, parse::ParseTask;
    Pos: pos::PosScore, pos::PosTask;
    Classify: classify::ClassifyScore, TextColumns::Sentence;
}

impl ScoreResult {
    /// The number that counts, from 0 to 1.
    pub fn value(&self) -> f64 {
        self.task_score().value()
    }

    /// What exactly was computed.
    pub fn signature(&self) -> &str {
        self.task_score().signature()
    }

    /// What stands beside the number that counts in a table of several files.
    pub fn details(&self) -> Vec<(&'static str, String)> {
        self.task_score().details()
    }
}

impl fmt::Display for ScoreResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.task_score(), self.signature())
    }
}

/// Scores a file of predictions against a gold file over the same items.
pub fn score(
    task: Task,
    gold: &Path,
    predicted: &Path,
    rules: ScoringRules,
) -> Result<ScoreResult> {
    rules.check(task)?;
    definition(task).compare(gold, predicted, rules)
}

/// A signature from what was computed and the version.
pub(crate) fn signature(computed: &str) -> String {
    format!("{computed}|v:{}", env!("CARGO_PKG_VERSION"))
}
