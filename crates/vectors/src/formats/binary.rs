//! Word2Vec's binary: a header, then each word, a space, and its values as 32-bit floats.

use std::io::{BufRead, ErrorKind, Read, Write};
use std::path::Path;

use super::{VectorReader, check_count, check_header, header};
use crate::table::WordVectors;
use crate::{Error, Result};

/// A longer word is no word, and the file not what it claims to be.
const LONGEST_WORD: u64 = 1 << 16;
const DAMAGED: &str =
    "the file is damaged or not Word2Vec's binary: download it again, or say its format";

pub(super) fn read(input: &mut VectorReader<'_>) -> Result<WordVectors> {
    let path = input.path;
    let mut bytes = Vec::new();
    let read = input.reader.by_ref().take(100).read_until(b'\n', &mut bytes);
    read.map_err(|error| input.unreadable(error))?;
    let Some((count, dim)) = header(&bytes) else {
        let reason = "no header of two numbers, the count and the dimension";
        return Err(Error::line(path, 1, reason, DAMAGED));
    };
    check_header(input, count, dim)?;
    let mut vectors = WordVectors::with_capacity(dim, input.room(count, dim, 4));
    let mut row = Vec::with_capacity(input.room(dim, 1, 4));
    while vectors.len() < count.min(input.first) {
        let number = vectors.len() as u64 + 1;
        let bad = |reason: String| Error::line(path, number, reason, DAMAGED);
        let Some(word) = read_word(input, &mut bytes)? else { break };
        let word = word.map_err(|reason| bad(reason.to_owned()))?;
        if !read_row(input, dim, &mut row)? {
            return Err(bad(format!("the file ends within the vector of `{word}`")));
        }
        vectors.push(word, &row).map_err(bad)?;
    }
    check_count(path, count, vectors.len(), input.first)?;
    let mut rest = Vec::new();
    if vectors.len() < input.first {
        let read = input.reader.by_ref().take(2).read_to_end(&mut rest);
        read.map_err(|error| input.unreadable(error))?;
    }
    if rest.iter().any(|byte| !byte.is_ascii_whitespace()) {
        let reason = format!("goes on after the {count} vectors that its header promises");
        return Err(Error::file(path, reason, DAMAGED));
    }
    Ok(vectors)
}

/// The next word, or why what stands there is none; nothing at the end of the file.
fn read_word(
    input: &mut VectorReader<'_>,
    bytes: &mut Vec<u8>,
) -> Result<Option<std::result::Result<String, &'static str>>> {
    bytes.clear();
    let read = input.reader.by_ref().take(LONGEST_WORD).read_until(b' ', bytes);
    read.map_err(|error| input.unreadable(error))?;
    // Word2Vec ends each row with a line break, gensim does not.
    let word = bytes.strip_prefix(b"\n").unwrap_or(bytes);
    if word.is_empty() {
        return Ok(None);
    }
    let Some(word) = word.strip_suffix(b" ") else {
        return Ok(Some(Err("a word without an end")));
    };
    let word = std::str::from_utf8(word).map_err(|_| "the word is not UTF-8");
    Ok(Some(word.map(str::to_owned)))
}

/// Reads the values of a row; false where the file ends before them.
fn read_row(input: &mut VectorReader<'_>, dim: usize, row: &mut Vec<f32>) -> Result<bool> {
    row.clear();
    let mut value = [0; 4];
    for _ in 0..dim {
        match input.reader.read_exact(&mut value) {
            Ok(()) => row.push(f32::from_le_bytes(value)),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(input.unreadable(error)),
        }
    }
    Ok(true)
}

pub(super) fn write(path: &Path, vectors: &WordVectors) -> Result<()> {
    Ok(files::write_with(path, |writer| {
        writeln!(writer, "{} {}", vectors.len(), vectors.dim())?;
        for (number, word) in vectors.words().enumerate() {
            write!(writer, "{word} ")?;
            for value in vectors.row(number) {
                writer.write_all(&value.to_le_bytes())?;
            }
            writer.write_all(b"\n")?;
        }
        Ok(())
    })?)
}
