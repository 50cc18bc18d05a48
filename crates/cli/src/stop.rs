//! Interrupts: Ctrl-C, or SIGTERM.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set by an interrupt.
static STOP: AtomicBool = AtomicBool::new(false);

/// From now on an interrupt asks to stop, and no longer ends the process. Where no handler can be set it
/// still does, and what is saved stays.
pub(crate) fn listen() -> &'static AtomicBool {
    let _ = ctrlc::set_handler(|| STOP.store(true, Ordering::Relaxed));
    &STOP
}

/// Whether an interrupt came.
pub(crate) fn wished() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// The exit code of a command that did not end well: 130 after an interrupt, as shells have it, else 1.
pub(crate) fn exit_code() -> ExitCode {
    if wished() { ExitCode::from(130) } else { ExitCode::FAILURE }
}
