//! Nearest neighbours among many vectors: by cosine, by CSLS (cross-domain similarity local scaling,
//! Lample et al. 2018), or by margin (Artetxe and Schwenk 2019).
//!
//! Scores are computed a tile at a time, and the best are selected while the tile is still in the
//! cache, so that all scores are never in memory. One pass finds the neighbours of both sides, and
//! with them the two means that CSLS and margins need. Of equal scores the lower row comes first, and
//! tiles are cut by shape alone: the result is the same on any number of threads. A large search runs
//! on a GPU where there is one, with the same result but for the rounding of the matmuls.

mod dropout;
mod resident;
mod sift;
mod top;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use arrays::Matrix;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tensor::Device;
use terms::interrupt::Interruption;

use crate::matmul::rows_by_rows;
use crate::normalize::{Step, normalize};
use crate::{Error, Result};
pub use dropout::SimilarityDropout;
use resident::Resident;
use sift::Sieve;
pub use top::Neighbours;
pub(crate) use top::Top;

/// Rows and columns of a tile of scores: half of what the second cache holds.
const TILE_ROWS: usize = 256;
const TILE_COLS: usize = 512;
/// Queries that are ranked at once, against every target.
const RANKED: usize = 32;
/// A margin is a quotient, and never by less than this.
pub(crate) const LEAST: f32 = 1e-6;

/// How two vectors are scored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// Their cosine.
    Cosine,
    /// CSLS: twice their cosine, less the mean cosine of each to its `k` nearest on the other side.
    Csls {
        /// Neighbours that make up the mean.
        k: usize,
    },
    /// Ratio margin: their cosine, divided by the mean of those two means.
    Ratio {
        /// Neighbours that make up the mean.
        k: usize,
    },
    /// Distance margin: their cosine, less the mean of those two means.
    Distance {
        /// Neighbours that make up the mean.
        k: usize,
    },
}

impl Measure {
    /// The measure of a name (`nn`, `csls`, `margin`, `margin-distance`) among so many rows. Without a number of neighbours, CSLS
    /// takes 10 and margins 4, or all where there are fewer.
    ///
    /// # Errors
    /// Where there is no such measure, or there are fewer rows than neighbours were asked for.
    pub fn named(name: &str, neighbours: Option<usize>, rows: usize) -> Result<Self> {
        if let Some(k) = neighbours.filter(|&k| k > rows || k == 0) {
            let reason = format!("{k} neighbours: there are {rows} rows; give fewer, at least 1");
            return Err(Error::of_key("neighbors", reason));
        }
        let k = |otherwise: usize| neighbours.unwrap_or(otherwise.min(rows));
        match name {
            "nn" => Ok(Measure::Cosine),
            "csls" => Ok(Measure::Csls { k: k(10) }),
            "margin" => Ok(Measure::Ratio { k: k(4) }),
            "margin-distance" => Ok(Measure::Distance { k: k(4) }),
            _ => {
                let reason =
                    format!("there is no `{name}`; give nn, csls, margin or margin-distance");
                Err(Error::of_key("retrieval", reason))
            }
        }
    }

    /// As a signature names it.
    pub fn describe(self) -> String {
        match self {
            Measure::Cosine => "nn".to_owned(),
            Measure::Csls { k } => format!("csls,k={k}"),
            Measure::Ratio { k } => format!("margin-ratio,k={k}"),
            Measure::Distance { k } => format!("margin-distance,k={k}"),
        }
    }

    fn neighbours(self) -> Option<usize> {
        match self {
            Measure::Cosine => None,
            Measure::Csls { k } | Measure::Ratio { k } | Measure::Distance { k } => Some(k),
        }
    }
}

/// Called with how many steps are done, and of how many.
pub type Watch<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// For callers that show no progress.
pub fn unwatched(_: u64, _: u64) {}

/// The scores between two sets of vectors, ready to be asked for.
pub struct Scores {
    /// Of unit length.
    source: Matrix,
    /// Of unit length.
    target: Matrix,
    measure: Measure,
    /// The mean cosine of each source vector to its nearest targets; empty where not needed.
    of_source: Vec<f32>,
    /// The mean cosine of each target vector to its nearest sources; empty where not needed.
    of_target: Vec<f32>,
    dropout: Option<SimilarityDropout>,
    device: Device,
    /// Both sides in the memory of a GPU, once neighbours were searched there.
    resident: OnceLock<Option<Resident>>,
}

impl Scores {
    /// Prepares the scores of all sources against all targets. On a device that is a GPU they are
    /// computed there, unless there are few: below 2·10⁹ operations the CPU is faster.
    ///
    /// # Panics
    /// Where the two differ in dimension, or one has no row.
    pub fn new(
        mut source: Matrix,
        mut target: Matrix,
        measure: Measure,
        device: &Device,
        watch: Watch<'_>,
    ) -> Self {
        assert_eq!(source.cols(), target.cols(), "vectors are compared within one dimension");
        assert!(source.rows() > 0 && target.rows() > 0, "there is something to search");
        normalize(&mut source, &[Step::Unit]);
        normalize(&mut target, &[Step::Unit]);
        let mut scores = Self {
            source,
            target,
            measure: Measure::Cosine,
            of_source: Vec::new(),
            of_target: Vec::new(),
            dropout: None,
            device: device.clone(),
            resident: OnceLock::new(),
        };
        if let Some(k) = measure.neighbours() {
            let (forward, backward) = scores.both_ways(k, watch);
            (scores.of_source, scores.of_target) = (forward.means(), backward.means());
            scores.measure = measure;
        }
        scores
    }

    /// The same scores, some of them dropped at random in the search.
    pub(crate) fn with_dropout(self, dropout: Option<SimilarityDropout>) -> Self {
        Self { dropout, ..self }
    }

    /// The `k` best targets of each source, and the `k` best sources of each target.
    pub fn both_ways(&self, k: usize, watch: Watch<'_>) -> (Neighbours, Neighbours) {
        let (sources, targets) = (self.source.rows(), self.target.rows());
        let (wide, deep) = (k.min(targets), k.min(sources));
        if let Some([forward, backward]) = self.on_device([wide, deep], watch) {
            return (forward, backward);
        }
        let blocks = (0..targets).step_by(TILE_COLS);
        let block = |start: usize| Mutex::new(Top::new(TILE_COLS.min(targets - start), deep));
        let columns: Vec<Mutex<Top>> = blocks.map(block).collect();
        let rows = self.sweep(wide, Some(&columns), watch);
        let columns = columns.into_iter().map(|block| block.into_inner().expect("no panic"));
        (Neighbours::join(rows, wide), Neighbours::join(columns.collect(), deep))
    }

    /// The `k` best targets of each source.
    pub fn nearest(&self, k: usize) -> Neighbours {
        let k = k.min(self.target.rows());
        match self.on_device([k, 0], &unwatched) {
            Some([forward, _]) => forward,
            None => Neighbours::join(self.sweep(k, None, &unwatched), k),
        }
    }

    /// The best of each source and of each target, where the search runs on a GPU.
    fn on_device(&self, k: [usize; 2], watch: Watch<'_>) -> Option<[Neighbours; 2]> {
        let make = || Resident::new(&self.device, &self.source, &self.target);
        self.resident.get_or_init(make).as_ref()?.best(self, k, watch)
    }

    /// Goes over all tiles, strips of rows on all threads, and keeps the best of each row and, where
    /// asked, of each column.
    fn sweep(&self, k: usize, columns: Option<&[Mutex<Top>]>, watch: Watch<'_>) -> Vec<Top> {
        let starts: Vec<usize> = (0..self.source.rows()).step_by(TILE_ROWS).collect();
        let done = AtomicU64::new(0);
        let interruption = Interruption::current();
        let strip = |&start: &usize| {
            let rows = start..self.source.rows().min(start + TILE_ROWS);
            let means = self.of_source.get(rows.clone()).unwrap_or_default();
            let mut top = Top::new(rows.len(), k);
            let mut tile = vec![0.0; rows.len() * TILE_COLS];
            for (number, col) in (0..self.target.rows()).step_by(TILE_COLS).enumerate() {
                interruption.check();
                let cols = col..self.target.rows().min(col + TILE_COLS);
                let tile = &mut tile[..rows.len() * cols.len()];
                self.fill(self.source.strip(rows.clone()), means, cols.clone(), tile);
                if let Some(dropout) = self.dropout {
                    dropout.apply(start, cols.clone(), tile);
                }
                let mut sieve = Sieve { rows: &mut top, first_row: start, first_col: col };
                match columns {
                    None => sieve.one_way(tile, cols.len()),
                    Some(blocks) => {
                        let mut block = blocks[number].lock().expect("no panic while it is held");
                        sieve.both_ways(tile, &mut block);
                    }
                }
            }
            watch(done.fetch_add(1, Ordering::Relaxed) + 1, starts.len() as u64);
            top
        };
        starts.par_iter().with_max_len(1).map(strip).collect()
    }

    /// Writes the scores of some sources (`rows x dim`, with their means) and some targets: rows x
    /// cols.
    fn fill(&self, rows: &[f32], means: &[f32], cols: Range<usize>, tile: &mut [f32]) {
        rows_by_rows(rows, self.target.strip(cols.clone()), self.source.cols(), tile);
        if self.measure == Measure::Cosine {
            return;
        }
        let of_target = &self.of_target[cols.clone()];
        for (&own, scores) in means.iter().zip(tile.chunks_exact_mut(cols.len())) {
            let each = scores.iter_mut().zip(of_target);
            match self.measure {
                Measure::Cosine => {}
                Measure::Csls { .. } => each.for_each(|(x, mean)| *x = 2.0 * *x - own - mean),
                Measure::Distance { .. } => each.for_each(|(x, mean)| *x -= (own + mean) / 2.0),
                Measure::Ratio { .. } => {
                    each.for_each(|(x, mean)| *x /= ((own + mean) / 2.0).max(LEAST));
                }
            }
        }
    }

    /// For each query, a source and the targets that are right for it, the place of the best right
    /// one among all targets, from 1.
    pub fn ranks(&self, queries: &[(u32, Vec<u32>)]) -> Vec<usize> {
        let targets = self.target.rows();
        let strip = |queries: &[(u32, Vec<u32>)]| -> Vec<usize> {
            let scores = self.scores_of(queries.iter().map(|(source, _)| *source));
            let ranked = scores.chunks_exact(targets).zip(queries);
            ranked.map(|(scores, (_, right))| rank(scores, right)).collect()
        };
        queries.par_chunks(RANKED).flat_map_iter(strip).collect()
    }

    /// The `k` best targets of some sources, in the order in which these are given.
    pub fn nearest_of(&self, sources: &[u32], k: usize) -> Neighbours {
        let targets = self.target.rows();
        let k = k.min(targets);
        let strip = |sources: &[u32]| {
            let scores = self.scores_of(sources.iter().copied());
            let mut top = Top::new(sources.len(), k);
            Sieve { rows: &mut top, first_row: 0, first_col: 0 }.one_way(&scores, targets);
            top
        };
        Neighbours::join(sources.par_chunks(RANKED).map(strip).collect(), k)
    }

    /// The sources and targets that are each other's best, with their score, in the order of the sources.
    pub fn mutual(&self, watch: Watch<'_>) -> Vec<(u32, u32, f32)> {
        let (forward, backward) = self.both_ways(1, watch);
        let pair = |row: usize| {
            let (best, score) = (forward.ids(row)[0], forward.scores(row)[0]);
            (backward.ids(best as usize)[0] as usize == row).then_some((row as u32, best, score))
        };
        (0..forward.rows()).filter_map(pair).collect()
    }

    /// The scores of some sources with every target: sources x targets.
    fn scores_of(&self, sources: impl Iterator<Item = u32> + Clone) -> Vec<f32> {
        let rows = self.source.select(sources.clone().map(|source| source as usize));
        let mean = |source: u32| self.of_source.get(source as usize).copied();
        let means: Vec<f32> = sources.filter_map(mean).collect();
        let targets = self.target.rows();
        let mut scores = vec![0.0; rows.rows() * targets];
        self.fill(rows.values(), &means, 0..targets, &mut scores);
        scores
    }
}

/// The place of the best of the right targets, from 1.
fn rank(scores: &[f32], right: &[u32]) -> usize {
    let places = right.iter().map(|&gold| {
        let own = scores[gold as usize];
        let (before, after) = scores.split_at(gold as usize);
        let above = after.iter().filter(|&&score| score > own).count();
        1 + above + before.iter().filter(|&&score| score >= own).count()
    });
    places.min().expect("a query has at least one right answer")
}
