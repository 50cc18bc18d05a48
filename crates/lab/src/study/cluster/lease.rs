//! A claim on a step's folder that holds between machines: a file that its holder renews, and that another may take
//! over once it is no longer renewed.
//!
//! Locks of network file systems are unreliable, so nothing here locks. A lease is taken by a hard link to a file of
//! one's own, which either exists already or not, on every version of NFS. Whether it is still renewed is judged by
//! the times of the file server alone (the lease's against that of a file written just now), so the clocks of the
//! machines may differ. A lease whose time or content is nonsense is watched: one that has not changed for as long as a
//! live holder may be silent, by this process's own clock, is dead whatever it claims.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use files::At;
use serde::{Deserialize, Serialize};

use crate::study::error::Result;

/// The file of a lease in a step's folder.
const LEASE: &str = "lease";
/// How often a holder renews its lease, and after how long without it has expired: six renewals missed.
const RENEWAL: Duration = Duration::from_secs(20);
const EXPIRY: Duration = Duration::from_secs(120);
/// How long a live holder may be silent, and a little more: who watches so long knows whether there is one.
const PATIENCE: Duration = Duration::from_secs(150);
/// By how much a lease that is being renewed may seem younger than a file that was written after it.
const AHEAD: Duration = Duration::from_secs(60);
const LONGEST: u64 = 1 << 16;
/// How much a clock may be off before it is mentioned.
const CLOCK: i64 = 60;
/// How often the renewing thread looks whether it is to end.
const POLL: Duration = Duration::from_millis(100);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub host: String,
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

/// The lease of another process, as far as it can be read.
pub(in crate::study) struct OtherLease {
    holder: Option<Holder>,
    is_dated_ahead: bool,
}

impl OtherLease {
    /// Whether only watching it tells whether its holder lives: its time or content is nonsense, or a job of another
    /// machine has it, which may have ended there.
    pub(in crate::study) fn is_to_be_watched(&self, this: &Holder) -> bool {
        let of_job =
            |other: &Holder| this.job.is_some() && other.job.is_some() && other.host != this.host;
        self.is_dated_ahead || self.holder.as_ref().is_none_or(of_job)
    }
}

impl std::fmt::Display for OtherLease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.holder {
            None => f.write_str("a process whose lease cannot be read")?,
            Some(Holder { host, pid, job, .. }) => {
                write!(f, "process {pid} on {host}")?;
                job.iter().try_for_each(|job| write!(f, " (job {job})"))?;
            }
        }
        match self.is_dated_ahead {
            true => f.write_str(", whose lease bears a time to come,"),
            false => Ok(()),
        }
    }
}

/// The time that a lease bears, and its content.
type LeaseSight = (SystemTime, Option<Vec<u8>>);

/// A lease as it was seen again and again.
pub(in crate::study) struct LeaseWatch {
    patience: Duration,
    seen: Option<(LeaseSight, Instant)>,
    changed: bool,
}

impl Default for LeaseWatch {
    fn default() -> Self {
        Self { patience: PATIENCE, seen: None, changed: false }
    }
}

impl LeaseWatch {
    /// Looks again: whether the lease has been as it is for longer than a live holder is silent.
    fn has_died(&mut self, path: &Path) -> bool {
        let Ok(modified) = fs::metadata(path).and_then(|metadata| metadata.modified()) else {
            // A file server that does not answer says nothing.
            self.seen = None;
            return false;
        };
        let now = (modified, bytes(path));
        match &self.seen {
            Some((seen, since)) if *seen == now => since.elapsed() > self.patience,
            before => {
                self.changed |= before.is_some();
                self.seen = Some((now, Instant::now()));
                false
            }
        }
    }

    /// Whether somebody has renewed it since it is watched.
    pub(in crate::study) fn has_changed(&self) -> bool {
        self.changed
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
pub(in crate::study) struct Lease {
    path: PathBuf,
    holder: Holder,
    ended: Arc<AtomicBool>,
    lost: Arc<AtomicBool>,
    renewal: Option<JoinHandle<()>>,
}

impl Lease {
    /// Takes the lease of a folder, which exists; gives who has it where another process does, or may.
    ///
    /// # Errors
    /// Where the folder cannot be written to.
    pub(in crate::study) fn take(
        folder: &Path,
        holder: Holder,
        watch: &mut LeaseWatch,
    ) -> Result<std::result::Result<Self, OtherLease>> {
        let path = folder.join(LEASE);
        let claim = folder.join(format!("{LEASE}.{}", holder.nonce));
        let text = serde_json::to_string(&holder).expect("plain data");
        fs::write(&claim, &text).at(&claim, "write")?;
        let taken = Self::link(&path, &claim, &holder, watch);
        let _ = fs::remove_file(&claim);
        match taken.at(&path, "take the lease")? {
            Some(other) => Ok(Err(other)),
            None => Ok(Ok(Self::renewed(path, holder, text))),
        }
    }

    /// The holder of a folder's lease that has not expired, if any.
    pub(super) fn holder(folder: &Path) -> Option<Holder> {
        let path = folder.join(LEASE);
        let holder = read(&path)?;
        let probe = folder.join(format!("{LEASE}.{}", nonce()));
        let age = fs::write(&probe, "").and_then(|()| age(&path, &probe));
        let _ = fs::remove_file(&probe);
        // Where nothing can be written, this machine's clock has to do.
        let age = age.ok().or_else(|| fs::metadata(&path).ok()?.modified().ok()?.elapsed().ok());
        age.is_none_or(|age| age <= EXPIRY).then_some(holder)
    }

    /// Puts a claim in the lease's place; gives what stands there unless it is dead.
    fn link(
        path: &Path,
        claim: &Path,
        this: &Holder,
        watch: &mut LeaseWatch,
    ) -> io::Result<Option<OtherLease>> {
        loop {
            match fs::hard_link(claim, path) {
                Ok(()) => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            let holder = read(path);
            let age = match age(path, claim) {
                // It was given back just now.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                age => age?,
            };
            let is_gone = holder.as_ref().is_some_and(|holder| holder.is_gone(this));
            if !is_gone && age <= EXPIRY && !watch.has_died(path) {
                return Ok(Some(OtherLease { holder, is_dated_ahead: is_ahead(path, claim)? }));
            }
            // Of several that find it dead, one moves it away; who moves a younger one puts it back.
            let aside = path.with_added_extension(format!("expired-{}", this.nonce));
            match fs::rename(path, &aside) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                moved => moved?,
            }
            if read(&aside) != holder {
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
                let mut since = Instant::now();
                while !ended.load(Ordering::Relaxed) {
                    std::thread::park_timeout(POLL);
                    if since.elapsed() < RENEWAL {
                        continue;
                    }
                    since = Instant::now();
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
    pub(in crate::study) fn is_lost(&self) -> bool {
        let is_other = || read(&self.path).as_ref() != Some(&self.holder);
        self.lost.load(Ordering::Relaxed) || (is_other() && !is_unreachable(&self.path))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(renewal) = self.renewal.take() {
            renewal.thread().unpark();
            let _ = renewal.join();
        }
        if read(&self.path).as_ref() == Some(&self.holder) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn read(path: &Path) -> Option<Holder> {
    serde_json::from_slice(&bytes(path)?).ok()
}

/// The beginning of a lease, which is short: whatever else stands there is neither waited for nor read to its end.
fn bytes(path: &Path) -> Option<Vec<u8>> {
    fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(fs::File::open(path).ok()?, LONGEST), &mut bytes)
        .ok()?;
    Some(bytes)
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

/// By how much a lease is older than a file that was written just now; zero where it is younger.
fn age(path: &Path, now: &Path) -> io::Result<Duration> {
    let modified = |path: &Path| fs::metadata(path)?.modified();
    Ok(modified(now)?.duration_since(modified(path)?).unwrap_or_default())
}

/// Whether a lease bears a time to come, as none does whose holder lives: then its age says nothing.
fn is_ahead(path: &Path, now: &Path) -> io::Result<bool> {
    Ok(age(now, path)? > AHEAD)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn of(host: &str, job: Option<&str>) -> Holder {
        Holder { host: host.to_owned(), ..Holder::this(job.map(str::to_owned)) }
    }

    fn take(folder: &Path, holder: Holder) -> Result<std::result::Result<Lease, OtherLease>> {
        Lease::take(folder, holder, &mut LeaseWatch::default())
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
            let one = || take(folder.path(), of("node", None)).unwrap();
            let takers: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
            takers.into_iter().map(|taker| taker.join().unwrap()).collect()
        });
        assert_eq!(held.iter().filter(|held| held.is_ok()).count(), 1);
        assert!(Lease::holder(folder.path()).is_some());
        drop(held);
        assert_eq!(Lease::holder(folder.path()), None);
        assert!(take(folder.path(), of("other", None)).unwrap().is_ok());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
    }

    #[test]
    fn an_expired_one_is_taken_over_and_its_holder_notices() {
        let folder = tempfile::tempdir().unwrap();
        let first = take(folder.path(), of("far", None)).unwrap().ok().unwrap();
        assert!(take(folder.path(), of("node", None)).unwrap().is_err());
        age(folder.path());
        assert_eq!(Lease::holder(folder.path()), None);
        let second = take(folder.path(), of("node", None)).unwrap().ok().unwrap();
        assert!(first.is_lost() && !second.is_lost());
        drop(first);
        assert!(!second.is_lost(), "the first does not give back what is no longer its own");
    }

    #[test]
    fn a_job_that_was_started_anew_and_a_dead_process_need_not_expire() {
        let folder = tempfile::tempdir().unwrap();
        let first = take(folder.path(), of("far", Some("12_3"))).unwrap().ok().unwrap();
        assert!(take(folder.path(), of("node", Some("12_4"))).unwrap().is_err());
        let again = take(folder.path(), of("node", Some("12_3"))).unwrap();
        assert!(again.is_ok() && first.is_lost());
        drop((first, again));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let dead = Holder { pid: child.id(), ..Holder::this(None) };
        std::mem::forget(take(folder.path(), dead).unwrap().ok().unwrap());
        assert!(take(folder.path(), Holder::this(None)).unwrap().is_ok());
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
        let held = take(folder.path(), of("far", None)).unwrap().ok().unwrap();
        let lease = fs::File::options().write(true).open(folder.path().join(LEASE)).unwrap();
        lease.set_modified(SystemTime::now() + hour).unwrap();
        assert!(take(folder.path(), of("node", None)).unwrap().is_err());
        assert!(!held.is_lost());
    }

    #[test]
    fn one_that_is_damaged_expires() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(LEASE), "{\"host\": ").unwrap();
        age(folder.path());
        assert!(take(folder.path(), of("node", None)).unwrap().is_ok());
    }

    /// Whatever a lease claims, it is dead once it has not changed for as long as a live holder may be silent.
    #[test]
    fn one_that_is_not_renewed_while_it_is_watched_is_dead() {
        let garbled: fn(&Path) = |lease| fs::write(lease, "{\"host\": ").unwrap();
        let empty: fn(&Path) = |lease| fs::write(lease, "").unwrap();
        let folder: fn(&Path) = |lease| fs::create_dir(lease).unwrap();
        let ahead: fn(&Path) = |lease| {
            fs::write(lease, serde_json::to_string(&of("far", None)).unwrap()).unwrap();
            let years = SystemTime::now() + Duration::from_secs(10 * 365 * 24 * 3600);
            fs::File::options().write(true).open(lease).unwrap().set_modified(years).unwrap();
        };
        for plant in [garbled, empty, folder, ahead] {
            let place = tempfile::tempdir().unwrap();
            let lease = place.path().join(LEASE);
            plant(&lease);
            let patience = Duration::from_millis(40);
            let mut watch = LeaseWatch { patience, ..LeaseWatch::default() };
            let mut again = || Lease::take(place.path(), of("node", None), &mut watch).unwrap();
            let other = again().err().unwrap();
            assert!(other.is_to_be_watched(&of("node", None)), "{other}");
            std::thread::sleep(2 * patience);
            // Somebody is there.
            if lease.is_file() {
                fs::File::options()
                    .write(true)
                    .open(&lease)
                    .unwrap()
                    .set_modified(SystemTime::now())
                    .unwrap();
                assert!(again().is_err());
                std::thread::sleep(2 * patience);
            }
            assert!(again().is_ok());
        }
    }
}
