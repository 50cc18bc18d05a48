//! The SQLite file: created once, recognised by its application id, and shared between processes.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use files::At;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::error::{Error, Result};

/// SQLite's application id of a results store: "Isog".
const APPLICATION: i64 = 0x4973_6f67;
const VERSION: i64 = 2;
/// The columns that older releases did not have: a row's digest, and what it measures of its study.
const ADDED: [&str; 2] = ["blake3", "slot"];
const PATIENCE: Duration = Duration::from_secs(60);

const TABLES: &str = "
CREATE TABLE records (
    study TEXT NOT NULL, scale TEXT NOT NULL, seed INTEGER NOT NULL,
    measure TEXT NOT NULL, factors TEXT NOT NULL, value REAL NOT NULL,
    signature TEXT NOT NULL, files TEXT NOT NULL,
    step TEXT NOT NULL, command TEXT NOT NULL, build TEXT NOT NULL, finished_at INTEGER NOT NULL,
    blake3 TEXT, slot TEXT,
    PRIMARY KEY (study, scale, seed, measure, factors)
) STRICT, WITHOUT ROWID;
CREATE TABLE texts (
    study TEXT NOT NULL, scale TEXT NOT NULL, seed INTEGER NOT NULL,
    name TEXT NOT NULL, factors TEXT NOT NULL, text TEXT NOT NULL,
    step TEXT NOT NULL, command TEXT NOT NULL, build TEXT NOT NULL, finished_at INTEGER NOT NULL,
    blake3 TEXT, slot TEXT,
    PRIMARY KEY (study, scale, seed, name, factors)
) STRICT, WITHOUT ROWID;";

/// The settings that the records of a study have in common.
const SETTINGS: &str = "
CREATE TABLE IF NOT EXISTS settings (
    study TEXT NOT NULL, scale TEXT NOT NULL, languages TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (study, scale, languages, name)
) STRICT, WITHOUT ROWID;";

/// Opens the file, creating it where there is none, and checks that it is a store and undamaged.
pub(super) fn open(path: &Path) -> Result<Connection> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).at(folder, "make the folder")?;
    }
    let refused = |source| Error::sqlite(path, "open", source);
    let mut connection = Connection::open(path).map_err(refused)?;
    connection.busy_timeout(PATIENCE).map_err(refused)?;
    prepare(&mut connection, path)?;
    refuse_foreign(&connection, path)?;
    // A write-ahead log lets others read while one process writes, and survives a kill.
    patiently(|| connection.pragma_update(None, "journal_mode", "wal")).map_err(refused)?;
    whole(&connection, path)?;
    for column in ADDED {
        if !has_column(&connection, column).map_err(refused)? {
            add_column(&mut connection, column).map_err(refused)?;
        }
    }
    // Stores of older releases have no such table.
    connection.execute_batch(SETTINGS).map_err(refused)?;
    Ok(connection)
}

/// Whether rows have a column; those of older releases lack what was added since.
pub(super) fn has_column(connection: &Connection, column: &str) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*) = 1 FROM pragma_table_info('texts') WHERE name = ?1";
    connection.query_row(sql, [column], |row| row.get(0))
}

/// Gives the tables of an older release a column, which is empty in the rows that are there.
fn add_column(connection: &mut Connection, column: &str) -> rusqlite::Result<()> {
    let adding = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have added it while this one waited.
    if !has_column(&adding, column)? {
        for table in ["records", "texts"] {
            adding.execute_batch(&format!("ALTER TABLE {table} ADD COLUMN {column} TEXT"))?;
        }
    }
    adding.commit()
}

/// Opens a file in a read-only place, which no process can be writing. None where a write-ahead log lies beside it:
/// the file alone is then incomplete.
pub(super) fn open_unwritable(path: &Path) -> Result<Option<Connection>> {
    let log = path.with_extension("sqlite-wal");
    if fs::metadata(log).is_ok_and(|log| log.len() > 0) {
        return Ok(None);
    }
    let refused = |source| Error::sqlite(path, "read", source);
    let escaped: String = path.to_string_lossy().chars().fold(String::new(), |mut uri, c| {
        match c {
            '%' => uri.push_str("%25"),
            '?' => uri.push_str("%3f"),
            '#' => uri.push_str("%23"),
            c => uri.push(c),
        }
        uri
    });
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let uri = format!("file:{escaped}?immutable=1");
    let connection = Connection::open_with_flags(uri, flags).map_err(refused)?;
    match known(&connection).map_err(refused)? {
        (APPLICATION, VERSION) => {}
        (APPLICATION, found) => {
            return Err(Error::Version { path: path.to_owned(), found, known: VERSION });
        }
        _ => return Err(Error::Foreign(path.to_owned())),
    }
    refuse_foreign(&connection, path)?;
    whole(&connection, path)?;
    Ok(Some(connection))
}

/// Refuses a file that holds anything but tables of ours: a view under the name of one may never end, a trigger may do
/// anything, and so may a column that is computed.
fn refuse_foreign(connection: &Connection, path: &Path) -> Result<()> {
    let refused = |source| Error::sqlite(path, "open", source);
    connection.pragma_update(None, "trusted_schema", "off").map_err(refused)?;
    let others = "SELECT count(*) FROM sqlite_schema WHERE NOT (substr(name, 1, 7) = 'sqlite_' AND sql IS NULL
        OR type = 'table' AND name IN ('records', 'texts', 'settings') AND sql NOT LIKE 'CREATE VIRTUAL%')";
    let computed = "SELECT count(*) FROM sqlite_schema AS s JOIN pragma_table_xinfo(s.name) AS c \
        WHERE s.type = 'table' AND c.hidden > 0";
    for sql in [others, computed] {
        let found: i64 = connection.query_row(sql, [], |row| row.get(0)).map_err(refused)?;
        if found > 0 {
            return Err(Error::Foreign(path.to_owned()));
        }
    }
    Ok(())
}

fn whole(connection: &Connection, path: &Path) -> Result<()> {
    let state = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    match state.map_err(|source| Error::sqlite(path, "open", source))? {
        state if state == "ok" => Ok(()),
        reason => Err(Error::Damaged { path: path.to_owned(), reason }),
    }
}

/// The application id and the version of the schema.
fn known(connection: &Connection) -> rusqlite::Result<(i64, i64)> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get(0));
    Ok((number("application_id")?, number("user_version")?))
}

/// Creates the tables in an empty file; refuses one that is no store.
fn prepare(connection: &mut Connection, path: &Path) -> Result<()> {
    let refused = |source| Error::sqlite(path, "open", source);
    if known(connection).map_err(refused)? == (APPLICATION, VERSION) {
        return Ok(());
    }
    let making =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(refused)?;
    // Another process may have created the tables while this one waited.
    let (application, version) = known(&making).map_err(refused)?;
    let empty = making.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0));
    match (application, version) {
        (APPLICATION, VERSION) => Ok(()),
        (APPLICATION, found) => {
            Err(Error::Version { path: path.to_owned(), found, known: VERSION })
        }
        (0, 0) if empty.map_err(refused)? => {
            making.execute_batch(TABLES).map_err(refused)?;
            making.pragma_update(None, "application_id", APPLICATION).map_err(refused)?;
            making.pragma_update(None, "user_version", VERSION).map_err(refused)?;
            making.commit().map_err(refused)
        }
        _ => Err(Error::Foreign(path.to_owned())),
    }
}

/// Retries while another process holds the lock: SQLite's busy timeout does not cover a change of journal mode.
fn patiently<T>(attempt: impl Fn() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let end = Instant::now() + PATIENCE;
    loop {
        match attempt() {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && Instant::now() < end =>
            {
                std::thread::sleep(Duration::from_millis(10));
            }
            result => return result,
        }
    }
}
