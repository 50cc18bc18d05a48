//! Training on threads that each own some columns: the same bits on any number of them.
//!
//! Biases are few, so every thread has all of them and moves them alike.

use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};

use pulp::Arch;
use text::RandomStreams;

use super::buckets::{Buckets, PairRecord};
use super::kernel::{self, AdaGradStep, ThreadTables};
use super::{GloveConfig, GloveTables};
use crate::Result;
use crate::columns::{
    BatchDots, ColumnMatrix, Exchange, gather, on_threads, scatter, shares, units,
};
use crate::random::SplitMix64;
use crate::watch::Meter;

const BATCH: u64 = 512;
/// How often a row may come in a batch on average: see Word2Vec's batches.
const TOUCHES: u64 = 8;

pub(super) struct GloveTeam {
    dim: usize,
    words: usize,
    members: Vec<TeamMember>,
    rules: UpdateRules,
}

#[derive(Clone, Copy)]
struct UpdateRules {
    step: AdaGradStep,
    compat: bool,
    seed: u64,
    batch: usize,
}

struct TeamMember {
    tables: ThreadTables,
    biases: Vec<[f32; 4]>,
}

impl GloveTeam {
    pub(super) fn new(model: GloveTables, config: &GloveConfig, pairs: u64) -> Self {
        let (dim, words) = (model.dim, model.biases.len());
        let member = |share: crate::columns::ColumnShare| {
            let table = |whole: &[f32], padding: f32| {
                let mut matrix = ColumnMatrix::new(words, share.width);
                matrix.values_mut().fill(padding);
                scatter(whole, dim, &share, &mut matrix);
                matrix
            };
            let tables = ThreadTables {
                word: table(&model.word, 0.0),
                context: table(&model.context, 0.0),
                // Padding is divided by too.
                word_squares: table(&model.word_squares, 1.0),
                context_squares: table(&model.context_squares, 1.0),
                share: share.clone(),
            };
            TeamMember { tables, biases: model.biases.clone() }
        };
        let members = shares(dim, crate::threads(config.threads)).into_iter().map(member).collect();
        let step = AdaGradStep { lr: config.lr, clip: config.clip };
        // No word is in more pairs than there are words.
        let batch = (TOUCHES * pairs / words as u64).clamp(1, BATCH) as usize;
        let rules = UpdateRules { step, compat: config.compat, seed: config.seed, batch };
        Self { dim, words, members, rules }
    }

    pub(super) fn model(&self) -> GloveTables {
        let whole = |of: fn(&ThreadTables) -> &ColumnMatrix| {
            let mut whole = vec![0.0; self.words * self.dim];
            for TeamMember { tables, .. } in &self.members {
                gather(of(tables), &tables.share, self.dim, &mut whole);
            }
            whole
        };
        GloveTables {
            dim: self.dim,
            word: whole(|tables| &tables.word),
            context: whole(|tables| &tables.context),
            word_squares: whole(|tables| &tables.word_squares),
            context_squares: whole(|tables| &tables.context_squares),
            biases: self.members[0].biases.clone(),
        }
    }

    /// Goes through all pairs once and gives the sum of their losses; nothing where it was stopped.
    pub(super) fn epoch(
        &mut self,
        buckets: &Buckets,
        epoch: usize,
        meter: &Meter,
    ) -> Result<Option<f64>> {
        let threads = self.members.len();
        let mut order: Vec<usize> = (0..buckets.sizes.len()).collect();
        let chance = RandomStreams::new(self.rules.seed, "glove: order of buckets");
        chance.stream(epoch as u64).shuffle(&mut order);
        let shared = EpochShared {
            rules: self.rules,
            buckets,
            epoch,
            order,
            loaded: (0..threads).map(|_| RwLock::default()).collect(),
            exchange: Exchange::new(threads, units(self.dim), self.rules.batch),
            stopping: AtomicBool::new(false),
            meter,
        };
        let work = |thread, member: &mut TeamMember| shared.work(thread, member);
        let losses: Vec<Result<f64>> = on_threads(&mut self.members, work);
        // All threads add up the same losses.
        let losses: Vec<f64> = losses.into_iter().collect::<Result<_>>()?;
        Ok((!shared.stopping.into_inner()).then_some(losses[0]))
    }
}

/// What the threads have in common for an epoch.
struct EpochShared<'a> {
    rules: UpdateRules,
    buckets: &'a Buckets,
    epoch: usize,
    order: Vec<usize>,
    /// Each thread's bucket of the round.
    loaded: Vec<RwLock<Vec<PairRecord>>>,
    exchange: Exchange,
    stopping: AtomicBool,
    meter: &'a Meter,
}

impl EpochShared<'_> {
    /// In each round every thread reads and shuffles one bucket, and then all go through all of
    /// them, each with its own columns.
    fn work(&self, thread: usize, member: &mut TeamMember) -> Result<f64> {
        let arch = Arch::new();
        let mut room = BatchDots::default();
        let mut loss = 0.0;
        for round in self.order.chunks(self.loaded.len()) {
            let mut read = Ok(());
            if let Some(&bucket) = round.get(thread) {
                let mut records = self.loaded[thread].write().expect("no thread fails");
                read = self.load(bucket, &mut records);
            }
            if read.is_err() || (thread == 0 && self.meter.stopped()) {
                self.stopping.store(true, Ordering::Relaxed);
            }
            self.exchange.barrier.wait();
            if self.stopping.load(Ordering::Relaxed) {
                return read.map(|()| loss);
            }
            for of in 0..round.len() {
                let records = self.loaded[of].read().expect("no thread fails");
                for batch in records.chunks(self.rules.batch) {
                    loss += learn(arch, member, batch, self.rules, &self.exchange, &mut room);
                }
                if of == thread {
                    self.meter.add(records.len() as u64);
                }
            }
            // Nobody may read anew while another still learns.
            self.exchange.barrier.wait();
        }
        Ok(loss)
    }

    fn load(&self, bucket: usize, records: &mut Vec<PairRecord>) -> Result<()> {
        self.buckets.read(bucket, records)?;
        let number = (self.epoch * self.buckets.sizes.len() + bucket) as u64;
        let mut random =
            SplitMix64::new(&RandomStreams::new(self.rules.seed, "glove: order of pairs"), number);
        for last in (1..records.len()).rev() {
            records.swap(last, random.below(last as u32 + 1) as usize);
        }
        Ok(())
    }
}

/// Learns from a batch and gives its loss.
fn learn(
    arch: Arch,
    member: &mut TeamMember,
    records: &[PairRecord],
    rules: UpdateRules,
    exchange: &Exchange,
    room: &mut BatchDots,
) -> f64 {
    let TeamMember { tables, biases } = member;
    let dots = room.of(records.len(), &tables.share, exchange, |parts| {
        kernel::dots(arch, tables, records, parts);
    });
    let mut loss = 0.0;
    for (record, dot) in records.iter().zip(&mut *dots) {
        let (word, context) = (record.word as usize, record.context as usize);
        let error = *dot + biases[word][0] + biases[context][1] - record.log;
        let weighted = record.weight * error;
        loss += f64::from(0.5 * weighted * error);
        let by = rules.bias_step(weighted);
        biases[word][0] -= by / biases[word][2].sqrt();
        biases[context][1] -= by / biases[context][3].sqrt();
        biases[word][2] += by * by;
        biases[context][3] += by * by;
        *dot = weighted;
    }
    kernel::update(arch, tables, records, dots, rules.step);
    loss
}

impl UpdateRules {
    fn bias_step(&self, weighted: f32) -> f32 {
        let AdaGradStep { lr, clip } = self.step;
        if self.compat { weighted } else { weighted.clamp(-clip, clip) * lr }
    }
}

#[cfg(test)]
pub(super) fn learn_once(team: &mut GloveTeam, records: &[PairRecord]) -> f64 {
    let exchange = Exchange::new(1, units(team.dim), records.len());
    let rules = team.rules;
    let member = &mut team.members[0];
    learn(Arch::new(), member, records, rules, &exchange, &mut BatchDots::default())
}
