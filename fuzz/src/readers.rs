//! One reader under libFuzzer, chosen by `READER` from the list of the harness (`torment::readers::READERS`).
//!
//! `SAMPLES` is the folder that `torment --make-samples` filled. A reader that panics, or takes more than the memory or
//! the time that `run` allows, ends the process, and libFuzzer keeps the file.

#![no_main]

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};

use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;
use torment::readers::{READERS, Reader};

struct Place {
    reader: &'static Reader,
    /// The sample, copied.
    own: PathBuf,
    /// The file of it that is replaced.
    target: PathBuf,
    _folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let name = std::env::var("READER").expect("READER names a reader");
        let samples = PathBuf::from(std::env::var("SAMPLES").expect("SAMPLES is a folder"));
        let reader = READERS.iter().find(|reader| reader.name == name).expect("a known reader");
        let memory = Path::new("/dev/shm");
        let folder = match memory.is_dir() {
            true => tempfile::tempdir_in(memory),
            false => tempfile::tempdir(),
        };
        let folder = folder.expect("a folder");
        let sample = samples.join(reader.sample);
        let own = folder.path().join(sample.file_name().expect("a name"));
        copy(&sample, &own);
        let target = reader.target(&own).expect("the sample has it");
        Self { reader, own, target, _folder: folder }
    }
}

fn copy(from: &Path, to: &Path) {
    if !from.is_dir() {
        fs::copy(from, to).expect("it can be copied");
        return;
    }
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        copy(&entry.path(), &to.join(entry.file_name()));
    }
}

thread_local! {
    static PLACE: OnceCell<Place> = const { OnceCell::new() };
}

fuzz_target!(|bytes: &[u8]| {
    PLACE.with(|place| {
        let place = place.get_or_init(Place::new);
        fs::write(&place.target, bytes).expect("the file can be written");
        let _ = (place.reader.read)(&place.own);
    });
});
