//! The seam to code of others that panics where it should fail.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// Whether a panic of this thread is awaited, and its message of no use.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// What `work` gives, or none where it panicked. Only for code of others: a panic of ours is a fault.
pub fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !GUARDED.get() {
                before(panic);
            }
        }));
    });
    let outer = GUARDED.replace(true);
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(outer);
    done.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_others_is_caught_and_ours_before_and_after_are_not() {
        assert_eq!(guarded(|| 1), Some(1));
        assert_eq!(guarded(|| -> u8 { panic!("within a library") }), None);
        assert_eq!(guarded(|| guarded(|| -> u8 { panic!("deeper") })), Some(None));
        assert!(!GUARDED.get());
    }
}
