//! Element by element and row by row: gathering, scattering, adding, dropout.

#![allow(unsafe_code, reason = "tasks write different columns of the same rows")]

use pulp::Arch;
use rayon::prelude::*;

use super::matmul::MatrixViewMut;
use super::{Cpu, TASK, task_rows};
use crate::dispatch;
use crate::kernels::{Grad, RowKernels};
use crate::random::Dropout;
use crate::value::{Indices, Tensor};

/// Columns in a task where rows must be visited in order.
const STRIP: usize = 64;

impl RowKernels for Cpu {
    fn fill(&self, y: &mut Tensor, value: f32) {
        self.threads.install(|| {
            y.as_mut_slice().par_chunks_mut(TASK).for_each(|y| y.fill(value));
        });
    }

    fn zero_front(&self, y: &mut Tensor, count: usize) {
        y.as_mut_slice()[..count].fill(0.0);
    }

    fn add(&self, y: &mut Tensor, x: &Tensor) {
        self.threads.install(|| {
            combine(self.arch, y, x, |y, x| y + x);
        });
    }

    fn scale(&self, x: &Tensor, factor: f32, y: &mut Tensor) {
        self.threads.install(|| combine(self.arch, y, x, |_, x| factor * x));
    }

    fn add_rows(&self, x: &Tensor, table: &Tensor, rows: &Indices, scales: &[f32], y: &mut Tensor) {
        self.threads.install(|| {
            let (cols, height) = (x.cols(), task_rows(x.cols()));
            for (y, scale) in y.as_mut_slice().chunks_mut(x.len().max(1)).zip(scales) {
                let tasks = y
                    .par_chunks_mut(height * cols)
                    .zip(x.as_slice().par_chunks(height * cols))
                    .zip(rows.par_chunks(height));
                tasks.for_each(|((y, x), rows)| {
                    dispatch!(self.arch, || {
                        for ((y, x), &row) in y.chunks_mut(cols).zip(x.chunks(cols)).zip(rows) {
                            let entry = &table.as_slice()[row as usize * cols..][..cols];
                            for ((y, &x), &step) in y.iter_mut().zip(x).zip(entry) {
                                *y = x + scale * step;
                            }
                        }
                    });
                });
            }
        });
    }

    fn dropout(&self, x: &Tensor, dropout: Dropout, y: &mut Tensor) {
        self.threads.install(|| {
            if dropout.rate == 0.0 {
                return combine(self.arch, y, x, |_, x| x);
            }
            let (cols, height) = (x.cols(), task_rows(x.cols()));
            let tasks = y
                .as_mut_slice()
                .par_chunks_mut(height * cols)
                .zip(x.as_slice().par_chunks(height * cols));
            tasks.enumerate().for_each(|(task, (y, x))| {
                dispatch!(self.arch, || {
                    for (row, (y, x)) in y.chunks_mut(cols).zip(x.chunks(cols)).enumerate() {
                        dropout.factors((task * height + row) as u32, y);
                        for (y, &x) in y.iter_mut().zip(x) {
                            *y *= x;
                        }
                    }
                });
            });
        });
    }

    fn gather_sum(&self, tables: &[(&Tensor, &Indices)], sum: &mut Tensor) {
        self.threads.install(|| {
            let (cols, height) = (sum.cols(), task_rows(sum.cols()));
            sum.as_mut_slice().par_chunks_mut(height * cols).enumerate().for_each(|(task, sum)| {
                dispatch!(self.arch, || {
                    for (row, sum) in sum.chunks_mut(cols).enumerate() {
                        for (number, (table, rows)) in tables.iter().enumerate() {
                            let from = rows[task * height + row] as usize * cols;
                            let entry = &table.as_slice()[from..from + cols];
                            if number == 0 {
                                sum.copy_from_slice(entry);
                            } else {
                                for (sum, &x) in sum.iter_mut().zip(entry) {
                                    *sum += x;
                                }
                            }
                        }
                    }
                });
            });
        });
    }

    fn scatter_add(&self, x: &Tensor, rows: &Indices, table: &mut Tensor) {
        self.threads.install(|| {
            let cols = x.cols();
            let table = MatrixViewMut::of(table);
            (0..cols.div_ceil(STRIP)).into_par_iter().with_max_len(1).for_each(|strip| {
                let strip = strip * STRIP..cols.min((strip + 1) * STRIP);
                dispatch!(self.arch, || {
                    for (x, &row) in x.as_slice().chunks(cols).zip(rows.iter()) {
                        // SAFETY: tasks have different columns, and a task holds one segment at a time.
                        let entry = unsafe { table.segment(row as usize, strip.clone()) };
                        for (entry, &x) in entry.iter_mut().zip(&x[strip.clone()]) {
                            *entry += x;
                        }
                    }
                });
            });
        });
    }

    fn select(&self, x: &Tensor, rows: &Indices, y: &mut Tensor) {
        self.gather_sum(&[(x, rows)], y);
    }

    fn row_means(&self, x: &Tensor, ranges: &Indices, y: &mut Tensor) {
        self.threads.install(|| {
            let (cols, x) = (x.cols(), x.as_slice());
            let means = y.as_mut_slice().par_chunks_mut(cols.max(1)).zip(ranges.par_chunks(2));
            means.for_each(|(mean, range)| {
                let rows = &x[range[0] as usize * cols..range[1] as usize * cols];
                let share = 1.0 / (range[1] - range[0]) as f32;
                mean.fill(0.0);
                dispatch!(self.arch, || {
                    for row in rows.chunks_exact(cols) {
                        mean.iter_mut().zip(row).for_each(|(sum, &x)| *sum += x * share);
                    }
                });
            });
        });
    }
}

/// Combines `y` with `x`, element by element.
pub(super) fn combine(arch: Arch, y: &mut Tensor, x: &Tensor, f: impl Fn(f32, f32) -> f32 + Sync) {
    let (y, x) = (y.as_mut_slice(), x.as_slice());
    y.par_chunks_mut(TASK).zip(x.par_chunks(TASK)).for_each(|(y, x)| {
        dispatch!(arch, || {
            for (y, &x) in y.iter_mut().zip(x) {
                *y = f(*y, x);
            }
        });
    });
}

pub(super) fn column_sum(arch: Arch, dy: &Tensor, db: Grad<'_>) {
    let cols = dy.cols();
    let Grad { tensor, accumulate } = db;
    let strips = tensor.as_mut_slice().par_chunks_mut(STRIP).with_max_len(1);
    strips.enumerate().for_each(|(strip, db)| {
        dispatch!(arch, || {
            let mut sum = [0.0; STRIP];
            for dy in dy.as_slice().chunks(cols) {
                for (sum, &dy) in
                    sum.iter_mut().zip(&dy[strip * STRIP..cols.min((strip + 1) * STRIP)])
                {
                    *sum += dy;
                }
            }
            for (db, sum) in db.iter_mut().zip(sum) {
                *db = if accumulate { *db + sum } else { sum };
            }
        });
    });
}
