//! The settings that all records of a study have in common, entered before its records are.

use std::collections::BTreeMap;

use rusqlite::{Connection, TransactionBehavior, params};
use serde::{Deserialize, Serialize};

use super::{Store, json};
use crate::record::Factors;
use crate::store::error::{Error, Result};

/// The settings of a study's records, as they are entered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnteredSettings {
    pub study: String,
    pub scale: String,
    pub languages: String,
    pub settings: BTreeMap<String, String>,
}

/// Which records have their settings in common.
#[derive(Clone, Copy)]
pub struct SettingsScope<'a> {
    pub study: &'a str,
    pub scale: &'a str,
    pub languages: &'a str,
    /// Whether a record of the study and scale, by its factors, is of that kind.
    pub owns: &'a dyn Fn(&Factors) -> bool,
}

/// How settings are named that an earlier version did not enter with its records.
const UNKNOWN: (&str, &str) = ("all settings", "unknown, of an earlier version");

impl Store {
    pub fn settings(&self) -> Result<Vec<EnteredSettings>> {
        let connection = self.connection();
        let read = || -> rusqlite::Result<Vec<[String; 5]>> {
            let sql = "SELECT study, scale, languages, name, value FROM settings";
            let mut select = connection.prepare(sql)?;
            let rows = select.query_map([], |row| {
                Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?])
            })?;
            rows.collect()
        };
        let rows = read().map_err(|source| Error::sqlite(&self.path, "read", source))?;
        let mut scopes: BTreeMap<[String; 3], BTreeMap<String, String>> = BTreeMap::new();
        for [study, scale, languages, name, value] in rows {
            scopes.entry([study, scale, languages]).or_default().insert(name, value);
        }
        let scopes = scopes.into_iter().map(|([study, scale, languages], settings)| {
            EnteredSettings { study, scale, languages, settings }
        });
        Ok(scopes.collect())
    }

    /// Enters settings and gives back, by name, those that differ from the settings of records that are there; then nothing
    /// is entered. With `force` such records are deleted. Settings of which there are no records do not count; records without
    /// settings are of an earlier version and differ.
    pub fn enter_settings(
        &self,
        scope: &SettingsScope<'_>,
        settings: &BTreeMap<String, String>,
        force: bool,
    ) -> Result<BTreeMap<String, String>> {
        let mut connection = self.connection();
        let mut enter = || -> rusqlite::Result<_> {
            let entering = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let mut differing = entered(&entering, scope)?;
            let unknown = differing.is_empty();
            if !unknown && settings.iter().all(|(name, value)| differing.get(name) == Some(value)) {
                return Ok(BTreeMap::new());
            }
            differing.retain(|name, value| settings.get(name).is_some_and(|own| own != value));
            if unknown || !differing.is_empty() {
                let rows = [owned(&entering, scope, "measure")?, owned(&entering, scope, "name")?];
                if !force && rows.iter().any(|rows| !rows.is_empty()) {
                    if unknown {
                        differing.insert(UNKNOWN.0.to_owned(), UNKNOWN.1.to_owned());
                    }
                    return Ok(differing);
                }
                delete(&entering, scope, rows)?;
            }
            let mut insert =
                entering.prepare("INSERT OR REPLACE INTO settings VALUES (?1, ?2, ?3, ?4, ?5)")?;
            for (name, value) in settings {
                insert.execute(params![scope.study, scope.scale, scope.languages, name, value])?;
            }
            drop(insert);
            entering.commit()?;
            Ok(BTreeMap::new())
        };
        enter().map_err(|source| Error::sqlite(&self.path, "write to", source))
    }
}

fn entered(
    connection: &Connection,
    scope: &SettingsScope<'_>,
) -> rusqlite::Result<BTreeMap<String, String>> {
    let sql = "SELECT name, value FROM settings WHERE study = ?1 AND scale = ?2 AND languages = ?3";
    let mut select = connection.prepare(sql)?;
    let rows = select.query_map(params![scope.study, scope.scale, scope.languages], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    rows.collect()
}

/// The rest of a row's primary key: seed, measure or name, and factors.
type RowKey = (i64, String, String);

/// The rows of a scope: those of the table whose key has this column.
fn owned(
    connection: &Connection,
    scope: &SettingsScope<'_>,
    column: &str,
) -> rusqlite::Result<Vec<RowKey>> {
    let sql = format!(
        "SELECT seed, {column}, factors FROM {} WHERE study = ?1 AND scale = ?2",
        of(column)
    );
    let mut select = connection.prepare(&sql)?;
    let rows = select.query_map(params![scope.study, scope.scale], |row| {
        let owned = (scope.owns)(&json(row, 2)?);
        Ok(owned.then_some((row.get(0)?, row.get(1)?, row.get(2)?)))
    })?;
    rows.filter_map(rusqlite::Result::transpose).collect()
}

fn of(column: &str) -> &'static str {
    if column == "measure" { "records" } else { "texts" }
}

fn delete(
    connection: &Connection,
    scope: &SettingsScope<'_>,
    rows: [Vec<RowKey>; 2],
) -> rusqlite::Result<()> {
    for (column, rows) in ["measure", "name"].into_iter().zip(rows) {
        let mut delete = connection.prepare(&format!(
            "DELETE FROM {} WHERE study = ?1 AND scale = ?2 AND seed = ?3 AND {column} = ?4 AND factors = ?5",
            of(column)
        ))?;
        for (seed, named, factors) in rows {
            delete.execute(params![scope.study, scope.scale, seed, named, factors])?;
        }
    }
    let sql = "DELETE FROM settings WHERE study = ?1 AND scale = ?2 AND languages = ?3";
    connection.execute(sql, params![scope.study, scope.scale, scope.languages])?;
    Ok(())
}
