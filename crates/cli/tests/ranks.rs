//! `isogloss pretrain` on several ranks: the same model as one process, one message when a rank dies, and checkpoints that
//! move between numbers of ranks.

mod common;

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use safetensors::SafeTensors;
use serde_json::Value;

use crate::common::{command, done, ran, refused, with_world};

/// Embeddings and lower layers of each language are its own: some ranks then have no gradient for some weights.
const RUN: &str = "pretrain --world world --device cpu --preset sep-emb-l1-3 --accumulate 4 \
        --checkpoint-every 5 --evaluate-every 50";

fn run(folder: &Path, flags: &str) -> Value {
    done(folder, &format!("{RUN} --steps 100 {flags}"))
}

fn read(folder: &Path, run: &str, file: &str) -> Vec<u8> {
    fs::read(folder.join(run).join(file)).unwrap()
}

/// Every weight of a run's last checkpoint.
fn weights(folder: &Path, run: &str) -> Vec<f32> {
    let bytes = read(folder, run, "state.safetensors");
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let mut names = tensors.names();
    names.retain(|name| name.starts_with("weights/"));
    names.sort();
    assert!(!names.is_empty());
    let numbers = |name: &str| {
        let bytes = tensors.tensor(name).unwrap().data().to_vec();
        bytes.chunks(4).map(|x| f32::from_le_bytes(x.try_into().unwrap())).collect::<Vec<_>>()
    };
    names.into_iter().flat_map(numbers).collect()
}

/// The root mean square of the difference of two lists, as a share of that of the first.
fn difference(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    let square = |x: f32| f64::from(x) * f64::from(x);
    let between: f64 = a.iter().zip(b).map(|(a, b)| square(a - b)).sum();
    (between / a.iter().map(|&a| square(a)).sum::<f64>()).sqrt()
}

/// The training losses of a run.
fn losses(folder: &Path, run: &str) -> Vec<f64> {
    let text = String::from_utf8(read(folder, run, "metrics.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter_map(|line| line["loss"].as_f64()).collect()
}

/// Both runs are of one model, but for the order of floating-point sums.
fn assert_same_model(folder: &Path, one: &str, other: &str) {
    let apart = difference(&weights(folder, one), &weights(folder, other));
    println!("{one} and {other}: weights differ by {apart:.1e} of their size");
    assert!(apart < 1e-5, "{one} and {other}: {apart}");
    for (a, b) in losses(folder, one).iter().zip(losses(folder, other)) {
        assert!((a - b).abs() < 1e-6 * a, "{one} and {other}: loss {a} beside {b}");
    }
}

#[test]
fn ranks_train_the_model_of_one_process() {
    let path: &Path = &with_world();
    let plain = run(path, "--out plain");
    let summary = run(path, "--ranks 2 --out two");
    for key in ["steps", "tokens", "finished", "signature"] {
        assert_eq!(plain[key], summary[key], "{key}");
    }
    assert_same_model(path, "plain", "two");
    // It can fail: another seed is another model.
    run(path, "--seed 2 --text.seed 1 --out other");
    let apart = difference(&weights(path, "plain"), &weights(path, "other"));
    assert!(apart > 0.1, "two seeds differ by {apart}");
    // The same bits for the same number of ranks, under any launcher and in every run.
    run(path, "--gpus 2 --out again");
    for file in ["state.safetensors", "model.safetensors", "metrics.jsonl"] {
        assert!(read(path, "two", file) == read(path, "again", file), "{file}");
    }
    // One rank is the whole way with nobody to add up with: the bits of a process by itself.
    run(path, "--ranks 1 --out one");
    assert!(read(path, "plain", "state.safetensors") == read(path, "one", "state.safetensors"));
}

#[test]
fn what_ranks_cannot_share_is_refused_once() {
    let folder = with_world();
    let flags = format!("{RUN} --ranks 3 --out run");
    let errors = refused(&folder, &flags, 2, "4 micro-batches cannot be shared by 3 ranks");
    assert_eq!(errors.matches("error:").count(), 1, "{errors}");
    let mut alone = command(&folder, &format!("{RUN} --out run"));
    alone.envs([("RANK", "0"), ("LOCAL_RANK", "0"), ("WORLD_SIZE", "2"), ("MASTER_PORT", "9")]);
    alone.envs([("MASTER_ADDR", "127.0.0.1"), ("ISOGLOSS_RANKS_SECRET", "short")]);
    let output = alone.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("less than 32 characters"), "{errors}");
    assert!(!folder.join("run").exists());
}

/// Two processes as torchrun starts them.
fn launch(folder: &Path, flags: &str) -> [Child; 2] {
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let flags = format!("{RUN} --steps 100 {flags}");
    [0, 1].map(|rank| {
        let mut command: Command = command(folder, &flags);
        let rank = rank.to_string();
        command.envs([("RANK", rank.as_str()), ("LOCAL_RANK", &rank), ("WORLD_SIZE", "2")]);
        command.envs([("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", &port.to_string())]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    })
}

/// Open MPI's mpirun starts ranks too; no library of MPI's is needed.
#[test]
fn mpirun_starts_ranks() {
    let found = Command::new("mpirun").arg("--version").stdout(Stdio::null()).status();
    if !found.is_ok_and(|status| status.success()) {
        terms::tests::left_out("mpirun (Debian: openmpi-bin) is not installed");
        return;
    }
    let path: &Path = &with_world();
    let flags = |out| format!("{RUN} --steps 10 --set trajectory=false --out {out}");
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let mut mpirun = Command::new("mpirun");
    mpirun.args(["--allow-run-as-root", "--oversubscribe", "-n", "2", "-x"]);
    mpirun.arg(format!("MASTER_PORT={port}")).arg(env!("CARGO_BIN_EXE_isogloss"));
    let output = mpirun.current_dir(path).args(flags("mpirun").split(' ')).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    done(path, &format!("{} --ranks 2", flags("two")));
    assert!(read(path, "mpirun", "state.safetensors") == read(path, "two", "state.safetensors"));
}

/// Kills one of two ranks once there is a checkpoint. Gives what the other has printed.
fn kill_one(folder: &Path, run: &str, killed: usize) -> Output {
    let [first, second] = launch(folder, &format!("--out {run}"));
    let (mut dying, mut left) = if killed == 0 { (first, second) } else { (second, first) };
    let checkpoint = folder.join(run).join("state.safetensors");
    let begun = Instant::now();
    while !checkpoint.exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no checkpoint after a minute");
        assert!(left.try_wait().unwrap().is_none(), "it ended before it was to lose a rank");
        sleep(Duration::from_millis(5));
    }
    dying.kill().unwrap();
    dying.wait().unwrap();
    let died = Instant::now();
    while left.try_wait().unwrap().is_none() {
        assert!(died.elapsed() < Duration::from_secs(10), "it goes on without rank {killed}");
        sleep(Duration::from_millis(5));
    }
    left.wait_with_output().unwrap()
}

#[test]
fn a_rank_that_dies_stops_the_others_and_the_run_resumes_with_another_number() {
    if !terms::tests::slow() {
        return;
    }
    let path: &Path = &with_world();
    run(path, "--out plain");
    for killed in [1, 0] {
        let name = format!("without-{killed}");
        let output = kill_one(path, &name, killed);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(output.stdout.is_empty());
        let lines: Vec<&str> = errors.lines().filter(|line| line.starts_with("error:")).collect();
        assert_eq!(lines.len(), 1, "{errors}");
        let expected =
            [&format!("rank {killed} (process "), "has ended without a word", "--resume"];
        assert!(expected.iter().all(|text| lines[0].contains(text)), "{errors}");
    }
    // One process after two ranks, and two after two.
    ran(path, "pretrain --resume --device cpu --out without-1");
    let [first, second] = launch(path, "--resume --out without-0");
    for rank in [first, second] {
        let output = rank.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_same_model(path, "plain", "without-1");
    assert_same_model(path, "plain", "without-0");
}
