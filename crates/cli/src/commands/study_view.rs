//! The progress of a study on standard error: one bar over all steps and, below it, the running step; plain
//! lines where there is no terminal.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use lab::build::Build;
use lab::study::{CPU, StepOutcome, Study, StudyObserver, StudyPlan, StudyStep};
use terms::Scale;
use train::pretrain::count_sentences;

use super::models::open_device;
use crate::failure::Failure;
use crate::progress::Waiting;

/// This build of the program.
pub(super) fn this_build() -> Build {
    Build {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: option_env!("ISOGLOSS_COMMIT").map(str::to_owned),
        target: env!("ISOGLOSS_TARGET").to_owned(),
        features: env!("ISOGLOSS_FEATURES").to_owned(),
    }
}

/// The plan of a study on a device; sentences are counted as pretraining counts them.
pub(super) fn planned(
    study: &Study,
    scale: Scale,
    device_name: &str,
) -> Result<StudyPlan, Failure> {
    let count = &mut |language: &str, files: &[PathBuf], most: u64| {
        let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        let _waiting = Waiting::new(&format!("counting the sentences of {language}"));
        count_sentences(language, &files, most).map_err(|error| error.to_string())
    };
    Ok(StudyPlan::of(study, scale, device(device_name)?, count)?)
}

/// The device that `--device` stands for on this machine: all steps of a plan compute on the same.
fn device(name: &str) -> Result<&'static str, Failure> {
    // Opened only to see whether it can be.
    let device = open_device(name, 1)?;
    Ok(if device.is_gpu() { "cuda" } else { CPU })
}

/// Shows a running study.
pub(super) struct LiveView {
    terminal: bool,
    screen: MultiProgress,
    all: ProgressBar,
    one: ProgressBar,
    total: usize,
}

impl LiveView {
    /// Of a plan that is about to be run.
    pub(super) fn new(plan: &StudyPlan) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let screen = MultiProgress::new();
        let style = |template: &str| {
            ProgressStyle::with_template(template).expect("a fixed template").progress_chars("=> ")
        };
        let (mut all, mut one) = (ProgressBar::hidden(), ProgressBar::hidden());
        if terminal {
            all = screen.add(ProgressBar::new(plan.steps.len() as u64));
            all.set_style(style("{prefix} [{bar:30}] {pos}/{len} steps, {elapsed} elapsed, {msg}"));
            all.set_prefix(plan.study.clone());
            one = screen.add(ProgressBar::new_spinner());
            one.set_style(style("  {spinner} {prefix}  {elapsed}\n    {wide_msg}"));
            one.enable_steady_tick(Duration::from_millis(120));
        }
        Self { terminal, screen, all, one, total: plan.steps.len() }
    }

    /// Prints a line above the bars.
    pub(super) fn print(&self, text: &str) {
        match self.terminal {
            true => _ = self.screen.println(text),
            false => say!("{text}"),
        }
    }
}

impl StudyObserver for LiveView {
    fn begin(&mut self, number: usize, step: &StudyStep, left: f64) {
        self.all.set_message(format!("about {} left", duration(left)));
        self.one.set_prefix(step.name.clone());
        self.one.set_message("");
        self.one.reset_elapsed();
        if !self.terminal {
            let of = self.total;
            say!("[{}/{of}] {} (about {} left for all)", number + 1, step.name, duration(left));
        }
    }

    fn line(&mut self, line: &str) {
        self.one.set_message(line.to_owned());
    }

    fn end(&mut self, _number: usize, step: &StudyStep, how: &StepOutcome) {
        self.all.inc(1);
        match how {
            StepOutcome::Cached => {}
            StepOutcome::Completed(seconds) => {
                self.print(&format!("  {} in {}", step.name, duration(*seconds)))
            }
            StepOutcome::Failed(reason) => self.print(&format!("  {} FAILED: {reason}", step.name)),
            StepOutcome::Skipped => self.print(&format!("  {} skipped", step.name)),
        }
    }
}

impl Drop for LiveView {
    fn drop(&mut self) {
        self.one.finish_and_clear();
        self.all.finish_and_clear();
    }
}

/// Seconds in a readable unit.
pub(super) fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..10 => format!("{seconds:.1} s"),
        10..120 => format!("{whole} s"),
        120..7200 => format!("{} min", (whole + 30) / 60),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}
