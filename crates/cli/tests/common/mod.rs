//! The real binary, run in a folder: what every test of the surface begins with.

#![allow(dead_code, reason = "no test needs all of it")]

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The binary with these arguments, in a folder, with nothing to read.
pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isogloss"));
    command.current_dir(folder).args(arguments).stdin(Stdio::null());
    command
}

/// Runs it to its end.
pub(crate) fn isogloss(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().expect("the binary runs")
}

/// The JSON that it prints when all goes well.
pub(crate) fn done(folder: &Path, arguments: &[&str]) -> Value {
    let output = isogloss(folder, &[arguments, &["--json"]].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// It fails with this exit code, prints nothing, and complains of what is expected. Gives all that
/// it said.
pub(crate) fn refused(folder: &Path, arguments: &[&str], code: i32, expected: &str) -> String {
    let output = isogloss(folder, arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
    assert!(errors.contains(expected), "{arguments:?}: {errors}");
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    errors
}
