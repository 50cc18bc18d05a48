//! Lines on standard error, for whoever reads them.

/// Says a line on standard error, in the manner of `eprintln!`. Its reader may be gone (a runner that
/// was killed, a pipe that was closed): that is no reason to stop, and `eprintln!` would.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr().lock(), $($text)*);
    }};
}
