//! What happens when the GPU fails in the middle of things, or memory for a matrix cannot be had.
//!
//! Kernels return nothing: an operation could not handle such a failure. It unwinds to the code that
//! started the work, carrying one sentence, and the program ends in good order; what was on the disk
//! stays there.

use std::fmt;

/// The device failed; says how, and what may help.
#[derive(Debug)]
pub struct DeviceFault(pub(crate) String);

impl fmt::Display for DeviceFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DeviceFault {}

impl terms::Fault for DeviceFault {}

/// Unwinds with this sentence. No message is printed here: the code that catches it prints it once.
pub(crate) fn fail(sentence: String) -> ! {
    std::panic::resume_unwind(Box::new(DeviceFault(sentence)))
}

/// Unwinds where an operation has no kernel on the GPU.
pub(crate) fn unknown(what: &str) -> ! {
    fail(format!("the GPU has no kernel for {what} yet: use --device cpu"))
}

/// The result, or a fault that names what was being done.
pub(crate) fn must<T, E: fmt::Debug>(result: Result<T, E>, doing: &str) -> T {
    result.unwrap_or_else(|error| fail(format!("the GPU failed while {doing}: {error:?}")))
}
