//! What of a folder is ours, and may be taken away. The one rule: nothing else ever is. A folder that holds anything else
//! is refused, with the names of the first few, before any work.
//!
//! A folder that is made whole holds a record of its files with their digests, as `b3sum` writes it and checks it: what
//! is not in it, or was changed since, is somebody else's. A folder that a command works in over time is of a
//! [`FolderKind`], which names its files. A link is never ours.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::drafts::is_no_content;
use crate::{At, Error, Result};

/// The record of a folder that was made whole.
pub(crate) const RECORD: &str = "isogloss.b3";
/// How many files an error names.
const NAMED: usize = 3;

/// A kind of folder that a command works in over time.
#[derive(Debug)]
pub struct FolderKind {
    /// The file by which such a folder is known. It goes last: as long as it is there, a kill leaves a folder that can be
    /// cleared again.
    pub mark: &'static str,
    /// The other files, from the folder on. `*` stands for any part of a name and `#` for a number; a name that ends in `/` is
    /// a folder that has a record.
    pub files: &'static [&'static str],
}

impl FolderKind {
    fn has(&self, name: &str, path: &Path) -> bool {
        let is = |pattern: &&str| match name
            .strip_prefix(*pattern)
            .filter(|_| pattern.ends_with('/'))
        {
            Some(inner) => Record::above(path, inner).is_some_and(|record| record.has(inner, path)),
            None => matches(pattern, name),
        };
        name == self.mark || self.files.iter().any(is)
    }

    /// Refuses a folder with files that are not of this kind.
    pub fn refuse_others(&self, folder: &Path) -> Result<()> {
        refuse_others(folder, |name, path| self.has(name, path))
    }

    /// Whether it has files in a folder of this name.
    fn has_folder(&self, name: &str) -> bool {
        let depth = name.split('/').count();
        let parts = self.files.iter().map(|pattern| pattern.split('/').collect::<Vec<_>>());
        parts
            .into_iter()
            .any(|parts| parts.len() > depth && matches(&parts[..depth].join("/"), name))
    }

    /// Removes its files from a folder, and the folders in it that are empty then.
    pub(crate) fn clear(&self, folder: &Path) {
        let Ok((files, folders)) = entries(folder) else { return };
        let own = files.iter().filter(|entry| entry.is_file && self.has(&entry.name, &entry.path));
        let (last, first): (Vec<_>, Vec<_>) = own.partition(|entry| entry.name == self.mark);
        // A record after the files that it names.
        let (records, first): (Vec<_>, Vec<_>) =
            first.into_iter().partition(|entry| entry.name.ends_with(RECORD));
        let remove = |entry: &&Entry| drop(fs::remove_file(&entry.path));
        first.iter().chain(&records).for_each(remove);
        let folders = folders.iter().rev().filter(|inner| self.has_folder(&inner.name));
        folders.for_each(|inner| drop(fs::remove_dir(&inner.path)));
        crate::sync_folder(folder);
        last.iter().for_each(remove);
    }
}

/// Whether a path from a folder on is of a pattern.
fn matches(pattern: &str, name: &str) -> bool {
    let Some(at) = pattern.find(['*', '#']) else { return pattern == name };
    let Some(rest) = name.strip_prefix(&pattern[..at]) else { return false };
    let stands = |letter: char| match pattern.as_bytes()[at] {
        b'*' => letter != '/',
        _ => letter.is_ascii_digit(),
    };
    let ends = rest.char_indices().take_while(|&(_, letter)| stands(letter));
    let mut ends = ends.map(|(start, letter)| start + letter.len_utf8());
    ends.any(|end| matches(&pattern[at + 1..], &rest[end..]))
}

/// Something in a folder, or in a folder in it.
struct Entry {
    /// From the folder on, with `/` between the parts.
    name: String,
    path: PathBuf,
    /// Whether it is neither a link nor a device.
    is_file: bool,
}

/// What is no folder, and the folders, in the order of their names; a lock and the drafts of this project are neither.
fn entries(folder: &Path) -> Result<(Vec<Entry>, Vec<Entry>)> {
    let (mut found, mut inner) = (Vec::new(), Vec::new());
    let mut folders = vec![(folder.to_owned(), String::new())];
    while let Some((folder, start)) = folders.pop() {
        for entry in fs::read_dir(&folder).at(&folder, "list")? {
            let entry = entry.at(&folder, "list")?;
            let (path, kind) = (entry.path(), entry.file_type().at(entry.path(), "look at")?);
            let name = format!("{start}{}", entry.file_name().to_string_lossy());
            match kind.is_dir() {
                _ if is_no_content(&entry) => {}
                true => {
                    folders.push((path.clone(), format!("{name}/")));
                    inner.push(Entry { name, path, is_file: false });
                }
                false => found.push(Entry { name, path, is_file: kind.is_file() }),
            }
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    inner.sort_by(|a, b| a.name.cmp(&b.name));
    Ok((found, inner))
}

/// Refuses to take away a folder that holds anything but files that are ours, each given by its name from the folder on
/// and its path. An empty folder in it counts for nothing.
pub fn refuse_others(folder: &Path, is_ours: impl Fn(&str, &Path) -> bool) -> Result<()> {
    let all = entries(folder)?.0.into_iter();
    let mut others = all.filter(|entry| !entry.is_file || !is_ours(&entry.name, &entry.path));
    let mut names: Vec<String> = others.by_ref().take(NAMED).map(|entry| entry.name).collect();
    match others.count() {
        _ if names.is_empty() => return Ok(()),
        0 => {}
        more => names.push(format!("{more} more")),
    }
    Err(Error::Others { folder: folder.to_owned(), names: names.join(", ") })
}

/// Whether a file has these bytes, by their BLAKE3 digest.
pub fn has_digest(path: &Path, digest: &str) -> bool {
    digest_of(path).is_ok_and(|found| found == digest)
}

fn digest_of(path: &Path) -> Result<String> {
    let mut hasher = blake3::Hasher::new();
    let file = fs::File::open(path).at(path, "open")?;
    hasher.update_reader(file).at(path, "read")?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// The digests of files by their names.
struct Record(HashMap<String, String>);

impl Record {
    /// That of a folder, if what stands there is one.
    fn of(folder: &Path) -> Option<Self> {
        let text = fs::read_to_string(folder.join(RECORD)).ok()?;
        let lines = text.lines().map(|line| line.split_once("  "));
        let named =
            lines.map(|line| line.map(|(digest, name)| (name.to_owned(), digest.to_owned())));
        named.collect::<Option<_>>().map(Self)
    }

    /// That of the folder in which a path has this name.
    fn above(path: &Path, name: &str) -> Option<Self> {
        Self::of(path.ancestors().nth(name.split('/').count())?)
    }

    /// Whether a file is as it was when it was recorded, or the record itself.
    fn has(&self, name: &str, path: &Path) -> bool {
        match self.0.get(name) {
            Some(digest) => has_digest(path, digest),
            None => name == RECORD,
        }
    }
}

/// Writes the record of a folder in the making.
pub(crate) fn record(folder: &Path) -> Result<()> {
    let mut record = String::new();
    for entry in entries(folder)?.0 {
        record += &format!("{}  {}\n", digest_of(&entry.path)?, entry.name);
    }
    crate::write(&folder.join(RECORD), record)
}

/// Writes files into a folder, with a record of them; what else is there stays. The record comes first: whatever a kill or a full
/// disk leaves of them is known to be ours.
pub fn write_recorded(folder: &Path, files: &[(String, String)]) -> Result<()> {
    fs::create_dir_all(folder).at(folder, "make the folder")?;
    let line = |(name, text): &(String, String)| {
        format!("{}  {name}\n", blake3::hash(text.as_bytes()).to_hex())
    };
    crate::write(&folder.join(RECORD), files.iter().map(line).collect::<String>())?;
    files.iter().try_for_each(|(name, text)| crate::write(&folder.join(name), text))
}

/// Refuses a folder that holds anything but what its record names, as it was written.
pub(crate) fn refuse_unrecorded(folder: &Path) -> Result<()> {
    let record = Record::of(folder);
    refuse_others(folder, |name, path| record.as_ref().is_some_and(|record| record.has(name, path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_a_part_of_one_name() {
        for (pattern, name, same) in [
            ("config.toml", "config.toml", true),
            ("config.toml", "inner/config.toml", false),
            ("state-*.safetensors", "state-12.safetensors", true),
            ("state-*.safetensors", "state.safetensors", false),
            ("a*a", "a", false),
            ("corpora/*/*.bin", "corpora/qaa/train.bin", true),
            ("corpora/*/*.bin", "corpora/qaa/old/train.bin", false),
            ("corpora/*/*.bin", "corpora/train.bin", false),
            ("events.#.#", "events.12.3", true),
            ("events.#.#", "events.12.", false),
            ("#.npz", "ä.npz", false),
        ] {
            assert_eq!(matches(pattern, name), same, "{pattern} {name}");
        }
    }

    /// What is there, with its bytes; of a link where it points.
    fn content(folder: &Path) -> Vec<(String, Vec<u8>)> {
        let bytes = |entry: &Entry| match fs::read_link(&entry.path) {
            Ok(link) => link.into_os_string().into_encoded_bytes(),
            Err(_) => fs::read(&entry.path).unwrap(),
        };
        let all = entries(folder).unwrap().0;
        all.iter().map(|entry| (entry.name.clone(), bytes(entry))).collect()
    }

    #[test]
    fn a_folder_that_was_made_whole_goes_only_as_it_was_made() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("out");
        let make = |text: &[u8], force| {
            let folder = crate::NewFolder::with_force(&path, force)?;
            folder.write("a.txt", text)?;
            folder.write("inner/b.txt", text)?;
            folder.finish()
        };
        make(b"one", false).unwrap();
        make(b"two", true).unwrap();
        assert_eq!(fs::read(path.join("inner/b.txt")).unwrap(), b"two");
        let names = ["a.txt", "notes.md", "inner/b.txt", "inner/deep/notes", RECORD, crate::LOCK];
        for name in names {
            let file = path.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            let before = fs::read(&file).ok();
            fs::write(&file, "precious").unwrap();
            let there = content(&path);
            let refused = make(b"three", true).unwrap_err().to_string();
            assert!(refused.contains("move them away"), "{refused}");
            assert!(name == RECORD || refused.contains(name), "{refused}");
            crate::check_new_folder(&path, true).unwrap_err();
            assert_eq!(content(&path), there);
            assert_eq!(place.path().read_dir().unwrap().count(), 1);
            match before {
                Some(before) => fs::write(&file, before).unwrap(),
                None => fs::remove_file(&file).unwrap(),
            }
        }
        #[cfg(unix)]
        {
            let moved = place.path().join("moved");
            fs::rename(path.join("a.txt"), &moved).unwrap();
            std::os::unix::fs::symlink(&moved, path.join("a.txt")).unwrap();
            let there = content(&path);
            make(b"three", true).unwrap_err();
            assert_eq!(content(&path), there);
            fs::rename(&moved, path.join("a.txt")).unwrap();
        }
        make(b"three", true).unwrap();
        // Somebody comes while it is made.
        let folder = crate::NewFolder::with_force(&path, true).unwrap();
        folder.write("a.txt", b"four").unwrap();
        fs::write(path.join("late"), "precious").unwrap();
        let there = content(&path);
        folder.finish().unwrap_err();
        assert_eq!(content(&path), there);
        assert_eq!(place.path().read_dir().unwrap().count(), 1);
    }

    #[test]
    fn a_kind_takes_away_its_own_files_alone() {
        const KIND: FolderKind =
            FolderKind { mark: "config.toml", files: &["state-*.bin", "corpora/*/*.bin"] };
        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        let own = ["config.toml", "state-1.bin", "corpora/qaa/a.bin", "corpora/qab/a.bin"];
        let others = ["notes", "corpora/config.toml", "corpora/qab/a.txt", "state-1.bin.old"];
        for name in own.iter().chain(&others) {
            fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
            fs::write(folder.join(name), name).unwrap();
        }
        let refused = KIND.refuse_others(folder).unwrap_err().to_string();
        assert!(
            refused.contains("corpora/config.toml, corpora/qab/a.txt, notes, 1 more"),
            "{refused}"
        );
        KIND.clear(folder);
        let left: Vec<String> = content(folder).into_iter().map(|(name, _)| name).collect();
        assert_eq!(left, ["corpora/config.toml", "corpora/qab/a.txt", "notes", "state-1.bin.old"]);
        assert!(!folder.join("corpora/qaa").exists());
        fs::create_dir_all(folder.join("corpora/qac")).unwrap();
        KIND.clear(folder);
        assert!(!folder.join("corpora/qac").exists(), "what a run that failed to start has made");
    }
}
