//! Progress of training, and requests to stop it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// How far training is.
#[derive(Clone, Copy, Debug)]
pub struct TrainingProgress {
    /// The epoch under way, from 0.
    pub epoch: usize,
    /// Epochs in all.
    pub epochs: usize,
    /// Words (for GloVe: pairs of words) processed in this epoch.
    pub done: u64,
    /// Of how many.
    pub total: u64,
}

/// The loss of an epoch.
#[derive(Clone, Copy, Debug)]
pub struct EpochLoss {
    /// Its number, from 1.
    pub number: usize,
    /// The mean loss of its examples during training.
    pub loss: f64,
    /// How many examples it had.
    pub examples: u64,
}

/// Observes training.
pub trait TrainingObserver {
    /// Several times a second.
    fn progress(&mut self, _progress: &TrainingProgress) {}
    /// While GloVe counts pairs, before the first epoch: words processed, and of how many.
    fn counting(&mut self, _done: u64, _total: u64) {}
    /// A saved state is damaged, and training goes on from an older one.
    fn warn(&mut self, _text: &str) {}
    /// After each epoch.
    fn epoch(&mut self, _epoch: &EpochLoss) {}
    /// Whether to stop soon; called before and during every epoch. The state saved after the last whole
    /// epoch stays.
    fn stop(&self) -> bool {
        false
    }
}

impl TrainingObserver for () {}

/// Shared by the working threads and the observing one.
#[derive(Default)]
pub(crate) struct Meter {
    pub(crate) done: AtomicU64,
    pub(crate) stop: AtomicBool,
}

impl Meter {
    pub(crate) fn add(&self, done: u64) {
        self.done.fetch_add(done, Ordering::Relaxed);
    }

    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Runs an epoch on another thread, and calls the observer until it is done.
pub(crate) fn watch<T: Send>(
    observer: &mut dyn TrainingObserver,
    mut progress: TrainingProgress,
    work: impl FnOnce(&Meter) -> T + Send,
) -> T {
    let tell = |observer: &mut dyn TrainingObserver, done| {
        progress.done = done;
        observer.progress(&progress);
    };
    watch_with(observer, tell, work)
}

/// The same for counting.
pub(crate) fn watch_counting<T: Send>(
    observer: &mut dyn TrainingObserver,
    total: u64,
    work: impl FnOnce(&Meter) -> T + Send,
) -> T {
    watch_with(observer, |observer, done| observer.counting(done, total), work)
}

fn watch_with<T: Send>(
    observer: &mut dyn TrainingObserver,
    mut tell: impl FnMut(&mut dyn TrainingObserver, u64),
    work: impl FnOnce(&Meter) -> T + Send,
) -> T {
    // Read before the work begins, so that a request to stop is obeyed however short the work is.
    let meter = Meter { stop: AtomicBool::new(observer.stop()), ..Meter::default() };
    // Closed when the work is done, or panics.
    let (open, closed) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let _open = open;
            work(&meter)
        });
        while closed.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout) {
            tell(observer, meter.done.load(Ordering::Relaxed));
            meter.stop.store(observer.stop(), Ordering::Relaxed);
        }
        tell(observer, meter.done.load(Ordering::Relaxed));
        match worker.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct StopObserver;

    impl TrainingObserver for StopObserver {
        fn stop(&self) -> bool {
            true
        }
    }

    #[test]
    fn a_request_to_stop_is_obeyed_before_the_work_begins() {
        assert!(watch_counting(&mut StopObserver, 1, |meter| meter.stopped()));
        assert!(!watch_counting(&mut (), 1, |meter| meter.stopped()));
    }
}
