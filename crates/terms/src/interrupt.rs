//! Stopping a computation from outside, where its caller does not pass anything that could.
//!
//! A caller that may want to stop ([`with`]) gives its thread a flag. Loops that can take long ask at their turns whether
//! it was set ([`check`], or an [`Interruption`] that was taken along to other threads), and unwind if so, with [`Interrupted`]. Where nobody gave a
//! flag nothing happens: the command line ends the process instead.

use std::cell::RefCell;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    static CURRENT: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// What an interrupted computation unwinds with.
#[derive(Debug)]
pub struct Interrupted;

/// Puts the flag of before back, also when work unwinds.
struct Restore(Option<Arc<AtomicBool>>);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// Runs work on this thread that is to stop once the flag is set.
pub fn with<R>(flag: Arc<AtomicBool>, work: impl FnOnce() -> R) -> R {
    let _restore = Restore(CURRENT.replace(Some(flag)));
    work()
}

/// The flag of the thread that it was taken on; other threads may ask it.
#[derive(Clone, Debug)]
pub struct Interruption(Option<Arc<AtomicBool>>);

impl Interruption {
    /// That of this thread.
    pub fn current() -> Self {
        Self(CURRENT.with_borrow(Clone::clone))
    }

    /// Unwinds with [`Interrupted`] if the flag is set.
    pub fn check(&self) {
        if self.0.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            resume_unwind(Box::new(Interrupted));
        }
    }
}

/// Unwinds with [`Interrupted`] if this thread's flag is set.
pub fn check() {
    Interruption::current().check();
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn only_work_whose_flag_is_set_unwinds() {
        check();
        let flag = Arc::new(AtomicBool::new(false));
        let seen = with(Arc::clone(&flag), || {
            check();
            flag.store(true, Ordering::Relaxed);
            // Work of somebody else on the same thread, as rayon may have it.
            with(Arc::default(), check);
            let taken = Interruption::current();
            std::thread::spawn(move || taken.check()).join()
        });
        assert!(seen.unwrap_err().is::<Interrupted>());
        let unwound = catch_unwind(AssertUnwindSafe(|| with(flag, check)));
        assert!(unwound.unwrap_err().is::<Interrupted>());
        check();
    }
}
