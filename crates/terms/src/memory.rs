//! How much memory a process may have, so that what cannot fit is refused with a sentence before it is begun: an allocation that
//! fails ends a process without one.
//!
//! Linux alone tells; elsewhere everything is thought to fit, and the allocator decides.

use std::fmt;
use std::fs;

/// The most memory that a running process has held so far, in bytes.
pub fn peak_of(process: u32) -> Option<u64> {
    kibibytes(&fs::read_to_string(format!("/proc/{process}/status")).ok()?, "VmHWM:")
}

/// The bytes of memory that this machine has, or that a container may take of it.
pub fn of_machine() -> Option<u64> {
    let machine = kibibytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")?;
    let limit = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let limit = limit.and_then(|limit| limit.trim().parse::<u64>().ok());
    Some(machine.min(limit.unwrap_or(machine)))
}

/// The bytes that this process may still take at most: the machine's, or what `ulimit -v` leaves of them.
pub fn obtainable() -> Option<u64> {
    let machine = of_machine();
    let left = || {
        let limits = fs::read_to_string("/proc/self/limits").ok()?;
        let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
        let limit: u64 = line.split_whitespace().next()?.parse().ok()?;
        let taken = kibibytes(&fs::read_to_string("/proc/self/status").ok()?, "VmSize:")?;
        Some(limit.saturating_sub(taken))
    };
    machine.into_iter().chain(left()).min()
}

/// Memory that cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// How many bytes are needed.
    pub needed: u128,
    /// How many can be had, where that is known.
    pub obtainable: Option<u64>,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let in_gb = |bytes: f64| format!("{:.2} GB", bytes / 1e9);
        write!(f, "{} of memory are needed", in_gb(self.needed as f64))?;
        match self.obtainable {
            Some(bytes) => write!(f, ", and {} can be had", in_gb(bytes as f64)),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Shortage {}

/// Refuses what cannot fit.
///
/// # Errors
/// Where so many bytes are more than can be had.
pub fn check(needed: u128) -> Result<(), Shortage> {
    match obtainable() {
        Some(bytes) if needed > u128::from(bytes) => {
            Err(Shortage { needed, obtainable: Some(bytes) })
        }
        _ => Ok(()),
    }
}

/// Memory for so many values, whose number comes from input.
///
/// # Errors
/// Where it cannot be had.
pub fn reserve<T>(values: usize) -> Result<Vec<T>, Shortage> {
    let needed = values as u128 * size_of::<T>() as u128;
    check(needed)?;
    let mut vec = Vec::new();
    let reserved = vec.try_reserve_exact(values);
    reserved.map(|()| vec).map_err(|_| Shortage { needed, obtainable: obtainable() })
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
        assert!(peak_of(std::process::id()).unwrap() < of_machine().unwrap());
    }

    #[test]
    fn what_cannot_be_had_is_an_error_with_the_number() {
        assert_eq!(reserve::<f32>(1000).unwrap().capacity(), 1000);
        let error = reserve::<f32>(1 << 53).unwrap_err().to_string();
        assert!(error.starts_with("36028797.02 GB of memory are needed"), "{error}");
        reserve::<u64>(usize::MAX).unwrap_err();
    }
}
