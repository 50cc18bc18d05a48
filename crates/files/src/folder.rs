//! Folders that appear whole or not at all.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::drafts::DraftFolder;
use crate::{
    At, Error, Result, check_new, exchange, ours, parent_of, refuse_file, sync_folder, sync_folders,
};

/// A folder in the making. Dropped before [`finish`](Self::finish), it leaves nothing behind.
pub struct NewFolder {
    draft: DraftFolder,
    path: PathBuf,
    /// Refuses to take away what stands there, if it is not ours; none where nothing may stand there.
    check: Option<CheckOurs>,
    recorded: bool,
}

/// Refuses a folder that holds anything that is not ours.
pub type CheckOurs = fn(&Path) -> Result<()>;

impl NewFolder {
    /// Starts a folder within one of ours, which must not exist yet or be empty.
    pub fn new(path: &Path) -> Result<Self> {
        refuse_file(path)?;
        check_new(path, false)?;
        Ok(Self { check: None, ..Self::instead_of(path, ours::refuse_unrecorded)? })
    }

    /// Starts a folder that will stand at `path`, with a record of its files. One that exists is replaced if `force` is
    /// set, and if it holds nothing but what its own record names.
    pub fn with_force(path: &Path, force: bool) -> Result<Self> {
        refuse_file(path)?;
        check_new(path, force)?;
        let folder = Self::instead_of(path, ours::refuse_unrecorded)?;
        Ok(Self { check: folder.check.filter(|_| force), recorded: true, ..folder })
    }

    /// Starts a folder that will stand at `path` and replace what stands there then, if that passes a check. A link to a folder
    /// stays, and the folder that it points at is replaced.
    pub fn instead_of(path: &Path, check: CheckOurs) -> Result<Self> {
        let linked = path.is_symlink().then(|| path.canonicalize().ok()).flatten();
        let path = linked.unwrap_or_else(|| path.to_owned());
        let parent = parent_of(&path);
        fs::create_dir_all(parent).at(parent, "make the folder")?;
        let draft = DraftFolder::new_in(parent)?;
        Ok(Self { draft, path, check: Some(check), recorded: false })
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
        fs::create_dir_all(parent).at(self.shown(name), "make the folder of")?;
        // The draft is nobody else's: a name that comes twice is written again.
        let file = File::create(&path).at(self.shown(name), "make")?;
        Ok(BufWriter::with_capacity(1 << 18, file))
    }

    /// Writes a whole file of the folder.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let mut writer = self.create(name)?;
        writer.write_all(bytes).at(self.shown(name), "write")?;
        close(writer, &self.shown(name))
    }

    /// The path that a file of the folder will have, for messages.
    pub fn shown(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Gives the folder its name. What stood there goes only once the new one stands.
    pub fn finish(self) -> Result<()> {
        let Self { draft, path, check, recorded } = self;
        let parent = parent_of(&path);
        if recorded {
            ours::record(draft.path())?;
        }
        sync_folders(draft.path());
        // Somebody may have come since it was begun.
        let is_ours = |place: &Path| match check.map_or(Ok(()), |check| check(place)) {
            Err(Error::Others { names, .. }) => Err(Error::Others { folder: path.clone(), names }),
            other => other,
        };
        let replaces = check.is_some() && path.is_dir();
        if replaces && exchange(draft.path(), &path).is_ok() {
            // What stood there has the draft's name now, and goes with it.
            let checked = is_ours(draft.path());
            if checked.is_err() && exchange(draft.path(), &path).is_err() {
                draft.keep();
            }
            sync_folder(parent);
            return checked;
        }
        let old = if replaces {
            is_ours(&path)?;
            // The only copy for a moment, and so under no name that is cleared away.
            let aside = tempfile::Builder::new().prefix(".replaced-").tempdir_in(parent);
            let aside = aside.at(parent, "make a folder in")?;
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
        draft.keep();
        sync_folder(parent);
        Ok(())
    }
}

/// Flushes and syncs a file, so that a rename after it never uncovers half of it.
pub fn close(writer: BufWriter<File>, path: &Path) -> Result<()> {
    let file = writer.into_inner().map_err(|error| error.into_error()).at(path, "write")?;
    file.sync_all().at(path, "sync")
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
        folder.write("inner/a.txt", b"text").unwrap();
        folder.finish().unwrap();
        assert_eq!(fs::read(path.join("inner/a.txt")).unwrap(), b"text");
        assert_eq!(path.parent().unwrap().read_dir().unwrap().count(), 1);
        let error = NewFolder::new(&path).map(drop).unwrap_err().to_string();
        assert!(error.contains("exists"), "{error}");

        let folder = NewFolder::instead_of(&path, |_| Ok(())).unwrap();
        folder.write("b.txt", b"other").unwrap();
        folder.finish().unwrap();
        assert!(!path.join("inner").exists());
        assert_eq!(fs::read(path.join("b.txt")).unwrap(), b"other");
        assert_eq!(path.parent().unwrap().read_dir().unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_a_folder_stays() {
        let place = tempfile::tempdir().unwrap();
        let (path, link) = (place.path().join("folder"), place.path().join("link"));
        let folder = NewFolder::with_force(&path, false).unwrap();
        folder.write("old", b"").unwrap();
        folder.finish().unwrap();
        std::os::unix::fs::symlink("folder", &link).unwrap();
        let folder = NewFolder::with_force(&link, true).unwrap();
        folder.write("new", b"").unwrap();
        folder.finish().unwrap();
        assert!(link.is_symlink() && path.join("new").exists() && !path.join("old").exists());
        assert_eq!(place.path().read_dir().unwrap().count(), 2);
    }
}
