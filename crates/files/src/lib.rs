//! Files and folders that appear whole or not at all, and the one rule for outputs that exist. Everything
//! that the workspace writes goes through here.
//!
//! Every output is written under a random name beside its place, synced to disk, and only then renamed: a
//! kill, a full disk or a power failure leaves what stood there before, and two writers never mix. (A
//! folder that replaces another does so in one system call where the file system can exchange two
//! names. Where it cannot, a kill between two renames leaves the old folder beside its place, as
//! `.replaced-…/old`.) What a killed process left is cleared by the next one that writes there.
//!
//! - [`write()`], [`write_with`], [`in_place_of`] write a file, [`NewFolder`] a folder;
//! - `-` is standard output for the writers and standard input for [`open`]; `/dev/stdout`, devices and
//!   pipes are written into, never replaced; a symbolic link stays, and the file that it points at is
//!   replaced;
//! - [`check_new`] refuses an output that exists unless it may be replaced; [`check_new_file`] and
//!   [`check_new_folder`] also make sure, before any work is done, that it can be made;
//! - [`lock_outputs`] keeps several files together that belong together, where two processes write them;
//! - [`FolderLock`] keeps other processes out of a folder: taken before anything in it is touched. On a file system without
//!   locks there is none, and [`on_warning`] says so;
//! - [`checkpoints`] keeps the newest two versions of a file, and reads the newest that is sound;
//! - [`ScratchFolder`] is for temporary files, which go even after a kill;
//! - [`sealed`] has the digests of text files that are read again;
//! - [`read_exact_at`] reads a part of a file;
//! - [`limits`] bounds what a file may unpack to, and the names that it may give.
//!
//! ```
//! let folder = tempfile::tempdir().unwrap();
//! let path = folder.path().join("en.vec");
//! files::check_new_file(&path, false).unwrap();
//! files::write(&path, "1 2\na 0.5 0.5\n").unwrap();
//! let error = files::check_new_file(&path, false).unwrap_err();
//! assert!(error.to_string().contains("set `force`"));
//! files::check_new_file(&path, true).unwrap();
//! ```

pub mod checkpoints;
mod drafts;
mod folder;
mod hashing;
pub mod limits;
mod lock;
mod ours;
mod output;
pub mod sealed;
mod standard;
mod together;
mod warning;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use drafts::DraftFolder;
use output::Target;

pub use drafts::{ScratchFolder, remove_drafts};
pub use folder::{CheckOurs, NewFolder, close};
pub use hashing::Hashing;
pub use lock::{FolderLock, is_vacant, lock};
pub use ours::{FolderKind, has_digest, refuse_others, write_recorded};
pub use output::{in_place_of, is_stream, write, write_with};
pub use standard::{STANDARD_INPUT, is_standard, open};
pub use together::{OutputLock, lock_outputs};
pub use warning::{on_warning, warn};

const LOCK: &str = "lock";

/// Why a file or folder could not be read or made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("{path}: {}", refusal(doing, source))]
    Io {
        /// What was attempted.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's message, which callers that print the chain of causes append.
        source: io::Error,
    },
    /// The output exists already, and may not be replaced.
    #[error("{0}: exists; name another output, or set `force` to replace it")]
    Exists(PathBuf),
    /// The output cannot be made where it was asked for.
    #[error("{path}: {reason}; {remedy}")]
    Occupied {
        /// The file or folder.
        path: PathBuf,
        /// What is there.
        reason: &'static str,
        /// What to do about it.
        remedy: &'static str,
    },
    /// A folder that is to be replaced holds files that are not ours.
    #[error(
        "{folder}: holds what was not made with it, or was changed since ({names}), and would be lost; move them away, or name \
         another folder"
    )]
    Others {
        /// The folder.
        folder: PathBuf,
        /// The first few of them.
        names: String,
    },
    /// What git has in place of a large file before that is fetched.
    #[error(
        "{0}: is a pointer of git-LFS, not the file itself; fetch that with `git lfs pull` in its repository"
    )]
    Pointer(PathBuf),
    /// Another process holds the folder.
    #[error("another process is working in {0}; wait for it, or name another folder")]
    Busy(PathBuf),
}

impl From<Error> for terms::Error {
    fn from(error: Error) -> Self {
        terms::Error::of(error)
    }
}

impl terms::Fault for Error {
    fn is_usage(&self) -> bool {
        matches!(self, Error::Exists(_) | Error::Occupied { .. } | Error::Others { .. })
    }

    fn key(&self) -> Option<&str> {
        matches!(self, Error::Exists(_)).then_some("force")
    }
}

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What was refused, and what to do about it.
fn refusal(doing: &str, source: &io::Error) -> String {
    let reads = ["open", "read", "look at", "list"].contains(&doing);
    match source.kind() {
        io::ErrorKind::NotFound if reads => "does not exist; check the path".to_owned(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            format!("cannot {doing} (the disk is full: free some space, or name another place)")
        }
        _ => format!(
            "cannot {doing} (check the path, its permissions and the free space on the disk)"
        ),
    }
}

/// Refuses a file by its first bytes that git-LFS has not fetched yet.
///
/// # Errors
/// Where it is a pointer.
pub fn refuse_pointer(path: &Path, start: &[u8]) -> Result<()> {
    match start.starts_with(b"version https://git-lfs") {
        true => Err(Error::Pointer(path.to_owned())),
        false => Ok(()),
    }
}

/// Lets an operation on the file system end in `.at(path, "read")?`.
pub trait At<T> {
    /// Names the file and what was attempted with it.
    fn at(self, path: impl AsRef<Path>, doing: &'static str) -> Result<T>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: impl AsRef<Path>, doing: &'static str) -> Result<T> {
        self.map_err(|source| Error::Io { doing, path: path.as_ref().to_owned(), source })
    }
}

/// Removes a file; it need not be there.
pub fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).at(path, "remove"),
        _ => Ok(()),
    }
}

/// Gives two files or folders each other's names in one call, where system and file system can.
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
    }
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    {
        let _ = (one, other);
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The one rule for outputs: a file or a non-empty folder that exists is refused unless `force` is set, and a folder even
/// then where it holds anything that is not ours. Standard output (`-`) and devices never count as existing.
pub fn check_new(path: &Path, force: bool) -> Result<()> {
    let exists = match path.read_dir() {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => path.exists(),
    };
    match exists && !Target::is_stream(path) {
        true if !force => Err(Error::Exists(path.to_owned())),
        true if path.is_dir() => ours::refuse_unrecorded(path),
        _ => Ok(()),
    }
}

/// Refuses, before any work is done, a place where a new folder could not be made afterwards, or
/// where one exists and `force` is not set. Leaves nothing behind.
pub fn check_new_folder(path: &Path, force: bool) -> Result<()> {
    refuse_file(path)?;
    check_new(path, force)?;
    let mut place = parent_of(path);
    while !place.exists() {
        place = parent_of(place);
    }
    DraftFolder::new_in(place).map(drop)
}

/// Refuses, before any work is done, a place where a file could not be written afterwards, or where
/// one exists and `force` is not set. Leaves nothing behind.
pub fn check_new_file(path: &Path, force: bool) -> Result<()> {
    if Target::is_stream(path) {
        return Ok(());
    }
    if path.is_dir() {
        return occupied(path, "is a folder", "name a file");
    }
    check_new(path, force)?;
    let Target::File(place) = Target::of(path) else { return Ok(()) };
    let parent = parent_of(&place);
    tempfile::tempfile_in(parent).at(parent, "make a file in").map(drop)
}

fn occupied<T>(path: &Path, reason: &'static str, remedy: &'static str) -> Result<T> {
    Err(Error::Occupied { path: path.to_owned(), reason, remedy })
}

fn refuse_file(path: &Path) -> Result<()> {
    if is_standard(path) {
        return occupied(path, "a folder cannot be written to standard output", "name a folder");
    }
    match path.exists() && !path.is_dir() {
        true => occupied(path, "is a file", "name a folder"),
        false => Ok(()),
    }
}

/// The folder that a path lies in; a bare name lies in the current one.
fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Makes the lists of names of a folder and of those in it last.
fn sync_folders(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            sync_folders(&entry.path());
        }
    }
    sync_folder(folder);
}

/// Makes a folder's list of names last. Where a folder cannot be synced, a rename is still atomic.
fn sync_folder(path: &Path) {
    if let Ok(folder) = File::open(path) {
        let _ = folder.sync_all();
    }
}

/// Reads bytes at a place of a file, whatever its cursor. Unlike a map, it fails where the file was
/// truncated meanwhile, and the process lives on.
pub fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    #[cfg(unix)]
    {
        std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
    }
    #[cfg(windows)]
    {
        let mut done = 0;
        while done < bytes.len() {
            let place = offset + done as u64;
            match std::os::windows::fs::FileExt::seek_read(file, &mut bytes[done..], place)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => done += read,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_lies_in_the_current_folder() {
        assert_eq!(parent_of(Path::new("joint")), Path::new("."));
        assert_eq!(parent_of(Path::new("a/joint")), Path::new("a"));
        assert_eq!(parent_of(Path::new("/joint")), Path::new("/"));
    }

    #[test]
    fn a_place_is_checked_without_a_trace() {
        let place = tempfile::tempdir().unwrap();
        check_new_folder(&place.path().join("deep/folder"), false).unwrap();
        check_new_file(&place.path().join("file"), false).unwrap();
        assert_eq!(place.path().read_dir().unwrap().count(), 0);
        fs::write(place.path().join("file"), "").unwrap();
        for path in ["file", "file/folder", "."] {
            check_new_folder(&place.path().join(path), false).unwrap_err();
        }
        check_new_folder(&place.path().join("file"), true).unwrap_err();
        check_new_file(&place.path().join("none/file"), true).unwrap_err();
        check_new_file(place.path(), true).unwrap_err();
        check_new_folder(Path::new("-"), true).unwrap_err();
    }

    #[test]
    fn what_exists_is_replaced_by_force_alone() {
        use terms::Fault;
        let place = tempfile::tempdir().unwrap();
        let [file, empty, full] = ["file", "empty", "full"].map(|name| place.path().join(name));
        fs::write(&file, "").unwrap();
        fs::create_dir(&empty).unwrap();
        NewFolder::with_force(&full, false).and_then(NewFolder::finish).unwrap();
        check_new(&empty, false).unwrap();
        for path in [&file, &full] {
            let error = check_new(path, false).unwrap_err();
            assert!(error.is_usage() && error.key() == Some("force"), "{error:?}");
            check_new(path, true).unwrap();
        }
        for path in ["-", "/dev/null"] {
            check_new(Path::new(path), false).unwrap();
            check_new_file(Path::new(path), false).unwrap();
        }
        assert!(NewFolder::with_force(&full, false).is_err());
        let folder = NewFolder::with_force(&full, true).unwrap();
        folder.write("a", b"").unwrap();
        folder.finish().unwrap();
        assert!(full.join("a").exists());
    }
}
