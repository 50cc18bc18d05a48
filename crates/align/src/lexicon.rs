//! The parameters of one direction: the E-step and M-step of expectation-maximisation, and Viterbi
//! links.

use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use rayon::prelude::*;

use terms::interrupt::Interruption;

use crate::diagonal::Diagonal;
use crate::special::exp_digamma;
use crate::table::{CountTable, TableColumn, TableShard};
use crate::view::{DirectionView, Occurrence, OccurrenceBatch};
use crate::words::NULL;

/// The probability of a translation that was never seen.
const UNSEEN: f64 = 1e-9;

/// Marks a word aligned to null.
const TO_NULL: u16 = u16::MAX;

/// The fixed-point unit in which posteriors are summed, so that the order of summation does not matter.
const ONE: f64 = (1_u64 << 32) as f64;

/// How expected counts become probabilities (the M-step).
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ParameterEstimate {
    /// Before the first iteration: uniform.
    First(f64),
    /// Maximum likelihood: the count divided by the given word's total; these are the inverse totals.
    Share(Vec<f64>),
    /// Variational Bayes under a Dirichlet prior α: exp(ψ(count + α)) times these, by given word.
    Bayes(f64, Vec<f64>),
}

/// The parameters of one direction: translation table, null probability and tension.
#[derive(Debug)]
pub struct DirectionModel {
    pub(crate) table: CountTable,
    pub(crate) estimate: ParameterEstimate,
    pub(crate) null: f64,
    pub(crate) tension: f64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LikelihoodSums {
    pub(crate) log: f64,
    /// Expected words aligned to null.
    pub(crate) null: f64,
    /// Features -|i/n - j/m| of links.
    pub(crate) feature: f64,
}

/// The expected statistics of one E-step besides counts.
pub(crate) struct EmStatistics {
    pub(crate) sums: LikelihoodSums,
    /// Expected words not aligned to null, by length pair and position.
    pub(crate) linked: Vec<f64>,
}

/// Viterbi links: for each generated word of a text, the position of the given word.
pub(crate) struct BestLinks {
    places: Vec<AtomicU16>,
}

impl BestLinks {
    /// The place linked to the word at `at` among all words of its side.
    pub(crate) fn place(&self, at: usize) -> Option<u16> {
        Some(self.places[at].load(Ordering::Relaxed)).filter(|&place| place != TO_NULL)
    }
}

/// A given word while its explained word is at hand.
#[derive(Clone, Copy)]
struct GivenWord {
    probability: f64,
    count: f64,
}

struct ThreadTables {
    /// For all given words.
    cells: Vec<GivenWord>,
    /// One occurrence's probabilities.
    row: Vec<f64>,
    /// How many words are linked to something, by shape and place, in parts of [`ONE`].
    linked: Vec<u64>,
    fetched: OccurrenceBatch,
}

impl ThreadTables {
    fn new(view: &DirectionView) -> Self {
        let longest = view.shapes().iter().map(|shape| shape.n).max().unwrap_or(0);
        let cell = GivenWord { probability: UNSEEN, count: 0.0 };
        Self {
            cells: vec![cell; view.given_ids()],
            row: vec![0.0; longest],
            linked: vec![0; view.places()],
            fetched: OccurrenceBatch::default(),
        }
    }

    /// Adds the thread's sums to the shared ones. Integers have the same sum in any order.
    fn flush(&mut self, linked: &[AtomicU64]) {
        for (mine, sum) in self.linked.iter_mut().zip(linked) {
            if *mine > 0 {
                sum.fetch_add(std::mem::take(mine), Ordering::Relaxed);
            }
        }
    }
}

impl DirectionModel {
    /// The probability of a translation whose expected count this is. Never quite nothing, so that
    /// every text can be explained somehow.
    fn probability(&self, given: u32, count: f32) -> f64 {
        let probability = match &self.estimate {
            ParameterEstimate::First(probability) => *probability,
            ParameterEstimate::Share(inverse) => f64::from(count) * inverse[given as usize],
            ParameterEstimate::Bayes(alpha, inverse) => {
                exp_digamma(f64::from(count) + alpha) * inverse[given as usize]
            }
        };
        probability.max(f64::MIN_POSITIVE)
    }

    pub(crate) fn diagonal(&self, view: &DirectionView) -> Diagonal {
        Diagonal::new(self.tension, view.shapes().iter().map(|shape| shape.n))
    }

    /// The E-step: replaces the counts by the expected counts under the current parameters. `origin` is
    /// subtracted from a word's position in the observed feature (0, or 1 as in fast_align).
    pub(crate) fn learn(&mut self, view: &DirectionView, origin: f64) -> EmStatistics {
        let diagonal = self.diagonal(view);
        let linked: Vec<AtomicU64> = (0..view.places()).map(|_| AtomicU64::new(0)).collect();
        let mut table = std::mem::take(&mut self.table);
        let interruption = Interruption::current();
        let learn = |tables: &mut ThreadTables, shard: &mut TableShard| {
            interruption.check();
            let mut sums = LikelihoodSums::default();
            shard.for_each_column(|column| {
                self.learn_word(view, &diagonal, origin, column, tables, &mut sums);
            });
            tables.flush(&linked);
            sums
        };
        let shards = table.shards_mut().par_iter_mut();
        let sums: Vec<LikelihoodSums> =
            shards.map_init(|| ThreadTables::new(view), learn).collect();
        self.table = table;
        let linked = linked.into_iter().map(|sum| sum.into_inner() as f64 / ONE).collect();
        EmStatistics { sums: add_up(&sums), linked }
    }

    fn learn_word(
        &self,
        view: &DirectionView,
        diagonal: &Diagonal,
        origin: f64,
        column: TableColumn,
        tables: &mut ThreadTables,
        sums: &mut LikelihoodSums,
    ) {
        let ThreadTables { cells, row, linked, fetched } = tables;
        for (&given, &count) in column.given.iter().zip(&*column.counts) {
            let probability = self.probability(given, count);
            cells[given as usize] = GivenWord { probability, count: 0.0 };
        }
        view.for_each_occurrence(column.word, fetched, |occurrence| {
            let Occurrence { given, shape, j, .. } = occurrence;
            let row = &mut row[..given.len()];
            let (empty, sum) = self.explain(diagonal, &occurrence, cells, row);
            let inverse = 1.0 / sum;
            // The word's own place, in places of the other sentence.
            let middle = (j as f64 - origin) * shape.n as f64 / shape.m as f64 - 1.0;
            let mut distance = 0.0;
            for (i, (&word, &weight)) in given.iter().zip(&*row).enumerate() {
                let share = weight * inverse;
                cells[word as usize].count += share;
                distance += share * (i as f64 - middle).abs();
            }
            let empty = empty * inverse;
            cells[NULL as usize].count += empty;
            sums.log += sum.ln();
            sums.null += empty;
            sums.feature -= distance / shape.n as f64;
            linked[shape.base + j - 1] += ((1.0 - empty) * ONE) as u64;
        });
        for (&given, count) in column.given.iter().zip(column.counts) {
            *count = cells[given as usize].count as f32;
        }
    }

    /// Fills in the joint probabilities of an occurrence with each given word; what comes back is
    /// that with the empty word, and the sum of all.
    fn explain(
        &self,
        diagonal: &Diagonal,
        occurrence: &Occurrence,
        cells: &[GivenWord],
        row: &mut [f64],
    ) -> (f64, f64) {
        let Occurrence { given, shape, j, .. } = *occurrence;
        let weights = diagonal.row(j, shape.m, shape.n).scaled_to(1.0 - self.null);
        let empty = cells[NULL as usize].probability * self.null;
        let mut sum = empty;
        let (lower, upper) = row.split_at_mut(weights.floor);
        let (given_lower, given_upper) = given.split_at(weights.floor);
        for ((joint, &word), power) in lower.iter_mut().zip(given_lower).rev().zip(weights.power) {
            *joint = cells[word as usize].probability * (weights.below * power);
            sum += *joint;
        }
        for ((joint, &word), power) in upper.iter_mut().zip(given_upper).zip(weights.power) {
            *joint = cells[word as usize].probability * (weights.above * power);
            sum += *joint;
        }
        (empty, sum)
    }

    /// The M-step: maximum likelihood, or variational Bayes under a Dirichlet prior.
    pub(crate) fn estimate(&mut self, given_ids: usize, prior: Option<f64>) {
        let inverse = |total: f64| if total > 0.0 { 1.0 / total } else { 0.0 };
        self.estimate = match prior {
            None => {
                let totals = self.table.totals(given_ids, f64::from);
                ParameterEstimate::Share(totals.into_iter().map(inverse).collect())
            }
            Some(alpha) => {
                let totals = self.table.totals(given_ids, |count| f64::from(count) + alpha);
                let scale =
                    |total: f64| inverse(if total > 0.0 { exp_digamma(total) } else { 0.0 });
                ParameterEstimate::Bayes(alpha, totals.into_iter().map(scale).collect())
            }
        };
    }

    /// Links every generated word to its most probable given word or to null. Of equals, null comes
    /// first, then the first position.
    pub(crate) fn best(&self, view: &DirectionView) -> (BestLinks, LikelihoodSums) {
        let diagonal = self.diagonal(view);
        let places = (0..view.explained_tokens()).map(|_| AtomicU16::new(TO_NULL)).collect();
        let best = BestLinks { places };
        let shards = self.table.shards().par_iter();
        let interruption = Interruption::current();
        let link = |tables: &mut ThreadTables, shard: &TableShard| {
            interruption.check();
            let mut sums = LikelihoodSums::default();
            for column in shard.columns() {
                self.link_word(view, &diagonal, column, tables, &mut sums, &best);
            }
            sums
        };
        let sums: Vec<LikelihoodSums> = shards.map_init(|| ThreadTables::new(view), link).collect();
        (best, add_up(&sums))
    }

    fn link_word(
        &self,
        view: &DirectionView,
        diagonal: &Diagonal,
        (word, given, counts): (usize, &[u32], &[f32]),
        tables: &mut ThreadTables,
        sums: &mut LikelihoodSums,
        best: &BestLinks,
    ) {
        let ThreadTables { cells, row, fetched, .. } = tables;
        for (&given, &count) in given.iter().zip(counts) {
            cells[given as usize].probability = self.probability(given, count);
        }
        view.for_each_occurrence(word, fetched, |occurrence| {
            let row = &mut row[..occurrence.given.len()];
            let (empty, sum) = self.explain(diagonal, &occurrence, cells, row);
            let mut most = (empty, TO_NULL);
            for (place, &joint) in (0..).zip(&*row) {
                if joint > most.0 {
                    most = (joint, place);
                }
            }
            best.places[occurrence.at].store(most.1, Ordering::Relaxed);
            sums.log += sum.ln();
            sums.null += empty / sum;
        });
        for &given in given {
            cells[given as usize].probability = UNSEEN;
        }
    }

    /// The posterior probability of each given position (from 0) for each generated word, m x (n + 1),
    /// the last column for null; and the log-probability of the sentence.
    pub fn posteriors(&self, given: &[u32], explained: &[u32]) -> (Vec<f64>, f64) {
        let (m, n) = (explained.len(), given.len());
        if n == 0 || m == 0 {
            return (vec![1.0; m], 0.0);
        }
        let diagonal = Diagonal::new(self.tension, [n].into_iter());
        let mut all = Vec::with_capacity(m * (n + 1));
        let mut log = 0.0;
        for (j, &word) in (1..).zip(explained) {
            let (beside, counts) = self.table.column(word as usize);
            let probability = |word: u32| match beside.binary_search(&word) {
                Ok(at) => self.probability(word, counts[at]),
                Err(_) => UNSEEN,
            };
            let weights = diagonal.row(j, m, n).scaled_to(1.0 - self.null);
            let from = all.len();
            all.extend((1..).zip(given).map(|(i, &word)| probability(word) * weights.weight(i)));
            all.push(probability(NULL) * self.null);
            let row = &mut all[from..];
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|joint| *joint /= sum);
            log += sum.ln();
        }
        (all, log)
    }
}

fn add_up(parts: &[LikelihoodSums]) -> LikelihoodSums {
    parts.iter().fold(LikelihoodSums::default(), |whole, part| LikelihoodSums {
        log: whole.log + part.log,
        null: whole.null + part.null,
        feature: whole.feature + part.feature,
    })
}
