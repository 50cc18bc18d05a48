//! Lines on standard error. Their reader may be gone (a runner that was killed, a pipe that was
//! closed): that is no reason to stop, and `eprintln!` would.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::host;

static QUIET: AtomicBool = AtomicBool::new(false);

pub fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Prints an informative line, or tells it the host.
pub fn inform(text: &str) {
    match host::current() {
        Some(host) => host.remark(text),
        None if is_quiet() => {}
        None => warn(text),
    }
}

/// Prints a line that `--quiet` does not suppress. What comes from files cannot command a terminal.
pub fn warn(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", terms::printable(text));
}

/// Prints an informative line on standard error unless `--quiet` was given.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => { $crate::say::inform(&format!($($text)*)) };
}

#[macro_export]
macro_rules! complain {
    ($($text:tt)*) => { $crate::say::warn(&format!($($text)*)) };
}
