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
        if path.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
            let remedy = "name another folder, or remove this one";
            return Err(Error::file(path, "exists and is not empty", remedy));
        }
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
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
        fs::rename(self.draft.path(), &self.path)
            .at(&self.path, "give the finished folder the name")?;
        // Nothing is left under the draft's name for the guard to remove.
        let _ = self.draft.keep();
        if let Some(parent) = self.path.parent()
            && let Ok(folder) = File::open(parent)
        {
            // Where a folder cannot be synced, the rename is still atomic.
            let _ = folder.sync_all();
        }
        Ok(())
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
