//! What others do where a command works: their files in its folders, their leases, their signals, and files of no end.

#![cfg(unix)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::common::{Folder, command, done, isogloss, refused};

const STUDY: &str = include_str!("../../torment/src/study.toml");

const WORLD: &str = "world generate --out world --sentences 200 --set tatoeba=20 \
    --set parallel={train=20,dev=4,test=4} --set nli={train=6,dev=3,test=3} --set ner={train=12,dev=4,test=4} \
    --set treebank={train=4,dev=2,test=2,parallel=2} --set classify={train=8,dev=4,test=4}";

const PRETRAIN: &str = "pretrain --world world --checkpoint-every 2 --vocabulary.merges 60 --text.dev 40 \
    --set stages=[] --batch.sequences 4 --encoder.layers 2 --encoder.dim 16 --encoder.heads 2 --encoder.hidden 32 \
    --device cpu --threads 1";

/// Names that this release, older ones, libraries and other programs give to what is unfinished.
const NAMES: [&str; 12] = [
    ".replaced-abcdef",
    ".tmpa1B2c3",
    ".unfinished-abcdef",
    ".unfinished-abcdefghijkl",
    ".unfinished-0123456789abcdef-01234567",
    "Ubuntu.iso.part",
    "Ubuntu.iso.partial",
    "config.toml.partial",
    "lease.node7",
    "notes.md",
    "result.partial",
    "state.damaged.safetensors",
];

fn run(folder: &Path, line: &str) -> std::process::Output {
    // Temporary files lie among somebody else's as well.
    command(folder, line).env("TMPDIR", folder.join("tmp")).output().unwrap()
}

fn ran(folder: &Path, line: &str) {
    let output = run(folder, line);
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Names that this release gives to what is whole, for folders in which it makes none of them.
const OWN: [&str; 11] = [
    "config.toml",
    "corpus.json",
    "isogloss.b3",
    "lock",
    "log",
    "manifest.json",
    "model.safetensors",
    "result.json",
    "state.safetensors",
    "summary.json",
    "vocabulary.json",
];
const LINK: &str = "linked.md";
const NOWHERE: &str = "nowhere/precious.md";

/// Somebody's folders and the names in them.
fn places(folder: &Path) -> Vec<PathBuf> {
    let [inner, unfinished] = ["Downloads", ".unfinished-ABCDEF"].map(|name| folder.join(name));
    let own = OWN.map(|name| inner.join(name));
    let all = [folder, &inner, &unfinished].map(|folder| NAMES.map(|name| folder.join(name)));
    all.into_iter().flatten().chain(own).collect()
}

/// Somebody's files, folders and links under all names.
fn plant(folder: &Path) {
    for path in places(folder) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "precious").unwrap();
    }
    std::os::unix::fs::symlink(NOWHERE, folder.join(LINK)).unwrap();
}

fn found_again(folder: &Path) {
    for path in places(folder) {
        assert!(fs::read(&path).is_ok_and(|text| text == b"precious"), "{}", path.display());
    }
    assert_eq!(fs::read_link(folder.join(LINK)).unwrap(), Path::new(NOWHERE));
}

/// Takes somebody's files away again.
fn clear(folder: &Path) {
    let entries = NAMES.map(|name| folder.join(name)).into_iter().chain([folder.join(LINK)]);
    entries.for_each(|path| fs::remove_file(path).unwrap());
    ["Downloads", ".unfinished-ABCDEF"]
        .iter()
        .for_each(|name| fs::remove_dir_all(folder.join(name)).unwrap());
}

fn steps(lab: &Path) -> Vec<PathBuf> {
    fs::read_dir(lab.join("steps")).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Folders that are not a command's own, temporary files, and steps that are begun anew: `torment` plants the same wherever its
/// commands work.
#[test]
fn nobody_elses_file_is_touched_in_any_folder() {
    let folder: &Path = &Folder::new();
    plant(&folder.join("tmp"));
    ran(folder, WORLD);
    ran(folder, &format!("{PRETRAIN} --steps 4 --out run"));
    let on = "--text qaa=world/text/qaa.base.txt --text qab=world/text/qab.base.txt --device cpu";
    ran(folder, &format!("shift means --model run {on} --out means.safetensors"));
    let mine = format!("mine --model run {on} --out out.tsv --work others");
    let sweep = "shift sweep --model run --parallel qaa=world/text/qaa.base.txt --parallel qab=world/text/qaa.base.txt \
        --means means.safetensors --layers 1 --alpha 1 --limit 4 --device cpu --work others";
    let transfer = "transfer --task ner --model run --world world --quick --epochs 1 --limit 12 --out others --device cpu";
    // A folder that is not a command's own.
    plant(&folder.join("others"));
    let pretrain = format!("{PRETRAIN} --steps 4 --out others");
    for line in [&*mine, sweep, transfer, &pretrain] {
        assert_eq!(run(folder, line).status.code(), Some(2), "{line}");
        found_again(&folder.join("others"));
        assert_eq!(fs::read_dir(folder.join("others")).unwrap().count(), NAMES.len() + 3, "{line}");
    }
    fs::write(folder.join("study.toml"), STUDY).unwrap();
    ran(folder, "study run study.toml --lab lab --device cpu");
    let lab = folder.join("lab");
    let all: Vec<PathBuf> =
        [lab.clone(), lab.join("steps")].into_iter().chain(steps(&lab)).collect();
    all.iter().for_each(|folder| plant(folder));
    // Begun anew: the files of a step go, those of others stay; a folder that would be replaced with them is not.
    let fresh = "study run study.toml --lab lab --device cpu --fresh";
    ran(folder, fresh);
    all.iter().for_each(|folder| found_again(folder));
    let mut run = steps(&lab).into_iter().map(|step| step.join("run"));
    let run = run.rfind(|run| run.is_dir()).unwrap();
    plant(&run.join("probes"));
    let output = self::run(folder, fresh);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("was not made with it"), "{errors}");
    found_again(&run.join("probes"));
    found_again(&folder.join("tmp"));
    let left = fs::read_dir(folder.join("tmp")).unwrap().count();
    assert_eq!(left, NAMES.len() + 3, "temporary files of ours are left");
}

/// Each kind of folder that is replaced by force: it is where all in it is ours, and refused where anything is not.
#[test]
fn force_takes_away_nothing_of_others() {
    let folder: &Path = &Folder::new();
    fs::create_dir(folder.join("tmp")).unwrap();
    ran(folder, WORLD);
    let texts = "--text qaa=world/text/qaa.base.txt --text qab=world/text/qab.base.txt";
    let pretrain = PRETRAIN.replace("--text.dev", "--set snapshots=2 --text.dev");
    for (line, out, inner) in [
        (WORLD, "world", "text"),
        (&*format!("{pretrain} --steps 4 --out run"), "run", "vocabulary"),
        (
            "transfer --task ner --model run --world world --quick --epochs 1 --limit 12 --out transfer --device cpu \
             --threads 1",
            "transfer",
            "predictions",
        ),
        (&*format!("vocab train {texts} --merges 60 --out vocabulary"), "vocabulary", "."),
        ("hub export --model run --out hf --device cpu", "hf", "."),
        ("hub import hf --out imported --device cpu", "imported", "vocabulary"),
        (
            "words --model run --text qaa=world/text/qaa.base.txt --limit 20 --out words --device cpu",
            "words",
            ".",
        ),
    ] {
        if out != "world" {
            ran(folder, line);
        }
        let force = format!("{line} --force");
        ran(folder, &force);
        for inner in [".", inner] {
            let inner = folder.join(out).join(inner);
            plant(&inner);
            let before = tree(&folder.join(out));
            let output = run(folder, &force);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{line}: {errors}");
            assert!(errors.contains("would be lost; move them away"), "{line}: {errors}");
            assert_eq!(tree(&folder.join(out)), before, "{line}");
            clear(&inner);
        }
        // A file of ours that somebody edited, where its digest is known.
        let edited = ["world/world.toml", "vocabulary/vocabulary.json", "hf/config.json"];
        for path in edited.iter().filter(|path| path.starts_with(&format!("{out}/"))) {
            let whole = fs::read_to_string(folder.join(path)).unwrap();
            fs::write(folder.join(path), format!("{whole}\n")).unwrap();
            assert_eq!(run(folder, &force).status.code(), Some(2), "{path}");
            assert_eq!(fs::read_to_string(folder.join(path)).unwrap(), format!("{whole}\n"));
            fs::write(folder.join(path), whole).unwrap();
        }
        ran(folder, &force);
    }
}

/// All files in a folder with their bytes, and links with what they name.
fn tree(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match fs::read_link(&path) {
            Ok(link) => all.push((path, link.into_os_string().into_encoded_bytes())),
            Err(_) if path.is_dir() => all.extend(tree(&path)),
            Err(_) => all.push((path.clone(), fs::read(&path).unwrap())),
        }
    }
    all.sort();
    all
}

/// Starts a command whose messages go to the file `errors`.
fn started(folder: &Path, line: &str) -> Child {
    let errors = fs::File::create(folder.join("errors")).unwrap();
    command(folder, line).stderr(errors).stdout(Stdio::null()).spawn().unwrap()
}

fn until(what: impl Fn() -> bool) {
    for _ in 0..3000 {
        if what() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("it did not happen within a minute");
}

/// The lease of another machine keeps `study run` out as it keeps `study step` out; damage is said by `study collect`.
#[test]
fn a_study_respects_leases_and_says_what_is_damaged() {
    let folder: &Path = &Folder::new();
    fs::write(folder.join("study.toml"), STUDY).unwrap();
    let plan = done(folder, "study plan study.toml --device cpu");
    let step = folder.join("lab/steps").join(plan["steps"][0]["key"].as_str().unwrap());
    fs::create_dir_all(&step).unwrap();
    let lease = r#"{"host":"node7","pid":7,"job":"3_1","nonce":"x"}"#;
    fs::write(step.join("lease"), lease).unwrap();
    let mut runner = started(folder, "study run study.toml --device cpu");
    let errors = || fs::read_to_string(folder.join("errors")).unwrap();
    until(|| errors().contains("waiting for process 7 on node7 (job 3_1)"));
    assert!(!step.join("log").exists() && runner.try_wait().unwrap().is_none(), "{}", errors());
    fs::remove_file(step.join("lease")).unwrap();
    assert!(runner.wait().unwrap().success(), "{}", errors());
    assert!(!step.join("lease").exists(), "it gives back its own");
    let collect = "study collect study.toml --device cpu";
    assert_eq!(done(folder, &collect)["open"], 0);
    let result = step.join("result.json");
    let whole = fs::read_to_string(&result).unwrap();
    fs::write(&result, whole.replacen("\"build\":\"0", "\"build\":\"1", 1)).unwrap();
    let said = refused(folder, &collect, 1, "was altered since it was written");
    assert!(said.contains(&*result.strip_prefix(folder).unwrap().to_string_lossy()), "{said}");
}

#[test]
fn the_exit_code_says_which_signal_came() {
    let folder: &Path = &Folder::new();
    ran(folder, WORLD);
    let signal = |child: &Child, name: &str| {
        Command::new("kill").args([name, &child.id().to_string()]).status().unwrap()
    };
    for (name, code) in [("-TERM", 143), ("-HUP", 129), ("-INT", 130)] {
        // One that saves and stops, and one that just ends.
        let out = format!("run{code}");
        let endless = format!("{PRETRAIN} --steps 1000000 --out {out} --json");
        let training =
            command(folder, &endless).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let training = training.unwrap();
        until(|| folder.join(&out).join("state.safetensors").exists());
        signal(&training, name);
        let ended = training.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(code));
        // Whoever waits for it must not take it for done.
        let summary: Value = serde_json::from_slice(&ended.stdout).unwrap();
        assert_eq!(summary["finished"], false);
        let words = "vocab train --text qaa=- --out vocabulary";
        let mut reading = command(folder, &words).stdin(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(500));
        signal(&reading, name);
        assert_eq!(reading.wait().unwrap().code(), Some(code));
    }
    refused(folder, "pretrain --world world --ranks 100000 --out many", 2, "cores, enough for");
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_of_no_end_is_not_read_to_it() {
    let folder: &Path = &Folder::new();
    std::os::unix::fs::symlink("/dev/zero", folder.join("zero.toml")).unwrap();
    refused(folder, "study plan zero.toml", 1, "more than 64 MB");
    refused(folder, "world generate --config zero.toml --out w", 1, "64 MB");
    let text = "vocab train --text qaa=/dev/zero --out vocabulary";
    refused(folder, &text, 1, "has a line of more than 64 MB");
}

/// Before any work, and with a sentence.
#[test]
fn a_folder_whose_name_is_not_utf_8_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let place = Folder::new();
    let name = std::ffi::OsStr::from_bytes(b"\xff");
    let inner = place.join(name);
    fs::create_dir(&inner).unwrap();
    let mut inspect = command(&place, &["inspect"]);
    let outputs = [inspect.arg(name).output().unwrap(), isogloss(&inner, "study list")];
    for output in outputs {
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains("is not UTF-8"), "{errors}");
    }
    let value: Value = done(&place, "study list");
    assert!(value.is_object() || value.is_array());
}
