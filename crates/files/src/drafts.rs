//! Drafts: files and folders that do not have their final name yet, and go when a process is interrupted.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

static DRAFTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Notes a draft. One that was given its final name is no longer there, and need not be unregistered.
pub(crate) fn register(path: &Path) {
    DRAFTS.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
}

/// Removes every draft of this process: for a process that is about to end by an interrupt.
pub fn remove_drafts() {
    DRAFTS.lock().unwrap_or_else(PoisonError::into_inner).drain(..).for_each(|path| remove(&path));
}

/// What is not there any more has its final name.
fn remove(path: &Path) {
    let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drafts_go_and_finished_files_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("a.partial"), "half").unwrap();
        fs::create_dir(path(".unfinished-b")).unwrap();
        fs::write(path("a"), "whole").unwrap();
        ["a.partial", ".unfinished-b", "c.partial"].iter().for_each(|name| remove(&path(name)));
        let left: Vec<_> = folder.path().read_dir().unwrap().flatten().collect();
        assert_eq!(left.iter().map(fs::DirEntry::file_name).collect::<Vec<_>>(), ["a"]);
    }
}
