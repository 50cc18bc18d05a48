//! The commands that steps run, each with its revision.
//!
//! A step's key holds the revision of its command and not the build of the program: a laboratory survives a
//! rebuild, and results that newer code would not reproduce are not taken for its own. **Raise a command's revision
//! by one whenever the same input gives other results**, be it by a changed algorithm, default or format.
//! `crates/cli/tests/revisions.rs` compares each command with fixed results and fails when that was forgotten.

use commands::align::{self, Contexts, Many};
use commands::cka::Cka;
use commands::corpus::{Paraphrases, Prepare};
use commands::corpus_alter::Alter;
use commands::corpus_exclude::Exclude;
use commands::corpus_filter::Filter;
use commands::language_id::LanguageId;
use commands::language_neurons::LanguageNeurons;
use commands::mine::Mine;
use commands::pretrain::Pretrain;
use commands::request::Request;
use commands::retrieve::Retrieve;
use commands::shift::{MeansOf, SweepOver, Translate};
use commands::similarity::Similarity;
use commands::transfer::Transfer;
use commands::vectors::{Glove, Word2vec};
use commands::vocab;
use commands::word_align::WordAlignFlags;
use commands::words::Words;
use commands::world::Generate;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "SavedCommand")]
pub struct StepCommand {
    pub verb: &'static str,
    /// Raised when its results change; part of every step's key.
    pub revision: u32,
    pub device: bool,
    pub threads: bool,
}

/// Every command that steps run, in alphabetical order.
pub const COMMANDS: [StepCommand; 26] = [
    StepCommand::of::<Contexts>(),
    StepCommand::of::<Many>(),
    StepCommand::of::<align::Words>(),
    StepCommand::of::<Cka>(),
    StepCommand::of::<Alter>(),
    StepCommand::of::<Exclude>(),
    StepCommand::of::<Filter>(),
    StepCommand::of::<Paraphrases>(),
    StepCommand::of::<Prepare>(),
    StepCommand::of::<LanguageId>(),
    StepCommand::of::<LanguageNeurons>(),
    StepCommand::of::<Mine>(),
    StepCommand::of::<Pretrain>(),
    StepCommand::of::<Retrieve>(),
    StepCommand::of::<MeansOf>(),
    StepCommand::of::<SweepOver>(),
    StepCommand::of::<Translate>(),
    StepCommand::of::<Similarity>(),
    StepCommand::of::<Transfer>(),
    StepCommand::of::<Glove>(),
    StepCommand::of::<Word2vec>(),
    StepCommand::of::<vocab::Stats>(),
    StepCommand::of::<vocab::Train>(),
    StepCommand::of::<WordAlignFlags>(),
    StepCommand::of::<Words>(),
    StepCommand::of::<Generate>(),
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
    /// The command of a request.
    pub const fn of<R: Request>() -> Self {
        Self { verb: R::NAME, revision: R::REVISION, device: R::ON_DEVICE, threads: R::THREADED }
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
