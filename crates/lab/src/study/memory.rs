//! The memory of steps that run side by side: how much a command took at most, and how much there is.
//!
//! Linux alone tells; elsewhere every step is thought to fit.

use std::fs;

/// The share of a machine's memory that steps may fill together; the rest is for files that are read again.
const SHARE: f64 = 0.9;

/// The most memory that a running process has held so far, in bytes.
pub(super) fn peak_of(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    kibibytes(&status, "VmHWM:")
}

/// The bytes that steps may hold together: of the machine's memory, or of what a container may take of it.
pub(super) fn budget() -> Option<u64> {
    let machine = kibibytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")?;
    let limit = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let limit = limit.and_then(|limit| limit.trim().parse::<u64>().ok());
    let bytes = machine.min(limit.unwrap_or(machine));
    Some((bytes as f64 * SHARE) as u64)
}

/// The value of a line such as `VmHWM:   1234 kB`, in bytes.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let text = "VmPeak:\t  200 kB\nVmHWM:\t  100 kB\n";
        assert_eq!(kibibytes(text, "VmHWM:"), Some(102_400));
        assert_eq!(kibibytes(text, "VmRSS:"), None);
        #[cfg(target_os = "linux")]
        assert!(peak_of(std::process::id()).unwrap() < budget().unwrap());
    }
}
