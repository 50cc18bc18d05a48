//! Words and their vectors.

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

use crate::{Error, Result};

/// A vector for each of a list of words, no word twice, every value finite.
#[derive(Clone, Debug, PartialEq)]
pub struct WordVectors {
    words: IndexSet<String, FxBuildHasher>,
    dim: usize,
    /// Words x dim.
    values: Vec<f32>,
}

impl WordVectors {
    /// Puts words and the rows of their vectors together. Refuses what no table may be: without
    /// words or columns, of another size than it says, with a word twice, with a value that is not
    /// finite.
    pub fn new(words: Vec<String>, dim: usize, values: Vec<f32>) -> Result<Self> {
        if words.is_empty() || dim == 0 {
            return Err(Error::request("no vectors", "give at least one word and one column"));
        }
        if words.len().checked_mul(dim) != Some(values.len()) {
            let (rows, found) = (words.len(), values.len());
            let reason = format!("{rows} words of {dim} columns do not have {found} values");
            return Err(Error::request(reason, "give a row for each word"));
        }
        let mut vectors = Self::with_capacity(dim, words.len());
        for (word, row) in words.into_iter().zip(values.chunks_exact(dim)) {
            vectors.push(word, row).map_err(|reason| {
                Error::request(reason, "give each word one row of finite values")
            })?;
        }
        Ok(vectors)
    }

    /// An empty table to be filled by [`push`](Self::push).
    pub(crate) fn with_capacity(dim: usize, rows: usize) -> Self {
        let words = IndexSet::with_capacity_and_hasher(rows, FxBuildHasher);
        Self { words, dim, values: Vec::with_capacity(rows * dim) }
    }

    /// Adds a row of `dim` values, or says why it cannot be one.
    pub(crate) fn push(&mut self, word: String, row: &[f32]) -> std::result::Result<(), String> {
        debug_assert_eq!(row.len(), self.dim);
        if word.is_empty() {
            return Err("has a vector but no word".to_owned());
        }
        if let Some(column) = row.iter().position(|value| !value.is_finite()) {
            let (value, column) = (row[column], column + 1);
            return Err(format!("`{word}` has {value} in column {column}, which is not finite"));
        }
        match self.words.insert_full(word) {
            (_, true) => {
                self.values.extend_from_slice(row);
                Ok(())
            }
            (first, false) => {
                Err(format!("`{}` is there already, as number {}", self.words[first], first + 1))
            }
        }
    }

    /// How many words there are.
    #[expect(clippy::len_without_is_empty, reason = "a table always has a word")]
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Columns.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The words in the order of their rows, most often by falling frequency.
    pub fn words(&self) -> impl ExactSizeIterator<Item = &str> {
        self.words.iter().map(String::as_str)
    }

    /// The word of a row.
    pub fn word(&self, row: usize) -> &str {
        &self.words[row]
    }

    /// The row of a word.
    pub fn position(&self, word: &str) -> Option<usize> {
        self.words.get_index_of(word)
    }

    /// The vector of a word.
    pub fn get(&self, word: &str) -> Option<&[f32]> {
        self.position(word).map(|row| self.row(row))
    }

    /// The vector in a row.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.dim..(row + 1) * self.dim]
    }

    /// All vectors, words x dim.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The words and the values, words x dim.
    pub fn into_parts(self) -> (Vec<String>, Vec<f32>) {
        (self.words.into_iter().collect(), self.values)
    }
}

impl From<&WordVectors> for arrays::Matrix {
    fn from(vectors: &WordVectors) -> Self {
        Self::new(vectors.len(), vectors.dim(), vectors.values().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn a_word_finds_its_row() {
        let vectors = WordVectors::new(words(&["a", "b"]), 2, vec![1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!(vectors.get("b"), Some(&[3.0, 4.0][..]));
        assert_eq!((vectors.position("a"), vectors.get("c")), (Some(0), None));
        assert_eq!((vectors.word(1), vectors.len(), vectors.dim()), ("b", 2, 2));
    }

    #[test]
    fn what_is_no_table_is_refused_with_a_reason() {
        let refused = |names: &[&str], dim, values: Vec<f32>| {
            WordVectors::new(words(names), dim, values).unwrap_err().to_string()
        };
        assert!(refused(&[], 2, vec![]).contains("no vectors"));
        assert!(refused(&["a"], 2, vec![1.0]).contains("1 words of 2 columns"));
        assert!(refused(&["a", "a"], 1, vec![1.0, 2.0]).contains("`a` is there already"));
        assert!(refused(&["a"], 2, vec![1.0, f32::NAN]).contains("NaN in column 2"));
        assert!(refused(&[""], 1, vec![1.0]).contains("no word"));
    }
}
