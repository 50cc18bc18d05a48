//! `isogloss world` as people and scripts meet it: the real binary, its output and exit codes.

mod common;

use std::path::Path;
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{command, isogloss};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

const SMALL: [&str; 14] = [
    "--sentences",
    "500",
    "--set",
    "nli={train=30,dev=3,test=3}",
    "--set",
    "ner.train=50",
    "--set",
    "treebank.train=50",
    "--set",
    "parallel.train=50",
    "--set",
    "tatoeba=20",
    "--seed",
    "7",
];

fn generate(folder: &Path, more: &[&str]) -> Output {
    isogloss(folder, &[&["world", "generate", "--out", "w"], &SMALL[..], more].concat())
}

#[test]
fn a_world_is_written_and_reported() {
    let folder = TempDir::new().unwrap();
    let out = generate(folder.path(), &["--json", "--languages", "3", "--distance", "0.3,0.9"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(report["seed"], 7);
    assert_eq!(report["sentences"], 1500);
    assert_eq!(report["languages"][2]["script"], "cyrillic");
    for file in report["files"].as_array().unwrap() {
        assert!(folder.path().join("w").join(file["path"].as_str().unwrap()).is_file());
    }

    let again = generate(folder.path(), &[]);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("--force"));
    assert_eq!(generate(folder.path(), &["--force"]).status.code(), Some(0));
}

#[test]
fn the_saved_configuration_makes_the_same_world() {
    let folder = TempDir::new().unwrap();
    assert!(
        generate(folder.path(), &["--distance", "0.5", "--domain-shift", "0.5"]).status.success()
    );
    let copy = ["world", "generate", "--out", "copy", "--config", "w/world.toml"];
    assert!(isogloss(folder.path(), &copy).status.success());
    let read = |path: &str| std::fs::read(folder.path().join(path)).unwrap();
    assert_eq!(read("w/manifest.json"), read("copy/manifest.json"));
    assert!(folder.path().join("w/text/qab.other.txt").is_file());
}

#[test]
fn what_makes_no_sense_exits_with_code_2() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("bad.toml"), "seed = 1\nsentance = 5\n").unwrap();
    std::fs::write(folder.path().join("latin1.toml"), b"# caf\xe9\n").unwrap();
    for (flags, says) in [
        (vec!["--anchors", "1.5"], "language.1.anchors: 1.5 is out of range; use 0 to 1"),
        (vec!["--distance", "0.1,0.2,0.3"], "3 values for 1 languages"),
        (vec!["--script", "runic"], "runic"),
        (vec!["--set", "meaning.zipf"], "KEY=VALUE"),
        (vec!["--set", "meaning.zips=1"], "zips"),
        (vec!["--config", "bad.toml"], "line 2"),
        (vec!["--config", "latin1.toml"], "latin1.toml"),
        (vec!["--set", "sentences=0"], "sentences: 0 is out of range"),
        (vec!["--set", "language.1.sentences=0"], "language.1.sentences: 0 is out of range"),
        (vec!["--set", "nli.train=100000000000000"], "nli.train: 100000000000000 is out of range"),
        (vec!["--set", "treebank.parallel=100000001"], "treebank.parallel"),
    ] {
        let out = generate(folder.path(), &flags);
        assert_eq!(out.status.code(), Some(2), "{flags:?}");
        assert!(text(&out.stderr).contains(says), "{flags:?}: {}", text(&out.stderr));
        assert!(out.stdout.is_empty() && !folder.path().join("w").exists());
    }
}

#[test]
fn a_folder_that_cannot_be_written_fails_with_exit_code_1() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let out = isogloss(folder.path(), &["world", "generate", "--out", "file/w"]);
    assert_eq!(out.status.code(), Some(1), "{}", text(&out.stderr));
    assert!(text(&out.stderr).contains("file"));
}

#[test]
fn a_configuration_that_cannot_be_read_fails_with_exit_code_1() {
    let folder = TempDir::new().unwrap();
    let out = generate(folder.path(), &["--config", "absent.toml"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stderr).contains("absent.toml: cannot read"), "{}", text(&out.stderr));
}

#[test]
fn sets_of_no_size_are_left_out() {
    let folder = TempDir::new().unwrap();
    let none = ["--set", "tatoeba=0", "--set", "nli={train=0,dev=3,test=3}", "--json"];
    let more = ["--set", "ner={train=0,dev=0,test=0}", "--set", "dictionary_test=0.0"];
    let out = generate(folder.path(), &[&none[..], &more].concat());
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    let files = report["files"].as_array().unwrap();
    assert!(files.iter().all(|file| file["bytes"].as_u64().unwrap() > 0));
    let world = folder.path().join("w");
    assert!(!world.join("tatoeba").exists() && !world.join("ner").exists());
    assert!(!world.join("xnli/train-qaa.tsv").exists());
    assert!(world.join("xnli/dev-qaa.tsv").is_file());
    assert!(!world.join("muse/qaa-qab.5000-6500.txt").exists());
}

#[test]
fn json_is_one_object_and_help_has_examples() {
    let folder = TempDir::new().unwrap();
    let out = isogloss(folder.path(), &["world", "show", "--count", "2", "--json"]);
    let shown: Value = serde_json::from_slice(&out.stdout).unwrap();
    // Two sentences in two languages.
    assert_eq!(shown["sentences"].as_array().map(Vec::len), Some(4));
    let out = generate(folder.path(), &["--json"]);
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert!(report.is_object());
    for command in ["generate", "show"] {
        let help = text(&isogloss(folder.path(), &["world", command, "--help"]).stdout);
        assert!(help.contains("Examples:"), "{help}");
        assert!(help.contains(&format!("isogloss world {command} --")), "{help}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_printed_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = command(Path::new("."), &["world", "show"]);
    let out = command.stdout(full).output().unwrap();
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stderr).contains("standard output"), "{}", text(&out.stderr));
}

#[test]
fn sentences_are_shown_word_by_word() {
    let folder = TempDir::new().unwrap();
    let flags = ["world", "show", "--count", "2", "--verb", "sov", "--script", "han"];
    let out = isogloss(folder.path(), &flags);
    let shown = text(&out.stdout);
    // Two sentences, two languages, three rows each, and an empty line between the sentences.
    assert_eq!(shown.lines().count(), 13, "{shown}");
    assert!(shown.contains("qab") && shown.contains("nsubj:"));
}
