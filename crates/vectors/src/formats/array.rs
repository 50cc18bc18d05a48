//! An array of NumPy, and beside it the words, one a line.

use std::io::Write;
use std::path::{Path, PathBuf};

use arrays::npy::{self, Array, Precision};
use files::At;

use crate::table::WordVectors;
use crate::{Error, Result};

const WORDS: &str = "vocab";

/// `a.vocab` beside `a.npy` and `a.npy.gz` alike.
fn beside(path: &Path) -> PathBuf {
    let compressed = path.extension().is_some_and(|end| end == "gz" || end == "zst");
    let plain = if compressed { path.with_extension("") } else { path.to_owned() };
    plain.with_extension(WORDS)
}

pub(super) fn read(path: &Path, first: usize) -> Result<WordVectors> {
    let Array { shape, values } = npy::read_from::<f32>(&mut ::text::open_file(path)?, path)?;
    let &[rows, dim] = &shape[..] else {
        let reason = format!("has {} dimensions, not words by columns", shape.len());
        return Err(Error::file(path, reason, "reshape it in NumPy"));
    };
    let names = beside(path);
    let text = std::fs::read(&names).at(&names, "read the words, one a line")?;
    let Ok(text) = String::from_utf8(text) else {
        return Err(Error::file(&names, "is not UTF-8", "convert it, for example with iconv"));
    };
    let words = text.lines().count();
    if words != rows || dim == 0 {
        let reason = format!("has {words} words for the {rows} rows of {}", path.display());
        return Err(Error::file(&names, reason, "write a word for each row, one a line"));
    }
    let mut vectors = WordVectors::with_capacity(dim, rows.min(first));
    for (number, (word, row)) in text.lines().zip(values.chunks_exact(dim)).take(first).enumerate()
    {
        vectors.push(word.to_owned(), row).map_err(|reason| {
            Error::line(&names, number as u64 + 1, reason, "mend the words or the array")
        })?;
    }
    if vectors.words().len() == 0 {
        return Err(Error::file(path, "holds no vectors", "give a file that holds vectors"));
    }
    Ok(vectors)
}

pub(super) fn write(path: &Path, vectors: &WordVectors) -> Result<()> {
    let names = beside(path);
    let _together = files::lock_outputs([path, &names]);
    // The words first: where the array stands, they do too.
    files::write_with(&names, |writer| {
        vectors.words().try_for_each(|word| writeln!(writer, "{word}"))
    })?;
    let shape = [vectors.len(), vectors.dim()];
    npy::write(path, &shape, vectors.values(), Precision::Single)
}
