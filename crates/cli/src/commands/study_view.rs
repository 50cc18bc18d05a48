//! The progress of studies on standard error: one bar over all steps and, below it, a line for each running step; plain
//! lines where there is no terminal.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use lab::build::Build;
use lab::study::{
    CPU, StepOutcome, StepPool, Study, StudyObserver, StudyPlan, StudyStep, TEST_COLUMNS,
};
use terms::Scale;
use train::pretrain::count_sentences;

use crate::failure::Failure;
use commands::models::open_device;
use commands::progress::Waiting;
use commands::say::is_quiet;

pub(crate) fn this_build() -> Build {
    Build {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: option_env!("ISOGLOSS_COMMIT").map(str::to_owned),
        target: env!("ISOGLOSS_TARGET").to_owned(),
        features: env!("ISOGLOSS_FEATURES").to_owned(),
    }
}

/// The plans of studies on a device; sentences are counted as pretraining counts them, once for all studies.
pub(super) fn planned(
    studies: &[Study],
    scale: Scale,
    device_name: &str,
) -> Result<Vec<StudyPlan>, Failure> {
    let device = device(device_name)?;
    let mut counted = HashMap::new();
    let mut plans = Vec::new();
    for study in studies {
        let count = &mut |language: &str, files: [&[PathBuf]; 2], most: u64| {
            let key = (language.to_owned(), files.map(<[PathBuf]>::to_vec), most);
            if let Some(&count) = counted.get(&key) {
                return Ok(count);
            }
            let [texts, tests] = files.map(|files| {
                files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>()
            });
            let columns = TEST_COLUMNS.parse().expect("two columns");
            let _waiting = Waiting::new(&format!("counting the sentences of {language}"));
            let count = count_sentences(language, [&texts, &tests], &columns, most)
                .map_err(|error| error.to_string())?;
            counted.insert(key, count);
            Ok(count)
        };
        plans.push(StudyPlan::of(study, scale, device, count)?);
    }
    Ok(plans)
}

/// The device that `--device` stands for on this machine: all steps of a plan compute on the same.
/// A GPU that is named is not opened: completed steps of another machine are to be read here too.
fn device(name: &str) -> Result<&'static str, Failure> {
    if name == "cuda" {
        return Ok("cuda");
    }
    let device = open_device(name, 1)?;
    Ok(if device.is_gpu() { "cuda" } else { CPU })
}

pub(super) struct LiveView {
    terminal: bool,
    screen: MultiProgress,
    all: ProgressBar,
    running: HashMap<usize, ProgressBar>,
    passed: usize,
    total: usize,
}

impl LiveView {
    /// Of plans that are about to be run.
    pub(super) fn new(plans: &[StudyPlan]) -> Self {
        let terminal = std::io::stderr().is_terminal() && !is_quiet();
        let screen = MultiProgress::new();
        let total = StepPool::of(plans).steps.len();
        let mut all = ProgressBar::hidden();
        if terminal {
            all = screen.add(ProgressBar::new(total as u64));
            all.set_style(style("{prefix} [{bar:30}] {pos}/{len} steps, {elapsed} elapsed, {msg}"));
            all.set_prefix(match plans {
                [plan] => plan.study.clone(),
                plans => format!("{} studies", plans.len()),
            });
        }
        Self { terminal, screen, all, running: HashMap::new(), passed: 0, total }
    }

    pub(super) fn print(&self, text: &str) {
        match self.terminal {
            true => _ = self.screen.println(text),
            false => say!("{text}"),
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("a fixed template").progress_chars("=> ")
}

impl StudyObserver for LiveView {
    fn begin(&mut self, number: usize, step: &StudyStep, left: f64) {
        self.passed += 1;
        self.all.set_message(format!("about {} left", duration(left)));
        let mut bar = ProgressBar::hidden();
        if self.terminal {
            bar = self.screen.add(ProgressBar::new_spinner());
            bar.set_style(style("  {spinner} {elapsed:>3}  {prefix}  {wide_msg:.dim}"));
            bar.set_prefix(step.name.clone());
            bar.enable_steady_tick(Duration::from_millis(120));
        } else {
            let Self { passed, total, .. } = self;
            say!("[{passed}/{total}] {} (about {} left for all)", step.name, duration(left));
        }
        self.running.insert(number, bar);
    }

    fn line(&mut self, number: usize, line: &str) {
        if let Some(bar) = self.running.get(&number) {
            bar.set_message(terms::printable(line).into_owned());
        }
    }

    fn warn(&mut self, text: &str) {
        self.screen.suspend(|| complain!("{text}"));
    }

    fn end(&mut self, number: usize, step: &StudyStep, how: &StepOutcome) {
        match self.running.remove(&number) {
            Some(bar) => {
                bar.finish_and_clear();
                self.screen.remove(&bar);
            }
            None => self.passed += 1,
        }
        if let StepOutcome::Postponed(reason) = how {
            self.passed -= 1;
            let name = &step.name;
            self.print(&format!("  {name} failed: {reason}; it will be run again by itself"));
            return;
        }
        self.all.inc(1);
        match how {
            StepOutcome::Completed(seconds) => {
                self.print(&format!("  {} in {}", step.name, duration(*seconds)))
            }
            StepOutcome::Failed(reason) => self.print(&format!("  {} FAILED: {reason}", step.name)),
            StepOutcome::Skipped => self.print(&format!("  {} skipped", step.name)),
            StepOutcome::Cached | StepOutcome::Unneeded | StepOutcome::Postponed(_) => {}
        }
    }
}

impl Drop for LiveView {
    fn drop(&mut self) {
        self.running.values().for_each(ProgressBar::finish_and_clear);
        self.all.finish_and_clear();
    }
}

pub(super) fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..10 => format!("{seconds:.1} s"),
        10..120 => format!("{whole} s"),
        120..7200 => format!("{} min", (whole + 30) / 60),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}
