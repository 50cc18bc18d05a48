//! What a run has written so far, for a page that follows it while it is trained.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde_json::Value;
use train::pretrain::PretrainConfig;

/// A run whose log has not grown for so long is no longer being trained.
const QUIET: Duration = Duration::from_secs(300);
const LONGEST_LOG: u64 = 64 << 20;

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct RunProgress {
    pub(crate) live: bool,
    pub(crate) step: u64,
    pub(crate) goal: u64,
    /// A digest of the probes that were saved: where it changes, points are to be fetched again.
    pub(crate) probes: String,
    pub(crate) gone: bool,
}

impl RunProgress {
    pub(crate) fn of(run: &Path) -> Self {
        let Ok(config) = PretrainConfig::read(run) else {
            return Self { gone: !run.is_dir(), ..Self::default() };
        };
        let log = run.join("metrics.jsonl");
        let step = last_step(&log);
        let goal = config.goal_at(step);
        let age = fs::metadata(&log).ok().and_then(|log| log.modified().ok());
        let age = age.and_then(|time| SystemTime::now().duration_since(time).ok());
        let live = step < goal && age.is_some_and(|age| age < QUIET);
        Self { live, step, goal, probes: crate::space::stamp(run), gone: false }
    }
}

/// The objects of a run's log; a line that is only half written is none.
pub(crate) fn log_lines(run: &Path) -> Vec<Value> {
    let path = run.join("metrics.jsonl");
    if fs::metadata(&path).map_or(0, |log| log.len()) > LONGEST_LOG {
        return Vec::new();
    }
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The step of the last whole line, read from the end of the log.
fn last_step(log: &Path) -> u64 {
    use std::io::{Read, Seek, SeekFrom};
    let tail = || -> std::io::Result<Vec<u8>> {
        let mut file = fs::File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(16 << 10)))?;
        let mut tail = Vec::new();
        file.read_to_end(&mut tail)?;
        Ok(tail)
    };
    let tail = String::from_utf8_lossy(&tail().unwrap_or_default()).into_owned();
    let mut lines = tail.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.find_map(|line| line["step"].as_u64()).unwrap_or(0)
}
