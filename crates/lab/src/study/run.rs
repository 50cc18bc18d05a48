//! Running a plan: what is done already is found again, what is missing is run, and every number goes
//! to the store as soon as its step is done.
//!
//! A step's folder holds what its command wrote, `log`, `step.json` and, when it is done and not
//! before, `result.json`. The command inherits the folder's lock as its standard input: should this
//! process be killed, the lock stays for as long as the command goes on by itself, and whoever comes
//! next waits for it and takes over what it has done. Should it be asked to stop, it asks the command.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use files::At;
use serde_json::Value;

use super::error::{Error, Result};
use super::laboratory::{Kept, LOG, Lab, RESULT, STEP, words};
use super::plan::Plan;
use super::readings::{Number, Reading, Said};
use super::step::{Step, StepId};
use crate::record::{Note, Origin, Record};
use crate::store::{Filed, Store};

/// How often a wish to stop is looked for, and another process that does the same step.
const PATIENCE: Duration = Duration::from_millis(200);
/// How long a command may take to stop by itself.
const GRACE: Duration = Duration::from_secs(60);

/// How a step ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Done {
    /// It had been done before.
    Before,
    /// It was done, in so many seconds.
    Now(f64),
    /// It failed, for this reason.
    Failed(String),
    /// A step that it needs failed.
    Skipped,
}

/// Sees a plan being run.
pub trait Watch {
    /// A step begins; `left` are the seconds that may be left for all.
    fn begin(&mut self, number: usize, step: &Step, left: f64);
    /// A step's command says something.
    fn says(&mut self, line: &str);
    /// A step ended.
    fn end(&mut self, number: usize, step: &Step, how: &Done);
}

/// Runs what is missing of a plan and files all numbers. Steps that fail are passed over with what
/// depends on them, and named in the end.
pub fn run(
    lab: &Lab,
    plan: &Plan,
    program: &Path,
    watch: &mut dyn Watch,
    stop: &AtomicBool,
) -> Result<Vec<Done>> {
    let store = lab.store()?;
    let mut outlook = lab.outlook(plan);
    let mut ended: Vec<Done> = Vec::new();
    for (number, step) in plan.steps.iter().enumerate() {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        let lost = |&StepId(need): &StepId| matches!(ended[need], Done::Failed(_) | Done::Skipped);
        let mut how = if step.needs.iter().any(lost) {
            Done::Skipped
        } else if lab.result(&step.key).is_some() {
            Done::Before
        } else {
            watch.begin(number, step, outlook.left(number));
            let runner = Runner { lab, plan, number: StepId(number), step, program, stop };
            runner.run(watch).or_else(of_this_step)?
        };
        if matches!(how, Done::Before | Done::Now(_))
            && let Err(error) = file_numbers(lab, plan, StepId(number), &store)
        {
            how = Done::Failed(error.to_string());
        }
        // What was just learned of a kind's cost holds for those still to come.
        if matches!(how, Done::Now(_)) {
            outlook = lab.outlook(plan);
        }
        watch.end(number, step, &how);
        ended.push(how);
    }
    match failures(lab, plan, &ended) {
        None => Ok(ended),
        Some(text) => Err(Error::Failed(text)),
    }
}

/// A result that makes no sense is a failure of its step, and no reason to end the others.
fn of_this_step(error: Error) -> Result<Done> {
    match error {
        Error::Result { .. } => Ok(Done::Failed(error.to_string())),
        other => Err(other),
    }
}

/// What failed, in words.
fn failures(lab: &Lab, plan: &Plan, ended: &[Done]) -> Option<String> {
    let failed = ended.iter().zip(&plan.steps).filter_map(|(how, step)| match how {
        Done::Failed(reason) => {
            let log = lab.folder(&step.key).join(LOG);
            Some(format!("\n  {}: {reason}\n    its log: {}", step.name, log.display()))
        }
        _ => None,
    });
    let failed: Vec<String> = failed.collect();
    let skipped = ended.iter().filter(|how| **how == Done::Skipped).count();
    if failed.is_empty() {
        return None;
    }
    Some(format!(
        "{} of {} steps failed, and {skipped} that need them were passed over; the rest is done:{}",
        failed.len(),
        plan.steps.len(),
        failed.concat()
    ))
}

/// Puts the numbers of a step that is done into the store, in place of those that it gave before.
fn file_numbers(lab: &Lab, plan: &Plan, step: StepId, store: &Store) -> Result<()> {
    let readings = plan.readings.iter().filter(|reading| reading.step == step);
    let readings: Vec<&Reading> = readings.collect();
    if readings.is_empty() {
        return Ok(());
    }
    let of = &plan.steps[step.0];
    let folder = lab.folder(&of.key);
    let (mut records, mut notes) = (Vec::new(), Vec::new());
    for reading in &readings {
        let missing = |key: &str| Error::Result {
            step: of.name.clone(),
            key: key.to_owned(),
            folder: folder.clone(),
        };
        let result = lab.result(&of.key).ok_or_else(|| missing(RESULT))?;
        let kept = lab.kept(&of.key).ok_or_else(|| missing(STEP))?;
        let found = reading.read(&result).map_err(|key| missing(&key))?;
        let origin = Origin {
            study: plan.study.clone(),
            scale: plan.scale.clone(),
            seed: reading.seed,
            step: of.key.clone(),
            command: kept.command,
            version: kept.version,
            made: kept.made,
        };
        let files = vec![lab.called(&of.key)];
        records.extend(found.numbers.into_iter().map(|Number { measure, factors, value }| {
            Record {
                origin: origin.clone(),
                measure,
                factors,
                value,
                signature: found.signature.clone(),
                files: files.clone(),
            }
        }));
        notes.extend(found.texts.into_iter().map(|Said { name, factors, text }| Note {
            origin: origin.clone(),
            name,
            factors,
            text,
        }));
    }
    let seeds = readings.iter().map(|reading| reading.seed).collect();
    let filed = Filed { study: &plan.study, scale: &plan.scale, step: &of.key, seeds };
    Ok(store.file(&filed, &records, &notes)?)
}

/// One step being run.
struct Runner<'a> {
    lab: &'a Lab,
    plan: &'a Plan,
    number: StepId,
    step: &'a Step,
    program: &'a Path,
    stop: &'a AtomicBool,
}

impl Runner<'_> {
    fn run(&self, watch: &mut dyn Watch) -> Result<Done> {
        let folder = self.lab.folder(&self.step.key);
        fs::create_dir_all(&folder).at(&folder, "make the folder")?;
        let lock = self.lock(&folder, watch)?;
        if self.lab.result(&self.step.key).is_some() {
            return Ok(Done::Before);
        }
        let words = words(&self.lab.root, self.plan, self.number);
        let began = Instant::now();
        let mut status = None;
        if let Some(words) = self.step.words_to_resume(&folder) {
            status = Some(self.command(&words, &folder, &lock, watch)?);
        }
        if !status.is_some_and(|status| status.success()) {
            clear(&folder)?;
            status = Some(self.command(&words, &folder, &lock, watch)?);
        }
        match status {
            Some(status) if status.success() => {
                let seconds = began.elapsed().as_secs_f64();
                self.keep(&folder, seconds)?;
                Ok(Done::Now(seconds))
            }
            _ => Ok(Done::Failed(last_words(&folder))),
        }
    }

    /// Takes the folder for this process; waits where another does the same step.
    fn lock(&self, folder: &Path, watch: &mut dyn Watch) -> Result<File> {
        loop {
            match files::lock(folder) {
                Err(files::Error::Busy(_)) => watch.says("another process is at this step"),
                other => return Ok(other?),
            }
            if self.stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            std::thread::sleep(PATIENCE);
        }
    }

    /// Runs a command to its end; what it prints goes to files.
    fn command(
        &self,
        words: &[String],
        folder: &Path,
        lock: &File,
        watch: &mut dyn Watch,
    ) -> Result<ExitStatus> {
        let partial = folder.join("result.partial");
        let mut child = Command::new(self.program)
            .args(words)
            .arg("--json")
            .stdin(lock.try_clone().at(folder, "share the lock of")?)
            .stdout(File::create(&partial).at(&partial, "make")?)
            .stderr(Stdio::piped())
            .spawn()
            .at(self.program, "run")?;
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
        let mut asked: Option<Instant> = None;
        loop {
            match lines.recv_timeout(PATIENCE) {
                Ok(line) => {
                    writeln!(log_file, "{line}").at(&log, "write")?;
                    watch.says(line.trim_end());
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
            if self.stop.load(Ordering::Relaxed) {
                match asked {
                    None => ask_to_stop(&child),
                    Some(at) if at.elapsed() > GRACE => child.kill().at(self.program, "stop")?,
                    Some(_) => {}
                }
                asked.get_or_insert_with(Instant::now);
            }
        }
        let status = child.wait().at(self.program, "wait for")?;
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        Ok(status)
    }

    /// Keeps the result of a command that ended well.
    fn keep(&self, folder: &Path, seconds: f64) -> Result<()> {
        let made = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let kept = Kept {
            name: self.step.name.clone(),
            kind: self.step.kind.clone(),
            command: self.lab.command(self.plan, self.number),
            seconds,
            made,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            device: self.step.device.clone(),
        };
        let kept = serde_json::to_vec_pretty(&kept).expect("plain data");
        files::write(&folder.join(STEP), kept)?;
        let partial = folder.join("result.partial");
        let printed = fs::read(&partial).at(&partial, "read")?;
        let result: std::result::Result<Value, _> = serde_json::from_slice(&printed);
        if result.is_err() {
            let (step, key) = (self.step.name.clone(), "a JSON object".to_owned());
            return Err(Error::Result { step, key, folder: folder.to_owned() });
        }
        files::write(&folder.join(RESULT), printed)?;
        let _ = fs::remove_file(partial);
        Ok(())
    }
}

/// Asks a command politely to stop: one that can saves what it has done. Ctrl-C reaches it by itself,
/// but a signal to this process alone does not.
fn ask_to_stop(child: &Child) {
    // That it has just ended by itself is no failure.
    #[cfg(unix)]
    let _ = rustix::process::kill_process(
        rustix::process::Pid::from_child(child),
        rustix::process::Signal::TERM,
    );
    #[cfg(not(unix))]
    let _ = child;
}

/// Empties a step's folder of what a command left that did not end.
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

/// Why a command failed: its last complaint or, without one, the last thing that it said.
fn last_words(folder: &Path) -> String {
    let log = fs::read_to_string(folder.join(LOG)).unwrap_or_default();
    let complaint = log.lines().rev().find_map(|line| line.strip_prefix("error: "));
    let last = || log.lines().rev().find(|line| !line.trim().is_empty());
    complaint.or_else(last).unwrap_or("it said nothing").to_owned()
}
