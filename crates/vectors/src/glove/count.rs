//! How often words stand near each other, counted in bounded memory.
//!
//! Each thread counts into a hash table of its own. A table that is full is sorted and written to a
//! temporary file; in the end all these runs are merged.
//!
//! Counts are whole numbers: a pair at distance `d` adds [`ONE`]` / d`, and `ONE` can be divided by
//! every distance up to 20. So sums do not depend on their order, and the same text gives the same
//! counts whatever the number of threads and however often a table was full.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytemuck::{Pod, Zeroable};
use files::At;

use super::GloveConfig;
use crate::Result;
use crate::sentences::{END, IndexedSentences};
use crate::watch::Meter;

/// What a pair of neighbours counts: the least common multiple of 1 to 20.
pub(super) const ONE: u64 = 232_792_560;
/// Words that a thread takes at a time.
const CHUNK: usize = 1 << 16;
/// No pair has this key, since no word has the highest number.
const EMPTY: u64 = u64::MAX;
/// Bytes a place of a table takes: its own, and half as many while it grows.
const PLACE_BYTES: u64 = 24;
/// A third of it is more than the widest window adds before anybody looks whether it is full.
const SMALLEST: usize = 1 << 12;

/// A pair and its count in parts of [`ONE`].
#[derive(Clone, Copy, Debug, Pod, Zeroable, PartialEq, Eq)]
#[repr(C)]
struct PairCount {
    key: u64,
    count: u64,
}

/// Counts of pairs, sorted by key, in runs that are still to be merged.
pub(super) struct Runs {
    in_memory: Vec<Vec<PairCount>>,
    on_disk: Vec<PathBuf>,
}

/// Counts all pairs of words; nothing where it was stopped. Spills go into `folder`.
pub(super) fn count(
    sentences: &IndexedSentences,
    config: &GloveConfig,
    folder: &Path,
    meter: &Meter,
) -> Result<Option<Runs>> {
    let chunks = cut(sentences.tokens());
    let threads = crate::threads(config.threads).min(chunks.len());
    let (next, spills) = (AtomicUsize::new(0), AtomicU64::new(0));
    let work = || {
        let most = config.memory / threads as u64 / PLACE_BYTES;
        let mut counter = Counter {
            table: PairTable::new(most),
            config,
            folder,
            spills: &spills,
            on_disk: Vec::new(),
        };
        while let Some(chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
            if meter.stopped() {
                break;
            }
            let tokens = &sentences.tokens()[chunk.clone()];
            tokens.split(|&token| token == END).try_for_each(|words| counter.add(words))?;
            meter.add(tokens.len() as u64);
        }
        Ok((counter.table.into_sorted(), counter.on_disk))
    };
    let counted: Vec<Result<_>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, _>| match worker.join() {
            Ok(counted) => counted,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        workers.into_iter().map(join).collect()
    });
    let mut runs = Runs { in_memory: Vec::new(), on_disk: Vec::new() };
    for counted in counted {
        let (sorted, on_disk) = counted?;
        runs.in_memory.push(sorted);
        runs.on_disk.extend(on_disk);
    }
    Ok((!meter.stopped()).then_some(runs))
}

/// Cuts tokens at ends of sentences into chunks for threads.
fn cut(tokens: &[u32]) -> Vec<std::ops::Range<usize>> {
    let (mut chunks, mut start) = (Vec::new(), 0);
    while start < tokens.len() {
        let from = (start + CHUNK).min(tokens.len());
        let end = tokens[from..].iter().position(|&token| token == END);
        let end = end.map_or(tokens.len(), |end| from + end + 1);
        chunks.push(start..end);
        start = end;
    }
    chunks
}

struct Counter<'a> {
    table: PairTable,
    config: &'a GloveConfig,
    folder: &'a Path,
    spills: &'a AtomicU64,
    on_disk: Vec<PathBuf>,
}

impl Counter<'_> {
    fn add(&mut self, words: &[u32]) -> Result<()> {
        for (at, &right) in words.iter().enumerate() {
            for (distance, &left) in (1..=self.config.window as u64).zip(words[..at].iter().rev()) {
                let count = if self.config.flat { ONE } else { ONE / distance };
                // Where both sides count, a pair is kept once, the more frequent word first.
                let swap = self.config.symmetric && left > right;
                let (word, context) = if swap { (left, right) } else { (right, left) };
                self.table.add(u64::from(word) << 32 | u64::from(context), count);
            }
            if self.table.is_full() {
                self.spill()?;
            }
        }
        Ok(())
    }

    fn spill(&mut self) -> Result<()> {
        let number = self.spills.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.join(format!("run-{number}"));
        let empty = PairTable::new(self.table.most);
        let sorted = std::mem::replace(&mut self.table, empty).into_sorted();
        std::fs::write(&path, bytemuck::cast_slice(&sorted)).at(&path, "write counts to")?;
        self.on_disk.push(path);
        Ok(())
    }
}

/// Counts by key, open addressing.
struct PairTable {
    places: Vec<PairCount>,
    used: usize,
    /// Places at most.
    most: u64,
}

impl PairTable {
    fn new(most: u64) -> Self {
        Self { places: vec![PairCount { key: EMPTY, count: 0 }; SMALLEST], used: 0, most }
    }

    #[inline(always)]
    fn add(&mut self, key: u64, count: u64) {
        let mask = self.places.len() - 1;
        // Fibonacci hashing: the high bits of the product are the well-mixed ones.
        let shift = 64 - self.places.len().trailing_zeros();
        let mut at = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> shift) as usize;
        loop {
            let place = &mut self.places[at & mask];
            if place.key == key {
                place.count += count;
                return;
            }
            if place.key == EMPTY {
                *place = PairCount { key, count };
                self.used += 1;
                if self.used * 3 > self.places.len() * 2 && !self.at_most() {
                    self.grow();
                }
                return;
            }
            at += 1;
        }
    }

    fn at_most(&self) -> bool {
        2 * self.places.len() as u64 > self.most
    }

    fn grow(&mut self) {
        let twice = vec![PairCount { key: EMPTY, count: 0 }; 2 * self.places.len()];
        let old = std::mem::replace(&mut self.places, twice);
        self.used = 0;
        for entry in old.into_iter().filter(|entry| entry.key != EMPTY) {
            self.add(entry.key, entry.count);
        }
    }

    /// Whether there is no room for the pairs of another word.
    fn is_full(&self) -> bool {
        self.used * 3 > self.places.len() * 2
    }

    fn into_sorted(self) -> Vec<PairCount> {
        let mut entries = self.places;
        entries.retain(|entry| entry.key != EMPTY);
        entries.sort_unstable_by_key(|entry| entry.key);
        entries
    }
}

impl Runs {
    /// Hands on every pair once, in the order of keys: word, context, and how often.
    pub(super) fn merge(self, mut each: impl FnMut(u32, u32, f64) -> Result<()>) -> Result<()> {
        let mut sources: Vec<RunCursor> = Vec::new();
        for entries in self.in_memory {
            sources.push(RunCursor::Memory(entries.into_iter()));
        }
        for path in &self.on_disk {
            let file = File::open(path).at(path, "open")?;
            sources.push(RunCursor::Disk(BufReader::with_capacity(1 << 17, file), path.clone()));
        }
        let mut heads = BinaryHeap::new();
        let advance = |number: usize, sources: &mut [RunCursor]| -> Result<_> {
            Ok(sources[number].next()?.map(|entry| Reverse((entry.key, entry.count, number))))
        };
        for number in 0..sources.len() {
            heads.extend(advance(number, &mut sources)?);
        }
        let mut current: Option<PairCount> = None;
        let mut hand_on = |entry: PairCount| {
            each((entry.key >> 32) as u32, entry.key as u32, entry.count as f64 / ONE as f64)
        };
        while let Some(Reverse((key, count, number))) = heads.pop() {
            heads.extend(advance(number, &mut sources)?);
            match &mut current {
                Some(entry) if entry.key == key => entry.count += count,
                _ => {
                    if let Some(entry) = current.replace(PairCount { key, count }) {
                        hand_on(entry)?;
                    }
                }
            }
        }
        current.map_or(Ok(()), hand_on)
    }
}

enum RunCursor {
    Memory(std::vec::IntoIter<PairCount>),
    Disk(BufReader<File>, PathBuf),
}

impl RunCursor {
    fn next(&mut self) -> Result<Option<PairCount>> {
        match self {
            RunCursor::Memory(entries) => Ok(entries.next()),
            RunCursor::Disk(reader, path) => {
                let mut entry = PairCount::zeroed();
                match reader.read_exact(bytemuck::bytes_of_mut(&mut entry)) {
                    Ok(()) => Ok(Some(entry)),
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
                    Err(error) => Ok(Err(error).at(path, "read counts from")?),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::glove::buckets::Buckets;
    use crate::random::SplitMix64;

    fn text() -> IndexedSentences {
        let chance = text::RandomStreams::new(5, "test");
        let sentences: Vec<Vec<String>> = (0..400)
            .map(|number| {
                let mut random = SplitMix64::new(&chance, number);
                (0..1 + random.below(30)).map(|_| format!("w{}", random.below(90))).collect()
            })
            .collect();
        let words = sentences.iter().map(|words| words.iter().map(String::as_str));
        IndexedSentences::of_words(words, 1).unwrap()
    }

    fn counted(
        sentences: &IndexedSentences,
        config: &GloveConfig,
    ) -> (BTreeMap<(u32, u32), f32>, usize) {
        let folder = tempfile::tempdir().unwrap();
        let runs = count(sentences, config, folder.path(), &Meter::default()).unwrap().unwrap();
        let spilled = runs.on_disk.len();
        let buckets = Buckets::fill(runs, config, folder.path(), 1, || 0).unwrap();
        let mut records = Vec::new();
        buckets.read(0, &mut records).unwrap();
        let found: BTreeMap<_, _> =
            records.iter().map(|r| ((r.word, r.context), r.log.exp())).collect();
        assert_eq!(found.len(), records.len());
        (found, spilled)
    }

    /// Every pair, one by one, as the original's definition has it.
    fn brute_force(
        sentences: &IndexedSentences,
        config: &GloveConfig,
    ) -> BTreeMap<(u32, u32), f64> {
        let mut counts = BTreeMap::new();
        for words in sentences.tokens().split(|&token| token == END) {
            for (i, &word) in words.iter().enumerate() {
                for (j, &context) in words.iter().enumerate() {
                    let near = i != j && i.abs_diff(j) <= config.window;
                    if near && (config.symmetric || j < i) {
                        let distance = if config.flat { 1.0 } else { i.abs_diff(j) as f64 };
                        *counts.entry((word, context)).or_insert(0.0) += 1.0 / distance;
                    }
                }
            }
        }
        counts
    }

    #[test]
    fn counts_are_those_of_brute_force_however_little_memory_there_is() {
        let sentences = text();
        for (symmetric, flat, window) in
            [(true, false, 15), (false, false, 4), (true, true, 2), (true, false, 30)]
        {
            let config =
                GloveConfig { symmetric, flat, window, threads: 2, ..GloveConfig::default() };
            let expected = brute_force(&sentences, &config);
            let (found, spilled) = counted(&sentences, &config);
            assert_eq!(spilled, 0);
            assert_eq!(found.len(), expected.len());
            for (pair, &count) in &expected {
                let found = f64::from(found[pair]);
                assert!((found - count).abs() < 1e-5 * count, "{pair:?}: {found}, not {count}");
            }
            for threads in [1, 3] {
                let (again, spilled) =
                    counted(&sentences, &GloveConfig { memory: 1, threads, ..config.clone() });
                assert!(spilled > 1);
                assert_eq!(again, found);
            }
        }
    }
}
