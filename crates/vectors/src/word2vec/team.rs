//! Training on threads that each own some columns: the same bits on any number of them.

use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};

use pulp::Arch;

use super::kernel::{self, ThreadTables};
use super::windows::{WindowPlan, Windows};
use super::{LossSum, Word2VecTables};
use crate::columns::{
    BatchDots, ColumnMatrix, Exchange, gather, on_threads, scatter, shares, units,
};
use crate::watch::Meter;

pub(super) struct ColumnTeam {
    dim: usize,
    rows: [usize; 2],
    tables: Vec<ThreadTables>,
}

impl ColumnTeam {
    pub(super) fn new(model: Word2VecTables, threads: usize) -> Self {
        let Word2VecTables { dim, input, output } = model;
        let rows = [input.len() / dim, output.len() / dim];
        let tables = shares(dim, crate::threads(threads)).into_iter().map(|share| {
            let mut tables = ThreadTables {
                input: ColumnMatrix::new(rows[0], share.width),
                output: ColumnMatrix::new(rows[1], share.width),
                share,
            };
            scatter(&input, dim, &tables.share, &mut tables.input);
            scatter(&output, dim, &tables.share, &mut tables.output);
            tables
        });
        Self { dim, rows, tables: tables.collect() }
    }

    pub(super) fn model(&self) -> Word2VecTables {
        let [mut input, mut output] = self.rows.map(|rows| vec![0.0; rows * self.dim]);
        for tables in &self.tables {
            gather(&tables.input, &tables.share, self.dim, &mut input);
            gather(&tables.output, &tables.share, self.dim, &mut output);
        }
        Word2VecTables { dim: self.dim, input, output }
    }

    #[cfg(test)]
    pub(super) fn first(&mut self) -> &mut ThreadTables {
        &mut self.tables[0]
    }

    /// Goes through the text once; nothing where it was stopped.
    pub(super) fn epoch(
        &mut self,
        windows: &Windows<'_>,
        epoch: usize,
        meter: &Meter,
    ) -> Option<LossSum> {
        let threads = self.tables.len();
        let shared = EpochShared {
            windows,
            epoch,
            plans: (0..threads).map(|_| RwLock::default()).collect(),
            exchange: Exchange::new(threads, units(self.dim), windows.most_targets()),
            stopping: AtomicBool::new(false),
            meter,
        };
        let sums = on_threads(&mut self.tables, |thread, tables| shared.work(thread, tables));
        if shared.stopping.into_inner() {
            return None;
        }
        // A thread's n-th sum is of the n-th round; added up in the order of the blocks.
        let mut whole = LossSum::default();
        for block in 0..windows.blocks() {
            let sum = sums[block % threads][block / threads];
            whole.loss += sum.loss;
            whole.examples += sum.examples;
        }
        Some(whole)
    }
}

/// What the threads have in common for an epoch.
struct EpochShared<'a> {
    windows: &'a Windows<'a>,
    epoch: usize,
    /// Each thread's block of the round.
    plans: Vec<RwLock<WindowPlan>>,
    exchange: Exchange,
    stopping: AtomicBool,
    meter: &'a Meter,
}

impl EpochShared<'_> {
    /// In each round every thread draws the examples of one block, and then all go through all of
    /// them, each with its own columns. Gives the losses of the blocks that this thread drew.
    fn work(&self, thread: usize, tables: &mut ThreadTables) -> Vec<LossSum> {
        let arch = Arch::new();
        let mut room = BatchDots::default();
        let mut sums = Vec::new();
        let (blocks, threads) = (self.windows.blocks(), self.plans.len());
        for first in (0..blocks).step_by(threads) {
            if thread == 0 && self.meter.stopped() {
                self.stopping.store(true, Ordering::Relaxed);
            }
            if first + thread < blocks {
                let mut plan = self.plans[thread].write().expect("no thread fails");
                self.windows.draw(self.epoch, first + thread, &mut plan);
            }
            self.exchange.barrier.wait();
            if self.stopping.load(Ordering::Relaxed) {
                break;
            }
            for of in 0..threads.min(blocks - first) {
                let plan = self.plans[of].read().expect("no thread fails");
                let loss = learn(arch, tables, &plan, &self.exchange, &mut room);
                if of == thread {
                    sums.push(LossSum { loss, examples: plan.examples });
                    self.meter.add(plan.words);
                }
            }
            // Nobody may draw anew while another still reads.
            self.exchange.barrier.wait();
        }
        sums
    }
}

/// Learns from a block, batch by batch, and gives its loss.
pub(super) fn learn(
    arch: Arch,
    tables: &mut ThreadTables,
    plan: &WindowPlan,
    exchange: &Exchange,
    room: &mut BatchDots,
) -> f64 {
    let mut loss = 0.0;
    let mut start = 0;
    for &(end, lr) in &plan.batches {
        let batch = start..end as usize;
        let targets = &plan.targets[plan.ends(batch.start)[1]..plan.ends(batch.end)[1]];
        let dots = room.of(targets.len(), &tables.share, exchange, |parts| {
            kernel::dots(arch, tables, plan, batch.clone(), parts);
        });
        loss += kernel::coefficients(arch, targets, lr, dots);
        kernel::update(arch, tables, plan, batch, dots);
        start = end as usize;
    }
    loss
}
