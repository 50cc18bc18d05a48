//! What became of the rows of parallel text, which every command that reads such text reports.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Rows of parallel text: how many were read, and how many were left out for which reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowCounts {
    /// Rows that were read.
    pub rows: usize,
    /// Rows that equal an earlier row on every side, and are left out.
    pub repeated: usize,
    /// Rows with a side that is longer than a model reads, left out.
    pub too_long: usize,
    /// Rows that were used.
    pub used: usize,
}

impl RowCounts {
    /// Where every row is used.
    pub fn all(rows: usize) -> Self {
        Self { rows, used: rows, ..Self::default() }
    }
}

impl fmt::Display for RowCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, repeated, too_long, used } = self;
        if used == rows {
            return write!(f, "{rows} rows");
        }
        write!(f, "{used} of {rows} rows ({repeated} repeated, {too_long} too long)")
    }
}
