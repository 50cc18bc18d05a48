//! The wish to stop: Ctrl-C, or a polite signal to end.

use std::sync::atomic::{AtomicBool, Ordering};

/// Set when somebody asks to stop.
static STOP: AtomicBool = AtomicBool::new(false);

/// From now on an interrupt is a wish to stop, and no longer ends the process. Where no handler can
/// be set it still does, and what is saved stays.
pub(crate) fn listen() -> &'static AtomicBool {
    let _ = ctrlc::set_handler(|| STOP.store(true, Ordering::Relaxed));
    &STOP
}

/// Whether somebody has asked to stop.
pub(crate) fn wished() -> bool {
    STOP.load(Ordering::Relaxed)
}
