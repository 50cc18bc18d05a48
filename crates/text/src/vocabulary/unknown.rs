//! How much of a text its vocabulary does not know. A sentence of unknown subwords has a vector like any other, so a model of
//! another language or script gives numbers that look sound; every encoder counts, and whoever runs a command says.

use std::collections::BTreeMap;
use std::mem::take;
use std::sync::{Mutex, PoisonError};

/// What the encoders of a process have counted, by language.
static COUNTED: Mutex<BTreeMap<String, UnknownCounts>> = Mutex::new(BTreeMap::new());

/// Subwords of some text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnknownCounts {
    /// All of them, special tokens left out.
    pub subwords: u64,
    /// Those that the vocabulary does not know.
    pub unknown: u64,
}

impl UnknownCounts {
    /// The share that is unknown; 0 of no text.
    pub fn share(&self) -> f64 {
        self.unknown as f64 / self.subwords.max(1) as f64
    }

    fn add(&mut self, other: Self) {
        self.subwords += other.subwords;
        self.unknown += other.unknown;
    }
}

/// What was encoded by encoders that are gone since this was last asked, by language.
pub fn take_unknown_counts() -> BTreeMap<String, UnknownCounts> {
    take(&mut *COUNTED.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Counts for one encoder, and hands the counts on when that is gone.
#[derive(Debug)]
pub(super) struct UnknownMeter {
    language: String,
    counts: UnknownCounts,
}

impl UnknownMeter {
    pub(super) fn new(language: &str) -> Self {
        Self { language: language.to_owned(), counts: UnknownCounts::default() }
    }

    pub(super) fn counts(&self) -> UnknownCounts {
        self.counts
    }

    pub(super) fn count(&mut self, ids: &[u32], unknown: u32) {
        let unknown = ids.iter().filter(|&&id| id == unknown).count() as u64;
        self.counts.add(UnknownCounts { subwords: ids.len() as u64, unknown });
    }
}

impl Clone for UnknownMeter {
    /// What was counted is handed on once.
    fn clone(&self) -> Self {
        Self::new(&self.language)
    }
}

impl Drop for UnknownMeter {
    fn drop(&mut self) {
        if self.counts.subwords > 0 {
            let mut counted = COUNTED.lock().unwrap_or_else(PoisonError::into_inner);
            counted.entry(take(&mut self.language)).or_default().add(self.counts);
        }
    }
}
