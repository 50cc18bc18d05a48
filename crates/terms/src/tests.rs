//! What tests leave out, and how they say so: past the test harness, which keeps to itself what a test that passes prints.

use std::env;
use std::io::Write as _;
use std::path::PathBuf;

/// Says that the calling test, or a part of it, is left out, and what would run it.
pub fn left_out(what: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let _ = writeln!(std::io::stderr(), "LEFT OUT: {test}: {what}");
}

/// The folder of real data that `ISOGLOSS_DATA` names.
pub fn real_data() -> Option<PathBuf> {
    let folder = env::var_os("ISOGLOSS_DATA").map(PathBuf::from);
    if folder.is_none() {
        left_out("real data; ISOGLOSS_DATA names its folder");
    }
    folder.map(|folder| std::path::absolute(&folder).unwrap_or(folder))
}

/// Whether what takes a while is run: where `ISOGLOSS_SLOW` is set, as in `.ci/run`.
pub fn slow() -> bool {
    let slow = env::var_os("ISOGLOSS_SLOW").is_some();
    if !slow {
        left_out("slow; ISOGLOSS_SLOW=1 runs it");
    }
    slow
}
