//! Centred kernel alignment with a linear kernel: how similar two sets of vectors of the same
//! things are, up to rotation and scale.
//!
//! With centred X and Y, the biased value is |XᵀY|² / (|XᵀX| |YᵀY|) in Frobenius norms. It grows by
//! chance alone where there are not many more rows than columns; the debiased value takes that away.
//! Both need only products of columns, so rows are read a batch at a time: products in single
//! precision within a batch, sums over batches in double. From 2·10⁹ additions and multiplications on,
//! a GPU makes them where there is one.

use std::ops::Range;

use arrays::{Matrix, Stack};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde::Serialize;
use tensor::Device;
use text::RandomStreams;

use crate::error::{Error, Result};
use crate::products::{Columns, Placed, Summed};
use crate::search::Watch;

/// Rows of a batch.
const BATCH: usize = 1024;
/// Rows that one thread centres at a time.
const CENTRED: usize = 64;
/// Bytes that sums of products may take on a GPU, where those of several layers are made at once.
const ROOM: usize = 2 << 30;
/// The fewest rows that a debiased value exists for.
pub const FEWEST: usize = 4;
/// Rows for each column below which the biased value is high by chance.
pub const ENOUGH: usize = 5;

/// Which rows count, and what is taken away from them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rows<'a> {
    /// Only these rows, where not all.
    pub kept: Option<&'a [bool]>,
    /// The group of each row, where not the mean of all is to be taken away but that of its group.
    pub groups: Option<&'a [u32]>,
}

impl Rows<'_> {
    fn keeps(&self, row: usize) -> bool {
        self.kept.is_none_or(|kept| kept[row])
    }

    fn group(&self, row: usize) -> u32 {
        self.groups.map_or(0, |groups| groups[row])
    }
}

/// The similarity of every layer of one stack to every layer of another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table {
    /// Rows that counted.
    pub n: usize,
    /// For each layer of the first, each of the second: as the papers have it.
    pub cka: Vec<Vec<f64>>,
    /// The same without the part that is there by chance; none within groups, and where that leaves
    /// nothing to divide by.
    pub debiased: Vec<Vec<Option<f64>>>,
}

/// What is needed of a layer by itself.
struct Own {
    means: FxHashMap<u32, Vec<f64>>,
    /// A power of two that brings the largest value near 1, so that products of very large or small
    /// ones stay numbers; a scale changes nothing else.
    scale: f64,
    /// The squared length of each centred row that counts.
    squares: Vec<f64>,
    /// |XᵀX|².
    biased: f64,
    debiased: f64,
}

/// Compares all layers of two stacks. `watch` hears of each layer of the first.
pub fn table(
    x: &Stack,
    y: &Stack,
    rows: Rows<'_>,
    device: &Device,
    watch: Watch<'_>,
) -> Result<Table> {
    let n = (0..x.rows()).filter(|&row| rows.keeps(row)).count();
    check(x, y, n)?;
    let (wide, deep) = (dims(x), dims(y));
    let columns = Columns::on(device, 2.0 * n as f64 * (wide as f64) * deep as f64);
    let of_x = owns(x, rows, columns)?;
    let of_y = owns(y, rows, columns)?;
    let mut table = Table { n, cka: Vec::new(), debiased: Vec::new() };
    // Those of the second are centred anew for every few layers of the first.
    let widest = (0..x.layers()).map(|layer| x.dim(layer)).max().unwrap_or(1);
    let at_once = ROOM / (widest * deep * size_of::<f64>());
    let at_once = if columns.on_gpu() { at_once.max(1) } else { 1 };
    for first in (0..x.layers()).step_by(at_once) {
        let layers = first..x.layers().min(first + at_once);
        let crosses = crosses((x, &of_x), layers.clone(), (y, &of_y), rows, columns)?;
        for (i, crosses) in layers.zip(&crosses) {
            table.add(&of_x[i], crosses, &of_y, rows);
            watch(i as u64 + 1, of_x.len() as u64);
        }
    }
    Ok(table)
}

/// The dimensions of all layers together.
fn dims(stack: &Stack) -> usize {
    (0..stack.layers()).map(|layer| stack.dim(layer)).sum()
}

fn owns(stack: &Stack, rows: Rows<'_>, columns: Columns<'_>) -> Result<Vec<Own>> {
    (0..stack.layers()).map(|layer| Own::new(stack, layer, rows, columns)).collect()
}

impl Table {
    /// Adds the row of one layer, from |XᵀY|² with each of the other stack.
    fn add(&mut self, own: &Own, crosses: &[f64], of_y: &[Own], rows: Rows<'_>) {
        let pairs = || crosses.iter().zip(of_y);
        let biased = |(cross, other): (&f64, &Own)| cross / (own.biased * other.biased).sqrt();
        let debiased = |(&cross, other): (&f64, &Own)| {
            // The correction is for one common mean; with many it would not take chance away.
            if rows.groups.is_some() {
                return None;
            }
            let cross = debias(cross, &own.squares, &other.squares);
            let scale = (own.debiased > 0.0 && other.debiased > 0.0)
                .then(|| (own.debiased * other.debiased).sqrt())?;
            Some(cross / scale)
        };
        self.cka.push(pairs().map(biased).collect());
        self.debiased.push(pairs().map(debiased).collect());
    }
}

fn check(x: &Stack, y: &Stack, n: usize) -> Result<()> {
    if x.rows() != y.rows() {
        let reason = format!("has {} rows, {} has {}", y.rows(), x.name(), x.rows());
        let remedy = "give vectors of the same things in the same order";
        return Err(Error::input(y.name(), reason, remedy));
    }
    if n < FEWEST {
        let reason = format!("has {n} rows");
        return Err(Error::input(x.name(), reason, "give at least 4; hundreds are better"));
    }
    Ok(())
}

impl Own {
    fn new(stack: &Stack, layer: usize, rows: Rows<'_>, columns: Columns<'_>) -> Result<Self> {
        let (means, largest) = means(stack, layer, rows)?;
        let mut own = Self {
            means,
            scale: if largest > 0.0 { (-largest.log2().floor()).exp2() } else { 1.0 },
            squares: Vec::new(),
            biased: 0.0,
            debiased: 0.0,
        };
        let dim = stack.dim(layer);
        let mut gram = columns.sum(dim, dim);
        for batch in batches(stack.rows()) {
            let x = own.centred(stack, layer, rows, batch)?;
            own.squares
                .extend(x.iter().map(|row| row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>()));
            let x = columns.place(x);
            columns.add(&x, &x, &mut gram);
        }
        own.biased = gram.squared();
        own.debiased = debias(own.biased, &own.squares, &own.squares);
        if own.biased <= 0.0 {
            let place = format!("{}: layer {}", stack.name(), stack.layer_name(layer));
            let reason = "all its rows are the same, so there is nothing to compare";
            return Err(Error::input(place, reason, "give vectors that differ"));
        }
        Ok(own)
    }

    /// Some rows less their mean, those that count.
    fn centred(
        &self,
        stack: &Stack,
        layer: usize,
        rows: Rows<'_>,
        batch: Range<usize>,
    ) -> Result<Matrix> {
        let read = stack.read(layer, batch.clone())?;
        let kept: Vec<usize> = batch.clone().filter(|&row| rows.keeps(row)).collect();
        let mut values = vec![0.0; kept.len() * read.cols()];
        let each = values.par_chunks_mut(read.cols()).zip(&kept).with_min_len(CENTRED);
        each.for_each(|(centred, &row)| {
            let mean = &self.means[&rows.group(row)];
            let vector = read.row(row - batch.start).iter().zip(mean);
            centred
                .iter_mut()
                .zip(vector)
                .for_each(|(to, (&x, m))| *to = ((f64::from(x) - m) * self.scale) as f32);
        });
        Ok(Matrix::new(kept.len(), read.cols(), values))
    }
}

fn batches(rows: usize) -> impl Iterator<Item = Range<usize>> {
    (0..rows).step_by(BATCH).map(move |start| start..rows.min(start + BATCH))
}

/// The mean of each group of rows, or of all where there are no groups, and the largest value.
fn means(stack: &Stack, layer: usize, rows: Rows<'_>) -> Result<(FxHashMap<u32, Vec<f64>>, f64)> {
    let mut largest = 0.0_f32;
    let mut sums: FxHashMap<u32, (Vec<f64>, f64)> = FxHashMap::default();
    for batch in batches(stack.rows()) {
        let read = stack.read(layer, batch.clone())?;
        for (row, vector) in batch.zip(read.iter()).filter(|(row, _)| rows.keeps(*row)) {
            let sum = sums.entry(rows.group(row)).or_insert_with(|| (vec![0.0; read.cols()], 0.0));
            sum.0.iter_mut().zip(vector).for_each(|(sum, &x)| *sum += f64::from(x));
            largest = vector.iter().fold(largest, |largest, x| largest.max(x.abs()));
            sum.1 += 1.0;
        }
    }
    let mean = |(group, (mut sum, count)): (u32, (Vec<f64>, f64))| {
        sum.iter_mut().for_each(|sum| *sum /= count);
        (group, sum)
    };
    Ok((sums.into_iter().map(mean).collect(), f64::from(largest)))
}

/// |XᵀY|² of some layers with each layer of another stack.
fn crosses(
    (x, of_x): (&Stack, &[Own]),
    layers: Range<usize>,
    (y, of_y): (&Stack, &[Own]),
    rows: Rows<'_>,
    columns: Columns<'_>,
) -> Result<Vec<Vec<f64>>> {
    let sums = |layer: usize| {
        (0..y.layers()).map(|other| columns.sum(x.dim(layer), y.dim(other))).collect()
    };
    let mut sums: Vec<Vec<Summed>> = layers.clone().map(sums).collect();
    for batch in batches(x.rows()) {
        let centred = |(other, own): (usize, &Own)| own.centred(y, other, rows, batch.clone());
        let others: Vec<Matrix> =
            of_y.par_iter().enumerate().map(centred).collect::<Result<_>>()?;
        let others: Vec<Placed> = others.into_iter().map(|other| columns.place(other)).collect();
        for (layer, sums) in layers.clone().zip(&mut sums) {
            let own = columns.place(of_x[layer].centred(x, layer, rows, batch.clone())?);
            sums.iter_mut().zip(&others).for_each(|(sum, other)| columns.add(&own, other, sum));
        }
    }
    let squared = |sums: &Vec<Summed>| sums.iter().map(Summed::squared).collect();
    Ok(sums.iter().map(squared).collect())
}

/// Takes away from |XᵀY|² what each row shares with itself.
fn debias(cross: f64, x: &[f64], y: &[f64]) -> f64 {
    let n = x.len() as f64;
    let own: f64 = x.iter().zip(y).map(|(x, y)| x * y).sum();
    let (x, y) = (x.iter().sum::<f64>(), y.iter().sum::<f64>());
    cross - n / (n - 2.0) * own + x * y / ((n - 1.0) * (n - 2.0))
}

/// Where a value lies with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The intervals of a table, layer by layer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Intervals {
    /// How many samples were drawn.
    pub samples: usize,
    /// Of the biased values.
    pub cka: Vec<Vec<Interval>>,
    /// Of the debiased values; none where one of the samples has none.
    pub debiased: Vec<Vec<Option<Interval>>>,
}

/// Draws half of the rows without putting any back, again and again, and looks how much the values
/// move. (A half differs from the whole as much as the whole from what it was drawn from; and with
/// rows put back, copies would look alike and raise the value.)
pub fn intervals(
    x: &Stack,
    y: &Stack,
    rows: Rows<'_>,
    whole: &Table,
    (samples, seed): (usize, u64),
    device: &Device,
    watch: Watch<'_>,
) -> Result<Intervals> {
    let chance = RandomStreams::new(seed, "half-samples for CKA");
    let mut order: Vec<u32> = (0..x.rows() as u32).collect();
    let mut tables = Vec::with_capacity(samples);
    for sample in 0..samples {
        chance.stream(sample as u64).shuffle(&mut order);
        let mut kept = vec![false; x.rows()];
        order[..x.rows() / 2].iter().for_each(|&row| kept[row as usize] = true);
        let rows = Rows { kept: Some(&kept), ..rows };
        tables.push(table(x, y, rows, device, &crate::search::unwatched)?);
        watch(sample as u64 + 1, samples as u64);
    }
    let around = |value: f64, drawn: Vec<f64>| -> Interval {
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let mut moves: Vec<f64> = drawn.iter().map(|x| x - mean).collect();
        moves.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| moves[(share * (moves.len() - 1) as f64).round() as usize];
        Interval { low: value + at(0.025), high: value + at(0.975) }
    };
    let each =
        |i: usize, j: usize| around(whole.cka[i][j], tables.iter().map(|t| t.cka[i][j]).collect());
    let each_debiased = |i: usize, j: usize| {
        let drawn: Option<Vec<f64>> = tables.iter().map(|t| t.debiased[i][j]).collect();
        Some(around(whole.debiased[i][j]?, drawn?))
    };
    let (down, across) = (x.layers(), y.layers());
    Ok(Intervals {
        samples,
        cka: (0..down).map(|i| (0..across).map(|j| each(i, j)).collect()).collect(),
        debiased: (0..down).map(|i| (0..across).map(|j| each_debiased(i, j)).collect()).collect(),
    })
}

/// The correlation of two curves; none where one of them does not move or has fewer than three
/// points.
pub fn pearson(a: &[f64], b: &[f64]) -> Option<f64> {
    let n = a.len() as f64;
    if a.len() < 3 || a.len() != b.len() {
        return None;
    }
    let (mean_a, mean_b) = (a.iter().sum::<f64>() / n, b.iter().sum::<f64>() / n);
    let sum = |f: &dyn Fn(f64, f64) -> f64| -> f64 {
        a.iter().zip(b).map(|(a, b)| f(a - mean_a, b - mean_b)).sum()
    };
    let scale = (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt();
    (scale > 0.0).then(|| sum(&|a, b| a * b) / scale)
}
