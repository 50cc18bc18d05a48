//! How this program was started: what was typed, and the file that starts it again.
//!
//! A binary could ask the system. Within Python the process is the interpreter, and the command a script.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

static INVOCATION: OnceLock<(PathBuf, Vec<OsString>)> = OnceLock::new();

/// Keeps both; those of the first call stay.
pub fn keep(program: PathBuf, typed: Vec<OsString>) {
    let _ = INVOCATION.set((program, typed));
}

pub fn program() -> &'static Path {
    INVOCATION.get().map_or(Path::new("isogloss"), |(program, _)| program)
}

/// What was typed, the program's name first.
pub fn typed() -> &'static [OsString] {
    INVOCATION.get().map_or(&[], |(_, typed)| typed)
}
