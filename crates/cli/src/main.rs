//! The binary `isogloss`; [`command_line`] does the work.

use std::process::ExitCode;

fn main() -> ExitCode {
    let program = std::env::current_exe().unwrap_or_else(|_| "isogloss".into());
    ExitCode::from(command_line::run(program, std::env::args_os().collect()))
}
