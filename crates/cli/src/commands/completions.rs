//! `isogloss completions`: a script that completes commands, flags and listed values in a shell.

use clap::Args;
use clap_complete::Shell;
use serde_json::json;

use crate::failure::Failure;
use crate::outcome::Outcome;

/// Completions for a shell.
#[derive(Args)]
#[command(
    after_help = "Example:\n  isogloss completions bash > ~/.local/share/bash-completion/completions/isogloss"
)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut crate::definition(), "isogloss", &mut script);
        let script = String::from_utf8_lossy(&script).into_owned();
        let json = json!({ "shell": self.shell.to_string(), "script": script });
        Ok(Outcome::new(script, &json))
    }
}
