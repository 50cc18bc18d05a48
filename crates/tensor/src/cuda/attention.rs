//! Attention: a block for some queries, or some keys, of one head of one sequence.

use super::fault::fail;
use super::lists::Resident;
use super::{Cuda, Drops, Program, at, launch, to};
use crate::kernels::AttentionShape;
use crate::value::Tensor;

/// Rows of a tile, as the kernels have it.
const TILE: usize = 64;
/// Keys of a block on the way back, as the kernels have it.
const KEYS: usize = 128;
/// Widths of heads that programs are compiled for; a head takes the next larger.
const HEADS: [usize; 5] = [16, 32, 64, 96, 128];

/// What the way forward leaves for the way back.
pub(super) struct Saved<'a> {
    pub(super) q: &'a Tensor,
    pub(super) kv: &'a Tensor,
    pub(super) y: &'a Tensor,
    pub(super) lse: &'a Tensor,
}

/// As the kernels have it.
#[derive(Clone, Copy)]
#[repr(C)]
struct Shape {
    queries: u64,
    keys: u64,
    heads: i32,
    dim: i32,
    width: i32,
    scale: f32,
    drop: Drops,
}

impl Shape {
    fn of(cuda: &Cuda, shape: &AttentionShape, dim: usize) -> Self {
        let width = dim / shape.heads;
        Self {
            queries: Resident::of(&cuda.context, shape.queries.starts()).pointer(),
            keys: Resident::of(&cuda.context, shape.keys.starts()).pointer(),
            heads: shape.heads as i32,
            dim: dim as i32,
            width: width as i32,
            scale: 1.0 / (width as f32).sqrt(),
            drop: Drops::from(shape.dropout),
        }
    }
}

/// The width that a head of this shape is computed with.
fn head(shape: &AttentionShape, dim: usize) -> usize {
    let width = dim / shape.heads;
    HEADS.into_iter().find(|&head| width <= head).unwrap_or_else(|| {
        fail(format!("the GPU's attention takes heads of 128 columns at most, not {width}: raise encoder.heads"))
    })
}

/// Bytes of shared memory for so many rows.
fn shared(head: usize, rows: usize) -> usize {
    rows * (head + 8) * 2
}

pub(super) fn forward(
    cuda: &Cuda,
    q: &Tensor,
    kv: &Tensor,
    shape: &AttentionShape,
    y: &mut Tensor,
    lse: &mut Tensor,
) {
    let head = head(shape, q.cols());
    let grid = [shape.queries.longest().div_ceil(TILE), shape.heads, shape.queries.count()];
    launch!(
        cuda, Program::Attention { head }, "attention", grid, [128, 1, 1], shared(head, 5 * TILE);
        at(q), at(kv), Shape::of(cuda, shape, q.cols()), to(y), to(lse),
    );
}

pub(super) fn backward(
    cuda: &Cuda,
    saved: &Saved<'_>,
    shape: &AttentionShape,
    dy: &Tensor,
    dq: &mut Tensor,
    dkv: &mut Tensor,
) {
    let Saved { q, kv, y, lse } = *saved;
    let head = head(shape, q.cols());
    let program = Program::Attention { head };
    let sizes = Shape::of(cuda, shape, q.cols());
    let delta = cuda.scratch(lse.len() * 4);
    let grid = [shape.queries.longest().div_ceil(TILE), shape.heads, shape.queries.count()];
    launch!(
        cuda, program, "attention_queries", grid, [128, 1, 1], shared(head, 6 * TILE);
        at(q), at(kv), sizes, at(y), at(lse), at(dy), to(dq), delta.pointer,
    );
    let queries = if head > 64 { 32 } else { 64 };
    let grid = [shape.keys.longest().div_ceil(KEYS), shape.heads, shape.keys.count()];
    launch!(
        cuda, program, "attention_keys", grid, [256, 1, 1], shared(head, 2 * KEYS + 4 * queries);
        at(q), at(kv), sizes, at(lse), at(dy), delta.pointer, to(dkv),
    );
}
