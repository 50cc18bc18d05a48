//! `isogloss map` and what it draws from: the states and snapshots that a run saves while it is trained.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use std::sync::LazyLock;

use crate::common::{Shared, done, refused, with_world};

/// A world, a run of sixty updates with a constant learning rate, and an untrained one.
static RUNS: LazyLock<Shared> = LazyLock::new(|| {
    let shared = Shared::new("map");
    let world = with_world();
    let folder = shared.path();
    common::copy(&world.join("world"), &folder.join("world"));
    pretrain(folder, "run", "--steps 60");
    pretrain(folder, "untrained", "--steps 0");
    shared
});

fn pretrain(folder: &Path, out: &str, more: &str) {
    let all = format!("pretrain --world world --preset no-anchors --out {out}");
    let constant = "--set stages=[] --set adam.schedule={kind=\"constant\"}";
    done(folder, &format!("{all} {constant} {more}"));
}

/// Every file of a run's probes and snapshots, with its bytes.
fn saved(run: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for folder in ["probes/qaa-qab", "snapshots"] {
        for entry in fs::read_dir(run.join(folder)).into_iter().flatten() {
            let path = entry.unwrap().path();
            let name = format!("{folder}/{}", path.file_name().unwrap().to_str().unwrap());
            files.insert(name, fs::read(path).unwrap());
        }
    }
    files
}

#[test]
fn a_snapshot_is_a_run_of_that_length_and_saving_changes_nothing() {
    let folder = RUNS.path();
    pretrain(folder, "shorter", "--steps 50 --set snapshots=2");
    pretrain(folder, "off", "--steps 60 --set trajectory=false");
    let run = saved(&folder.join("run"));
    let names: Vec<&str> = run.keys().map(String::as_str).collect();
    let expected = [
        "probes/qaa-qab/0.npz",
        "probes/qaa-qab/50.npz",
        "probes/qaa-qab/60.npz",
        "probes/qaa-qab/pairs.tsv",
        "snapshots/0.safetensors",
        "snapshots/50.safetensors",
        "snapshots/60.safetensors",
    ];
    assert_eq!(names, expected);
    let pairs = String::from_utf8(run["probes/qaa-qab/pairs.tsv"].clone()).unwrap();
    assert!(
        pairs.starts_with("qaa\tqab\tqaa tokens\tqab tokens\tqaa gloss\tqab gloss\n"),
        "{pairs}"
    );
    // A gloss has a meaning for every word.
    for line in pairs.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let words = |cell: usize| cells[cell].split(' ').count();
        assert_eq!((words(0), words(1)), (words(4), words(5)), "{line}");
    }
    let shorter = saved(&folder.join("shorter"));
    assert_eq!(shorter.keys().filter(|name| name.starts_with("snapshots")).count(), 2);
    for file in ["probes/qaa-qab/50.npz", "snapshots/50.safetensors"] {
        assert!(run[file] == shorter[file], "{file} differs from that of a run of 50 updates");
    }
    assert!(saved(&folder.join("off")).is_empty());
    for file in ["model.safetensors", "state.safetensors", "metrics.jsonl"] {
        let read = |run: &str| fs::read(folder.join(run).join(file)).unwrap();
        assert!(read("run") == read("off"), "{file} depends on what is saved");
    }
    // Wherever a model is named.
    let inspected = done(folder, "inspect run@50");
    assert_eq!(inspected["step"], 50);
    let encode = |model: &str, out: &str| {
        let text = "qaa=world/tatoeba/tatoeba.qab-qaa.qaa";
        done(folder, &format!("encode --model {model} --text {text} --out {out} --device cpu"));
        fs::read(folder.join(out)).unwrap()
    };
    assert!(encode("run@50", "a.npy") == encode("shorter@50", "b.npy"));
    assert!(encode("run@60", "c.npy") != encode("run@50", "d.npy"));
    let text = "--text qaa=world/tatoeba/tatoeba.qab-qaa.qaa --out e.npy";
    let flags = format!("encode --model run@51 {text}");
    refused(folder, &flags, 1, "no snapshot of step 51; it has those of 0, 50, 60");
}

#[test]
fn figures_of_a_run_in_every_format() {
    let folder = RUNS.path();
    let draw = |flags: &str| done(folder, &format!("map {flags}"));
    let starts: [(&str, &[u8]); 4] = [
        ("svg", b"<svg"),
        ("pdf", b"%PDF-"),
        ("png", b"\x89PNG"),
        ("csv", b"panel,language,row,x,y"),
    ];
    for (extension, start) in starts {
        let out = format!("emergence.{extension}");
        let result = draw(&format!("--figure emergence --model run --out {out}"));
        let bytes = fs::read(folder.join(&out)).unwrap();
        assert!(bytes.starts_with(start), "{out}");
        assert!(extension != "png" || lab::export::colours(&bytes) > 1, "black");
        assert_eq!(result["figure"], "emergence");
    }
    // What an untrained encoder shows is said to be of one.
    let untrained = draw("--figure emergence --model untrained --out u.svg");
    let title = untrained["title"].as_str().unwrap();
    assert!(title.starts_with("An untrained encoder finds"), "{title}");
    let layers = draw("--figure layers --model untrained --out ul.svg");
    let title = layers["title"].as_str().unwrap();
    assert!(title.starts_with("No layer brings translations together"), "{title}");
    draw("--figure layers --model run@50 --out l.svg --colors dark");
    let dark = fs::read_to_string(folder.join("l.svg")).unwrap();
    assert!(dark.contains("#14171b") && dark.contains("step 50") && dark.contains("supervised"));
    refused(folder, "map --figure layers --model run@7 --out x.svg", 2, "after steps 0, 50, 60");
    refused(folder, "map --figure emergence --model run --out x.gif", 2, ".svg");
    let flags = "map --figure emergence --model run --pair qaa-qac --out x.svg";
    refused(folder, flags, 2, "states of qaa-qab");
}

#[test]
fn shifted_sentences_have_their_words_and_glosses() {
    let folder = RUNS.path();
    let text = "--text qaa=world/text/qaa.base.txt --text qab=world/text/qab.base.txt";
    let means = "shift means --model run --lines --limit 200 --out m.safetensors";
    done(folder, &format!("{means} {text}"));
    let shift = "map --figure shift --model run --means m.safetensors";
    let result = done(folder, &format!("{shift} --out shift.svg"));
    assert!(result["caption"].as_str().unwrap().contains("after layer 3"), "{result}");
    let parallel = "--parallel qab=world/tatoeba/tatoeba.qab-qaa.qab --parallel \
            qaa=world/tatoeba/tatoeba.qab-qaa.qaa --layers 2 --out other.csv";
    let result = done(folder, &format!("{shift} {parallel}"));
    assert!(result["caption"].as_str().unwrap().contains("after layer 2"), "{result}");
    let rows = fs::read_to_string(folder.join("other.csv")).unwrap();
    assert!(rows.starts_with("sentence,alpha,predicted,value,measure\n"), "{rows}");
    refused(folder, "map --figure shift --model run --out y.svg", 2, "isogloss shift means");
}

#[test]
fn maps_of_sentences_and_words() {
    let folder = RUNS.path();
    let side = |code: &str| format!("{code}=world/tatoeba/tatoeba.qab-qaa.{code}");
    let (a, b) = (side("qaa"), side("qab"));
    let parallel = format!("map --model run@50 --parallel {a} --parallel {b} --layers 0,2");
    for view in ["raw", "centered", "aligned"] {
        let out = format!("map-{view}.csv");
        let result = done(folder, &format!("{parallel} --view {view} --limit 30 --out {out}"));
        let rows = fs::read_to_string(folder.join(&out)).unwrap();
        assert_eq!(rows.lines().count(), 1 + 2 * 2 * 30, "{view}");
        assert!(rows.starts_with("panel,language,row,x,y,text\n"), "{rows}");
        let title = result["title"].as_str().unwrap();
        // Where means were subtracted, their distance is no finding.
        assert_eq!(title.ends_with("around its mean"), view != "raw", "{title}");
    }
    let texts = format!("map --model run --text {a} --text {b} --layers 1 --out t.svg");
    done(folder, &texts);
    refused(folder, &format!("{texts} --force --view aligned"), 2, "give --parallel");
    fs::write(folder.join("a.vec"), "4 2\ncat 1 0\ndog 0 1\nsun 1 1\nsea 2 1\n").unwrap();
    fs::write(folder.join("b.vec"), "3 2\nchat 1 .1\nchien 0 1\nmer 2 1\n").unwrap();
    fs::write(folder.join("d.txt"), "cat chat\ndog chien\nsea mer\nsun soleil\n").unwrap();
    let words = "map --vectors en=a.vec --vectors fr=b.vec";
    done(folder, &format!("{words} --dictionary d.txt --view aligned --out words.svg"));
    let drawn = fs::read_to_string(folder.join("words.svg")).unwrap();
    assert!(drawn.contains(">chien<") && !drawn.contains(">sun<"), "{drawn}");
    done(folder, &format!("{words} --out words.csv"));
    assert_eq!(fs::read_to_string(folder.join("words.csv")).unwrap().lines().count(), 8);
    refused(folder, "map --model run --out v.svg", 2, "give sentences: --text or --parallel");
}

/// A Hugging Face folder has no saved states: its figures are of the text that it is given.
#[test]
fn figures_of_a_hugging_face_folder() {
    let folder = RUNS.path();
    done(folder, "hub export --model run --lang qaa --out hf");
    let side = |code: &str| format!("{code}=world/tatoeba/tatoeba.qab-qaa.{code}");
    let (a, b) = (side("qaa"), side("qab"));
    let means = format!("shift means --model hf --text {a} --text {b}");
    done(folder, &format!("{means} --out hf-means.safetensors"));
    let parallel = format!("--model hf --parallel {a} --parallel {b}");
    for (figure, more) in [("layers", ""), ("shift", "--means hf-means.safetensors")] {
        let out = format!("hf-{figure}.png");
        let drawn = done(folder, &format!("map --figure {figure} --out {out} {parallel} {more}"));
        assert_eq!(drawn["figure"], figure);
        assert!(lab::export::colours(&fs::read(folder.join(&out)).unwrap()) > 1, "{out}");
    }
    let flags = "map --figure emergence --model hf --out x.svg";
    refused(folder, &flags, 2, "has saved no states");
    let flags = "map --figure layers --model nowhere --out x.svg";
    refused(folder, &flags, 2, "nowhere: no such folder");
}
