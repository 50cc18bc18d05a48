//! The progress of training on standard error; an interrupt asks it to stop.

use serde_json::Value;
use train::pretrain::Observer;

use crate::host;
use crate::progress::Progress;
use crate::say::is_quiet;
use crate::stop;

/// Shows training on standard error.
pub(crate) struct TrainingView {
    label: &'static str,
    progress: Option<Progress>,
    last: u64,
}

impl TrainingView {
    /// Counts what `label` names. From now on, an interrupt asks to stop.
    pub(super) fn new(label: &'static str) -> Self {
        stop::listen();
        Self { label, progress: None, last: 0 }
    }
}

impl Observer for TrainingView {
    fn note(&mut self, text: &str) {
        match &self.progress {
            Some(progress) => progress.line(text),
            None => say!("{text}"),
        }
    }

    fn warn(&mut self, text: &str) {
        match is_quiet() {
            true => complain!("{text}"),
            false => self.note(text),
        }
    }

    fn step(&mut self, done: u64, total: u64, text: &str) {
        if done <= self.last {
            // The count starts again: something else is being trained.
            self.progress = None;
        }
        self.last = done;
        if let Some(host) = host::current() {
            return host.progress(self.label, done, total, text);
        }
        let left = total - done + 1;
        self.progress.get_or_insert_with(|| Progress::new(self.label, left)).step(text);
    }

    fn metrics(&mut self, line: &Value) {
        if let Some(host) = host::current() {
            host.metrics(line);
        }
    }

    fn stop(&self) -> bool {
        stop::wished()
    }
}
