//! What was fetched, when, from where and on what terms, and the files that were made of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use files::{At, sealed};
use serde::{Deserialize, Serialize};

use crate::entries::DatasetEntry;
use crate::error::{Error, Result};

/// The receipt of one entry, which stands beside its files.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct DownloadReceipt {
    /// The entry.
    pub name: String,
    /// The terms that were shown.
    pub licence: String,
    /// Archives and files as they came, by address.
    pub fetched: BTreeMap<String, FetchRecord>,
    /// Files that were made of them, by their place below the folder.
    pub files: BTreeMap<String, FileRecord>,
}

/// A file as it came.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct FetchRecord {
    /// The day, in UTC.
    pub date: String,
    /// Its size.
    pub bytes: u64,
    /// Its BLAKE3, against which later copies are held.
    pub blake3: String,
    /// Its SHA-256.
    pub sha256: String,
    /// Whether the catalogue's checksum confirmed it.
    pub confirmed: bool,
    /// Whether it was put here by hand.
    pub by_hand: bool,
}

/// A file that was made.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct FileRecord {
    /// The address that it comes from.
    pub url: String,
    /// Its size.
    pub bytes: u64,
    /// Its BLAKE3.
    pub blake3: String,
    /// Lines that it holds of the source, and lines that were left out.
    pub lines: Option<[u64; 2]>,
}

impl DownloadReceipt {
    /// The receipt of an entry in a folder, or an empty one.
    pub(crate) fn of(entry: &DatasetEntry, folder: &Path) -> Result<Self> {
        let path = place(folder, &entry.name);
        if !path.exists() {
            let (name, licence) = (entry.name.clone(), entry.licence.name.clone());
            return Ok(Self { name, licence, fetched: BTreeMap::new(), files: BTreeMap::new() });
        }
        let text = std::fs::read_to_string(&path).at(&path, "read")?;
        let remedy = "remove it, and everything is downloaded again";
        let wrong = |error: serde_json::Error| {
            Error::file(&path, format!("is no receipt: {error}"), remedy)
        };
        let mut receipt = serde_json::from_str(&text).map_err(wrong)?;
        match sealed::open_json(&mut receipt) {
            true => serde_json::from_value(receipt).map_err(wrong),
            false => Err(Error::file(&path, sealed::ALTERED, remedy)),
        }
    }

    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let path = place(folder, &self.name);
        let text = serde_json::to_string_pretty(self).expect("texts and numbers");
        Ok(files::write(&path, sealed::seal_json(&text) + "\n")?)
    }
}

pub(crate) fn place(folder: &Path, name: &str) -> PathBuf {
    folder.join("receipts").join(format!("{name}.json"))
}

/// Today in UTC, as 2026-11-15.
pub(crate) fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    date(since.as_secs() / 86_400)
}

/// The date that lies this many days after the first of 1970, in the calendar of today.
fn date(days: u64) -> String {
    // A year that begins in March has its leap day at the end, and months of 153 days to five.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        0..10 => (era * 400 + year, month + 3),
        _ => (era * 400 + year + 1, month - 9),
    };
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn days_become_dates() {
        // As `date -u -d @N` says.
        let known = [(0, "1970-01-01"), (11_016, "2000-02-29"), (11_017, "2000-03-01")];
        for (days, text) in
            known.into_iter().chain([(20_772, "2026-11-15"), (47_540, "2100-02-28")])
        {
            assert_eq!(date(days), text);
        }
        assert_eq!(date(47_541), "2100-03-01");
    }
}
