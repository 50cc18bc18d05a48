//! Vectors compared: tiles of scores that are sifted where they are, and sums of products.

use super::context::Memory;
use super::{Cuda, Product, Program, ROWS, Side, THREADS, at, block, launch, to};
use crate::exact::{Best, Exact, MOST_BEST, Own, Rule, Search, Sum};
use crate::kernels::{Kernels, Precision};
use crate::value::Tensor;

/// Rows and columns of a tile of scores: enough to fill the card both ways, 256 MiB.
const TILE_ROWS: usize = 4096;
const TILE_COLS: usize = 16384;
/// Columns that a block sifts.
const COLUMNS: usize = 32;

impl Exact for Cuda {
    fn best(&self, search: &Search<'_>, watch: &dyn Fn(u64, u64)) -> [Best; 2] {
        let (sources, targets) = (search.source.rows(), search.target.rows());
        assert_eq!(search.source.cols(), search.target.cols(), "vectors of one width");
        assert!((1..=MOST_BEST).contains(&search.of_source) && search.of_target <= MOST_BEST);
        let rule = Scoring::of(search);
        let lists = [
            Lists::new(self, sources, search.of_source),
            Lists::new(self, targets, search.of_target),
        ];
        let tile = self.scratch(TILE_ROWS.min(sources) * TILE_COLS.min(targets) * 4);
        for (done, first_row) in (0..sources).step_by(TILE_ROWS).enumerate() {
            for first_col in (0..targets).step_by(TILE_COLS) {
                let part = Part {
                    first: [first_row, first_col],
                    size: [TILE_ROWS.min(sources - first_row), TILE_COLS.min(targets - first_col)],
                };
                self.scores(search, &part, &tile);
                self.sift(&part, &tile, rule, &lists);
            }
            self.context.wait();
            watch(done as u64 + 1, sources.div_ceil(TILE_ROWS) as u64);
        }
        lists.map(|lists| lists.read(self))
    }

    fn sum(&self, rows: usize, cols: usize) -> Sum {
        Sum { wide: self.empty(rows, 2 * cols, Precision::Full), begun: false }
    }

    fn add_product(&self, a: &Tensor, b: &Tensor, sum: &mut Sum) {
        let size = [a.cols(), b.cols(), a.rows()];
        assert_eq!((a.rows(), sum.wide.shape()), (b.rows(), (size[0], 2 * size[1])));
        if a.rows() == 0 {
            return;
        }
        let count = size[0] * size[1];
        let product = self.scratch(4 * count);
        let left = Side { turned: true, ..side(a, 0) };
        self.products.run(&Product {
            left,
            right: side(b, 0),
            out: flat(&product, size[1]),
            size,
            accumulate: false,
            bias: None,
        });
        let grid = [count.div_ceil(THREADS as usize), 1, 1];
        let accumulate = i32::from(sum.begun);
        launch!(
            self, Program::Search, "add_wide", grid, [THREADS, 1, 1], 0;
            to(&mut sum.wide), product.pointer, count as u64, accumulate,
        );
        sum.begun = true;
    }
}

/// Where a tile is, and how large.
struct Part {
    /// Its first row and column.
    first: [usize; 2],
    /// Its rows and columns.
    size: [usize; 2],
}

impl Cuda {
    /// tile = the part's rows of the sources · its rows of the targets, turned.
    fn scores(&self, search: &Search<'_>, part: &Part, tile: &Memory) {
        let [rows, cols] = part.size;
        let right = Side { turned: true, ..side(search.target, part.first[1]) };
        self.products.run(&Product {
            left: side(search.source, part.first[0]),
            right,
            out: flat(tile, cols),
            size: [rows, cols, search.source.cols()],
            accumulate: false,
            bias: None,
        });
    }

    fn sift(&self, part: &Part, tile: &Memory, rule: Scoring, lists: &[Lists; 2]) {
        let [rows, cols] = part.size;
        let names = ["best_of_rows", "best_of_columns"];
        let grids = [rows.div_ceil(ROWS), cols.div_ceil(COLUMNS)];
        for ((name, grid), lists) in names.into_iter().zip(grids).zip(lists) {
            if lists.k == 0 {
                continue;
            }
            launch!(
                self, Program::Search, name, [grid, 1, 1], [THREADS, 1, 1], 0;
                tile.pointer, rows as i32, cols as i32, part.first[0] as u32, part.first[1] as u32,
                rule, lists.k as i32, lists.scores.pointer, lists.ids.pointer,
            );
        }
    }
}

/// The rows of a full matrix from one on, as a side of a product.
fn side(x: &Tensor, first: usize) -> Side {
    assert_eq!(block(x).precision, Precision::Full, "vectors are compared unrounded");
    let pointer = at(x) + (4 * first * x.cols()) as u64;
    Side { pointer, precision: Precision::Full, pitch: x.cols(), turned: false }
}

/// Full numbers in rows of that many.
fn flat(memory: &Memory, cols: usize) -> Side {
    Side { pointer: memory.pointer, precision: Precision::Full, pitch: cols, turned: false }
}

/// As the kernels have it: how a product becomes a score.
#[derive(Clone, Copy)]
#[repr(C)]
struct Scoring {
    of_rows: u64,
    of_cols: u64,
    kind: i32,
    least: f32,
    seed: u32,
    bound: u32,
}

impl Scoring {
    fn of(search: &Search<'_>) -> Self {
        let (kind, own, least) = match search.rule {
            Rule::Product => (0, None, 0.0),
            Rule::Csls(own) => (1, Some(own), 0.0),
            Rule::Distance(own) => (2, Some(own), 0.0),
            Rule::Ratio(own, least) => (3, Some(own), least),
        };
        let numbers = |own: Own<'_>| {
            let [source, target] = [(own.source, search.source), (own.target, search.target)].map(
                |(numbers, vectors)| {
                    assert_eq!(numbers.len(), vectors.rows(), "one number for each vector");
                    at(numbers)
                },
            );
            (source, target)
        };
        let (of_rows, of_cols) = own.map_or((0, 0), numbers);
        let (seed, bound) = search.thinning.map_or((0, u32::MAX), |thin| (thin.seed, thin.bound));
        Self { of_rows, of_cols, kind, least, seed, bound }
    }
}

/// The best so far of every row, or of every column. The kernels begin them.
struct Lists {
    k: usize,
    count: usize,
    scores: Memory,
    ids: Memory,
}

impl Lists {
    fn new(cuda: &Cuda, vectors: usize, k: usize) -> Self {
        let count = vectors * k;
        Self { k, count, scores: cuda.scratch(4 * count), ids: cuda.scratch(4 * count) }
    }

    fn read(self, cuda: &Cuda) -> Best {
        let mut best = Best { scores: vec![0.0; self.count], ids: vec![0; self.count] };
        let scores: &mut [u8] = bytemuck::cast_slice_mut(&mut best.scores);
        cuda.context.download(self.scores.pointer, scores);
        cuda.context.download(self.ids.pointer, bytemuck::cast_slice_mut(&mut best.ids));
        best
    }
}
