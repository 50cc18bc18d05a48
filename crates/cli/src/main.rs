//! The binary `isogloss`: parse what was typed, run one command, print one result.
//!
//! Each command lives in its own file under `commands/` and returns an [`outcome::Outcome`]; this file only
//! chooses among them and turns the outcome into output and an exit code (0 done, 1 failed
//! or stopped, 2 used wrongly).

mod commands;
mod failure;
mod outcome;
mod overrides;
mod progress;
mod stop;

use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

use clap::Parser;
use tensor::DeviceFault;

use crate::commands::Command;
use crate::failure::Failure;

/// A laboratory for cross-lingual structure in masked language models.
#[derive(Parser)]
#[command(name = "isogloss", version, propagate_version = true, arg_required_else_help = true)]
struct Arguments {
    /// Print one JSON object on standard output; everything else goes to standard error.
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse_from(overrides::rewrite(std::env::args_os()));
    // A GPU that fails in the middle of an operation unwinds to here with what there is to say.
    let run = panic::catch_unwind(AssertUnwindSafe(|| arguments.command.run()));
    let result = run.unwrap_or_else(|payload| match payload.downcast::<DeviceFault>() {
        Ok(fault) => Err(Failure::Failed(fault)),
        Err(payload) => panic::resume_unwind(payload),
    });
    match result {
        Ok(outcome) => outcome.print(arguments.json),
        Err(failure) => failure.print(),
    }
}
