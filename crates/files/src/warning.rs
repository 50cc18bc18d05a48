//! What the user is to know although the work goes on. A library does not print; the program says where warnings go.

use std::collections::BTreeSet;
use std::sync::{Mutex, OnceLock, PoisonError};

static LISTENER: OnceLock<fn(&str)> = OnceLock::new();
static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Receives every warning from now on, each once; the first listener of a process counts.
pub fn on_warning(listener: fn(&str)) {
    let _ = LISTENER.set(listener);
}

/// Says what the user is to know.
pub fn warn(text: &str) {
    let is_new = || SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(text.to_owned());
    if let Some(listener) = LISTENER.get()
        && is_new()
    {
        listener(text);
    }
}
