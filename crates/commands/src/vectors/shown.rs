//! Training shown on standard error, and stopped by Ctrl-C.

use std::time::Instant;

use vectors::{EpochLoss, TrainingObserver, TrainingProgress};

use crate::{progress, stop};

pub(super) struct TrainingDisplay {
    unit: &'static str,
    counting: Option<progress::Progress>,
    bar: Option<progress::Progress>,
    /// Thousandths of the whole that are shown already.
    steps: u64,
    started: Instant,
    done_before: u64,
}

impl TrainingDisplay {
    pub(super) fn new(unit: &'static str) -> Self {
        stop::listen();
        Self { unit, counting: None, bar: None, steps: 0, started: Instant::now(), done_before: 0 }
    }
}

const STEPS: u64 = 1000;

impl TrainingObserver for TrainingDisplay {
    fn counting(&mut self, done: u64, total: u64) {
        let bar = self.counting.get_or_insert_with(|| progress::Progress::new("counting", STEPS));
        bar.reach(done * STEPS / total.max(1), "");
    }

    fn progress(&mut self, at: &TrainingProgress) {
        let whole = at.total * at.epochs as u64;
        let done = at.total * at.epoch as u64 + at.done;
        self.counting = None;
        if self.bar.is_none() {
            self.started = Instant::now();
            self.done_before = done;
            self.steps = done * STEPS / whole.max(1);
        }
        let left = STEPS - self.steps.min(STEPS);
        let bar = self.bar.get_or_insert_with(|| progress::Progress::new("training", left));
        let rate = (done - self.done_before) as f64 / self.started.elapsed().as_secs_f64();
        let note =
            format!("epoch {}/{}, {:.2} M {}/s", at.epoch + 1, at.epochs, rate / 1e6, self.unit);
        while self.steps < done * STEPS / whole.max(1) {
            self.steps += 1;
            bar.step(&note);
        }
    }

    fn warn(&mut self, text: &str) {
        // The state is read before there is a bar.
        complain!("{text}");
    }

    fn epoch(&mut self, epoch: &EpochLoss) {
        let text = format!("epoch {}: loss {:.4}", epoch.number, epoch.loss);
        match &self.bar {
            Some(bar) => bar.line(&text),
            None => say!("{text}"),
        }
    }

    fn stop(&self) -> bool {
        stop::wished()
    }
}
