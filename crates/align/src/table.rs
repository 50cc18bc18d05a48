//! The translation table: for each generated word, the given words that it co-occurs with, each with
//! its expected count.
//!
//! Only counts are stored. A probability is computed from its count when its word is processed, so an
//! entry is eight bytes and there is one table, not one for parameters and one for counts.

use rayon::prelude::*;

use crate::view::{DirectionView, OccurrenceBatch};
use crate::words::NULL;

/// Shards of the work, whatever the number of threads.
const SHARDS: usize = 256;
/// Partial sums that are taken side by side, whatever the number of threads.
const SUMS: usize = 8;

/// Expected counts by explained and given word.
#[derive(Debug, Default)]
pub(crate) struct CountTable {
    shards: Vec<TableShard>,
}

#[derive(Debug)]
pub(crate) struct TableShard {
    first: usize,
    /// Where each word's entries begin; one more for the end.
    starts: Vec<u32>,
    /// Ids of given words, rising for each explained word.
    given: Vec<u32>,
    counts: Vec<f32>,
}

/// One explained word's entries.
pub(crate) struct TableColumn<'a> {
    pub(crate) word: usize,
    /// Ids of given words, rising.
    pub(crate) given: &'a [u32],
    pub(crate) counts: &'a mut [f32],
}

impl CountTable {
    /// Every given word of the sentences that an explained word occurs in, and the empty word.
    pub(crate) fn new(view: &DirectionView) -> Self {
        let shards = cut(view).into_par_iter();
        let fill =
            |seen: &mut WordSet, words: std::ops::Range<usize>| TableShard::new(view, words, seen);
        let bits = || vec![0; view.given_ids().div_ceil(64)];
        let seen = || WordSet { bits: bits(), fetched: OccurrenceBatch::default() };
        Self { shards: shards.map_init(seen, fill).collect() }
    }

    /// Puts a table together from columns in the order of words, as they were saved.
    pub(crate) fn from_parts(starts: &[u64], given: &[u32], counts: &[f32]) -> Self {
        let words = starts.len() - 1;
        let per_shard = words.div_ceil(SHARDS).max(1);
        let shard = |first: usize| {
            let words = first..(first + per_shard).min(words);
            let (from, to) = (starts[words.start] as usize, starts[words.end] as usize);
            TableShard {
                first,
                starts: starts[words.start..=words.end]
                    .iter()
                    .map(|&at| (at as usize - from) as u32)
                    .collect(),
                given: given[from..to].to_vec(),
                counts: counts[from..to].to_vec(),
            }
        };
        Self { shards: (0..words).step_by(per_shard).map(shard).collect() }
    }

    pub(crate) fn shards(&self) -> &[TableShard] {
        &self.shards
    }

    pub(crate) fn shards_mut(&mut self) -> &mut [TableShard] {
        &mut self.shards
    }

    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.given.len()).sum()
    }

    /// An explained word's entries; none for one that the table does not have.
    pub(crate) fn column(&self, word: usize) -> (&[u32], &[f32]) {
        let shard = self.shards.partition_point(|shard| shard.first <= word);
        match shard.checked_sub(1).map(|shard| &self.shards[shard]) {
            Some(shard) if word - shard.first + 1 < shard.starts.len() => {
                shard.column(word - shard.first)
            }
            _ => (&[], &[]),
        }
    }

    /// For each given word, the sum over its entries of what `of` makes of a count. Sums are taken
    /// over runs of shards side by side and then in the order of the runs.
    pub(crate) fn totals(&self, given_ids: usize, of: impl Fn(f32) -> f64 + Sync) -> Vec<f64> {
        let runs = self.shards.par_chunks(self.shards.len().div_ceil(SUMS).max(1));
        let partial: Vec<Vec<f64>> = runs
            .map(|run| {
                let mut totals = vec![0.0; given_ids];
                for shard in run {
                    for (&word, &count) in shard.given.iter().zip(&shard.counts) {
                        totals[word as usize] += of(count);
                    }
                }
                totals
            })
            .collect();
        let mut totals = vec![0.0; given_ids];
        for partial in partial {
            totals.iter_mut().zip(partial).for_each(|(total, part)| *total += part);
        }
        totals
    }
}

impl TableShard {
    fn new(view: &DirectionView, words: std::ops::Range<usize>, seen: &mut WordSet) -> Self {
        let (mut starts, mut given) = (vec![0], Vec::new());
        for word in words.clone() {
            seen.beside(view, word, &mut given);
            starts.push(u32::try_from(given.len()).expect("a 256th of the text"));
        }
        given.shrink_to_fit();
        let counts = vec![0.0; given.len()];
        Self { first: words.start, starts, given, counts }
    }

    fn column(&self, index: usize) -> (&[u32], &[f32]) {
        let range = self.starts[index] as usize..self.starts[index + 1] as usize;
        (&self.given[range.clone()], &self.counts[range])
    }

    /// The ids of given words, column after column.
    pub(crate) fn given(&self) -> &[u32] {
        &self.given
    }

    pub(crate) fn counts(&self) -> &[f32] {
        &self.counts
    }

    pub(crate) fn columns(&self) -> impl Iterator<Item = (usize, &[u32], &[f32])> {
        (0..self.starts.len() - 1).map(|index| {
            let (given, counts) = self.column(index);
            (self.first + index, given, counts)
        })
    }

    /// Goes through the words with their counts to be changed.
    pub(crate) fn for_each_column(&mut self, mut each: impl FnMut(TableColumn)) {
        for (index, ends) in self.starts.windows(2).enumerate() {
            let range = ends[0] as usize..ends[1] as usize;
            let given = &self.given[range.clone()];
            each(TableColumn { word: self.first + index, given, counts: &mut self.counts[range] });
        }
    }
}

/// Runs of words that together occur about equally often. Frequent words stand alone.
fn cut(view: &DirectionView) -> Vec<std::ops::Range<usize>> {
    let enough = view.tokens().div_ceil(SHARDS).max(1);
    let (mut runs, mut from, mut held) = (Vec::new(), 0, 0);
    for word in 0..view.explained_ids() {
        held += view.frequency(word);
        if held >= enough {
            runs.push(from..word + 1);
            (from, held) = (word + 1, 0);
        }
    }
    if from < view.explained_ids() {
        runs.push(from..view.explained_ids());
    }
    runs
}

struct WordSet {
    bits: Vec<u64>,
    fetched: OccurrenceBatch,
}

impl WordSet {
    /// Appends the words seen beside an explained word, in rising order.
    fn beside(&mut self, view: &DirectionView, word: usize, given: &mut Vec<u32>) {
        if view.frequency(word) == 0 {
            return;
        }
        let from = given.len();
        self.insert(NULL, given);
        let mut fetched = std::mem::take(&mut self.fetched);
        view.for_each_occurrence(word, &mut fetched, |occurrence| {
            for &other in occurrence.given {
                self.insert(other, given);
            }
        });
        self.fetched = fetched;
        let found = &mut given[from..];
        if found.len() < self.bits.len() {
            found.sort_unstable();
            for word in found {
                self.bits[*word as usize / 64] = 0;
            }
        } else {
            // Many: the bits are in order already.
            let mut slots = found.iter_mut();
            for (base, bits) in (0..).step_by(64).zip(&mut self.bits) {
                while *bits != 0 {
                    let slot = slots.next().expect("a slot for each bit");
                    *slot = base + bits.trailing_zeros();
                    *bits &= *bits - 1;
                }
            }
        }
    }

    fn insert(&mut self, word: u32, given: &mut Vec<u32>) {
        let (slot, bit) = (word as usize / 64, 1 << (word % 64));
        if self.bits[slot] & bit == 0 {
            self.bits[slot] |= bit;
            given.push(word);
        }
    }
}
