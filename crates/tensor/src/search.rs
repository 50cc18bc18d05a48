//! The nearest of many vectors on a GPU: what is searched, how two vectors are scored, what comes back.
//!
//! On the CPU, callers that compare vectors compute tiles of scores by themselves and sift them in the
//! cache. A GPU ([`crate::kernels::Kernels::nearest`]) computes larger tiles in `f32` (not TF32) and
//! sifts them in its own memory, so that only the best scores are copied back.

use crate::value::Tensor;

/// The most scores that are kept of a row or of a column.
pub const MOST_BEST: usize = 32;

/// All vectors of one side scored against all of another.
pub struct NearestSearch<'a> {
    /// Vectors in rows, of full precision.
    pub source: &'a Tensor,
    /// Vectors in rows, as wide.
    pub target: &'a Tensor,
    /// How two are scored.
    pub rule: ScoreRule<'a>,
    /// Which scores count as lowest, where some do.
    pub dropout: Option<ScoreDropout>,
    /// How many are kept of each source's scores: from 1 to [`MOST_BEST`].
    pub of_source: usize,
    /// How many of each target's; 0 where none are asked for.
    pub of_target: usize,
}

/// How the dot product of two vectors becomes their score. `r` are the means of both vectors'
/// similarities to their nearest neighbours.
#[derive(Clone, Copy)]
pub enum ScoreRule<'a> {
    /// `x · y`: the cosine of vectors of length 1.
    Dot,
    /// CSLS, `2 x · y - r(x) - r(y)` (Lample et al. 2018).
    Csls(NeighbourMeans<'a>),
    /// The margin as a difference, `x · y - (r(x) + r(y)) / 2` (Artetxe and Schwenk 2019).
    MarginDistance(NeighbourMeans<'a>),
    /// The margin as a ratio, `x · y / ((r(x) + r(y)) / 2)`, where the divisor is no less than this.
    MarginRatio(NeighbourMeans<'a>, f32),
}

/// For each vector of both sides, the mean of its similarities to its nearest neighbours.
#[derive(Clone, Copy)]
pub struct NeighbourMeans<'a> {
    /// One row, as many columns as there are sources.
    pub source: &'a Tensor,
    /// One row, as many columns as there are targets.
    pub target: &'a Tensor,
}

/// Stochastic dropout of the similarity matrix (Artetxe et al. 2018): the scores of source i and target
/// j for which `mix(mix(i ^ seed) ^ j · 0x9e3779b9)` is above the bound count as lowest, where `mix`
/// scrambles 32 bits.
#[derive(Clone, Copy)]
pub struct ScoreDropout {
    /// Decides which.
    pub seed: u32,
    /// Decides how many.
    pub bound: u32,
}

/// The best scores of each vector of one side, best first and of equal ones the lower number first;
/// whose they are.
#[derive(Debug, Default, PartialEq)]
pub struct BestScores {
    /// Vectors x kept.
    pub scores: Vec<f32>,
    /// Vectors x kept.
    pub ids: Vec<u32>,
}
