//! The real binary, run in a folder: what every test of the surface begins with.

#![allow(dead_code, reason = "no test needs all of it")]

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A folder for what the tests of one file share. Nothing drops a `static`, so it lies in the target
/// folder, where the next run clears it; until this process ends it has no other user.
pub(crate) struct Shared {
    path: PathBuf,
    _lock: File,
}

impl Shared {
    pub(crate) fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let lock = File::create(path.with_extension("lock")).unwrap();
        lock.lock().unwrap();
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self { path, _lock: lock }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

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
/// it printed.
pub(crate) fn refused(folder: &Path, arguments: &[&str], code: i32, expected: &str) -> String {
    let output = isogloss(folder, arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
    assert!(errors.contains(expected), "{arguments:?}: {errors}");
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    errors
}

/// A folder with a small world in it.
pub(crate) fn with_world() -> TempDir {
    let folder = TempDir::new().unwrap();
    let sizes =
        ["nli={train=3,dev=3,test=3}", "ner.train=9", "treebank.train=9", "parallel.train=9"];
    let sizes = sizes.iter().flat_map(|size| ["--set", size]);
    let mut arguments = vec!["world", "generate", "--out", "world", "--sentences", "3000"];
    arguments.extend(sizes.chain(["--set", "tatoeba=40"]));
    let output = isogloss(folder.path(), &arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    folder
}
