//! `isogloss transfer --shift-layer`: target languages scored as trained and shifted.

mod common;

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::Value;

use crate::common::{Shared, done, json, refused};

/// A folder with a small world, an encoder that was trained for some seconds, and its language means.
static MADE: LazyLock<Shared> = LazyLock::new(|| {
    let folder = Shared::new("transfer_shift");
    let sizes = "--set nli={train=60,dev=30,test=30} --set ner={train=1500,dev=150,test=150} \
                 --set treebank={train=60,dev=30,test=30} --set parallel.train=9 --set tatoeba=40";
    let world = "world generate --out world --sentences 5000";
    done(folder.path(), &format!("{world} {sizes}"));
    let run = "pretrain --preset no-anchors --world world --out run";
    done(folder.path(), &format!("{run} --steps 600"));
    done(folder.path(), &format!("shift means --model run --out run/means.safetensors {TEXTS}"));
    folder
});

const TEXTS: &str = "--text qaa=world/text/qaa.base.txt --text qab=world/text/qab.base.txt";

/// A transfer of entities whose upper layers learn.
fn transfer(out: &str, more: &str) -> String {
    let fixed =
        "transfer --task ner --quick --epochs 2 --model run --world world --train-layers 3-4";
    format!("{fixed} --out {out} {more}")
}

fn predicted(folder: &Path, run: &str, how: &str) -> Vec<u8> {
    fs::read(folder.join(run).join(format!("predictions/qab.{how}panx-test-qab.tsv"))).unwrap()
}

#[test]
fn alpha_is_chosen_on_dev_and_reported_on_test() {
    let folder = MADE.path();
    let weights = "--shift-layer 2 --alpha 0,0.5,1,1.5 --seeds 1,2";
    let summary = done(folder, &transfer("chosen", weights));
    let shift = &summary["shift"];
    let signature = shift["signature"].as_str().unwrap();
    assert!(
        signature.starts_with("shift:mean|layer:2|towards:qaa|weight:best on the target's dev"),
        "{signature}"
    );
    assert!(shift["sets"].as_object().unwrap().keys().eq(["qab"]), "the source is not shifted");
    let set = &shift["sets"]["qab"];
    assert_eq!(set["plain"]["mean"], summary["results"][1]["mean"]);
    let (plain, shifted) =
        (set["plain"]["mean"].as_f64().unwrap(), set["shifted"]["mean"].as_f64().unwrap());
    assert!(shifted > plain + 0.1, "a shared space needs its shift: {plain} {shifted}");
    let curve: Vec<f64> = set["curve"]
        .as_array()
        .unwrap()
        .iter()
        .map(|point| point["dev"].as_f64().unwrap())
        .collect();
    assert!(curve.len() == 4 && curve[2] > curve[0], "{curve:?}");

    // Each model that was fine-tuned takes the best of its own curve.
    let results = json(&folder.join("chosen/results.json"));
    for (record, alpha) in results.as_array().unwrap().iter().zip(set["alphas"].as_array().unwrap())
    {
        let shifted = &record["shifted"]["qab"];
        let points = shifted["curve"].as_array().unwrap();
        let dev = |point: &Value| point["dev"].as_f64().unwrap();
        let best = points.iter().map(dev).fold(f64::MIN, f64::max);
        let chosen = points.iter().find(|point| point["alpha"] == shifted["alpha"]);
        assert_eq!(dev(chosen.expect("a point of the curve")), best);
        assert_eq!(shifted["alpha"], *alpha);
        assert_eq!(record["tests"].as_object().unwrap().len(), 2);
    }
    let gold = "world/ner/panx-test-qab.tsv";
    let files =
        format!("--gold {gold} --predicted chosen/predictions/qab.shifted.panx-test-qab.tsv");
    assert_eq!(done(folder, &format!("score --task ner {files}")), set["score"]);
}

#[test]
fn an_alpha_of_0_changes_nothing_and_the_difference_is_that_of_the_means() {
    let folder = MADE.path();
    let run = |out: &str, more: &str| {
        let summary = done(folder, &transfer(out, &format!("--shift-layer 2 {more}")));
        summary["shift"]["sets"]["qab"].clone()
    };
    let nothing = run("nothing", "--alpha 0");
    assert_eq!(nothing["plain"], nothing["shifted"]);
    assert_eq!(nothing["alpha"], 0.0);
    assert!(predicted(folder, "nothing", "") == predicted(folder, "nothing", "shifted."));

    // Nothing added on the way that stops at the layer and goes on from there.
    let difference = |to: &str, out: &str| {
        let flags = format!("--from qab --to {to} --layer 2 --out {out}");
        done(folder, &format!("shift difference --model run {flags}"))
    };
    assert_eq!(difference("qab", "zero.npy")["length"], 0.0);
    let zero = run("zero", "--shift-vector qab=zero.npy --alpha 1");
    assert_eq!((&zero["alpha"], &zero["shifted"]), (&Value::from(1.0), &zero["plain"]));
    assert!(predicted(folder, "zero", "shifted.") == predicted(folder, "nothing", ""));

    // Once from the means, once from the array of their difference.
    difference("qaa", "d.npy");
    let means = run("means", "--means run/means.safetensors --alpha 0.75");
    let array = run("array", "--shift-vector qab=d.npy --alpha 0.75");
    assert_eq!(means["score"], array["score"]);
    assert_ne!(means["shifted"], means["plain"]);
    assert!(predicted(folder, "means", "shifted.") == predicted(folder, "array", "shifted."));
    assert!(predicted(folder, "means", "") == predicted(folder, "nothing", ""));

    // After the last layer, where no layer is left to run.
    let zero = "--shift-layer 4 --shift-vector qab=zero.npy --alpha 1";
    let last = done(folder, &transfer("last", zero));
    assert_eq!(last["shift"]["sets"]["qab"]["plain"], last["shift"]["sets"]["qab"]["shifted"]);

    // No subword is shared here, so a shift by sharing is the same.
    let sharing = run("sharing", "--shift-kind sharing --alpha 0.75");
    let bands = run("bands", "--shift-kind bands --alpha 0.75");
    assert_eq!(sharing["shifted"], means["shifted"]);
    assert_ne!(bands["score"], means["score"]);
}

#[test]
fn a_frozen_layer_can_be_shifted_below() {
    let folder = MADE.path();
    let layers = "--feature-layer 2 --new-layers 1 --shift-layer 1";
    let fixed = "transfer --task ner --quick --model run --world world";
    let summary = done(folder, &format!("{fixed} {layers} --out frozen --alpha 0,1"));
    let curve = &summary["shift"]["sets"]["qab"]["curve"];
    assert_ne!(curve[0]["dev"], curve[1]["dev"], "{curve}");
}

#[test]
fn what_would_not_be_a_shift_is_refused() {
    let folder = MADE.path();
    let dev = "--dev=qab=world/ner/panx-dev-qab.tsv";
    let sets = "--train=qaa=world/ner/panx-train-qaa.tsv --dev=qaa=world/ner/panx-dev-qaa.tsv \
            --test=qaa=world/ner/panx-test-qaa.tsv";
    let test = "--test=qab=world/ner/panx-test-qab.tsv";
    let fixed = "transfer --task ner --quick --model run --out never";
    let upper = "--train-layers 3-4";
    for (more, reason) in [
        ("--shift-layer 2 DEV TEST", "but everything is trained"),
        ("UPPER --shift-layer 3 DEV TEST", "but layer 3 is trained"),
        ("UPPER --shift-layer 2 TEST --alpha 0,1", "the weight of qab's shift cannot be chosen"),
        ("UPPER --shift-layer 2", "there is no language to shift"),
        ("UPPER DEV TEST", "nothing is chosen on a target language but"),
        (
            "UPPER --shift-layer 2 TEST --means no.file",
            "no.file is not there; make it with `isogloss shift means",
        ),
        ("UPPER --shift-layer 2 --shift-vector qaa=x.npy TEST", "a shift of qaa"),
        ("--feature-layer 2 --shift-layer 3 TEST", "there is no layer 3 to shift"),
        ("UPPER --alpha 1 TEST", "--shift-layer"),
    ] {
        let more = more.replace("UPPER", upper).replace("DEV", dev).replace("TEST", test);
        refused(folder, &format!("{fixed} {sets} {more}"), 2, reason);
        assert!(!folder.join("never").exists(), "nothing is begun");
    }

    let other = "pretrain --preset untrained --world world --out other";
    done(folder, &other);
    done(folder, &format!("shift means --model other --out other/means.safetensors {TEXTS}"));
    let means = "--shift-layer 2 --means other/means.safetensors";
    refused(folder, &transfer("never", means), 2, "holds the mean vectors of another model");
}

/// Where a language has one labelled file only, the weight is chosen on one half and the other is reported.
#[test]
fn nothing_is_chosen_on_what_is_reported() {
    let folder = MADE.path();
    let fixed = "transfer --task ner --quick --epochs 1 --limit 300 --allow-unseen --model run \
            --train-layers 3-4 --shift-layer 2 --alpha 0,1 --train \
            qaa=world/ner/panx-train-qaa.tsv --dev qaa=world/ner/panx-dev-qaa.tsv";
    let halves = "--halves qab=world/ner/panx-test-qab.tsv --out halves";
    let result = done(folder, &format!("{fixed} {halves}"));
    let sets: Vec<(&str, u64)> = result["sets"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, set)| (name.as_str(), set["items"].as_u64().unwrap()))
        .collect();
    let predicted = fs::read_to_string(folder.join("halves/predictions/qab.panx-test-qab.tsv"));
    let predicted = predicted.unwrap();
    let sentences = predicted.split("\n\n").filter(|sentence| !sentence.trim().is_empty());
    assert_eq!(sentences.count(), 75, "{sets:?}");
    // The second sentence of the file is the first that is scored.
    let words = |text: &str, number: usize| -> Vec<String> {
        let sentence = text.split("\n\n").nth(number).unwrap().trim();
        sentence.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
    };
    let whole = fs::read_to_string(folder.join("world/ner/panx-test-qab.tsv")).unwrap();
    assert_eq!(words(&predicted, 0), words(&whole, 1));
    assert_eq!(words(&predicted, 1), words(&whole, 3));
    // The two halves given as files of their own give the same.
    let part = |start: usize| -> String {
        let sentences = whole.split("\n\n").filter(|sentence| !sentence.trim().is_empty());
        sentences
            .skip(start)
            .step_by(2)
            .map(|sentence| format!("{}\n\n", sentence.trim()))
            .collect()
    };
    fs::write(folder.join("odd.tsv"), part(0)).unwrap();
    fs::write(folder.join("even.tsv"), part(1)).unwrap();
    let files = "--dev qab=odd.tsv --test qab=even.tsv --out files";
    let files = done(folder, &format!("{fixed} {files}"));
    assert_eq!(files["scores"], result["scores"]);
    assert_eq!(files["shift"]["sets"], result["shift"]["sets"]);
}
