//! `-` in place of a file's name: standard input where one is read, standard output where one is
//! written.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use tempfile::NamedTempFile;

use crate::{At, Result};

/// What standard input is called in messages.
pub const STANDARD_INPUT: &str = "standard input";

/// Whether a path is `-`: standard input or output.
pub fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Opens a file for reading; `-` is standard input.
pub fn open(path: &Path) -> Result<Box<dyn Read + Send>> {
    if is_standard(path) {
        return Ok(Box::new(io::stdin()));
    }
    Ok(Box::new(File::open(path).at(path, "open")?))
}

/// Lets `write` make a temporary file, for writers that seek, and copies it to standard output or a
/// device.
pub(crate) fn copy_to(path: &Path, write: impl FnOnce(&Path) -> io::Result<()>) -> Result<()> {
    let draft = NamedTempFile::new().at(path, "make a temporary file for")?;
    write(draft.path()).at(path, "write")?;
    // By name, since `write` may have replaced the file that was made first.
    let mut made = File::open(draft.path()).at(path, "write")?;
    stream_to(path, |mut out| io::copy(&mut made, &mut out).map(drop))
}

/// Lets `fill` write to standard output or a device. A reader that went away (`| head`) is no failure.
pub(crate) fn stream_to(path: &Path, fill: impl FnOnce(File) -> io::Result<()>) -> Result<()> {
    let out = match is_standard(path) {
        true => standard_output(),
        false => fs::OpenOptions::new().write(true).open(path),
    };
    match out.and_then(fill) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done.at(path, "write"),
    }
}

/// Standard output as a file, so that every writer has one type.
fn standard_output() -> io::Result<File> {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        Ok(io::stdout().as_fd().try_clone_to_owned()?.into())
    }
    #[cfg(windows)]
    {
        use std::os::windows::io::AsHandle;
        Ok(io::stdout().as_handle().try_clone_to_owned()?.into())
    }
}
