//! `isogloss world` as people and scripts meet it: the real binary, its output and exit codes.

mod common;

use std::path::Path;

use crate::common::{Folder, command, done, ran, refused};

const SMALL: &str = "--sentences 500 --set nli={train=30,dev=3,test=3} --set ner.train=50 --set \
        treebank.train=50 --set parallel.train=50 --set tatoeba=20 --seed 7";

fn world(more: &str) -> String {
    format!("world generate --out w {SMALL} {more}")
}

#[test]
fn a_world_is_written_and_reported() {
    let folder = Folder::new();
    let report = done(&folder, &world("--languages 3 --distance 0.3,0.9"));
    assert_eq!(report["seed"], 7);
    assert_eq!(report["sentences"], 1500);
    assert_eq!(report["languages"][2]["script"], "cyrillic");
    for file in report["files"].as_array().unwrap() {
        assert!(folder.join("w").join(file["path"].as_str().unwrap()).is_file());
    }
    refused(&folder, &world(""), 2, "--force");
    done(&folder, &world("--force"));
}

#[test]
fn the_saved_configuration_makes_the_same_world() {
    let folder = Folder::new();
    done(&folder, &world("--distance 0.5 --domain-shift 0.5"));
    done(&folder, "world generate --out copy --config w/world.toml");
    let read = |path: &str| std::fs::read(folder.join(path)).unwrap();
    assert_eq!(read("w/manifest.json"), read("copy/manifest.json"));
    assert!(folder.join("w/text/qab.other.txt").is_file());
}

#[test]
fn what_makes_no_sense_or_cannot_be_done_is_refused_by_name() {
    let folder = Folder::new();
    std::fs::write(folder.join("bad.toml"), "seed = 1\nsentance = 5\n").unwrap();
    std::fs::write(folder.join("latin1.toml"), b"# caf\xe9\n").unwrap();
    std::fs::write(folder.join("file"), "").unwrap();
    for (flags, code, says) in [
        ("--anchors 1.5", 2, "language.1.anchors: 1.5 is out of range; use 0 to 1"),
        ("--distance 0.1,0.2,0.3", 2, "3 values for 1 languages"),
        ("--script runic", 2, "runic"),
        ("--set meaning.zipf", 2, "KEY=VALUE"),
        ("--set meaning.zips=1", 2, "zips"),
        ("--config bad.toml", 2, "line 2"),
        ("--config latin1.toml", 2, "latin1.toml"),
        ("--set sentences=0", 2, "sentences: 0 is out of range"),
        ("--set language.1.sentences=0", 2, "language.1.sentences: 0 is out of range"),
        ("--set nli.train=100000000000000", 2, "nli.train: 100000000000000 is out of range"),
        ("--set treebank.parallel=100000001", 2, "treebank.parallel"),
        ("--config absent.toml", 1, "absent.toml: cannot read"),
    ] {
        refused(&folder, &world(flags), code, says);
        assert!(!folder.join("w").exists(), "{flags}");
    }
    refused(&folder, "world generate --out file/w", 1, "file");
}

#[test]
fn sets_of_no_size_are_left_out() {
    let folder = Folder::new();
    let none = "--set tatoeba=0 --set nli={train=0,dev=3,test=3}";
    let more = "--set ner={train=0,dev=0,test=0} --set dictionary_test=0.0";
    let report = done(&folder, &world(&format!("{none} {more}")));
    let files = report["files"].as_array().unwrap();
    assert!(files.iter().all(|file| file["bytes"].as_u64().unwrap() > 0));
    let world = folder.join("w");
    assert!(!world.join("tatoeba").exists() && !world.join("ner").exists());
    assert!(!world.join("xnli/train-qaa.tsv").exists());
    assert!(world.join("xnli/dev-qaa.tsv").is_file());
    assert!(!world.join("muse/qaa-qab.5000-6500.txt").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_printed_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let out = command(Path::new("."), "world show").stdout(full).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.code() == Some(1) && said.contains("standard output"), "{said}");
}

#[test]
fn sentences_are_shown_word_by_word() {
    let folder = Folder::new();
    let [shown, _] = ran(&folder, "world show --count 2 --verb sov --script han");
    // Two sentences, two languages, three rows each, and an empty line between the sentences.
    assert_eq!(shown.lines().count(), 13, "{shown}");
    assert!(shown.contains("qab") && shown.contains("nsubj:"));
    let shown = done(&folder, "world show --count 2");
    assert_eq!(shown["sentences"].as_array().map(Vec::len), Some(4));
}
