//! Interrupts: Ctrl-C (SIGINT), or SIGTERM and SIGHUP.
//!
//! `ctrlc` handles all three and does not say which came. So on Unix they are blocked in every thread that this one
//! starts, and a thread that waits for them learns it. A thread that was there before (Python has some) may still receive
//! one, by way of the handler; its exit code is then that of Ctrl-C.

use std::process::exit;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use crate::host;

/// The exit code after Ctrl-C, as shells have it: 128 and the signal.
const INTERRUPTED: u8 = 130;

static STOP: AtomicBool = AtomicBool::new(false);
static CODE: AtomicU8 = AtomicU8::new(INTERRUPTED);
/// Whether the command ends by itself when it is asked to.
static LISTENING: AtomicBool = AtomicBool::new(false);

/// From now on an interrupt ends the process and leaves no half-written file behind.
pub fn install() {
    #[cfg(unix)]
    tell_apart();
    let _ = ctrlc::set_handler(interrupted);
}

#[cfg(unix)]
fn tell_apart() {
    use nix::sys::signal::{SigSet, Signal};
    let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect();
    if signals.thread_block().is_ok() {
        std::thread::spawn(move || {
            while let Ok(signal) = signals.wait() {
                CODE.store(128 + signal as u8, Ordering::Relaxed);
                interrupted();
            }
        });
    }
}

fn interrupted() {
    STOP.store(true, Ordering::Relaxed);
    if !LISTENING.load(Ordering::Relaxed) {
        files::remove_drafts();
        exit(i32::from(CODE.load(Ordering::Relaxed)));
    }
}

/// From now on an interrupt asks to stop, and no longer ends the process.
pub fn listen() -> &'static AtomicBool {
    LISTENING.store(true, Ordering::Relaxed);
    &STOP
}

pub fn wished() -> bool {
    STOP.load(Ordering::Relaxed) || host::current().is_some_and(|host| host.stopped())
}

/// The exit code of a command that did not end well: after an interrupt that of its signal, else 1.
pub fn exit_code() -> u8 {
    if wished() { CODE.load(Ordering::Relaxed) } else { 1 }
}
