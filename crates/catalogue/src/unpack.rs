//! Members of archives, and of archives in archives. What a file is, its first bytes say.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use files::{At, limits};
use flate2::read::MultiGzDecoder;
use zip::ZipArchive;

use crate::error::{Error, Result};

/// What goes through a member once.
pub(crate) type Visit<'a> = dyn FnMut(&mut dyn Read, &Path) -> Result<()> + 'a;

/// Opens a file, or a member of it, for `visit`.
pub(crate) fn open(path: &Path, member: Option<&str>, visit: &mut Visit) -> Result<()> {
    let mut file = File::open(path).at(path, "open")?;
    let size = file.metadata().at(path, "look at")?.len();
    let Some(member) = member else { return visit(&mut file, path) };
    let mut magic = [0; 2];
    let read = file.read(&mut magic).and_then(|read| file.rewind().map(|()| read));
    read.at(path, "read")?;
    match &magic {
        b"PK" => zip_member(file, path, member, size, visit),
        [0x1f, 0x8b] => {
            let name = member.rsplit('!').next().unwrap_or(member);
            tar_member(&mut file, path, name, size, visit)
        }
        _ => {
            let reason = "is neither a zip archive nor a tar.gz";
            Err(Error::file(path, reason, "give the archive as it lies on the server"))
        }
    }
}

fn zip_member(file: File, path: &Path, member: &str, size: u64, visit: &mut Visit) -> Result<()> {
    let damaged = |error: zip::result::ZipError| damaged(path, &error);
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(damaged)?;
    let (outer, inner) = match member.split_once('!') {
        Some((outer, inner)) => (outer, Some(inner)),
        None => (member, None),
    };
    // A name that is no text is none of ours.
    let names: Vec<String> = archive.file_names().flatten().map(|name| name.into_owned()).collect();
    // Archives that were packed again have other folders.
    let last = format!("/{}", outer.rsplit('/').next().unwrap_or(outer));
    let alike = |name: &&String| format!("/{name}").ends_with(&last) && !name.contains("__MACOSX");
    let found = names.iter().find(|name| *name == outer).or_else(|| names.iter().find(alike));
    let Some(name) = found else {
        return Err(missing(path, outer, &names[..names.len().min(5)].join(", ")));
    };
    let mut reader = limits::bounded(archive.by_name(name).map_err(damaged)?, size);
    let place = within(path, name);
    match inner {
        Some(inner) => tar_member(&mut reader, &place, inner, size, visit),
        None => visit(&mut reader, &place),
    }
}

/// A member of a tar archive in gzip, which is at most `size` bytes of what was fetched.
fn tar_member(
    reader: &mut dyn Read,
    path: &Path,
    member: &str,
    size: u64,
    visit: &mut Visit,
) -> Result<()> {
    let unpacked = limits::bounded(MultiGzDecoder::new(BufReader::new(reader)), size);
    let mut archive = tar::Archive::new(unpacked);
    let mut names = Vec::new();
    for entry in archive.entries().map_err(|error| damaged(path, &error))? {
        let mut entry = entry.map_err(|error| damaged(path, &error))?;
        let name = entry.path().map_err(|error| damaged(path, &error))?.into_owned();
        let last = name.file_name().map(|name| name.to_string_lossy().into_owned());
        let last = last.unwrap_or_default();
        if last == member && entry.header().entry_type().is_file() {
            return visit(&mut entry, &within(path, &name.to_string_lossy()));
        }
        if names.len() < 5 {
            names.push(last);
        }
    }
    Err(missing(path, member, &names.join(", ")))
}

fn within(path: &Path, member: &str) -> PathBuf {
    PathBuf::from(format!("{}!{member}", path.display()))
}

fn missing(path: &Path, member: &str, names: &str) -> Error {
    let reason = format!("has no `{member}`; it holds {names} and so on");
    Error::file(path, reason, "check that it is the archive that `isogloss data list` names")
}

/// An archive that cannot be read to its end, or not all of it may be.
pub(crate) fn damaged(path: &Path, error: &(dyn std::error::Error + 'static)) -> Error {
    if error.downcast_ref::<io::Error>().is_some_and(limits::is_too_large) {
        return Error::file(
            path,
            error.to_string(),
            "or check that it is the archive that was meant",
        );
    }
    let reason = format!("is cut short or damaged ({error})");
    Error::file(path, reason, "remove it and download it again")
}
