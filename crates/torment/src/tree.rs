//! What a command wrote, in a form that two runs of it agree in: every byte, but for clocks.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;

/// The files of a folder (or one file) by name, with their digests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tree(BTreeMap<String, String>);

/// Keys of results that say how long something took, when it was, or where.
const CLOCKS: [&str; 15] = [
    "seconds",
    "time",
    "per_s",
    "speed",
    "rate",
    "shares",
    "peak_memory",
    "date",
    "finished_at",
    "elapsed",
    "threads",
    "out",
    "receipt",
    "path",
    "build",
];

impl Tree {
    /// Reads all of it; what is not there has no files.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let mut files = BTreeMap::new();
        collect(path, "", &mut files)?;
        Ok(Self(files))
    }

    /// The same but for one file.
    pub(crate) fn without(&self, name: &str) -> Self {
        let mut files = self.0.clone();
        files.remove(name);
        Self(files)
    }

    /// The first file in which two trees differ, in words.
    pub(crate) fn difference(&self, other: &Self) -> Option<String> {
        let names = self.0.keys().chain(other.0.keys());
        let mut differing = names.filter(|name| self.0.get(*name) != other.0.get(*name));
        differing.next().map(|name| match (self.0.get(name), other.0.get(name)) {
            (Some(_), None) => format!("{name} is there, and should not be"),
            (None, _) => format!("{name} is missing"),
            _ => format!("{name} has other bytes"),
        })
    }
}

fn collect(path: &Path, name: &str, files: &mut BTreeMap<String, String>) -> io::Result<()> {
    let Ok(metadata) = path.symlink_metadata() else { return Ok(()) };
    if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let inner = entry.file_name().to_string_lossy().into_owned();
            let inner = if name.is_empty() { inner } else { format!("{name}/{inner}") };
            collect(&entry.path(), &inner, files)?;
        }
        return Ok(());
    }
    let last = name.rsplit('/').next().unwrap_or(name);
    // A lock holds nothing, and TensorBoard's events carry the time in every record.
    if last == "lock" || last.ends_with(".lock") || last.starts_with("events.out.tfevents") {
        return Ok(());
    }
    let bytes = fs::read(path)?;
    files.insert(name.to_owned(), digest(last, &bytes));
    Ok(())
}

fn digest(name: &str, bytes: &[u8]) -> String {
    let timed = matches!(name, "summary.json" | "step.json" | "results.json")
        || name.ends_with("receipt.json");
    let parsed = if timed { serde_json::from_slice::<Value>(bytes).ok() } else { None };
    match parsed {
        Some(mut value) => {
            without_clocks(&mut value);
            // The file's own digest is of its clocks too.
            value.as_object_mut().map(|map| map.remove("blake3"));
            value.to_string()
        }
        None => blake3::hash(bytes).to_hex().to_string(),
    }
}

/// Leaves out what differs between two runs of the same command.
pub(crate) fn without_clocks(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, _| !CLOCKS.iter().any(|clock| key.contains(clock)));
            map.values_mut().for_each(without_clocks);
        }
        Value::Array(list) => list.iter_mut().for_each(without_clocks),
        _ => {}
    }
}

/// Names in a folder that no finished command leaves: drafts of files and folders.
pub(crate) fn leftovers(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let draft =
                [".tmp", ".unfinished", ".replaced"].iter().any(|start| name.starts_with(start))
                    || [".partial", ".part", ".mark"].iter().any(|end| name.ends_with(end));
            if draft {
                found.push(name);
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
    found
}
