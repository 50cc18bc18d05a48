//! Hogwild (Recht et al. 2011): threads have their own sentences and update the same vectors without
//! locks. Updates may be lost, and runs are not reproducible.
//!
//! Rows are shared as relaxed atomics, so that a race is no undefined behaviour. Since atomics cannot
//! be used in SIMD arithmetic, a thread copies the rows of a batch, updates the copies by the shared
//! kernels, and adds the differences to the current values.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use pulp::Arch;

use super::kernel::{self, ThreadTables};
use super::windows::{TRUE, WindowPlan, Windows};
use super::{LossSum, Word2VecTables};
use crate::columns::{ColumnMatrix, LINE, shares};
use crate::watch::Meter;

/// Two values side by side in one atomic.
struct AtomicTable {
    /// Atomics in a row.
    width: usize,
    pairs: Vec<AtomicU64>,
}

fn pack(low: f32, high: f32) -> u64 {
    u64::from(low.to_bits()) | u64::from(high.to_bits()) << 32
}

fn unpack(pair: u64) -> [f32; 2] {
    [f32::from_bits(pair as u32), f32::from_bits((pair >> 32) as u32)]
}

impl AtomicTable {
    fn new(values: &[f32], dim: usize) -> Self {
        let width = dim.next_multiple_of(LINE) / 2;
        let mut pairs = Vec::with_capacity(values.len() / dim * width);
        for row in values.chunks_exact(dim) {
            let at = |column: usize| row.get(column).copied().unwrap_or(0.0);
            let pair = |pair: usize| AtomicU64::new(pack(at(2 * pair), at(2 * pair + 1)));
            pairs.extend((0..width).map(pair));
        }
        Self { width, pairs }
    }

    fn values(&self, dim: usize) -> Vec<f32> {
        let rows = self.pairs.chunks_exact(self.width);
        rows.flat_map(|row| {
            row.iter().flat_map(|pair| unpack(pair.load(Ordering::Relaxed))).take(dim)
        })
        .collect()
    }

    fn row(&self, row: u32) -> &[AtomicU64] {
        &self.pairs[row as usize * self.width..][..self.width]
    }

    fn copy(&self, row: u32, to: &mut [f32]) {
        let (to, _) = to.as_chunks_mut::<2>();
        for (to, pair) in to.iter_mut().zip(self.row(row)) {
            *to = unpack(pair.load(Ordering::Relaxed));
        }
    }

    fn add_difference(&self, row: u32, before: &[f32], after: &[f32]) {
        let ((before, _), (after, _)) = (before.as_chunks::<2>(), after.as_chunks::<2>());
        for ((pair, before), after) in self.row(row).iter().zip(before).zip(after) {
            let [low, high] = unpack(pair.load(Ordering::Relaxed));
            let now = pack(low + (after[0] - before[0]), high + (after[1] - before[1]));
            pair.store(now, Ordering::Relaxed);
        }
    }
}

/// The vectors, shared by all threads.
pub(super) struct Hogwild {
    dim: usize,
    threads: usize,
    input: AtomicTable,
    output: AtomicTable,
}

impl Hogwild {
    pub(super) fn new(model: Word2VecTables, threads: usize) -> Self {
        let Word2VecTables { dim, input, output } = model;
        let (input, output) = (AtomicTable::new(&input, dim), AtomicTable::new(&output, dim));
        Self { dim, threads: crate::threads(threads), input, output }
    }

    pub(super) fn model(&self) -> Word2VecTables {
        let [input, output] = [&self.input, &self.output].map(|table| table.values(self.dim));
        Word2VecTables { dim: self.dim, input, output }
    }

    /// Goes through the text once; nothing where it was stopped.
    pub(super) fn epoch(
        &self,
        windows: &Windows<'_>,
        epoch: usize,
        meter: &Meter,
    ) -> Option<LossSum> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut worker = Worker::new(self);
            let mut plan = WindowPlan::default();
            let mut sum = LossSum::default();
            loop {
                let block = next.fetch_add(1, Ordering::Relaxed);
                if block >= windows.blocks() || meter.stopped() {
                    break;
                }
                windows.draw(epoch, block, &mut plan);
                sum.loss += worker.learn(&plan);
                sum.examples += plan.examples;
                meter.add(plan.words);
            }
            sum
        };
        let sums = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..self.threads).map(|_| scope.spawn(work)).collect();
            let join = |worker: std::thread::ScopedJoinHandle<'_, LossSum>| match worker.join() {
                Ok(sum) => sum,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            workers.into_iter().map(join).collect::<Vec<_>>()
        });
        let add = |a: LossSum, b: LossSum| LossSum {
            loss: a.loss + b.loss,
            examples: a.examples + b.examples,
        };
        (!meter.stopped()).then(|| sums.into_iter().fold(LossSum::default(), add))
    }
}

/// One thread and its copies.
struct Worker<'a> {
    arch: Arch,
    tables: ThreadTables,
    /// The rows of the batch under the numbers of the copies.
    local: WindowPlan,
    input: Copies<'a>,
    output: Copies<'a>,
    dots: Vec<f32>,
    parts: Vec<f32>,
}

impl<'a> Worker<'a> {
    fn new(hogwild: &'a Hogwild) -> Self {
        let share = shares(hogwild.dim, 1).remove(0);
        let width = share.width;
        Self {
            arch: Arch::new(),
            tables: ThreadTables {
                share,
                input: ColumnMatrix::new(0, width),
                output: ColumnMatrix::new(0, width),
            },
            local: WindowPlan::default(),
            input: Copies::of(&hogwild.input),
            output: Copies::of(&hogwild.output),
            dots: Vec::new(),
            parts: Vec::new(),
        }
    }

    fn learn(&mut self, plan: &WindowPlan) -> f64 {
        let mut loss = 0.0;
        let mut start = 0;
        for &(end, lr) in &plan.batches {
            self.localise(plan, start, end as usize);
            self.input.fetch(&mut self.tables.input);
            self.output.fetch(&mut self.tables.output);
            let batch = 0..self.local.windows.len();
            let targets = &self.local.targets;
            self.parts.resize(targets.len() * self.tables.share.within.len(), 0.0);
            kernel::dots(self.arch, &self.tables, &self.local, batch.clone(), &mut self.parts);
            self.dots.clear();
            self.dots.resize(targets.len(), 0.0);
            for part in self.parts.chunks_exact(targets.len()) {
                self.dots.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
            }
            loss += kernel::coefficients(self.arch, targets, lr, &mut self.dots);
            kernel::update(self.arch, &mut self.tables, &self.local, batch, &self.dots);
            self.input.give_back(&self.tables.input);
            self.output.give_back(&self.tables.output);
            start = end as usize;
        }
        loss
    }

    /// Renumbers the rows of a batch by the copies that will be made of them.
    fn localise(&mut self, plan: &WindowPlan, start: usize, end: usize) {
        let (from, to) = (plan.ends(start), plan.ends(end));
        let local = &mut self.local;
        local.inputs.clear();
        local.inputs.extend(plan.inputs[from[0]..to[0]].iter().map(|&row| self.input.number(row)));
        local.targets.clear();
        local.targets.extend(
            plan.targets[from[1]..to[1]]
                .iter()
                .map(|&target| self.output.number(target & !TRUE) | (target & TRUE)),
        );
        local.windows.clear();
        let ends = plan.windows[start..end].iter();
        local.windows.extend(ends.map(|ends| [ends[0] - from[0] as u32, ends[1] - from[1] as u32]));
    }
}

/// Copies of some rows of a shared table.
struct Copies<'a> {
    of: &'a AtomicTable,
    /// The number of each row's copy; [`NONE`] where there is none.
    numbers: Vec<u32>,
    rows: Vec<u32>,
    before: Vec<f32>,
}

const NONE: u32 = u32::MAX;

impl<'a> Copies<'a> {
    fn of(of: &'a AtomicTable) -> Self {
        let rows = of.pairs.len() / of.width;
        Self { of, numbers: vec![NONE; rows], rows: Vec::new(), before: Vec::new() }
    }

    fn number(&mut self, row: u32) -> u32 {
        let number = &mut self.numbers[row as usize];
        if *number == NONE {
            *number = self.rows.len() as u32;
            self.rows.push(row);
        }
        *number
    }

    fn fetch(&mut self, to: &mut ColumnMatrix) {
        let width = to.width;
        to.make_room(self.rows.len());
        for (&row, to) in self.rows.iter().zip(to.values_mut().chunks_exact_mut(width)) {
            self.of.copy(row, to);
        }
        self.before.clear();
        self.before.extend_from_slice(&to.values()[..self.rows.len() * width]);
    }

    fn give_back(&mut self, from: &ColumnMatrix) {
        let rows = self.before.chunks_exact(from.width).zip(from.values().chunks_exact(from.width));
        for (&row, (before, after)) in self.rows.iter().zip(rows) {
            self.of.add_difference(row, before, after);
            self.numbers[row as usize] = NONE;
        }
        self.rows.clear();
    }
}
