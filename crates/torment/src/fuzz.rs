//! One reader under libFuzzer, chosen by `READER` from the list of the harness (`torment::readers::READERS`).
//!
//! `SAMPLES` is the folder that `torment --make-samples` filled. A reader that panics, or takes more than the memory or
//! the time that `fuzz/run` allows, ends the process, and libFuzzer keeps the file.

#![no_main]

use std::env;
use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;
use torment::readers::{READERS, Reader};

/// The reader under test, with a copy of its sample.
struct FuzzedReader {
    reader: &'static Reader,
    own: PathBuf,
    /// The file of it that is replaced.
    target: PathBuf,
    _folder: TempDir,
}

impl FuzzedReader {
    fn new() -> Self {
        let name = env::var("READER").expect("READER names a reader");
        let samples = PathBuf::from(env::var("SAMPLES").expect("SAMPLES is a folder"));
        let reader = READERS.iter().find(|reader| reader.name == name).expect("a known reader");
        let folder = tempfile::tempdir().expect("a folder can be made");
        let copied = reader.copy_sample(&samples, folder.path());
        let (own, target) = copied.expect("the sample can be copied");
        Self { reader, own, target, _folder: folder }
    }
}

fuzz_target!(|bytes: &[u8]| {
    static READER: OnceLock<FuzzedReader> = OnceLock::new();
    let FuzzedReader { reader, own, target, .. } = READER.get_or_init(FuzzedReader::new);
    fs::write(target, bytes).expect("the file can be written");
    // Refused or read: both are well.
    let _ = (reader.read)(own);
});
