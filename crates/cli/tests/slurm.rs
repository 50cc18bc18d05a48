//! A study on a real cluster: Debian's Slurm with one node on this machine (`slurm/cluster.sh`). Left out, loudly, where
//! Slurm is not installed or this is not root.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

/// A study of two conditions and two seeds, small enough for a test.
const STUDY: &str = r#"
question = "Does it run on a cluster?"
place = "a test"
seeds = [1, 2]
evaluate = ["retrieval"]
conditions = ["no-anchors", "untrained"]

[scales.tiny]
pretrain = ["--steps", "400", "--set", "checkpoint_every=100"]
"#;

/// The cluster, stopped when it is dropped.
struct Cluster(PathBuf);

impl Cluster {
    /// None where it cannot run here.
    fn start(folder: &Path) -> Option<Self> {
        let has = |program: &str| {
            Command::new("which").arg(program).output().is_ok_and(|o| o.status.success())
        };
        if !["slurmctld", "slurmd", "munged", "sbatch"].into_iter().all(has) {
            eprintln!("LEFT OUT: Slurm is not installed (Debian: slurm-wlm, munge)");
            return None;
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slurm/cluster.sh");
        let started = Command::new(script).arg("start").arg(folder).status().unwrap();
        if !started.success() {
            eprintln!("LEFT OUT: the cluster could not be started here (Slurm wants to be root)");
            return None;
        }
        Some(Self(folder.to_owned()))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slurm/cluster.sh");
        let _ = Command::new(script).arg("stop").arg(&self.0).status();
    }
}

/// The environment that the cluster's commands need.
fn on(cluster: &Cluster, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = common::command(folder, arguments);
    command.env("SLURM_CONF", cluster.0.join("slurm.conf"));
    command
}

fn done(cluster: &Cluster, folder: &Path, arguments: &[&str]) -> Value {
    let output = on(cluster, folder, &[arguments, &["--json"]].concat()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// Waits until something holds, and fails with the cluster's last words if it never does.
fn wait_until(cluster: &Cluster, what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        if began.elapsed() > Duration::from_secs(300) {
            let log = std::fs::read_to_string(cluster.0.join("slurmctld.log")).unwrap_or_default();
            let last: Vec<&str> = log.lines().rev().take(30).collect();
            panic!(
                "{what} did not happen in 300 s; slurmctld's last lines, the latest first:\n{}",
                last.join("\n")
            );
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Every measurement of a laboratory, without what tells one run from another.
fn measurements(folder: &Path, lab: &str) -> Vec<(String, String, String)> {
    let all = common::done(folder, &["results", "--lab", lab]);
    let records = all["records"].as_array().unwrap_or_else(|| panic!("{all}"));
    let mut found: Vec<(String, String, String)> = records
        .iter()
        .map(|record| {
            let text = |key: &str| record[key].to_string();
            (text("measure"), text("factors") + &text("seed"), text("value"))
        })
        .collect();
    found.sort();
    found
}

#[test]
fn a_study_survives_a_node_and_equals_the_same_study_on_one_machine() {
    let folder = tempfile::tempdir().unwrap();
    let Some(cluster) = Cluster::start(&folder.path().join("cluster")) else { return };
    let folder = folder.path();
    std::fs::write(folder.join("mine.toml"), STUDY).unwrap();

    let submitted = done(
        &cluster,
        folder,
        &["study", "submit", "mine.toml", "--slurm", "--lab", "far", "--time", "0:20:00"],
    );
    let arrays = submitted["arrays"].as_array().unwrap();
    assert!(arrays.len() >= 3, "worlds, encoders and their evaluation are levels: {submitted}");
    // While its jobs are in the queue, a study is not submitted again.
    let again = on(&cluster, folder, &["study", "submit", "mine.toml", "--slurm", "--lab", "far"])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&again.stderr).contains("still in the queue"));

    // A step dies in the middle of its training, with everything that ran it, as when a node loses power.
    let steps = folder.join("far/steps");
    let checkpoint = || {
        let entries = std::fs::read_dir(&steps).into_iter().flatten().flatten();
        let mut states = entries.map(|entry| entry.path().join("run/state.safetensors"));
        states.any(|state| state.is_file())
    };
    wait_until(&cluster, "a checkpoint", checkpoint);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slurm/cluster.sh");
    let killed = Command::new(&script).arg("kill-node").arg(&cluster.0).status().unwrap();
    assert!(killed.success());

    let count = |status: &Value, state: &str| status["counts"][state].as_u64().unwrap();
    wait_until(&cluster, "the last step", || {
        let status = done(&cluster, folder, &["study", "status", "--lab", "far"]);
        assert_eq!(count(&status, "failed"), 0, "{status:#}");
        count(&status, "waiting") + count(&status, "running") == 0
    });
    wait_until(&cluster, "the collection", || {
        folder.join("far/results.sqlite").is_file() && {
            let queue = Command::new("squeue")
                .arg("-h")
                .env("SLURM_CONF", cluster.0.join("slurm.conf"))
                .output()
                .unwrap();
            queue.stdout.is_empty()
        }
    });

    common::done(folder, &["study", "run", "mine.toml", "--lab", "near"]);
    let (near, far) = (measurements(folder, "near"), measurements(folder, "far"));
    assert!(!near.is_empty());
    assert_eq!(near, far);
    let resumed = std::fs::read_dir(&steps).unwrap().flatten().any(|step| {
        let log = std::fs::read_to_string(step.path().join("log")).unwrap_or_default();
        log.contains("resum")
    });
    assert!(resumed, "the killed training went on from its checkpoint");
    srun_starts_ranks(&cluster);
}

/// Two processes of `srun` train what two of the command's own do, to the bit.
fn srun_starts_ranks(cluster: &Cluster) {
    let folder = common::with_world();
    let flags =
        |out| ["pretrain", "--world", "world", "--device", "cpu", "--steps", "5", "--out", out];
    let mut srun = Command::new("srun");
    srun.args(["--ntasks", "2", env!("CARGO_BIN_EXE_isogloss")]).args(flags("srun"));
    srun.env("SLURM_CONF", cluster.0.join("slurm.conf")).current_dir(folder.path());
    let output = srun.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    common::done(folder.path(), &[&flags("two")[..], &["--ranks", "2"]].concat());
    let read =
        |run: &str| std::fs::read(folder.path().join(run).join("state.safetensors")).unwrap();
    assert!(read("srun") == read("two"));
}

#[test]
fn what_cannot_be_submitted_says_why() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine.toml"), STUDY).unwrap();
    let submit = ["study", "submit", "mine.toml", "--slurm"];
    let mut bare = common::command(folder.path(), &submit);
    let output = bare.env("PATH", folder.path()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("sbatch: is not on this machine"), "{errors}");

    let dry =
        common::done(folder.path(), &[&submit[..], &["--dry-run", "--partition", "long"]].concat());
    let scripts = folder.path().join("lab/slurm/2");
    assert_eq!(dry["folder"], scripts.display().to_string());
    let script = std::fs::read_to_string(scripts.join("level-0-cpu.sh")).unwrap();
    assert!(
        script.contains("#SBATCH --partition=long\n") && script.contains("--requeue"),
        "{script}"
    );
}
