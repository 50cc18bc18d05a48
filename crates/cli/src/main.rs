//! The binary `isogloss`: parse what was typed, run one command, print one result.
//!
//! Each command lives in its own file under `commands/` and returns an [`outcome::Outcome`]; this file only
//! chooses among them and turns the outcome into output and an exit code (0 done, 1 failed,
//! 2 used wrongly, 130 interrupted).

// Lines on standard error go through `say!`, which outlives their reader.
#![deny(clippy::print_stderr)]

#[macro_use]
mod say;

mod commands;
mod failure;
mod outcome;
mod overrides;
mod progress;
mod stop;

use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use tensor::DeviceFault;

use crate::commands::Command;
use crate::failure::Failure;

/// A laboratory for cross-lingual structure in masked language models.
#[derive(Parser)]
#[command(
    name = "isogloss",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = "Start with:\n  isogloss demo\n  isogloss study list\n  isogloss inspect bert-base-multilingual-cased"
)]
struct Arguments {
    /// Print one JSON object on standard output; everything else goes to standard error.
    #[arg(long, global = true, help_heading = "Output")]
    json: bool,

    /// Print nothing on standard error but errors: no progress, no remarks.
    #[arg(short, long, global = true, help_heading = "Output")]
    quiet: bool,

    #[command(subcommand)]
    command: Command,
}

/// The whole command line, for what is generated from it: completions and man pages.
fn definition() -> clap::Command {
    Arguments::command()
}

fn main() -> ExitCode {
    let arguments = Arguments::parse_from(overrides::rewrite(std::env::args_os()));
    if arguments.quiet {
        say::be_quiet();
    }
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
