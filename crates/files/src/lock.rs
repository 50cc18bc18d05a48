//! The lock of a folder that one process at a time may work in: a run, a step of a study, a shelf of
//! receipts. It is taken before anything in the folder is read or written.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::drafts::{clear_under_lock, is_lock, is_no_content, is_same};
use crate::ours::FolderKind;
use crate::{At, Error, LOCK, Result, warning};

/// The file that says that a folder was made for unfinished work, and what it says.
const WORK: &str = "isogloss-work";
const MADE_FOR_WORK: &str =
    "Isogloss keeps unfinished work in this folder, which may be removed while nothing uses it.\n";
/// How often a lock is tried that others remove with its folder.
const ATTEMPTS: usize = 100;

/// A folder that belongs to this process until the value is dropped. The system releases the lock of a
/// process that ends in whatever way; the file `lock` stays, and means nothing by itself.
#[derive(Debug)]
pub struct FolderLock {
    file: File,
    folder: PathBuf,
    made: bool,
}

/// Locks a folder that exists, and clears away what killed processes left in it.
pub fn lock(folder: &Path) -> Result<FolderLock> {
    FolderLock::existing(folder)
}

impl FolderLock {
    /// Locks a folder, which is made where there is none.
    pub fn take(folder: &Path) -> Result<Self> {
        let made = !folder.exists();
        for _ in 0..ATTEMPTS {
            fs::create_dir_all(folder).at(folder, "make the folder")?;
            match Self::existing(folder) {
                // Another process has just removed it.
                Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                held => return Ok(Self { made, ..held? }),
            }
        }
        Err(Error::Busy(folder.to_owned()))
    }

    /// Locks a folder for unfinished work, which is made where there is none. One that holds anything and was not made
    /// so is somebody else's, and is refused.
    pub fn take_for_work(folder: &Path) -> Result<Self> {
        let mark = folder.join(WORK);
        let is_ours = || {
            is_vacant(folder) || fs::read(&mark).is_ok_and(|text| text == MADE_FOR_WORK.as_bytes())
        };
        let refused = |()| Error::Occupied {
            path: folder.to_owned(),
            reason: "holds files, and was not made by this flag",
            remedy: "name a folder that is empty, or not there yet",
        };
        let refuse = |ours: bool| ours.then_some(()).ok_or(()).map_err(refused);
        // Before a lock is made there, and again under it.
        refuse(is_ours())?;
        let held = Self::take(folder)?;
        refuse(is_ours())?;
        crate::write(&mark, MADE_FOR_WORK)?;
        Ok(held)
    }

    fn existing(folder: &Path) -> Result<Self> {
        let path = folder.join(LOCK);
        for _ in 0..ATTEMPTS {
            let file = open(&path).at(&path, "make")?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(Error::Busy(folder.to_owned())),
                Err(TryLockError::Error(source)) if has_no_locks(&source) => {
                    warning::warn(&format!(
                        "{}: its file system cannot lock files ({source}), so nothing keeps a second process out; see that \
                         no other one works in that folder",
                        folder.display()
                    ));
                    // What another process may be writing stays.
                    return Ok(Self { file, folder: folder.to_owned(), made: false });
                }
                Err(TryLockError::Error(source)) => return Err(source).at(&path, "lock"),
            }
            // The process that held it may have removed it meanwhile.
            if is_same(&file, &path) {
                clear_under_lock(folder);
                return Ok(Self { file, folder: folder.to_owned(), made: false });
            }
        }
        Err(Error::Busy(folder.to_owned()))
    }

    /// Whether the folder holds nothing: a lock and leftovers of killed processes are no content.
    pub fn is_empty(&self) -> bool {
        is_vacant(&self.folder)
    }

    /// Removes the files of this kind of folder, and nothing else.
    pub fn clear(&self, kind: &FolderKind) {
        kind.clear(&self.folder);
    }

    /// Removes what a run that failed to start has made, and the folder itself if [`take`](Self::take)
    /// made it. What cannot be removed stays.
    pub fn discard(self, kind: &FolderKind) {
        self.clear(kind);
        let lock = self.folder.join(LOCK);
        if is_lock(&lock) {
            let _ = fs::remove_file(lock);
        }
        if self.made {
            let _ = fs::remove_dir(&self.folder);
        }
    }

    /// The lock as a file that a child process may hold on to after this one has ended.
    pub fn share(&self) -> Result<File> {
        self.file.try_clone().at(&self.folder, "share the lock of")
    }
}

/// Whether a folder is not there, or holds nothing but a lock and leftovers of killed processes.
pub fn is_vacant(folder: &Path) -> bool {
    match fs::read_dir(folder) {
        Ok(entries) => entries.flatten().all(|entry| is_no_content(&entry)),
        // That it cannot be made there is reported where it is made.
        Err(_) => fs::symlink_metadata(folder).is_err(),
    }
}

/// Whether a file system has no locks at all: NFS without a lock daemon, Lustre that was mounted without them.
fn has_no_locks(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let known = [Errno::NOLCK, Errno::NOSYS, Errno::NOTSUP];
    error.raw_os_error().is_some_and(|code| known.iter().any(|errno| errno.raw_os_error() == code))
}

/// Opens the file of a lock; a link in its place is refused, since it would be made wherever it points.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32);
    }
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: FolderKind = FolderKind { mark: "config.toml", files: &["content"] };

    #[test]
    fn one_process_at_a_time() {
        let place = tempfile::tempdir().unwrap();
        let held = lock(place.path()).unwrap();
        assert!(matches!(lock(place.path()), Err(Error::Busy(_))));
        held.clear(&RUN);
        assert!(matches!(lock(place.path()), Err(Error::Busy(_))));
        drop(held);
        lock(place.path()).unwrap();
    }

    #[test]
    fn a_folder_with_nothing_but_a_lock_and_leftovers_is_empty() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("deep/run");
        assert!(is_vacant(&folder));
        let held = FolderLock::take(&folder).unwrap();
        assert!(held.is_empty() && is_vacant(&folder));
        fs::write(folder.join(".unfinished-abcdefghijkl"), "somebody's").unwrap();
        assert!(!held.is_empty() && !is_vacant(&folder));
        fs::remove_file(folder.join(".unfinished-abcdefghijkl")).unwrap();
        fs::write(folder.join("config.toml"), "").unwrap();
        assert!(!held.is_empty() && !is_vacant(&folder));
        held.clear(&RUN);
        assert!(held.is_empty());
        drop(held);
        FolderLock::take(&folder).unwrap().discard(&RUN);
        assert!(folder.exists(), "the folder was there before");
        fs::remove_dir(&folder).unwrap();
        FolderLock::take(&folder).unwrap().discard(&RUN);
        assert!(!folder.exists());
    }

    #[test]
    fn a_folder_for_work_is_empty_or_was_made_for_it() {
        let place = tempfile::tempdir().unwrap();
        let (new, others) = (place.path().join("new"), place.path().join("others"));
        fs::create_dir(&others).unwrap();
        for name in ["ubuntu.iso.partial", WORK, LOCK, ".unfinished-abcdefghijkl"] {
            fs::write(others.join(name), "precious").unwrap();
            let refused = FolderLock::take_for_work(&others).unwrap_err().to_string();
            assert!(refused.contains("name a folder that is empty"), "{refused}");
            assert_eq!(fs::read(others.join(name)).unwrap(), b"precious");
            fs::remove_file(others.join(name)).unwrap();
        }
        for folder in [&new, &others] {
            drop(FolderLock::take_for_work(folder).unwrap());
            fs::write(folder.join("state"), "half").unwrap();
            FolderLock::take_for_work(folder).unwrap();
        }
    }

    #[test]
    fn a_file_system_without_locks_is_told_from_other_faults() {
        let error = |errno: rustix::io::Errno| io::Error::from_raw_os_error(errno.raw_os_error());
        assert!(has_no_locks(&error(rustix::io::Errno::NOLCK)));
        assert!(!has_no_locks(&error(rustix::io::Errno::IO)));
        assert!(!has_no_locks(&io::Error::other("no number")));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_the_place_of_a_lock_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let precious = place.path().join("precious");
        fs::write(&precious, "kept").unwrap();
        std::os::unix::fs::symlink(&precious, place.path().join("lock")).unwrap();
        lock(place.path()).unwrap_err();
        assert_eq!(fs::read(&precious).unwrap(), b"kept");
    }

    /// Folders that are made, used and removed again by several at once: never two at a time.
    #[test]
    fn a_lock_that_is_removed_with_its_folder_keeps_others_out() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("run");
        let inside = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let Ok(held) = FolderLock::take(&folder) else { continue };
                        use std::sync::atomic::Ordering::SeqCst;
                        assert_eq!(inside.fetch_add(1, SeqCst), 0);
                        let _ = fs::write(folder.join("content"), "");
                        inside.fetch_sub(1, SeqCst);
                        held.discard(&RUN);
                    }
                });
            }
        });
    }
}
