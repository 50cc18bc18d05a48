//! Measures of nearest neighbours by cosine: mutual neighbours within each side, MEXA, weak and strong alignment.
//!
//! Each is a mean over rows, so that a shuffle needs no search of its own: the neighbours are known.

use std::collections::BTreeSet;

use arrays::Matrix;
use rayon::prelude::*;
use tensor::Device;

use super::{LayerSides, NEIGHBOURS, SampleDraws, SampledSpread, SampledValue, SimilarityMeasure};
use crate::Result;
use crate::retrieval::checked;
use crate::search::{Measure, Neighbours, Scores, unwatched};

const OF_NEIGHBOURS: [SimilarityMeasure; 4] = [
    SimilarityMeasure::MutualNn,
    SimilarityMeasure::Mexa,
    SimilarityMeasure::WeakAlignment,
    SimilarityMeasure::StrongAlignment,
];

/// Those of the measures that are about nearest neighbours.
pub(super) fn measure(
    sides: LayerSides<'_>,
    measures: &BTreeSet<SimilarityMeasure>,
    draws: &SampleDraws,
    device: &Device,
) -> Result<Vec<(SimilarityMeasure, SampledValue)>> {
    let wanted: Vec<_> = OF_NEIGHBOURS.into_iter().filter(|one| measures.contains(one)).collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let matrices = [checked(sides.x, sides.layer)?, checked(sides.y, sides.layer)?];
    let known = Neighbourhoods::new(matrices, &wanted, device);
    let itself: Vec<u32> = (0..sides.x.rows() as u32).collect();
    let sampled = |&measure: &SimilarityMeasure| {
        let rows = known.rows(measure, &itself);
        let shuffle = |order: &Vec<u32>| mean(known.rows(measure, order).iter());
        let sampled = SampledValue {
            value: mean(rows.iter()),
            spread: SampledSpread::Trials(trials(&rows, known.k.max(2))),
            shuffled: draws.shuffles.iter().map(shuffle).collect(),
        };
        (measure, sampled)
    };
    Ok(wanted.iter().map(sampled).collect())
}

fn mean<'a>(rows: impl Iterator<Item = &'a f64>) -> f64 {
    let (sum, count) = rows.fold((0.0, 0.0), |(sum, count), row| (sum + row, count + 1.0));
    sum / count
}

/// How many independent trials of a share have the variance that these rows have. A row is one trial or, where it is a mean of
/// several (two directions, k neighbours), up to `most`: the fewer, the more these agree.
fn trials(rows: &[f64], most: usize) -> f64 {
    let (share, n) = (mean(rows.iter()), rows.len() as f64);
    let variance = rows.iter().map(|row| (row - share).powi(2)).sum::<f64>() / n;
    let equal = if variance > 0.0 { n * share * (1.0 - share) / variance } else { n };
    // Rows that are all the same have a variance of rounding alone.
    equal.min(n * most as f64)
}

/// Whose neighbours rows have.
struct Neighbourhoods {
    /// The two nearest on the other side, from the first and from the second, where they are asked for.
    across: Option<[Neighbours; 2]>,
    /// The nearest on the own side, of either; one more than is needed, since a row is its own nearest.
    within: Option<[Neighbours; 2]>,
    /// How many of these are compared.
    k: usize,
}

impl Neighbourhoods {
    fn new(matrices: [Matrix; 2], wanted: &[SimilarityMeasure], device: &Device) -> Self {
        let has = |measure| wanted.contains(&measure);
        let mutual = has(SimilarityMeasure::MutualNn);
        let k = if mutual { NEIGHBOURS.min(matrices[0].rows() - 1) } else { 1 };
        let within = (mutual || has(SimilarityMeasure::StrongAlignment)).then(|| {
            let own = |side: &Matrix| {
                let scores =
                    Scores::new(side.clone(), side.clone(), Measure::Cosine, device, &unwatched);
                scores.nearest(k + 1)
            };
            [own(&matrices[0]), own(&matrices[1])]
        });
        let across = wanted.iter().any(|one| *one != SimilarityMeasure::MutualNn).then(|| {
            let [x, y] = matrices;
            let scores = Scores::new(x, y, Measure::Cosine, device, &unwatched);
            scores.both_ways(2, &unwatched).into()
        });
        Self { across, within, k }
    }

    /// A value for each row, where row i of the first side belongs to row `order[i]` of the second.
    fn rows(&self, measure: SimilarityMeasure, order: &[u32]) -> Vec<f64> {
        if measure == SimilarityMeasure::MutualNn {
            return self.common(order);
        }
        let share = |flags: [bool; 2]| f64::from(flags.map(u8::from).iter().sum::<u8>()) / 2.0;
        let row = |(row, &other): (usize, &u32)| {
            let found = [self.finds(0, row, other), self.finds(1, other as usize, row as u32)];
            match measure {
                SimilarityMeasure::Mexa => f64::from(u8::from(found[0] && found[1])),
                SimilarityMeasure::StrongAlignment => {
                    let nearer = [self.is_nearer(0, row), self.is_nearer(1, other as usize)];
                    share([found[0] && nearer[0], found[1] && nearer[1]])
                }
                _ => share(found),
            }
        };
        order.iter().enumerate().map(row).collect()
    }

    /// Whether the nearest of a row on the other side is this one, and no other is as near.
    fn finds(&self, side: usize, row: usize, other: u32) -> bool {
        let nearest = &self.across.as_ref().expect("searched where asked for")[side];
        let tied = matches!(nearest.scores(row), [best, next] if best == next);
        nearest.ids(row)[0] == other && !tied
    }

    /// Whether the nearest of a row on the other side is nearer than any other row of its own side.
    fn is_nearer(&self, side: usize, row: usize) -> bool {
        let across = &self.across.as_ref().expect("searched where asked for")[side];
        let within = &self.within.as_ref().expect("searched where asked for")[side];
        let own = within.ids(row).iter().zip(within.scores(row));
        let best = own.filter(|(id, _)| **id as usize != row).map(|(_, score)| *score).next();
        best.is_none_or(|best| across.scores(row)[0] > best)
    }

    /// The share of a row's neighbours within the first side that are neighbours of its counterpart within the second.
    fn common(&self, order: &[u32]) -> Vec<f64> {
        let [x, y] = self.within.as_ref().expect("searched where asked for");
        let of = |side: &Neighbours, row: usize| -> Vec<u32> {
            let others = side.ids(row).iter().copied().filter(|&id| id as usize != row);
            others.take(self.k).collect()
        };
        let row = |row: usize| {
            let there = of(y, order[row] as usize);
            let mapped = of(x, row).into_iter().map(|id| order[id as usize]);
            mapped.filter(|id| there.contains(id)).count() as f64 / self.k as f64
        };
        (0..order.len()).into_par_iter().with_min_len(64).map(row).collect()
    }
}
