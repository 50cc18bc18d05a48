//! Lines on standard error. Their reader may be gone (a runner that was killed, a pipe that was
//! closed): that is no reason to stop, and `eprintln!` would.

use std::sync::atomic::{AtomicBool, Ordering};

static QUIET: AtomicBool = AtomicBool::new(false);

/// Suppresses everything on standard error but errors.
pub(crate) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether only errors are printed on standard error.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Prints an informative line on standard error unless `--quiet` was given.
macro_rules! say {
    ($($text:tt)*) => {
        match crate::host::current() {
            Some(host) => host.remark(&format!($($text)*)),
            None if crate::say::is_quiet() => {}
            None => complain!($($text)*),
        }
    };
}

/// Prints an error on standard error. What comes from files cannot command a terminal.
macro_rules! complain {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let text = format!($($text)*);
        let _ = writeln!(std::io::stderr().lock(), "{}", terms::printable(&text));
    }};
}
