//! `isogloss study submit`, `status`, `cancel`, `step` and `collect`: studies on a cluster with Slurm.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use lab::study::cluster::slurm::{self, JobOptions, ReportedState, StepReport, Submission};
use lab::study::cluster::{StepGraph, run_step};
use lab::study::{Laboratory, RunOptions, collect};
use serde::Serialize;
use serde_json::json;

use super::study::{CollectFlags, OtherSettings, StudyChoice, lab_flag};
use super::study_view::{duration, this_build};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::stop;

pub(super) const SUBMIT_EXAMPLES: &str = "Examples:
  Every step of a study as a job, those that train on the partition with GPUs:
    isogloss study submit table-1 --scale small --data data --pair en-fr --slurm \\
      --partition cpu --gpu-partition gpu --gpus-per-task 1 --time 2:00:00
  How it stands, and why something failed:
    isogloss study status
  The scripts only, to read, change and submit by hand:
    isogloss study submit table-1 --slurm --dry-run
  What is missing, after a failure was mended:
    isogloss study submit table-1 --slurm

The laboratory (--lab) lies on a folder that all nodes share. Jobs are arrays, one for each level of the
plan's graph, and a level begins once those before it have succeeded; the last job stores the results. A job that is
preempted or runs out of time saves what it has and goes on later.";

pub(super) const STATUS_EXAMPLES: &str = "Examples:
  isogloss study status --lab lab
  isogloss study status --json";

pub(super) const CANCEL_EXAMPLES: &str = "Example:
  isogloss study cancel --lab lab

Completed steps are kept; `isogloss study submit` does what is missing.";

pub(super) const STEP_EXAMPLES: &str = "Example:
  One step, as the scripts of `study submit` and the rules of `study plan --format snakemake` run it:
    isogloss study step 0c1f6d2a9b3e4f5a6b7c --graph lab/slurm/1/graph.json

Several machines may share the laboratory: a step that another process is running is refused.";

pub(super) const COLLECT_EXAMPLES: &str = "Example:
  isogloss study collect table-1 --scale small --data data --pair en-fr

`study run` does this by itself; the last job of `study submit` runs this command.";

#[derive(Args)]
pub(crate) struct SubmitFlags {
    #[command(flatten)]
    choice: StudyChoice,

    /// Submit to Slurm, by `sbatch`.
    #[arg(long, required = true, help_heading = "Cluster")]
    slurm: bool,

    /// The partition of the jobs.
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    partition: Option<String>,

    /// The partition of the jobs that compute on a GPU, if it is another.
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    gpu_partition: Option<String>,

    /// GPUs of each job that can compute on one; steps are then planned for a GPU, whatever this machine has.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Cluster")]
    gpus_per_task: u32,

    /// CPUs of each job.
    #[arg(long, value_name = "N", help_heading = "Cluster")]
    cpus_per_task: Option<u32>,

    /// The longest time of a job, such as 2:00:00.
    #[arg(long, value_name = "TIME", help_heading = "Cluster")]
    time: Option<String>,

    /// How many jobs of an array may run at a time.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Cluster")]
    array_limit: Option<u32>,

    /// The account that pays.
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    account: Option<String>,

    /// Further options of sbatch, in quotes, such as '--mem=8G --qos=long'.
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true, help_heading = "Cluster")]
    sbatch: Option<String>,

    /// Write the scripts, and submit nothing.
    #[arg(long, help_heading = "Cluster")]
    dry_run: bool,

    #[command(flatten)]
    settings: OtherSettings,
}

#[derive(Args)]
pub(crate) struct LabFlag {
    /// The laboratory's folder.
    #[arg(long, value_name = "DIR", default_value = "lab", help_heading = "Output")]
    lab: PathBuf,
}

#[derive(Args)]
pub(crate) struct StepFlags {
    /// The key of the step.
    #[arg(value_name = "KEY")]
    key: String,

    /// The steps, as `study submit` and `study plan --format` wrote them.
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    graph: PathBuf,

    /// CPU threads; 0 takes every core that the job has. It changes no result.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Compute")]
    threads: usize,

    #[command(flatten)]
    lab: LabFlag,
}

#[derive(Serialize)]
struct SubmitSummary {
    studies: Vec<String>,
    #[serde(flatten)]
    submission: Submission,
    steps: usize,
}

impl SubmitFlags {
    pub(super) fn run(mut self) -> Result<Outcome, Failure> {
        debug_assert!(self.slurm, "clap requires it");
        if self.gpus_per_task > 0 && self.choice.device == "auto" {
            "cuda".clone_into(&mut self.choice.device);
        }
        let plans = self.choice.plans()?;
        let graph = StepGraph::of(&plans);
        let lab = Laboratory::open(&self.choice.lab)?;
        let words = |flags: &String| flags.split_whitespace().map(str::to_owned).collect();
        let options = JobOptions {
            partition: self.partition,
            gpu_partition: self.gpu_partition,
            gpus_per_task: self.gpus_per_task,
            cpus_per_task: self.cpus_per_task,
            time: self.time,
            array_limit: self.array_limit,
            account: self.account,
            sbatch: self.sbatch.as_ref().map(words).unwrap_or_default(),
        };
        if !self.dry_run {
            // Refused here, and not by the last job.
            lab.enter_settings(&plans, self.settings.force)?;
        }
        let program = crate::invocation::program();
        let collect = self.choice.collecting()?;
        let submission = slurm::submit(&lab, &graph, &options, program, &collect, self.dry_run)?;
        let steps = submission.arrays.iter().map(|array| array.keys.len()).sum();
        let mut text = String::new();
        for array in &submission.arrays {
            let job = if self.dry_run { "not submitted" } else { &*array.job };
            let _ = writeln!(text, "{job:>8}  {:<20} {} steps", array.script, array.keys.len());
        }
        let _ = write!(text, "{steps} steps in {}", submission.folder.display());
        if !self.dry_run {
            let _ = write!(text, "\nstatus:  isogloss study status{}", lab_flag(&self.choice.lab));
        }
        Ok(Outcome::new(text, &SubmitSummary { studies: graph.studies, submission, steps }))
    }
}

fn latest(lab: &Laboratory, shown: &std::path::Path) -> Result<Submission, Failure> {
    Submission::latest(lab)?.ok_or_else(|| {
        Failure::Usage(format!(
            "{}: no study was submitted from it; see `isogloss study submit --help`",
            shown.display()
        ))
    })
}

impl LabFlag {
    pub(super) fn status(self) -> Result<Outcome, Failure> {
        let lab = Laboratory::open(&self.lab)?;
        let submission = latest(&lab, &self.lab)?;
        let graph = submission.graph()?;
        let steps = submission.standings(&lab, &graph)?;
        let count = |state: ReportedState| steps.iter().filter(|step| step.state == state).count();
        let counts = json!({
            "done": count(ReportedState::Done),
            "running": count(ReportedState::Running),
            "waiting": count(ReportedState::Waiting),
            "failed": count(ReportedState::Failed),
            "cancelled": count(ReportedState::Cancelled),
        });
        let text = described(&graph, &steps);
        let folder = &submission.folder;
        let value = json!({ "studies": graph.studies, "submission": folder, "counts": counts, "steps": steps });
        Ok(Outcome::new(text, &value))
    }

    pub(super) fn cancel(self) -> Result<Outcome, Failure> {
        let lab = Laboratory::open(&self.lab)?;
        let mut submission = latest(&lab, &self.lab)?;
        submission.cancel()?;
        let text = format!("{}: cancelled; completed steps are kept", submission.folder.display());
        Ok(Outcome::new(text, &json!({ "cancelled": submission.folder })))
    }
}

/// The steps that are not done, each with why, by how they stand; the others are counted.
fn described(graph: &StepGraph, steps: &[StepReport]) -> String {
    let mut text = String::new();
    for (state, title) in [
        (ReportedState::Failed, "failed"),
        (ReportedState::Running, "running"),
        (ReportedState::Waiting, "waiting"),
        (ReportedState::Cancelled, "cancelled"),
    ] {
        for step in steps.iter().filter(|step| step.state == state) {
            let job = step.job.as_deref().unwrap_or("–");
            let _ = write!(text, "{title:>9}  {job:<8} {}", step.name);
            let reason = step.reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
            let _ = writeln!(text, "{reason}");
        }
    }
    let done = steps.iter().filter(|step| step.state == ReportedState::Done).count();
    let _ = write!(text, "{}: {done} of {} steps done", graph.studies.join(", "), steps.len());
    text
}

impl StepFlags {
    pub(super) fn run(self) -> Result<Outcome, Failure> {
        let lab = Laboratory::open(&self.lab.lab)?;
        let graph = StepGraph::read(&self.graph)?;
        let number = graph.find(&self.key).ok_or_else(|| {
            Failure::Usage(format!("{}: it has no step `{}`", self.graph.display(), self.key))
        })?;
        let options = RunOptions {
            program: crate::invocation::program(),
            build: &this_build(),
            jobs: 1,
            threads: Some(self.threads).filter(|threads| *threads > 0),
            fresh: false,
            force: false,
            snapshots: false,
            stop: stop::listen(),
        };
        let name = graph.steps[number.0].name.clone();
        say!("{name}");
        let line = |line: &str| say!("{line}");
        let seconds = run_step(&lab, &graph, number, job(), &options, &line)?;
        let text = match seconds {
            Some(seconds) => format!("{name}: {}", duration(seconds)),
            None => format!("{name}: complete before"),
        };
        Ok(Outcome::new(text, &json!({ "key": self.key, "name": name, "seconds": seconds })))
    }
}

/// The job of Slurm that this process belongs to, if any.
fn job() -> Option<String> {
    let value = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    match (value("SLURM_ARRAY_JOB_ID"), value("SLURM_ARRAY_TASK_ID")) {
        (Some(job), Some(task)) => Some(format!("{job}_{task}")),
        _ => value("SLURM_JOB_ID"),
    }
}

impl CollectFlags {
    pub(super) fn run(self) -> Result<Outcome, Failure> {
        let Self { choice, settings } = self;
        let plans = choice.plans()?;
        let found = collect(&Laboratory::open(&choice.lab)?, &plans, settings.force)?;
        let text = format!(
            "{} steps complete, {} open\nreport:  isogloss report{}",
            found.complete,
            found.open,
            lab_flag(&choice.lab)
        );
        Ok(Outcome::new(text, &json!({ "complete": found.complete, "open": found.open })))
    }
}
