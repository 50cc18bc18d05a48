//! The commands that steps run, each with its revision.
//!
//! A step's key holds the revision of its command and not the build of the program: a laboratory survives a
//! rebuild, and results that newer code would not reproduce are not taken for its own. **Raise a command's revision
//! by one whenever the same input gives other results**, be it by a changed algorithm, default or format.
//! `crates/cli/tests/revisions.rs` compares each command with fixed results and fails when that was forgotten.

use commands::align::Words;
use commands::cka::Cka;
use commands::language_id::LanguageId;
use commands::language_neurons::LanguageNeurons;
use commands::mine::Mine;
use commands::request::Request;
use commands::retrieve::Retrieve;
use commands::similarity::Similarity;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "SavedCommand")]
pub struct StepCommand {
    /// How it is called, such as `align words`.
    pub verb: &'static str,
    /// Raised when its results change; part of every step's key.
    pub revision: u32,
    pub device: bool,
    /// Whether it takes `--threads`, which changes no result.
    pub threads: bool,
}

/// Every command that steps run, in alphabetical order.
#[rustfmt::skip]
pub const COMMANDS: [StepCommand; 26] = [
    StepCommand { verb: "align contexts", revision: 2, device: true, threads: true },
    StepCommand { verb: "align many", revision: 2, device: true, threads: true },
    StepCommand::on_device::<Words>(),
    StepCommand::on_device::<Cka>(),
    StepCommand { verb: "corpus alter", revision: 1, device: false, threads: true },
    StepCommand { verb: "corpus exclude", revision: 1, device: false, threads: false },
    StepCommand { verb: "corpus filter", revision: 1, device: false, threads: false },
    StepCommand { verb: "corpus paraphrases", revision: 1, device: false, threads: false },
    StepCommand { verb: "corpus prepare", revision: 1, device: false, threads: true },
    StepCommand::on_device::<LanguageId>(),
    StepCommand::on_device::<LanguageNeurons>(),
    StepCommand::on_device::<Mine>(),
    StepCommand { verb: "pretrain", revision: 2, device: true, threads: true },
    StepCommand::on_device::<Retrieve>(),
    StepCommand { verb: "shift means", revision: 1, device: true, threads: true },
    StepCommand { verb: "shift sweep", revision: 3, device: true, threads: true },
    StepCommand { verb: "shift translate", revision: 1, device: true, threads: true },
    StepCommand::on_device::<Similarity>(),
    StepCommand { verb: "transfer", revision: 4, device: true, threads: true },
    StepCommand { verb: "vectors glove", revision: 2, device: false, threads: true },
    StepCommand { verb: "vectors word2vec", revision: 2, device: false, threads: true },
    StepCommand { verb: "vocab stats", revision: 1, device: false, threads: false },
    StepCommand { verb: "vocab train", revision: 1, device: false, threads: true },
    StepCommand { verb: "word-align", revision: 1, device: false, threads: true },
    StepCommand { verb: "words", revision: 1, device: true, threads: true },
    StepCommand { verb: "world generate", revision: 2, device: false, threads: false },
];

/// A flag that has another name than it had when steps were first known by it.
#[derive(Clone, Copy, Debug)]
pub struct RenamedFlag {
    pub verb: &'static str,
    pub now: &'static str,
    /// The name that keys go on using.
    pub keyed: &'static str,
}

/// Flags that were renamed, one entry each: steps that were run under the former name keep their keys.
pub const RENAMED: &[RenamedFlag] = &[];

impl StepCommand {
    /// The command of a request, which takes `--device` and `--threads`.
    const fn on_device<R: Request>() -> Self {
        Self { verb: R::NAME, revision: R::REVISION, device: true, threads: true }
    }

    /// The command of a verb.
    ///
    /// # Panics
    ///
    /// For a verb that is not in [`COMMANDS`]: recipes name no other, and a test plans every study.
    pub fn of(verb: &str) -> Self {
        let known = COMMANDS.into_iter().find(|command| command.verb == verb);
        known.unwrap_or_else(|| panic!("`{verb}` has no revision; add it to study/revision.rs"))
    }
}

/// A command in the file of a plan.
#[derive(Serialize, Deserialize)]
struct SavedCommand {
    verb: String,
    revision: u32,
}

impl From<StepCommand> for SavedCommand {
    fn from(command: StepCommand) -> Self {
        Self { verb: command.verb.to_owned(), revision: command.revision }
    }
}

impl<'de> Deserialize<'de> for StepCommand {
    /// Another build may have another revision, and would file other results under the same key.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let SavedCommand { verb, revision } = SavedCommand::deserialize(deserializer)?;
        let known = COMMANDS.into_iter().find(|command| command.verb == verb);
        let command =
            known.ok_or_else(|| D::Error::custom(format!("this build has no command `{verb}`")))?;
        if command.revision != revision {
            return Err(D::Error::custom(format!(
                "`{verb}` has revision {} in this build and {revision} in the plan; run every step with the \
                 build that planned them",
                command.revision
            )));
        }
        Ok(command)
    }
}
