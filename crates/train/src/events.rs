//! Numbers over time in the form that TensorBoard shows.
//!
//! A file of events is a sequence of records, each a protocol buffer between checksums. Only what a
//! curve needs is written: when, after which update, the name, the number. A run that goes on begins
//! a new file, which tells TensorBoard to drop what older files say of later updates.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use files::At;

pub(crate) struct Events {
    path: PathBuf,
    file: File,
}

impl Events {
    /// Begins a file in `folder` for a run that stands after update `step`.
    pub(crate) fn begin(folder: &Path, step: u64) -> files::Result<Self> {
        let now = now();
        let name = format!("events.out.tfevents.{:010}.{}", now as u64, std::process::id());
        let path = folder.join(name);
        let file = OpenOptions::new().create(true).append(true).open(&path).at(&path, "make")?;
        let mut events = Self { path, file };
        let mut records = record(&event(now, 0, 3, b"brain.Event:2"));
        if step > 0 {
            // The status START: what was recorded from the next update on is void.
            records.extend(record(&event(now, step + 1, 7, &[0x08, 0x01])));
        }
        events.append(&records)?;
        Ok(events)
    }

    pub(crate) fn write(&mut self, step: u64, values: &[(String, f64)]) -> files::Result<()> {
        self.append(&record(&event(now(), step, 5, &summary(values))))
    }

    fn append(&mut self, bytes: &[u8]) -> files::Result<()> {
        self.file.write_all(bytes).at(&self.path, "write")
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// An event with one more field, a string or message of that number.
fn event(time: f64, step: u64, field: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x09];
    bytes.extend(time.to_le_bytes());
    if step > 0 {
        bytes.push(0x10);
        varint(step, &mut bytes);
    }
    delimited(field, content, &mut bytes);
    bytes
}

/// A summary: for each value its tag (field 1) and the number (field 2, a float).
fn summary(values: &[(String, f64)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, number) in values {
        let mut value = Vec::new();
        delimited(1, name.as_bytes(), &mut value);
        value.push(0x15);
        value.extend((*number as f32).to_le_bytes());
        delimited(1, &value, &mut bytes);
    }
    bytes
}

fn delimited(field: u8, content: &[u8], bytes: &mut Vec<u8>) {
    bytes.push(field << 3 | 2);
    varint(content.len() as u64, bytes);
    bytes.extend(content);
}

fn varint(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Length, checksum of the length, content, checksum of the content.
fn record(content: &[u8]) -> Vec<u8> {
    let checked = |bytes: &[u8]| {
        // The format turns and shifts checksums, so that those of data with checksums in it differ.
        let sum = crc32c::crc32c(bytes);
        sum.rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
    };
    let length = (content.len() as u64).to_le_bytes();
    [&length[..], &checked(&length), content, &checked(content)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that TensorBoard's own writer gives, see `tests/fixtures/events.py`.
    #[test]
    fn records_are_those_of_tensorboard() {
        let expected = include_bytes!("../tests/fixtures/events.bin");
        let mut records = record(&event(1.5, 0, 3, b"brain.Event:2"));
        records.extend(record(&event(2.5, 300, 7, &[0x08, 0x01])));
        let values = [("loss/en".to_owned(), 2.25), ("rate".to_owned(), 1e-3)];
        records.extend(record(&event(3.5, 123_456, 5, &summary(&values))));
        assert_eq!(records, expected);
    }
}
