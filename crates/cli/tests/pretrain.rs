//! `isogloss pretrain` as people and scripts meet it: the real binary, killed and resumed.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use encoder::Encoder;
use encoder::archive::Archive;
use serde_json::Value;
use tensor::{Device, Params};
use train::pretrain::{PretrainConfig, PretrainSummary, RunData, mlm_step};
use train::{AdamGroup, Trainer};

use crate::common::{Folder, Typed, done, isogloss, ran, refused, with_world};

const RUN: &str = "pretrain --world world --steps 40 --checkpoint-every 7 --evaluate-every 10 --preset \
        sep-emb-l1-3 --set stages=[{steps=9,length=16,sequences=8},{steps=4,accumulate=1}]";

fn same(folder: &Path, file: &str) -> bool {
    let read = |run: &str| fs::read(folder.join(run).join(file)).unwrap();
    read("whole") == read("broken")
}

/// A training loop written by hand over the public parts makes the run's own weights.
#[test]
fn a_loop_over_the_public_parts_is_the_run() {
    let folder = with_world();
    let path = folder.join("run");
    // This process is elsewhere, so the run must know whole paths.
    let world = folder.join("world").display().to_string();
    let begin = RUN.replace("--world world", &format!("--world {world}"));
    ran(&folder, &format!("{begin} --out run --device cpu"));
    let best = Archive::open(&path.join("model.safetensors")).unwrap();
    let summary = PretrainSummary::read(&path).unwrap();
    let steps = summary.best.unwrap().step;
    assert!(steps >= 20, "the weights of step {steps} are the best: nothing is checked");

    let config = PretrainConfig::read(&path).unwrap();
    let data = RunData::prepare(&config, &path, &mut |_| {}).unwrap();
    let mut params = Params::new(&Device::cpu(2).unwrap());
    let encoder = data.encoder_config(&config);
    let model = Encoder::new(encoder, &mut params, config.seed).unwrap();
    let (adam, group) = (config.adam.clone(), |_| AdamGroup::default());
    let mut trainer = Trainer::new(model.config(), params, adam, config.seed, group).unwrap();
    let mut feed = data.feed(0);
    for step in 1..=steps {
        let pending = mlm_step(&mut trainer, &model, &feed.next_step(&data).unwrap());
        assert_eq!(trainer.finish(pending).unwrap().step, step);
    }
    let mut kept = Params::new(&Device::cpu(2).unwrap());
    Encoder::empty(model.config().clone(), &mut kept).unwrap();
    let names: Vec<String> = kept.ids().map(|id| kept.name(id).to_owned()).collect();
    let weights = kept.iter_mut().map(|(_, value, _)| value);
    best.load(names.into_iter().zip(weights).collect()).unwrap();
    for id in kept.ids() {
        let own = trainer.params().value(id).to_vec();
        assert_eq!(kept.value(id).to_vec(), own, "{}", kept.name(id));
    }
}

/// The lines of a run's metrics with a learning rate: the step, and the rate.
fn learning_rates(folder: &Path, run: &str) -> Vec<(u64, f64)> {
    let text = fs::read_to_string(folder.join(run).join("metrics.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter_map(|line| Some((line["step"].as_u64()?, line["lr"].as_f64()?))).collect()
}

/// Flags may be given again, others are refused with both values, and more steps extend the run.
#[test]
fn a_run_is_resumed_with_its_own_flags_and_extended_by_more_steps() {
    let folder: &Path = &with_world();
    let begin = |out: &str, more: &str| {
        ran(folder, &format!("pretrain --world world --preset no-anchors --out {out} {more}"));
    };
    let constant = "--set stages=[] --set adam.schedule={kind=\"constant\"}";
    begin("whole", &format!("{constant} --steps 30"));
    begin("broken", &format!("{constant} --steps 20"));
    for (flags, says) in [
        ("--preset default", "preset: the run was begun with \"no-anchors\", and \"default\""),
        ("--lr 1e-2", "adam.lr: the run was begun with 0.003, and 0.01 is asked for"),
        ("--steps 10", "steps: the run was begun with 20, and 10 is asked for"),
    ] {
        refused(folder, &format!("pretrain --resume --out broken {flags}"), 2, says);
    }
    // A schedule that does not depend on the goal: the extended run is the longer one.
    begin("broken", &format!("{constant} --resume --steps 30"));
    let model = |run: &str| fs::read(folder.join(run).join("model.safetensors")).unwrap();
    assert_eq!(PretrainSummary::read(&folder.join("broken")).unwrap().best.unwrap().step, 30);
    assert!(model("whole") == model("broken"), "the weights of the longer run");

    // Linear decay: up to the extension as planned first, from there on as in a run of the new length.
    let linear = "--set stages=[] --adam.schedule.warmup 10";
    begin("line", &format!("{linear} --steps 150"));
    begin("line", &format!("{linear} --resume --steps 300"));
    let expected = |step: u64| {
        let total = if step <= 150 { 150.0 } else { 300.0 };
        3e-3 * (total + 1.0 - step as f64) / (total + 1.0 - 10.0)
    };
    let rates = learning_rates(folder, "line");
    assert_eq!(rates.len(), 6);
    for (step, lr) in rates {
        assert!((lr - expected(step)).abs() < 1e-12, "step {step}: {lr}");
    }
    // The configuration of an extended run makes the same run again, in one go.
    let again = "pretrain line/config.toml --out again";
    assert!(isogloss(folder, &again).status.success());
    for file in ["model.safetensors", "state.safetensors", "metrics.jsonl"] {
        let read = |run: &str| fs::read(folder.join(run).join(file)).unwrap();
        assert_eq!(read("line"), read("again"), "{file}");
    }
    // Resumed once more it stays as it is, whichever of its goals is named.
    for steps in ["150", "300"] {
        let before = fs::read(folder.join("line/state.safetensors")).unwrap();
        begin("line", &format!("{linear} --resume --steps {steps}"));
        assert_eq!(before, fs::read(folder.join("line/state.safetensors")).unwrap());
    }
}

#[test]
fn a_run_is_replaced_only_by_force() {
    let folder = with_world();
    let begin = format!("{RUN} --out r --set steps=2");
    done(&folder, &begin);
    refused(&folder, &begin, 2, "--force replaces a run");
    done(&folder, &format!("{begin} --force --seed 2"));
    let config = fs::read_to_string(folder.join("r/config.toml")).unwrap();
    assert!(config.contains("seed = 2"), "{config}");
    fs::create_dir(folder.join("mine")).unwrap();
    fs::write(folder.join("mine/thesis.tex"), "x").unwrap();
    refused(&folder, &format!("{RUN} --out mine --force"), 2, "mine is not empty");
}

/// A schedule that ended with a run ends with the longer one that is made of its configuration.
#[test]
fn a_configuration_serves_for_another_number_of_updates() {
    let folder: &Path = &with_world();
    let config = |run: &str| fs::read_to_string(folder.join(run).join("config.toml")).unwrap();
    let first = isogloss(folder, &format!("{RUN} --out first --set steps=14 --json"));
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
    assert!(config("first").contains("total = 14"), "{}", config("first"));
    let more = "pretrain first/config.toml --steps 20 --out second";
    assert!(isogloss(folder, &more).status.success());
    assert!(config("second").contains("total = 20"), "{}", config("second"));
    // The preset's warm-up of 100 updates is cut to a run that is shorter, and not for good.
    assert!(config("second").contains("warmup = 20"), "{}", config("second"));

    // One that is done stays as it is, its time and all.
    let before =
        (fs::read(folder.join("first/summary.json")).unwrap(), listed(&folder.join("first")));
    let again = isogloss(folder, "pretrain --resume --out first --json");
    assert!(again.status.success());
    assert!(String::from_utf8_lossy(&again.stderr).contains("first is done; nothing was changed"));
    let summary = |output: &[u8]| serde_json::from_slice::<Value>(output).unwrap()["steps"].clone();
    assert_eq!(summary(&again.stdout), summary(&first.stdout));
    let after =
        (fs::read(folder.join("first/summary.json")).unwrap(), listed(&folder.join("first")));
    assert_eq!(before, after);
}

#[test]
fn wrong_requests_are_refused_with_exit_code_2() {
    let folder = with_world();
    let file = "preset = \"window-20\"\n[batch]\nmaxtoken = 20\n";
    fs::write(folder.join("mine.toml"), file).unwrap();
    for (flags, reason) in [
        ("--preset sep", "invalid value 'sep' for '--preset <NAME>'"),
        ("--scale huge", "[possible values: tiny, small, paper]"),
        ("--set encoder.heads=5", "heads: 5 heads do not divide dim = 48"),
        ("--set encoder.headz=5", "headz"),
        ("--batch.lenght 8", "unknown field `lenght`"),
        ("--batch.mask.rte 0.9", "unknown field `rte`"),
        ("--set batch.foo=3", "unknown field `foo`"),
        ("--preset extra-anchors --switch.probabilty 0.3", "unknown field `probabilty`"),
        ("--adam.schedule.warmpu 3", "unknown field `warmpu`"),
        ("mine.toml", "unknown field `maxtoken`"),
        ("--preset untrained --steps 20", "steps: is 20, and preset `untrained` has no training"),
        ("--preset untrained --set steps=20", "steps: is 20"),
        (
            "--preset sep-emb-l1-6 --encoder.layers 2",
            "encoder.separate: 'embeddings, 1-2' of encoder.layers = 2 leaves no layer that languages share",
        ),
        ("--world nowhere", "name a folder that `isogloss world generate` wrote"),
        ("--set batch.length=64", "batch.length: is 64, more than encoder.positions = 32"),
        ("--batch.length 2", "batch.length: is 2, and no token of an input"),
        ("--batch.max_tokens 2", "batch.max_tokens: is 2, and no token of an input"),
        ("--batch.max_tokens 64", "batch.max_tokens: is 64, more than encoder.positions = 32"),
        ("--encoder.positions 8", "batch.length: is 32, more than encoder.positions = 8"),
        ("--set stages=[{steps=5,sequences=0}]", "stages: a stage needs sequences"),
        ("--device abacus", "[possible values: auto, cpu, cpu-bf16, cuda]"),
        ("--preset wiki-cc", "world generate --domain-shift"),
        ("--set stages=[{steps=5,length=64}]", "stages: "),
        ("--accumulate 70000", "accumulate: must not be more than 65535"),
        ("--encoder.dim 0", "encoder.dim: must not be 0"),
        ("--adam.lr fast", "adam.lr: invalid type: string \"fast\", expected a number"),
        ("--select-by xx", "select_by: 'xx' is none of the languages: qaa, qab"),
        (
            "--preset no-anchors --dictionary qaa-qab=world/muse/qaa-qab.txt",
            "take preset `extra-anchors`",
        ),
        (
            "--steps 9 --adam.schedule.total 8",
            "adam.schedule.total: is 8, so that updates after it would change nothing",
        ),
        ("--set switch={probability=0.3,most=0.15,dictionaries=[]}", "(--dictionary A-B=FILE)"),
    ] {
        let world = if flags.starts_with("--world") { "" } else { "--world world" };
        refused(&folder, &format!("pretrain --out r {world} {flags}"), 2, reason);
        assert!(!folder.join("r").exists(), "{flags:?} left a folder");
    }
    refused(&folder, "pretrain --text en=nowhere.txt --out r", 1, "nowhere.txt");
    assert!(!folder.join("r").exists(), "a missing file left a folder");
    refused(&folder, "pretrain --resume --out world", 2, "holds no run");
    refused(&folder, "pretrain --world world --out world", 2, "is not empty");
}

#[test]
fn a_start_that_failed_does_not_stand_in_the_way() {
    let folder = with_world();
    let refused = |arguments: &str, code, expected| refused(&folder, arguments, code, expected);
    fs::write(folder.join("bad.txt"), b"one\nt\xe9\n").unwrap();
    let printed = refused("pretrain --text en=bad.txt --out r", 1, "bad.txt:2: not");
    assert!(!printed.contains("--tolerant"), "{printed}");
    refused("pretrain --text en=- --out r", 2, "more than once");
    let begin = format!("{RUN} --out r --set steps=2");
    // A clash of settings that only the data shows.
    refused(&format!("{begin} --text.dev 90000"), 2, "dev = 90000");
    assert!(!folder.join("r").exists());
    done(&folder, &begin);

    let resume = "pretrain --resume --out r";
    refused("transfer --resume --out r", 2, "isogloss pretrain --resume --out r");
    // As a kill before the end leaves it.
    fs::remove_file(folder.join("r/summary.json")).unwrap();
    let elsewhere = folder.join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let from = "pretrain --resume --out ../r";
    common::refused(&elsewhere, &from, 1, "relative to where the run was begun");
    fs::remove_file(folder.join("r/state.safetensors")).unwrap();
    let [_, printed] = ran(&folder, resume);
    assert!(printed.contains("r holds no checkpoint: from step 0"), "{printed}");
    // As a kill before the first checkpoint leaves it.
    for file in ["state.safetensors", "summary.json"] {
        fs::remove_file(folder.join("r").join(file)).unwrap();
    }
    let other = format!("{begin} --seed 7");
    refused(
        &other,
        2,
        "holds another run, without a checkpoint yet; resume it, replace it by force",
    );
    done(&folder, &begin);
    refused(&begin, 2, "is not empty");
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_damaged_checkpoint_gives_way_to_the_one_before() {
    let folder = with_world();
    let path = |name: &str| folder.join(name);
    done(&folder, &format!("{RUN} --out whole"));
    done(&folder, &format!("{RUN} --out broken"));
    let resume = "pretrain --resume --out broken";
    fs::remove_file(path("broken/summary.json")).unwrap();
    let (state, older) =
        (path("broken/state.safetensors"), path("broken/state.previous.safetensors"));
    let size = fs::metadata(&state).unwrap().len() as usize;
    flip(&state, size / 2);
    let [_, printed] = ran(&folder, &resume);
    for part in ["broken/state.safetensors was altered", "the checkpoint before it", "from step 35"]
    {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    for file in ["model.safetensors", "state.safetensors", "metrics.jsonl"] {
        assert!(same(&folder, file), "{file}");
    }
    // It is extended from where it had come to; a quiet command says what is damaged all the same.
    let extend = |out| format!("pretrain --resume --out {out} --steps 50 -q");
    ran(&folder, &extend("whole"));
    flip(&state, 60);
    let [_, printed] = ran(&folder, &extend("broken"));
    assert!(printed.contains("broken/state.safetensors"), "{printed}");
    for file in ["model.safetensors", "state.safetensors", "metrics.jsonl", "config.toml"] {
        assert!(same(&folder, file), "{file}");
    }
    // Where neither verifies, both stay as they are.
    fs::remove_file(path("broken/summary.json")).unwrap();
    flip(&state, size / 2);
    flip(&older, size / 2);
    let before = [fs::read(&state).unwrap(), fs::read(&older).unwrap()];
    refused(&folder, &resume, 1, "was altered since it was written");
    assert_eq!([fs::read(&state).unwrap(), fs::read(&older).unwrap()], before);
}

#[test]
fn a_run_that_diverges_fails_and_says_where() {
    let folder = with_world();
    let with = |out: &str, every: &str| {
        let flags = format!("pretrain --world world --steps 60 --out {out} --lr 1e30");
        let rest = format!("--evaluate-every 5 --set adam.clip=1e30 --checkpoint-every {every}");
        let printed = refused(&folder, &format!("{flags} {rest}"), 1, "the run diverged at step");
        assert!(printed.contains("lower learning rate") && printed.contains("--lr"), "{printed}");
        printed
    };
    assert!(with("a", "100").contains("There is no checkpoint yet"));
    assert!(with("b", "1").contains("The last checkpoint, of step"));
    assert!(!folder.join("b/summary.json").exists());
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
    ran(&folder, "pretrain --world world --preset default --steps 60 --lr 2e-3 --out r");
    let run = folder.join("r");
    let names = listed(&run);
    let there = "config.json config.toml metrics.jsonl model.safetensors state.safetensors \
                 summary.json tokenizer.json vocabulary";
    for file in there.split(' ') {
        assert!(names.iter().any(|name| name == file), "no {file} in {names:?}");
    }
    assert!(names.iter().any(|name| name.starts_with("events.out.tfevents.")), "{names:?}");
    assert!(!names.iter().any(|name| name.ends_with("partial")), "{names:?}");
    let config = fs::read_to_string(run.join("config.toml")).unwrap();
    assert!(config.contains("lr = 0.002"), "{config}");
}

/// A run in `r` that has made 7 of its 40 updates.
fn begun() -> Folder {
    let folder = with_world();
    ran(&folder, &format!("{RUN} --out r --set steps=7 --set adam.schedule.total=40"));
    let config = folder.join("r/config.toml");
    let text = fs::read_to_string(&config).unwrap().replace("steps = 7", "steps = 40");
    // Without its last line, a configuration that was altered is taken as it is.
    let (text, digest) = text.trim_end().rsplit_once('\n').unwrap();
    assert!(digest.starts_with("# blake3 "), "{digest}");
    fs::write(&config, text).unwrap();
    folder
}

#[test]
fn a_run_goes_on_with_the_text_and_the_settings_it_began_with() {
    let folder = begun();
    let output = isogloss(&folder, "pretrain --resume --steps 9 --out r");
    assert_eq!(output.status.code(), Some(2));
    let text = folder.join("world/text/qaa.base.txt");
    let more = fs::read_to_string(&text).unwrap() + "one more line\n";
    fs::write(&text, more).unwrap();
    refused(&folder, "pretrain --resume --out r", 1, "r began with other text");
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let folder = with_world();
    fs::write(folder.join("file"), "").unwrap();
    for out in ["/proc/run", "file/run"] {
        refused(&folder, &format!("{RUN} --out {out}"), 1, "cannot make the folder");
    }
}

/// A run that begins with another's weights has its perplexity before any update, whether they come from its
/// folder or from a Hugging Face folder made of it; and it goes on from there.
#[test]
fn a_run_begins_with_the_weights_of_a_model() {
    let folder: &Path = &with_world();
    let world = "--world world --text.dev 100";
    let first = "pretrain --preset default --steps 60 --out first";
    let trained = done(folder, &format!("{first} {world}"));
    let best = trained["best"]["perplexity"].as_f64().unwrap();
    done(folder, "hub export --model first --out hf");
    for (init, out) in [("first", "of-run"), ("hf", "of-hub")] {
        done(folder, &format!("pretrain --init {init} --steps 4 --lr 1e-9 --out {out} {world}"));
        let lines = fs::read_to_string(folder.join(out).join("metrics.jsonl")).unwrap();
        let before: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
        let perplexity = before["perplexity"]["qaa"].as_f64().unwrap();
        assert_eq!(before["step"], 0);
        assert!((perplexity / best - 1.0).abs() < 1e-3, "{out}: {perplexity}, {best}");
        let config = fs::read_to_string(folder.join(out).join("config.toml")).unwrap();
        assert!(config.contains(&format!("init = \"{init}\"")), "{config}");
    }
    // A kill later, the checkpoint counts and not the model it began with.
    fs::remove_dir_all(folder.join("first")).unwrap();
    let more = done(folder, "pretrain --resume --out of-run --steps 6");
    assert_eq!(more["steps"], 6);
    for (flags, reason) in [
        ("--init hf --preset no-anchors", "init: vocabulary and encoder are those of hf"),
        ("--init nowhere", "init: nowhere holds no model"),
        ("--init hf --encoder.layers 2", "init: weights `"),
        ("--init hf --vocab hf", "vocabulary.folder: the vocabulary is that of hf"),
    ] {
        refused(folder, &format!("pretrain --out r {flags} {world}"), 2, reason);
        assert!(!folder.join("r").exists(), "{flags:?} left a folder");
    }
}

/// Where memory cannot be had, there is one sentence with the number: no abort, no panic, and nothing left behind.
#[cfg(target_os = "linux")]
#[test]
fn an_encoder_that_does_not_fit_is_refused_with_the_number() {
    let folder = with_world();
    // 65536 and 8192 ended by an abort and by a panic; the last fits until it trains.
    for (dim, limit) in [("65536", 1_500_000), ("8192", 1_500_000), ("1024", 900_000)] {
        let out = format!("run-{dim}");
        let script = format!("ulimit -v {limit} && exec \"$@\"");
        let flags = format!("--encoder.dim {dim} --threads 2 --device cpu --out {out}");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_isogloss")]);
        let words = format!("{RUN} {flags}").words();
        let output = shell.args(words).current_dir(&folder).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{dim}: {:?} {errors}", output.status);
        assert_eq!(errors.matches("error:").count(), 1, "{dim}: {errors}");
        assert!(errors.contains("memory"), "{dim}: {errors}");
        if dim != "1024" {
            assert!(errors.contains("GB of memory are needed, and 1."), "{dim}: {errors}");
            assert!(!folder.join(&out).exists(), "{dim}");
        }
    }
}
