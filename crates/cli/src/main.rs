//! The binary `isogloss`; [`command_line`] does the work.

use std::process::ExitCode;

/// A command that cannot have the memory that it needs ends with a sentence.
#[global_allocator]
static ALLOCATOR: tensor::OrderlyAllocator = tensor::OrderlyAllocator;

fn main() -> ExitCode {
    // Now, while there is memory: the pool that is made at its first use panics where threads cannot be had.
    if let Err(error) = rayon::ThreadPoolBuilder::new().build_global() {
        eprintln!(
            "error: no threads can be had ({error}); raise the limits on memory and processes (`ulimit -a`)"
        );
        return ExitCode::FAILURE;
    }
    let program = std::env::current_exe().unwrap_or_else(|_| "isogloss".into());
    ExitCode::from(command_line::run(program, std::env::args_os().collect()))
}
