//! Where numbers are kept: one SQLite file that several studies may write to at once.
//!
//! A number is known by study, scale, seed, measure and factors; adding it again replaces it, so that
//! a study that is run twice does not count twice. What a step gives is filed as a whole: whatever it
//! gave before and gives no longer is gone. What is added together appears together or not at all,
//! whenever the process is killed.

mod error;
mod file;
mod filter;

pub use error::{Error, Result};
pub use filter::{Filter, natural};

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use rusqlite::{Connection, Row, TransactionBehavior, params};

use crate::record::{Note, Origin, Record};

/// Name of the store's file in a laboratory's folder.
pub const FILE: &str = "results.sqlite";

/// A step whose numbers are filed as a whole.
#[derive(Clone, Debug)]
pub struct Filed<'a> {
    /// The study that it is filed for.
    pub study: &'a str,
    /// At which scale.
    pub scale: &'a str,
    /// Its key.
    pub step: &'a str,
    /// The seeds that its numbers belong to.
    pub seeds: Vec<u64>,
}

/// The numbers of a laboratory. Threads may share one; processes open one each.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    connection: Mutex<Connection>,
}

impl Store {
    /// Opens the store at `path`, and makes it, with the folder it lies in, where there is none.
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Self { connection: Mutex::new(file::open(path)?), path: path.to_owned() })
    }

    /// Opens a store that must be there already, also where nothing may be written.
    pub fn existing(path: &Path) -> Result<Self> {
        if !path.exists() {
            return Err(Error::Missing(path.to_owned()));
        }
        Self::open(path).or_else(|error| {
            let unwritable = error.unwritable().then(|| file::open_unwritable(path)).transpose()?;
            let connection = unwritable.flatten().ok_or(error)?;
            Ok(Self { connection: Mutex::new(connection), path: path.to_owned() })
        })
    }

    /// Adds all of these or, where one is refused, none.
    pub fn add(&self, records: &[Record], notes: &[Note]) -> Result<()> {
        self.write(None, records, notes)
    }

    /// Files all that a step gives a study for some seeds, in place of what it gave them before.
    pub fn file(&self, step: &Filed<'_>, records: &[Record], notes: &[Note]) -> Result<()> {
        self.write(Some(step), records, notes)
    }

    fn write(&self, step: Option<&Filed<'_>>, records: &[Record], notes: &[Note]) -> Result<()> {
        if let Some(record) = records.iter().find(|record| !record.value.is_finite()) {
            return Err(Error::not_finite(record));
        }
        let mut connection = self.connection();
        let mut write = || -> rusqlite::Result<()> {
            // Taking the write lock at once means waiting for it at once, rather than failing halfway.
            let writing = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            step.map_or(Ok(()), |step| forget(&writing, step))?;
            add_records(&writing, records)?;
            add_notes(&writing, notes)?;
            writing.commit()
        };
        write().map_err(|source| Error::sqlite(&self.path, "write to", source))
    }

    /// The numbers that a filter keeps, in the order of study, scale, measure, factors and seed.
    pub fn records(&self, filter: &Filter) -> Result<Vec<Record>> {
        let sql = "SELECT study, scale, seed, step, command, version, made, factors, \
                   measure, value, signature, files FROM records";
        let mut records = self.read(sql, |row| {
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

    /// The notes that a filter keeps (its measures are their names), in the same order.
    pub fn notes(&self, filter: &Filter) -> Result<Vec<Note>> {
        let sql = "SELECT study, scale, seed, step, command, version, made, factors, name, text FROM notes";
        let mut notes = self.read(sql, |row| {
            Ok(Note {
                origin: origin(row)?,
                factors: json(row, 7)?,
                name: row.get(8)?,
                text: row.get(9)?,
            })
        })?;
        notes.retain(|note| filter.keeps(&note.origin, &note.name, &note.factors));
        notes.sort_by(|a, b| {
            filter::order((&a.origin, &a.name, &a.factors), (&b.origin, &b.name, &b.factors))
        });
        Ok(notes)
    }

    fn read<T>(
        &self,
        sql: &str,
        each: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let connection = self.connection();
        let read = || -> rusqlite::Result<Vec<T>> {
            connection.prepare(sql)?.query_map([], each)?.collect()
        };
        read().map_err(|source| Error::sqlite(&self.path, "read", source))
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        // A thread that panicked here left a transaction that was rolled back: nothing is half done.
        self.connection.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Takes away what a step has filed.
fn forget(connection: &Connection, filed: &Filed<'_>) -> rusqlite::Result<()> {
    for table in ["records", "notes"] {
        let mut delete = connection.prepare(&format!(
            "DELETE FROM {table} WHERE study = ?1 AND scale = ?2 AND seed = ?3 AND step = ?4"
        ))?;
        for seed in &filed.seeds {
            delete.execute(params![filed.study, filed.scale, seed.cast_signed(), filed.step])?;
        }
    }
    Ok(())
}

fn add_records(connection: &Connection, records: &[Record]) -> rusqlite::Result<()> {
    let mut insert = connection.prepare(
        "INSERT OR REPLACE INTO records (study, scale, seed, step, command, version, made, \
         factors, measure, value, signature, files) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?;
    for Record { origin, measure, factors, value, signature, files } in records {
        insert.execute(params![
            origin.study,
            origin.scale,
            origin.seed.cast_signed(),
            origin.step,
            origin.command,
            origin.version,
            origin.made.cast_signed(),
            in_json(factors),
            measure,
            value,
            signature,
            in_json(files),
        ])?;
    }
    Ok(())
}

fn add_notes(connection: &Connection, notes: &[Note]) -> rusqlite::Result<()> {
    let mut insert = connection.prepare(
        "INSERT OR REPLACE INTO notes (study, scale, seed, step, command, version, made, \
         factors, name, text) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?;
    for Note { origin, name, factors, text } in notes {
        insert.execute(params![
            origin.study,
            origin.scale,
            origin.seed.cast_signed(),
            origin.step,
            origin.command,
            origin.version,
            origin.made.cast_signed(),
            in_json(factors),
            name,
            text,
        ])?;
    }
    Ok(())
}

/// Factors are part of the key; a sorted map gives the same text for the same factors.
fn in_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("text and lists of text are always valid JSON")
}

fn json<T: serde::de::DeserializeOwned>(row: &Row<'_>, index: usize) -> rusqlite::Result<T> {
    let text: String = row.get(index)?;
    serde_json::from_str(&text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(index, rusqlite::types::Type::Text, error.into())
    })
}

/// SQLite's numbers are signed; seeds and times keep their bits.
fn origin(row: &Row<'_>) -> rusqlite::Result<Origin> {
    Ok(Origin {
        study: row.get(0)?,
        scale: row.get(1)?,
        seed: row.get::<_, i64>(2)?.cast_unsigned(),
        step: row.get(3)?,
        command: row.get(4)?,
        version: row.get(5)?,
        made: row.get::<_, i64>(6)?.cast_unsigned(),
    })
}
