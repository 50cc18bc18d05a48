//! The nearest of many vectors: tiles of scores by cuBLASLt, sifted in the GPU's memory.

use super::context::DeviceMemory;
use super::{Cuda, Matmul, Operand, Program, ROWS, THREADS, at, launch, linear};
use crate::kernels::{Kernels as _, MatrixPrecision};
use crate::search::{BestScores, MOST_BEST, NearestSearch, NeighbourMeans, ScoreRule};
use crate::value::Tensor;

/// Rows and columns of a tile of scores: enough to fill the card both ways, 256 MiB.
const TILE_ROWS: usize = 4096;
const TILE_COLS: usize = 16384;
/// Rows whose logits are in memory at once.
const LOGIT_ROWS: usize = 2048;
/// Columns that a block sifts.
const COLUMNS: usize = 32;

/// The best scores of each row and of each column.
pub(super) fn nearest(
    cuda: &Cuda,
    search: &NearestSearch<'_>,
    watch: &dyn Fn(u64, u64),
) -> [BestScores; 2] {
    let (sources, targets) = (search.source.rows(), search.target.rows());
    assert_eq!(search.source.cols(), search.target.cols(), "vectors of one width");
    assert!((1..=MOST_BEST).contains(&search.of_source) && search.of_target <= MOST_BEST);
    let scoring = Scoring::of(search);
    let lists = [
        BestLists::new(cuda, sources, search.of_source),
        BestLists::new(cuda, targets, search.of_target),
    ];
    let scores = cuda.scratch(TILE_ROWS.min(sources) * TILE_COLS.min(targets) * 4);
    for (done, first_row) in (0..sources).step_by(TILE_ROWS).enumerate() {
        for first_col in (0..targets).step_by(TILE_COLS) {
            let tile = ScoreTile {
                first: [first_row, first_col],
                size: [TILE_ROWS.min(sources - first_row), TILE_COLS.min(targets - first_col)],
            };
            tile.multiply(cuda, search, &scores);
            tile.sift(cuda, &scores, scoring, &lists);
        }
        cuda.context.wait();
        watch(done as u64 + 1, sources.div_ceil(TILE_ROWS) as u64);
    }
    lists.map(|lists| lists.read(cuda))
}

/// The entry of the largest logit of each row. Logits stay where they are: a row of them over a large vocabulary is half
/// a megabyte, and its best column four bytes.
pub(super) fn best_tokens(cuda: &Cuda, hidden: &Tensor, table: &Tensor, bias: &Tensor) -> Vec<u32> {
    let rows = hidden.rows();
    let mut ids = Vec::with_capacity(rows);
    for start in (0..rows).step_by(LOGIT_ROWS) {
        let end = (start + LOGIT_ROWS).min(rows);
        let mut logits = cuda.empty(end - start, table.rows(), MatrixPrecision::Full);
        linear::logits(cuda, hidden, start..end, table, bias, &mut logits);
        ids.extend(best_of_rows(cuda, &logits));
    }
    ids
}

/// The column of the largest number of each row.
fn best_of_rows(cuda: &Cuda, scores: &Tensor) -> Vec<u32> {
    assert_eq!(scores.precision(), MatrixPrecision::Full, "scores are compared unrounded");
    let (rows, cols) = scores.shape();
    let lists = BestLists::new(cuda, rows, 1);
    launch!(
        cuda, Program::Search, "best_of_rows", [rows.div_ceil(ROWS), 1, 1], [THREADS, 1, 1], 0;
        at(scores), rows as i32, cols as i32, 0u32, 0u32, Scoring::DOT, 1i32, lists.scores.pointer,
        lists.ids.pointer,
    );
    // A row without a number has no best column.
    let known = |id: u32| if id == u32::MAX { 0 } else { id };
    lists.read(cuda).ids.into_iter().map(known).collect()
}

/// A tile of scores: where it is, and how large.
struct ScoreTile {
    /// Its first row and column.
    first: [usize; 2],
    /// Its rows and columns.
    size: [usize; 2],
}

impl ScoreTile {
    /// scores = the tile's rows of the sources · its rows of the targets, transposed.
    fn multiply(&self, cuda: &Cuda, search: &NearestSearch<'_>, scores: &DeviceMemory) {
        let [rows, cols] = self.size;
        let right = Operand { transposed: true, ..rows_from(search.target, self.first[1]) };
        let (pointer, precision) = (scores.pointer, MatrixPrecision::Full);
        cuda.blas.run(&Matmul {
            left: rows_from(search.source, self.first[0]),
            right,
            out: Operand { pointer, precision, pitch: cols, transposed: false },
            size: [rows, cols, search.source.cols()],
            accumulate: false,
            bias: None,
        });
    }

    fn sift(&self, cuda: &Cuda, scores: &DeviceMemory, scoring: Scoring, lists: &[BestLists; 2]) {
        let [rows, cols] = self.size;
        let names = ["best_of_rows", "best_of_columns"];
        let grids = [rows.div_ceil(ROWS), cols.div_ceil(COLUMNS)];
        for ((name, grid), lists) in names.into_iter().zip(grids).zip(lists) {
            if lists.k == 0 {
                continue;
            }
            launch!(
                cuda, Program::Search, name, [grid, 1, 1], [THREADS, 1, 1], 0;
                scores.pointer, rows as i32, cols as i32, self.first[0] as u32, self.first[1] as u32,
                scoring, lists.k as i32, lists.scores.pointer, lists.ids.pointer,
            );
        }
    }
}

/// The rows of a matrix of full precision from one on, as an operand.
fn rows_from(x: &Tensor, first: usize) -> Operand {
    assert_eq!(x.precision(), MatrixPrecision::Full, "vectors are compared unrounded");
    let pointer = at(x) + (4 * first * x.cols()) as u64;
    Operand { pointer, precision: MatrixPrecision::Full, pitch: x.cols(), transposed: false }
}

/// How a dot product becomes a score, as `search.cu` numbers it.
#[derive(Clone, Copy)]
#[repr(i32)]
enum RuleKind {
    Dot = 0,
    Csls = 1,
    MarginDistance = 2,
    MarginRatio = 3,
}

/// As the kernels have it: how a dot product becomes a score.
#[derive(Clone, Copy)]
#[repr(C)]
struct Scoring {
    of_rows: u64,
    of_cols: u64,
    kind: RuleKind,
    least: f32,
    seed: u32,
    bound: u32,
}

impl Scoring {
    const DOT: Self =
        Self { of_rows: 0, of_cols: 0, kind: RuleKind::Dot, least: 0.0, seed: 0, bound: u32::MAX };

    fn of(search: &NearestSearch<'_>) -> Self {
        let (kind, means, least) = match search.rule {
            ScoreRule::Dot => (RuleKind::Dot, None, 0.0),
            ScoreRule::Csls(means) => (RuleKind::Csls, Some(means), 0.0),
            ScoreRule::MarginDistance(means) => (RuleKind::MarginDistance, Some(means), 0.0),
            ScoreRule::MarginRatio(means, least) => (RuleKind::MarginRatio, Some(means), least),
        };
        let numbers = |means: NeighbourMeans<'_>| {
            let [source, target] = [(means.source, search.source), (means.target, search.target)]
                .map(|(numbers, vectors)| {
                    assert_eq!(numbers.len(), vectors.rows(), "one number for each vector");
                    at(numbers)
                });
            (source, target)
        };
        let (of_rows, of_cols) = means.map_or((0, 0), numbers);
        let (seed, bound) = search.dropout.map_or((0, u32::MAX), |drop| (drop.seed, drop.bound));
        Self { of_rows, of_cols, kind, least, seed, bound }
    }
}

/// The best so far of every row, or of every column. The kernels begin them.
struct BestLists {
    k: usize,
    count: usize,
    scores: DeviceMemory,
    ids: DeviceMemory,
}

impl BestLists {
    fn new(cuda: &Cuda, vectors: usize, k: usize) -> Self {
        let count = vectors * k;
        Self { k, count, scores: cuda.scratch(4 * count), ids: cuda.scratch(4 * count) }
    }

    fn read(self, cuda: &Cuda) -> BestScores {
        let mut best = BestScores { scores: vec![0.0; self.count], ids: vec![0; self.count] };
        let scores: &mut [u8] = bytemuck::cast_slice_mut(&mut best.scores);
        cuda.context.download(self.scores.pointer, scores);
        cuda.context.download(self.ids.pointer, bytemuck::cast_slice_mut(&mut best.ids));
        best
    }
}
