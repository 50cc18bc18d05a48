//! The store of results: one SQLite file that several studies may write to at once.
//!
//! A record's primary key is study, scale, seed, measure and factors; adding it again replaces it, so that a study
//! that is run twice does not count twice. The records of a step are written as a whole: whatever the step gave
//! before and gives no longer is deleted, and so is what another step gave for the same slot of the study and seed
//! (what is measured, of which system), since a changed text or test set gives a step another key. Every write is one transaction, so that a killed process leaves all of it or
//! nothing. SQLite has no checksums, so that every row carries a digest of its own, which is verified when it is read.

mod error;
mod file;
mod filter;
mod settings;

pub use error::{Error, Result};
pub use filter::{RecordFilter, natural};
pub use settings::{EnteredSettings, SettingsScope};

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use rusqlite::{Connection, Row, Statement, ToSql, TransactionBehavior, params};

use crate::record::{Factors, Origin, Record, TextRecord};

pub const FILE: &str = "results.sqlite";

/// The records that one run of a step gives for a slot of a study, which are filed and replaced together.
#[derive(Clone, Debug, PartialEq)]
pub struct StepFiling {
    pub origin: Origin,
    /// What they measure, whichever step gives it; none where the step alone says so, as in rows of older releases.
    pub slot: Option<String>,
    pub records: Vec<Record>,
    pub texts: Vec<TextRecord>,
}

/// The records of a laboratory. Threads may share one; processes open one each.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    connection: Mutex<Connection>,
    /// The expression of a row's digest: none in a store of an older release that cannot be written to.
    digest: &'static str,
    /// That of its slot.
    slot: &'static str,
}

impl Store {
    /// Opens the store at `path`; creates it, with its folder, where there is none.
    pub fn open(path: &Path) -> Result<Self> {
        Self::of(file::open(path)?, path)
    }

    fn of(connection: Connection, path: &Path) -> Result<Self> {
        let [digest, slot] = ["blake3", "slot"]
            .map(|column| Ok(if file::has_column(&connection, column)? { column } else { "NULL" }));
        let refused = |source| Error::sqlite(path, "read", source);
        let (digest, slot) = (digest.map_err(refused)?, slot.map_err(refused)?);
        Ok(Self { path: path.to_owned(), connection: Mutex::new(connection), digest, slot })
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
        self.write(records, |writing| {
            add_records(writing, records, None)?;
            add_texts(writing, texts, None)
        })
    }

    /// Writes all records of a step, in place of those that it, or another step for the same slots, gave before.
    pub fn replace(&self, filings: &[StepFiling]) -> Result<()> {
        self.write(filings.iter().flat_map(|filing| &filing.records), |writing| {
            filings.iter().try_for_each(|filing| delete(writing, filing))?;
            filings.iter().try_for_each(|filing| add_filing(writing, filing))
        })
    }

    /// Adds what came from another laboratory; gives how many numbers were added. Filings of which the slot or a number is here
    /// already are left out.
    pub fn merge(&self, filings: &[StepFiling]) -> Result<usize> {
        let mut added = 0;
        self.write(filings.iter().flat_map(|filing| &filing.records), |writing| {
            let new = filings.iter().map(|filing| Ok(!is_there(writing, filing)?));
            let new: Vec<bool> = new.collect::<rusqlite::Result<_>>()?;
            for (filing, _) in filings.iter().zip(new).filter(|(_, new)| *new) {
                add_filing(writing, filing)?;
                added += filing.records.len();
            }
            Ok(())
        })?;
        Ok(added)
    }

    fn write<'r>(
        &self,
        records: impl IntoIterator<Item = &'r Record>,
        write: impl FnOnce(&Connection) -> rusqlite::Result<()>,
    ) -> Result<()> {
        if let Some(record) = records.into_iter().find(|record| !record.value.is_finite()) {
            return Err(Error::not_finite(record));
        }
        let mut connection = self.connection();
        let written = || -> rusqlite::Result<()> {
            // Immediate: waits for the write lock here rather than failing halfway.
            let writing = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            write(&writing)?;
            writing.commit()
        };
        written().map_err(|source| Error::sqlite(&self.path, "write to", source))
    }

    /// All records and texts, as they were filed.
    pub fn filings(&self) -> Result<Vec<StepFiling>> {
        let all = RecordFilter::default();
        let (records, texts) = (self.records(&all)?, self.texts(&all)?);
        let connection = self.connection();
        let slots = |table: &str, named: &str| -> rusqlite::Result<BTreeMap<RowKey, String>> {
            let sql =
                format!("SELECT study, scale, seed, {named}, factors, {} FROM {table}", self.slot);
            let mut select = connection.prepare(&sql)?;
            let rows = select.query_map([], |row| {
                let key = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?);
                Ok(row.get::<_, Option<String>>(5)?.map(|slot| (key, slot)))
            })?;
            rows.filter_map(rusqlite::Result::transpose).collect()
        };
        let read = |source| Error::sqlite(&self.path, "read", source);
        let of_records = slots("records", "measure").map_err(read)?;
        let of_texts = slots("texts", "name").map_err(read)?;
        let mut filings: BTreeMap<(String, Option<String>), StepFiling> = BTreeMap::new();
        for record in records {
            let key = row_key(&record.origin, &record.measure, &record.factors);
            filing(&mut filings, &record.origin, of_records.get(&key)).records.push(record);
        }
        for text in texts {
            let key = row_key(&text.origin, &text.name, &text.factors);
            filing(&mut filings, &text.origin, of_texts.get(&key)).texts.push(text);
        }
        Ok(filings.into_values().collect())
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

/// Study, scale, seed, measure or name, and factors.
type RowKey = (String, String, i64, String, String);

fn row_key(origin: &Origin, named: &str, factors: &Factors) -> RowKey {
    let (study, scale) = (origin.study.clone(), origin.scale.clone());
    (study, scale, origin.seed.cast_signed(), named.to_owned(), in_json(factors))
}

/// The filing of an origin and a slot among others.
fn filing<'a>(
    filings: &'a mut BTreeMap<(String, Option<String>), StepFiling>,
    origin: &Origin,
    slot: Option<&String>,
) -> &'a mut StepFiling {
    let (origin, slot) = (origin.clone(), slot.cloned());
    let (records, texts) = (Vec::new(), Vec::new());
    let key = (in_json(&origin), slot.clone());
    filings.entry(key).or_insert(StepFiling { origin, slot, records, texts })
}

/// Deletes what a step, or another one for the same slot, gave before.
fn delete(connection: &Connection, filing: &StepFiling) -> rusqlite::Result<()> {
    let Origin { study, scale, seed, step, .. } = &filing.origin;
    for table in ["records", "texts"] {
        let mut delete = connection.prepare(&format!(
            "DELETE FROM {table} WHERE study = ?1 AND scale = ?2 AND seed = ?3 AND (step = ?4 OR slot = ?5)"
        ))?;
        delete.execute(params![study, scale, seed.cast_signed(), step, filing.slot])?;
    }
    Ok(())
}

/// Whether there is anything of a filing's slot, or one of its numbers or texts.
fn is_there(connection: &Connection, filing: &StepFiling) -> rusqlite::Result<bool> {
    let Origin { study, scale, seed, .. } = &filing.origin;
    let records = filing.records.iter().map(|one| (&one.measure, &one.factors));
    let texts = filing.texts.iter().map(|one| (&one.name, &one.factors));
    for (table, named, keys) in
        [("records", "measure", records.collect::<Vec<_>>()), ("texts", "name", texts.collect())]
    {
        let of = format!("SELECT 1 FROM {table} WHERE study = ?1 AND scale = ?2 AND seed = ?3");
        let mut slot = connection.prepare(&format!("{of} AND slot = ?4"))?;
        if slot.exists(params![study, scale, seed.cast_signed(), filing.slot])? {
            return Ok(true);
        }
        let mut row = connection.prepare(&format!("{of} AND {named} = ?4 AND factors = ?5"))?;
        for (name, factors) in keys {
            if row.exists(params![study, scale, seed.cast_signed(), name, in_json(factors)])? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn add_filing(connection: &Connection, filing: &StepFiling) -> rusqlite::Result<()> {
    add_records(connection, &filing.records, filing.slot.as_deref())?;
    add_texts(connection, &filing.texts, filing.slot.as_deref())
}

fn add_records(
    connection: &Connection,
    records: &[Record],
    slot: Option<&str>,
) -> rusqlite::Result<()> {
    let columns = "measure, factors, value, signature, files";
    let mut insert = RowInsert::into_table(connection, "records", columns, slot)?;
    records.iter().try_for_each(|record| {
        let Record { origin, measure, factors, value, signature, files } = record;
        let (factors, files) = (in_json(factors), in_json(files));
        insert.row(origin, params![measure, factors, value, signature, files], digest(record))
    })
}

fn add_texts(
    connection: &Connection,
    texts: &[TextRecord],
    slot: Option<&str>,
) -> rusqlite::Result<()> {
    let mut insert = RowInsert::into_table(connection, "texts", "name, factors, text", slot)?;
    texts.iter().try_for_each(|record| {
        let TextRecord { origin, name, factors, text } = record;
        insert.row(origin, params![name, in_json(factors), text], digest(record))
    })
}

/// Adds rows to a table: the columns of every table, and those of this one.
struct RowInsert<'a> {
    statement: Statement<'a>,
    slot: Option<&'a str>,
}

impl<'a> RowInsert<'a> {
    fn into_table(
        connection: &'a Connection,
        table: &str,
        columns: &str,
        slot: Option<&'a str>,
    ) -> rusqlite::Result<Self> {
        let count = 9 + columns.split(',').count();
        let places = (1..=count).map(|place| format!("?{place}")).collect::<Vec<_>>().join(", ");
        let statement = connection.prepare(&format!(
            "INSERT OR REPLACE INTO {table} (study, scale, seed, step, command, build, finished_at, \
             blake3, slot, {columns}) VALUES ({places})"
        ))?;
        Ok(Self { statement, slot })
    }

    fn row(&mut self, origin: &Origin, own: &[&dyn ToSql], digest: String) -> rusqlite::Result<()> {
        let Origin { study, scale, seed, step, command, build, finished_at } = origin;
        let (seed, finished_at) = (seed.cast_signed(), finished_at.cast_signed());
        let common: [&dyn ToSql; 9] =
            [study, scale, &seed, step, command, build, &finished_at, &digest, &self.slot];
        self.statement.execute(&*[&common, own].concat()).map(drop)
    }
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
