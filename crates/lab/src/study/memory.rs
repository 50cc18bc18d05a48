//! The memory of steps that run side by side.

use terms::memory;

/// The share of a machine's memory that steps may fill together; the rest is for files that are read again.
const SHARE: f64 = 0.9;

/// The bytes that steps may hold together; where nobody tells, every step is thought to fit.
pub(super) fn budget() -> Option<u64> {
    Some((memory::of_machine()? as f64 * SHARE) as u64)
}
