//! A run as it is shown on standard error, and the wish to stop it.

use train::pretrain::Observer;

use crate::progress::Progress;
use crate::stop;

/// Shows a run on standard error.
pub(super) struct Shown {
    label: &'static str,
    progress: Option<Progress>,
    /// The step that was shown last.
    last: u64,
}

impl Shown {
    /// Counts what `label` names. From now on, an interrupt is a wish to stop.
    pub(super) fn new(label: &'static str) -> Self {
        stop::listen();
        Self { label, progress: None, last: 0 }
    }
}

impl Observer for Shown {
    fn note(&mut self, text: &str) {
        match &self.progress {
            Some(progress) => progress.line(text),
            None => say!("{text}"),
        }
    }

    fn step(&mut self, done: u64, total: u64, text: &str) {
        if done <= self.last {
            // A count that begins again is of something else.
            self.progress = None;
        }
        self.last = done;
        let left = total - done + 1;
        self.progress.get_or_insert_with(|| Progress::new(self.label, left)).step(text);
    }

    fn stop(&self) -> bool {
        stop::wished()
    }
}
