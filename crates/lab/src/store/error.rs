//! What can go wrong with the store, with reason and remedy.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::record::Record;

pub type Result<T> = std::result::Result<T, Error>;

/// Why the store could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "{0}: there are no results yet; run a study (`isogloss study list` names them), or name another \
         laboratory's folder"
    )]
    Missing(PathBuf),
    #[error("{0}: this is not a store of results; name another folder, or move the file away")]
    Foreign(PathBuf),
    #[error(
        "{path}: the store has version {found} of the schema, this program writes {known}; use the program \
         that wrote it, or another laboratory's folder"
    )]
    Version { path: PathBuf, found: i64, known: i64 },
    /// The file was a store and was overwritten or truncated.
    #[error(
        "{path}: the store is damaged ({reason}); move it away and run the studies again: steps \
         that are complete are not run again"
    )]
    Damaged { path: PathBuf, reason: String },
    #[error(
        "study {study}, {measure}, {factors}: the value is {value}, not a finite number; the step \
         that gave it is {step}"
    )]
    NotFinite { study: String, measure: String, factors: String, value: f64, step: String },
    #[error(transparent)]
    Files(#[from] files::Error),
    #[error(
        "{path}: cannot {doing} the store (check its permissions and the free space of the disk)"
    )]
    Sqlite {
        path: PathBuf,
        doing: &'static str,
        /// SQLite's own words; printed with the chain of causes.
        source: rusqlite::Error,
    },
}

impl terms::Fault for Error {}

impl Error {
    pub(super) fn unwritable(&self) -> bool {
        let Error::Sqlite { source, .. } = self else { return false };
        matches!(source.sqlite_error_code(), Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen))
    }

    pub(super) fn sqlite(path: &Path, doing: &'static str, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match (source.sqlite_error_code(), &source) {
            (Some(ErrorCode::NotADatabase), _) => Error::Foreign(path),
            (Some(ErrorCode::DatabaseCorrupt), _)
            | (_, rusqlite::Error::FromSqlConversionFailure(..)) => {
                Error::Damaged { path, reason: source.to_string() }
            }
            _ => Error::Sqlite { path, doing, source },
        }
    }

    pub(super) fn not_finite(record: &Record) -> Self {
        let factors = record.factors.iter().map(|(name, value)| format!("{name}={value}"));
        Error::NotFinite {
            study: record.origin.study.clone(),
            measure: record.measure.clone(),
            factors: factors.collect::<Vec<_>>().join(" "),
            value: record.value,
            step: record.origin.step.clone(),
        }
    }
}
