//! A claim on a step's folder that holds between machines: a file that its holder renews, and that another may take
//! over once it is no longer renewed.
//!
//! Locks of network file systems are unreliable, so nothing here locks. A lease is taken by a hard link to a file of
//! one's own, which either exists already or not, on every version of NFS. Whether it is still renewed is judged by
//! the times of the file server alone (the lease's against that of a file written just now), so the clocks of the
//! machines may differ.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use files::At;
use serde::{Deserialize, Serialize};

use crate::study::error::Result;

/// The file of a lease in a step's folder.
pub(in crate::study) const LEASE: &str = "lease";
/// How often a holder renews its lease, and after how long without it has expired: six renewals missed.
const RENEWAL: Duration = Duration::from_secs(20);
const EXPIRY: Duration = Duration::from_secs(120);
/// How long a live holder may be silent, and a little more: who waits so long knows whether there is one.
pub(super) const PATIENCE: Duration = Duration::from_secs(150);
/// How much a clock may be off before it is mentioned.
const CLOCK: i64 = 60;
/// How often the renewing thread looks whether it is to end.
const POLL: Duration = Duration::from_millis(100);

/// Who holds a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The name of the machine.
    pub host: String,
    /// The process there.
    pub pid: u32,
    /// The job of the cluster's scheduler, where there is one: `12_3` is task 3 of array 12.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// By how many seconds the machine's clock is ahead of the file server's, where that is much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    clock_ahead: Option<i64>,
    /// Tells this claim from every other.
    nonce: String,
}

impl Holder {
    /// This process, as part of a job of a scheduler if it is one.
    pub fn this(job: Option<String>) -> Self {
        let named = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
        let host = named.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
        let host = host.trim().to_owned();
        Self { host, pid: std::process::id(), job, clock_ahead: None, nonce: nonce() }
    }

    /// The same, with how far this machine's clock is off that of a folder's file server.
    pub(super) fn compared_with(self, folder: &Path) -> Self {
        let probe = folder.join(format!("{LEASE}.{}", nonce()));
        let written = fs::write(&probe, "").ok();
        let clock_ahead = written.and_then(|()| clock_ahead(&probe, SystemTime::now()));
        let _ = fs::remove_file(&probe);
        Self { clock_ahead, ..self }
    }

    /// The machine, and whether its clock is off.
    pub(super) fn described(&self) -> String {
        let clock = self.clock_in_words().map(|clock| format!(" ({clock})"));
        format!("{}{}", self.host, clock.unwrap_or_default())
    }

    /// That its clock is off, where it is. Leases do not mind, but what Slurm signs does.
    pub(super) fn clock_in_words(&self) -> Option<String> {
        let seconds = self.clock_ahead?;
        let direction = if seconds > 0 { "ahead of" } else { "behind" };
        let (host, off) = (&self.host, seconds.unsigned_abs());
        Some(format!("the clock of {host} is {off} s {direction} the file server's"))
    }

    /// Whether it belongs to a job on another machine: it may have died there, which only time tells.
    pub(super) fn is_out_of_sight(&self, this: &Holder) -> bool {
        self.job.is_some() && self.host != this.host
    }

    /// Whether this holder cannot be alive any more, whatever the lease's age: its process on this machine has ended,
    /// or its job was started anew, as this one.
    fn is_gone(&self, this: &Holder) -> bool {
        if self.job.is_some() && self.job == this.job {
            return true;
        }
        let pid = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw);
        let ended = |pid| rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH);
        self.host == this.host && pid.is_some_and(ended)
    }
}

/// Letters that no other claim has.
fn nonce() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // A hasher's keys are random, and other with each.
    let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), since);
    format!("{:x}-{random:016x}", since.as_nanos())
}

/// A step's folder that belongs to this process until the value is dropped, or until [`is_lost`](Lease::is_lost).
pub struct Lease {
    path: PathBuf,
    holder: Holder,
    ended: Arc<AtomicBool>,
    lost: Arc<AtomicBool>,
    renewal: Option<JoinHandle<()>>,
}

impl Lease {
    /// Takes the lease of a folder, which exists; gives its holder where another process has it.
    ///
    /// # Errors
    /// Where the folder cannot be written to.
    pub fn take(folder: &Path, holder: Holder) -> Result<std::result::Result<Self, Holder>> {
        let path = folder.join(LEASE);
        let claim = folder.join(format!("{LEASE}.{}", holder.nonce));
        let text = serde_json::to_string(&holder).expect("plain data");
        fs::write(&claim, &text).at(&claim, "write")?;
        let taken = Self::link(&path, &claim, &holder);
        let _ = fs::remove_file(&claim);
        match taken.at(&path, "take the lease")? {
            Some(other) => Ok(Err(other)),
            None => Ok(Ok(Self::renewed(path, holder, text))),
        }
    }

    /// The live holder of a folder's lease, if any.
    pub fn holder(folder: &Path) -> Option<Holder> {
        let path = folder.join(LEASE);
        let holder = read(&path)?;
        let probe = folder.join(format!("{LEASE}.{}", nonce()));
        let expired = fs::write(&probe, "").and_then(|()| is_expired(&path, &probe));
        let _ = fs::remove_file(&probe);
        // Where nothing can be written, this machine's clock has to do.
        let expired = expired.unwrap_or_else(|_| {
            let renewed = fs::metadata(&path).and_then(|metadata| metadata.modified());
            renewed.is_ok_and(|at| at.elapsed().unwrap_or_default() > EXPIRY)
        });
        (!expired).then_some(holder)
    }

    /// Puts a claim in the lease's place; gives the holder where there is a live one.
    fn link(path: &Path, claim: &Path, this: &Holder) -> io::Result<Option<Holder>> {
        loop {
            match fs::hard_link(claim, path) {
                Ok(()) => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            let Some(other) = read(path) else {
                // It was given back just now, or is being written, or is damaged; the last expires.
                match is_expired(path, claim) {
                    Ok(true) => remove_if_exists(path)?,
                    Ok(false) => std::thread::sleep(POLL),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
                fs::write(claim, serde_json::to_string(this).expect("plain data"))?;
                continue;
            };
            if !other.is_gone(this) && !is_expired(path, claim).unwrap_or(false) {
                return Ok(Some(other));
            }
            // Of several that find it expired, one moves it away; who moves a younger one puts it back.
            let aside = path.with_added_extension(format!("expired-{}", this.nonce));
            match fs::rename(path, &aside) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                moved => moved?,
            }
            if read(&aside).is_some_and(|moved| moved != other) {
                let _ = fs::hard_link(&aside, path);
            }
            let _ = fs::remove_file(&aside);
        }
    }

    /// Renews the lease in a thread of its own from now on.
    fn renewed(path: PathBuf, holder: Holder, text: String) -> Self {
        let (ended, lost) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let renewal = {
            let (path, holder) = (path.clone(), holder.clone());
            let (ended, lost) = (Arc::clone(&ended), Arc::clone(&lost));
            std::thread::spawn(move || {
                let mut since = std::time::Instant::now();
                while !ended.load(Ordering::Relaxed) {
                    std::thread::sleep(POLL);
                    if since.elapsed() < RENEWAL {
                        continue;
                    }
                    since = std::time::Instant::now();
                    match read(&path) {
                        Some(now) if now == holder => _ = renew(&path, &text),
                        _ if is_unreachable(&path) => {}
                        _ => lost.store(true, Ordering::Relaxed),
                    }
                }
            })
        };
        Self { path, holder, ended, lost, renewal: Some(renewal) }
    }

    /// Whether another process took it over, since it could not be renewed: what is done from then on is not to be
    /// kept.
    pub fn is_lost(&self) -> bool {
        let is_other = || read(&self.path).as_ref() != Some(&self.holder);
        self.lost.load(Ordering::Relaxed) || (is_other() && !is_unreachable(&self.path))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(renewal) = self.renewal.take() {
            let _ = renewal.join();
        }
        if read(&self.path).as_ref() == Some(&self.holder) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn read(path: &Path) -> Option<Holder> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Writes the same over a lease, which is never empty meanwhile: the file server then sets its time.
fn renew(path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::File::options().write(true).open(path)?;
    io::Write::write_all(&mut file, text.as_bytes())
}

/// Whether the file server does not answer at the moment, which says nothing about a lease.
fn is_unreachable(path: &Path) -> bool {
    matches!(fs::metadata(path), Err(error) if error.kind() != io::ErrorKind::NotFound)
}

/// Whether a lease is older than a file that was written just now, by more than it may be.
fn is_expired(path: &Path, now: &Path) -> io::Result<bool> {
    let modified = |path: &Path| fs::metadata(path)?.modified();
    let age = modified(now)?.duration_since(modified(path)?).unwrap_or_default();
    Ok(age > EXPIRY)
}

/// By how many seconds a clock is ahead of that of the file server, which has just dated a file; none where they agree.
fn clock_ahead(written: &Path, now: SystemTime) -> Option<i64> {
    let dated = fs::metadata(written).and_then(|metadata| metadata.modified()).ok()?;
    let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    let ahead = match now.duration_since(dated) {
        Ok(ahead) => seconds(ahead),
        Err(behind) => -seconds(behind.duration()),
    };
    (ahead.abs() > CLOCK).then_some(ahead)
}

fn remove_if_exists(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(host: &str, job: Option<&str>) -> Holder {
        Holder { host: host.to_owned(), ..Holder::this(job.map(str::to_owned)) }
    }

    /// Makes a lease as old as one that was not renewed.
    fn age(folder: &Path) {
        let then = SystemTime::now() - 2 * EXPIRY;
        fs::File::options()
            .write(true)
            .open(folder.join(LEASE))
            .and_then(|file| file.set_modified(then))
            .unwrap();
    }

    #[test]
    fn one_of_many_has_it_and_the_next_once_it_is_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let held: Vec<_> = std::thread::scope(|scope| {
            let take = || Lease::take(folder.path(), of("node", None)).unwrap();
            let takers: Vec<_> = (0..8).map(|_| scope.spawn(take)).collect();
            takers.into_iter().map(|taker| taker.join().unwrap()).collect()
        });
        assert_eq!(held.iter().filter(|held| held.is_ok()).count(), 1);
        assert!(Lease::holder(folder.path()).is_some());
        drop(held);
        assert_eq!(Lease::holder(folder.path()), None);
        assert!(Lease::take(folder.path(), of("other", None)).unwrap().is_ok());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
    }

    #[test]
    fn an_expired_one_is_taken_over_and_its_holder_notices() {
        let folder = tempfile::tempdir().unwrap();
        let first = Lease::take(folder.path(), of("far", None)).unwrap().ok().unwrap();
        assert!(Lease::take(folder.path(), of("node", None)).unwrap().is_err());
        age(folder.path());
        assert_eq!(Lease::holder(folder.path()), None);
        let second = Lease::take(folder.path(), of("node", None)).unwrap().ok().unwrap();
        assert!(first.is_lost() && !second.is_lost());
        drop(first);
        assert!(!second.is_lost(), "the first does not give back what is no longer its own");
    }

    #[test]
    fn a_job_that_was_started_anew_and_a_dead_process_need_not_expire() {
        let folder = tempfile::tempdir().unwrap();
        let first = Lease::take(folder.path(), of("far", Some("12_3"))).unwrap().ok().unwrap();
        assert!(Lease::take(folder.path(), of("node", Some("12_4"))).unwrap().is_err());
        let again = Lease::take(folder.path(), of("node", Some("12_3"))).unwrap();
        assert!(again.is_ok() && first.is_lost());
        drop((first, again));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let dead = Holder { pid: child.id(), ..Holder::this(None) };
        std::mem::forget(Lease::take(folder.path(), dead).unwrap().ok().unwrap());
        assert!(Lease::take(folder.path(), Holder::this(None)).unwrap().is_ok());
    }

    /// The times of the file server alone count; a clock that is off is mentioned.
    #[test]
    fn a_clock_that_is_off_changes_nothing_and_is_mentioned() {
        let folder = tempfile::tempdir().unwrap();
        let hour = Duration::from_secs(3600);
        let file = folder.path().join("dated");
        fs::write(&file, "").unwrap();
        let dated = fs::metadata(&file).unwrap().modified().unwrap();
        assert_eq!(clock_ahead(&file, dated + Duration::from_secs(5)), None);
        let ahead = Holder { clock_ahead: clock_ahead(&file, dated + hour), ..of("node7", None) };
        let words = "node7 (the clock of node7 is 3600 s ahead of the file server's)";
        assert_eq!(ahead.described(), words);
        let behind = Holder { clock_ahead: clock_ahead(&file, dated - hour), ..of("node7", None) };
        assert!(behind.described().contains("3600 s behind"), "{}", behind.described());
        // A server whose clock was set back: the lease is younger than anything, and is left alone.
        let held = Lease::take(folder.path(), of("far", None)).unwrap().ok().unwrap();
        let lease = fs::File::options().write(true).open(folder.path().join(LEASE)).unwrap();
        lease.set_modified(SystemTime::now() + hour).unwrap();
        assert!(Lease::take(folder.path(), of("node", None)).unwrap().is_err());
        assert!(!held.is_lost());
    }

    #[test]
    fn one_that_is_damaged_expires() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(LEASE), "{\"host\": ").unwrap();
        age(folder.path());
        assert!(Lease::take(folder.path(), of("node", None)).unwrap().is_ok());
    }
}
