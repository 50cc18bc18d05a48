//! Files and folders that appear whole or not at all, and the one rule for outputs that exist.
//!
//! Every output is written under a temporary name, synced to disk, and only then renamed: a kill, a
//! full disk or a power failure leaves what stood there before. (A folder that replaces another does so
//! in one system call where the file system can exchange two names. Where it cannot, a kill between
//! two renames leaves the old folder beside its place, under a temporary name.)
//!
//! - [`write()`], [`write_with`], [`in_place_of`] write a file, [`NewFolder`] a folder;
//! - [`check_new`] refuses an output that exists unless it may be replaced; [`check_new_file`] and
//!   [`check_new_folder`] also make sure, before any work is done, that it can be made;
//! - `-` is standard output for the writers and standard input for [`open`], and devices such as
//!   `/dev/stdout` are written to rather than replaced;
//! - [`lock`] keeps other processes out of a folder; [`map`] maps a file into memory;
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

mod drafts;
pub mod limits;
mod standard;

use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

pub use memmap2::Mmap;
use tempfile::TempDir;

pub use drafts::remove_drafts;
pub use standard::{STANDARD_INPUT, is_standard, open};

/// Why a file or folder could not be read or made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error(
        "{path}: cannot {doing} (check the path, its permissions and the free space on the disk)"
    )]
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
    /// Another process holds the folder.
    #[error("another process is working in {0}; wait for it, or name another folder")]
    Busy(PathBuf),
}

impl terms::Fault for Error {
    fn is_usage(&self) -> bool {
        matches!(self, Error::Exists(_) | Error::Occupied { .. })
    }

    fn key(&self) -> Option<&str> {
        matches!(self, Error::Exists(_)).then_some("force")
    }
}

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

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

/// Lets `write` make a file beside `path`, and renames it once it is safely on the disk. What is meant
/// for standard output or a device is made in a temporary file and copied there.
pub fn in_place_of(path: &Path, write: impl FnOnce(&Path) -> io::Result<()>) -> Result<()> {
    if is_standard(path) || is_device(path) {
        return standard::copy_to(path, write);
    }
    let partial = path.with_added_extension("partial");
    drafts::register(&partial);
    let replace = || {
        write(&partial)?;
        File::open(&partial)?.sync_all()?;
        fs::rename(&partial, path)
    };
    replace().at(path, "write").inspect_err(|_| {
        // Half a file is of no use; that it cannot be removed either would be no news.
        let _ = fs::remove_file(&partial);
    })?;
    sync_folder(parent_of(path));
    Ok(())
}

/// Writes a file through a buffer; it appears when `fill` has returned. Standard output and devices
/// receive the bytes as they are written.
pub fn write_with(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<()> {
    let buffered = |file: File| {
        let mut writer = BufWriter::with_capacity(1 << 18, file);
        fill(&mut writer)?;
        writer.flush()
    };
    if is_standard(path) || is_device(path) {
        return standard::stream_to(path, buffered);
    }
    in_place_of(path, |partial| buffered(File::create(partial)?))
}

/// Writes a file of these bytes.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    write_with(path, |writer| writer.write_all(bytes.as_ref()))
}

/// A folder in the making. Dropped before [`finish`](Self::finish), it leaves nothing behind.
pub struct NewFolder {
    draft: TempDir,
    path: PathBuf,
    replaces: bool,
}

impl NewFolder {
    /// Starts a folder that will stand at `path`, which must not exist yet or be empty.
    pub fn new(path: &Path) -> Result<Self> {
        Self::with_force(path, false)
    }

    /// Starts a folder that will stand at `path`; one that exists is replaced if `force` is set.
    pub fn with_force(path: &Path, force: bool) -> Result<Self> {
        refuse_file(path)?;
        check_new(path, force)?;
        Ok(Self { replaces: force, ..Self::instead_of(path)? })
    }

    /// Starts a folder that will stand at `path` and replace what stands there.
    pub fn instead_of(path: &Path) -> Result<Self> {
        let parent = parent_of(path);
        fs::create_dir_all(parent).at(parent, "make the folder")?;
        let draft = draft_in(parent)?;
        Ok(Self { draft, path: path.to_owned(), replaces: true })
    }

    /// Where the folder stands for now.
    pub fn path(&self) -> &Path {
        self.draft.path()
    }

    /// Opens a file of the folder for writing, and the folders that it lies in; close it by
    /// [`close`].
    pub fn create(&self, name: &str) -> Result<BufWriter<File>> {
        let path = self.path().join(name);
        let parent = parent_of(&path);
        fs::create_dir_all(parent).at(parent, "make the folder")?;
        let file = File::create(&path).at(&path, "make")?;
        Ok(BufWriter::with_capacity(1 << 18, file))
    }

    /// Writes a whole file of the folder.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let mut writer = self.create(name)?;
        writer.write_all(bytes).at(Path::new(name), "write")?;
        close(writer, Path::new(name))
    }

    /// Gives the folder its name. What stood there goes only once the new one stands.
    pub fn finish(self) -> Result<()> {
        let Self { draft, path, replaces } = self;
        let parent = parent_of(&path);
        sync_folders(draft.path());
        if replaces && path.is_dir() && exchange(draft.path(), &path).is_ok() {
            // What stood there has the draft's name now, and goes with it.
            sync_folder(parent);
            return Ok(());
        }
        let old = if replaces && path.exists() {
            let aside = draft_in(parent)?;
            let place = aside.path().join("old");
            fs::rename(&path, &place).at(&path, "set aside")?;
            Some((aside, place))
        } else {
            None
        };
        if let Err(error) = fs::rename(draft.path(), &path) {
            if let Some((aside, place)) = old
                && fs::rename(place, &path).is_err()
            {
                // The only copy of what stood there is not thrown away.
                let _ = aside.keep();
            }
            return Err(error).at(&path, "give the finished folder the name");
        }
        // Nothing is left under the draft's name for the guard to remove.
        let _ = draft.keep();
        sync_folder(parent);
        Ok(())
    }
}

/// Gives two folders each other's names in one call, where system and file system can.
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

/// Flushes and syncs a file, so that a rename after it never uncovers half of it.
pub fn close(writer: BufWriter<File>, path: &Path) -> Result<()> {
    let file = writer.into_inner().map_err(|error| error.into_error()).at(path, "write")?;
    file.sync_all().at(path, "sync")
}

/// The one rule for outputs: a file or a non-empty folder that exists is refused unless `force` is set.
/// Standard output (`-`) and devices never count as existing.
pub fn check_new(path: &Path, force: bool) -> Result<()> {
    let exists = match path.read_dir() {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => path.exists(),
    };
    match exists && !force && !is_standard(path) && !is_device(path) {
        true => Err(Error::Exists(path.to_owned())),
        false => Ok(()),
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
    draft_in(place).map(drop)
}

/// Refuses, before any work is done, a place where a file could not be written afterwards, or where
/// one exists and `force` is not set. Leaves nothing behind.
pub fn check_new_file(path: &Path, force: bool) -> Result<()> {
    if is_standard(path) || is_device(path) {
        return Ok(());
    }
    if path.is_dir() {
        return occupied(path, "is a folder", "name a file");
    }
    check_new(path, force)?;
    let parent = parent_of(path);
    tempfile::tempfile_in(parent).at(parent, "make a file in").map(drop)
}

/// Removes everything in a folder, and the folder itself if it is `new`: for a run that failed to
/// start. What cannot be removed stays.
pub fn clear(folder: &Path, new: bool) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let remove = if is_folder { fs::remove_dir_all } else { fs::remove_file };
        let _ = remove(entry.path());
    }
    if new {
        let _ = fs::remove_dir(folder);
    }
}

/// Keeps other processes out of a folder for as long as the file is held.
pub fn lock(folder: &Path) -> Result<File> {
    let path = folder.join("lock");
    let file = File::create(&path).at(&path, "make")?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::Busy(folder.to_owned())),
        Err(TryLockError::Error(source)) => Err(source).at(&path, "lock"),
    }
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

/// Whether a path is a device or a pipe, which is written to and never replaced.
fn is_device(path: &Path) -> bool {
    path.starts_with("/dev/")
        || path.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

fn draft_in(parent: &Path) -> Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".unfinished-");
    #[cfg(unix)]
    {
        // A draft is private by default, and would stay so under its final name.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o777));
    }
    let draft = builder.tempdir_in(parent).at(parent, "make a folder in")?;
    drafts::register(draft.path());
    Ok(draft)
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

/// Maps a file into memory. The one place where this is done.
#[allow(unsafe_code)]
pub fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: a map is sound as long as nobody changes the file under it. Our own files are written
    // under a temporary name, renamed when whole, and never opened for writing again, and so are those
    // of the tools whose checkpoints are read. A user who alters one by hand while it is mapped could
    // as well alter the program.
    unsafe { Mmap::map(file) }
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
        fs::create_dir_all(full.join("inner")).unwrap();
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
        assert!(full.join("a").exists() && !full.join("inner").exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_written_to_and_stays() {
        for _ in 0..2 {
            write(Path::new("/dev/null"), "gone").unwrap();
            in_place_of(Path::new("/dev/null"), |partial| fs::write(partial, "gone")).unwrap();
            assert!(is_device(Path::new("/dev/null")));
        }
    }

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        write(&path, "before").unwrap();
        let full = || io::Error::other("disk full");
        let failed = write_with(&path, |writer| {
            writer.write_all(b"half")?;
            Err(full())
        });
        assert!(failed.unwrap_err().to_string().contains("cannot write"));
        assert_eq!(fs::read(&path).unwrap(), b"before");
        assert_eq!(place.path().read_dir().unwrap().count(), 1);
        write_with(&path, |writer| writer.write_all(b"after")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"after");
    }

    #[test]
    fn a_folder_appears_whole_or_not_at_all() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("deep/folder");
        let folder = NewFolder::new(&path).unwrap();
        folder.write("a.txt", b"text").unwrap();
        drop(folder);
        assert!(!path.exists());
        assert_eq!(path.parent().unwrap().read_dir().unwrap().count(), 0);

        let folder = NewFolder::new(&path).unwrap();
        folder.write("inner/a.txt", b"text").unwrap();
        folder.finish().unwrap();
        assert_eq!(fs::read(path.join("inner/a.txt")).unwrap(), b"text");
        assert_eq!(path.parent().unwrap().read_dir().unwrap().count(), 1);
        let error = NewFolder::new(&path).map(drop).unwrap_err().to_string();
        assert!(error.contains("exists"), "{error}");

        let folder = NewFolder::instead_of(&path).unwrap();
        folder.write("b.txt", b"other").unwrap();
        folder.finish().unwrap();
        assert!(!path.join("inner").exists());
        assert_eq!(fs::read(path.join("b.txt")).unwrap(), b"other");
        assert_eq!(path.parent().unwrap().read_dir().unwrap().count(), 1);
    }

    #[test]
    fn one_process_at_a_time() {
        let place = tempfile::tempdir().unwrap();
        let held = lock(place.path()).unwrap();
        assert!(matches!(lock(place.path()), Err(Error::Busy(_))));
        drop(held);
        lock(place.path()).unwrap();
    }
}
