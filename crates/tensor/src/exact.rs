//! Large products of f32 with nothing rounded, and what is kept of them: for comparing vectors, not
//! for training.
//!
//! Only a device that makes them faster than the CPU has them ([`crate::kernels::Kernels::exact`]).
//! On the CPU, whoever compares vectors makes tiles of scores itself and sifts them in the cache; a GPU
//! makes larger ones, and sifts them where they are, so that only the best come back.

use crate::value::Tensor;

/// The most of a row's or of a column's scores that are kept.
pub const MOST_BEST: usize = 32;

/// What a device offers for comparing vectors. All matrices are the device's own, in full precision.
pub trait Exact {
    /// The best scores of each row and of each column of a search, in this order. `watch` hears how
    /// many strips of rows are done, and of how many.
    fn best(&self, search: &Search<'_>, watch: &dyn Fn(u64, u64)) -> [Best; 2];

    /// Nothing yet, to add products of `rows x cols` to.
    fn sum(&self, rows: usize, cols: usize) -> Sum;

    /// `sum += aᵀ · b`: the product in single precision, the sum in double.
    fn add_product(&self, a: &Tensor, b: &Tensor, sum: &mut Sum);
}

/// All vectors of one side scored against all of another.
pub struct Search<'a> {
    /// Vectors in rows.
    pub source: &'a Tensor,
    /// Vectors in rows, as wide.
    pub target: &'a Tensor,
    /// How two are scored.
    pub rule: Rule<'a>,
    /// Which scores are looked at, where not all.
    pub thinning: Option<Thinning>,
    /// How many are kept of each source's scores: from 1 to [`MOST_BEST`].
    pub of_source: usize,
    /// How many of each target's; 0 where none are asked for.
    pub of_target: usize,
}

/// How a product of two vectors becomes their score.
#[derive(Clone, Copy)]
pub enum Rule<'a> {
    /// As it is.
    Product,
    /// Twice it, less what each has of its own.
    Csls(Own<'a>),
    /// It, less the mean of what both have of their own.
    Distance(Own<'a>),
    /// It, divided by that mean, and by no less than this.
    Ratio(Own<'a>, f32),
}

/// A number for each vector of either side.
#[derive(Clone, Copy)]
pub struct Own<'a> {
    /// One row, as many columns as there are sources.
    pub source: &'a Tensor,
    /// One row, as many columns as there are targets.
    pub target: &'a Tensor,
}

/// Scores that count as lowest: those of source i and target j for which `mix(mix(i ^ seed) ^ j ·
/// 0x9e3779b9)` is above the bound, where `mix` scrambles 32 bits.
#[derive(Clone, Copy)]
pub struct Thinning {
    /// Decides which.
    pub seed: u32,
    /// Decides how many.
    pub bound: u32,
}

/// The best scores of each vector of one side, best first and of equal ones the lower number first;
/// whose they are.
#[derive(Debug, Default, PartialEq)]
pub struct Best {
    /// Vectors x kept.
    pub scores: Vec<f32>,
    /// Vectors x kept.
    pub ids: Vec<u32>,
}

/// A sum of products in double precision.
pub struct Sum {
    /// Two numbers' room for each: rows x 2·cols.
    pub(crate) wide: Tensor,
    /// Whether there is something to add to.
    pub(crate) begun: bool,
}

impl Sum {
    /// The sum, row after row.
    pub fn to_vec(&self) -> Vec<f64> {
        if self.begun {
            bytemuck::pod_collect_to_vec(&self.wide.to_vec())
        } else {
            vec![0.0; self.wide.len() / 2]
        }
    }
}
