//! What the user is to know although the work goes on. A library does not print; the program says where warnings go.

use std::sync::OnceLock;

static LISTENER: OnceLock<fn(&str)> = OnceLock::new();

/// Receives every warning of this crate from now on; the first listener of a process counts.
pub fn on_warning(listener: fn(&str)) {
    let _ = LISTENER.set(listener);
}

pub(crate) fn warn(text: &str) {
    if let Some(listener) = LISTENER.get() {
        listener(text);
    }
}
