//! File formats of word vectors.
//!
//! The format of a file is recognised by its content when it is read and by its name when it is written;
//! both can be overridden. All are read through gzip and zstd as well. What cannot be trusted is refused
//! with its line: a wrong header, a non-finite value, a duplicate word.

mod array;
mod binary;
mod text;

use std::io::{self, BufRead, Cursor, Read};
use std::path::Path;

use files::At;

use crate::table::WordVectors;
use crate::{Error, Result};

/// How vectors lie in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorFormat {
    /// Word2Vec's text, which is also fastText's `.vec`: a header of count and dimension, then a
    /// word and its values on each line. `gensim` reads it with no flag.
    Text,
    /// Word2Vec's binary: the same header, then each word, a space, and 32-bit values.
    Binary,
    /// GloVe's text: like Word2Vec's, without the header.
    Glove,
    /// An array of NumPy, and beside it a file of the words, one a line (`a.npy`, `a.vocab`).
    Npy,
}

/// How a file is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadOptions {
    /// Its format; recognised by its content by default.
    pub format: Option<VectorFormat>,
    /// Read at most so many words from the start.
    pub limit: Option<usize>,
}

/// A format is recognised by so many bytes.
const HEAD: u64 = 1 << 16;
const FASTTEXT_MODEL: &[u8] = &793_712_314_i32.to_le_bytes();
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
/// No compressed file is expected to hold more than so many times its size.
const MOST_COMPRESSED: u64 = 1 << 10;
/// What a pickle of Python's protocol 2 to 5 begins with.
const PICKLES: [&[u8]; 4] = [b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"];
const PICKLED: &str = "is a Python pickle, such as gensim's KeyedVectors.save writes";
const SAVE_AS_TEXT: &str =
    "save it in gensim by `KeyedVectors.load(FILE).save_word2vec_format('FILE.vec')`";
const NOT_A_MODEL: &str =
    "export its words as text (`fasttext print-word-vectors`), or use the .vec that comes with it";

/// Reads vectors.
pub fn read(path: &Path, options: ReadOptions) -> Result<WordVectors> {
    // The size of standard input is unknown; tables grow beyond this.
    let size = match files::is_standard(path) {
        true => 1 << 28,
        false => path.metadata().at(path, "look at")?.len(),
    };
    let mut file = ::text::open_file(path)?;
    let mut head = Vec::new();
    file.by_ref().take(HEAD).read_to_end(&mut head).map_err(|error| unreadable(path, error))?;
    if head.starts_with(BYTE_ORDER_MARK) {
        head.drain(..BYTE_ORDER_MARK.len());
    }
    if head.is_empty() {
        return Err(Error::file(path, "is empty", "give a file that holds vectors"));
    }
    if head.starts_with(FASTTEXT_MODEL) {
        return Err(Error::file(path, "is a model of fastText, not its vectors", NOT_A_MODEL));
    }
    if PICKLES.iter().any(|start| head.starts_with(start)) {
        return Err(Error::file(path, PICKLED, SAVE_AS_TEXT));
    }
    let format = options.format.unwrap_or_else(|| recognize(&head));
    let mut input = VectorReader {
        path,
        size,
        first: options.limit.unwrap_or(usize::MAX).max(1),
        reader: Box::new(Cursor::new(head).chain(file)),
    };
    match format {
        VectorFormat::Text => text::read(&mut input, true),
        VectorFormat::Glove => text::read(&mut input, false),
        VectorFormat::Binary => binary::read(&mut input),
        VectorFormat::Npy if files::is_standard(path) => Err(array_alone()),
        VectorFormat::Npy => array::read(path, input.first),
    }
}

/// Writes vectors; the file appears whole or not at all.
pub fn write(path: &Path, vectors: &WordVectors, format: Option<VectorFormat>) -> Result<()> {
    if format.is_none() {
        check_name(path)?;
    }
    let format = format.unwrap_or_else(|| VectorFormat::for_name(path));
    check_words(vectors, path)?;
    match format {
        VectorFormat::Text => text::write(path, vectors, true),
        VectorFormat::Glove => text::write(path, vectors, false),
        VectorFormat::Binary => binary::write(path, vectors),
        VectorFormat::Npy if files::is_standard(path) => Err(array_alone()),
        VectorFormat::Npy => array::write(path, vectors),
    }
}

/// An array has its words in a file beside it, which standard input and output have not.
fn array_alone() -> Error {
    Error::request("an array needs a file of words beside it", "name a file in place of `-`")
}

/// Refuses a name whose format is not written: compressed files, and formats of other kinds of data.
pub fn check_name(path: &Path) -> Result<()> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some(end @ ("gz" | "zst")) => Err(Error::request(
            format!("{}: vectors are written plain", path.display()),
            format!("leave .{end} off, and compress the file afterwards"),
        )),
        Some(
            end @ ("csv" | "tsv" | "json" | "jsonl" | "npz" | "safetensors" | "parquet" | "kv"
            | "pt"),
        ) => Err(Error::request(
            format!("{}: vectors are not written as .{end}", path.display()),
            "name a file .vec or .txt (text with a header), .bin (Word2Vec's binary), .glove \
                 (GloVe's text) or .npy (an array beside a .vocab), or set `format`",
        )),
        _ => Ok(()),
    }
}

impl VectorFormat {
    /// What a file of this name is written as: `.bin` is binary, `.npy` an array, `.glove` GloVe's
    /// text, and everything else text with a header.
    pub fn for_name(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("bin") => VectorFormat::Binary,
            Some("npy") => VectorFormat::Npy,
            Some("glove") => VectorFormat::Glove,
            _ => VectorFormat::Text,
        }
    }
}

/// A file being read, from its first byte.
struct VectorReader<'a> {
    path: &'a Path,
    size: u64,
    first: usize,
    reader: Box<dyn BufRead>,
}

impl VectorReader<'_> {
    /// Says that reading went wrong: the system's fault, or a compressed file's.
    fn unreadable(&self, error: io::Error) -> Error {
        unreadable(self.path, error)
    }

    /// How many rows to make room for: as many as promised, but no more than a plain file can hold
    /// where a value takes so many bytes, since a header may lie. Tables grow where there are more.
    fn room(&self, promised: usize, dim: usize, bytes: u64) -> usize {
        let possible = self.size / (dim as u64).saturating_mul(bytes).max(1) + 1;
        promised.min(self.first).min(usize::try_from(possible).unwrap_or(usize::MAX))
    }
}

/// Recognises a format by a file's first bytes.
fn recognize(head: &[u8]) -> VectorFormat {
    if head.starts_with(b"\x93NUMPY") {
        return VectorFormat::Npy;
    }
    let (line, rest) = match head.iter().position(|&byte| byte == b'\n') {
        Some(at) => (&head[..at], &head[at + 1..]),
        None => (head, &head[..0]),
    };
    let Some((_, dim)) = header(line) else { return VectorFormat::Glove };
    let row = rest.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let columns = row.split(|byte| byte.is_ascii_whitespace()).filter(|column| !column.is_empty());
    // Where all is text, it is text with whatever fault; else one row of text must show it, since a
    // word further down may be in another encoding.
    let text = printable(rest) || (printable(row) && columns.count() == dim + 1);
    if text { VectorFormat::Text } else { VectorFormat::Binary }
}

/// Whether bytes are letters of UTF-8, spaces and line breaks, but for a letter cut at the end. The
/// values of a binary file are not.
fn printable(bytes: &[u8]) -> bool {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).expect("valid up to there")
        }
        Err(_) => return false,
    };
    text.chars().all(|letter| !letter.is_control() || letter.is_ascii_whitespace())
}

/// The count and the dimension that a header names.
fn header(line: &[u8]) -> Option<(usize, usize)> {
    let mut numbers = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    let (count, dim) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
    numbers.next().is_none().then_some((count, dim))
}

/// Refuses a count or a dimension of nothing, and a dimension that no vector of the file can have.
fn check_header(input: &VectorReader<'_>, count: usize, dim: usize) -> Result<()> {
    let path = input.path;
    if count == 0 || dim == 0 {
        let reason = format!("the header promises {count} vectors of {dim} values");
        return Err(Error::line(path, 1, reason, "give a file that holds vectors"));
    }
    if dim as u64 > input.size.saturating_mul(MOST_COMPRESSED) {
        let reason =
            format!("the header promises {dim} values a vector, more than the file can hold");
        return Err(Error::line(path, 1, reason, "mend its first line, or download it again"));
    }
    Ok(())
}

fn check_count(path: &Path, promised: usize, found: usize, first: usize) -> Result<()> {
    if found >= promised.min(first) {
        return Ok(());
    }
    let reason = format!("the header promises {promised} vectors, and {found} are there");
    Err(Error::file(
        path,
        reason,
        "the file is cut short: download it again, or mend its first line",
    ))
}

fn unreadable(path: &Path, error: io::Error) -> Error {
    ::text::unreadable(&terms::display_name(path), error)
}

/// Words that would end in the wrong column or on the wrong line are not written.
fn check_words(vectors: &WordVectors, path: &Path) -> Result<()> {
    match vectors.words().find(|word| word.contains(|c: char| c.is_ascii_whitespace())) {
        None => Ok(()),
        Some(word) => Err(Error::file(
            path,
            format!("the word {word:?} has white space in it, which no vector file can hold"),
            "put another character in its place, such as `_`",
        )),
    }
}

#[cfg(test)]
mod tests;
