//! Interrupts: Ctrl-C, or SIGTERM.

use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::host;

/// The exit code after an interrupt, as shells have it.
const INTERRUPTED: u8 = 130;

/// Set by an interrupt.
static STOP: AtomicBool = AtomicBool::new(false);
/// Whether the command ends by itself when it is asked to.
static LISTENING: AtomicBool = AtomicBool::new(false);

/// From now on an interrupt ends the process and leaves no half-written file behind.
pub(crate) fn install() {
    let _ = ctrlc::set_handler(|| {
        STOP.store(true, Ordering::Relaxed);
        if !LISTENING.load(Ordering::Relaxed) {
            files::remove_drafts();
            exit(i32::from(INTERRUPTED));
        }
    });
}

/// From now on an interrupt asks to stop, and no longer ends the process.
pub(crate) fn listen() -> &'static AtomicBool {
    LISTENING.store(true, Ordering::Relaxed);
    &STOP
}

/// Whether an interrupt came.
pub(crate) fn wished() -> bool {
    STOP.load(Ordering::Relaxed) || host::current().is_some_and(|host| host.stopped())
}

/// The exit code of a command that did not end well: 130 after an interrupt, else 1.
pub(crate) fn exit_code() -> u8 {
    if wished() { INTERRUPTED } else { 1 }
}
