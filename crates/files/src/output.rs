//! Writing a file: whole or not at all where it is a file, straight into it where it is anything else.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::drafts::DraftFile;
use crate::{At, Result, parent_of, standard, sync_folder};

/// Links that are followed before they are taken for a circle, as in Linux.
const LINKS: usize = 40;

/// What an output path stands for.
#[derive(Debug, PartialEq)]
pub(crate) enum Target {
    /// A file, or the place for one: links are followed, so that they stay and what they point at is
    /// replaced.
    File(PathBuf),
    /// Standard output, a device, a pipe: written into, and never replaced.
    Stream,
}

impl Target {
    pub(crate) fn of(path: &Path) -> Self {
        let mut place = path.to_owned();
        for _ in 0..LINKS {
            if standard::is_stream_name(&place) {
                return Target::Stream;
            }
            match fs::read_link(&place) {
                Ok(link) => place = parent_of(&place).join(link),
                Err(_) => break,
            }
        }
        let is_stream =
            place.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
        if is_stream { Target::Stream } else { Target::File(place) }
    }

    pub(crate) fn is_stream(path: &Path) -> bool {
        Self::of(path) == Target::Stream
    }
}

/// Whether an output is no file: standard output (`-`), a device or a pipe.
pub fn is_stream(path: &Path) -> bool {
    Target::is_stream(path)
}

/// Lets `write` fill a file, in any order, that takes the place of `path` once it is safely on the disk.
/// What is meant for standard output or a device is made in a temporary file and copied there.
pub fn in_place_of(path: &Path, write: impl FnOnce(&File) -> io::Result<()>) -> Result<()> {
    match Target::of(path) {
        Target::Stream => standard::copy_to(path, write),
        Target::File(place) => replace(path, &place, None, write),
    }
}

/// The same for a file that is written again and again, of which the one before is kept as `previous`.
pub(crate) fn in_place_keeping(
    path: &Path,
    previous: &Path,
    write: impl FnOnce(&File) -> io::Result<()>,
) -> Result<()> {
    replace(path, path, Some(previous), write)
}

fn replace(
    path: &Path,
    place: &Path,
    previous: Option<&Path>,
    write: impl FnOnce(&File) -> io::Result<()>,
) -> Result<()> {
    let parent = parent_of(place);
    let draft = DraftFile::new_in(parent).at(path, "write")?;
    write(draft.file()).at(path, "write")?;
    draft.replace(place, previous).at(path, "write")?;
    sync_folder(parent);
    Ok(())
}

/// Writes a file through a buffer; it appears when `fill` has returned. Standard output and devices
/// receive the bytes as they are written.
pub fn write_with(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
) -> Result<()> {
    let buffered = |file: &File| {
        let mut writer = BufWriter::with_capacity(1 << 18, file);
        fill(&mut writer)?;
        writer.flush()
    };
    match Target::of(path) {
        Target::Stream => standard::stream_to(path, buffered),
        Target::File(place) => replace(path, &place, None, buffered),
    }
}

/// Writes a file of these bytes.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    write_with(path, |writer| writer.write_all(bytes.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Seek;

    fn count(folder: &Path) -> usize {
        folder.read_dir().unwrap().count()
    }

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        write(&path, "before").unwrap();
        let failed = write_with(&path, |writer| {
            writer.write_all(b"half")?;
            Err(io::Error::other("disk full"))
        });
        assert!(failed.unwrap_err().to_string().contains("cannot write"));
        assert_eq!(fs::read(&path).unwrap(), b"before");
        assert_eq!(count(place.path()), 1);
        in_place_of(&path, |mut file| {
            file.write_all(b"_fter")?;
            file.rewind()?;
            file.write_all(b"a")
        })
        .unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"after");
    }

    #[test]
    fn two_writers_never_tear_a_file() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        let text = |letter: u8| vec![letter; 300_000];
        std::thread::scope(|scope| {
            for letter in [b'a', b'b', b'c'] {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..20 {
                        let half = text(letter);
                        write_with(path, |writer| {
                            half.chunks(10_000).try_for_each(|chunk| writer.write_all(chunk))
                        })
                        .unwrap();
                        let read = fs::read(path).unwrap();
                        assert!(read == text(read[0]), "a torn file");
                    }
                });
            }
        });
        assert_eq!(count(place.path()), 1);
    }

    /// A fixed name beside the target could be planted, as a link to a file of the user's.
    #[cfg(unix)]
    #[test]
    fn a_planted_link_is_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        let precious = place.path().join("precious");
        fs::write(&precious, "kept").unwrap();
        for planted in ["file.partial", ".file.partial", "file.tmp", ".tmpfile"] {
            std::os::unix::fs::symlink(&precious, place.path().join(planted)).unwrap();
        }
        write(&path, "new").unwrap();
        assert_eq!(fs::read(&precious).unwrap(), b"kept");
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_and_what_it_points_at_is_replaced() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let place = tempfile::tempdir().unwrap();
        let inner = place.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let (file, link, second) = (inner.join("file"), inner.join("link"), place.path().join("l"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        symlink("file", &link).unwrap();
        symlink("inner/link", &second).unwrap();
        write(&second, "new").unwrap();
        assert!(second.is_symlink() && link.is_symlink() && !file.is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        // A link to nothing yet, and a circle.
        symlink("later", inner.join("dangling")).unwrap();
        write(&inner.join("dangling"), "made").unwrap();
        assert_eq!(fs::read(inner.join("later")).unwrap(), b"made");
        symlink("b", inner.join("a")).unwrap();
        symlink("a", inner.join("b")).unwrap();
        let _ = write(&inner.join("a"), "");
        assert!(inner.join("a").is_symlink() || inner.join("b").is_symlink());
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_written_to_and_stays() {
        use std::os::unix::fs::{FileTypeExt, symlink};
        let place = tempfile::tempdir().unwrap();
        let link = place.path().join("null");
        symlink("/dev/null", &link).unwrap();
        for path in [Path::new("/dev/null"), &link] {
            write(path, "gone").unwrap();
            in_place_of(path, |mut file| file.write_all(b"gone")).unwrap();
            assert!(fs::metadata(path).unwrap().file_type().is_char_device());
        }
        assert!(link.is_symlink() && is_stream(&link) && !is_stream(place.path()));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_pipe_is_written_to_and_stays() {
        use std::os::unix::fs::FileTypeExt;
        let place = tempfile::tempdir().unwrap();
        let pipe = place.path().join("pipe");
        let (kind, mode) =
            (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap()
        });
        write(&pipe, "through").unwrap();
        assert_eq!(reader.join().unwrap(), b"through");
        assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
    }

    /// Memory that is mounted under `/dev` holds files as any other folder does.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_under_dev_is_a_file() {
        let Ok(place) = tempfile::tempdir_in("/dev/shm") else { return };
        let path = place.path().join("file");
        assert_eq!(Target::of(&path), Target::File(path.clone()));
        write(&path, "whole").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_named_with_the_path() {
        let error = write(Path::new("/dev/full"), "x").unwrap_err().to_string();
        assert!(error.contains("/dev/full") && error.contains("disk is full"), "{error}");
    }
}
