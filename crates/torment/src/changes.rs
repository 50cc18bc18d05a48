//! A file that changes while a command reads it: the command gives the result of the old bytes or of the new ones, or an error
//! that names the file. Of what carries no digests, a result of both is counted, and is no fault.
//!
//! Linux holds a process within `read` until somebody who watches the file allows it (fanotify, for root alone), so that a change
//! falls between open and close, before a read that the seed has chosen.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use torment::mutation::{Packing, mutate};

use crate::artefacts::{Artefact, ArtefactReference, PLAIN, SEALED};
use crate::board::Kind;
use crate::cases::{Bench, CaseResult, text};
use crate::process::Ended;
#[cfg(not(target_os = "linux"))]
use crate::process::Running;
use crate::rot::files;

#[cfg(target_os = "linux")]
use watch::Watch;

#[cfg(target_os = "linux")]
mod watch {
    use std::fs::read_link;
    use std::os::fd::AsRawFd;
    use std::path::{Path, PathBuf};
    use std::thread::sleep;
    use std::time::Duration;

    use nix::sys::fanotify::{
        EventFFlags, Fanotify, FanotifyResponse, InitFlags, MarkFlags, MaskFlags, Response,
    };

    use crate::process::Running;

    /// Files whose reads wait until they are allowed, or until this is dropped.
    pub(super) struct Watch(Fanotify);

    impl Watch {
        /// Of files by their absolute paths.
        pub(super) fn of(files: &[PathBuf]) -> Result<Self, String> {
            let class = InitFlags::FAN_CLASS_CONTENT;
            let flags = class | InitFlags::FAN_CLOEXEC | InitFlags::FAN_NONBLOCK;
            let opened = EventFFlags::O_RDONLY | EventFFlags::O_CLOEXEC;
            let group = Fanotify::init(flags, opened).map_err(|error| error.to_string())?;
            for file in files {
                let mask = MaskFlags::FAN_ACCESS_PERM;
                let marked = group.mark(MarkFlags::FAN_MARK_ADD, mask, &group, Some(file));
                marked.map_err(|error| format!("{}: {error}", file.display()))?;
            }
            Ok(Self(group))
        }

        /// Tells of each read before it happens, until the command ends or whoever is told has heard enough.
        pub(super) fn each_read(
            &self,
            running: &mut Running,
            mut told: impl FnMut(&Path) -> Result<bool, String>,
        ) -> Result<(), String> {
            loop {
                let over = running.has_ended() || running.is_late();
                let events = self.0.read_events().unwrap_or_default();
                for event in &events {
                    let Some(file) = event.fd() else { continue };
                    let path = read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
                    let more = told(&path.unwrap_or_default())?;
                    let allowed = FanotifyResponse::new(file, Response::FAN_ALLOW);
                    self.0.write_response(allowed).map_err(|error| error.to_string())?;
                    if !more {
                        return Ok(());
                    }
                }
                match events.is_empty() {
                    true if over => return Ok(()),
                    true => sleep(Duration::from_micros(100)),
                    false => {}
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
struct Watch;

#[cfg(not(target_os = "linux"))]
impl Watch {
    fn of(_: &[PathBuf]) -> Result<Self, String> {
        Err("only Linux holds a read".to_owned())
    }

    fn each_read(
        &self,
        _: &mut Running,
        _: impl FnMut(&Path) -> Result<bool, String>,
    ) -> Result<(), String> {
        Ok(())
    }
}

/// Why no change can be made to fall into a read here.
pub(crate) fn hindrance() -> Option<String> {
    Watch::of(&[PathBuf::from("/dev/null")]).err()
}

/// What becomes of a file.
#[derive(Debug)]
enum Deed {
    Truncated,
    Overwritten,
    Replaced,
    Appended,
}

struct Change {
    deed: Deed,
    new: Vec<u8>,
}

impl Change {
    fn draw(old: &[u8], rng: &mut ChaCha8Rng) -> Self {
        let (from, to) = (rng.random_range(0..old.len()), rng.random_range(0..=old.len()));
        let (from, to) = (from.min(to), from.max(to));
        let (deed, new) = match rng.random_range(0..4) {
            0 => (Deed::Truncated, old[..from].to_vec()),
            1 => {
                let mut new = old.to_vec();
                new[from..to].iter_mut().for_each(|byte| *byte ^= 1);
                (Deed::Overwritten, new)
            }
            2 => (Deed::Replaced, mutate(old, old, Packing::Plain, rng)),
            _ => (Deed::Appended, [old, &old[from..to]].concat()),
        };
        Self { deed, new }
    }

    fn befall(&self, file: &Path) -> io::Result<()> {
        let written = || OpenOptions::new().write(true).open(file);
        match self.deed {
            Deed::Truncated => written()?.set_len(self.new.len() as u64),
            Deed::Overwritten | Deed::Appended => written()?.write_all_at(&self.new, 0),
            Deed::Replaced => {
                let beside = file.with_extension("new");
                File::create(&beside)?.write_all_at(&self.new, 0)?;
                fs::rename(&beside, file)
            }
        }
    }
}

impl Bench<'_> {
    /// The command carried to its end, and how often it read each file; nothing of these where reads cannot be watched.
    pub(crate) fn reads(
        &self,
        artefact: &Artefact,
        folder: &Path,
    ) -> Result<(Ended, Vec<(String, u64)>), String> {
        if hindrance().is_some() {
            return Ok((self.start_reading(artefact, folder)?.wait()?, Vec::new()));
        }
        let name = |path: &Path| path.strip_prefix(folder).unwrap_or(path).display().to_string();
        let watched = files(&folder.join(artefact.harmed));
        let mut counts: Vec<(String, u64)> = watched.iter().map(|file| (name(file), 0)).collect();
        let watch = Watch::of(&watched)?;
        let mut running = self.start_reading(artefact, folder)?;
        watch.each_read(&mut running, |path| {
            let count = counts.iter_mut().find(|(file, _)| *file == name(path));
            count.into_iter().for_each(|(_, count)| *count += 1);
            Ok(true)
        })?;
        let ended = running.wait()?;
        counts.retain(|(_, count)| *count > 0);
        match counts.is_empty() {
            true => Err(format!("{}: nothing of it is read: {}", artefact.name, ended.message())),
            false => Ok((ended, counts)),
        }
    }

    /// One change of one file, before one of the reads of it.
    pub(crate) fn change(&self, index: u64, references: &[ArtefactReference]) -> CaseResult {
        let number = index as usize % references.len();
        let artefact = SEALED.iter().chain(&PLAIN).nth(number).expect("of the list");
        let came = self.change_case(index, artefact, &references[number]);
        let outcome = came.as_ref().ok().copied().flatten();
        let times = u64::from(came.is_err() || outcome.is_some());
        let fault = came.err();
        CaseResult { name: artefact.name, times, fault, outcome, ..CaseResult::default() }
    }

    /// What the command made of it; nothing where it did not come to the read.
    fn change_case(
        &self,
        index: u64,
        artefact: &Artefact,
        reference: &ArtefactReference,
    ) -> Result<Option<&'static str>, String> {
        let mut rng = self.random(Kind::Changes.number(), index);
        let folder = self.folder("changes", index)?;
        self.lay_out(artefact, &folder)?;
        let (shown, reads) = &reference.reads[rng.random_range(0..reference.reads.len())];
        let file = folder.join(shown);
        let old = fs::read(&file).map_err(text)?;
        let change = Change::draw(&old, &mut rng);
        let (before, mut read, mut changed) = (rng.random_range(0..*reads), 0, false);
        let watch = Watch::of(std::slice::from_ref(&file))?;
        let mut running = self.start_reading(artefact, &folder)?;
        let watched = watch.each_read(&mut running, |_| {
            if read == before {
                change.befall(&file).map_err(text)?;
                changed = true;
            }
            read += 1;
            Ok(!changed)
        });
        // Whatever else reads the file need not wait.
        drop(watch);
        let ended = running.wait()?;
        watched?;
        let at = format!("{shown}, {:?} before read {before} of {reads}", change.deed);
        if let Some(crash) = ended.crash() {
            return Err(format!("{at}: {crash}"));
        }
        let came = match changed {
            false => return fs::remove_dir_all(&folder).map(|()| None).map_err(text),
            true if Artefact::is_named(&file, &folder, &ended) => "the file is named",
            true if !ended.success() => {
                return Err(format!("{at}: no file is named: {}", ended.message()));
            }
            true => {
                let mut found = self.artefact_outcome(&folder, &ended)?;
                // A store that was changed has other records from then on, whatever was read of it.
                found.numbers = found.numbers.filter(|_| !shown.ends_with("results.sqlite"));
                let silent = found.difference(&reference.outcome, shown);
                let of_new = || -> Result<bool, String> {
                    let folder = self.folder("changed", index)?;
                    self.lay_out(artefact, &folder)?;
                    fs::write(folder.join(shown), &change.new).map_err(text)?;
                    let ended = self.start_reading(artefact, &folder)?.wait()?;
                    let same = self.artefact_outcome(&folder, &ended)?.difference(&found, shown);
                    fs::remove_dir_all(&folder).map_err(text)?;
                    Ok(ended.success() && same.is_none())
                };
                match silent {
                    None => "the result of the old bytes",
                    Some(_) if of_new()? => "the result of the new bytes",
                    Some(_) if PLAIN.iter().any(|plain| plain.name == artefact.name) => {
                        "a result of both"
                    }
                    Some(what) => return Err(format!("{at}: silent change: {what}")),
                }
            }
        };
        fs::remove_dir_all(&folder).map(|()| Some(came)).map_err(text)
    }
}
