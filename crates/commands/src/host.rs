//! A program that has this one within it, as Python has: it is called back with progress, remarks and metrics, and may ask to stop.
//!
//! A command takes it from here and not from its arguments, as it takes standard error and Ctrl-C from the process. So one
//! command runs at a time (`command_line::call` waits its turn).

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use serde_json::Value;

/// Callbacks of a program that calls commands within its own process.
pub trait Host: Send + Sync {
    /// So much of something is done.
    fn progress(&self, label: &str, done: u64, total: u64, note: &str);
    /// What the command line would print on standard error.
    fn remark(&self, text: &str);
    fn metrics(&self, line: &Value);
    /// Whether the command is to stop. One that asks ends by itself when it is.
    fn stopped(&self) -> bool;
}

static HOST: RwLock<Option<Arc<dyn Host>>> = RwLock::new(None);
static TURN: Mutex<()> = Mutex::new(());

/// The program around this one, where there is one.
pub fn current() -> Option<Arc<dyn Host>> {
    HOST.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Takes the host away again, also when a command unwinds.
struct Leave;

impl Drop for Leave {
    fn drop(&mut self) {
        *HOST.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Runs a command for a host, when no other runs.
pub fn with<R>(host: Arc<dyn Host>, work: impl FnOnce() -> R) -> R {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    *HOST.write().unwrap_or_else(PoisonError::into_inner) = Some(host);
    let _leave = Leave;
    work()
}
