//! A study being run, as it is shown on standard error: one bar over all steps and, below it, what is
//! running; plain lines where there is no terminal.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use lab::study::{CPU, Done, Plan, Step, Study, Watch};
use train::pretrain::count_sentences;

use super::models::open_device;
use crate::failure::Failure;
use crate::progress::Waiting;

/// The plan of a study on the device of a name; text is counted as pretraining counts it.
pub(super) fn planned(study: &Study, scale: &str, device_name: &str) -> Result<Plan, Failure> {
    let count = &mut |language: &str, files: &[PathBuf], most: u64| {
        let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        let _waiting = Waiting::new(&format!("counting the sentences of {language}"));
        count_sentences(language, &files, most).map_err(|error| error.to_string())
    };
    Ok(Plan::of(study, scale, device(device_name)?, count)?)
}

/// The device that a name comes to here: all steps of a plan compute on the same.
fn device(name: &str) -> Result<&'static str, Failure> {
    // It is opened to see whether it can be, and computes nothing.
    let device = open_device(name, 1)?;
    Ok(if device.is_gpu() { "cuda" } else { CPU })
}

/// The live view.
pub(super) struct Live {
    terminal: bool,
    screen: MultiProgress,
    all: ProgressBar,
    one: ProgressBar,
    total: usize,
}

impl Live {
    /// Of a plan that is about to run.
    pub(super) fn new(plan: &Plan) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let screen = MultiProgress::new();
        let style = |template: &str| {
            ProgressStyle::with_template(template).expect("a fixed template").progress_chars("=> ")
        };
        let (mut all, mut one) = (ProgressBar::hidden(), ProgressBar::hidden());
        if terminal {
            all = screen.add(ProgressBar::new(plan.steps.len() as u64));
            all.set_style(style("{prefix} [{bar:30}] {pos}/{len} steps, {elapsed} gone, {msg}"));
            all.set_prefix(plan.study.clone());
            one = screen.add(ProgressBar::new_spinner());
            one.set_style(style("  {spinner} {prefix}  {elapsed}\n    {wide_msg}"));
            one.enable_steady_tick(Duration::from_millis(120));
        }
        Self { terminal, screen, all, one, total: plan.steps.len() }
    }

    /// A line that stays, above the bars.
    pub(super) fn line(&self, text: &str) {
        match self.terminal {
            true => _ = self.screen.println(text),
            false => say!("{text}"),
        }
    }
}

impl Watch for Live {
    fn begin(&mut self, number: usize, step: &Step, left: f64) {
        self.all.set_message(format!("about {} left", duration(left)));
        self.one.set_prefix(step.name.clone());
        self.one.set_message("");
        self.one.reset_elapsed();
        if !self.terminal {
            let of = self.total;
            say!("[{}/{of}] {} (about {} left for all)", number + 1, step.name, duration(left));
        }
    }

    fn says(&mut self, line: &str) {
        self.one.set_message(line.to_owned());
    }

    fn end(&mut self, _number: usize, step: &Step, how: &Done) {
        self.all.inc(1);
        match how {
            Done::Before => {}
            Done::Now(seconds) => self.line(&format!("  {} in {}", step.name, duration(*seconds))),
            Done::Failed(reason) => self.line(&format!("  {} FAILED: {reason}", step.name)),
            Done::Skipped => self.line(&format!("  {} passed over", step.name)),
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.one.finish_and_clear();
        self.all.finish_and_clear();
    }
}

/// Seconds as a person says them.
pub(super) fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..10 => format!("{seconds:.1} s"),
        10..120 => format!("{whole} s"),
        120..7200 => format!("{} min", (whole + 30) / 60),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}
