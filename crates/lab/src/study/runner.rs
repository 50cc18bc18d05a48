//! One step, run as a child process.
//!
//! A step's folder holds what its command wrote, `log`, `step.json` and, once it is complete and not before,
//! `result.json`: what the command printed, with the `build` that ran it. The command inherits the folder's lock as its
//! standard input: should this process be killed, the lock is held for as long as the command goes on by itself, and the
//! next process waits for it and takes its result. An interrupt is passed on to the command.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use files::{At, FolderLock, checkpoints, sealed};
use serde_json::{Map, Value};
use terms::memory;

use super::cluster::{FAILURE, Holder, Lease, LeaseWatch};
use super::error::{Error, Result};
use super::laboratory::{LOG, Laboratory, RESULT, STEP, StepMetadata, words};
use super::pack::KEPT;
use super::run::RunOptions;
use super::step::{StepId, StudyStep};

/// How often an interrupt is looked for, and a lock that another process holds.
const POLL: Duration = Duration::from_millis(200);
/// How often the lease of another process is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How long a command may take to stop after an interrupt.
const GRACE: Duration = Duration::from_secs(60);
/// What a command prints, until it is a result.
const PRINTED: &str = "printed.json";
/// The exit code of a command that was used wrongly.
const USED_WRONGLY: i32 = 2;

pub(super) enum CommandEnd {
    Cached,
    Completed {
        seconds: f64,
        /// The most memory that it held, in bytes, where that is known.
        peak_memory: Option<u64>,
    },
    Failed {
        reason: String,
        /// Whether it may succeed where it has the machine for itself: not if it was used wrongly.
        again: bool,
    },
}

pub(super) struct StepRunner<'a> {
    pub(super) lab: &'a Laboratory,
    /// The steps of its plan, to which it and those that it depends on belong.
    pub(super) steps: &'a [StudyStep],
    pub(super) number: StepId,
    pub(super) options: &'a RunOptions<'a>,
    /// Its number of threads; every core if none.
    pub(super) threads: Option<usize>,
    /// Who holds the step's lease meanwhile.
    pub(super) holder: Holder,
    /// Whether it waits where another process has the lease; it is refused otherwise.
    pub(super) waits: bool,
    /// Is called with each line that the command prints to standard error.
    pub(super) line: &'a dyn Fn(&str),
    /// Is called with what is damaged, and will be made anew.
    pub(super) warn: &'a dyn Fn(String),
}

impl StepRunner<'_> {
    fn step(&self) -> &StudyStep {
        &self.steps[self.number.0]
    }

    pub(super) fn run(&self) -> Result<CommandEnd> {
        let lease = self.lease(&self.lab.folder(&self.step().key))?;
        self.run_under(lease.as_ref())
    }

    /// Takes the step's lease, which holds where locks do not: between machines. None where the file system has no hard
    /// links, so that no other machine can take one either.
    pub(super) fn lease(&self, folder: &Path) -> Result<Option<Lease>> {
        fs::create_dir_all(folder).at(folder, "make the folder")?;
        let (mut watch, mut said) = (LeaseWatch::default(), false);
        loop {
            let other = match Lease::take(folder, self.holder.clone(), &mut watch) {
                Ok(Ok(lease)) => return Ok(Some(lease)),
                Ok(Err(other)) => other,
                Err(_) if self.waits => return Ok(None),
                Err(error) => return Err(error),
            };
            let name = &self.step().name;
            let lives = watch.has_changed() || !other.is_to_be_watched(&self.holder);
            if lives && !self.waits {
                return Err(Error::Failed(format!("{name}: {other} is running it")));
            }
            if self.options.stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            if !said {
                (self.warn)(format!(
                    "{name}: waiting for {other} to end it, or to be silent for 150 s"
                ));
                said = true;
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Runs the step, whose lease is taken.
    pub(super) fn run_under(&self, lease: Option<&Lease>) -> Result<CommandEnd> {
        let folder = self.lab.folder(&self.step().key);
        let lock = self.lock(&folder)?;
        let mut anew = self.options.fresh;
        if anew {
            self.clear(&folder)?;
        } else if self.lab.result(&self.step().key).is_some() {
            if self.lab.has_files(&self.step().key) {
                return Ok(CommandEnd::Cached);
            }
            // The result is here out of a pack, and a step needs the files.
            self.clear(&folder)?;
            anew = true;
        } else if let Some(path) = self.lab.altered(&self.step().key) {
            let path = path.display();
            (self.warn)(format!("{path} {}: the step is run again", sealed::ALTERED));
        }
        let mut threads = self.step().thread_words(self.threads);
        threads.extend(self.step().job_words(self.options.jobs));
        let mut words = words(&self.lab.root, self.steps, self.number);
        words.extend(threads.clone());
        if !self.options.snapshots {
            words.extend(self.step().snapshot_words());
        }
        let began = Instant::now();
        let mut peak_memory = None;
        let resumed = match self.step().words_to_resume(&folder).filter(|_| !anew) {
            Some(mut words) => {
                words.extend(threads);
                Some(self.command(&words, &folder, (&lock, lease), &mut peak_memory)?)
            }
            None => None,
        };
        let status = match resumed {
            Some(status) if status.success() || self.keeps_progress(&folder)? => {
                if !status.success() {
                    let again = status.code() != Some(USED_WRONGLY);
                    let reason = format!(
                        "{}; it could not be resumed, and what it has learned is kept: once the cause is \
                         mended, run it again (or remove {} to begin the step anew)",
                        reason(status, &folder),
                        folder.display()
                    );
                    return Ok(CommandEnd::Failed { reason, again });
                }
                status
            }
            _ => {
                self.clear(&folder)?;
                words.extend(self.step().force_words(&folder));
                self.command(&words, &folder, (&lock, lease), &mut peak_memory)?
            }
        };
        if !status.success() {
            let again = status.code() != Some(USED_WRONGLY);
            return Ok(CommandEnd::Failed { reason: reason(status, &folder), again });
        }
        let seconds = began.elapsed().as_secs_f64();
        self.write_result(&folder, seconds, peak_memory)?;
        Ok(CommandEnd::Completed { seconds, peak_memory })
    }

    /// Whether a run that could not be resumed holds anything that was learned: a checkpoint that verifies, or
    /// results. Where all its checkpoints are damaged, it is set aside under another name.
    fn keeps_progress(&self, folder: &Path) -> Result<bool> {
        let Some(run) = self.step().resumed_folder(folder) else { return Ok(false) };
        let (mut sound, mut damaged) = (false, false);
        for entry in fs::read_dir(&run).at(&run, "list")? {
            let path = entry.at(&run, "list")?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name == "results.json" {
                sound = true;
            } else if name.starts_with("state") && name.ends_with(".safetensors") {
                match train::is_sound_checkpoint(&path) {
                    true => sound = true,
                    false => damaged = true,
                }
            }
        }
        if damaged && !sound {
            let aside = checkpoints::free_name(&run, "damaged");
            fs::rename(&run, &aside).at(&run, "set aside")?;
            (self.warn)(format!(
                "no checkpoint of {} verifies: kept as {}, and the step begins anew",
                self.step().name,
                aside.display()
            ));
        }
        Ok(sound)
    }

    /// Removes what the step has written into its folder, the result first, so that a kill leaves none of which files are
    /// missing. A folder among it is replaced by the command, which refuses to where anything in it is not its own.
    fn clear(&self, folder: &Path) -> Result<()> {
        let outputs = self.step().outputs().flat_map(|out| {
            let state = format!("{out}.state");
            let previous = checkpoints::previous(Path::new(&state));
            [out.into(), previous, state.into()]
        });
        let own = [RESULT, STEP, PRINTED, FAILURE].map(PathBuf::from).into_iter();
        let packed = KEPT.map(PathBuf::from);
        for path in own.chain(outputs).chain(packed).map(|name| folder.join(name)) {
            if path.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
                fs::remove_file(&path).at(&path, "remove")?;
            }
        }
        // Out of a pack, nothing else is in them; any other is not empty, and stays.
        for inner in KEPT.iter().filter_map(|kept| folder.join(kept).parent().map(Path::to_owned)) {
            let _ = fs::remove_dir(inner);
        }
        Ok(())
    }

    /// Locks the folder for this process; waits where another runs the same step.
    fn lock(&self, folder: &Path) -> Result<FolderLock> {
        loop {
            match FolderLock::take(folder) {
                Err(files::Error::Busy(_)) => (self.line)("another process runs this step"),
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
        (lock, lease): (&FolderLock, Option<&Lease>),
        peak_memory: &mut Option<u64>,
    ) -> Result<ExitStatus> {
        let partial = folder.join(PRINTED);
        let mut child = Command::new(self.options.program)
            .args(words)
            .arg("--json")
            .stdin(lock.share()?)
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
        let mut looked = Instant::now();
        let mut lost = false;
        loop {
            match lines.recv_timeout(POLL) {
                Ok(line) => {
                    writeln!(log_file, "{line}").at(&log, "write")?;
                    (self.line)(line.trim_end());
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
            *peak_memory = memory::peak_of(child.id()).max(*peak_memory);
            if looked.elapsed() > POLL {
                lost = lost || lease.is_some_and(Lease::is_lost);
                looked = Instant::now();
            }
            if lost || self.options.stop.load(Ordering::Relaxed) {
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
        if lost || lease.is_some_and(Lease::is_lost) {
            let reason =
                "another process took the step over, since this one did not renew its lease";
            return Err(Error::Failed(reason.to_owned()));
        }
        Ok(status)
    }

    /// Writes `step.json` and `result.json` of a command that succeeded.
    fn write_result(&self, folder: &Path, seconds: f64, peak_memory: Option<u64>) -> Result<()> {
        let finished_at =
            SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let build = self.options.build.to_string();
        let metadata = StepMetadata {
            name: self.step().name.clone(),
            kind: self.step().kind.clone(),
            command: self.lab.command(self.steps, self.number),
            revision: self.step().command.revision,
            seconds,
            finished_at,
            build: build.clone(),
            device: self.step().device.clone(),
            peak_memory,
            words: self.step().keyed.clone(),
            without_files: false,
        };
        let metadata = serde_json::to_string_pretty(&metadata).expect("plain data");
        files::write(&folder.join(STEP), sealed::seal_json(&metadata))?;
        let partial = folder.join(PRINTED);
        let printed = fs::read(&partial).at(&partial, "read")?;
        let mut result: Map<String, Value> = serde_json::from_slice(&printed).map_err(|error| {
            let (step, reason) = (self.step().name.clone(), format!("no JSON object: {error}"));
            Error::Result { step, reason, folder: folder.to_owned() }
        })?;
        result.insert("build".to_owned(), Value::String(build));
        let result = serde_json::to_string(&result).expect("plain data");
        files::write(&folder.join(RESULT), sealed::seal_json(&result))?;
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

/// Why a command failed: a signal, or the last error in its log or, without one, the last line.
fn reason(status: ExitStatus, folder: &Path) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("it was killed by signal {signal}; perhaps memory ran out");
    }
    let _ = status;
    let log = fs::read_to_string(folder.join(LOG)).unwrap_or_default();
    let error = log.lines().rev().find_map(|line| line.strip_prefix("error: "));
    let last = || log.lines().rev().find(|line| !line.trim().is_empty());
    error.or_else(last).unwrap_or("it printed nothing").to_owned()
}
