//! Folders that appear whole or not at all: made under another name, synced, then renamed.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::error::{At, Error, Result};

/// A folder in the making. Dropped before [`finish`](Self::finish), it leaves nothing behind.
pub(crate) struct NewFolder {
    draft: TempDir,
    path: PathBuf,
}

impl NewFolder {
    /// Starts a folder that will stand at `path`, which must not exist yet or be empty.
    pub(crate) fn new(path: &Path) -> Result<Self> {
        refuse_occupied(path)?;
        let parent = parent_of(path);
        fs::create_dir_all(parent).at(parent, "make the folder")?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(".unfinished-");
        #[cfg(unix)]
        {
            // A draft is private by default, and would stay so under its final name.
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o755));
        }
        let draft = builder.tempdir_in(parent).at(parent, "make a folder in")?;
        Ok(Self { draft, path: path.to_owned() })
    }

    /// Opens a file of the folder for writing; close it by [`close`].
    pub(crate) fn create(&self, name: &str) -> Result<BufWriter<File>> {
        let path = self.draft.path().join(name);
        let file = File::create(&path).at(&path, "make")?;
        Ok(BufWriter::with_capacity(1 << 18, file))
    }

    /// Writes a whole file of the folder.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let mut writer = self.create(name)?;
        writer.write_all(bytes).at(name, "write")?;
        close(writer, name)
    }

    /// Gives the folder its name.
    pub(crate) fn finish(self) -> Result<()> {
        sync_folder(self.draft.path());
        fs::rename(self.draft.path(), &self.path)
            .at(&self.path, "give the finished folder the name")?;
        // Nothing is left under the draft's name for the guard to remove.
        let _ = self.draft.keep();
        sync_folder(parent_of(&self.path));
        Ok(())
    }
}

/// Refuses, before any work is done, a place where a new folder could not be made afterwards.
/// Leaves nothing behind.
pub fn check_new_folder(path: &Path) -> Result<()> {
    refuse_occupied(path)?;
    let mut place = parent_of(path);
    while !place.exists() {
        place = parent_of(place);
    }
    tempfile::Builder::new()
        .prefix(".unfinished-")
        .tempdir_in(place)
        .at(place, "make a folder in")?;
    Ok(())
}

fn refuse_occupied(path: &Path) -> Result<()> {
    if path.exists() && !path.is_dir() {
        return Err(Error::file(path, "is a file", "name a folder"));
    }
    if path.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
        let remedy = "name another folder, or remove this one";
        return Err(Error::file(path, "exists and is not empty", remedy));
    }
    Ok(())
}

/// The folder that a path lies in; a bare name lies in the current one.
fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Makes a folder's list of names last. Where a folder cannot be synced, a rename is still atomic.
fn sync_folder(path: &Path) {
    if let Ok(folder) = File::open(path) {
        let _ = folder.sync_all();
    }
}

/// Flushes and syncs a file, so that a rename after it never uncovers half of it.
pub(crate) fn close(writer: BufWriter<File>, name: &str) -> Result<()> {
    let file = writer.into_inner().map_err(|error| error.into_error()).at(name, "write")?;
    file.sync_all().at(name, "sync")
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
        check_new_folder(&place.path().join("deep/folder")).unwrap();
        assert_eq!(place.path().read_dir().unwrap().count(), 0);
        fs::write(place.path().join("file"), "").unwrap();
        for path in ["file", "file/folder", "."] {
            check_new_folder(&place.path().join(path)).unwrap_err();
        }
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
        folder.write("a.txt", b"text").unwrap();
        folder.finish().unwrap();
        assert_eq!(fs::read(path.join("a.txt")).unwrap(), b"text");
        assert_eq!(path.parent().unwrap().read_dir().unwrap().count(), 1);
        let error = NewFolder::new(&path).map(drop).unwrap_err().to_string();
        assert!(error.contains("not empty"), "{error}");
    }
}
