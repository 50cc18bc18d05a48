//! Measures of XᵀX, YᵀY and XᵀY of centred rows: CKA, SVCCA, PWCCA and ANC.
//!
//! Rows are streamed, a batch at a time, into sums for each block of rows, so that memory does not grow with
//! their number. Shuffled pairs change XᵀY alone.

use std::collections::BTreeSet;

use arrays::{Matrix, Stack};
use faer::{Mat, Side};
use rayon::prelude::*;
use tensor::Device;
use terms::interrupt;

use super::{LayerSides, SampleDraws, SampledSpread, SampledValue, SimilarityMeasure};
use crate::Result;
use crate::cka::{Centre, Rows, constant};
use crate::products::{AddedProduct, Columns, Summed};

/// Rows that are read at a time: enough that each of twenty blocks has a few hundred.
const BATCH: usize = 5120;
/// The share of the variance that SVCCA keeps.
const KEPT_VARIANCE: f64 = 0.99;
/// Directions with less variance than this share of the largest are rounding, since products within a batch are in single
/// precision.
pub(super) const NEGLIGIBLE: f64 = 1e-6;

const OF_MOMENTS: [SimilarityMeasure; 4] = [
    SimilarityMeasure::Cka,
    SimilarityMeasure::Svcca,
    SimilarityMeasure::Pwcca,
    SimilarityMeasure::Anc,
];

/// Those of the measures that are functions of moments.
pub(super) fn measure(
    sides: LayerSides<'_>,
    measures: &BTreeSet<SimilarityMeasure>,
    draws: &SampleDraws,
    device: &Device,
) -> Result<Vec<(SimilarityMeasure, SampledValue)>> {
    let wanted: Vec<_> = OF_MOMENTS.into_iter().filter(|one| measures.contains(one)).collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let (blocks, shuffled) = stream(sides, draws, device)?;
    let whole = RowMoments::total(&blocks, |_| true);
    for (stack, of_side) in [(sides.x, &whole.xx), (sides.y, &whole.yy)] {
        if trace(of_side) <= 0.0 {
            return Err(constant(stack, sides.layer));
        }
    }
    let decomposes = wanted.iter().any(|one| SimilarityMeasure::is_of_correlations(*one));
    let spectra = SideSpectra::new(&whole, decomposes);
    let values = spectra.values(&whole.xy, &wanted);
    let shuffled: Vec<Vec<f64>> = shuffled.iter().map(|xy| spectra.values(xy, &wanted)).collect();
    let of_half = |kept: &Vec<bool>| {
        let half = RowMoments::total(&blocks, |block| kept[block]);
        SideSpectra::new(&half, decomposes).values(&half.xy, &wanted)
    };
    let halves: Vec<Vec<f64>> = draws.halves.par_iter().map(of_half).collect();
    let sampled = |(at, measure): (usize, SimilarityMeasure)| {
        let of = |draws: &[Vec<f64>]| draws.iter().map(|values| values[at]).collect();
        let spread = SampledSpread::Halves(of(&halves));
        (measure, SampledValue { value: values[at], spread, shuffled: of(&shuffled) })
    };
    Ok(wanted.iter().copied().enumerate().map(sampled).collect())
}

impl SimilarityMeasure {
    fn is_of_correlations(self) -> bool {
        matches!(self, Self::Svcca | Self::Pwcca)
    }
}

/// Sums over the rows of a block, less the mean of all rows.
struct BlockSums {
    rows: f64,
    /// The sums of the deviations of each side.
    sums: [Vec<f64>; 2],
    xx: Summed,
    yy: Summed,
    xy: Summed,
}

/// Moments of some rows about their own mean.
struct RowMoments {
    xx: Mat<f64>,
    yy: Mat<f64>,
    xy: Mat<f64>,
}

/// The sums of each block, and XᵀY of shuffled pairs.
fn stream(
    sides: LayerSides<'_>,
    draws: &SampleDraws,
    device: &Device,
) -> Result<(Vec<BlockMoments>, Vec<Mat<f64>>)> {
    let LayerSides { x, y, layer } = sides;
    let (wide, deep) = (x.dim(layer), y.dim(layer));
    let columns = Columns::on(device, 2.0 * x.rows() as f64 * (wide as f64) * deep as f64);
    let centres =
        [Centre::new(x, layer, Rows::default())?, Centre::new(y, layer, Rows::default())?];
    let empty = || BlockSums {
        rows: 0.0,
        sums: [vec![0.0; wide], vec![0.0; deep]],
        xx: columns.sum(wide, wide),
        yy: columns.sum(deep, deep),
        xy: columns.sum(wide, deep),
    };
    let mut blocks: Vec<BlockSums> = (0..draws.block_count()).map(|_| empty()).collect();
    let mut shuffled: Vec<Summed> =
        draws.shuffles.iter().map(|_| columns.sum(wide, deep)).collect();
    for start in (0..x.rows()).step_by(BATCH) {
        interrupt::check();
        let batch = start..x.rows().min(start + BATCH);
        let own = centres[0].centred(x, layer, Rows::default(), batch.clone())?;
        let other = centres[1].centred(y, layer, Rows::default(), batch.clone())?;
        for (number, block) in blocks.iter_mut().enumerate() {
            let of_block = |at: &usize| usize::from(draws.blocks[start + at]) == number;
            let rows: Vec<usize> = (0..batch.len()).filter(of_block).collect();
            block.add(columns, [own.select(rows.iter().copied()), other.select(rows)]);
        }
        let own = columns.place(own);
        for (order, sum) in draws.shuffles.iter().zip(&mut shuffled) {
            let there = columns.place(gather(&centres[1], y, layer, &order[batch.clone()])?);
            columns.add(&own, &there, sum);
        }
    }
    let blocks = blocks.into_iter().map(|block| BlockMoments::new(block, wide, deep)).collect();
    let shuffled = shuffled.into_iter().map(|sum| matrix(sum, wide, deep)).collect();
    Ok((blocks, shuffled))
}

/// Some rows of a layer, centred, wherever they stand.
fn gather(centre: &Centre, stack: &Stack, layer: usize, rows: &[u32]) -> Result<Matrix> {
    let row = |&row: &u32| -> Result<Vec<f32>> {
        let row = row as usize;
        Ok(centre.centred(stack, layer, Rows::default(), row..row + 1)?.into_values())
    };
    let values = rows.par_iter().with_min_len(256).map(row).collect::<Result<Vec<_>>>()?;
    Ok(Matrix::new(rows.len(), stack.dim(layer), values.concat()))
}

impl BlockSums {
    fn add(&mut self, columns: Columns<'_>, rows: [Matrix; 2]) {
        if rows[0].rows() == 0 {
            return;
        }
        self.rows += rows[0].rows() as f64;
        for (sum, side) in self.sums.iter_mut().zip(&rows) {
            for row in side.iter() {
                sum.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x));
            }
        }
        let [x, y] = rows.map(|side| columns.place(side));
        columns.add_all(vec![
            AddedProduct { left: &x, right: &y, sum: &mut self.xy },
            AddedProduct { left: &x, right: &x, sum: &mut self.xx },
            AddedProduct { left: &y, right: &y, sum: &mut self.yy },
        ]);
    }
}

/// The sums of a block, once all its rows were read.
struct BlockMoments {
    rows: f64,
    sums: [Vec<f64>; 2],
    xx: Mat<f64>,
    yy: Mat<f64>,
    xy: Mat<f64>,
}

impl BlockMoments {
    fn new(block: BlockSums, wide: usize, deep: usize) -> Self {
        let BlockSums { rows, sums, xx, yy, xy } = block;
        let (xx, yy) = (matrix(xx, wide, wide), matrix(yy, deep, deep));
        Self { rows, sums, xx, yy, xy: matrix(xy, wide, deep) }
    }
}

fn matrix(sum: Summed, rows: usize, cols: usize) -> Mat<f64> {
    let values = sum.into_values();
    Mat::from_fn(rows, cols, |row, col| values[row * cols + col])
}

impl RowMoments {
    /// Of all rows of some blocks, about the mean of these.
    fn total(blocks: &[BlockMoments], kept: impl Fn(usize) -> bool) -> Self {
        let first = &blocks[0];
        let (wide, deep) = (first.xx.nrows(), first.yy.nrows());
        let mut total = Self {
            xx: Mat::zeros(wide, wide),
            yy: Mat::zeros(deep, deep),
            xy: Mat::zeros(wide, deep),
        };
        let (mut rows, mut sums) = (0.0, [vec![0.0; wide], vec![0.0; deep]]);
        for (_, block) in blocks.iter().enumerate().filter(|(block, _)| kept(*block)) {
            rows += block.rows;
            for (sum, more) in sums.iter_mut().zip(&block.sums) {
                sum.iter_mut().zip(more).for_each(|(sum, x)| *sum += x);
            }
            total.xx += &block.xx;
            total.yy += &block.yy;
            total.xy += &block.xy;
        }
        let [x, y] = &sums;
        let about_mean = |moments: &mut Mat<f64>, a: &[f64], b: &[f64]| {
            let (height, width) = (moments.nrows(), moments.ncols());
            for col in 0..width {
                (0..height).for_each(|row| moments[(row, col)] -= a[row] * b[col] / rows);
            }
        };
        about_mean(&mut total.xx, x, x);
        about_mean(&mut total.yy, y, y);
        about_mean(&mut total.xy, x, y);
        total
    }
}

fn trace(square: &Mat<f64>) -> f64 {
    (0..square.nrows()).map(|at| square[(at, at)]).sum()
}

/// The directions of a side that have variance, and the square root of each one's sum of squares, largest first.
struct PrincipalAxes {
    /// dim x directions.
    basis: Mat<f64>,
    roots: Vec<f64>,
}

impl PrincipalAxes {
    fn new(moments: &Mat<f64>) -> Self {
        let dim = moments.nrows();
        let symmetric = Mat::from_fn(dim, dim, |a, b| (moments[(a, b)] + moments[(b, a)]) / 2.0);
        let eigen = symmetric.self_adjoint_eigen(Side::Lower).expect("a finite symmetric matrix");
        let squares = eigen.S().column_vector();
        // They come in rising order.
        let largest = squares[dim - 1];
        let kept: Vec<usize> =
            (0..dim).rev().take_while(|&at| squares[at] > NEGLIGIBLE * largest).collect();
        let basis = Mat::from_fn(dim, kept.len(), |row, col| eigen.U()[(row, kept[col])]);
        Self { basis, roots: kept.iter().map(|&at| squares[at].sqrt()).collect() }
    }

    /// How many of the first directions hold most of the variance.
    fn leading(&self) -> usize {
        let total: f64 = self.roots.iter().map(|root| root * root).sum();
        let mut sum = 0.0;
        let before = self.roots.iter().take_while(|root| {
            let more = sum < KEPT_VARIANCE * total;
            sum += **root * **root;
            more
        });
        before.count()
    }
}

/// What is needed of the two sides by themselves.
struct SideSpectra<'a> {
    of: &'a RowMoments,
    /// Where canonical correlations are wanted.
    principal: Option<[PrincipalAxes; 2]>,
}

impl<'a> SideSpectra<'a> {
    fn new(of: &'a RowMoments, decomposes: bool) -> Self {
        let principal =
            decomposes.then(|| [PrincipalAxes::new(&of.xx), PrincipalAxes::new(&of.yy)]);
        Self { of, principal }
    }

    /// The values of some measures for a cross product of the sides.
    fn values(&self, xy: &Mat<f64>, wanted: &[SimilarityMeasure]) -> Vec<f64> {
        let whitened = self.principal.as_ref().map(|[x, y]| {
            // Canonical correlations are the singular values of XᵀY in coordinates of unit variance.
            let cross = x.basis.transpose() * xy * &y.basis;
            Mat::from_fn(cross.nrows(), cross.ncols(), |row, col| {
                cross[(row, col)] / (x.roots[row] * y.roots[col])
            })
        });
        let value = |measure: &SimilarityMeasure| match (measure, &self.principal, &whitened) {
            (SimilarityMeasure::Svcca, Some([x, y]), Some(whitened)) => {
                let leading = whitened.submatrix(0, 0, x.leading(), y.leading());
                svcca(&leading.to_owned())
            }
            (SimilarityMeasure::Pwcca, Some([x, _]), Some(whitened)) => pwcca(x, whitened),
            (SimilarityMeasure::Anc, ..) => anc(self.of, xy),
            _ => {
                xy.squared_norm_l2()
                    / (self.of.xx.squared_norm_l2() * self.of.yy.squared_norm_l2()).sqrt()
            }
        };
        wanted.iter().map(value).collect()
    }
}

/// The mean canonical correlation.
fn svcca(whitened: &Mat<f64>) -> f64 {
    let correlations =
        whitened.singular_values().expect("the decomposition of a finite matrix converges");
    correlations.iter().map(|one| one.min(1.0)).sum::<f64>() / correlations.len() as f64
}

/// Canonical correlations, each weighted by the absolute inner products of its canonical variate with the neurons of
/// the first side.
fn pwcca(x: &PrincipalAxes, whitened: &Mat<f64>) -> f64 {
    let svd = whitened.thin_svd().expect("the decomposition of a finite matrix converges");
    let (mut sum, mut weights) = (0.0, 0.0);
    for number in 0..svd.S().column_vector().nrows() {
        let scaled = Mat::from_fn(x.roots.len(), 1, |row, _| x.roots[row] * svd.U()[(row, number)]);
        let weight = (&x.basis * scaled).col(0).norm_l1();
        sum += weight * svd.S().column_vector()[number].min(1.0);
        weights += weight;
    }
    sum / weights
}

/// The mean correlation of each neuron with the same neuron of the other side, of those that vary in both.
fn anc(of: &RowMoments, xy: &Mat<f64>) -> f64 {
    let correlation = |at: usize| {
        let scale = (of.xx[(at, at)] * of.yy[(at, at)]).sqrt();
        (scale > 0.0).then(|| xy[(at, at)] / scale)
    };
    let found: Vec<f64> = (0..xy.nrows()).filter_map(correlation).collect();
    found.iter().sum::<f64>() / found.len().max(1) as f64
}
