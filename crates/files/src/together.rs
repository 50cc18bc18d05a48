//! Outputs that belong together, such as vectors and the words of their rows: of two processes that write the same
//! ones, all are one's in the end.
//!
//! Each file takes its place by a rename of its own, and two processes' renames could alternate. So the folders
//! themselves are locked for as long as the files are written, which leaves nothing behind. Where a file system cannot
//! lock folders, every file is still one process's, whole.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use crate::output::Target;
use crate::parent_of;

thread_local! {
    /// Folders that this thread holds: one that writes several files may call one that does so too.
    static HELD: RefCell<BTreeSet<PathBuf>> = const { RefCell::new(BTreeSet::new()) };
}

/// The folders of outputs, kept from others that write several files there until it is dropped.
#[derive(Debug)]
#[must_use = "other processes are kept out for as long as it lives"]
pub struct OutputLock(Vec<(PathBuf, File)>);

/// Waits until no other process writes outputs that belong together into the folders of these.
pub fn lock_outputs<'a>(paths: impl IntoIterator<Item = &'a Path>) -> OutputLock {
    let folder = |path: &Path| match Target::of(path) {
        Target::File(place) => parent_of(&place).canonicalize().ok(),
        Target::Stream => None,
    };
    // In the same order in every process, so that no two wait for each other.
    let folders: BTreeSet<PathBuf> = paths.into_iter().filter_map(folder).collect();
    let take = |folder: PathBuf| {
        if HELD.with_borrow(|held| held.contains(&folder)) {
            return None;
        }
        let file = File::open(&folder).ok()?;
        file.lock().ok()?;
        HELD.with_borrow_mut(|held| held.insert(folder.clone()));
        Some((folder, file))
    };
    OutputLock(folders.into_iter().filter_map(take).collect())
}

impl Drop for OutputLock {
    fn drop(&mut self) {
        let folders = self.0.iter().map(|(folder, _)| folder);
        HELD.with_borrow_mut(|held| folders.for_each(|folder| _ = held.remove(folder)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[cfg(unix)]
    #[test]
    fn two_files_are_of_one_writer() {
        let place = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| place.path().join(name));
        let write = |letter: &str| {
            let paths = [a.as_path(), &b, Path::new("-")];
            let _held = lock_outputs(paths);
            // One that writes several files may call one that does so too.
            let _again = lock_outputs(paths);
            paths[..2].iter().for_each(|path| crate::write(path, letter).unwrap());
        };
        let write = &write;
        std::thread::scope(|scope| {
            for letter in ["1", "2", "3", "4"] {
                let (a, b) = (&a, &b);
                scope.spawn(move || {
                    for _ in 0..50 {
                        write(letter);
                        let _held = lock_outputs([a.as_path()]);
                        assert_eq!(fs::read(a).unwrap(), fs::read(b).unwrap());
                    }
                });
            }
        });
        assert_eq!(place.path().read_dir().unwrap().count(), 2);
    }
}
