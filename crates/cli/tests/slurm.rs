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
pretrain = ["--steps", "600", "--set", "checkpoint_every=100"]
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
            terms::tests::left_out("Slurm is not installed (Debian: slurm-wlm, munge)");
            return None;
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slurm/cluster.sh");
        let started = Command::new(script).arg("start").arg(folder).status().unwrap();
        if !started.success() {
            terms::tests::left_out(
                "the cluster could not be started here (Slurm wants to be root)",
            );
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
fn on(cluster: &Cluster, folder: &Path, arguments: &str) -> Command {
    let mut command = common::command(folder, arguments);
    command.env("SLURM_CONF", cluster.0.join("slurm.conf"));
    command
}

fn done(cluster: &Cluster, folder: &Path, arguments: &str) -> Value {
    let output = on(cluster, folder, &format!("{arguments} --json")).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// A script that does something to the cluster.
fn cluster_does(cluster: &Cluster, what: &str, more: &str) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slurm/cluster.sh");
    let done = Command::new(script)
        .arg(what)
        .arg(&cluster.0)
        .args(more.split_whitespace())
        .status()
        .unwrap();
    assert!(done.success(), "{what}");
}

/// What a command of Slurm prints.
fn slurm(cluster: &Cluster, program: &str, arguments: &str) -> String {
    let mut command = Command::new(program);
    command.args(arguments.split_whitespace()).env("SLURM_CONF", cluster.0.join("slurm.conf"));
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn is_queue_empty(cluster: &Cluster) -> bool {
    slurm(cluster, "squeue", "--noheader").is_empty()
}

/// A training that runs, once there is one: its job.
fn running_training(cluster: &Cluster, folder: &Path, lab: &str) -> String {
    let mut found = None;
    wait_until(cluster, "a training", || {
        let status = done(cluster, folder, &format!("study status --lab {lab}"));
        let steps = status["steps"].as_array().unwrap().iter();
        let mut running = steps.filter(|step| {
            let name = step["name"].as_str().unwrap();
            step["state"] == "running" && name.starts_with("pretrain: no-anchors")
        });
        let job = running.next().map(|step| step["job"].as_str().unwrap().to_owned());
        // As long as nothing is there to be stopped, the signal would come too early.
        found = job.filter(|job| {
            let listed = "--noheader --array --states=R --format=%i";
            slurm(cluster, "squeue", listed).lines().any(|line| line == job)
        });
        found.is_some()
    });
    found.unwrap()
}

/// Does something to a training after which it is to wait for its next turn. A signal that comes before the job's script
/// listens is lost, and a training may end just then: it is done again.
fn interrupt_training(cluster: &Cluster, folder: &Path, interrupt: impl Fn(&str)) {
    let waiting = "--noheader --array --states=PD --format=%i";
    for _ in 0..10 {
        let job = running_training(cluster, folder, "far");
        interrupt(&job);
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(4) {
            if slurm(cluster, "squeue", waiting).lines().any(|line| line == job) {
                return;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }
    panic!("no training waits for its next turn");
}

/// The reason of the first failed step of a laboratory.
fn first_failure(cluster: &Cluster, folder: &Path, lab: &str) -> String {
    let status = done(cluster, folder, &format!("study status --lab {lab}"));
    let mut steps = status["steps"].as_array().unwrap().iter();
    let failed = steps.find(|step| step["state"] == "failed");
    failed.unwrap_or_else(|| panic!("{status:#}"))["reason"].as_str().unwrap().to_owned()
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
    let all = common::done(folder, &format!("results --lab {lab}"));
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
    let folder = common::Folder::new();
    let Some(cluster) = Cluster::start(&folder.join("cluster")) else { return };
    let folder: &Path = &folder;
    std::fs::write(folder.join("mine.toml"), STUDY).unwrap();

    let submitted =
        done(&cluster, folder, "study submit mine.toml --slurm --lab far --time 0:20:00");
    let arrays = submitted["arrays"].as_array().unwrap();
    assert!(arrays.len() >= 3, "worlds, encoders and their evaluation are levels: {submitted}");
    // While its jobs are in the queue, a study is not submitted again.
    let again = on(&cluster, folder, "study submit mine.toml --slurm --lab far").output().unwrap();
    assert!(String::from_utf8_lossy(&again.stderr).contains("still in the queue"));

    // A step dies in the middle of its training, with everything that ran it, as when a node loses power.
    let steps = folder.join("far/steps");
    let checkpoint = || {
        let entries = std::fs::read_dir(&steps).into_iter().flatten().flatten();
        let mut states = entries.map(|entry| entry.path().join("run/state.safetensors"));
        states.any(|state| state.is_file())
    };
    wait_until(&cluster, "a checkpoint", checkpoint);
    cluster_does(&cluster, "kill-node", "");
    // These depend on signals that reach a short training in time, and take minutes.
    let with_faults = std::env::var_os("ISOGLOSS_SLURM_FAULTS").is_some();
    if with_faults {
        // Of those that go on, one gets SIGUSR1 (near its time limit) and one is preempted: both save and are requeued.
        interrupt_training(&cluster, folder, |job| {
            slurm(&cluster, "scancel", &format!("--batch --signal=USR1 {job}"));
        });
        interrupt_training(&cluster, folder, |job| {
            slurm(&cluster, "scontrol", &format!("requeue {job}"));
        });
    }

    let count = |status: &Value, state: &str| status["counts"][state].as_u64().unwrap();
    wait_until(&cluster, "the last step", || {
        let status = done(&cluster, folder, "study status --lab far");
        assert_eq!(count(&status, "failed"), 0, "{status:#}");
        count(&status, "waiting") + count(&status, "running") == 0
    });
    wait_until(&cluster, "the collection", || {
        folder.join("far/results.sqlite").is_file() && is_queue_empty(&cluster)
    });

    common::done(folder, "study run mine.toml --lab near");
    let (near, far) = (measurements(folder, "near"), measurements(folder, "far"));
    assert!(!near.is_empty());
    assert_eq!(near, far);
    let resumed = std::fs::read_dir(&steps).unwrap().flatten().any(|step| {
        let log = std::fs::read_to_string(step.path().join("log")).unwrap_or_default();
        log.contains("resum")
    });
    assert!(resumed, "the killed training went on from its checkpoint");
    srun_starts_ranks(&cluster);
    if with_faults {
        every_fault_has_its_message(&cluster, folder);
    } else {
        terms::tests::left_out(
            "signals, preemption and faults of jobs (set ISOGLOSS_SLURM_FAULTS=1)",
        );
    }
}

/// A partition that does not exist, a node that does not see the folder, a job that is killed for memory, a full disk.
fn every_fault_has_its_message(cluster: &Cluster, folder: &Path) {
    let submit = |lab: &str, more: &str| {
        let flags = format!("study submit mine.toml --slurm --lab {lab}");
        on(cluster, folder, &format!("{flags} {more}")).output().unwrap()
    };
    let refused = submit("faults", "--partition nope");
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && errors.contains("invalid partition specified: nope"));
    assert!(is_queue_empty(cluster), "nothing of it waits");

    // For as long as its job begins, the folder is not where the node looks for it.
    assert!(submit("faults", "--sbatch=--begin=now+2").status.success());
    std::fs::rename(folder.join("faults"), folder.join("elsewhere")).unwrap();
    wait_until(cluster, "the end of jobs that see no folder", || is_queue_empty(cluster));
    std::fs::rename(folder.join("elsewhere"), folder.join("faults")).unwrap();
    let reason = first_failure(cluster, folder, "faults");
    assert!(reason.contains("does that node see"), "{reason}");

    // Submitted again it runs. The system kills a training with everything around it, and Slurm ends the job.
    assert!(submit("faults", "").status.success());
    let job = running_training(cluster, folder, "faults");
    cluster_does(cluster, "kill-job", &job);
    let queued = "--noheader --array --format=%i";
    wait_until(cluster, "the end of the killed job", || {
        !slurm(cluster, "squeue", queued).lines().any(|line| line == job)
    });
    let reason = first_failure(cluster, folder, "faults");
    assert!(reason.contains("perhaps memory ran out"), "{reason}");
    done(cluster, folder, "study cancel --lab faults");
    wait_until(cluster, "an empty queue", || is_queue_empty(cluster));
    a_full_disk_has_its_message(cluster, folder);
}

fn a_full_disk_has_its_message(cluster: &Cluster, folder: &Path) {
    let disk = folder.join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mount = |program: &str, arguments: &str| {
        let status = Command::new(program).args(arguments.split_whitespace()).arg(&disk).status();
        status.is_ok_and(|status| status.success())
    };
    if !mount("mount", "-t tmpfs -o size=600k none") {
        return terms::tests::left_out("a full disk: no file system can be mounted here");
    }
    let submitted = done(cluster, folder, "study submit mine.toml --slurm --lab disk/lab");
    assert!(submitted["steps"].as_u64() > Some(0));
    wait_until(cluster, "the end of jobs on a full disk", || is_queue_empty(cluster));
    let reason = first_failure(cluster, folder, "disk/lab");
    assert!(mount("umount", ""));
    assert!(reason.contains("No space left") || reason.contains("disk is full"), "{reason}");
}

/// Two processes of `srun` train what two of the command's own do, to the bit.
fn srun_starts_ranks(cluster: &Cluster) {
    let folder = common::with_world();
    let flags = |out| format!("pretrain --world world --device cpu --steps 5 --out {out}");
    let mut srun = Command::new("srun");
    srun.args(["--ntasks", "2", env!("CARGO_BIN_EXE_isogloss")]).args(flags("srun").split(' '));
    srun.env("SLURM_CONF", cluster.0.join("slurm.conf")).current_dir(&folder);
    let output = srun.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    common::done(&folder, &format!("{} --ranks 2", flags("two")));
    let read = |run: &str| std::fs::read(folder.join(run).join("state.safetensors")).unwrap();
    assert!(read("srun") == read("two"));
}

#[test]
fn what_cannot_be_submitted_says_why() {
    let folder = common::Folder::new();
    std::fs::write(folder.join("mine.toml"), STUDY).unwrap();
    let submit = "study submit mine.toml --slurm";
    let mut bare = common::command(&folder, &submit);
    let output = bare.env("PATH", &*folder).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("sbatch: is not on this machine"), "{errors}");

    let dry = common::done(&folder, &format!("{submit} --dry-run --partition long"));
    let scripts = folder.join("lab/slurm/2");
    assert_eq!(dry["folder"], scripts.display().to_string());
    let script = std::fs::read_to_string(scripts.join("level-0-cpu.sh")).unwrap();
    assert!(
        script.contains("#SBATCH --partition=long\n") && script.contains("--requeue"),
        "{script}"
    );
}
