//! Running a plan: completed steps are found by their keys, missing ones are run, and the records of each step go
//! to the store as soon as it is complete.
//!
//! A step's folder holds what its command wrote, `log`, `step.json` and, once it is complete and not before,
//! `result.json`: what the command printed, with the `build` that ran it. The command inherits the folder's lock as its
//! standard input: should this process be killed, the lock is held for as long as the command goes on by itself, and the
//! next process waits for it and takes its result. An interrupt is passed on to the command.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use files::At;
use serde_json::{Map, Value};

use super::error::{Error, Result};
use super::extraction::{Extraction, Measurement, TextSample};
use super::laboratory::{LOG, Laboratory, RESULT, STEP, StepMetadata, words};
use super::plan::StudyPlan;
use super::step::{StepId, StudyStep};
use crate::build::Build;
use crate::record::{Origin, Record, TextRecord};
use crate::store::{StepScope, Store};

/// How often an interrupt is looked for, and a lock that another process holds.
const POLL: Duration = Duration::from_millis(200);
/// How long a command may take to stop after an interrupt.
const GRACE: Duration = Duration::from_secs(60);

/// How a step ended.
#[derive(Clone, Debug, PartialEq)]
pub enum StepOutcome {
    /// It was complete before.
    Cached,
    /// It was run, in so many seconds.
    Completed(f64),
    /// It failed, for this reason.
    Failed(String),
    /// A step that it needs failed.
    Skipped,
}

/// Is called while a plan is run.
pub trait StudyObserver {
    /// A step begins; `left` is the expected time of all open steps in seconds.
    fn begin(&mut self, number: usize, step: &StudyStep, left: f64);
    /// A step's command printed a line to standard error.
    fn line(&mut self, line: &str);
    /// A step ended.
    fn end(&mut self, number: usize, step: &StudyStep, how: &StepOutcome);
}

/// How a plan is run.
pub struct RunOptions<'a> {
    /// The program whose commands the steps are.
    pub program: &'a Path,
    /// Which build it is; recorded with every result.
    pub build: &'a Build,
    /// The number of threads of each step; every core if none.
    pub threads: Option<usize>,
    /// Whether steps that are complete are run again.
    pub fresh: bool,
    /// Set when the run is to be interrupted.
    pub stop: &'a AtomicBool,
}

/// Runs the missing steps of a plan and writes the records of all. A step that fails is named in the end; the
/// steps that depend on it are skipped, the others run.
pub fn run(
    lab: &Laboratory,
    plan: &StudyPlan,
    options: &RunOptions<'_>,
    observer: &mut dyn StudyObserver,
) -> Result<Vec<StepOutcome>> {
    let store = lab.store()?;
    let mut status = lab.status(plan);
    let mut ended: Vec<StepOutcome> = Vec::new();
    for (number, step) in plan.steps.iter().enumerate() {
        if options.stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        let lost = |&StepId(need): &StepId| {
            matches!(ended[need], StepOutcome::Failed(_) | StepOutcome::Skipped)
        };
        let mut how = if step.needs.iter().any(lost) {
            StepOutcome::Skipped
        } else if !options.fresh && lab.result(&step.key).is_some() {
            StepOutcome::Cached
        } else {
            observer.begin(number, step, status.left(number));
            let runner = StepRunner { lab, plan, number: StepId(number), step, options };
            runner.run(observer).or_else(of_this_step)?
        };
        if matches!(how, StepOutcome::Cached | StepOutcome::Completed(_))
            && let Err(error) = store_records(lab, plan, StepId(number), &store)
        {
            how = StepOutcome::Failed(error.to_string());
        }
        // The measured cost holds for the steps of the same kind that are still open.
        if matches!(how, StepOutcome::Completed(_)) {
            status = lab.status(plan);
        }
        observer.end(number, step, &how);
        ended.push(how);
    }
    match failures(lab, plan, &ended) {
        None => Ok(ended),
        Some(text) => Err(Error::Failed(text)),
    }
}

/// A result that does not parse is a failure of its step alone.
fn of_this_step(error: Error) -> Result<StepOutcome> {
    match error {
        Error::Result { .. } => Ok(StepOutcome::Failed(error.to_string())),
        other => Err(other),
    }
}

/// The message about failed steps.
fn failures(lab: &Laboratory, plan: &StudyPlan, ended: &[StepOutcome]) -> Option<String> {
    let failed = ended.iter().zip(&plan.steps).filter_map(|(how, step)| match how {
        StepOutcome::Failed(reason) => {
            let log = lab.folder(&step.key).join(LOG);
            Some(format!("\n  {}: {reason}\n    its log: {}", step.name, log.display()))
        }
        _ => None,
    });
    let failed: Vec<String> = failed.collect();
    let skipped = ended.iter().filter(|how| **how == StepOutcome::Skipped).count();
    if failed.is_empty() {
        return None;
    }
    Some(format!(
        "{} of {} steps failed, {skipped} that depend on them were skipped, the others are complete:{}",
        failed.len(),
        plan.steps.len(),
        failed.concat()
    ))
}

/// Writes the records of a completed step to the store, in place of those that it gave before.
fn store_records(lab: &Laboratory, plan: &StudyPlan, step: StepId, store: &Store) -> Result<()> {
    let extractions: Vec<&Extraction> =
        plan.extractions.iter().filter(|extraction| extraction.step == step).collect();
    if extractions.is_empty() {
        return Ok(());
    }
    let of = &plan.steps[step.0];
    let folder = lab.folder(&of.key);
    let wrong =
        |reason: String| Error::Result { step: of.name.clone(), reason, folder: folder.clone() };
    let missing = |file: &str| wrong(format!("there is no {file}"));
    let result = lab.result(&of.key).ok_or_else(|| missing(RESULT))?;
    let metadata = lab.metadata(&of.key).ok_or_else(|| missing(STEP))?;
    let (mut records, mut texts) = (Vec::new(), Vec::new());
    for extraction in &extractions {
        let found = extraction.read(&result).map_err(wrong)?;
        let origin = Origin {
            study: plan.study.clone(),
            scale: plan.scale.name().to_owned(),
            seed: extraction.seed,
            step: of.key.clone(),
            command: metadata.command.clone(),
            build: metadata.build.clone(),
            finished_at: metadata.finished_at,
        };
        let files = vec![lab.shown_folder(&of.key)];
        records.extend(found.measurements.into_iter().map(
            |Measurement { measure, factors, value }| Record {
                origin: origin.clone(),
                measure,
                factors,
                value,
                signature: found.signature.clone(),
                files: files.clone(),
            },
        ));
        texts.extend(found.texts.into_iter().map(|TextSample { name, factors, text }| {
            TextRecord { origin: origin.clone(), name, factors, text }
        }));
    }
    let seeds = extractions.iter().map(|extraction| extraction.seed).collect();
    let scope = StepScope { study: &plan.study, scale: plan.scale.name(), step: &of.key, seeds };
    Ok(store.replace(&scope, &records, &texts)?)
}

/// One step being run.
struct StepRunner<'a> {
    lab: &'a Laboratory,
    plan: &'a StudyPlan,
    number: StepId,
    step: &'a StudyStep,
    options: &'a RunOptions<'a>,
}

impl StepRunner<'_> {
    fn run(&self, observer: &mut dyn StudyObserver) -> Result<StepOutcome> {
        let folder = self.lab.folder(&self.step.key);
        fs::create_dir_all(&folder).at(&folder, "make the folder")?;
        let lock = self.lock(&folder, observer)?;
        if self.options.fresh {
            clear(&folder)?;
        } else if self.lab.result(&self.step.key).is_some() {
            return Ok(StepOutcome::Cached);
        }
        let threads = self.step.thread_words(self.options.threads);
        let mut words = words(&self.lab.root, self.plan, self.number);
        words.extend(threads.clone());
        let began = Instant::now();
        let mut status = None;
        if let Some(mut words) = self.step.words_to_resume(&folder) {
            words.extend(threads);
            status = Some(self.command(&words, &folder, &lock, observer)?);
        }
        if !status.is_some_and(|status| status.success()) {
            clear(&folder)?;
            status = Some(self.command(&words, &folder, &lock, observer)?);
        }
        match status {
            Some(status) if status.success() => {
                let seconds = began.elapsed().as_secs_f64();
                self.write_result(&folder, seconds)?;
                Ok(StepOutcome::Completed(seconds))
            }
            _ => Ok(StepOutcome::Failed(last_error(&folder))),
        }
    }

    /// Locks the folder for this process; waits where another runs the same step.
    fn lock(&self, folder: &Path, observer: &mut dyn StudyObserver) -> Result<File> {
        loop {
            match files::lock(folder) {
                Err(files::Error::Busy(_)) => observer.line("another process runs this step"),
                other => return Ok(other?),
            }
            if self.options.stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            std::thread::sleep(POLL);
        }
    }

    /// Runs a command to its end; its output goes to files.
    fn command(
        &self,
        words: &[String],
        folder: &Path,
        lock: &File,
        observer: &mut dyn StudyObserver,
    ) -> Result<ExitStatus> {
        let partial = folder.join("result.partial");
        let mut child = Command::new(self.options.program)
            .args(words)
            .arg("--json")
            .stdin(lock.try_clone().at(folder, "share the lock of")?)
            .stdout(File::create(&partial).at(&partial, "make")?)
            .stderr(Stdio::piped())
            .spawn()
            .at(self.options.program, "run")?;
        let log = folder.join(LOG);
        let mut log_file = File::options().create(true).append(true).open(&log).at(&log, "make")?;
        let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let (send, lines) = mpsc::channel();
        std::thread::spawn(move || {
            stderr
                .split(b'\n')
                .map_while(std::result::Result::ok)
                .try_for_each(|line| send.send(String::from_utf8_lossy(&line).into_owned()))
        });
        let mut interrupted: Option<Instant> = None;
        loop {
            match lines.recv_timeout(POLL) {
                Ok(line) => {
                    writeln!(log_file, "{line}").at(&log, "write")?;
                    observer.line(line.trim_end());
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
            if self.options.stop.load(Ordering::Relaxed) {
                match interrupted {
                    None => interrupt(&child),
                    Some(at) if at.elapsed() > GRACE => {
                        child.kill().at(self.options.program, "stop")?
                    }
                    Some(_) => {}
                }
                interrupted.get_or_insert_with(Instant::now);
            }
        }
        let status = child.wait().at(self.options.program, "wait for")?;
        if self.options.stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        Ok(status)
    }

    /// Writes `step.json` and `result.json` of a command that succeeded.
    fn write_result(&self, folder: &Path, seconds: f64) -> Result<()> {
        let finished_at =
            SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let build = self.options.build.to_string();
        let metadata = StepMetadata {
            name: self.step.name.clone(),
            kind: self.step.kind.clone(),
            command: self.lab.command(self.plan, self.number),
            revision: self.step.command.revision,
            seconds,
            finished_at,
            build: build.clone(),
            device: self.step.device.clone(),
        };
        let metadata = serde_json::to_vec_pretty(&metadata).expect("plain data");
        files::write(&folder.join(STEP), metadata)?;
        let partial = folder.join("result.partial");
        let printed = fs::read(&partial).at(&partial, "read")?;
        let mut result: Map<String, Value> = serde_json::from_slice(&printed).map_err(|error| {
            let (step, reason) = (self.step.name.clone(), format!("no JSON object: {error}"));
            Error::Result { step, reason, folder: folder.to_owned() }
        })?;
        result.insert("build".to_owned(), Value::String(build));
        files::write(&folder.join(RESULT), serde_json::to_vec(&result).expect("plain data"))?;
        let _ = fs::remove_file(partial);
        Ok(())
    }
}

/// Sends SIGTERM to a command, which may then save a checkpoint. Ctrl-C reaches it without this, but a signal
/// to this process alone does not.
fn interrupt(child: &Child) {
    // The command may just have ended by itself.
    #[cfg(unix)]
    let _ = rustix::process::kill_process(
        rustix::process::Pid::from_child(child),
        rustix::process::Signal::TERM,
    );
    #[cfg(not(unix))]
    let _ = child;
}

/// Empties a step's folder, except for its lock and its log.
fn clear(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder).at(folder, "list")? {
        let path = entry.at(folder, "list")?.path();
        let name = path.file_name().unwrap_or_default();
        if name == "lock" || name == LOG {
            continue;
        }
        match path.is_dir() {
            true => fs::remove_dir_all(&path).at(&path, "remove")?,
            false => fs::remove_file(&path).at(&path, "remove")?,
        }
    }
    Ok(())
}

/// Why a command failed: the last error in its log or, without one, the last line.
fn last_error(folder: &Path) -> String {
    let log = fs::read_to_string(folder.join(LOG)).unwrap_or_default();
    let error = log.lines().rev().find_map(|line| line.strip_prefix("error: "));
    let last = || log.lines().rev().find(|line| !line.trim().is_empty());
    error.or_else(last).unwrap_or("it printed nothing").to_owned()
}
