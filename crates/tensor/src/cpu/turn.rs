//! Norms of heads and turns by positions, some rows at a time.

use rayon::prelude::*;

use super::norm::{add_partials, normalise, row_backward};
use super::{Cpu, task_rows};
use crate::dispatch;
use crate::kernels::{HeadTurn, NormGrads};
use crate::value::Tensor;

/// Turns the pairs of columns of a head: by the angles forward, against them in the backward pass.
#[inline(always)]
fn rotate(head: &mut [f32], angles: &[f32], direction: f32) {
    let (cosines, sines) = angles.split_at(angles.len() / 2);
    let (first, rest) = head.split_at_mut(cosines.len());
    for (((a, b), &cosine), &sine) in first.iter_mut().zip(rest).zip(cosines).zip(sines) {
        (*a, *b) = (*a * cosine - *b * sine * direction, *b * cosine + *a * sine * direction);
    }
}

/// The angles of a row; none where nothing is turned.
fn angles_of<'a>(turn: &HeadTurn<'a>, row: usize) -> &'a [f32] {
    turn.angles.map_or(&[], |angles| {
        let place = turn.places[row] as usize;
        &angles.as_slice()[place * angles.cols()..][..angles.cols()]
    })
}

pub(super) fn forward(
    cpu: &Cpu,
    x: &Tensor,
    turn: HeadTurn<'_>,
    y: &mut Tensor,
    stats: Option<&mut Tensor>,
) {
    let (cols, height) = (x.cols(), task_rows(x.cols()));
    let HeadTurn { width, heads, norm, .. } = turn;
    // Without a norm there is nothing to keep, but there are as many tasks.
    let mut nothing = Vec::new();
    let stats = match stats {
        Some(stats) => stats.as_mut_slice(),
        None => {
            nothing.resize(x.rows() * 2 * heads, 0.0);
            &mut nothing
        }
    };
    let tasks = y
        .as_mut_slice()
        .par_chunks_mut(height * cols)
        .zip(stats.par_chunks_mut(height * 2 * heads))
        .zip(x.as_slice().par_chunks(height * cols));
    tasks.enumerate().for_each(|(task, ((y, stats), x))| {
        let rows = y.chunks_mut(cols).zip(stats.chunks_mut(2 * heads)).zip(x.chunks(cols));
        dispatch!(cpu.arch, || {
            for (row, ((y, stats), x)) in rows.enumerate() {
                y.copy_from_slice(x);
                let angles = angles_of(&turn, task * height + row);
                let by_head = y.chunks_mut(width).zip(x.chunks(width)).zip(stats.chunks_mut(2));
                for ((y, x), stats) in by_head.take(heads) {
                    if let Some(norm) = norm {
                        stats.copy_from_slice(&normalise(x, norm, y));
                    }
                    rotate(y, angles, 1.0);
                }
            }
        });
    });
}

pub(super) fn backward(
    cpu: &Cpu,
    x: &Tensor,
    turn: HeadTurn<'_>,
    stats: Option<&Tensor>,
    dy: &Tensor,
    dx: &mut Tensor,
    weight_grads: NormGrads<'_>,
) {
    let (cols, height) = (x.cols(), task_rows(x.cols()));
    let HeadTurn { width, heads, norm, .. } = turn;
    let tasks = x.rows().div_ceil(height);
    // For each task: its sums for scale and offset, then two heads to work in.
    let mut partial = cpu.scratch(tasks * 4 * width);
    let chunks = partial
        .as_mut_slice()
        .par_chunks_mut(4 * width)
        .zip(dx.as_mut_slice().par_chunks_mut(height * cols))
        .zip(x.as_slice().par_chunks(height * cols))
        .zip(dy.as_slice().par_chunks(height * cols));
    chunks.enumerate().for_each(|(task, (((partial, dx), x), dy))| {
        partial[..2 * width].fill(0.0);
        let (sums, work) = partial.split_at_mut(2 * width);
        let (dgamma, dbeta) = sums.split_at_mut(width);
        let (normed, scaled) = work.split_at_mut(width);
        let mut turned = vec![0.0; width];
        let rows = dx.chunks_mut(cols).zip(x.chunks(cols)).zip(dy.chunks(cols));
        dispatch!(cpu.arch, || {
            for (row, ((dx, x), dy)) in rows.enumerate() {
                let row = task * height + row;
                dx.copy_from_slice(dy);
                let angles = angles_of(&turn, row);
                let by_head = dx.chunks_mut(width).zip(x.chunks(width)).take(heads);
                for (head, (dx, x)) in by_head.enumerate() {
                    rotate(dx, angles, -1.0);
                    if let (Some(norm), Some(stats)) = (norm, stats) {
                        let at = (row * heads + head) * 2;
                        let stats = &stats.as_slice()[at..at + 2];
                        turned.copy_from_slice(dx);
                        row_backward(
                            [stats[0], stats[1]],
                            (norm.kind, &norm.gamma.as_slice()[..width]),
                            (x, &turned),
                            (&mut *normed, &mut *scaled),
                            (&mut *dgamma, &mut *dbeta),
                            (dx, false),
                        );
                    }
                }
            }
        });
    });
    add_partials(partial.as_slice(), width, weight_grads);
}
