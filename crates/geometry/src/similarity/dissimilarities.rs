//! Representational similarity analysis (Kriegeskorte et al. 2008): whether two rows that differ much on one side differ
//! much on the other. The dissimilarity of two rows is one less their Pearson correlation over neurons, and dissimilarities
//! are compared by Spearman's rank correlation.

use arrays::{Matrix, Stack};
use rayon::prelude::*;
use text::RandomStreams;

use super::{DISSIMILARITIES, LayerSides, SampleDraws, SampledSpread, SampledValue};
use crate::cka::{constant, pearson};
use crate::{Error, Result};

/// All pairs of rows, or as many drawn at random.
pub(super) fn pairs(rows: usize, seed: u64) -> Vec<(u32, u32)> {
    if rows * (rows - 1) / 2 <= DISSIMILARITIES {
        let rows = rows as u32;
        return (0..rows).flat_map(|a| (a + 1..rows).map(move |b| (a, b))).collect();
    }
    let mut stream = RandomStreams::new(seed, "pairs of rows").stream(0);
    let mut draw = || {
        let a = stream.below(rows as u64);
        let b = stream.below(rows as u64 - 1);
        (a as u32, (b + u64::from(b >= a)) as u32)
    };
    (0..DISSIMILARITIES).map(|_| draw()).collect()
}

/// The rank correlation of the dissimilarities of the drawn pairs.
pub(super) fn measure(sides: LayerSides<'_>, draws: &SampleDraws) -> Result<SampledValue> {
    let LayerSides { x, y, layer } = sides;
    let [own, other] = [standardized(x, layer)?, standardized(y, layer)?];
    let itself = |row: u32| row;
    let of_x = dissimilarities(&own, &draws.pairs, itself);
    let of_y = dissimilarities(&other, &draws.pairs, itself);
    let ranks_x = ranks(&of_x);
    let none = |stack: &Stack| Err(constant(stack, layer));
    let Some(value) = pearson(&ranks_x, &ranks(&of_y)) else {
        return if of_x.iter().all(|one| *one == of_x[0]) { none(x) } else { none(y) };
    };
    let shuffle = |order: &Vec<u32>| {
        let shuffled = dissimilarities(&other, &draws.pairs, |row| order[row as usize]);
        pearson(&ranks_x, &ranks(&shuffled)).unwrap_or(0.0)
    };
    let half = |kept: &Vec<bool>| {
        let keeps = |row: u32| kept[usize::from(draws.blocks[row as usize])];
        let both = draws.pairs.iter().zip(of_x.iter().zip(&of_y));
        let (a, b): (Vec<f64>, Vec<f64>) =
            both.filter(|((a, b), _)| keeps(*a) && keeps(*b)).map(|(_, both)| both).unzip();
        pearson(&ranks(&a), &ranks(&b)).unwrap_or(f64::NAN)
    };
    Ok(SampledValue {
        value,
        spread: SampledSpread::Halves(draws.halves.par_iter().map(half).collect()),
        shuffled: draws.shuffles.par_iter().map(shuffle).collect(),
    })
}

/// A layer whose rows are centred over their neurons and of unit length.
fn standardized(stack: &Stack, layer: usize) -> Result<Matrix> {
    let mut matrix = stack.whole(layer)?;
    let dim = matrix.cols();
    if dim < 2 {
        let place = format!("{}: layer {}", stack.name(), stack.layer_name(layer));
        let reason = "has one column, and rows are correlated over columns";
        return Err(Error::input(place, reason, "leave `rsa` out"));
    }
    matrix.values_mut().par_chunks_exact_mut(dim).with_min_len(64).for_each(|row| {
        let mean = row.iter().map(|&x| f64::from(x)).sum::<f64>() / dim as f64;
        let square: f64 = row.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum();
        let scale = if square > 0.0 { square.sqrt().recip() } else { 0.0 };
        row.iter_mut().for_each(|x| *x = ((f64::from(*x) - mean) * scale) as f32);
    });
    Ok(matrix)
}

/// One less the correlation of each pair of rows; `place` says which row stands for a row.
fn dissimilarities(
    rows: &Matrix,
    pairs: &[(u32, u32)],
    place: impl Fn(u32) -> u32 + Sync,
) -> Vec<f64> {
    let of = |&(a, b): &(u32, u32)| {
        let [a, b] = [a, b].map(|row| rows.row(place(row) as usize));
        let product: f64 = a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
        1.0 - product
    };
    pairs.par_iter().with_min_len(1024).map(of).collect()
}

/// Ranks from 1, equal values sharing the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<u32> = (0..values.len() as u32).collect();
    order.sort_unstable_by(|&a, &b| values[a as usize].total_cmp(&values[b as usize]));
    let mut ranks = vec![0.0; values.len()];
    let mut below = 0;
    for tied in order.chunk_by(|&a, &b| values[a as usize] == values[b as usize]) {
        let rank = below as f64 + (tied.len() + 1) as f64 / 2.0;
        tied.iter().for_each(|&at| ranks[at as usize] = rank);
        below += tied.len();
    }
    ranks
}
