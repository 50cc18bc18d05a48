//! Streams in place of files: `-` is standard input where a file is read, and standard output where one
//! is written; devices and pipes are written into.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::Path;

use crate::{At, Result};

/// What standard input is called in messages.
pub const STANDARD_INPUT: &str = "standard input";

/// Whether a path is `-`: standard input or output.
pub fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Whether a path names an open stream of this process, whatever that leads to.
pub(crate) fn is_stream_name(path: &Path) -> bool {
    let open = ["/dev/stdout", "/dev/stderr", "/dev/fd", "/proc/self/fd"];
    is_standard(path) || cfg!(unix) && open.iter().any(|open| path.starts_with(open))
}

/// Opens a file for reading; `-` is standard input.
pub fn open(path: &Path) -> Result<Box<dyn Read + Send>> {
    if is_standard(path) {
        return Ok(Box::new(io::stdin()));
    }
    Ok(Box::new(File::open(path).at(path, "open")?))
}

/// Lets `write` fill a temporary file, for writers that seek, and copies it to a stream.
pub(crate) fn copy_to(path: &Path, write: impl FnOnce(&File) -> io::Result<()>) -> Result<()> {
    let temporary = std::env::temp_dir();
    let mut draft = tempfile::tempfile().at(&temporary, "make a file in")?;
    write(&draft).at(&temporary, "write a file in")?;
    draft.rewind().at(&temporary, "read a file in")?;
    stream_to(path, |mut out| io::copy(&mut draft, &mut out).map(drop))
}

/// Lets `fill` write to a stream. A reader that went away (`| head`) is no failure.
pub(crate) fn stream_to(path: &Path, fill: impl FnOnce(&File) -> io::Result<()>) -> Result<()> {
    let out = match path.to_str() {
        Some("-" | "/dev/stdout") => standard_output(),
        Some("/dev/stderr") => standard_error(),
        _ => fs::OpenOptions::new().write(true).open(path),
    };
    match out.and_then(|out| fill(&out)) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done.at(path, "write"),
    }
}

/// Standard output as a file, so that every writer has one type. It is the very stream, which goes on
/// after what was printed: `/dev/stdout`, opened by name, would begin a redirected file anew.
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

fn standard_error() -> io::Result<File> {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        Ok(io::stderr().as_fd().try_clone_to_owned()?.into())
    }
    #[cfg(windows)]
    {
        use std::os::windows::io::AsHandle;
        Ok(io::stderr().as_handle().try_clone_to_owned()?.into())
    }
}
