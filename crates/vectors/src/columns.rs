//! Deterministic multi-threaded training, with the same bits on any number of threads: every thread owns
//! some *columns* of every vector.
//!
//! An update of Word2Vec or GloVe depends on all columns only through the dot product of two rows; once
//! that is known, each column is updated independently. So a batch has two phases: each thread computes
//! its columns' part of all dot products and publishes it; then, after the parts are summed in the order
//! of the columns, each thread updates its own columns. There is one barrier per batch, no lock, and no
//! memory that two threads write to. The price is that dot products within a batch do not see each
//! other's updates, and that there can be no more threads than units of columns.
//!
//! Columns are divided into units by the dimension alone, and a dot product is the sum of its units in
//! their order, whichever thread computed them: hence the same bits.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};

use bytemuck::{Pod, Zeroable};

pub(crate) const LINE: usize = 16;
/// Lines in a unit at most: what the registers of AVX-512 hold several times over.
const UNIT_LINES: usize = 4;

/// A cache line of values, so that rows begin on one.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct CacheLine([f32; LINE]);

/// Rows of some columns, padded with zeros to whole lines.
pub(crate) struct ColumnMatrix {
    /// Values in a row, padding included.
    pub(crate) width: usize,
    lines: Vec<CacheLine>,
}

impl ColumnMatrix {
    pub(crate) fn new(rows: usize, width: usize) -> Self {
        debug_assert_eq!(width % LINE, 0);
        Self { width, lines: vec![CacheLine::zeroed(); rows * width / LINE] }
    }

    pub(crate) fn values(&self) -> &[f32] {
        bytemuck::cast_slice(&self.lines)
    }

    pub(crate) fn values_mut(&mut self) -> &mut [f32] {
        bytemuck::cast_slice_mut(&mut self.lines)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnShare {
    pub(crate) columns: Range<usize>,
    pub(crate) units: Range<usize>,
    /// Where each of these units lies in a row of the share.
    pub(crate) within: Vec<Range<usize>>,
    /// Values in a row of the share, padding included.
    pub(crate) width: usize,
}

/// How many units a vector of this dimension has. They are even in number where there are several,
/// so that two and four threads have equal shares.
pub(crate) fn units(dim: usize) -> usize {
    match dim.div_ceil(LINE) {
        0 | 1 => 1,
        lines => lines.div_ceil(UNIT_LINES).next_multiple_of(2),
    }
}

/// Cuts a dimension among threads, fewer where there are fewer units.
pub(crate) fn shares(dim: usize, threads: usize) -> Vec<ColumnShare> {
    let (lines, units) = (dim.div_ceil(LINE), units(dim));
    let threads = threads.clamp(1, units);
    let line_of = |unit: usize| unit * lines / units;
    let share = |thread: usize| {
        let units = thread * units / threads..(thread + 1) * units / threads;
        let first = line_of(units.start) * LINE;
        let end = line_of(units.end) * LINE;
        let within =
            units.clone().map(|u| line_of(u) * LINE - first..line_of(u + 1) * LINE - first);
        ColumnShare {
            columns: first..end.min(dim),
            within: within.collect(),
            width: end - first,
            units,
        }
    };
    (0..threads).map(share).collect()
}

/// Copies a share's columns of a whole table (rows x dim) into its matrix, or back.
pub(crate) fn scatter(whole: &[f32], dim: usize, share: &ColumnShare, matrix: &mut ColumnMatrix) {
    let width = matrix.width;
    for (from, to) in whole.chunks_exact(dim).zip(matrix.values_mut().chunks_exact_mut(width)) {
        to[..share.columns.len()].copy_from_slice(&from[share.columns.clone()]);
    }
}

/// The other way of [`scatter`].
pub(crate) fn gather(matrix: &ColumnMatrix, share: &ColumnShare, dim: usize, whole: &mut [f32]) {
    let rows = matrix.values().chunks_exact(matrix.width);
    for (from, to) in rows.zip(whole.chunks_exact_mut(dim)) {
        to[share.columns.clone()].copy_from_slice(&from[..share.columns.len()]);
    }
}

/// Runs work on a thread for each member, and gives what came of it, in their order.
pub(crate) fn on_threads<M: Send, T: Send>(
    members: &mut [M],
    work: impl Fn(usize, &mut M) -> T + Sync,
) -> Vec<T> {
    std::thread::scope(|scope| {
        let work = &work;
        let spawn = |(thread, member)| scope.spawn(move || work(thread, member));
        let workers: Vec<_> = members.iter_mut().enumerate().map(spawn).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, T>| {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        workers.into_iter().map(join).collect()
    })
}

/// A thread's own room for the dot products of a batch.
#[derive(Default)]
pub(crate) struct BatchDots {
    parts: Vec<f32>,
    dots: Vec<f32>,
    turn: usize,
}

impl BatchDots {
    /// The dot products of so many items, of whose parts `compute` gives this thread's: units x items.
    pub(crate) fn of(
        &mut self,
        items: usize,
        share: &ColumnShare,
        exchange: &Exchange,
        compute: impl FnOnce(&mut [f32]),
    ) -> &mut [f32] {
        self.parts.resize(items * share.within.len(), 0.0);
        self.dots.resize(items, 0.0);
        compute(&mut self.parts);
        exchange.add_up(share, self.turn, &self.parts, &mut self.dots);
        self.turn += 1;
        &mut self.dots
    }
}

/// Where threads wait for each other. It spins first, since a batch takes microseconds. A thread that
/// has waited longer sleeps: other programs then have the cores, and the awaited thread may be without one.
pub(crate) struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
    round: AtomicUsize,
    sleepers: AtomicUsize,
    asleep: Mutex<()>,
    next_round: Condvar,
}

/// Spins before a thread sleeps.
const PATIENCE: usize = 2000;

impl Barrier {
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            threads,
            arrived: AtomicUsize::new(0),
            round: AtomicUsize::new(0),
            sleepers: AtomicUsize::new(0),
            asleep: Mutex::new(()),
            next_round: Condvar::new(),
        }
    }

    pub(crate) fn wait(&self) {
        if self.threads == 1 {
            return;
        }
        let round = self.round.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            self.round.store(round.wrapping_add(1), Ordering::SeqCst);
            if self.sleepers.load(Ordering::SeqCst) > 0 {
                drop(self.asleep.lock());
                self.next_round.notify_all();
            }
            return;
        }
        for _ in 0..PATIENCE {
            if self.round.load(Ordering::Acquire) != round {
                return;
            }
            std::hint::spin_loop();
        }
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let mut guard = self.asleep.lock().expect("no thread fails");
        while self.round.load(Ordering::SeqCst) == round {
            guard = self.next_round.wait(guard).expect("no thread fails");
        }
        drop(guard);
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}

pub(crate) struct Exchange {
    pub(crate) barrier: Barrier,
    /// For each of two turns, units x items, as bits of `f32`; double-buffered, so that no part is
    /// overwritten before all have read it.
    parts: [Vec<AtomicU32>; 2],
    units: usize,
    most: usize,
}

impl Exchange {
    /// For so many threads, and so many items at most in a batch.
    pub(crate) fn new(threads: usize, units: usize, most: usize) -> Self {
        let room = if threads == 1 { 0 } else { units * most };
        let parts = || (0..room).map(|_| AtomicU32::new(0)).collect();
        Self { barrier: Barrier::new(threads), parts: [parts(), parts()], units, most }
    }

    /// Adds up all threads' parts. `own` holds this thread's, its units x `sums.len()`.
    pub(crate) fn add_up(&self, share: &ColumnShare, turn: usize, own: &[f32], sums: &mut [f32]) {
        let items = sums.len();
        if self.barrier.threads == 1 {
            sums.copy_from_slice(&own[..items]);
            for part in own[items..].chunks_exact(items) {
                for (sum, part) in sums.iter_mut().zip(part) {
                    *sum += part;
                }
            }
            return;
        }
        let all = &self.parts[turn % 2];
        for (unit, part) in share.units.clone().zip(own.chunks_exact(items)) {
            for (shared, value) in all[unit * self.most..].iter().zip(part) {
                shared.store(value.to_bits(), Ordering::Relaxed);
            }
        }
        self.barrier.wait();
        for (sum, shared) in sums.iter_mut().zip(&all[..items]) {
            *sum = f32::from_bits(shared.load(Ordering::Relaxed));
        }
        for unit in 1..self.units {
            for (sum, shared) in sums.iter_mut().zip(&all[unit * self.most..]) {
                *sum += f32::from_bits(shared.load(Ordering::Relaxed));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_every_column_once_in_the_same_units() {
        for dim in [1, 15, 16, 17, 64, 100, 128, 300, 768] {
            let whole = &shares(dim, 1)[0];
            assert_eq!((whole.columns.clone(), whole.units.clone()), (0..dim, 0..units(dim)));
            assert!(whole.within.iter().all(|unit| (1..=64).contains(&unit.len())), "{dim}");
            for threads in [2, 3, 5, 64] {
                let shares = shares(dim, threads);
                assert_eq!(shares.len(), threads.min(units(dim)));
                let mut at = 0;
                for share in &shares {
                    assert_eq!(share.columns.start, at);
                    at = share.columns.end;
                    for (unit, within) in share.units.clone().zip(&share.within) {
                        let moved = within.start + share.columns.start;
                        assert_eq!(moved..moved + within.len(), whole.within[unit]);
                    }
                }
                assert_eq!(at, dim);
            }
        }
        assert_eq!(shares(300, 2).iter().map(|share| share.width).collect::<Vec<_>>(), [144, 160]);
    }

    #[test]
    fn columns_come_back() {
        let whole: Vec<f32> = (0..3 * 100).map(|i| i as f32).collect();
        let mut back = vec![0.0; 300];
        for share in shares(100, 2) {
            let mut matrix = ColumnMatrix::new(3, share.width);
            scatter(&whole, 100, &share, &mut matrix);
            gather(&matrix, &share, 100, &mut back);
        }
        assert_eq!(back, whole);
    }

    #[test]
    fn parts_are_added_in_the_order_of_units() {
        let parts = [1e8f32, 1.0, -1e8, 3.0];
        let expected = ((parts[0] + parts[1]) + parts[2]) + parts[3];
        for threads in [1, 2, 4] {
            let exchange = Exchange::new(threads, 4, 8);
            std::thread::scope(|scope| {
                for share in shares(256, threads) {
                    let exchange = &exchange;
                    scope.spawn(move || {
                        for turn in 0..500 {
                            let items = turn % 8 + 1;
                            let part = |unit: usize| vec![parts[unit]; items];
                            let own: Vec<f32> = share.units.clone().flat_map(part).collect();
                            let mut sums = vec![0.0; items];
                            exchange.add_up(&share, turn, &own, &mut sums);
                            assert_eq!(sums, vec![expected; items]);
                        }
                    });
                }
            });
        }
    }
}
