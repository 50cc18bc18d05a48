//! Running a plan: what is done already is found again, what is missing is run, and every number goes
//! to the store as soon as its step is done.
//!
//! A step's folder holds what its command wrote, `log`, `step.json` and, when it is done and not
//! before, `result.json`. The command inherits the folder's lock as its standard input: should this
//! process be killed, the lock stays for as long as the command goes on by itself, and whoever comes
//! next waits for it and takes over what it has done.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use files::At;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::{Error, Result};
use super::plan::Plan;
use super::readings::{Number, Said};
use super::step::{Step, StepId};
use crate::record::{Note, Origin, Record};
use crate::store::{self, Store};

const RESULT: &str = "result.json";
const STEP: &str = "step.json";
const LOG: &str = "log";

/// How often a wish to stop is looked for, and another process that does the same step.
const PATIENCE: Duration = Duration::from_millis(200);
/// How long a command may take to stop by itself.
const GRACE: Duration = Duration::from_secs(60);

/// Seconds that a step of a kind takes on two cores, for as long as nothing was measured here.
const USUAL: [(&str, f64); 23] = [
    ("world generate", 1.5),
    ("pretrain tiny", 75.0),
    ("transfer nli tiny", 20.0),
    ("transfer ner tiny", 5.0),
    ("transfer parse tiny", 8.0),
    ("transfer ner tiny above", 3.0),
    ("transfer parse tiny above", 5.0),
    ("retrieve", 3.0),
    ("words tiny", 1.5),
    ("words static", 0.1),
    ("words embeddings", 0.1),
    ("align words", 0.1),
    ("align contexts", 1.5),
    ("word-align", 0.1),
    ("encode", 0.2),
    ("cka", 0.1),
    ("shift means tiny", 7.0),
    ("shift sweep tiny", 9.0),
    ("shift translate", 0.1),
    ("vocab stats", 0.1),
    ("vectors word2vec", 5.0),
    ("vectors glove", 0.5),
    ("vectors word2vec n-grams", 25.0),
];

/// What is kept of a step that is done.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Kept {
    name: String,
    kind: String,
    command: String,
    seconds: f64,
    made: u64,
    version: String,
}

/// The folder of a laboratory: steps, and the store of their numbers.
pub struct Lab {
    /// Where it is, wherever commands are run.
    root: PathBuf,
    /// What its user calls it: so commands and files are shown.
    called: PathBuf,
}

impl Lab {
    /// Opens a laboratory; where there is no folder, it is made by what is first kept in it.
    pub fn open(root: &Path) -> Result<Self> {
        let called = root.to_owned();
        Ok(Self { root: std::path::absolute(root).at(root, "find")?, called })
    }

    /// The store of its numbers.
    pub fn store(&self) -> Result<Store> {
        Ok(Store::open(&self.root.join(store::FILE))?)
    }

    /// The folder of a step.
    pub fn folder(&self, key: &str) -> PathBuf {
        self.root.join("steps").join(key)
    }

    /// What a step's command printed, if it is done.
    pub fn result(&self, key: &str) -> Option<Value> {
        serde_json::from_slice(&fs::read(self.folder(key).join(RESULT)).ok()?).ok()
    }

    fn kept(&self, key: &str) -> Option<Kept> {
        serde_json::from_slice(&fs::read(self.folder(key).join(STEP)).ok()?).ok()
    }

    /// How long steps of each kind have taken here: the mean of the last few.
    fn history(&self) -> HashMap<String, f64> {
        let entries = fs::read_dir(self.root.join("steps")).into_iter().flatten().flatten();
        let mut kept: Vec<Kept> =
            entries.filter_map(|entry| self.kept(&entry.file_name().to_string_lossy())).collect();
        kept.sort_by_key(|kept| std::cmp::Reverse(kept.made));
        let mut seconds: HashMap<String, Vec<f64>> = HashMap::new();
        for kept in kept {
            let of_kind = seconds.entry(kept.kind).or_default();
            if of_kind.len() < 5 {
                of_kind.push(kept.seconds);
            }
        }
        let mean = |all: Vec<f64>| all.iter().sum::<f64>() / all.len() as f64;
        seconds.into_iter().map(|(kind, all)| (kind, mean(all))).collect()
    }

    /// What of a plan is done, and how long the rest may take.
    pub fn outlook(&self, plan: &Plan) -> Outlook {
        let history = self.history();
        let usual: HashMap<&str, f64> = USUAL.into_iter().collect();
        let seconds = |step: &Step| {
            history.get(&step.kind).or_else(|| usual.get(step.kind.as_str())).copied()
        };
        let done = |step: &Step| self.folder(&step.key).join(RESULT).is_file();
        let steps = plan.steps.iter().map(|step| (done(step), seconds(step))).collect();
        Outlook { steps }
    }

    /// A step's command as its user could type it.
    pub fn command(&self, plan: &Plan, step: StepId) -> String {
        typed(&words(&self.called, plan, step))
    }

    /// The folder of a step as its user calls it.
    fn called(&self, key: &str) -> String {
        self.called.join("steps").join(key).display().to_string()
    }
}

/// The words of a step's command after the program's name, for a laboratory at `root`.
fn words(root: &Path, plan: &Plan, step: StepId) -> Vec<String> {
    let folder = |StepId(number): StepId| root.join("steps").join(&plan.steps[number].key);
    plan.steps[step.0].words(step, folder)
}

/// What of a plan is done, and how long the rest may take.
pub struct Outlook {
    /// For each step: whether it is done, and how many seconds one like it takes, if that is known.
    pub steps: Vec<(bool, Option<f64>)>,
}

impl Outlook {
    /// Seconds for what is not done from a step on; of steps that nothing is known about, none.
    pub fn left(&self, from: usize) -> f64 {
        let open = self.steps[from..].iter().filter(|(done, _)| !done);
        // The sum of nothing would be minus zero.
        open.filter_map(|(_, seconds)| *seconds).fold(0.0, |sum, seconds| sum + seconds)
    }

    /// Steps that are not done and of which nothing is known.
    pub fn unknown(&self) -> usize {
        self.steps.iter().filter(|(done, seconds)| !done && seconds.is_none()).count()
    }

    /// Steps that are not done.
    pub fn open(&self) -> usize {
        self.steps.iter().filter(|(done, _)| !done).count()
    }
}

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
        let lost = |&StepId(need): &StepId| matches!(ended[need], Done::Failed(_) | Done::Skipped);
        let how = if step.needs.iter().any(lost) {
            Done::Skipped
        } else if lab.result(&step.key).is_some() {
            Done::Before
        } else {
            watch.begin(number, step, outlook.left(number));
            Runner { lab, plan, number: StepId(number), step, program, stop }.run(watch)?
        };
        if matches!(how, Done::Before | Done::Now(_)) {
            file_numbers(lab, plan, StepId(number), &store)?;
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

/// Puts the numbers of a step that is done into the store.
fn file_numbers(lab: &Lab, plan: &Plan, step: StepId, store: &Store) -> Result<()> {
    let readings = plan.readings.iter().filter(|reading| reading.step == step);
    let of = &plan.steps[step.0];
    let folder = lab.folder(&of.key);
    let (mut records, mut notes) = (Vec::new(), Vec::new());
    for reading in readings {
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
    Ok(store.add(&records, &notes)?)
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
            if self.stop.load(Ordering::Relaxed)
                && asked.get_or_insert_with(Instant::now).elapsed() > GRACE
            {
                child.kill().at(self.program, "stop")?;
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

/// A command as it could be typed.
fn typed(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:@+%".contains(c);
    let quoted = |word: &String| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    let words: Vec<String> = words.iter().map(quoted).collect();
    format!("isogloss {}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_typed_as_it_is_shown() {
        let words = ["world", "--set", "a b", "it's", ""].map(str::to_owned);
        assert_eq!(typed(&words), r"isogloss world --set 'a b' 'it'\''s' ''");
    }
}
