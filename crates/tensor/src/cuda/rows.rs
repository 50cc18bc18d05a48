//! Element by element and row by row: filling, adding, dropout, gathering, scattering.

use super::fault::unknown;
use super::lists::IndexCopy;
use super::{Cuda, Drops, Program, ROWS, THREADS, at, block, lanes, launch, to};
use crate::kernels::{Grad, MatrixPrecision, RowKernels};
use crate::random::Dropout;
use crate::value::{Indices, Tensor};

/// Tables that can be gathered from at once.
const TABLES: usize = 4;

impl RowKernels for Cuda {
    fn fill(&self, y: &mut Tensor, value: f32) {
        let count = y.len();
        if value == 0.0 {
            return self.zero_front(y, count);
        }
        let name = match block(y).precision {
            MatrixPrecision::Full => "fill_full",
            MatrixPrecision::Working => "fill_working",
        };
        let grid = [count.div_ceil(THREADS as usize), 1, 1];
        launch!(self, Program::Elements, name, grid, [THREADS, 1, 1], 0; to(y), value, count as u64);
    }

    fn zero_front(&self, y: &mut Tensor, count: usize) {
        assert!(count <= y.len(), "no more than there are");
        let bytes = count * block(y).precision.bytes();
        self.context.set_bytes(to(y), 0, bytes);
    }

    fn add(&self, y: &mut Tensor, x: &Tensor) {
        assert_eq!(block(x).precision, block(y).precision, "equals are added");
        let name = match block(x).precision {
            MatrixPrecision::Full => "add_full",
            MatrixPrecision::Working => "add_working",
        };
        let grid = [x.len().div_ceil(8 * THREADS as usize), 1, 1];
        launch!(self, Program::Elements, name, grid, [THREADS, 1, 1], 0; to(y), at(x), x.len() as u64);
    }

    fn scale(&self, _: &Tensor, _: f32, _: &mut Tensor) {
        unknown("scaled embeddings");
    }

    fn add_rows(&self, x: &Tensor, table: &Tensor, list: &Indices, scales: &[f32], y: &mut Tensor) {
        assert_eq!(table.precision(), MatrixPrecision::Full, "what is added is of full precision");
        let (rows, cols) = x.shape();
        let name = match x.precision() {
            MatrixPrecision::Full => "add_rows_full",
            MatrixPrecision::Working => "add_rows_working",
        };
        let grid = [rows.div_ceil(ROWS), 1, 1];
        let (list, bytes) = (IndexCopy::of(&self.context, list), x.len() * x.precision().bytes());
        for (number, &scale) in scales.iter().enumerate() {
            launch!(
                self, Program::Rows, name, grid, [THREADS, 1, 1], 0;
                at(x), at(table), list.pointer(), scale, rows as i32, cols as i32,
                to(y) + (number * bytes) as u64,
            );
        }
    }

    fn dropout(&self, x: &Tensor, dropout: Dropout, y: &mut Tensor) {
        let (rows, cols) = x.shape();
        let name = if lanes(cols) == 8 { "dropout_8" } else { "dropout_1" };
        let grid = [rows.div_ceil(ROWS), 1, 1];
        launch!(
            self, Program::Elements, name, grid, [THREADS, 1, 1], 0;
            at(x), Drops::from(dropout), rows as i32, cols as i32, to(y),
        );
    }

    fn gather_sum(&self, tables: &[(&Tensor, &Indices)], sum: &mut Tensor) {
        assert!(tables.len() <= TABLES, "at most {TABLES} tables are added up");
        let (rows, cols) = sum.shape();
        let mut gathers = [Gather::default(); TABLES];
        for (gather, (table, list)) in gathers.iter_mut().zip(tables) {
            *gather =
                Gather { table: at(table), rows: IndexCopy::of(&self.context, list).pointer() };
        }
        let name = match (block(tables[0].0).precision, lanes(cols)) {
            (MatrixPrecision::Full, 8) => "gather_full_8",
            (MatrixPrecision::Full, _) => "gather_full_1",
            (MatrixPrecision::Working, 8) => "gather_working_8",
            (MatrixPrecision::Working, _) => "gather_working_1",
        };
        let grid = [rows.div_ceil(ROWS), 1, 1];
        launch!(
            self, Program::Rows, name, grid, [THREADS, 1, 1], 0;
            gathers, tables.len() as i32, rows as i32, cols as i32, to(sum),
        );
    }

    fn scatter_add(&self, x: &Tensor, list: &Indices, table: &mut Tensor) {
        let cols = x.cols();
        let inverse = IndexCopy::of(&self.context, list).inverse(list);
        let partial = self.scratch(inverse.slots * cols * 4);
        let (groups, joints) = match (block(table).precision, lanes(cols)) {
            (MatrixPrecision::Full, 8) => ("scatter_full_groups_8", "scatter_full_joints"),
            (MatrixPrecision::Full, _) => ("scatter_full_groups_1", "scatter_full_joints"),
            (MatrixPrecision::Working, 8) => ("scatter_working_groups_8", "scatter_working_joints"),
            (MatrixPrecision::Working, _) => ("scatter_working_groups_1", "scatter_working_joints"),
        };
        let grid = [inverse.group_count.div_ceil(ROWS), 1, 1];
        launch!(
            self, Program::Rows, groups, grid, [THREADS, 1, 1], 0;
            at(x), inverse.order.pointer, inverse.groups.pointer, inverse.group_count as i32,
            cols as i32, to(table), partial.pointer,
        );
        let grid = [inverse.joint_count, cols.div_ceil(THREADS as usize), 1];
        launch!(
            self, Program::Rows, joints, grid, [THREADS, 1, 1], 0;
            partial.pointer, inverse.joints.pointer, cols as i32, to(table),
        );
    }

    fn select(&self, x: &Tensor, rows: &Indices, y: &mut Tensor) {
        self.gather_sum(&[(x, rows)], y);
    }

    fn row_means(&self, x: &Tensor, ranges: &Indices, y: &mut Tensor) {
        assert_eq!(
            block(x).precision,
            MatrixPrecision::Working,
            "means are of what flows between operations"
        );
        let (count, cols) = y.shape();
        let lanes = lanes(cols);
        let name = if lanes == 8 { "row_means_8" } else { "row_means_1" };
        let grid = [count, cols.div_ceil(32 * lanes), 1];
        launch!(
            self, Program::Rows, name, grid, [THREADS, 1, 1], 0;
            at(x), IndexCopy::of(&self.context, ranges).pointer(), cols as i32, to(y),
        );
    }
}

/// As the kernel has it: a table and the row that each position takes from it.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Gather {
    table: u64,
    rows: u64,
}

/// A gradient to which nothing is added: nothing stays as it was, or becomes 0.
pub(super) fn clear(cuda: &Cuda, grad: Grad<'_>) {
    if !grad.accumulate {
        cuda.fill(grad.tensor, 0.0);
    }
}
