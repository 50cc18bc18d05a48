//! What is done of a sweep, on disk: a sweep over all layers of a large model takes hours, and all that it adds up to is
//! some counts for each layer and weight.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::translate::CellCounts;

const SAVE_EVERY: Duration = Duration::from_secs(10);

/// A folder in which sweeps keep what is done: a file for each, named after a digest of everything that its
/// counts depend on, so that only the same sweep takes it up.
pub struct SweepCheckpoint<'a> {
    folder: PathBuf,
    note: &'a mut (dyn FnMut(&str) + Send),
    key: String,
    saved: Instant,
}

/// The content of the file: JSON, with a digest.
#[derive(Serialize, Deserialize)]
struct KeptCounts {
    key: String,
    /// Sentences that the counts are of.
    done: usize,
    counts: Vec<CellCounts>,
}

impl<'a> SweepCheckpoint<'a> {
    /// Sweeps of this folder; `note` is called with what is taken up again.
    pub fn new(folder: &Path, note: &'a mut (dyn FnMut(&str) + Send)) -> Self {
        Self { folder: folder.to_owned(), note, key: String::new(), saved: Instant::now() }
    }

    pub(crate) fn identify(&mut self, key: &str) {
        key.clone_into(&mut self.key);
        self.saved = Instant::now();
    }

    fn path(&self) -> PathBuf {
        self.folder.join(format!("sweep-{}.json", &self.key[..16]))
    }

    /// Sentences done and their counts, one for each layer and weight; none where there is nothing, or nothing sound.
    pub(crate) fn read(&mut self, settings: usize) -> Option<(usize, Vec<CellCounts>)> {
        let path = self.path();
        let text = std::fs::read_to_string(&path).ok()?;
        let is_same = |kept: &KeptCounts| kept.key == self.key && kept.counts.len() == settings;
        let sound = files::sealed::read_json(&text).ok().filter(is_same);
        match sound {
            Some(KeptCounts { done, counts, .. }) => {
                (self.note)(&format!("continuing after {done} sentences ({})", path.display()));
                Some((done, counts))
            }
            None => {
                (self.note)(&format!("{} is damaged: it is not used", path.display()));
                None
            }
        }
    }

    /// Saves what is done, if the last time was a while ago or this is the end.
    pub(crate) fn keep(&mut self, done: usize, counts: &[CellCounts], now: bool) -> Result<()> {
        if now || self.saved.elapsed() >= SAVE_EVERY {
            let kept = KeptCounts { key: self.key.clone(), done, counts: counts.to_vec() };
            let text = serde_json::to_string(&kept).expect("counts are JSON");
            files::write(&self.path(), files::sealed::seal_json(&text))?;
            self.saved = Instant::now();
        }
        Ok(())
    }
}
