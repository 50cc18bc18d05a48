//! Ranks on one machine, started by the first of them.

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use crate::secret::{self, Secret};
use crate::{Placement, RankError};

/// The process that started this rank and holds the other end of its standard input.
const PARENT: &str = "ISOGLOSS_RANKS_PARENT";

/// How long ranks are waited for in the end, before they are killed.
const PATIENCE: Duration = Duration::from_secs(5);

/// The other ranks of this machine; this process is rank 0. They end when this does.
pub struct LocalRanks {
    placement: Placement,
    listener: Option<TcpListener>,
    secret: Secret,
    /// Rank 1 and the following.
    children: Vec<Child>,
}

impl LocalRanks {
    /// Starts all but the first of `count` ranks, by the same command line.
    pub fn start(count: usize, program: &Path, words: &[OsString]) -> Result<Self, RankError> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |error: std::io::Error| RankError::Failed(format!("cannot {what}: {error}"))
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .map_err(failed("listen for other ranks"))?;
        let port = listener.local_addr().map_err(failed("listen for other ranks"))?.port();
        let host = Ipv4Addr::LOCALHOST.to_string();
        let placement = Placement { rank: 0, count, local_rank: 0, local_count: count, host, port };
        let text = secret::new_text().map_err(failed("make a secret"))?;
        let secret = Secret::of(&text);
        let mut this = Self { placement, listener: Some(listener), secret, children: Vec::new() };
        for rank in 1..count {
            let variables = [
                ("RANK", rank.to_string()),
                ("WORLD_SIZE", count.to_string()),
                ("LOCAL_RANK", rank.to_string()),
                ("LOCAL_WORLD_SIZE", count.to_string()),
                ("MASTER_ADDR", this.placement.host.clone()),
                ("MASTER_PORT", port.to_string()),
                (secret::VARIABLE, text.clone()),
                (PARENT, std::process::id().to_string()),
            ];
            let mut command = Command::new(program);
            command.args(words).envs(variables).env_remove("TORCHELASTIC_USE_AGENT_STORE");
            // A pipe that nothing is written to: it ends when this process does, however that comes about.
            command.stdin(Stdio::piped()).stdout(Stdio::null());
            let started = command.spawn();
            this.children.push(started.map_err(failed(&format!("start rank {rank}")))?);
        }
        Ok(this)
    }

    pub(crate) fn placement(&self) -> &Placement {
        &self.placement
    }

    pub(crate) fn secret(&self) -> Secret {
        self.secret.clone()
    }

    /// Where the others will come; given once.
    pub(crate) fn listener(&mut self) -> Result<TcpListener, RankError> {
        let taken = || RankError::Failed("these ranks have met already".to_owned());
        self.listener.take().ok_or_else(taken)
    }

    pub(crate) fn check(&mut self) -> Result<(), RankError> {
        for (rank, child) in (1..).zip(&mut self.children) {
            if let Ok(Some(status)) = child.try_wait() {
                let message = format!("rank {rank} of this machine has ended at once: {status}");
                return Err(RankError::Failed(message));
            }
        }
        Ok(())
    }
}

/// The process that started this rank, if it has ended. Before ranks have met, nothing else shows it; afterwards the
/// connection does.
pub(crate) fn lost_parent() -> Option<String> {
    static PROCESS: OnceLock<Option<String>> = OnceLock::new();
    static LOST: AtomicBool = AtomicBool::new(false);
    let process = PROCESS.get_or_init(|| {
        let process = std::env::var(PARENT).ok()?;
        let watched = thread::Builder::new().spawn(|| {
            let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
            LOST.store(true, Ordering::SeqCst);
        });
        watched.is_ok().then(|| format!("process {process}"))
    });
    process.clone().filter(|_| LOST.load(Ordering::SeqCst))
}

impl Drop for LocalRanks {
    fn drop(&mut self) {
        let until = Instant::now() + PATIENCE;
        for child in &mut self.children {
            while matches!(child.try_wait(), Ok(None)) && Instant::now() < until {
                sleep(Duration::from_millis(20));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
