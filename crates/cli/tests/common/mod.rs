//! The real binary, run in a folder: what every test of the surface begins with.

#![allow(dead_code, reason = "no test needs all of it")]

use std::fs::{self, File};
use std::io::Write;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A folder that goes with its test, and is its path wherever one is wanted.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().unwrap())
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        self.0.path()
    }
}

impl AsRef<Path> for Folder {
    fn as_ref(&self) -> &Path {
        self
    }
}

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

/// A command line: a text whose words stand apart by spaces (`'…'` around one that has some), or its words.
pub(crate) trait Typed {
    fn words(&self) -> Vec<String>;
}

impl Typed for str {
    fn words(&self) -> Vec<String> {
        let (mut words, mut quoted, mut open) = (Vec::new(), false, false);
        for c in self.chars() {
            if c.is_whitespace() && !quoted {
                open = false;
                continue;
            }
            if !open {
                words.push(String::new());
                open = true;
            }
            match c {
                '\'' => quoted = !quoted,
                _ => words.last_mut().expect("a word that was begun").push(c),
            }
        }
        words
    }
}

impl<T: Typed + ?Sized> Typed for &T {
    fn words(&self) -> Vec<String> {
        (*self).words()
    }
}

impl Typed for String {
    fn words(&self) -> Vec<String> {
        self.as_str().words()
    }
}

impl<T: AsRef<str>> Typed for [T] {
    fn words(&self) -> Vec<String> {
        self.iter().map(|word| word.as_ref().to_owned()).collect()
    }
}

impl<T: AsRef<str>, const N: usize> Typed for [T; N] {
    fn words(&self) -> Vec<String> {
        self[..].words()
    }
}

impl<T: AsRef<str>> Typed for Vec<T> {
    fn words(&self) -> Vec<String> {
        self[..].words()
    }
}

/// The binary with these arguments, in a folder, with nothing to read.
pub(crate) fn command(folder: &Path, line: &(impl Typed + ?Sized)) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isogloss"));
    command.current_dir(folder).args(line.words()).stdin(Stdio::null());
    command
}

/// Runs it to its end.
pub(crate) fn isogloss(folder: &Path, line: &(impl Typed + ?Sized)) -> Output {
    command(folder, line).output().expect("the binary runs")
}

/// Runs it with something to read from standard input.
pub(crate) fn reading(folder: &Path, line: &(impl Typed + ?Sized), input: &str) -> Output {
    let mut command = command(folder, line);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    // A command that refuses its arguments does not wait for input.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    child.wait_with_output().expect("the binary runs")
}

/// Starts it, with nothing to see.
pub(crate) fn started(folder: &Path, line: &(impl Typed + ?Sized)) -> Child {
    let mut command = command(folder, line);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary runs")
}

/// All goes well: standard output and standard error.
pub(crate) fn ran(folder: &Path, line: &(impl Typed + ?Sized)) -> [String; 2] {
    let Output { status, stdout, stderr } = isogloss(folder, line);
    let [printed, said] = [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(status.success(), "{:?}: {said}", line.words());
    [printed, said]
}

/// Copies a file or a folder.
pub(crate) fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-r").args([from, to]).status();
    assert!(status.unwrap().success());
}

/// A file of JSON.
pub(crate) fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The JSON that it prints when all goes well.
pub(crate) fn done(folder: &Path, line: &(impl Typed + ?Sized)) -> Value {
    let words = [line.words(), vec!["--json".to_owned()]].concat();
    serde_json::from_str(&ran(folder, &words)[0]).expect("one JSON object")
}

/// It fails with this exit code, prints nothing, and complains of what is expected. Gives all that
/// it printed.
pub(crate) fn refused(
    folder: &Path,
    line: &(impl Typed + ?Sized),
    code: i32,
    reason: &str,
) -> String {
    let output = isogloss(folder, line);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{:?}: {errors}", line.words());
    assert!(errors.contains(reason), "{:?}: {errors}", line.words());
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    errors
}

/// A folder with a small world in it.
pub(crate) fn with_world() -> Folder {
    let folder = Folder::new();
    let sizes = "--set nli={train=3,dev=3,test=3} --set ner.train=9 --set treebank.train=9 \
                 --set parallel.train=9 --set tatoeba=40";
    ran(&folder, &format!("world generate --out world --sentences 3000 {sizes}"));
    folder
}
