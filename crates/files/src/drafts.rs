//! Drafts: files and folders that do not have their final name yet.
//!
//! A draft lies beside its target and is locked for as long as its process lives. So a draft that can be locked is
//! the leftover of a process that was killed, and the next process that writes into that folder removes it; one that is
//! being written is never touched. A process that is interrupted removes its own ([`remove_drafts`]).
//!
//! Nothing else is ever removed. A draft's name is [`PREFIX`], a random number, and the beginning of that number's
//! digest: a file of somebody else's does not have such a name, whatever it begins or ends with. What older releases
//! left under other names is named and stays.

use std::collections::HashSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tempfile::{NamedTempFile, TempDir};

use crate::{At, LOCK, Result, warning};

/// What the name of every draft begins with.
const PREFIX: &str = ".unfinished-";
/// How many letters of the digest end it.
const MARK: usize = 8;
/// How often a name is tried: another process may take a draft for a leftover before it is locked.
const ATTEMPTS: usize = 100;

static LIVE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
static SWEPT: Mutex<Option<HashSet<PathBuf>>> = Mutex::new(None);

/// A name that no draft has had.
fn new_name() -> String {
    // A hasher's keys are random, and other with each.
    let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
    let random = format!("{random:016x}");
    format!("{PREFIX}{random}-{}", mark(&random))
}

fn mark(random: &str) -> String {
    blake3::hash(random.as_bytes()).to_hex()[..MARK].to_owned()
}

fn is_draft(name: &str) -> bool {
    let random = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
    random.is_some_and(|(random, end)| random.len() == 16 && end == mark(random))
}

/// The path of a draft, known until it is dropped to [`remove_drafts`].
struct Registration(PathBuf);

impl Registration {
    fn new(path: &Path) -> Self {
        LIVE.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
        Self(path.to_owned())
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut live = LIVE.lock().unwrap_or_else(PoisonError::into_inner);
        live.retain(|path| *path != self.0);
    }
}

/// Removes every draft of this process: for a process that is about to end by an interrupt.
pub fn remove_drafts() {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner).drain(..).for_each(|path| remove(&path));
}

/// What is not there any more has its final name.
fn remove(path: &Path) {
    let is_folder = path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
    let _ = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}

/// A file in the making. Dropped before it has its name, it leaves nothing behind.
pub(crate) struct DraftFile {
    file: NamedTempFile,
    _registered: Registration,
}

impl DraftFile {
    pub(crate) fn new_in(folder: &Path) -> io::Result<Self> {
        clear_once(folder);
        for _ in 0..ATTEMPTS {
            // A draft is private by default, and would stay so under its final name.
            let file = named(&new_name(), 0o666).tempfile_in(folder)?;
            if claim(file.as_file(), file.path()) {
                return Ok(Self { _registered: Registration::new(file.path()), file });
            }
        }
        Err(io::Error::other("another process removes every temporary file"))
    }

    pub(crate) fn file(&self) -> &File {
        self.file.as_file()
    }

    /// Puts the file on the disk, and then in the place of `path`. What stood there moves to `previous`,
    /// where one is named; at every moment `path` or `previous` is whole.
    pub(crate) fn replace(self, path: &Path, previous: Option<&Path>) -> io::Result<()> {
        let Self { file, _registered } = self;
        if let Ok(before) = fs::metadata(path) {
            // A file that was private stays so.
            let _ = file.as_file().set_permissions(before.permissions());
        }
        file.as_file().sync_all()?;
        match previous {
            Some(previous) if path.exists() => {
                if crate::exchange(file.path(), path).is_ok() {
                    // The draft's name holds what stood there. The new one is in its place, whatever
                    // becomes of the old one.
                    let _ = file.persist(previous);
                    return Ok(());
                }
                fs::rename(path, previous)?;
                file.persist(path).map_err(|error| error.error)?;
            }
            _ => {
                file.persist(path).map_err(|error| error.error)?;
            }
        }
        Ok(())
    }
}

pub(crate) struct DraftFolder {
    folder: TempDir,
    _held: Option<File>,
    _registered: Registration,
}

impl DraftFolder {
    pub(crate) fn new_in(parent: &Path) -> Result<Self> {
        Self::with_mode(parent, 0o777)
    }

    fn with_mode(parent: &Path, mode: u32) -> Result<Self> {
        clear_once(parent);
        for _ in 0..ATTEMPTS {
            let folder = named(&new_name(), mode).tempdir_in(parent);
            let folder = folder.at(parent, "make a folder in")?;
            // Where a folder cannot be opened, it cannot be locked by others either.
            let held = match File::open(folder.path()) {
                Ok(file) if claim(&file, folder.path()) => Some(file),
                Err(error) if error.kind() != io::ErrorKind::NotFound => None,
                _ => continue,
            };
            let _registered = Registration::new(folder.path());
            return Ok(Self { folder, _held: held, _registered });
        }
        Err(io::Error::other("another process removes every temporary folder"))
            .at(parent, "make a folder in")
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Leaves what stands under the draft's name, if anything does.
    pub(crate) fn keep(self) {
        let _ = self.folder.keep();
    }
}

/// A folder for temporary files, among those of the system (`TMPDIR`). It goes when it is dropped, and that
/// of a process that was killed goes when the next one is made.
pub struct ScratchFolder(DraftFolder);

impl ScratchFolder {
    /// Makes an empty one, for this user alone.
    pub fn new() -> Result<Self> {
        DraftFolder::with_mode(&std::env::temp_dir(), 0o700).map(Self)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl std::fmt::Debug for ScratchFolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ScratchFolder").field(&self.path()).finish()
    }
}

fn named(name: &str, mode: u32) -> tempfile::Builder<'_, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(name).rand_bytes(0);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(mode));
    }
    let _ = mode;
    builder
}

/// Locks a draft that was just made. Not so where another process was faster and took it for a leftover.
fn claim(file: &File, path: &Path) -> bool {
    match file.try_lock() {
        Ok(()) => is_same(file, path),
        Err(TryLockError::WouldBlock) => false,
        // Nobody can lock on this file system, so nobody can take it for a leftover.
        Err(TryLockError::Error(_)) => true,
    }
}

/// Whether a path still names the file that was opened.
pub(crate) fn is_same(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        match (file.metadata(), path.symlink_metadata()) {
            (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
            _ => false,
        }
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        path.exists()
    }
}

/// The first time that this process writes into a folder.
fn clear_once(folder: &Path) {
    let first = {
        let mut swept = SWEPT.lock().unwrap_or_else(PoisonError::into_inner);
        swept.get_or_insert_default().insert(folder.to_owned())
    };
    if first {
        clear_leftovers(folder);
    }
}

/// Removes the drafts of dead processes from a folder.
fn clear_leftovers(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if is_draft(&entry.file_name().to_string_lossy()) {
            remove_if_dead(&entry.path());
        }
    }
}

fn remove_if_dead(path: &Path) {
    // Neither a link nor a pipe is a draft of ours, and the one must not be followed nor the other opened.
    if !path.symlink_metadata().is_ok_and(|metadata| metadata.is_file() || metadata.is_dir()) {
        return;
    }
    let Ok(file) = File::open(path) else { return };
    if file.try_lock().is_ok() && is_same(&file, path) {
        remove(path);
    }
}

/// Removes the drafts of killed processes from a folder whose lock is held, and from the folders in it that have no lock
/// of their own, and names what older releases may have left.
pub(crate) fn clear_under_lock(folder: &Path) {
    let mut old = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let (name, path) = (entry.file_name(), entry.path());
            let name = name.to_string_lossy();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_draft(&name) {
                remove_if_dead(&path);
            } else if is_of_older_release(&name, is_folder) {
                old.push(path.display().to_string());
            } else if is_folder && !path.join(LOCK).exists() {
                folders.push(path);
            }
        }
    }
    if let Some(first) = old.first() {
        let more =
            if old.len() == 1 { String::new() } else { format!(" and {} more", old.len() - 1) };
        warning::warn(&format!(
            "{first}{more} may be what an older release was killed over; it is left alone: remove it where nothing \
             else needs it"
        ));
    }
}

/// Whether older releases gave their drafts such a name. Others' programs do so too.
fn is_of_older_release(name: &str, is_folder: bool) -> bool {
    let temporary = |name: &str| name.len() == ".tmp".len() + 6 && name.starts_with(".tmp");
    name.starts_with(PREFIX) || !is_folder && (temporary(name) || name.ends_with(".partial"))
}

/// Whether an entry of a folder is no content: its lock, in which nothing is ever written, or a draft.
pub(crate) fn is_no_content(entry: &fs::DirEntry) -> bool {
    let name = entry.file_name();
    name == LOCK && is_lock(&entry.path()) || is_draft(&name.to_string_lossy())
}

/// Whether the file of a lock is ours: nothing is ever written in it.
pub(crate) fn is_lock(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = folder.read_dir().unwrap().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_a_dead_process_left_goes_and_what_is_written_stays() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        fs::write(path(&new_name()), "half").unwrap();
        fs::create_dir_all(path(&new_name()).join("inner")).unwrap();
        fs::write(path("a"), "whole").unwrap();
        let file = DraftFile::new_in(place.path()).unwrap();
        let folder = DraftFolder::new_in(place.path()).unwrap();
        clear_leftovers(place.path());
        assert_eq!(names(place.path()).len(), 3, "{:?}", names(place.path()));
        assert!(file.file.path().exists() && folder.path().exists());
        drop((file, folder));
        assert_eq!(names(place.path()), ["a"]);
        assert!(LIVE.lock().unwrap().iter().all(|live| !live.starts_with(place.path())));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_under_the_name_of_a_draft_is_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let (precious, link) = (place.path().join("a"), new_name());
        fs::create_dir(&precious).unwrap();
        std::os::unix::fs::symlink(&precious, place.path().join(&link)).unwrap();
        clear_leftovers(place.path());
        clear_under_lock(place.path());
        assert_eq!(names(place.path()), [&*link, "a"]);
    }

    /// Names like those of drafts, of this release and of older ones, in every folder that is cleared.
    #[test]
    fn what_somebody_else_put_there_stays() {
        let place = tempfile::tempdir().unwrap();
        let inner = place.path().join("Downloads");
        fs::create_dir(&inner).unwrap();
        let altered = format!("{}x", &new_name()[..new_name().len() - 1]);
        let others = [
            ".tmpa1B2c3",
            ".unfinished-",
            ".unfinished-abcdef",
            ".unfinished-abcdefghijkl",
            &altered,
            "ubuntu.iso.partial",
        ];
        for folder in [place.path(), &inner] {
            others.iter().for_each(|name| fs::write(folder.join(name), "precious").unwrap());
            fs::write(folder.join(new_name()), "half").unwrap();
            clear_once(folder);
        }
        fs::write(inner.join(new_name()), "half").unwrap();
        clear_under_lock(place.path());
        let mut found = names(place.path());
        found.retain(|name| name != "Downloads");
        assert_eq!(found, names(&inner));
        assert_eq!(found.len(), others.len(), "{found:?}");
    }
}
