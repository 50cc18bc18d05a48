//! What a file may ask of the machine: the one place for limits on what is unpacked and named by files.
//!
//! A few kilobytes of bzip2 can unpack to terabytes. Nothing that is unpacked may therefore become larger than
//! [`most_unpacked`] allows for a file of its size; the environment variable [`MAX_BYTES`] raises that and every
//! other limit of this module. Streams stop there ([`bounded`]) with an error that says so ([`is_too_large`]).

use std::env;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path};
use std::sync::OnceLock;

/// The environment variable that raises limits, in bytes or as `8G`, `512M`.
pub const MAX_BYTES: &str = "ISOGLOSS_MAX_BYTES";

/// What any file may unpack to, however small it is.
const FLOOR: u64 = 64 << 20;
/// What a large one may, in multiples of its size: text packs to a third or a tenth.
const RATIO: u64 = 16;

/// What a server may send that does not say how much it will be.
const UNANNOUNCED: u64 = 1 << 30;

/// How many bytes a file of `packed` bytes may unpack to.
pub fn most_unpacked(packed: u64) -> u64 {
    raised(packed.saturating_mul(RATIO).saturating_add(FLOOR))
}

/// How many bytes a download may have whose length the server does not say.
pub fn most_unannounced() -> u64 {
    raised(UNANNOUNCED)
}

/// A limit, or what the environment sets where that is more.
fn raised(usual: u64) -> u64 {
    static RAISED: OnceLock<Option<u64>> = OnceLock::new();
    let raised = RAISED.get_or_init(|| parse_size(&env::var(MAX_BYTES).ok()?));
    raised.map_or(usual, |raised| raised.max(usual))
}

/// A number of bytes: `1048576`, `512M`, `8G`.
fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, unit) = match text.find(|c: char| !c.is_ascii_digit()) {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let shift = match unit.trim_end_matches(['B', 'b', 'i']).to_ascii_uppercase().as_str() {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// The complaint of a stream that went beyond its limit.
#[derive(Debug)]
struct TooLarge {
    limit: u64,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = self.limit >> 20;
        write!(
            f,
            "holds or unpacks to more than {megabytes} MB, the most that a file of its size may hold; where it is meant to be so \
             large, set {MAX_BYTES} to a number of bytes, such as 8G"
        )
    }
}

impl std::error::Error for TooLarge {}

/// Whether an error of reading is that of a [`bounded`] stream; its words are then for the user.
pub fn is_too_large(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<TooLarge>())
}

/// What comes out of a decompressor, up to the limit for what went in.
pub fn bounded<R: Read>(unpacked: R, packed: u64) -> Bounded<R> {
    let limit = most_unpacked(packed);
    Bounded { inner: unpacked, limit, left: limit }
}

/// The text of a file that somebody names and that is meant to be short. What has no end, such as `/dev/zero`, ends in an
/// error.
pub fn read_text(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut text = String::new();
    bounded(file, size).read_to_string(&mut text)?;
    Ok(text)
}

/// A stream that ends in an error beyond its limit.
#[derive(Debug)]
pub struct Bounded<R> {
    inner: R,
    limit: u64,
    left: u64,
}

impl<R> Bounded<R> {
    /// Another stream with what is left of the limit.
    pub fn followed_by<S: Read>(self, next: S) -> Bounded<S> {
        Bounded { inner: next, limit: self.limit, left: self.left }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        match self.left.checked_sub(read as u64) {
            Some(left) => self.left = left,
            None => return Err(io::Error::other(TooLarge { limit: self.limit })),
        }
        Ok(read)
    }
}

/// Whether a name that a file gives is that of a file in its own folder: no path, and no way out.
pub fn is_plain_name(name: &str) -> bool {
    let mut components = Path::new(name).components();
    let one = matches!(components.next(), Some(Component::Normal(_)));
    one && components.next().is_none() && !name.contains(['/', '\\', '\0'])
}

/// Whether a path that a file gives stays below its own folder.
pub fn is_below(path: &str) -> bool {
    let mut components = Path::new(path).components();
    !path.is_empty()
        && !path.contains('\0')
        && components.all(|component| matches!(component, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_ends_at_its_limit_and_says_how_to_raise_it() {
        let endless = io::repeat(0);
        let mut reader = bounded(endless, 10);
        let copied = io::copy(&mut reader, &mut io::sink());
        let error = copied.unwrap_err();
        assert!(is_too_large(&error));
        assert!(
            error.to_string().contains("more than 64 MB") && error.to_string().contains(MAX_BYTES)
        );
        let short = io::copy(&mut bounded(&b"short"[..], 5), &mut io::sink());
        assert_eq!(short.unwrap(), 5);
        assert!(!is_too_large(&io::Error::other("x")));
        assert_eq!(most_unpacked(u64::MAX), u64::MAX);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_without_an_end_is_not_read_to_it() {
        let error = read_text(Path::new("/dev/zero")).unwrap_err();
        assert!(is_too_large(&error), "{error}");
        assert_eq!(read_text(Path::new("/dev/null")).unwrap(), "");
    }

    #[test]
    fn sizes_are_written_as_people_write_them() {
        for (text, bytes) in
            [("17", 17), ("2k", 2048), ("3M", 3 << 20), ("8G", 8 << 30), ("1GiB", 1 << 30)]
        {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
        }
        for text in ["", "much", "-1", "9999999999T", "3 apples"] {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }

    #[test]
    fn names_stay_in_their_folder() {
        assert!(is_plain_name("tokenizer.en.json") && is_below("text/en.txt"));
        for name in ["", ".", "..", "../x", "/etc/passwd", "a/b", "a\0", "a\\b"] {
            assert!(!is_plain_name(name), "{name}");
        }
        for path in ["", "..", "a/../../b", "/etc/passwd", "a\0b", "./../x"] {
            assert!(!is_below(path), "{path}");
        }
    }
}
