//! The tasks on which zero-shot transfer is measured.
//!
//! A task's reader, head and score live in crate `tasks`; what other crates need to know of it (names,
//! measure, chance level) stands in one row of [`TASKS`].

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

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
}

/// What is known of a task.
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
    /// The score of a system that guesses.
    chance: f64,
}

#[rustfmt::skip]
const TASKS: [Row; 3] = [
    Row { task: Task::Nli, name: "nli", measure: "accuracy", unit: "accuracy", title: "NLI", chance: 1.0 / 3.0 },
    Row { task: Task::Ner, name: "ner", measure: "f1", unit: "F1", title: "NER", chance: 0.0 },
    Row { task: Task::Parse, name: "parse", measure: "las", unit: "LAS", title: "Parsing", chance: 0.0 },
];

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

    /// The score of a system that guesses.
    pub fn chance(self) -> f64 {
        self.row().chance
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
