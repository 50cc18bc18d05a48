//! Checkpoints: a file that is written again and again, of which the newest two are kept.
//!
//! The one before stands beside the newest (`state.previous.safetensors` beside `state.safetensors`).
//! Where the newest does not verify, the one before is read in its place, and the newest is set aside
//! (`state.damaged.safetensors`) rather than removed or made the older of two.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::{Result, output, parent_of, sync_folder};

/// Where the checkpoint before the newest stands.
pub fn previous(path: &Path) -> PathBuf {
    beside(path, "previous")
}

fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{what}"));
    match path.extension() {
        Some(extension) => path.with_file_name(name).with_added_extension(extension),
        None => path.with_file_name(name),
    }
}

/// A name beside a path for what it held, under which nothing stands.
pub fn free_name(path: &Path, what: &str) -> PathBuf {
    let numbered = (2..).map(|number| beside(path, &format!("{what}-{number}")));
    let mut names = std::iter::once(beside(path, what)).chain(numbered);
    names.find(|name| name.symlink_metadata().is_err()).expect("some number is free")
}

/// Whether there is a checkpoint at all.
pub fn exists(path: &Path) -> bool {
    path.is_file() || previous(path).is_file()
}

/// Writes a checkpoint; the one that stood there becomes the previous one.
pub fn write(path: &Path, fill: impl FnOnce(&File) -> io::Result<()>) -> Result<()> {
    output::in_place_keeping(path, &previous(path), fill)
}

/// Removes the two; a damaged one that was set aside stays.
pub fn remove(path: &Path) -> Result<()> {
    crate::remove(path)?;
    crate::remove(&previous(path))
}

/// Reads the newest checkpoint that is sound. `is_damaged` tells a file that does not verify from every
/// other failure: only then is the one before tried, and `note` receives what happened. Any other failure
/// (a file of another run, a disk that cannot be read) is the caller's, and changes nothing.
pub fn read<T, E: std::fmt::Display>(
    path: &Path,
    mut read: impl FnMut(&Path) -> std::result::Result<T, E>,
    is_damaged: impl Fn(&E) -> bool,
    note: &mut dyn FnMut(&str),
) -> std::result::Result<T, E> {
    let older = previous(path);
    if !path.is_file() && older.is_file() {
        note(&format!(
            "{} is not there: resuming from the checkpoint before it, {}",
            path.display(),
            older.display()
        ));
        return read(&older);
    }
    let damage = match read(path) {
        Err(error) if is_damaged(&error) && older.is_file() => error,
        other => return other,
    };
    // Where neither is sound, what is wrong with the newest is the message.
    let Ok(sound) = read(&older) else { return Err(damage) };
    let kept = rename_damaged(path);
    note(&format!("{damage}\nresuming from the checkpoint before it, {}{kept}", older.display()));
    Ok(sound)
}

/// Sets aside a checkpoint that does not verify and has no sound one before it, for a caller that can begin anew: the next that is
/// written would make it the previous one. Returns where it is kept, in words, or nothing where it cannot be moved.
pub fn set_aside(path: &Path) -> String {
    // The one before is of no use either, and what is written anew comes in its place.
    let _ = fs::remove_file(previous(path));
    rename_damaged(path)
}

fn rename_damaged(path: &Path) -> String {
    let aside = free_name(path, "damaged");
    let kept = match fs::rename(path, &aside) {
        Ok(()) => format!(" (the damaged one is kept as {})", aside.display()),
        Err(_) => String::new(),
    };
    sync_folder(parent_of(path));
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn save(path: &Path, text: &str) {
        write(path, |mut file| file.write_all(text.as_bytes())).unwrap();
    }

    /// Reads a text; one that begins with `!` is damaged, and one that begins with `?` of another run.
    fn load(path: &Path) -> (std::result::Result<String, String>, Vec<String>) {
        let mut notes = Vec::new();
        let open = |path: &Path| match fs::read_to_string(path) {
            Ok(text) if text.starts_with(['!', '?']) => Err(text),
            other => other.map_err(|error| error.to_string()),
        };
        let found = read(path, open, |e| e.starts_with('!'), &mut |n| notes.push(n.to_owned()));
        (found, notes)
    }

    #[test]
    fn names_stand_beside_and_keep_their_ending() {
        assert_eq!(
            previous(Path::new("a/state.safetensors")),
            Path::new("a/state.previous.safetensors")
        );
        assert_eq!(previous(Path::new("en.vec.state")), Path::new("en.vec.previous.state"));
        assert_eq!(previous(Path::new("state")), Path::new("state.previous"));
    }

    #[test]
    fn two_are_kept_and_the_older_is_read_where_the_newer_is_damaged() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("state.bin");
        assert!(!exists(&path) && load(&path).0.is_err());
        for text in ["1", "2", "3"] {
            save(&path, text);
        }
        assert_eq!(load(&path), (Ok("3".into()), vec![]));
        assert_eq!(fs::read_to_string(previous(&path)).unwrap(), "2");
        assert_eq!(place.path().read_dir().unwrap().count(), 2);

        fs::write(&path, "!rotten").unwrap();
        let (found, notes) = load(&path);
        assert_eq!(found, Ok("2".into()));
        assert!(notes[0].contains("!rotten") && notes[0].contains("damaged"), "{notes:?}");
        // What is damaged never takes the place of what is sound.
        save(&path, "3 again");
        assert_eq!(fs::read_to_string(previous(&path)).unwrap(), "2");
        assert_eq!(load(&path).0, Ok("3 again".into()));

        fs::remove_file(&path).unwrap();
        let (found, notes) = load(&path);
        assert!(exists(&path) && found == Ok("2".into()) && notes.len() == 1);
        remove(&path).unwrap();
        let left: Vec<_> = place.path().read_dir().unwrap().map(|e| e.unwrap().path()).collect();
        assert_eq!(left, [beside(&path, "damaged")]);
    }

    #[test]
    fn a_failure_that_is_no_damage_changes_nothing() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("state.bin");
        save(&path, "1");
        save(&path, "?of another run");
        assert_eq!(load(&path), (Err("?of another run".into()), vec![]));
        save(&path, "!damaged");
        fs::write(previous(&path), "!damaged too").unwrap();
        assert_eq!(load(&path).0, Err("!damaged".into()));
        assert_eq!(fs::read_to_string(&path).unwrap(), "!damaged");
        assert_eq!(fs::read_to_string(previous(&path)).unwrap(), "!damaged too");
        // Who begins anew leaves no damaged file where a checkpoint is looked for.
        assert!(set_aside(&path).contains("state.damaged.bin"));
        assert!(!exists(&path));
        save(&path, "1 anew");
        assert_eq!(load(&path), (Ok("1 anew".into()), vec![]));
        assert!(!previous(&path).exists());
        assert_eq!(fs::read_to_string(beside(&path, "damaged")).unwrap(), "!damaged");
    }
}
