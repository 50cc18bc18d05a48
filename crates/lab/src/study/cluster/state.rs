//! One step on a node, and how the steps of a graph stand.

use std::fs;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use files::At;
use serde::{Deserialize, Serialize};

use super::graph::StepGraph;
use super::lease::{Holder, Lease};
use crate::study::error::{Error, Result};
use crate::study::laboratory::{LOG, Laboratory};
use crate::study::run::RunOptions;
use crate::study::runner::{CommandEnd, StepRunner};
use crate::study::step::StepId;

/// Why a step's last attempt failed, in its folder.
pub(in crate::study) const FAILURE: &str = "failure.json";
/// How long after a command's end a signal that reached both is waited for.
const POLL: Duration = Duration::from_millis(500);

/// The last attempt at a step, which failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedStep {
    pub reason: String,
    pub holder: Holder,
    /// When, in seconds since 1970 by that machine's clock.
    pub at: u64,
}

/// How a step stands, as far as the laboratory's folder says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStanding {
    Complete,
    Running(Holder),
    Failed(FailedStep),
    Open,
}

impl StepStanding {
    pub fn of(lab: &Laboratory, key: &str) -> Self {
        if lab.result(key).is_some() {
            return Self::Complete;
        }
        let folder = lab.folder(key);
        if let Some(holder) = Lease::holder(&folder) {
            return Self::Running(holder);
        }
        let failure = fs::read(folder.join(FAILURE)).ok();
        match failure.and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
            Some(failed) => Self::Failed(failed),
            None => Self::Open,
        }
    }
}

/// Runs one step of a graph, unless it is complete; gives how long it took if it was run. Another process that is
/// at it is left alone, and the steps that it needs must be complete.
///
/// # Errors
/// Where it fails, which is noted in its folder, is interrupted, or another process has it.
pub fn run_step(
    lab: &Laboratory,
    graph: &StepGraph,
    number: StepId,
    job: Option<String>,
    options: &RunOptions<'_>,
    line: &(dyn Fn(&str) + Sync),
) -> Result<Option<f64>> {
    let step = &graph.steps[number.0];
    let is_open = |key: &str| lab.result(key).is_none() || !lab.has_files(key);
    let open = step.needs.iter().find(|need| is_open(&graph.steps[need.0].key));
    let folder = lab.folder(&step.key);
    fs::create_dir_all(&folder).at(&folder, "make the folder")?;
    let this = Holder::this(job).compared_with(&folder);
    let failed = |reason: String| {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let text =
            serde_json::to_string(&FailedStep { reason: reason.clone(), holder: this.clone(), at });
        // The reason is on standard error as well; a full disk must not hide it.
        let _ = files::write(&folder.join(FAILURE), text.expect("plain data"));
        Error::Failed(format!("{}: {reason}\n  its log: {}", step.name, folder.join(LOG).display()))
    };
    if let Some(need) = open {
        let name = &graph.steps[need.0].name;
        return Err(failed(format!(
            "it needs `{name}`, which is not complete; submit the study again"
        )));
    }
    let runner = StepRunner {
        lab,
        steps: &graph.steps,
        number,
        options,
        threads: options.threads,
        holder: this.clone(),
        waits: false,
        line,
        warn: &|text: String| line(&text),
    };
    let lease = runner.lease(&folder)?;
    let _ = fs::remove_file(folder.join(FAILURE));
    let outcome = runner.run_under(lease.as_ref());
    match outcome {
        Ok(CommandEnd::Cached) => Ok(None),
        Ok(CommandEnd::Completed { seconds, .. }) => Ok(Some(seconds)),
        Ok(CommandEnd::Failed { reason, .. }) => {
            // A scheduler's signal reaches the command and this process alike, and the command may end first.
            std::thread::sleep(POLL);
            match options.stop.load(Ordering::Relaxed) {
                true => Err(Error::Stopped),
                false => Err(failed(reason)),
            }
        }
        Err(Error::Stopped) => Err(Error::Stopped),
        Err(error) => Err(failed(error.to_string())),
    }
}
