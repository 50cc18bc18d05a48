//! Drives the binary through bitext mining: texts of unequal size in the space of a random encoder, where equal sentences
//! are translations, and vectors.

mod common;

use std::path::Path;

use crate::common::{Folder, done, refused};

const SOURCE: &str =
    "the house\na blue flower\nthe cat is here\nit rains\nthe house\nwe are many\n";
const TARGET: &str = "nothing at all\nit rains\nthe cat is here\nanother line of text\na blue flower\nso be it\nand so on\n";
const GOLD: &str =
    "a blue flower\ta blue flower\nthe cat is here\tthe cat is here\nit rains\tit rains\n";

fn encoder() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hub/tests/fixtures/bert");
    folder.to_str().unwrap().to_owned()
}

#[test]
fn equal_sentences_are_mined_from_text_and_from_vectors() {
    let folder: &Path = &Folder::new();
    let put = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    put("a", SOURCE);
    put("b", TARGET);
    put("gold", GOLD);
    let model = encoder();
    let base = format!("mine --model {model} --text en=a --text fr=b --layers 1 --device cpu");
    let run = |flags: &str| done(folder, &format!("{base} {flags}"));
    let mined = run("--gold gold --margin absolute --out pairs.tsv");
    assert_eq!((&mined["rows"][0], &mined["rows"][1]), (&5.into(), &7.into()));
    assert_eq!(mined["repeated"][0], 1);
    assert_eq!(mined["best"]["f1"], 1.0, "{mined}");
    assert!(mined["score"].is_null(), "no threshold was given");
    let pairs = read("pairs.tsv");
    assert!(pairs.starts_with("score\tsource\ttarget\n1.000000\t"), "{pairs}");
    // The threshold of one text, used on another; the same command again finds its vectors and its search.
    put("dev.json", &mined.to_string());
    let chosen = "--threshold-from dev.json --margin absolute --gold gold --work work";
    let again = run(&format!("{chosen} --out again.jsonl"));
    assert_eq!((&again["pairs"], &again["score"]["f1"]), (&3.into(), &1.0.into()));
    assert!(read("again.jsonl").contains(r#""source":"it rains","target":"it rains""#));
    let third = run(&format!("{chosen} --out third.jsonl"));
    assert_eq!(read("third.jsonl"), read("again.jsonl"));
    assert_eq!(third["score"], again["score"]);
    let kept = std::fs::read_dir(folder.join("work"))
        .unwrap()
        .map(|one| one.unwrap().file_name().into_string().unwrap());
    let kept: Vec<String> = kept.collect();
    let vectors: Vec<&String> = kept.iter().filter(|name| name.ends_with(".npy")).collect();
    assert_eq!(vectors.len(), 2, "{kept:?}");
    // Vectors that are not as they were written are encoded again.
    let damaged = folder.join("work").join(vectors[0]);
    let sound = std::fs::read(&damaged).unwrap();
    let mut bytes = sound.clone();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&damaged, bytes).unwrap();
    run(&format!("{chosen} --out fourth.jsonl"));
    assert_eq!(read("fourth.jsonl"), read("again.jsonl"));
    assert_eq!(std::fs::read(&damaged).unwrap(), sound);
    // So is a search whose state is damaged made anew, and the damaged one is set aside.
    let states: Vec<&String> = kept.iter().filter(|name| name.ends_with(".state")).collect();
    assert_eq!(states.len(), 1, "{kept:?}");
    let state = folder.join("work").join(states[0]);
    let sound = std::fs::read(&state).unwrap();
    let mut bytes = sound.clone();
    bytes[5] ^= 1;
    std::fs::write(&state, &bytes).unwrap();
    run(&format!("{chosen} --out fifth.jsonl"));
    assert_eq!(read("fifth.jsonl"), read("again.jsonl"));
    assert_eq!(std::fs::read(&state).unwrap(), sound);
    let beside = |what: &str| state.with_extension(format!("{what}.state"));
    assert_eq!(std::fs::read(beside("damaged")).unwrap(), bytes);
    assert!(!beside("previous").exists());
    // Ids, as in BUCC.
    let numbered = |text: &str, name: &str| -> String {
        text.lines().enumerate().map(|(at, line)| format!("{name}-{at}\t{line}\n")).collect()
    };
    put("a", &numbered(SOURCE, "en"));
    put("b", &numbered(TARGET, "fr"));
    put("gold", "en-1\tfr-4\nen-2\tfr-2\nen-3\tfr-1\n");
    let named = run("--ids --gold gold --margin absolute --threshold 0.9999 --out ids.tsv");
    assert_eq!(named["score"]["recall"], 1.0, "{named}");
    assert!(read("ids.tsv").contains("\ten-3\tfr-1\n"), "{}", read("ids.tsv"));
    // Vectors, rows named by number.
    put("a", SOURCE);
    put("b", TARGET);
    for (text, out) in [("en=a", "a.npy"), ("fr=b", "b.npy")] {
        done(
            folder,
            &format!("encode --model {model} --text {text} --layers 1 --out {out} --device cpu"),
        );
    }
    put("rows", "1\t4\n2\t2\n3\t1\n");
    let vectors = "mine --source a.npy --target b.npy --gold rows --device cpu";
    let best = done(
        folder,
        &format!("{vectors} --out rows.tsv --direction intersection --margin absolute"),
    );
    assert_eq!(best["best"]["f1"], 1.0, "{best}");
}

/// A threshold belongs to a model, a layer and a way of scoring: elsewhere it is refused, with the difference and the remedy.
#[test]
fn a_threshold_of_another_space_is_refused() {
    let folder: &Path = &Folder::new();
    let put = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    put("a", SOURCE);
    put("b", TARGET);
    put("gold", GOLD);
    let (model, other) = (encoder(), encoder() + "-gelu-new");
    let line = |model: &str, layer: &str, more: &str| {
        let mine = format!("mine --model {model} --text en=a --text fr=b --layers {layer}");
        format!("{mine} --device cpu --force --out x.tsv {more}")
    };
    let run = |layer: &str, more: &str| done(folder, &line(&model, layer, more));
    let refuse = |line: &str, expected: &str| refused(folder, line, 1, expected);
    let dev = run("1", "--gold gold");
    assert_eq!((&dev["spaces"][0]["layer"], &dev["spaces"][1]["layer"]), (&1.into(), &1.into()));
    put("dev.json", &dev.to_string());
    let from = "--threshold-from dev.json";
    assert_eq!(run("1", from)["threshold"], dev["best"]["threshold"]);
    let said = refuse(&line(&model, "0", from), "chosen for a source at layer 1 and not 0");
    assert!(said.contains("--threshold "), "{said}");
    refuse(&line(&other, "1", from), "chosen for a source with the model ");
    refuse(&line(&model, "1", &format!("{from} --neighbors 2")), "mined in another way");
    // A value that is given stands for itself.
    run("0", "--threshold 1.1");
    // What an earlier version wrote does not say what it was chosen with.
    let mut old = dev.clone();
    old.as_object_mut().unwrap().remove("spaces");
    put("dev.json", &old.to_string());
    refuse(&line(&model, "1", from), "does not say which model and layer");
}

#[test]
fn bad_requests_are_refused_by_name() {
    let folder: &Path = &Folder::new();
    let put = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    put("a", SOURCE);
    put("b", TARGET);
    put("gold", "it rains\tit pours\n");
    put("json", "{}");
    let model = encoder();
    let refuse = |flags: &str, code, expected: &str| {
        let base = format!("mine --model {model} --device cpu --text en=a --text fr=b");
        refused(folder, &format!("{base} {flags}"), code, expected);
    };
    refuse("--gold gold --out x.tsv", 1, "`it pours` is not in the target");
    refuse("--out x", 2, "name it .tsv or .jsonl");
    refuse("--out x.tsv --layers all", 2, "pairs are mined at one layer");
    refuse("--out x.tsv --threshold-from json", 1, "json: missing field");
    refuse("--out x.tsv --ids", 1, "a:1: no tab");
    refuse("--out x.tsv --text de=b", 2, "3 languages of text");
    refused(folder, "mine --source a --out x.tsv", 2, "--target");
}
