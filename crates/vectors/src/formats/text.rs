//! A word and its values on each line, with a header or without.

use std::io::{BufRead, Read, Write};
use std::path::Path;

use super::{VectorReader, check_count, check_header, header};
use crate::table::WordVectors;
use crate::{Error, Result};

/// A longer line is no vector.
const LONGEST_LINE: u64 = 1 << 26;
const NO_HEADER: &str =
    "read it as GloVe's format, or put the count and the dimension on a line before";
const MEND: &str = "mend or remove the line";

pub(super) fn read(input: &mut VectorReader<'_>, with_header: bool) -> Result<WordVectors> {
    let path = input.path;
    let mut line = Vec::new();
    let mut number = 1;
    read_line(input, number, &mut line)?;
    let (promised, dim) = if with_header {
        let Some((count, dim)) = header(&line) else {
            let reason = "no header of two numbers, the count and the dimension";
            return Err(Error::line(path, 1, reason, NO_HEADER));
        };
        check_header(input, count, dim)?;
        number += 1;
        if !read_line(input, number, &mut line)? {
            check_count(path, count, 0, input.first)?;
        }
        (Some(count), dim)
    } else {
        let columns = line.split(|&byte| is_separator(byte)).filter(|part| !part.is_empty());
        (None, columns.count().saturating_sub(1))
    };
    if dim == 0 {
        return Err(Error::line(path, number, "a word without values", "give a file of vectors"));
    }
    let mut vectors = WordVectors::with_capacity(dim, input.room(promised.unwrap_or(0), dim, 2));
    let mut row = Vec::with_capacity(input.room(dim, 1, 2));
    loop {
        if promised == Some(vectors.len()) {
            let reason =
                format!("the header promises {} vectors, and here is another", vectors.len());
            return Err(Error::line(
                path,
                number,
                reason,
                "mend the first line, or remove the rest",
            ));
        }
        add(&line, dim, &mut row, &mut vectors)
            .map_err(|(reason, remedy)| Error::line(path, number, reason, remedy))?;
        number += 1;
        if vectors.len() == input.first || !read_line(input, number, &mut line)? {
            break;
        }
        if line.is_empty() {
            check_end(input, number, &mut line)?;
            break;
        }
    }
    check_count(path, promised.unwrap_or(0), vectors.len(), input.first)?;
    Ok(vectors)
}

/// Refuses a blank line after which vectors go on; at the end of a file, blank lines are no fault.
fn check_end(input: &mut VectorReader<'_>, blank: u64, line: &mut Vec<u8>) -> Result<()> {
    let mut number = blank + 1;
    while read_line(input, number, line)? {
        if !line.is_empty() {
            let reason = format!("is blank, and vectors go on at line {number}");
            return Err(Error::line(input.path, blank, reason, MEND));
        }
        number += 1;
    }
    Ok(())
}

/// Reads the next line, without its end; false where there is none.
fn read_line(input: &mut VectorReader<'_>, number: u64, line: &mut Vec<u8>) -> Result<bool> {
    line.clear();
    let read = input.reader.by_ref().take(LONGEST_LINE).read_until(b'\n', line);
    read.map_err(|error| input.unreadable(error))?;
    if line.len() as u64 == LONGEST_LINE {
        let reason = format!("is longer than {LONGEST_LINE} bytes");
        return Err(Error::line(input.path, number, reason, "give a file of vectors as text"));
    }
    let there = !line.is_empty();
    while line.last().is_some_and(u8::is_ascii_whitespace) {
        line.pop();
    }
    Ok(there)
}

fn is_separator(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// Adds a line to the table, or says what is wrong with it and what to do.
fn add(
    line: &[u8],
    dim: usize,
    row: &mut Vec<f32>,
    vectors: &mut WordVectors,
) -> std::result::Result<(), (String, &'static str)> {
    let line = std::str::from_utf8(line).map_err(|_| {
        (
            "is not UTF-8".to_owned(),
            "convert the file, for example with iconv, or download it again",
        )
    })?;
    let (word, values) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    row.clear();
    for value in values.split_ascii_whitespace() {
        let Ok(value) = value.parse() else {
            let column = row.len() + 2;
            return Err((format!("column {column} is `{value}`, which is not a number"), MEND));
        };
        row.push(value);
    }
    if row.len() != dim {
        let reason = format!("`{word}` has {} values, not {dim}", row.len());
        return Err((reason, "mend or remove the line (a word may hold no space)"));
    }
    vectors.push(word.to_owned(), row).map_err(|reason| (reason, MEND))
}

/// Values are written with as many digits as bring the same bits back.
pub(super) fn write(path: &Path, vectors: &WordVectors, with_header: bool) -> Result<()> {
    Ok(files::write_with(path, |writer| {
        if with_header {
            writeln!(writer, "{} {}", vectors.len(), vectors.dim())?;
        } else if vectors.words().next().is_some_and(|word| word.starts_with('\u{feff}')) {
            // A reader takes one mark away, and the word is to keep its own.
            write!(writer, "\u{feff}")?;
        }
        for (number, word) in vectors.words().enumerate() {
            writer.write_all(word.as_bytes())?;
            for value in vectors.row(number) {
                write!(writer, " {value}")?;
            }
            writer.write_all(b"\n")?;
        }
        Ok(())
    })?)
}
