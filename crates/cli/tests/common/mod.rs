//! The real binary, run in a folder: what every test of the surface begins with.

#![allow(dead_code, reason = "no test needs all of it")]

use std::io::Write;
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

/// Runs it with something to read from standard input.
pub(crate) fn reading(folder: &Path, arguments: &[&str], input: &str) -> Output {
    let mut command = command(folder, arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    // A command that refuses its arguments does not wait for input.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    child.wait_with_output().expect("the binary runs")
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
