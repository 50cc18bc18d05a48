//! Self-learning of orthogonal maps: refinement of a first map, and unsupervised learning.
//!
//! A map induces a dictionary (mutual nearest neighbours by CSLS), and a dictionary determines a map
//! (Procrustes): iterating improves both (Artetxe et al. 2017; Lample et al. 2018). Without any
//! dictionary, the first one comes from the similarity distributions of words within their own
//! language, which need no common space, and stochastic dropout of the similarity matrix keeps the
//! iteration from settling too early: VecMap's unsupervised method (Artetxe, Labaka and Agirre 2018).
//! Differences to VecMap: no re-weighting or whitening, and Procrustes in place of its final mapping.

use arrays::Matrix;
use faer::{Mat, Side};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tensor::Device;
use text::RandomStreams;
use vectors::WordVectors;

use crate::map::{self, Map};
use crate::matmul::times_transposed;
use crate::normalize::{Step, normalize};
use crate::search::{Measure, Scores, SimilarityDropout, unwatched};

/// A map, and how it came about.
#[derive(Clone, Debug)]
pub struct MapFit {
    /// The map.
    pub map: Map,
    /// Rounds of self-learning, in order.
    pub rounds: Vec<Round>,
}

/// Learns the map of one space onto another from pairs of rows, or unsupervised where there are none (with this seed), and
/// refines it for so many rounds. `progress` is called after each round of either, and with whether it refined.
pub fn fit(
    source: &Matrix,
    target: &Matrix,
    start: MapStart<'_>,
    refinement: usize,
    induction: Induction,
    device: &Device,
    mut progress: impl FnMut(Round, bool),
) -> MapFit {
    let mut rounds = Vec::new();
    let mut done = |round, refined| {
        progress(round, refined);
        rounds.push(round);
    };
    let map = match start {
        MapStart::Identity => Map::identity(source.cols()),
        MapStart::Pairs(pairs) => Map::of_pairs(source, target, pairs),
        MapStart::Unsupervised { seed } => {
            unsupervised(source, target, induction, seed, device, |round| done(round, false))
        }
    };
    let map = match refinement {
        0 => map,
        rounds => {
            let done = |round| done(round, true);
            refine(source, target, map, rounds, induction, device, done)
        }
    };
    MapFit { map, rounds }
}

/// What a map is learned from at first.
#[derive(Clone, Copy, Debug)]
pub enum MapStart<'a> {
    /// Nothing: the spaces are one.
    Identity,
    /// Rows of the source and of the target that belong together.
    Pairs(&'a [(u32, u32)]),
    /// The spaces alone.
    Unsupervised {
        /// Seed of the stochastic dropout.
        seed: u64,
    },
}

/// Words that take part in the unsupervised initialisation.
const INIT_WORDS: usize = 4000;
/// Stochastic dropout: the share of similarities kept at first, and the factor by which it grows when
/// nothing improves any more.
const INITIAL_KEEP: f64 = 0.1;
const KEEP_GROWTH: f64 = 2.0;
/// Rounds without improvement before the share grows.
const PATIENCE: usize = 10;
/// What counts as an improvement of the mean cosine.
const IMPROVEMENT: f64 = 1e-6;
const MOST_ROUNDS: usize = 500;

/// How dictionaries are induced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Induction {
    /// The most frequent words of each side take part, so many of them.
    pub cutoff: usize,
    /// Neighbours of CSLS.
    pub k: usize,
}

/// One round of self-learning.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Pairs that the map was learned from.
    pub pairs: usize,
    /// The mean cosine of the pairs that the map then gives.
    pub cosine: f64,
}

/// The words that are spelled alike on both sides.
pub fn identical(source: &WordVectors, target: &WordVectors) -> Vec<(u32, u32)> {
    let alike = |(row, word): (usize, &str)| Some((row as u32, target.position(word)? as u32));
    source.words().enumerate().filter_map(alike).collect()
}

/// Learns the map anew from the pairs that it makes each other's nearest, round after round, and
/// keeps the map whose pairs are closest. Stops where the pairs no longer change.
pub fn refine(
    source: &Matrix,
    target: &Matrix,
    map: Map,
    rounds: usize,
    induction: Induction,
    device: &Device,
    mut progress: impl FnMut(Round),
) -> Map {
    let (source, target) = (source.head(induction.cutoff), target.head(induction.cutoff));
    let mut pairs = mutual(&source, &target, &map, induction.k, device);
    let (mut best, mut closest) = (map, cosine(&pairs));
    for _ in 0..rounds {
        let map = Map::of_pairs(&source, &target, &pairs.rows);
        let next = mutual(&source, &target, &map, induction.k, device);
        progress(Round { pairs: pairs.rows.len(), cosine: cosine(&next) });
        if cosine(&next) > closest {
            (best, closest) = (map, cosine(&next));
        }
        if next.rows == pairs.rows {
            break;
        }
        pairs = next;
    }
    best
}

/// Learns a map without any dictionary.
pub fn unsupervised(
    source: &Matrix,
    target: &Matrix,
    induction: Induction,
    seed: u64,
    device: &Device,
    mut progress: impl FnMut(Round),
) -> Map {
    let (source, target) = (source.head(induction.cutoff), target.head(induction.cutoff));
    let pairs = similarity_distributions(&source, &target, induction.k, device);
    self_learn(&source, &target, pairs.rows, induction, (seed, device), &mut progress)
}

/// Self-learning with stochastic dropout, from a first dictionary.
fn self_learn(
    source: &Matrix,
    target: &Matrix,
    mut pairs: Vec<(u32, u32)>,
    induction: Induction,
    (seed, device): (u64, &Device),
    progress: &mut dyn FnMut(Round),
) -> Map {
    let (source, target) = (source.head(induction.cutoff), target.head(induction.cutoff));
    let mut best = (Map::identity(source.cols()), f64::NEG_INFINITY);
    let (mut keep, mut idle) = (INITIAL_KEEP, 0);
    for round in 0..MOST_ROUNDS {
        let map = Map::of_pairs(&source, &target, &pairs);
        let dropout = SimilarityDropout { keep, seed: seed.wrapping_add(round as u64) };
        let learned_from = pairs.len();
        let found = induced(&source, &target, &map, (induction.k, Some(dropout)), device);
        let cosine = cosine(&found);
        pairs = found.rows;
        progress(Round { pairs: learned_from, cosine });
        idle += 1;
        if cosine > best.1 + IMPROVEMENT {
            (best, idle) = ((map, cosine), 0);
        }
        if idle >= PATIENCE {
            if keep >= 1.0 {
                break;
            }
            // Mean cosines under different dropout are not comparable.
            (keep, idle, best.1) = ((keep * KEEP_GROWTH).min(1.0), 0, f64::NEG_INFINITY);
        }
    }
    best.0
}

/// Words by which an unsupervised map is judged, rounds of refinement, and random dictionaries beside it.
const CHECK_WORDS: usize = 2000;
const CHECK_ROUNDS: usize = 10;
const CHECK_STARTS: u64 = 2;
/// The least gain over random dictionaries of a map that has not failed.
const LEAST_GAIN: f64 = 0.1;

/// How sure an unsupervised map is. Self-learning finds pairs that are each other's nearest whatever it starts from; a map that
/// translates brings them closer than self-learning from random dictionaries does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnsupervisedCheck {
    /// The mean cosine of mutual nearest neighbours among the most frequent words, refined from this map.
    pub cosine: f64,
    /// The highest of the whole self-learning from two random dictionaries of these words.
    pub chance: f64,
    /// How far the first is above the second, of what is left to 1.
    pub gain: f64,
    /// Whether that is so little that the map has probably failed (less than a tenth).
    pub failed: bool,
}

/// Judges a map that was learned unsupervised.
pub fn check_unsupervised(
    source: &Matrix,
    target: &Matrix,
    map: &Map,
    k: usize,
    seed: u64,
    device: &Device,
) -> UnsupervisedCheck {
    let words = CHECK_WORDS.min(source.rows()).min(target.rows());
    let (source, target) = (source.head(words), target.head(words));
    let induction = Induction { cutoff: words, k: k.min(words) };
    let refined = |start: Map| {
        let mut closest = f64::NEG_INFINITY;
        refine(&source, &target, start, CHECK_ROUNDS, induction, device, |round| {
            closest = closest.max(round.cosine);
        });
        closest
    };
    let cosine = refined(map.clone());
    let random = (0..CHECK_STARTS).map(|number| {
        let ranks = RandomStreams::new(seed.wrapping_add(number), "random dictionary");
        let mut order: Vec<u32> = (0..words as u32).collect();
        order.sort_unstable_by_key(|&row| ranks.rank(u64::from(row)));
        let pairs: Vec<(u32, u32)> = (0..words as u32).zip(order).collect();
        refined(self_learn(&source, &target, pairs, induction, (seed, device), &mut |_| {}))
    });
    let chance = random.fold(f64::NEG_INFINITY, f64::max);
    let gain = (cosine - chance) / (1.0 - chance).max(f64::MIN_POSITIVE);
    UnsupervisedCheck { cosine, chance, gain, failed: gain < LEAST_GAIN }
}

/// Pairs of rows and the cosine of each.
struct Pairs {
    rows: Vec<(u32, u32)>,
    cosines: Vec<f64>,
}

fn cosine(pairs: &Pairs) -> f64 {
    pairs.cosines.iter().sum::<f64>() / pairs.cosines.len().max(1) as f64
}

/// The pairs that are each other's nearest by CSLS under a map.
fn mutual(source: &Matrix, target: &Matrix, map: &Map, k: usize, device: &Device) -> Pairs {
    let mapped = map.apply(source);
    let csls = Measure::Csls { k };
    let scores = Scores::new(mapped.clone(), target.clone(), csls, device, &unwatched);
    let pairs = scores.mutual(&unwatched).into_iter().map(|(source, target, _)| (source, target));
    with_cosines(pairs.collect(), &mapped, target)
}

/// The nearest of every word of either side by CSLS under a map, with some similarities dropped.
fn induced(
    source: &Matrix,
    target: &Matrix,
    map: &Map,
    (k, dropout): (usize, Option<SimilarityDropout>),
    device: &Device,
) -> Pairs {
    let mapped = map.apply(source);
    let csls = Measure::Csls { k };
    let scores = Scores::new(mapped.clone(), target.clone(), csls, device, &unwatched);
    let (forward, backward) = scores.with_dropout(dropout).both_ways(1, &unwatched);
    let there = (0..forward.rows()).map(|row| (row as u32, forward.ids(row)[0]));
    let back = (0..backward.rows()).map(|row| (backward.ids(row)[0], row as u32));
    with_cosines(there.chain(back).collect(), &mapped, target)
}

fn with_cosines(rows: Vec<(u32, u32)>, mapped: &Matrix, target: &Matrix) -> Pairs {
    let of_pair =
        |&(a, b): &(u32, u32)| map::cosine(mapped.row(a as usize), target.row(b as usize));
    let cosines = rows.par_iter().with_min_len(256).map(of_pair).collect();
    Pairs { rows, cosines }
}

/// Similarity-distribution initialisation: pairs of words whose similarities to the words of their own
/// language, sorted, are alike.
fn similarity_distributions(source: &Matrix, target: &Matrix, k: usize, device: &Device) -> Pairs {
    let count = INIT_WORDS.min(source.rows()).min(target.rows());
    let (source, target) =
        (sorted_similarities(&source.head(count)), sorted_similarities(&target.head(count)));
    induced(&source, &target, &Map::identity(count), (k, None), device)
}

/// For each word, its similarities to all words in falling order: the rows of (X Xᵀ)^½, sorted.
fn sorted_similarities(matrix: &Matrix) -> Matrix {
    let (rows, dim) = (matrix.rows(), matrix.cols());
    let x = Mat::from_fn(rows, dim, |row, col| f64::from(matrix.row(row)[col]));
    // With X = U S Vᵀ, (X Xᵀ)^½ = U S Uᵀ = (X V S^-½) (X V S^-½)ᵀ, and V, S² belong to Xᵀ X.
    let gram = x.transpose() * &x;
    let eigen = gram.self_adjoint_eigen(Side::Lower).expect("a finite symmetric matrix");
    let squares = eigen.S().column_vector();
    let largest = (0..dim).map(|i| squares[i]).fold(0.0, f64::max);
    let scaled = Mat::from_fn(dim, dim, |row, col| {
        let square = squares[col];
        let negligible = square <= 1e-10 * largest;
        if negligible { 0.0 } else { eigen.U()[(row, col)] / square.powf(0.25) }
    });
    let half = &x * &scaled;
    let half =
        Matrix::new(rows, dim, (0..rows * dim).map(|i| half[(i / dim, i % dim)] as f32).collect());
    let mut similar = times_transposed(&half, half.values());
    similar
        .values_mut()
        .chunks_exact_mut(rows)
        .for_each(|row| row.sort_unstable_by(|a, b| b.total_cmp(a)));
    normalize(&mut similar, &[Step::Unit, Step::Center, Step::Unit]);
    similar
}
