//! Submissions to Slurm: readable job scripts, kept in the laboratory and usable by hand.
//!
//! ```text
//! slurm/1/graph.json          the steps
//! slurm/1/level-0-cpu.sh      a job array: task N runs the step of line N of level-0-cpu.keys
//! slurm/1/level-1-gpu.sh      the next level, after those before it succeeded
//! slurm/1/collect.sh          the last job, which stores the results
//! slurm/1/logs/               what the jobs printed
//! slurm/1/submission.json     the numbers of the jobs
//! ```
//!
//! A job that Slurm is about to stop (SIGUSR1 two minutes before its time is over) saves and is put back into
//! the queue by its script; one that is preempted (SIGTERM) saves, and Slurm puts it back.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use files::{At, sealed};
use serde::{Deserialize, Serialize};

use super::comment;
use super::graph::StepGraph;
use super::state::StepStanding;
use crate::study::error::{Error, Result};
use crate::study::laboratory::{Laboratory, quoted, shell_line};
use crate::study::step::{StepId, StudyStep};

const FOLDER: &str = "slurm";
const SUBMISSION: &str = "submission.json";
const GRAPH: &str = "graph.json";
/// Slurm's own default limit of an array's size is 1001, its last number 1000.
const ARRAY_SIZE: usize = 1000;
/// Seconds before the end of its time at which a job is asked to save.
const NOTICE: u32 = 120;

/// What is asked of Slurm for every job; anything else by `sbatch`.
#[derive(Clone, Debug, Default)]
pub struct JobOptions {
    /// The partition of steps on CPUs, and of all steps where `gpu_partition` is none.
    pub partition: Option<String>,
    pub gpu_partition: Option<String>,
    pub gpus_per_task: u32,
    pub cpus_per_task: Option<u32>,
    /// The longest time of a job, as Slurm writes it.
    pub time: Option<String>,
    /// How many steps of an array may run at a time.
    pub array_limit: Option<u32>,
    pub account: Option<String>,
    /// Further options of `sbatch`, such as `--mem=8G`.
    pub sbatch: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubmittedArray {
    /// Its number in Slurm; empty where it was not submitted.
    pub job: String,
    /// Its script, within the submission's folder.
    pub script: String,
    pub level: usize,
    pub gpu: bool,
    /// The keys of its steps, in the order of its tasks, which are numbered from 1.
    pub keys: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    pub folder: PathBuf,
    pub arrays: Vec<SubmittedArray>,
    /// The number of the job that collects.
    pub collect: String,
    pub cancelled: bool,
}

/// Writes the scripts of a graph's open steps and, unless `dry`, submits them. `collect` are the words of the command
/// that stores the results, and `program` runs it.
///
/// # Errors
/// Where nothing is open, an earlier submission is still in the queue, or Slurm refuses.
pub fn submit(
    lab: &Laboratory,
    graph: &StepGraph,
    options: &JobOptions,
    program: &Path,
    collect: &[String],
    dry: bool,
) -> Result<Submission> {
    if !dry {
        refuse_second(lab)?;
    }
    let typed = [&options.partition, &options.gpu_partition, &options.account, &options.time];
    let typed = typed.into_iter().flatten().chain(&options.sbatch).chain(collect);
    if let Some(word) = typed.into_iter().find(|word| word.contains(char::is_control)) {
        let reason = "has a control character, which would end its line of the script";
        return Err(Error::data(format!("{word:?}"), reason, "write it without"));
    }
    let is_complete = |step: &StudyStep| lab.result(&step.key).is_some();
    let levels = graph.levels(is_complete, |step| lab.has_files(&step.key));
    if levels.is_empty() {
        let place = graph.studies.join(", ");
        return Err(Error::data(place, "every step is complete", "see `isogloss report`"));
    }
    // What a submission left that was killed goes with its lock.
    let _lock = files::FolderLock::take(&lab.root.join(FOLDER))?;
    let folder = new_folder(&lab.root.join(FOLDER))?;
    graph.save(&folder.join(GRAPH))?;
    let writer = ScriptWriter { lab, graph, options, folder: &folder, program };
    let mut arrays = Vec::new();
    for (level, steps) in levels.iter().enumerate() {
        for gpu in [false, true] {
            let of_kind: Vec<StepId> =
                steps.iter().copied().filter(|&step| graph.is_on_gpu(step) == gpu).collect();
            for (part, steps) in of_kind.chunks(ARRAY_SIZE).enumerate() {
                arrays.push(writer.array(level, gpu, part, steps)?);
            }
        }
    }
    writer.collect(collect)?;
    let mut submission = Submission { folder, arrays, collect: String::new(), cancelled: false };
    if !dry && let Err(error) = submission.send() {
        // What was accepted before the refusal would wait for nothing.
        let _ = submission.cancel();
        return Err(error);
    }
    submission.save()?;
    Ok(submission)
}

/// A study of which jobs are in the queue is not submitted again.
fn refuse_second(lab: &Laboratory) -> Result<()> {
    let Some(last) = Submission::latest(lab)?.filter(|last| !last.cancelled) else { return Ok(()) };
    let queued = last.queued()?.len();
    match queued {
        0 => Ok(()),
        queued => Err(Error::data(
            last.folder.display().to_string(),
            format!("{queued} of its jobs are still in the queue"),
            "wait for them (`isogloss study status`), or `isogloss study cancel` first",
        )),
    }
}

/// The first folder of a number that is not there yet.
fn new_folder(root: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(root).at(root, "make the folder")?;
    for number in 1.. {
        let folder = root.join(number.to_string());
        match std::fs::create_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => {
                made.at(&folder, "make the folder")?;
                let logs = folder.join("logs");
                std::fs::create_dir(&logs).at(&logs, "make the folder")?;
                return Ok(folder);
            }
        }
    }
    unreachable!("numbers do not end")
}

struct ScriptWriter<'a> {
    lab: &'a Laboratory,
    graph: &'a StepGraph,
    options: &'a JobOptions,
    folder: &'a Path,
    program: &'a Path,
}

impl ScriptWriter<'_> {
    fn array(
        &self,
        level: usize,
        gpu: bool,
        part: usize,
        steps: &[StepId],
    ) -> Result<SubmittedArray> {
        let kind = if gpu { "gpu" } else { "cpu" };
        let part = if part == 0 { String::new() } else { format!("-{}", part + 1) };
        let name = format!("level-{level}-{kind}{part}");
        let keys: Vec<String> =
            steps.iter().map(|step| self.graph.steps[step.0].key.clone()).collect();
        let list = self.folder.join(format!("{name}.keys"));
        files::write(&list, keys.join("\n") + "\n")?;
        let limit = self.options.array_limit.map_or(String::new(), |limit| format!("%{limit}"));
        let array = format!("--array=1-{}{limit}", keys.len());
        let mut text = self.header(&name, gpu, &[array, "--requeue".to_owned()]);
        let _ = writeln!(text, "#SBATCH --open-mode=append");
        let _ = writeln!(text, "#SBATCH --signal=B:USR1@{NOTICE}");
        let _ = writeln!(text, "\n# Task N runs the step of line N:");
        for (task, step) in steps.iter().enumerate() {
            let _ =
                writeln!(text, "#   {:>4}  {}", task + 1, comment(&self.graph.steps[step.0].name));
        }
        let path = |path: &Path| quoted(&path.display().to_string());
        let (list, program) = (path(&list), path(self.program));
        let (graph, lab) = (path(&self.folder.join(GRAPH)), path(&self.lab.root));
        let _ = write!(
            text,
            "\nkey=$(sed -n \"${{SLURM_ARRAY_TASK_ID}}p\" {list}) || exit 1\n\
             {program} study step \"$key\" --graph {graph} --lab {lab} &\n\
             step=$!\n\
             # Before its time is over the step saves what it has, and waits for its next turn.\n\
             trap 'over=yes; kill -TERM $step' USR1\n\
             trap 'kill -TERM $step' TERM\n\
             wait $step; code=$?\n\
             # A signal ends `wait`, not the step.\n\
             while kill -0 $step 2>/dev/null; do wait $step; code=$?; done\n\
             if [ -n \"$over\" ] && [ $code -ne 0 ]; then\n  \
               scontrol requeue \"${{SLURM_ARRAY_JOB_ID}}_${{SLURM_ARRAY_TASK_ID}}\"\n\
             fi\n\
             exit $code\n"
        );
        let script = format!("{name}.sh");
        files::write(&self.folder.join(&script), text)?;
        Ok(SubmittedArray { job: String::new(), script, level, gpu, keys })
    }

    fn collect(&self, words: &[String]) -> Result<()> {
        let line = shell_line(words);
        let program = quoted(&self.program.display().to_string());
        let mut text = self.header("collect", false, &[]);
        let _ = write!(text, "\n{}\n", line.replacen("isogloss", &program, 1));
        Ok(files::write(&self.folder.join("collect.sh"), text)?)
    }

    fn header(&self, name: &str, gpu: bool, more: &[String]) -> String {
        let options = self.options;
        let study = self.graph.studies.join("+");
        // A folder's own `%` is doubled, since Slurm reads one in the name of a log.
        let logs = self.folder.join("logs").display().to_string().replace('%', "%%");
        let mut lines =
            vec![format!("--job-name={study}-{name}"), format!("--output={logs}/%x-%A_%a.log")];
        let partition = match gpu {
            true => options.gpu_partition.as_ref().or(options.partition.as_ref()),
            false => options.partition.as_ref(),
        };
        lines.extend(partition.map(|partition| format!("--partition={partition}")));
        lines.extend(options.account.as_ref().map(|account| format!("--account={account}")));
        lines.extend(options.time.as_ref().map(|time| format!("--time={time}")));
        lines.extend(options.cpus_per_task.map(|cpus| format!("--cpus-per-task={cpus}")));
        if gpu && options.gpus_per_task > 0 {
            lines.push("--ntasks=1".to_owned());
            lines.push(format!("--gpus-per-task={}", options.gpus_per_task));
        }
        lines.extend(more.iter().cloned());
        lines.extend(options.sbatch.iter().cloned());
        let lines = lines.iter().map(|line| format!("#SBATCH {}\n", comment(&quoted(line))));
        format!("#!/bin/bash\n{}", lines.collect::<String>())
    }
}

impl Submission {
    /// The latest submission of a laboratory, if any.
    ///
    /// # Errors
    /// Where its file is damaged.
    pub fn latest(lab: &Laboratory) -> Result<Option<Self>> {
        let entries = std::fs::read_dir(lab.root.join(FOLDER)).into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok());
        let mut numbers: Vec<u64> = numbers.collect();
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        for number in numbers {
            let path = lab.root.join(FOLDER).join(number.to_string()).join(SUBMISSION);
            let Ok(bytes) = std::fs::read(&path) else { continue };
            let damaged = |reason: String| {
                Error::data(path.display().to_string(), reason, "look at the queue by `squeue`")
            };
            let mut value =
                serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
            if !sealed::open_json(&mut value) {
                return Err(damaged(sealed::ALTERED.to_owned()));
            }
            return serde_json::from_value(value)
                .map(Some)
                .map_err(|error| damaged(error.to_string()));
        }
        Ok(None)
    }

    /// Its steps.
    ///
    /// # Errors
    /// Where the file is damaged, or was planned by a build with other revisions.
    pub fn graph(&self) -> Result<StepGraph> {
        StepGraph::read(&self.folder.join(GRAPH))
    }

    fn save(&self) -> Result<()> {
        let text = serde_json::to_string_pretty(self).expect("plain data");
        Ok(files::write(&self.folder.join(SUBMISSION), sealed::seal_json(&text))?)
    }

    /// Gives the scripts to Slurm: each level after all arrays before it succeeded, the last job after all ended.
    fn send(&mut self) -> Result<()> {
        let mut before: Vec<(usize, String)> = Vec::new();
        for number in 0..self.arrays.len() {
            let array = &self.arrays[number];
            let jobs = before.iter().filter(|(level, _)| *level < array.level);
            let jobs: Vec<&str> = jobs.map(|(_, job)| job.as_str()).collect();
            let job = sbatch(&self.folder.join(&array.script), "afterok", &jobs)?;
            before.push((array.level, job.clone()));
            self.arrays[number].job = job;
        }
        let jobs: Vec<&str> = before.iter().map(|(_, job)| job.as_str()).collect();
        self.collect = sbatch(&self.folder.join("collect.sh"), "afterany", &jobs)?;
        Ok(())
    }

    fn jobs(&self) -> Vec<&str> {
        let arrays = self.arrays.iter().map(|array| array.job.as_str());
        arrays.chain([self.collect.as_str()]).filter(|job| !job.is_empty()).collect()
    }

    /// Takes its jobs out of the queue and stops those that run.
    ///
    /// # Errors
    /// Where Slurm refuses.
    pub fn cancel(&mut self) -> Result<()> {
        let jobs = self.jobs();
        if !jobs.is_empty() {
            output(Command::new("scancel").args(jobs))?;
        }
        self.cancelled = true;
        self.save()
    }

    /// Its jobs in the queue, by number (`12_3` for task 3 of array 12): state and, of waiting ones, why.
    fn queued(&self) -> Result<HashMap<String, (String, String)>> {
        let jobs = self.jobs();
        if jobs.is_empty() {
            return Ok(HashMap::new());
        }
        let mut squeue = Command::new("squeue");
        squeue.args(["--noheader", "--array", "--format=%i|%T|%r", "--jobs", &jobs.join(",")]);
        let listed = match output(&mut squeue) {
            // Of jobs that have all ended Slurm knows nothing any more.
            Err(Error::Data { reason, .. }) if reason.contains("Invalid job id") => String::new(),
            listed => listed?,
        };
        let entry = |line: &str| {
            let [job, state, reason] = line.split('|').collect::<Vec<_>>()[..] else { return None };
            Some((job.to_owned(), (state.to_owned(), reason.to_owned())))
        };
        Ok(listed.lines().filter_map(entry).collect())
    }

    /// How each step stands, in the order of the graph: in the laboratory, and for what is open in the queue.
    ///
    /// # Errors
    /// Where Slurm does not answer.
    pub fn standings(&self, lab: &Laboratory, graph: &StepGraph) -> Result<Vec<StepReport>> {
        let queued = self.queued()?;
        let mut tasks: HashMap<&str, (String, &SubmittedArray)> = HashMap::new();
        for array in &self.arrays {
            for (task, key) in array.keys.iter().enumerate() {
                tasks.insert(key, (format!("{}_{}", array.job, task + 1), array));
            }
        }
        let report = |step: &crate::study::StudyStep| {
            let needs = step.needs.iter().map(|need| graph.steps[need.0].key.clone()).collect();
            let standing = StepStanding::of(lab, &step.key);
            let task = tasks.get(&*step.key);
            let (state, reason) = self.state(standing, task, &queued);
            let job = task.map(|(job, _)| job.clone()).filter(|job| !job.starts_with('_'));
            let (name, key) = (step.name.clone(), step.key.clone());
            StepReport { name, key, needs, state, reason, job }
        };
        Ok(graph.steps.iter().map(report).collect())
    }

    fn state(
        &self,
        standing: StepStanding,
        task: Option<&(String, &SubmittedArray)>,
        queued: &HashMap<String, (String, String)>,
    ) -> (ReportedState, Option<String>) {
        let waits = task.and_then(|(job, _)| queued.get(job));
        match (standing, waits, task) {
            (StepStanding::Complete, ..) => (ReportedState::Done, None),
            // Its node is gone, and with it who could give the lease back.
            (StepStanding::Running(holder), Some((state, reason)), Some((job, _)))
                if state == "PENDING" && holder.job.as_ref() == Some(job) =>
            {
                (ReportedState::Waiting, Some(format!("to go on: {reason}")))
            }
            // Slurm has ended its job; only the lease has not expired yet.
            (StepStanding::Running(holder), None, Some((job, array)))
                if holder.job.as_ref() == Some(job) =>
            {
                (ReportedState::Failed, Some(self.fate(job, array)))
            }
            (StepStanding::Running(holder), ..) => {
                (ReportedState::Running, Some(format!("on {}", holder.described())))
            }
            (_, Some((state, _)), _) if state != "PENDING" => {
                (ReportedState::Running, Some(state.to_lowercase()))
            }
            (_, Some((_, reason)), _) => (ReportedState::Waiting, Some(reason.clone())),
            // What an earlier job has left says nothing about this one.
            (StepStanding::Failed(failed), None, Some((job, array)))
                if !self.cancelled
                    && !array.job.is_empty()
                    && failed.holder.job.as_ref().is_some_and(|of| of != job) =>
            {
                let (fate, before) = (self.fate(job, array), failed.reason);
                (ReportedState::Failed, Some(format!("{fate}; the attempt before: {before}")))
            }
            (StepStanding::Failed(failed), ..) => {
                let clock = failed.holder.clock_in_words().map(|clock| format!(" ({clock})"));
                (ReportedState::Failed, Some(failed.reason + &clock.unwrap_or_default()))
            }
            (StepStanding::Open, None, Some(_)) if self.cancelled => {
                (ReportedState::Cancelled, None)
            }
            (StepStanding::Open, None, Some((job, array))) => {
                (ReportedState::Failed, Some(self.fate(job, array)))
            }
            (StepStanding::Open, None, None) => (ReportedState::Waiting, None),
        }
    }

    /// What became of a job that left no result and no reason behind, as far as Slurm still knows: its controller for some
    /// minutes, its accounting, where there is one, for good.
    fn fate(&self, job: &str, array: &SubmittedArray) -> String {
        let shown = output(Command::new("scontrol").args(["--oneliner", "show", "job", job]));
        let ended = EndedJob::from_scontrol(&shown.unwrap_or_default()).or_else(|| {
            let mut sacct = Command::new("sacct");
            sacct.args(["--noheader", "--parsable2", "--allocations", "--format=State,NodeList"]);
            EndedJob::from_sacct(&output(sacct.args(["--jobs", job])).unwrap_or_default())
        });
        let logs = self.folder.join("logs");
        let of_job = format!("-{job}.log");
        let files = std::fs::read_dir(&logs).into_iter().flatten().flatten();
        let mut files = files.filter(|file| file.file_name().to_string_lossy().ends_with(&of_job));
        let log = files.next().and_then(|file| std::fs::read_to_string(file.path()).ok());
        let full = rustix::fs::statvfs(&logs)
            .is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < ENOUGH);
        let what = described_end(job, ended.as_ref(), log.as_deref(), full, &self.folder);
        format!("{what} (script {}, logs in {}); submit again", array.script, logs.display())
    }
}

/// Bytes below which a disk counts as full: not even the reason of a failure can be relied upon then.
const ENOUGH: u64 = 64 << 10;

/// What Slurm says where a job's script could not be run to its end.
const LAUNCH_FAILURE: &str = "JobLaunchFailure";

#[derive(Debug, PartialEq, Eq)]
struct EndedJob {
    /// As Slurm calls it: `FAILED`, `OUT_OF_MEMORY`.
    state: String,
    /// Why, where Slurm says it: `JobLaunchFailure`.
    reason: Option<String>,
    node: Option<String>,
}

impl EndedJob {
    /// From `scontrol --oneliner show job`.
    fn from_scontrol(shown: &str) -> Option<Self> {
        let field = |name: &str| {
            let mut words = shown.split_whitespace();
            let value = words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
            value.filter(|value| !["(null)", "None", ""].contains(value)).map(str::to_owned)
        };
        Some(Self { state: field("JobState")?, reason: field("Reason"), node: field("NodeList") })
    }

    /// From `sacct --parsable2 --format=State,NodeList`, whose state may be `CANCELLED by 1000`.
    fn from_sacct(listed: &str) -> Option<Self> {
        let (state, node) = listed.lines().last()?.split_once('|')?;
        let state = state.split_whitespace().next()?.to_owned();
        let node = Some(node.trim().to_owned()).filter(|node| node != "None assigned");
        Some(Self { state, reason: None, node })
    }
}

/// Why a job ended that left no reason behind, from what Slurm says and from what the job has printed.
fn described_end(
    job: &str,
    ended: Option<&EndedJob>,
    log: Option<&str>,
    full: bool,
    folder: &Path,
) -> String {
    let node = ended.and_then(|ended| ended.node.as_ref());
    let on = node.map_or(String::new(), |node| format!(" on {node}"));
    let state = ended.map(|ended| ended.state.as_str());
    let reason = ended.and_then(|ended| ended.reason.as_deref());
    // Slurm's own lines are not the step's.
    let own = |line: &&str| line.contains("error: ") && !line.starts_with("slurmstepd");
    match (state, reason, log.and_then(|log| log.lines().rev().find(own))) {
        (Some("OUT_OF_MEMORY"), ..) => {
            format!("it was killed for memory{on}; give more by --sbatch --mem=…")
        }
        (Some("TIMEOUT"), ..) => {
            format!("its time was over{on} before it could save; give more by --time")
        }
        (Some("NODE_FAIL"), ..) => format!("the node failed{on}"),
        (Some("CANCELLED"), Some("DependencyNeverSatisfied" | "Dependency"), _) => {
            "not run, since a step that it needs failed".to_owned()
        }
        (Some("CANCELLED"), ..) => {
            format!("job {job} was cancelled, by hand or since a step that it needs failed")
        }
        _ if full => {
            format!("the disk of {} is full: free some space{on}", folder.display())
        }
        (Some(_), Some(LAUNCH_FAILURE), _) if log.is_none() => {
            format!("job {job} could not be begun{on}: does that node see {}?", folder.display())
        }
        // Slurm says the same of a script that was killed; or the log is of an earlier turn.
        (Some(_), Some(LAUNCH_FAILURE), None) => format!(
            "job {job} was killed{on}, perhaps memory ran out (--sbatch --mem=…); or that node does not see {}",
            folder.display()
        ),
        (Some("FAILED"), _, Some(line)) => format!("{}{on}", line.trim_start_matches("error: ")),
        (Some(state), _, None) if log.is_none() => format!(
            "job {job} ended as {state}{on} and left nothing here: does that node see {}?",
            folder.display()
        ),
        (Some(state), ..) => {
            format!("job {job} ended as {state}{on} without a word; perhaps memory ran out")
        }
        (None, _, Some(line)) => line.trim_start_matches("error: ").to_owned(),
        (None, ..) => format!("job {job} is not in the queue and left nothing behind"),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReportedState {
    Done,
    Running,
    /// It is in the queue, or waits for a submission.
    Waiting,
    Failed,
    Cancelled,
}

#[derive(Clone, Debug, Serialize)]
pub struct StepReport {
    pub name: String,
    pub key: String,
    pub needs: Vec<String>,
    pub state: ReportedState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
}

/// Submits a script, after jobs that it depends on; gives the number of the new job.
fn sbatch(script: &Path, after: &str, jobs: &[&str]) -> Result<String> {
    let mut command = Command::new("sbatch");
    command.arg("--parsable");
    if !jobs.is_empty() {
        command.arg(format!("--dependency={after}:{}", jobs.join(":")));
        command.arg("--kill-on-invalid-dep=yes");
    }
    let printed = output(command.arg(script))?;
    // `12`, or `12;cluster` where there are several.
    Ok(printed.trim().split(';').next().unwrap_or_default().to_owned())
}

/// What a program of Slurm prints; its message where it fails.
fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let run = command.output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::data(
            program.clone(),
            "is not on this machine",
            "run this on a login node of a cluster with Slurm, or use `isogloss study run`",
        ),
        _ => Error::data(program.clone(), error.to_string(), "try it by hand"),
    })?;
    if run.status.success() {
        return Ok(String::from_utf8_lossy(&run.stdout).into_owned());
    }
    let message = String::from_utf8_lossy(&run.stderr).trim().replace('\n', "; ");
    Err(Error::data(program, message, "see `sinfo` for partitions, or change the options"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Slurm 22.05 prints it, abridged.
    fn scontrol(state: &str, reason: &str, node: &str) -> String {
        format!(
            "JobId=5 ArrayJobId=1 ArrayTaskId=1 JobName=mine-level-0-cpu UserId=root(0) Account=(null) \
             JobState={state} Reason={reason} Dependency=(null) Requeue=1 Restarts=0 ExitCode=0:53 \
             ReqNodeList=(null) ExcNodeList=(null) NodeList={node} BatchHost=vm NumNodes=1\n"
        )
    }

    fn described(printed: &str, log: Option<&str>, full: bool) -> String {
        let ended = EndedJob::from_scontrol(printed);
        described_end("1_1", ended.as_ref(), log, full, Path::new("/shared/lab/slurm/1"))
    }

    #[test]
    fn every_end_has_its_own_words() {
        for (state, reason, log, full, words) in [
            ("OUT_OF_MEMORY", "OutOfMemory", None, false, "killed for memory on vm; give more by"),
            ("TIMEOUT", "TimeLimit", Some(""), false, "time was over on vm"),
            ("NODE_FAIL", "NodeDown", None, false, "the node failed on vm"),
            // The node does not see the folder: Slurm cannot open the job's log.
            ("FAILED", "JobLaunchFailure", None, false, "does that node see /shared/lab/slurm/1?"),
            ("FAILED", "JobLaunchFailure", Some("a\n"), false, "perhaps memory ran out"),
            ("FAILED", "NonZeroExitCode", Some("a\nerror: b\n  its log: c\n"), false, "b on vm"),
            (
                "FAILED",
                "NonZeroExitCode",
                Some(""),
                true,
                "the disk of /shared/lab/slurm/1 is full",
            ),
            ("FAILED", "RaisedSignal:9(Killed)", Some("a\n"), false, "perhaps memory ran out"),
            ("CANCELLED", "DependencyNeverSatisfied", None, false, "a step that it needs failed"),
        ] {
            let described = described(&scontrol(state, reason, "vm"), log, full);
            assert!(described.contains(words), "{state}, {reason}: {described}");
        }
        assert!(described("", None, false).contains("not in the queue"), "nobody knows it");
    }

    #[test]
    fn accounting_is_read_where_the_controller_has_forgotten() {
        let ended = |line: &str| EndedJob::from_sacct(line).map(|job| (job.state, job.node));
        let node = || Some("node7".to_owned());
        assert_eq!(ended("OUT_OF_MEMORY|node7\n"), Some(("OUT_OF_MEMORY".to_owned(), node())));
        let cancelled = ended("CANCELLED by 1000|None assigned\n");
        assert_eq!(cancelled, Some(("CANCELLED".to_owned(), None)));
        assert_eq!(ended(""), None);
    }
}
