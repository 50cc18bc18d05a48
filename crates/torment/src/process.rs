//! Running the binary under test: with a limit of time, in a group that can be killed as one.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// Longer than any command of the harness takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

/// How the binary under test is run.
#[derive(Clone, Debug)]
pub(crate) struct Binary {
    pub(crate) path: PathBuf,
    /// Where its messages go while it runs, outside of every folder that is compared.
    pub(crate) logs: PathBuf,
}

/// What a command left behind.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    pub(crate) fn success(&self) -> bool {
        self.status.success()
    }

    /// What no command may do, whatever is done to it: panic, or end by a signal that nobody sent.
    pub(crate) fn crash(&self) -> Option<String> {
        let shown = || self.stderr.lines().take(6).collect::<Vec<_>>().join(" | ");
        if let Some(signal) = self.status.signal() {
            return Some(format!("ended by signal {signal}: {}", shown()));
        }
        let panicked = self.status.code() == Some(101) || self.stderr.contains("panicked at");
        panicked.then(|| format!("panicked: {}", shown()))
    }

    /// The last line of its messages, for a person.
    pub(crate) fn message(&self) -> String {
        let line = self.stderr.lines().rev().find(|line| !line.trim().is_empty());
        let code = self.status.code().map_or("signal".to_owned(), |code| code.to_string());
        format!("exit {code}: {}", line.unwrap_or("(no message)"))
    }
}

/// A command that runs.
pub(crate) struct Running {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
    begun: Instant,
}

impl Binary {
    /// Starts a command in a folder, in a process group of its own.
    pub(crate) fn start(
        &self,
        folder: &Path,
        arguments: &[String],
        temporary: &Path,
    ) -> io::Result<Running> {
        self.start_in(folder, arguments, temporary, &[])
    }

    /// Starts it with more variables.
    pub(crate) fn start_in(
        &self,
        folder: &Path,
        arguments: &[String],
        temporary: &Path,
        environment: &[(&str, &str)],
    ) -> io::Result<Running> {
        let mut command = Command::new(&self.path);
        command.args(arguments).envs(environment.iter().copied());
        self.spawn(command, folder, temporary)
    }

    /// Starts it through a shell that limits the size of files, where no small disk can be mounted.
    pub(crate) fn start_limited(
        &self,
        folder: &Path,
        arguments: &[String],
        bytes: u64,
    ) -> io::Result<Running> {
        let mut command = Command::new("/bin/sh");
        let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" \"$@\"", bytes.div_ceil(512));
        command.arg("-c").arg(script).arg(&self.path).args(arguments);
        self.spawn(command, folder, folder)
    }

    fn spawn(&self, mut command: Command, folder: &Path, temporary: &Path) -> io::Result<Running> {
        static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let [stdout, stderr] =
            ["out", "err"].map(|kind| self.logs.join(format!("{number}.{kind}")));
        command
            .current_dir(folder)
            .env("TMPDIR", temporary)
            .env("ISOGLOSS_LAB", folder.join("lab"))
            .env_remove("HF_TOKEN")
            .env_remove("http_proxy")
            .env_remove("HTTP_PROXY")
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(File::create(&stdout)?)
            .stderr(File::create(&stderr)?);
        let child = command.spawn()?;
        Ok(Running { child, stdout, stderr, begun: Instant::now() })
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, folder: &Path, arguments: &[String]) -> Result<Ended, String> {
        let running = self.start(folder, arguments, &std::env::temp_dir());
        running.map_err(|error| error.to_string())?.wait()
    }
}

impl Running {
    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Whether it takes longer than any command should.
    pub(crate) fn is_late(&self) -> bool {
        self.begun.elapsed() > LIMIT
    }

    /// Kills it and everything that it started. False where it had ended already.
    pub(crate) fn kill(mut self) -> bool {
        let alive = !self.has_ended();
        self.kill_group();
        let _ = self.child.wait();
        self.forget();
        alive
    }

    /// Kills it alone. False where it had ended already.
    pub(crate) fn kill_parent(mut self) -> bool {
        let alive = !self.has_ended();
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.forget();
        alive
    }

    /// The group of it and of what it starts.
    pub(crate) fn group(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end.
    pub(crate) fn terminate(&self) {
        if let Some(process) = Pid::from_raw(self.child.id().cast_signed()) {
            let _ = kill_process(process, Signal::TERM);
        }
    }

    /// What it has said so far.
    pub(crate) fn messages(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap_or_default()
    }

    /// The most memory that it has held, in kilobytes; 0 where that is not known.
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        peak.and_then(|peak| peak.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    }

    fn kill_group(&self) {
        if let Some(group) = Pid::from_raw(self.child.id().cast_signed()) {
            // A group that is gone is what is wanted.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// Waits for its end; what takes too long is killed, which is a fault of its own.
    pub(crate) fn wait(mut self) -> Result<Ended, String> {
        let mut pause = Duration::from_micros(500);
        let status = loop {
            match self.child.try_wait().map_err(|error| error.to_string())? {
                Some(status) => break status,
                None if self.is_late() => {
                    self.kill_group();
                    let _ = self.child.wait();
                    self.forget();
                    return Err(format!("did not end within {} s", LIMIT.as_secs()));
                }
                None => sleep(pause),
            }
            pause = (pause * 2).min(Duration::from_millis(20));
        };
        let read =
            |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
        let ended = Ended { status, stdout: read(&self.stdout), stderr: read(&self.stderr) };
        self.forget();
        Ok(ended)
    }

    fn forget(&self) {
        for path in [&self.stdout, &self.stderr] {
            let _ = fs::remove_file(path);
        }
    }
}
