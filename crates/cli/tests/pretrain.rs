//! `isogloss pretrain` as people and scripts meet it: the real binary, killed and resumed.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use encoder::archive::Archive;
use serde_json::Value;
use tempfile::TempDir;
use tensor::Device;
use train::pretrain::Beginning;

use crate::common::{command, isogloss, with_world};

const RUN: [&str; 13] = [
    "pretrain",
    "--world",
    "world",
    "--steps",
    "40",
    "--checkpoint-every",
    "7",
    "--evaluate-every",
    "10",
    "--preset",
    "sep-emb-l1-3",
    "--set",
    "stages=[{steps=9,length=16,sequences=8},{steps=4,accumulate=1}]",
];

fn same(folder: &Path, file: &str) -> bool {
    let read = |run: &str| fs::read(folder.join(run).join(file)).unwrap();
    read("whole") == read("broken")
}

#[test]
fn a_run_that_is_killed_and_resumed_ends_as_one_that_was_not() {
    let folder = with_world();
    let whole = isogloss(folder.path(), &[&RUN[..], &["--out", "whole", "--json"]].concat());
    assert!(whole.status.success(), "{}", String::from_utf8_lossy(&whole.stderr));
    let summary: Value = serde_json::from_slice(&whole.stdout).expect("one JSON object");
    assert_eq!((&summary["steps"], &summary["finished"]), (&40.into(), &true.into()));

    let silent = |arguments: &[&str]| {
        let mut command = command(folder.path(), arguments);
        command.stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap()
    };
    let begin = || silent(&[&RUN[..], &["--out", "broken"]].concat());
    let mut run = begin();
    let configured = folder.path().join("broken/config.toml");
    let mut kills = 0;
    loop {
        // A little later each time, so that every stretch of the run is hit once.
        sleep(Duration::from_millis(5 + 45 * kills));
        match run.try_wait().unwrap() {
            Some(_) if kills > 0 => break,
            // It ended before it could be killed.
            Some(_) => {
                fs::remove_dir_all(folder.path().join("broken")).unwrap();
                run = begin();
            }
            None => (),
        }
        if !configured.exists() {
            continue;
        }
        run.kill().unwrap();
        run.wait().unwrap();
        kills += 1;
        run = silent(&["pretrain", "--resume", "--out", "broken"]);
    }
    let last = isogloss(folder.path(), &["pretrain", "--resume", "--out", "broken"]);
    assert!(last.status.success(), "{}", String::from_utf8_lossy(&last.stderr));
    // A run that is resumed after its end says what it said then.
    let resumed: Value =
        serde_json::from_slice(&fs::read(folder.path().join("broken/summary.json")).unwrap())
            .unwrap();
    for key in ["perplexity", "retrieval", "best", "left_plateau", "emerged", "tokens", "steps"] {
        assert_eq!(resumed[key], summary[key], "{key}");
    }
    for file in ["model.safetensors", "state.safetensors", "metrics.jsonl", "config.toml"] {
        assert!(same(folder.path(), file), "{file} after {kills} kills");
    }
}

/// What is laid beside other programs' curves is the run itself: its weights, batches and updates.
#[test]
fn the_beginning_of_a_run_can_be_gone_through_again() {
    let folder = with_world();
    let path = folder.path().join("run");
    // This process is elsewhere, so the run must know whole paths.
    let world = folder.path().join("world").display().to_string();
    let mut flags = [&RUN[..], &["--out", "run", "--device", "cpu"]].concat();
    flags[2] = &world;
    let output = isogloss(folder.path(), &flags);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let kept = Archive::open(&path.join("model.safetensors")).unwrap();
    let step = kept.metadata::<Value>().unwrap()["step"].as_u64().unwrap();
    assert!(step >= 20, "the weights of step {step} are the best: nothing is checked");
    let device = Device::cpu(2).unwrap();
    let open = || Beginning::open(&path, &device).unwrap();
    let (mut again, mut end) = (open(), open());
    for number in 1..=step {
        let pieces = again.next_batches();
        assert_eq!(again.update(&pieces).unwrap().step, number);
    }
    let params = end.trainer.params_mut();
    let names: Vec<String> = params.ids().map(|id| params.name(id).to_owned()).collect();
    let weights = params.iter_mut().map(|(_, value, _)| value);
    kept.load(names.into_iter().zip(weights).collect()).unwrap();
    let (again, end) = (again.trainer.params(), end.trainer.params());
    for id in again.ids() {
        assert_eq!(again.value(id).to_vec(), end.value(id).to_vec(), "{}", again.name(id));
    }
}

/// A schedule that ended with a run ends with the longer one that is made of its configuration.
#[test]
fn a_configuration_serves_for_another_number_of_updates() {
    let folder = with_world();
    let folder = folder.path();
    let config = |run: &str| fs::read_to_string(folder.join(run).join("config.toml")).unwrap();
    let begin = [&RUN[..], &["--out", "first", "--set", "steps=14", "--json"]].concat();
    let first = isogloss(folder, &begin);
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
    assert!(config("first").contains("total = 14"), "{}", config("first"));
    let more = ["pretrain", "first/config.toml", "--steps", "20", "--out", "second"];
    assert!(isogloss(folder, &more).status.success());
    assert!(config("second").contains("total = 20"), "{}", config("second"));
    // The preset's warm-up of 100 updates is cut to a run that is shorter, and not for good.
    assert!(config("second").contains("warmup = 20"), "{}", config("second"));

    // One that is done stays as it is, its time and all.
    let before =
        (fs::read(folder.join("first/summary.json")).unwrap(), listed(&folder.join("first")));
    let again = isogloss(folder, &["pretrain", "--resume", "--out", "first", "--json"]);
    assert!(again.status.success());
    assert!(String::from_utf8_lossy(&again.stderr).contains("first is done; nothing was changed"));
    let summary = |output: &[u8]| serde_json::from_slice::<Value>(output).unwrap()["steps"].clone();
    assert_eq!(summary(&again.stdout), summary(&first.stdout));
    let after =
        (fs::read(folder.join("first/summary.json")).unwrap(), listed(&folder.join("first")));
    assert_eq!(before, after);
}

/// Whoever waits for a run that was asked to stop must not take it for done.
#[test]
#[cfg(unix)]
fn a_run_that_is_stopped_has_failed_and_can_go_on() {
    let folder = with_world();
    let folder = folder.path();
    let arguments = [&RUN[..], &["--out", "r", "--set", "steps=100000", "--json"]].concat();
    let mut begun = command(folder, &arguments);
    let run = begun.stderr(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    while !folder.join("r/state.safetensors").exists() {
        sleep(Duration::from_millis(5));
    }
    let stop = Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap();
    assert!(stop.success());
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["finished"], false);
}

#[test]
fn what_makes_no_sense_is_told_with_exit_code_2() {
    let folder = with_world();
    for (flags, reason) in [
        (&["--preset", "sep"][..], "preset: no 'sep'; there are default, "),
        (&["--scale", "huge"], "scale: no 'huge'; there are tiny, small, paper"),
        (&["--set", "encoder.heads=5"], "heads: 5 heads do not divide dim = 48"),
        (&["--set", "encoder.headz=5"], "headz"),
        (&["--set", "checkpoint_every=0"], "checkpoint_every: must not be 0"),
        (&["--world", "nowhere"], "make a world with `isogloss world generate`"),
        (&["--set", "batch.length=64"], "batch.length: is 64, more than encoder.positions = 32"),
        (&["--batch.length", "0"], "batch.length: is 0, and no token of an input"),
        (&["--batch.max_tokens", "1"], "batch.max_tokens: is 1, and no token of an input"),
        (
            &["--batch.max_tokens", "64"],
            "batch.max_tokens: is 64, more than encoder.positions = 32",
        ),
        (&["--batch.sequences", "0"], "batch.sequences: must not be 0"),
        (&["--encoder.positions", "0"], "encoder.positions: must not be 0"),
        (&["--encoder.positions", "8"], "batch.length: is 32, more than encoder.positions = 8"),
        (&["--set", "stages=[{steps=5,sequences=0}]"], "stages: a stage needs sequences"),
        (&["--device", "abacus"], "unknown device 'abacus'"),
        (&["--preset", "wiki-cc"], "world generate --domain-shift"),
        (&["--encoder.headz", "5"], "headz"),
        (&["--set", "stages=[{steps=5,length=64}]"], "stages: "),
        (&["--accumulate", "70000"], "accumulate: must not be more than 65535"),
        (&["--encoder.dim", "0"], "encoder.dim: must not be 0"),
        (&["--adam.rate", "fast"], "adam.rate: invalid type: string \"fast\", expected a number"),
        (&["--select-by", "xx"], "select_by: 'xx' is none of the languages: qaa, qab"),
        (
            &["--preset", "no-anchors", "--dictionary", "qaa-qab=world/muse/qaa-qab.txt"],
            "take --preset extra-anchors",
        ),
        (&["--patience", "0"], "patience: must not be 0"),
        (
            &["--steps", "9", "--adam.schedule.total", "8"],
            "adam.schedule.total: is 8, so that updates after it would change nothing",
        ),
        (&["--set", "switch={probability=0.3,most=0.15,dictionaries=[]}"], "give --dictionary"),
    ] {
        let world = if flags[0] == "--world" { &[][..] } else { &["--world", "world"] };
        let output = isogloss(folder.path(), &[&["pretrain", "--out", "r"], world, flags].concat());
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {message}");
        assert!(message.contains(reason), "{flags:?}: {message}");
        assert!(!folder.path().join("r").exists(), "{flags:?} left a folder");
    }
    let output = isogloss(folder.path(), &["pretrain", "--text", "en=nowhere.txt", "--out", "r"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("nowhere.txt"));
    assert!(!folder.path().join("r").exists(), "a missing file left a folder");
    let output = isogloss(folder.path(), &["pretrain", "--resume", "--out", "world"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("holds no run"));
    let output = isogloss(folder.path(), &["pretrain", "--world", "world", "--out", "world"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("is not empty"));
}

#[test]
fn a_start_that_failed_does_not_stand_in_the_way() {
    let folder = with_world();
    let refused = |arguments: &[&str], code, expected| {
        common::refused(folder.path(), arguments, code, expected)
    };
    fs::write(folder.path().join("bad.txt"), b"one\nt\xe9\n").unwrap();
    let said = refused(&["pretrain", "--text", "en=bad.txt", "--out", "r"], 1, "bad.txt:2: not");
    assert!(!said.contains("--tolerant"), "{said}");
    refused(&["pretrain", "--text", "en=-", "--out", "r"], 2, "more than once");
    let begin = [&RUN[..], &["--out", "r", "--set", "steps=2"]].concat();
    // A clash of settings that only the data shows.
    refused(&[&begin[..], &["--text.dev", "90000"]].concat(), 2, "dev = 90000");
    assert!(!folder.path().join("r").exists());
    common::done(folder.path(), &begin);

    let resume = ["pretrain", "--resume", "--out", "r"];
    let changed = [&resume[..], &["--adam.rate", "1e-2"]].concat();
    refused(&changed, 2, "adam.rate: a run that is resumed goes on as it was begun");
    refused(&["transfer", "--resume", "--out", "r"], 2, "isogloss pretrain --resume --out r");
    // As a kill before the end leaves it.
    fs::remove_file(folder.path().join("r/summary.json")).unwrap();
    let elsewhere = folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let from = ["pretrain", "--resume", "--out", "../r"];
    common::refused(&elsewhere, &from, 1, "meant from where the run was begun");
    fs::remove_file(folder.path().join("r/state.safetensors")).unwrap();
    let output = isogloss(folder.path(), &resume);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("r holds no checkpoint: from step 0"), "{said}");
    // As a kill before the first checkpoint leaves it.
    for file in ["state.safetensors", "summary.json"] {
        fs::remove_file(folder.path().join("r").join(file)).unwrap();
    }
    refused(&begin, 2, "remove the folder to begin anew");
}

#[test]
fn two_processes_do_not_work_in_one_folder() {
    let folder = with_world();
    let arguments = [&RUN[..], &["--out", "r", "--set", "steps=2000"]].concat();
    let mut first = command(folder.path(), &arguments);
    let mut first = first.stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    while !folder.path().join("r/metrics.jsonl").exists() {
        sleep(Duration::from_millis(20));
    }
    let second = isogloss(folder.path(), &["pretrain", "--resume", "--out", "r"]);
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!(second.status.code(), Some(1));
    let message = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(message.contains("another process is working in r"), "{message}");
}

/// The names of the files in a folder.
fn listed(folder: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| {
        entry.unwrap().file_name().to_string_lossy().into_owned()
    };
    let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(name).collect();
    names.sort();
    names
}

#[test]
fn a_run_is_a_complete_folder() {
    let folder = with_world();
    let flags = ["--preset", "default", "--steps", "60", "--adam.rate", "2e-3", "--out", "r"];
    let output = isogloss(folder.path(), &[&["pretrain", "--world", "world"], &flags[..]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let run = folder.path().join("r");
    let names = listed(&run);
    for file in [
        "config.json",
        "config.toml",
        "metrics.jsonl",
        "model.safetensors",
        "state.safetensors",
        "summary.json",
        "tokenizer.json",
        "vocabulary",
    ] {
        assert!(names.iter().any(|name| name == file), "no {file} in {names:?}");
    }
    assert!(names.iter().any(|name| name.starts_with("events.out.tfevents.")), "{names:?}");
    assert!(!names.iter().any(|name| name.ends_with("partial")), "{names:?}");
    let config = fs::read_to_string(run.join("config.toml")).unwrap();
    assert!(config.contains("rate = 0.002"), "{config}");
}

/// A run in `r` that has made 7 of its 40 updates.
fn begun() -> TempDir {
    let folder = with_world();
    let few = ["--out", "r", "--set", "steps=7", "--set", "adam.schedule.total=40"];
    let begun = isogloss(folder.path(), &[&RUN[..], &few].concat());
    assert!(begun.status.success(), "{}", String::from_utf8_lossy(&begun.stderr));
    let config = folder.path().join("r/config.toml");
    let text = fs::read_to_string(&config).unwrap().replace("steps = 7", "steps = 40");
    fs::write(&config, text).unwrap();
    folder
}

/// What the system refuses is told, and the last checkpoint stands.
#[test]
fn a_full_disk_leaves_the_last_checkpoint() {
    let folder = begun();
    let state = folder.path().join("r/state.safetensors");
    let before = fs::read(&state).unwrap();
    // No file may grow beyond 200 KiB: what is larger fails as on a full disk.
    let limited = format!(
        "trap '' XFSZ; ulimit -f 200; exec {} pretrain --resume --out r",
        env!("CARGO_BIN_EXE_isogloss")
    );
    let output = Command::new("bash")
        .args(["-c", &limited])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("safetensors: cannot write"), "{message}");
    assert_eq!(fs::read(&state).unwrap(), before);
    assert!(!listed(&folder.path().join("r")).iter().any(|name| name.ends_with("partial")));
    let output = isogloss(folder.path(), &["pretrain", "--resume", "--out", "r"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_run_goes_on_with_the_text_and_the_settings_it_began_with() {
    let folder = begun();
    let output = isogloss(folder.path(), &["pretrain", "--resume", "--steps", "9", "--out", "r"]);
    assert_eq!(output.status.code(), Some(2));
    let text = folder.path().join("world/text/qaa.base.txt");
    let more = fs::read_to_string(&text).unwrap() + "one more line\n";
    fs::write(&text, more).unwrap();
    let output = isogloss(folder.path(), &["pretrain", "--resume", "--out", "r"]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("r began with other text"), "{message}");
}

#[test]
fn a_folder_that_cannot_be_written_is_told() {
    let folder = with_world();
    fs::write(folder.path().join("file"), "").unwrap();
    for out in ["/proc/run", "file/run"] {
        let output = isogloss(folder.path(), &[&RUN[..], &["--out", out]].concat());
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert!(message.contains("cannot make the folder"), "{message}");
    }
}
