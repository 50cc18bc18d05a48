//! The commands that steps run, each with its revision.
//!
//! A step's key holds the revision of its command and not the build of the program: a laboratory survives a
//! rebuild, and results that newer code would not reproduce are not taken for its own. **Raise a command's revision
//! by one whenever the same input gives other results**, be it by a changed algorithm, default or format.
//! `crates/cli/tests/revisions.rs` compares each command with fixed results and fails when that was forgotten.

/// A command that steps run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepCommand {
    /// How it is called, such as `align words`.
    pub verb: &'static str,
    /// Raised when its results change; part of every step's key.
    pub revision: u32,
    /// Whether it takes `--device`.
    pub device: bool,
    /// Whether it takes `--threads`, which changes no result.
    pub threads: bool,
}

/// Every command that steps run, in alphabetical order.
#[rustfmt::skip]
pub const COMMANDS: [StepCommand; 18] = [
    StepCommand { verb: "align contexts", revision: 2, device: true, threads: true },
    StepCommand { verb: "align words", revision: 2, device: true, threads: true },
    StepCommand { verb: "cka", revision: 2, device: true, threads: true },
    StepCommand { verb: "corpus paraphrases", revision: 1, device: false, threads: false },
    StepCommand { verb: "corpus prepare", revision: 1, device: false, threads: true },
    StepCommand { verb: "pretrain", revision: 2, device: true, threads: true },
    StepCommand { verb: "retrieve", revision: 2, device: true, threads: true },
    StepCommand { verb: "shift means", revision: 1, device: true, threads: true },
    StepCommand { verb: "shift sweep", revision: 2, device: true, threads: true },
    StepCommand { verb: "shift translate", revision: 1, device: true, threads: true },
    StepCommand { verb: "transfer", revision: 2, device: true, threads: true },
    StepCommand { verb: "vectors glove", revision: 2, device: false, threads: true },
    StepCommand { verb: "vectors word2vec", revision: 2, device: false, threads: true },
    StepCommand { verb: "vocab stats", revision: 1, device: false, threads: false },
    StepCommand { verb: "vocab train", revision: 1, device: false, threads: true },
    StepCommand { verb: "word-align", revision: 1, device: false, threads: true },
    StepCommand { verb: "words", revision: 1, device: true, threads: true },
    StepCommand { verb: "world generate", revision: 2, device: false, threads: false },
];

impl StepCommand {
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
