//! `isogloss study` as people meet it: a small study of one's own, run, killed, run again, changed.

mod common;

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{command, done, isogloss, refused};

/// A study that takes seconds; `more` goes before its tables.
fn study(folder: &Path, more: &str) {
    let text = format!(
        r#"
question = "Does it run?"
evaluate = ["ner", "retrieval", "words", "similarity", "word-retrieval", "shift", "shifted-transfer"]
{more}

[[systems]]
factors = {{ system = "bilingual" }}

[[systems]]
factors = {{ system = "word2vec" }}
model = "word2vec"
flags = ["--epochs", "1"]

[[worlds]]
flags = ["--sentences", "3000", "--set", "tatoeba=50", "--set", "parallel={{train=200,dev=10,test=10}}",
  "--set", "nli={{train=30,dev=9,test=9}}", "--set", "ner={{train=60,dev=20,test=20}}",
  "--set", "treebank={{train=60,dev=20,test=20,parallel=20}}"]

[scales.tiny]
pretrain = ["--steps", "20", "--text.dev", "100"]
transfer = ["--quick", "--epochs", "1"]
"#
    );
    std::fs::write(folder.join("mine.toml"), text).unwrap();
}

/// The first word of a step's command after the program's name.
fn verb(step: &Value) -> Option<&str> {
    step["command"].as_str()?.split(' ').nth(1)
}

fn planned(folder: &Path) -> Value {
    done(folder, &["study", "plan", "mine.toml"])
}

#[test]
fn a_study_runs_once_and_a_change_reruns_what_depends_on_it() {
    let place = TempDir::new().unwrap();
    let folder = place.path();
    study(folder, "");
    let plan = planned(folder);
    let steps = plan["steps"].as_array().unwrap().len();
    assert_eq!(plan["to_run"], steps);
    let commands: Vec<&str> = plan["steps"].as_array().unwrap().iter().filter_map(verb).collect();
    assert_eq!(commands[..2], ["world", "pretrain"]);

    let ran = done(folder, &["study", "run", "mine.toml"]);
    assert_eq!((ran["run"].as_u64(), ran["found"].as_u64()), (Some(steps as u64), Some(0)));
    let again = done(folder, &["study", "run", "mine.toml"]);
    assert_eq!((again["run"].as_u64(), again["found"].as_u64()), (Some(0), Some(steps as u64)));

    let rows = done(folder, &["results", "--study", "mine"]);
    let text = rows.to_string();
    for measure in ["f1", "retrieval", "p@1", "cka", "mrr", "bleu1", "convert-rate", "alpha"] {
        assert!(text.contains(&format!("\"{measure}\"")), "no {measure} among the results");
    }

    // Another way to fine-tune leaves pretraining and all else as it is.
    let file = std::fs::read_to_string(folder.join("mine.toml")).unwrap();
    let changed = file
        .replace("\"--epochs\", \"1\"]\n\"", "")
        .replace("--quick\", \"--epochs\", \"1\"", "--quick\", \"--epochs\", \"2\"");
    std::fs::write(folder.join("mine.toml"), changed).unwrap();
    let plan = planned(folder);
    let open: Vec<&str> = plan["steps"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|step| step["done"] == false)
        .filter_map(verb)
        .collect();
    assert!(!open.is_empty() && open.iter().all(|verb| *verb == "transfer"), "{open:?}");

    // Another seed is another world.
    let plan = done(folder, &["study", "plan", "mine.toml", "--seeds", "2"]);
    assert_eq!(plan["to_run"].as_u64().unwrap() as usize, plan["steps"].as_array().unwrap().len());
}

#[test]
fn a_study_that_is_killed_goes_on() {
    let place = TempDir::new().unwrap();
    let folder = place.path();
    study(folder, "");
    let text = std::fs::read_to_string(folder.join("mine.toml")).unwrap();
    let short = text
        .replace("\"retrieval\", \"words\", \"similarity\", \"word-retrieval\", \"shift\", ", "");
    std::fs::write(folder.join("mine.toml"), short).unwrap();
    for milliseconds in [150, 900, 1700] {
        let mut child = command(folder, &["study", "run", "mine.toml", "--json"])
            .stderr(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(milliseconds));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let ran = done(folder, &["study", "run", "mine.toml"]);
    let all = planned(folder)["steps"].as_array().unwrap().len() as u64;
    assert_eq!(ran["run"].as_u64().unwrap() + ran["found"].as_u64().unwrap(), all);

    // The same numbers as in a laboratory where nothing was killed.
    done(folder, &["study", "run", "mine.toml", "--lab", "other"]);
    let numbers = |lab: &str| {
        let rows = done(folder, &["results", "--study", "mine", "--lab", lab, "--measure", "f1"]);
        let rows = rows["records"].as_array().unwrap().clone();
        assert!(!rows.is_empty());
        rows.iter().map(|row| (row["factors"].clone(), row["value"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(numbers("lab"), numbers("other"));
}

#[test]
fn a_step_that_fails_is_named_and_the_rest_is_done() {
    let place = TempDir::new().unwrap();
    let folder = place.path();
    study(folder, "");
    let text = std::fs::read_to_string(folder.join("mine.toml")).unwrap();
    let bad =
        text.replace("\"--epochs\", \"1\"]\n\n[[worlds]]", "\"--epochs\", \"none\"]\n\n[[worlds]]");
    let bad = bad.replace(
        "\"ner\", \"retrieval\", \"words\", \"similarity\", \"word-retrieval\", \"shift\", \"shifted-transfer\"",
        "\"word-retrieval\"",
    );
    std::fs::write(folder.join("mine.toml"), bad).unwrap();
    let output = isogloss(folder, &["study", "run", "mine.toml"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("1 of 9 steps failed, and 3 that need them"), "{errors}");
    assert!(errors.contains("none") && errors.contains("its log:"), "{errors}");
    assert!(
        !done(folder, &["results", "--study", "mine"])["records"].as_array().unwrap().is_empty()
    );
}

#[test]
fn what_makes_no_sense_is_refused() {
    let place = TempDir::new().unwrap();
    let folder = place.path();
    refused(folder, &["study", "run", "anchor"], 2, "anchors");
    refused(folder, &["study", "run", "none.toml"], 1, "none.toml");
    refused(folder, &["study", "plan", "anchors", "--scale", "huge"], 2, "tiny, small, paper");
    let real = ["study", "plan", "anchors", "--data", "nowhere", "--pair", "en-fr"];
    refused(folder, &real, 1, "en.*.txt.zst");
    let listed = done(folder, &["study", "list"]);
    assert_eq!(listed["studies"].as_array().unwrap().len(), 13);
}
