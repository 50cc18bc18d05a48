//! The binary `isogloss`; [`command_line`] does the work.

use std::process::ExitCode;

/// A command that cannot have the memory that it needs ends with a sentence.
#[global_allocator]
static ALLOCATOR: tensor::OrderlyAllocator = tensor::OrderlyAllocator;

fn main() -> ExitCode {
    let program = std::env::current_exe().unwrap_or_else(|_| "isogloss".into());
    ExitCode::from(command_line::run(program, std::env::args_os().collect()))
}
