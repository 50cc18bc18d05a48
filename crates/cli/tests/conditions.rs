//! What `isogloss pretrain` makes of presets, scales, files and flags: a run is what its name says.

mod common;

use std::fs;
use std::path::Path;

use crate::common::{done, json, ran, refused, with_world};

/// Conditions differ only in what they say: each runs, and says so.
#[test]
fn every_condition_runs() {
    let folder = with_world();
    let names = [
        "default",
        "default-anchors",
        "no-anchors",
        "extra-anchors",
        "sep-emb",
        "sep-l1-6",
        "sep-emb-l1-6",
        "monolingual",
        "same-language",
        "untrained",
        "window-20",
    ];
    for name in names {
        let steps = if name == "untrained" { "" } else { "--steps 2" };
        let begin = format!("pretrain --world world --preset {name} --out {name} {steps}");
        let summary = done(&folder, &begin);
        assert_eq!(summary["preset"], name);
        let languages = if name == "monolingual" { 1 } else { 2 };
        assert_eq!(summary["perplexity"].as_object().unwrap().len(), languages, "{name}");
    }
}

/// One language as two (Conneau et al. 2020, §5.2): one encoder, embeddings for each, and commands are given
/// the two sides as `LANG` and `LANG-b`, on paraphrases or on anything else. The same on plain text.
#[test]
fn a_language_is_trained_twice_in_one_encoder() {
    let folder: &Path = &with_world();
    let short = "--preset same-language --steps 2 --text.dev 50";
    let text = "--text en=world/text/qaa.base.txt --text.lines true";
    for (out, input, [first, second]) in
        [("world-run", "--world world", ["qaa", "qaa-b"]), ("text-run", text, ["en", "en-b"])]
    {
        done(folder, &format!("pretrain --out {out} {input} {short}"));
        let config = json(&folder.join(out).join("config.json"));
        assert_eq!(config["encoder"]["languages"], serde_json::json!([first, second]));
        assert_eq!(config["encoder"]["separate"], "embeddings");
        let sides = [
            format!("{first}=world/tatoeba/tatoeba.qab-qaa.qaa"),
            format!("{second}=world/parallel/paraphrase.qaa.txt"),
        ];
        let parallel = format!("--parallel {} --parallel {}", sides[0], sides[1]);
        let found = done(folder, &format!("retrieve --model {out} {parallel}"));
        assert_eq!(found["rows"], 40, "{found}");
    }
}

/// A file holds all keys of its condition; under another's name it would be a lie.
#[test]
fn a_file_keeps_its_preset_and_scale() {
    let folder: &Path = &with_world();
    let again = "pretrain run/config.toml --out again";
    let begin = "pretrain --world world --preset no-anchors --steps 2";
    done(folder, &format!("{begin} --out run"));
    let printed = refused(
        folder,
        &format!("{again} --preset untrained"),
        2,
        "the file's configuration is of preset `no-anchors`",
    );
    assert!(printed.contains("leave preset `untrained` out, or begin from it"), "{printed}");
    refused(folder, &format!("{again} --scale small"), 2, "is of scale `tiny`");
    refused(folder, &format!("{again} --set preset=untrained"), 2, "--preset NAME");
    let same = "--preset no-anchors --scale tiny --seed 2";
    assert_eq!(done(folder, &format!("{again} {same}"))["preset"], "no-anchors");
}

/// What is printed on standard error by a run of two updates, and the configuration it left.
fn two_updates(folder: &std::path::Path, out: &str, flags: &str) -> (String, String) {
    let [_, said] = ran(folder, &format!("pretrain --steps 2 --out {out} {flags}"));
    (said, fs::read_to_string(folder.join(out).join("config.toml")).unwrap())
}

/// The share of layers that a preset separates is of the layers that there are in the end.
#[test]
fn separate_layers_follow_the_flags() {
    let folder = with_world();
    let separate = |out: &str, flags: &str, expected: &str| {
        let (_, config) = two_updates(&folder, out, flags);
        assert!(config.contains(&format!("separate = \"{expected}\"")), "{config}");
    };
    let preset = "--world world --preset sep-emb-l1-3";
    separate("two", &format!("{preset} --encoder.layers 2"), "embeddings, 1");
    separate("five", "two/config.toml --encoder.layers 5", "embeddings, 1-2");
    separate("own", &format!("{preset} --encoder.separate 'embeddings, 3'"), "embeddings, 3");
    separate("deep", "own/config.toml --encoder.layers 5", "embeddings, 3");
}

#[test]
fn what_a_short_run_leaves_out_is_said() {
    let folder = with_world();
    let (printed, _) = two_updates(&folder, "short", "--world world");
    assert!(printed.contains("stages: they last 600 updates and the run 2"), "{printed}");
    assert!(printed.contains("adam.schedule.warmup: it is as long as the run of 2"), "{printed}");
    let whole = "short/config.toml --set stages=[] --adam.schedule.warmup 1";
    let (printed, _) = two_updates(&folder, "whole", whole);
    assert!(!printed.contains("stages:") && !printed.contains("warmup:"), "{printed}");
}
