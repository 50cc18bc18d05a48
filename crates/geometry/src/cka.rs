//! Centred kernel alignment (CKA) with a linear kernel (Kornblith et al. 2019): how similar two sets of
//! vectors of the same things are, up to rotation and scale.
//!
//! With centred X and Y (rows x dim), the biased value is |XᵀY|² / (|XᵀX| |YᵀY|) in Frobenius norms. It
//! grows by chance alone where there are not many more rows than columns; the debiased value, from the
//! unbiased estimator of HSIC (Song et al. 2012; Nguyen et al. 2021), does not. Both need only XᵀY, so
//! rows are read a batch at a time: matmuls in single precision within a batch, sums over batches in
//! double. From 2·10⁹ operations on, they run on a GPU where there is one.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use arrays::{Matrix, Stack};
use files::At;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use tensor::Device;
use terms::{RowCounts, interrupt, wilson};
use text::RandomStreams;

use crate::products::{AddedProduct, Columns, Placed, Summed};
use crate::retrieval::{RetrievalAccuracy, RetrievalResult, repeated_rows};
use crate::search::Watch;
use crate::{Error, Result};

/// Rows of a batch.
const BATCH: usize = 2048;
/// Batches whose sums are taken side by side.
const BATCHES: usize = 8;
/// Rows that one thread centres at a time.
const CENTRED: usize = 64;
/// Values of centred rows that are kept from one product to the next: 1 GiB. More are centred anew for each.
const KEPT: usize = 1 << 28;
/// Bytes that sums of products may take on a GPU, where those of several layers are made at once.
const ROOM: usize = 2 << 30;
/// The fewest rows that a debiased value exists for.
pub const FEWEST: usize = 4;
/// Rows for each column below which the biased value is high by chance.
pub const ENOUGH: usize = 5;

/// Which rows count, and which mean is subtracted from them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rows<'a> {
    /// Only these rows, where not all.
    pub kept: Option<&'a [bool]>,
    /// The group of each row, where not the mean of all is subtracted but that of its group.
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

/// What is computed beside the values.
#[derive(Clone, Copy, Debug)]
pub struct CkaConfig {
    /// Subsamples for intervals; none for two stacks and [`SUBSAMPLES`] for two matrices, if not said.
    pub subsamples: Option<usize>,
    /// Seed of the subsamples.
    pub seed: u64,
}

/// Subsamples for the interval of two matrices, where nothing else is asked for.
pub const SUBSAMPLES: usize = 100;
/// Fewer subsamples have no 95 % interval.
pub const FEWEST_SUBSAMPLES: usize = 20;

/// What came of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CkaResult {
    /// For each layer of the first stack, each of the second: the biased value.
    pub cka: Vec<Vec<f64>>,
    /// The debiased values; none within groups, and where chance leaves nothing to divide by.
    pub debiased: Vec<Vec<Option<f64>>>,
    /// Rows, and what became of them. Of arrays all are used, and repeated ones are only counted.
    #[serde(flatten)]
    pub counts: RowCounts,
    /// Of parallel text: the biased values where the mean of the sentences of the same length (in tokens
    /// of the second side) was subtracted, rather than that of all. None where lengths hardly repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_length: Option<Vec<Vec<f64>>>,
    /// Dimensions of the first and of the second.
    pub dims: [usize; 2],
    /// 95 % intervals of all values.
    pub intervals: Option<CkaIntervals>,
    /// Pearson correlation of the values on the diagonal with retrieval accuracy over layers, by
    /// treatment: `raw`, `centered`, `aligned`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pearson: BTreeMap<String, Option<f64>>,
    /// Whether there are too few rows for the biased value to mean much.
    pub few_rows: bool,
    /// Names every convention that a number depends on.
    pub signature: String,
}

/// What is known of the rows that are compared; of arrays, nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct ComparedRows<'a> {
    /// What became of the rows of parallel text. Of arrays all are used, and repeated ones counted.
    pub counts: Option<RowCounts>,
    /// The group of each row, where the mean of its group is to be subtracted rather than that of all.
    pub groups: Option<&'a [u32]>,
    /// Of parallel text: the tokens of each sentence of the second side.
    pub lengths: Option<&'a [u32]>,
}

/// Compares all layers of two stacks, with intervals where they are asked for. `watch` is called after each layer, after each
/// subsample, and after each layer within lengths.
pub fn compare(
    x: &Stack,
    y: &Stack,
    ComparedRows { counts, groups, lengths }: ComparedRows<'_>,
    config: CkaConfig,
    device: &Device,
    watch: [Watch<'_>; 3],
) -> Result<CkaResult> {
    let rows = Rows { kept: None, groups };
    let table = table(x, y, rows, device, watch[0])?;
    let single = x.layers() == 1 && y.layers() == 1;
    let subsamples = config.subsamples.unwrap_or(if single { SUBSAMPLES } else { 0 });
    let intervals = match subsamples {
        0 => None,
        _ if x.rows() / 2 < FEWEST => None,
        _ => Some(intervals(x, y, rows, &table, (subsamples, config.seed), device, watch[1])?),
    };
    let dims = [x.dim(0), y.dim(0)];
    let lengths = lengths.filter(|_| groups.is_none());
    let within = lengths.map(|lengths| within_lengths(x, y, lengths, device, watch[2]));
    let drawn = intervals.as_ref().map_or(0, |intervals| intervals.subsamples);
    Ok(CkaResult {
        few_rows: table.n < ENOUGH * dims[0].max(dims[1]),
        cka: table.cka,
        debiased: table.debiased,
        counts: counts.map_or_else(|| counts_of_arrays(x, y), Ok)?,
        within_length: within.transpose()?.flatten(),
        dims,
        intervals,
        pearson: BTreeMap::new(),
        signature: signature(groups.is_some(), drawn, config.seed),
    })
}

/// The counts of a comparison of arrays: all rows are used, and repeated ones only counted.
pub(crate) fn counts_of_arrays(x: &Stack, y: &Stack) -> Result<RowCounts> {
    let rows = x.rows();
    let repeated = if rows == y.rows() { repeated_rows(x, y)? } else { 0 };
    Ok(RowCounts { repeated, ..RowCounts::all(rows) })
}

fn signature(grouped: bool, subsamples: usize, seed: u64) -> String {
    let (centre, debiased) = match grouped {
        true => ("within-groups", "none"),
        false => ("mean", "unbiased-hsic"),
    };
    let intervals = match subsamples {
        0 => "none".to_owned(),
        _ => format!("95%,half-samples={subsamples},seed={seed}"),
    };
    let version = env!("CARGO_PKG_VERSION");
    format!("cka:linear|center:{centre}|debiased:{debiased}|interval:{intervals}|v{version}")
}

impl CkaResult {
    /// Correlates the values on the diagonal with retrieval accuracy, layer by layer.
    pub fn correlate(&mut self, retrieval: &RetrievalResult) -> Result<()> {
        let wrong = |reason: String| Error::usage(reason);
        let layers = &retrieval.layers;
        if layers.len() != self.cka.len() || layers.len() != self.cka[0].len() {
            return Err(wrong(format!(
                "the retrieval result has {} layers, the vectors have {} and {}",
                layers.len(),
                self.cka.len(),
                self.cka[0].len()
            )));
        }
        if layers.len() < 3 {
            return Err(wrong("a correlation needs at least three layers".to_owned()));
        }
        let diagonal: Vec<f64> = (0..layers.len()).map(|layer| self.cka[layer][layer]).collect();
        let mean = |accuracy: RetrievalAccuracy| accuracy.mean;
        let curves = [
            ("raw", layers.iter().map(|layer| Some(mean(layer.raw))).collect::<Option<Vec<_>>>()),
            ("centered", layers.iter().map(|layer| Some(mean(layer.centered))).collect()),
            ("aligned", layers.iter().map(|layer| layer.aligned.map(mean)).collect()),
        ];
        let correlated = curves
            .into_iter()
            .filter_map(|(name, curve)| Some((name.to_owned(), pearson(&diagonal, &curve?))));
        self.pearson = correlated.collect();
        Ok(())
    }
}

/// The biased values where the mean of rows of the same length is subtracted; none where there are so many
/// lengths that hardly anything differs within one.
fn within_lengths(
    x: &Stack,
    y: &Stack,
    lengths: &[u32],
    device: &Device,
    watch: Watch<'_>,
) -> Result<Option<Vec<Vec<f64>>>> {
    let different: FxHashSet<u32> = lengths.iter().copied().collect();
    if different.len() * 2 > lengths.len() {
        return Ok(None);
    }
    let rows = Rows { kept: None, groups: Some(lengths) };
    Ok(Some(table(x, y, rows, device, watch)?.cka))
}

/// The group of each row, by the label on its line.
pub fn read_labels(path: &Path, rows: usize) -> Result<Vec<u32>> {
    let text = files::limits::read_text(path).at(path, "read")?;
    groups(&path.display().to_string(), text.lines().map(str::trim), rows)
}

/// The group of each row, by its label; `place` is what the labels are called in messages.
pub fn groups<'a>(
    place: &str,
    labels: impl Iterator<Item = &'a str>,
    rows: usize,
) -> Result<Vec<u32>> {
    let mut numbers: FxHashMap<&str, u32> = FxHashMap::default();
    let mut number = |label| {
        let next = numbers.len() as u32;
        *numbers.entry(label).or_insert(next)
    };
    let labels: Vec<u32> = labels.map(&mut number).collect();
    if labels.len() != rows {
        let reason = format!("has {} labels for {rows} rows", labels.len());
        return Err(Error::input(place, reason, "give one for each row"));
    }
    if numbers.len() * 2 > rows {
        let reason = format!("has {} labels for {rows} rows", numbers.len());
        let remedy =
            "give groups of at least two rows on average, so that something differs within";
        return Err(Error::input(place, reason, remedy));
    }
    Ok(labels)
}

/// The similarity of every layer of one stack to every layer of another.
#[derive(Clone, Debug, PartialEq)]
pub struct CkaTable {
    /// Rows that counted.
    pub n: usize,
    /// For each layer of the first, each of the second: the biased value, which the papers report.
    pub cka: Vec<Vec<f64>>,
    /// The same without the part that is there by chance; none within groups, and where that leaves
    /// nothing to divide by.
    pub debiased: Vec<Vec<Option<f64>>>,
}

/// The mean and the scale that are taken from the rows of a layer.
pub(crate) struct Centre {
    means: FxHashMap<u32, Vec<f64>>,
    /// A power of two that brings the largest value near 1, so that products of very large or small
    /// ones stay numbers; a scale changes nothing else.
    scale: f64,
}

/// What is needed of a layer by itself.
struct Own {
    centre: Centre,
    /// The centred rows, a batch at a time, where they are kept.
    batches: Option<Vec<Placed>>,
    /// The squared length of each centred row that counts.
    squares: Vec<f64>,
    /// |XᵀX|².
    biased: f64,
    debiased: f64,
}

/// Compares all layers of two stacks. `watch` is called after each layer of the first.
pub fn table(
    x: &Stack,
    y: &Stack,
    rows: Rows<'_>,
    device: &Device,
    watch: Watch<'_>,
) -> Result<CkaTable> {
    let n = (0..x.rows()).filter(|&row| rows.keeps(row)).count();
    check(x, y, n)?;
    let (wide, deep) = (dims(x), dims(y));
    let columns = Columns::on(device, 2.0 * n as f64 * (wide as f64) * deep as f64);
    if x.layers() == 1 && y.layers() == 1 {
        let ([of_x, of_y], cross) = Own::pair(x, y, rows, columns)?;
        let mut table = CkaTable { n, cka: Vec::new(), debiased: Vec::new() };
        table.add(&of_x, &[cross], &[of_y], rows);
        watch(1, 1);
        return Ok(table);
    }
    let keep = n * (wide + deep) <= KEPT;
    let of_x = owns(x, rows, columns, keep)?;
    let of_y = owns(y, rows, columns, keep)?;
    let mut table = CkaTable { n, cka: Vec::new(), debiased: Vec::new() };
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

fn owns(stack: &Stack, rows: Rows<'_>, columns: Columns<'_>, keep: bool) -> Result<Vec<Own>> {
    (0..stack.layers()).map(|layer| Own::new(stack, layer, rows, columns, keep)).collect()
}

impl CkaTable {
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

pub(crate) fn check(x: &Stack, y: &Stack, n: usize) -> Result<()> {
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
    fn empty(
        stack: &Stack,
        layer: usize,
        rows: Rows<'_>,
        kept: Option<Vec<Placed>>,
    ) -> Result<Self> {
        let centre = Centre::new(stack, layer, rows)?;
        Ok(Self { centre, batches: kept, squares: Vec::new(), biased: 0.0, debiased: 0.0 })
    }

    fn new(
        stack: &Stack,
        layer: usize,
        rows: Rows<'_>,
        columns: Columns<'_>,
        keep: bool,
    ) -> Result<Self> {
        let mut own = Self::empty(stack, layer, rows, keep.then(Vec::new))?;
        let mut gram = columns.sum(stack.dim(layer), stack.dim(layer));
        let mut buffer = Vec::new();
        for batch in batches(stack.rows()) {
            interrupt::check();
            let x = own.next(stack, layer, rows, batch, columns, buffer)?;
            columns.add(&x, &x, &mut gram);
            buffer = match &mut own.batches {
                Some(kept) => {
                    kept.push(x);
                    Vec::new()
                }
                None => x.into_buffer(),
            };
        }
        own.finish(stack, layer, &gram)?;
        Ok(own)
    }

    /// The centred rows of the next batch, whose lengths are kept.
    fn next(
        &mut self,
        stack: &Stack,
        layer: usize,
        rows: Rows<'_>,
        batch: Range<usize>,
        columns: Columns<'_>,
        buffer: Vec<f32>,
    ) -> Result<Placed> {
        let squares = Some(&mut self.squares);
        Ok(columns.place(self.centre.centred_into(stack, layer, rows, batch, buffer, squares)?))
    }

    fn finish(&mut self, stack: &Stack, layer: usize, gram: &Summed) -> Result<()> {
        self.biased = gram.squared();
        self.debiased = debias(self.biased, &self.squares, &self.squares);
        match self.biased > 0.0 {
            true => Ok(()),
            false => Err(constant(stack, layer)),
        }
    }

    /// Two layers by themselves and |XᵀY|², in one pass over the rows of both.
    fn pair(
        x: &Stack,
        y: &Stack,
        rows: Rows<'_>,
        columns: Columns<'_>,
    ) -> Result<([Self; 2], f64)> {
        let mut of_x = Self::empty(x, 0, rows, None)?;
        let mut of_y = Self::empty(y, 0, rows, None)?;
        let [mut xx, mut yy] = [x, y].map(|stack| columns.sum(stack.dim(0), stack.dim(0)));
        let mut xy = columns.sum(x.dim(0), y.dim(0));
        let mut buffers = [Vec::new(), Vec::new()];
        for batch in batches(x.rows()) {
            interrupt::check();
            let [left, right] = buffers;
            let left = of_x.next(x, 0, rows, batch.clone(), columns, left)?;
            let right = of_y.next(y, 0, rows, batch, columns, right)?;
            columns.add_all(vec![
                AddedProduct { left: &left, right: &right, sum: &mut xy },
                AddedProduct { left: &left, right: &left, sum: &mut xx },
                AddedProduct { left: &right, right: &right, sum: &mut yy },
            ]);
            buffers = [left.into_buffer(), right.into_buffer()];
        }
        of_x.finish(x, 0, &xx)?;
        of_y.finish(y, 0, &yy)?;
        Ok(([of_x, of_y], xy.squared()))
    }
}

/// The squared length of a row, in sums that do not wait for one another.
#[inline(always)]
fn square(row: &[f32]) -> f64 {
    let (chunks, rest) = row.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for chunk in chunks {
        sums.iter_mut().zip(chunk).for_each(|(sum, &x)| *sum += f64::from(x).powi(2));
    }
    sums.iter().sum::<f64>() + rest.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>()
}

/// A batch of centred rows, kept or made for one use.
enum BatchRows<'a> {
    Kept(&'a Placed),
    Anew(Placed),
}

impl BatchRows<'_> {
    fn placed(&self) -> &Placed {
        match self {
            BatchRows::Kept(placed) => placed,
            BatchRows::Anew(placed) => placed,
        }
    }
}

impl Own {
    fn rows(
        &self,
        (stack, layer): (&Stack, usize),
        rows: Rows<'_>,
        (number, batch): (usize, Range<usize>),
        columns: Columns<'_>,
    ) -> Result<BatchRows<'_>> {
        match &self.batches {
            Some(kept) => Ok(BatchRows::Kept(&kept[number])),
            None => {
                let centred = self.centre.centred(stack, layer, rows, batch)?;
                Ok(BatchRows::Anew(columns.place(centred)))
            }
        }
    }
}

/// Refuses a layer in which nothing varies.
pub(crate) fn constant(stack: &Stack, layer: usize) -> Error {
    let place = format!("{}: layer {}", stack.name(), stack.layer_name(layer));
    let reason = "all its rows are the same, so there is nothing to compare";
    Error::input(place, reason, "give vectors that differ")
}

impl Centre {
    pub(crate) fn new(stack: &Stack, layer: usize, rows: Rows<'_>) -> Result<Self> {
        let (means, largest) = means(stack, layer, rows)?;
        let scale = if largest > 0.0 { (-largest.log2().floor()).exp2() } else { 1.0 };
        Ok(Self { means, scale })
    }

    /// Some rows less their mean, those that count.
    pub(crate) fn centred(
        &self,
        stack: &Stack,
        layer: usize,
        rows: Rows<'_>,
        batch: Range<usize>,
    ) -> Result<Matrix> {
        self.centred_into(stack, layer, rows, batch, Vec::new(), None)
    }

    /// The same in the memory of `buffer`; their squared lengths are appended to `squares`.
    fn centred_into(
        &self,
        stack: &Stack,
        layer: usize,
        rows: Rows<'_>,
        batch: Range<usize>,
        mut buffer: Vec<f32>,
        squares: Option<&mut Vec<f64>>,
    ) -> Result<Matrix> {
        // That they are finite was seen when the mean was taken.
        let (read, dim) = (stack.unchecked(layer, batch.clone())?, stack.dim(layer));
        let kept: Vec<usize> = batch.clone().filter(|&row| rows.keeps(row)).collect();
        buffer.resize(kept.len() * dim, 0.0);
        let centre = |(centred, row): (&mut [f32], &usize)| {
            let mean = &self.means[&rows.group(*row)];
            let vector = read[(row - batch.start) * dim..].iter().zip(mean);
            tensor::dispatch!(pulp::Arch::new(), || {
                let pairs = centred.iter_mut().zip(vector);
                pairs.for_each(|(to, (&x, m))| *to = ((f64::from(x) - m) * self.scale) as f32);
                square(centred)
            })
        };
        let each = buffer.par_chunks_mut(dim).zip(&kept).with_min_len(CENTRED).map(centre);
        match squares {
            Some(squares) => squares.par_extend(each),
            None => each.for_each(|_| ()),
        }
        Ok(Matrix::new(kept.len(), dim, buffer))
    }
}

fn batches(rows: usize) -> impl Iterator<Item = Range<usize>> {
    (0..rows).step_by(BATCH).map(move |start| start..rows.min(start + BATCH))
}

/// The mean of each group of rows, or of all where there are no groups, and the largest value.
fn means(stack: &Stack, layer: usize, rows: Rows<'_>) -> Result<(FxHashMap<u32, Vec<f64>>, f64)> {
    let dim = stack.dim(layer);
    let of_batch = |batch: Range<usize>| -> Result<_> {
        let mut sums: FxHashMap<u32, (Vec<f64>, f64)> = FxHashMap::default();
        // Magnitudes are ordered as their bits are, which are compared without regard to NaN.
        let mut largest = 0;
        let read = stack.unchecked(layer, batch.clone())?;
        let every = batch.clone().zip(read.chunks_exact(dim));
        for (row, vector) in every.filter(|(row, _)| rows.keeps(*row)) {
            let sum = sums.entry(rows.group(row)).or_insert_with(|| (vec![0.0; dim], 0.0));
            largest = tensor::dispatch!(pulp::Arch::new(), || {
                sum.0.iter_mut().zip(vector).for_each(|(sum, &x)| *sum += f64::from(x));
                vector.iter().fold(largest, |most, x| most.max(x.abs().to_bits()))
            });
            sum.1 += 1.0;
        }
        let largest = f32::from_bits(largest);
        if !largest.is_finite() {
            // Says which row it is.
            stack.view(layer, batch)?;
        }
        Ok((sums, largest))
    };
    let all: Vec<Range<usize>> = batches(stack.rows()).collect();
    let (mut sums, mut largest): (FxHashMap<u32, (Vec<f64>, f64)>, _) = Default::default();
    // As many at a time as threads can use, and the same sums for any number of them.
    for some in all.chunks(BATCHES) {
        let each: Vec<_> = some.par_iter().cloned().map(of_batch).collect::<Result<_>>()?;
        for (of_batch, most) in each {
            largest = f32::max(largest, most);
            for (group, (values, count)) in of_batch {
                let sum = sums.entry(group).or_insert_with(|| (vec![0.0; dim], 0.0));
                sum.0.iter_mut().zip(values).for_each(|(sum, x)| *sum += x);
                sum.1 += count;
            }
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
    for (number, batch) in batches(x.rows()).enumerate() {
        interrupt::check();
        let others: Vec<BatchRows<'_>> = (0..y.layers())
            .map(|other| of_y[other].rows((y, other), rows, (number, batch.clone()), columns))
            .collect::<Result<_>>()?;
        for (layer, sums) in layers.clone().zip(&mut sums) {
            let own = of_x[layer].rows((x, layer), rows, (number, batch.clone()), columns)?;
            let left = own.placed();
            let each = sums.iter_mut().zip(&others);
            let products =
                each.map(|(sum, other)| AddedProduct { left, right: other.placed(), sum });
            columns.add_all(products.collect());
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SimilarityInterval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl SimilarityInterval {
    /// The interval of a share of `n` independent trials (Wilson 1927).
    pub(crate) fn of_share(share: f64, n: f64) -> Self {
        let (low, high) = wilson(share, n);
        Self { low, high }
    }

    /// The interval of a value that has the spread of what half-samples gave.
    pub(crate) fn around(value: f64, drawn: &[f64]) -> Self {
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let mut moves: Vec<f64> = drawn.iter().map(|x| x - mean).collect();
        moves.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| moves[(share * (moves.len() - 1) as f64).round() as usize];
        Self { low: value + at(0.025), high: value + at(0.975) }
    }
}

/// The intervals of a table, layer by layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CkaIntervals {
    /// How many subsamples were drawn.
    pub subsamples: usize,
    /// Of the biased values.
    pub cka: Vec<Vec<SimilarityInterval>>,
    /// Of the debiased values; none where one of the samples has none.
    pub debiased: Vec<Vec<Option<SimilarityInterval>>>,
}

/// Intervals by subsampling: half of the rows are drawn without replacement, again and again, and the
/// spread of the values is that of the interval. (A half differs from the whole as much as the whole
/// from what it was drawn from; a bootstrap would draw copies of rows, which raise the value.)
pub fn intervals(
    x: &Stack,
    y: &Stack,
    rows: Rows<'_>,
    whole: &CkaTable,
    (samples, seed): (usize, u64),
    device: &Device,
    watch: Watch<'_>,
) -> Result<CkaIntervals> {
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
    let each = |i: usize, j: usize| {
        let drawn: Vec<f64> = tables.iter().map(|t| t.cka[i][j]).collect();
        SimilarityInterval::around(whole.cka[i][j], &drawn)
    };
    let each_debiased = |i: usize, j: usize| {
        let drawn: Option<Vec<f64>> = tables.iter().map(|t| t.debiased[i][j]).collect();
        Some(SimilarityInterval::around(whole.debiased[i][j]?, &drawn?))
    };
    let (down, across) = (x.layers(), y.layers());
    Ok(CkaIntervals {
        subsamples: samples,
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
