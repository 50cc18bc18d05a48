//! The store of results: one SQLite file that several studies may write to at once.
//!
//! A record's primary key is study, scale, seed, measure and factors; adding it again replaces it, so that a study
//! that is run twice does not count twice. The records of a step are written as a whole: whatever the step gave
//! before and gives no longer is deleted. Every write is one transaction, so that a killed process leaves all of it or
//! nothing. SQLite has no checksums, so that every row carries a digest of its own, which is verified when it is read.

mod error;
mod file;
mod filter;
mod settings;

pub use error::{Error, Result};
pub use filter::{RecordFilter, natural};
pub use settings::SettingsScope;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use rusqlite::{Connection, Row, TransactionBehavior, params};

use crate::record::{Origin, Record, TextRecord};

/// The store's file name in a laboratory's folder.
pub const FILE: &str = "results.sqlite";

/// Which records belong to one run of a step, and are replaced together.
#[derive(Clone, Debug)]
pub struct StepScope<'a> {
    /// The study that it was run for.
    pub study: &'a str,
    /// At which scale.
    pub scale: &'a str,
    /// Its key.
    pub step: &'a str,
    /// The seeds that its records belong to.
    pub seeds: Vec<u64>,
}

/// The records of a laboratory. Threads may share one; processes open one each.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    connection: Mutex<Connection>,
    /// The expression of a row's digest: none in a store of an older release that cannot be written to.
    digest: &'static str,
}

impl Store {
    /// Opens the store at `path`; creates it, with its folder, where there is none.
    pub fn open(path: &Path) -> Result<Self> {
        Self::of(file::open(path)?, path)
    }

    fn of(connection: Connection, path: &Path) -> Result<Self> {
        let digests = file::has_digests(&connection);
        let digests = digests.map_err(|source| Error::sqlite(path, "read", source))?;
        let digest = if digests { "blake3" } else { "NULL" };
        Ok(Self { path: path.to_owned(), connection: Mutex::new(connection), digest })
    }

    /// Opens a store that must exist already, also in a read-only place.
    pub fn existing(path: &Path) -> Result<Self> {
        if !path.exists() {
            return Err(Error::Missing(path.to_owned()));
        }
        Self::open(path).or_else(|error| {
            let unwritable = error.unwritable().then(|| file::open_unwritable(path)).transpose()?;
            Self::of(unwritable.flatten().ok_or(error)?, path)
        })
    }

    /// Adds all of these or, where one is refused, none.
    pub fn add(&self, records: &[Record], texts: &[TextRecord]) -> Result<()> {
        self.write(None, records, texts)
    }

    /// Writes all records of a step, in place of those that it gave before.
    pub fn replace(
        &self,
        step: &StepScope<'_>,
        records: &[Record],
        texts: &[TextRecord],
    ) -> Result<()> {
        self.write(Some(step), records, texts)
    }

    fn write(
        &self,
        step: Option<&StepScope<'_>>,
        records: &[Record],
        texts: &[TextRecord],
    ) -> Result<()> {
        if let Some(record) = records.iter().find(|record| !record.value.is_finite()) {
            return Err(Error::not_finite(record));
        }
        let mut connection = self.connection();
        let mut write = || -> rusqlite::Result<()> {
            // Immediate: waits for the write lock here rather than failing halfway.
            let writing = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            step.map_or(Ok(()), |step| delete(&writing, step))?;
            add_records(&writing, records)?;
            add_texts(&writing, texts)?;
            writing.commit()
        };
        write().map_err(|source| Error::sqlite(&self.path, "write to", source))
    }

    /// The records that a filter selects, in the order of study, scale, measure, factors and seed.
    pub fn records(&self, filter: &RecordFilter) -> Result<Vec<Record>> {
        let mut records = self.read("measure, value, signature, files", "records", |row| {
            Ok(Record {
                origin: origin(row)?,
                factors: json(row, 7)?,
                measure: row.get(8)?,
                value: row.get(9)?,
                signature: row.get(10)?,
                files: json(row, 11)?,
            })
        })?;
        records.retain(|record| filter.keeps(&record.origin, &record.measure, &record.factors));
        records.sort_by(|a, b| {
            filter::order((&a.origin, &a.measure, &a.factors), (&b.origin, &b.measure, &b.factors))
        });
        Ok(records)
    }

    /// The texts that a filter selects (its measures are their names), in the same order.
    pub fn texts(&self, filter: &RecordFilter) -> Result<Vec<TextRecord>> {
        let mut texts = self.read("name, text", "texts", |row| {
            Ok(TextRecord {
                origin: origin(row)?,
                factors: json(row, 7)?,
                name: row.get(8)?,
                text: row.get(9)?,
            })
        })?;
        texts.retain(|text| filter.keeps(&text.origin, &text.name, &text.factors));
        texts.sort_by(|a, b| {
            filter::order((&a.origin, &a.name, &a.factors), (&b.origin, &b.name, &b.factors))
        });
        Ok(texts)
    }

    /// Reads a table: the columns that all have, these, and the digest of the row, which is verified.
    fn read<T: serde::Serialize>(
        &self,
        columns: &str,
        table: &str,
        mut each: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let connection = self.connection();
        let sql = format!(
            "SELECT study, scale, seed, step, command, build, finished_at, factors, {columns}, {} AS digest FROM {table}",
            self.digest
        );
        let row = |row: &Row<'_>| {
            let (read, seal) = (each(row)?, row.get::<_, Option<String>>("digest")?);
            let sound = seal.is_none_or(|seal| seal == digest(&read));
            Ok(sound.then_some(read))
        };
        let read = || -> rusqlite::Result<Option<Vec<T>>> {
            connection.prepare(&sql)?.query_map([], row)?.collect()
        };
        let read = read().map_err(|source| Error::sqlite(&self.path, "read", source))?;
        read.ok_or_else(|| {
            let reason = format!("a row of `{table}` was altered since it was written");
            Error::Damaged { path: self.path.clone(), reason }
        })
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        // A thread that panicked here left a transaction that was rolled back: nothing is half done.
        self.connection.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Deletes the records of a step.
fn delete(connection: &Connection, scope: &StepScope<'_>) -> rusqlite::Result<()> {
    for table in ["records", "texts"] {
        let mut delete = connection.prepare(&format!(
            "DELETE FROM {table} WHERE study = ?1 AND scale = ?2 AND seed = ?3 AND step = ?4"
        ))?;
        for seed in &scope.seeds {
            delete.execute(params![scope.study, scope.scale, seed.cast_signed(), scope.step])?;
        }
    }
    Ok(())
}

fn add_records(connection: &Connection, records: &[Record]) -> rusqlite::Result<()> {
    let mut insert = connection.prepare(
        "INSERT OR REPLACE INTO records (study, scale, seed, step, command, build, finished_at, \
         factors, measure, value, signature, files, blake3) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    )?;
    for record in records {
        let Record { origin, measure, factors, value, signature, files } = record;
        insert.execute(params![
            origin.study,
            origin.scale,
            origin.seed.cast_signed(),
            origin.step,
            origin.command,
            origin.build,
            origin.finished_at.cast_signed(),
            in_json(factors),
            measure,
            value,
            signature,
            in_json(files),
            digest(record),
        ])?;
    }
    Ok(())
}

fn add_texts(connection: &Connection, texts: &[TextRecord]) -> rusqlite::Result<()> {
    let mut insert = connection.prepare(
        "INSERT OR REPLACE INTO texts (study, scale, seed, step, command, build, finished_at, \
         factors, name, text, blake3) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?;
    for record in texts {
        let TextRecord { origin, name, factors, text } = record;
        insert.execute(params![
            origin.study,
            origin.scale,
            origin.seed.cast_signed(),
            origin.step,
            origin.command,
            origin.build,
            origin.finished_at.cast_signed(),
            in_json(factors),
            name,
            text,
            digest(record),
        ])?;
    }
    Ok(())
}

/// The digest of a row: of all that is read of it.
fn digest(record: &impl serde::Serialize) -> String {
    blake3::hash(in_json(record).as_bytes()).to_hex().to_string()
}

/// Factors are part of the primary key: a sorted map gives the same text for the same factors.
fn in_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("text and lists of text are always valid JSON")
}

fn json<T: serde::de::DeserializeOwned>(row: &Row<'_>, index: usize) -> rusqlite::Result<T> {
    let text: String = row.get(index)?;
    serde_json::from_str(&text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(index, rusqlite::types::Type::Text, error.into())
    })
}

/// SQLite's integers are signed; seeds and times keep their bits.
fn origin(row: &Row<'_>) -> rusqlite::Result<Origin> {
    Ok(Origin {
        study: row.get(0)?,
        scale: row.get(1)?,
        seed: row.get::<_, i64>(2)?.cast_unsigned(),
        step: row.get(3)?,
        command: row.get(4)?,
        build: row.get(5)?,
        finished_at: row.get::<_, i64>(6)?.cast_unsigned(),
    })
}
