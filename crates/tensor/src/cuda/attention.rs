//! Attention: a block for some queries, or some keys, of one head of one sequence.

use cudarc::driver::sys::CUtensorMap;

use super::fault::fail;
use super::lists::Resident;
use super::map::map;
use super::{Cuda, Drops, Program, at, launch, to};
use crate::kernels::AttentionShape;
use crate::value::Tensor;

/// Queries of a block, as the kernels have it.
const QUERIES: usize = 64;
/// Keys of a block on the way back, as the kernels have it; also those that one counter of dropout
/// decides upon.
const KEYS: usize = 128;
/// Keys that a block of queries meets at a time, as the kernels have it.
const TILE: usize = 64;
/// Queries that a block of keys meets at a time, and keys that a block of queries does where heads are
/// wide, as the kernels have it.
const SLICE: usize = 32;
/// Widths of heads that programs are compiled for; a head takes the next larger.
const HEADS: [usize; 4] = [16, 32, 64, 128];

/// What the way forward leaves for the way back.
pub(super) struct Saved<'a> {
    pub(super) q: &'a Tensor,
    pub(super) kv: &'a Tensor,
    pub(super) y: &'a Tensor,
    pub(super) notes: &'a Tensor,
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
    groups: i32,
    rows: i32,
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
            groups: groups(shape) as i32,
            rows: shape.queries.rows() as i32,
            scale: 1.0 / (width as f32).sqrt(),
            drop: Drops::from(shape.dropout),
        }
    }
}

/// The width that a head of so many columns is computed with.
fn head(width: usize) -> usize {
    HEADS.into_iter().find(|&head| width <= head).unwrap_or_else(|| {
        fail(format!("the GPU's attention takes heads of 128 columns at most, not {width}: raise encoder.heads"))
    })
}

fn program(width: usize) -> Program {
    Program::Attention { head: head(width), whole: width.is_multiple_of(8) }
}

/// The program that an encoder will need, of so many columns and heads, for sequences of that length.
pub(super) fn expected(cuda: &Cuda, dim: usize, heads: usize, length: usize) -> Program {
    let groups = hopper_groups(cuda, dim, heads, length);
    groups.map_or_else(|| program(dim / heads), |groups| Program::Hopper { groups })
}

/// Groups of keys that dropout is noted for; none without dropout.
fn groups(shape: &AttentionShape) -> usize {
    if shape.dropout.threshold() == 0 { 0 } else { shape.keys.longest().div_ceil(KEYS) }
}

/// Numbers noted for each query: for each head, which weights are kept (16 bytes for each group) and
/// the logarithm of the softmax's sum.
pub(super) fn notes(shape: &AttentionShape) -> usize {
    shape.heads * (4 * groups(shape) + 1)
}

/// Where in the notes the logarithms begin: after what is kept of all queries.
fn logarithms(shape: &AttentionShape) -> u64 {
    (shape.queries.rows() * shape.heads * groups(shape) * 16) as u64
}

/// Bytes of shared memory for so many rows.
fn shared(head: usize, rows: usize) -> usize {
    rows * (head + 8) * 2
}

/// How many groups of four warps have the keys on Hopper, 64 each; none where its kernels do not fit.
fn hopper(cuda: &Cuda, shape: &AttentionShape, dim: usize) -> Option<usize> {
    let some = shape.queries.rows() > 0 && shape.keys.rows() > 0;
    hopper_groups(cuda, dim, shape.heads, shape.keys.longest()).filter(|_| some)
}

fn hopper_groups(cuda: &Cuda, dim: usize, heads: usize, longest: usize) -> Option<usize> {
    let fits = cuda.context.capability == (9, 0) && dim == 64 * heads;
    let groups = [1, 2].into_iter().find(|groups| longest <= 64 * groups);
    fits.then_some(groups.unwrap_or(MOST_GROUPS))
}

/// The most groups of a block on Hopper.
const MOST_GROUPS: usize = 4;
/// Bytes of 64 rows of a head of 64.
const PIECE: usize = 64 * 64 * 2;
/// Bytes that are given up so that shared memory begins at a multiple of 1024, and those of barriers
/// and of what comes next.
const SPARE: usize = 1024 + 128;

pub(super) fn forward(
    cuda: &Cuda,
    q: &Tensor,
    kv: &Tensor,
    shape: &AttentionShape,
    y: &mut Tensor,
    notes: &mut Tensor,
) {
    let (sizes, notes) = (Shape::of(cuda, shape, q.cols()), to(notes));
    let hopper = hopper(cuda, shape, q.cols());
    let width = q.cols() / shape.heads;
    let program = hopper.map_or_else(|| program(width), |groups| Program::Hopper { groups });
    if sizes.groups > 0 {
        let words = logarithms(shape) as usize / 4;
        launch!(
            cuda, program, "attention_dropout", [words.div_ceil(256), 1, 1], [256, 1, 1], 0;
            sizes, words as u32, notes,
        );
    }
    let grid = |rows| [shape.queries.longest().div_ceil(rows), shape.heads, shape.queries.count()];
    let Some(groups) = hopper else {
        return launch!(
            cuda, program, "attention", grid(QUERIES), [128, 1, 1],
            shared(head(width), QUERIES + 4 * TILE);
            at(q), at(kv), sizes, to(y), notes + logarithms(shape), notes,
        );
    };
    let (aside, stages) = if groups > 1 { (2, 4) } else { (1, 2) };
    launch!(
        cuda, program, "attention_forward", grid(64 * aside), [128 * aside as u32, 1, 1],
        SPARE + (aside + 2 * stages) * PIECE;
        mapped(q), mapped(kv), sizes, to(y), notes + logarithms(shape), notes,
    );
}

fn mapped(x: &Tensor) -> CUtensorMap {
    map(at(x), x.rows(), x.cols())
}

pub(super) fn backward(
    cuda: &Cuda,
    saved: &Saved<'_>,
    shape: &AttentionShape,
    dy: &Tensor,
    dq: &mut Tensor,
    dkv: &mut Tensor,
) {
    let fits = shape.keys.longest() <= 64 * MOST_GROUPS;
    match hopper(cuda, shape, saved.q.cols()).filter(|_| fits) {
        Some(groups) => backward_hopper(cuda, groups, saved, shape, dy, dq, dkv),
        None => backward_plain(cuda, saved, shape, dy, dq, dkv),
    }
}

fn backward_hopper(
    cuda: &Cuda,
    groups: usize,
    saved: &Saved<'_>,
    shape: &AttentionShape,
    dy: &Tensor,
    dq: &mut Tensor,
    dkv: &mut Tensor,
) {
    let Saved { q, kv, y, notes } = *saved;
    let sizes = Shape::of(cuda, shape, q.cols());
    let items = shape.heads * shape.queries.count();
    // Where a block fills a processor, each goes from item to item.
    let (blocks, buffers) = if groups == MOST_GROUPS {
        (items.min(cuda.context.processors as usize), 2)
    } else {
        (items, 1)
    };
    // Each warp leaves the sums of its columns, which biases want.
    let most = shape.queries.longest().div_ceil(64).max(1);
    let (dim, sequences) = (q.cols(), shape.queries.count());
    let of_queries = cuda.parts(sequences * most * 4, dim);
    let of_keys = cuda.parts(sequences * groups * 4, 2 * dim);
    let noted = 2 * 64 * (4 + 4 + groups.div_ceil(2) * 16);
    let shared = SPARE + (buffers * 2 * groups + groups + 5) * PIECE + noted;
    launch!(
        cuda, Program::Hopper { groups }, "attention_backward", [blocks, 1, 1],
        [128 * groups as u32, 1, 1], shared;
        mapped(q), mapped(kv), sizes, mapped(y), at(notes) + logarithms(shape), at(notes), mapped(dy),
        to(dq), to(dkv), of_queries.pointer(), of_keys.pointer(), most as i32, items as i32,
    );
    dq.buffer_mut().block_mut().take_parts(of_queries);
    dkv.buffer_mut().block_mut().take_parts(of_keys);
}

fn backward_plain(
    cuda: &Cuda,
    saved: &Saved<'_>,
    shape: &AttentionShape,
    dy: &Tensor,
    dq: &mut Tensor,
    dkv: &mut Tensor,
) {
    let Saved { q, kv, y, notes } = *saved;
    let width = q.cols() / shape.heads;
    let (head, program) = (head(width), program(width));
    let sizes = Shape::of(cuda, shape, q.cols());
    let lse = at(notes) + logarithms(shape);
    let delta = cuda.scratch(q.rows() * shape.heads * 4);
    let grid = [shape.queries.longest().div_ceil(QUERIES), shape.heads, shape.queries.count()];
    let tile = if head > 64 { SLICE } else { TILE };
    launch!(
        cuda, program, "attention_queries", grid, [128, 1, 1], shared(head, 2 * QUERIES + 4 * tile);
        at(q), at(kv), sizes, at(y), lse, at(notes), at(dy), to(dq), delta.pointer,
    );
    // A warp for 16 keys, or for 32 where heads are narrow.
    let threads = if head > 64 { 256 } else { 128 };
    let grid = [shape.keys.longest().div_ceil(KEYS), shape.heads, shape.keys.count()];
    launch!(
        cuda, program, "attention_keys", grid, [threads, 1, 1], shared(head, 2 * KEYS + 4 * SLICE);
        at(q), at(kv), sizes, lse, at(notes), at(dy), delta.pointer, to(dkv),
    );
}
