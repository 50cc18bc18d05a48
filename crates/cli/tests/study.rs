//! `isogloss study` as people meet it: a small study of one's own, run, killed, run again, changed.

mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use lab::study::{CPU, StepId, Study, StudyPlan};
use serde_json::Value;
use terms::Scale;

use crate::common::{Folder, command, done, isogloss, json, ran, refused};

/// What a study that takes seconds evaluates, and its second system.
const ALL: &str = r#""ner", "retrieval", "align-words", "similarity", "word-retrieval", "shift", "shifted-transfer""#;
const WORD2VEC: &str = r#"
[[systems]]
factors = { system = "word2vec" }
model = "word2vec"
flags = ["--epochs", "1"]
"#;

/// A study that takes seconds.
fn study(folder: &Path) {
    let text = format!(
        r#"
question = "Does it run?"
evaluate = [{ALL}]

[[systems]]
factors = {{ system = "bilingual" }}
{WORD2VEC}
[[worlds]]
flags = ["--sentences", "3000", "--set", "tatoeba=50", "--set", "parallel={{train=200,dev=10,test=10}}",
  "--set", "nli={{train=30,dev=9,test=9}}", "--set", "ner={{train=200,dev=20,test=20}}",
  "--set", "treebank={{train=60,dev=20,test=20,parallel=20}}"]

[scales.tiny]
pretrain = ["--steps", "20", "--text.dev", "100"]
transfer = ["--quick", "--epochs", "1"]
"#
    );
    std::fs::write(folder.join("mine.toml"), text).unwrap();
}

/// Writes something else for parts of it.
fn edit(folder: &Path, changes: &[(&str, &str)]) {
    let file = folder.join("mine.toml");
    let mut text = std::fs::read_to_string(&file).unwrap();
    for (from, to) in changes {
        assert!(text.contains(from), "{text} has no {from}");
        text = text.replace(from, to);
    }
    std::fs::write(file, text).unwrap();
}

const LONGER: (&str, &str) = (r#"["--quick", "--epochs", "1"]"#, r#"["--quick", "--epochs", "2"]"#);

/// The first word of a step's command after the program's name.
fn verb(step: &Value) -> Option<&str> {
    step["command"].as_str()?.split(' ').nth(1)
}

/// The verbs of the steps that are to be run.
fn open(plan: &Value) -> Vec<&str> {
    let open = plan["steps"].as_array().unwrap().iter().filter(|step| step["done"] == false);
    open.filter_map(verb).collect()
}

fn planned(folder: &Path) -> Value {
    done(folder, &format!("study plan mine.toml --device {CPU}"))
}

#[test]
fn a_study_runs_once_and_a_change_reruns_what_depends_on_it() {
    let folder: &Path = &Folder::new();
    study(folder);
    let plan = planned(folder);
    let steps = plan["steps"].as_array().unwrap().len();
    assert_eq!(plan["to_run"], steps);
    let commands: Vec<&str> = plan["steps"].as_array().unwrap().iter().filter_map(verb).collect();
    assert_eq!(commands[..2], ["world", "pretrain"]);

    let ran = done(folder, "study run mine.toml");
    assert_eq!((ran["run"].as_u64(), ran["cached"].as_u64()), (Some(steps as u64), Some(0)));
    let again = done(folder, "study run mine.toml");
    assert_eq!((again["run"].as_u64(), again["cached"].as_u64()), (Some(0), Some(steps as u64)));

    let rows = done(folder, "results --study mine");
    let text = rows.to_string();
    for measure in ["f1", "retrieval", "p_at_1", "cka", "mrr", "bleu1", "conversion_rate", "alpha"]
    {
        assert!(text.contains(&format!("\"{measure}\"")), "no {measure} among the results");
    }

    // Another way to fine-tune leaves pretraining and all else as it is.
    edit(folder, &[LONGER]);
    let plan = planned(folder);
    let open = open(&plan);
    assert!(!open.is_empty() && open.iter().all(|verb| *verb == "transfer"), "{open:?}");

    // Seeds of the one and the other would be averaged: a laboratory has results of one of them.
    let differing = "--transfer: `--quick --epochs 1` there";
    let reason = refused(folder, "study run mine.toml", 2, differing);
    assert!(reason.contains("--lab") && reason.contains("--force"), "{reason}");
    let before = done(folder, "results --study mine")["records"].clone();
    let forced = done(folder, "study run mine.toml --force");
    assert_eq!(forced["run"].as_u64(), Some(open.len() as u64));
    let records = |rows: &Value| rows.as_array().unwrap().len();
    let now = done(folder, "results --study mine")["records"].clone();
    assert_eq!(records(&now), records(&before));
    // The former results return without a step being run.
    study(folder);
    let restored = done(folder, "study run mine.toml --force");
    assert_eq!(restored["run"].as_u64(), Some(0));
    assert_eq!(done(folder, "results --study mine")["records"], before);
    let plan = planned(folder);

    // What is kept of a step says where it computed.
    let pretrained = plan["steps"].as_array().unwrap().iter().find(|s| verb(s) == Some("pretrain"));
    let step = std::fs::read(kept(folder, pretrained.unwrap()).join("step.json")).unwrap();
    let step: Value = serde_json::from_slice(&step).unwrap();
    assert_eq!(step["device"], CPU);
    if cfg!(target_os = "linux") {
        assert!(step["peak_memory"].as_u64().is_some_and(|bytes| bytes > 1 << 20), "{step}");
    }
    assert!(step["command"].as_str().unwrap().ends_with("--device cpu"), "{step}");

    // Another seed is another world.
    let plan = done(folder, "study plan mine.toml --seeds 2");
    assert_eq!(plan["to_run"].as_u64().unwrap() as usize, plan["steps"].as_array().unwrap().len());
}

#[test]
fn a_step_that_fails_is_named_and_the_rest_is_done() {
    let folder: &Path = &Folder::new();
    study(folder);
    let none = WORD2VEC.replace('1', "none");
    edit(folder, &[(WORD2VEC, &none), (ALL, r#""word-retrieval""#)]);
    let errors = refused(
        folder,
        "study run mine.toml --jobs 3",
        1,
        "1 of 9 steps failed, 3 that depend on them",
    );
    assert!(errors.contains("none") && errors.contains("its log:"), "{errors}");
    let records = || done(folder, "results --study mine")["records"].as_array().unwrap().clone();
    let before = records();
    assert!(!before.is_empty());

    // A result that cannot be read is a failure of its step alone: what comes after is still filed.
    let plan = planned(folder);
    let steps = plan["steps"].as_array().unwrap();
    let read = steps.iter().find(|step| step["done"] == true && verb(step) == Some("align"));
    let result = kept(folder, read.unwrap()).join("result.json");
    std::fs::write(&result, "{}").unwrap();
    let errors = refused(folder, "study run mine.toml", 1, "2 of 9 steps failed");
    assert!(errors.contains("its result does not parse (missing field `signature`)"), "{errors}");
    assert_eq!(records(), before);
}

/// A rebuilt program finds what it would compute again, says that builds are mixed, and runs all again on demand.
#[test]
fn results_of_another_build_are_said_to_be_so() {
    let folder: &Path = &Folder::new();
    one_encoder(folder, "20");
    let steps = done(folder, "study run mine.toml --threads 1")["run"].clone();
    let plan = planned(folder);
    let first = kept(folder, &plan["steps"][1]);
    let read = |name: &str| -> Value { json(&first.join(name)) };
    let (mut step, result) = (read("step.json"), read("result.json"));
    assert_eq!(
        (&step["build"], &step["revision"]),
        (&result["build"], &plan["steps"][1]["revision"])
    );
    assert!(step["build"].as_str().unwrap().starts_with(env!("CARGO_PKG_VERSION")), "{step}");
    assert!(!step["command"].as_str().unwrap().contains("--threads"), "{step}");

    step["build"] = "0.0.9 (an older commit)".into();
    assert!(step.as_object_mut().unwrap().remove("blake3").is_some());
    std::fs::write(first.join("step.json"), step.to_string()).unwrap();
    let errors = |line: &str| ran(folder, line)[1].clone();
    let warned = errors("study run mine.toml");
    assert!(warned.contains("steps of 2 builds are put together: 1 of 0.0.9"), "{warned}");
    let fresh = done(folder, "study run mine.toml --fresh");
    assert_eq!((&fresh["run"], &fresh["cached"]), (&steps, &0.into()));
    assert_eq!(fresh["builds"].as_object().unwrap().len(), 1, "{fresh}");
    assert!(!errors("study run mine.toml").contains("builds"));
}

#[test]
fn every_key_of_a_study_is_explained_in_one_that_can_be_planned() {
    let folder: &Path = &Folder::new();
    let keys = isogloss(folder, "study keys");
    std::fs::write(folder.join("mine.toml"), keys.stdout).unwrap();
    assert!(planned(folder)["to_run"].as_u64().unwrap() > 3);
    std::fs::write(folder.join("mine.toml"), "question = \"?\"\nreal = 3\n").unwrap();
    refused(folder, "study plan mine.toml", 2, "mine.toml, line 2, `real`: ");
}

/// Two machines run a seed each; their results are put together, and nothing is run that is there.
#[test]
fn packs_of_two_machines_add_up_and_what_is_there_is_not_run_again() {
    let folder: &Path = &Folder::new();
    one_encoder(folder, "20");
    edit(folder, &[(r#"["ner"]"#, r#"["ner", "retrieval"]"#)]);
    let run = |lab: &str, more: &str| {
        let ran = done(folder, &format!("study run mine.toml --device {CPU} --lab {lab} {more}"));
        (ran["run"].as_u64().unwrap(), ran["cached"].as_u64().unwrap())
    };
    let (steps, _) = run("one", "--seeds 1");
    run("two", "--seeds 2");
    for lab in ["one", "two"] {
        let made = done(folder, &format!("study pack {lab} --out {lab}.tar.zst"));
        assert_eq!(made["steps"].as_u64(), Some(steps));
        let added = done(folder, &format!("study unpack {lab}.tar.zst --lab both"));
        assert_eq!((&added["steps"], &added["numbers"]), (&made["steps"], &made["numbers"]));
        assert!(made["numbers"].as_u64() > Some(0) && made["bytes"].as_u64() < Some(100_000));
    }
    refused(folder, "study pack one --out one.tar.zst", 2, "--force");
    // Before anything is run, the numbers of both are there; then they are filed again, and no weights are needed.
    let both = values(folder, "mine", "both");
    assert_eq!(run("both", "--seeds 1,2"), (0, 2 * steps));
    assert_eq!(values(folder, "mine", "both"), both);
    let mut all = [values(folder, "mine", "one"), values(folder, "mine", "two")].concat();
    let mut again = both.clone();
    all.sort_by_key(Value::to_string);
    again.sort_by_key(Value::to_string);
    assert_eq!(all, again);
    let again = done(folder, "study unpack one.tar.zst --lab both");
    assert_eq!((again["steps"].as_u64(), again["numbers"].as_u64()), (Some(0), Some(0)));

    let unpacked = std::fs::read_dir(folder.join("both/steps")).unwrap().flatten();
    let weights = |step: std::fs::DirEntry| step.path().join("run/model.safetensors").exists();
    assert!(!unpacked.into_iter().any(weights), "an encoder was trained");

    // What another evaluation needs is run for it: the world, the encoder, and itself, of one seed.
    edit(folder, &[(r#""retrieval"]"#, r#""retrieval", "parse"]"#)]);
    let plan = done(folder, &format!("study plan mine.toml --device {CPU} --lab both --seeds 1"));
    let open = open(&plan);
    assert_eq!(open, ["world", "pretrain", "transfer"]);
    assert_eq!(run("both", "--seeds 1"), (3, steps - 2));
    let kept: Vec<Value> =
        values(folder, "mine", "both").into_iter().filter(|row| both.contains(row)).collect();
    assert_eq!(kept, both, "numbers that were there stay");
    // Nor is a step run that is gone, if nothing needs it.
    let mut steps_of_plan = plan["steps"].as_array().unwrap().iter();
    let encoder = steps_of_plan.find(|step| verb(step) == Some("pretrain")).unwrap();
    let encoder = folder.join("both/steps").join(encoder["key"].as_str().unwrap());
    assert!(encoder.join("run/model.safetensors").exists());
    std::fs::remove_dir_all(&encoder).unwrap();
    assert_eq!(run("both", "--seeds 1"), (0, steps));

    // Other settings are refused, with what differs.
    edit(folder, &[(r#", "retrieval", "parse""#, ""), LONGER]);
    run("three", "--seeds 3");
    done(folder, "study pack three --out three.tar.zst");
    let unpack = "study unpack three.tar.zst --lab both";
    refused(folder, &unpack, 2, "--transfer: `--quick --epochs 1` there");
}

/// The folder of a step that a plan names.
fn kept(folder: &Path, step: &Value) -> PathBuf {
    folder.join("lab/steps").join(step["key"].as_str().unwrap())
}

/// A study of one encoder, which evaluates as it goes and is saved when it is asked to stop, not before.
fn one_encoder(folder: &Path, steps: &str) {
    study(folder);
    let often = r#""--evaluate-every", "10", "--checkpoint-every", "1000000", "#;
    let steps = format!("\"--steps\", \"{steps}\", {often}");
    edit(folder, &[(ALL, r#""ner""#), (WORD2VEC, ""), (r#""--steps", "20", "#, &steps)]);
}

/// Runs the study with some flags until its pretrainings are at their tenth update or beyond; gives their folders.
fn begun(folder: &Path, flags: &str) -> (Child, Vec<PathBuf>) {
    let plan = done(folder, &format!("study plan mine.toml --device {CPU} {flags}"));
    let steps = plan["steps"].as_array().unwrap().iter();
    let runs: Vec<PathBuf> = steps
        .filter(|step| verb(step) == Some("pretrain"))
        .map(|step| kept(folder, step))
        .collect();
    let jobs = runs.len().to_string();
    let mut runner = command(folder, &format!("study run mine.toml --jobs {jobs} {flags}"));
    let errors = std::fs::File::create(folder.join("errors")).unwrap();
    let mut runner = runner.stdout(Stdio::null()).stderr(errors).spawn().unwrap();
    let under_way = |run: &PathBuf| {
        let text = std::fs::read_to_string(run.join("run/metrics.jsonl")).unwrap_or_default();
        let mut lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.any(|line| line["step"].as_u64().is_some_and(|step| step >= 10))
    };
    while !runs.iter().all(under_way) {
        assert!(runner.try_wait().unwrap().is_none(), "the study ended before it trained");
        std::thread::sleep(Duration::from_millis(20));
    }
    (runner, runs)
}

/// The measured values of a study, without what depends on place and time.
fn values(folder: &Path, study: &str, lab: &str) -> Vec<Value> {
    let rows = done(folder, &format!("results --study {study} --lab {lab}"));
    let rows = rows["records"].as_array().unwrap();
    assert!(!rows.is_empty());
    let value = |row: &Value| {
        let keys = ["scale", "seed", "measure", "factors", "value", "step", "signature"];
        keys.iter().map(|key| row[*key].clone()).collect()
    };
    rows.iter().map(value).collect()
}

/// Two studies and several steps at once: the records are those of one study after another, step by step.
#[test]
fn steps_side_by_side_give_the_same_records() {
    let folder: &Path = &Folder::new();
    study(folder);
    let nli = (r#""shift", "shifted-transfer""#, r#""nli""#);
    edit(folder, &[("question", "seeds = [1, 2]\nquestion"), nli]);
    // The other study has one step of its own for each system and seed.
    let other = std::fs::read_to_string(folder.join("mine.toml")).unwrap();
    let other = other.replace("evaluate = [", "evaluate = [\"parse\", ");
    std::fs::write(folder.join("other.toml"), other).unwrap();
    for name in ["mine.toml", "other.toml"] {
        done(folder, &format!("study run {name} --lab one"));
    }
    let together = format!("mine.toml other.toml --lab many --device {CPU}");
    let plan = done(folder, &format!("study plan {together}"));
    let steps = plan["steps"].as_array().unwrap().len() as u64;
    let alone = planned(folder)["steps"].as_array().unwrap().len() as u64;
    assert_eq!(steps, alone + 4);
    let ran = done(folder, &format!("study run --jobs 3 --threads 4 {together}"));
    assert_eq!((ran["run"].as_u64(), ran["cached"].as_u64()), (Some(steps), Some(0)));
    assert_eq!(ran["studies"], serde_json::json!(["mine", "other"]));
    for name in ["mine", "other"] {
        assert_eq!(values(folder, name, "one"), values(folder, name, "many"));
    }
    refused(folder, "study run mine.toml ./mine.toml", 2, "two studies are called `mine`");
}

/// A step that is killed beside another is run again by itself; the numbers are those of an undisturbed study.
#[cfg(target_os = "linux")]
#[test]
fn a_step_that_is_killed_beside_another_is_run_again() {
    if !terms::tests::slow() {
        return;
    }
    let folder: &Path = &Folder::new();
    one_encoder(folder, "300");
    let seeds = "--seeds 1,2";
    let (mut runner, runs) = begun(folder, seeds);
    let names: Vec<&str> = runs.iter().filter_map(|run| run.file_name()?.to_str()).collect();
    let of_step = |process: &std::fs::DirEntry| {
        let line = std::fs::read_to_string(process.path().join("cmdline")).unwrap_or_default();
        let own = |name: &&str| line.contains(&format!("{name}/run")) && line.contains("pretrain");
        let here = std::fs::read_link(process.path().join("cwd")).ok()?;
        let own = here == folder.canonicalize().ok()? && own(&names[1]);
        own.then(|| process.file_name().into_string().ok())?
    };
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let victim = processes.filter_map(|process| of_step(&process)).next().expect("it is running");
    assert!(Command::new("kill").args(["-KILL", &victim]).status().unwrap().success());
    assert_eq!(runner.wait().unwrap().code(), Some(0));
    let errors = std::fs::read_to_string(folder.join("errors")).unwrap();
    assert!(errors.contains("killed by signal 9"), "{errors}");
    assert!(errors.contains("it will be run again by itself"), "{errors}");
    done(folder, &format!("study run mine.toml --lab other {seeds}"));
    assert_eq!(values(folder, "mine", "lab"), values(folder, "mine", "other"));
}

#[test]
fn a_step_outlives_its_runner() {
    if !terms::tests::slow() {
        return;
    }
    let folder: &Path = &Folder::new();
    one_encoder(folder, "400");
    let (mut runner, steps) = begun(folder, "");
    let step = &steps[0];
    runner.kill().unwrap();
    runner.wait().unwrap();
    // The command has the lock for as long as it lives.
    let lock = loop {
        match files::lock(step) {
            Err(files::Error::Busy(_)) => std::thread::sleep(Duration::from_millis(20)),
            other => break other.unwrap(),
        }
    };
    let summary = std::fs::read(step.join("run/summary.json")).expect("it went on to its end");
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    assert_eq!(summary["finished"], true);
    drop(lock);
    done(folder, "study run mine.toml");
}

#[cfg(unix)]
#[test]
fn a_runner_that_is_asked_to_stop_asks_its_steps() {
    let folder: &Path = &Folder::new();
    one_encoder(folder, "1000000");
    let (mut runner, steps) = begun(folder, "--seeds 1,2");
    assert_eq!(steps.len(), 2);
    assert!(steps.iter().all(|step| !step.join("run/state.safetensors").exists()));
    // To the runner alone, as `kill` and service managers do.
    let sent = Command::new("kill").args(["-TERM", &runner.id().to_string()]).status().unwrap();
    assert!(sent.success());
    assert_eq!(runner.wait().unwrap().code(), Some(143));
    for step in steps {
        assert!(step.join("run/state.safetensors").exists(), "it was not let save");
        assert!(!step.join("result.json").exists());
    }
}

/// Whatever keeps a step from being resumed, what it has learned stays; only where no checkpoint verifies does it
/// begin anew.
#[cfg(unix)]
#[test]
fn a_step_that_cannot_be_resumed_keeps_its_checkpoint() {
    let folder: &Path = &Folder::new();
    one_encoder(folder, "300");
    let (mut runner, steps) = begun(folder, "");
    let sent = Command::new("kill").args(["-TERM", &runner.id().to_string()]).status().unwrap();
    assert!(sent.success());
    assert_eq!(runner.wait().unwrap().code(), Some(143));
    let state = steps[0].join("run/state.safetensors");
    let before = std::fs::read(&state).unwrap();
    // A text that is not there for a moment.
    let config = std::fs::read_to_string(steps[0].join("run/config.toml")).unwrap();
    let text = config.split('"').find(|part| part.ends_with(".txt")).expect("a text").to_owned();
    let text = folder.join(text);
    let away = text.with_extension("away");
    std::fs::rename(&text, &away).unwrap();
    refused(folder, "study run mine.toml", 1, "what it has learned is kept");
    assert!(std::fs::read(&state).unwrap() == before, "the checkpoint was touched");
    std::fs::rename(&away, &text).unwrap();
    // A checkpoint that rots.
    let mut rotten = before.clone();
    let middle = rotten.len() / 2;
    rotten[middle] ^= 1;
    std::fs::write(&state, &rotten).unwrap();
    ran(folder, "study run mine.toml");
    let log = std::fs::read_to_string(steps[0].join("log")).unwrap();
    assert!(log.contains("was altered since it was written"), "{log}");
    assert!(steps[0].join("run.damaged/state.safetensors").exists());
}

#[test]
fn a_command_needs_nobody_who_listens() {
    let folder: &Path = &Folder::new();
    let sizes = "--set nli.train=3 --set ner.train=9 --set treebank.train=9 --set parallel.train=9";
    done(folder, &format!("world generate --out world --sentences 2000 {sizes}"));
    let training = "pretrain --world world --steps 20 --evaluate-every 5 --out run";
    let vectors = "vectors word2vec --text qaa=world/text/qaa.base.txt --epochs 2 --out words.vec";
    for words in [training, vectors] {
        let mut child = command(folder, &words);
        let mut child = child.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stderr.take());
        assert!(child.wait().unwrap().success(), "{words:?}");
    }
}

/// Every step computes where the plan says, if its command can be told.
#[test]
fn commands_that_have_a_device_are_told_which() {
    let two_words = ["align", "corpus", "shift", "vectors", "vocab", "world"];
    let mut seen = BTreeSet::new();
    for name in Study::names() {
        let study = Study::find(name).unwrap();
        let [cpu, cuda] = [CPU, "cuda"].map(|device| {
            StudyPlan::of(&study, Scale::Tiny, device, &mut |_, _, most| Ok(most)).unwrap()
        });
        for (number, (step, on_cpu)) in cuda.steps.iter().zip(&cpu.steps).enumerate() {
            let words = step.words(StepId(number), |_| PathBuf::from("x"));
            let verb = &words[..if two_words.contains(&&*words[0]) { 2 } else { 1 }];
            assert_eq!(step.device.is_some(), words.ends_with(&["--device".into(), "cuda".into()]));
            assert!(step.device.is_none() || step.key != on_cpu.key, "{}", step.name);
            if seen.insert((verb.to_vec(), step.device.is_some())) {
                let mut help: Vec<&str> = verb.iter().map(String::as_str).collect();
                help.push("--help");
                let help = isogloss(Path::new("."), &help);
                let told = String::from_utf8_lossy(&help.stdout).contains("--device <DEVICE>");
                // Words are aligned on a device by an encoder, not by an IBM model.
                let by_counts = verb == ["word-align"] && !words.contains(&"--model".into());
                assert_eq!(told && !by_counts, step.device.is_some(), "{verb:?}");
            }
        }
    }
    assert!(seen.len() > 10, "{seen:?}");
}

/// What a plan thinks a pretraining is, is what it is.
#[test]
fn a_plan_knows_how_many_updates_there_are() {
    let place = Folder::new();
    let seconds = |pretrain: &str| {
        let words = format!("study plan demo --device {CPU} --pretrain '{pretrain}'");
        let plan = done(&place, &words);
        let steps = plan["steps"].as_array().unwrap().iter();
        let pretrainings = steps.filter(|step| verb(step) == Some("pretrain"));
        pretrainings.map(|step| step["seconds"].as_f64().unwrap()).collect::<Vec<f64>>()
    };
    let (whole, short) = (seconds(""), seconds("--steps 600"));
    assert!(whole[0] > 50.0 && whole[1] < 5.0, "trained, untrained: {whole:?}");
    assert!(short[0] < 0.2 * whole[0] && short[1] == whole[1], "{short:?}");
}

/// In a study of real text, vocabulary and tokenised text are made once for all seeds, and the pretraining of seed 1 is
/// the one that makes them itself.
#[test]
fn real_text_is_prepared_once() {
    let folder: &Path = &common::with_world();
    for language in [["qaa", "en", "eng"], ["qab", "fr", "fra"]] {
        let [own, code, long] = language;
        let read = |name: String| std::fs::read_to_string(folder.join("world").join(name)).unwrap();
        let write = |name: String, bytes: &[u8]| {
            let path = folder.join("data").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        };
        let text = zstd::encode_all(read(format!("text/{own}.base.txt")).as_bytes(), 1).unwrap();
        write(format!("text/{code}.tatoeba.txt.zst"), &text);
        let sentences = read(format!("tatoeba/tatoeba.qab-qaa.{own}"));
        write(format!("tatoeba/tatoeba.fra-eng.{long}"), sentences.as_bytes());
        let pairs: String =
            sentences.lines().map(|line| format!("{line}\t{line}\tneutral\n")).collect();
        for part in ["dev", "test"] {
            write(format!("xnli/{part}-{code}.tsv"), pairs.as_bytes());
        }
    }
    let study = "question = \"?\"\nevaluate = [\"retrieval\"]\nconditions = [\"no-anchors\"]\n";
    std::fs::write(folder.join("mine.toml"), study).unwrap();
    let real = format!("mine.toml --data data --pair en-fr --seeds 1,2 --device {CPU}");
    let real = format!("{real} --pretrain '--steps 2'");
    done(folder, &format!("study run --jobs 2 {real}"));
    let plan = done(folder, &format!("study plan {real}"));
    let steps = plan["steps"].as_array().unwrap();
    let of = |wanted: &str| -> Vec<PathBuf> {
        let own = steps.iter().filter(|step| verb(step) == Some(wanted));
        own.map(|step| kept(folder, step)).collect()
    };
    // Text without the sentences of tests, tokenised text, and the sentences that all encoders read: to retrieve, and to learn a map from.
    assert_eq!(["vocab", "corpus", "pretrain"].map(|verb| of(verb).len()), [1, 5, 2]);
    let alone = "pretrain --preset no-anchors --steps 2 --out alone";
    let read = |language: &str| {
        let name = format!("text of {language} without test sentences");
        let step = steps.iter().find(|step| step["name"].as_str() == Some(&name)).unwrap();
        format!("{language}={}", kept(folder, step).join("text.txt.zst").display())
    };
    let [en, fr] = ["en", "fr"].map(read);
    done(folder, &format!("{alone} --text {en} --text {fr}"));
    let weights = |run: PathBuf| std::fs::read(run.join("model.safetensors")).unwrap();
    assert!(weights(of("pretrain")[0].join("run")) == weights(folder.join("alone")));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let folder: &Path = &Folder::new();
    refused(folder, "study run anchor", 2, "anchors");
    refused(folder, "study run none.toml", 1, "none.toml");
    refused(folder, "study plan anchors --scale huge", 2, "tiny, small, paper");
    refused(folder, "study plan anchors --data nowhere --pair en-fr", 1, "en.*.txt.zst");
    let listed = done(folder, "study list");
    assert_eq!(listed["studies"].as_array().unwrap().len(), Study::names().count());
}
