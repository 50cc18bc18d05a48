//! Attention: a block for some queries, or some keys, of one head of one sequence. FlashAttention-2 (Dao
//! 2023) on tensor cores, by `hopper.cu` where it fits and by `attention.cu` elsewhere;
//! `attention_reference.cu` is the plain version to read first.

use cudarc::driver::sys::CUtensorMap;

use super::fault::{fail, unknown};
use super::lists::IndexCopy;
use super::map::map;
use super::{Cuda, Drops, Program, at, launch, to};
use crate::kernels::{
    AttentionForward, AttentionGrads, AttentionKernels, AttentionShape, ExpectedShape,
};
use crate::value::Tensor;

/// Queries of a block, as the kernels have it.
const QUERIES: usize = 64;
/// Keys of a block in the backward pass, as the kernels have it; also those that one counter of dropout
/// decides upon.
const KEYS: usize = 128;
/// Keys that a block of queries meets at a time, as the kernels have it.
const TILE: usize = 64;
/// Queries that a block of keys meets at a time, and keys that a block of queries does where heads are
/// wide, as the kernels have it.
const SLICE: usize = 32;
/// Widths of heads that programs are compiled for; a head takes the next larger.
const HEADS: [usize; 4] = [16, 32, 64, 128];

/// As the kernels have it.
#[derive(Clone, Copy)]
#[repr(C)]
struct AttentionSizes {
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

impl AttentionSizes {
    fn of(cuda: &Cuda, shape: &AttentionShape, dim: usize) -> Self {
        if !shape.heads.are_plain() {
            unknown("causal masks, windows, shared or capped heads");
        }
        let width = dim / shape.heads.count;
        Self {
            queries: IndexCopy::of(&cuda.context, shape.queries.starts()).pointer(),
            keys: IndexCopy::of(&cuda.context, shape.keys.starts()).pointer(),
            heads: shape.heads.count as i32,
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

pub(super) fn expected(cuda: &Cuda, shape: ExpectedShape) -> Program {
    let ExpectedShape { dim, heads, length, .. } = shape;
    let groups = warpgroups_for(cuda, dim, heads, length);
    groups.map_or_else(|| program(dim / heads), |groups| Program::Hopper { groups })
}

/// Groups of keys that dropout is drawn for; none without dropout.
fn groups(shape: &AttentionShape) -> usize {
    if shape.dropout.threshold() == 0 { 0 } else { shape.keys.longest().div_ceil(KEYS) }
}

impl AttentionKernels for Cuda {
    fn attention_stats(&self, shape: &AttentionShape) -> usize {
        // For each head the dropout mask, 16 bytes for each group, and the logsumexp.
        shape.heads.count * (4 * groups(shape) + 1)
    }

    fn attention(
        &self,
        q: &Tensor,
        kv: &Tensor,
        shape: &AttentionShape,
        y: &mut Tensor,
        stats: &mut Tensor,
    ) {
        forward_with(self, hopper(self, shape, q.cols()), q, kv, shape, y, stats);
    }

    fn attention_grad(
        &self,
        forward: AttentionForward<'_>,
        shape: &AttentionShape,
        dy: &Tensor,
        grads: AttentionGrads<'_>,
    ) {
        let fits = shape.keys.longest() <= 64 * MOST_GROUPS;
        match hopper(self, shape, forward.q.cols()).filter(|_| fits) {
            Some(groups) => backward_hopper(self, groups, forward, shape, dy, grads),
            None => backward_mma(self, forward, shape, dy, grads),
        }
    }
}

/// Where in the statistics the logsumexps begin: after the dropout masks of all queries.
fn logsumexps(shape: &AttentionShape) -> u64 {
    (shape.queries.rows() * shape.heads.count * groups(shape) * 16) as u64
}

/// Bytes of shared memory for so many rows.
fn shared(head: usize, rows: usize) -> usize {
    rows * (head + 8) * 2
}

/// How many warpgroups share the keys on Hopper, 64 each; none where its kernels do not fit.
fn hopper(cuda: &Cuda, shape: &AttentionShape, dim: usize) -> Option<usize> {
    let some = shape.queries.rows() > 0 && shape.keys.rows() > 0;
    warpgroups_for(cuda, dim, shape.heads.count, shape.keys.longest()).filter(|_| some)
}

fn warpgroups_for(cuda: &Cuda, dim: usize, heads: usize, longest: usize) -> Option<usize> {
    let fits = cuda.context.capability == (9, 0) && dim == 64 * heads;
    let groups = [1, 2].into_iter().find(|groups| longest <= 64 * groups);
    fits.then_some(groups.unwrap_or(MOST_GROUPS))
}

/// The most warpgroups of a block on Hopper.
const MOST_GROUPS: usize = 4;
/// Bytes of a tile: 64 rows of a head of 64.
const TILE_BYTES: usize = 64 * 64 * 2;
/// Bytes that are given up so that shared memory begins at a multiple of 1024, and those of barriers
/// and of what comes next.
const SPARE: usize = 1024 + 128;

/// The forward pass on Hopper with so many warpgroups, or with the kernels for every card.
fn forward_with(
    cuda: &Cuda,
    hopper: Option<usize>,
    q: &Tensor,
    kv: &Tensor,
    shape: &AttentionShape,
    y: &mut Tensor,
    stats: &mut Tensor,
) {
    let (sizes, stats) = (AttentionSizes::of(cuda, shape, q.cols()), to(stats));
    let width = q.cols() / shape.heads.count;
    let program = hopper.map_or_else(|| program(width), |groups| Program::Hopper { groups });
    if sizes.groups > 0 {
        let words = logsumexps(shape) as usize / 4;
        launch!(
            cuda, program, "attention_dropout", [words.div_ceil(256), 1, 1], [256, 1, 1], 0;
            sizes, words as u32, stats,
        );
    }
    let grid =
        |rows| [shape.queries.longest().div_ceil(rows), shape.heads.count, shape.queries.count()];
    let Some(groups) = hopper else {
        return launch!(
            cuda, program, "attention", grid(QUERIES), [128, 1, 1],
            shared(head(width), QUERIES + 4 * TILE);
            at(q), at(kv), sizes, to(y), stats + logsumexps(shape), stats,
        );
    };
    let (aside, stages) = if groups > 1 { (2, 4) } else { (1, 2) };
    launch!(
        cuda, program, "attention_forward", grid(64 * aside), [128 * aside as u32, 1, 1],
        SPARE + (aside + 2 * stages) * TILE_BYTES;
        mapped(q), mapped(kv), sizes, to(y), stats + logsumexps(shape), stats,
    );
}

fn mapped(x: &Tensor) -> CUtensorMap {
    map(at(x), x.rows(), x.cols())
}

fn backward_hopper(
    cuda: &Cuda,
    groups: usize,
    forward: AttentionForward<'_>,
    shape: &AttentionShape,
    dy: &Tensor,
    grads: AttentionGrads<'_>,
) {
    let AttentionForward { q, kv, y, stats } = forward;
    let AttentionGrads { q: dq, kv: dkv } = grads;
    let sizes = AttentionSizes::of(cuda, shape, q.cols());
    let items = shape.heads.count * shape.queries.count();
    // Where a block fills a SM, each goes from item to item.
    let (blocks, buffers) =
        if groups == MOST_GROUPS { (items.min(cuda.context.sms as usize), 2) } else { (items, 1) };
    // Each warp leaves the sums of its columns, which biases want.
    let most = shape.queries.longest().div_ceil(64).max(1);
    let (dim, sequences) = (q.cols(), shape.queries.count());
    let of_queries = cuda.parts(sequences * most * 4, dim);
    let of_keys = cuda.parts(sequences * groups * 4, 2 * dim);
    let masks = 2 * 64 * (4 + 4 + groups.div_ceil(2) * 16);
    let shared = SPARE + (buffers * 2 * groups + groups + 5) * TILE_BYTES + masks;
    launch!(
        cuda, Program::Hopper { groups }, "attention_backward", [blocks, 1, 1],
        [128 * groups as u32, 1, 1], shared;
        mapped(q), mapped(kv), sizes, mapped(y), at(stats) + logsumexps(shape), at(stats), mapped(dy),
        to(dq), to(dkv), of_queries.pointer(), of_keys.pointer(), most as i32, items as i32,
    );
    dq.buffer_mut().block_mut().take_parts(of_queries);
    dkv.buffer_mut().block_mut().take_parts(of_keys);
}

fn backward_mma(
    cuda: &Cuda,
    forward: AttentionForward<'_>,
    shape: &AttentionShape,
    dy: &Tensor,
    grads: AttentionGrads<'_>,
) {
    let AttentionForward { q, kv, y, stats } = forward;
    let AttentionGrads { q: dq, kv: dkv } = grads;
    let width = q.cols() / shape.heads.count;
    let (head, program) = (head(width), program(width));
    let sizes = AttentionSizes::of(cuda, shape, q.cols());
    let lse = at(stats) + logsumexps(shape);
    let delta = cuda.scratch(q.rows() * shape.heads.count * 4);
    let grid =
        [shape.queries.longest().div_ceil(QUERIES), shape.heads.count, shape.queries.count()];
    let tile = if head > 64 { SLICE } else { TILE };
    launch!(
        cuda, program, "attention_queries", grid, [128, 1, 1], shared(head, 2 * QUERIES + 4 * tile);
        at(q), at(kv), sizes, at(y), lse, at(stats), at(dy), to(dq), delta.pointer,
    );
    // A warp for 16 keys, or for 32 where heads are narrow.
    let threads = if head > 64 { 256 } else { 128 };
    let grid = [shape.keys.longest().div_ceil(KEYS), shape.heads.count, shape.keys.count()];
    launch!(
        cuda, program, "attention_keys", grid, [threads, 1, 1], shared(head, 2 * KEYS + 4 * SLICE);
        at(q), at(kv), sizes, lse, at(stats), at(dy), delta.pointer, to(dkv),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{Kernels, MatrixPrecision};
    use crate::random::{Draws, Dropout, Key};
    use crate::spans::Spans;

    /// How far the fast kernels may be, which round the weights to bf16, relative to the norm.
    const TOLERANCE: f64 = 1e-2;

    fn noise(cuda: &Cuda, draws: &mut Draws, rows: usize, cols: usize) -> Tensor {
        let elements: Vec<f32> = (0..rows * cols).map(|_| draws.normal()).collect();
        let mut x = cuda.empty(rows, cols, MatrixPrecision::Working);
        x.write(&elements);
        x
    }

    fn assert_near(what: &str, ours: &Tensor, reference: &Tensor) {
        let (ours, reference) = (ours.to_vec(), reference.to_vec());
        let square = |x: f64| x * x;
        let pairs = ours.iter().zip(&reference);
        let far: f64 = pairs.map(|(&a, &b)| square(f64::from(a) - f64::from(b))).sum();
        let norm: f64 = reference.iter().map(|&b| square(f64::from(b))).sum();
        let distance = (far / norm.max(1e-4 * reference.len() as f64)).sqrt();
        assert!(distance < TOLERANCE, "{what} is {distance:.2e} from the reference");
    }

    /// Runs the plain kernels: the result, its statistics, and the gradients of queries and keys.
    fn reference(
        cuda: &Cuda,
        [q, kv, dy]: [&Tensor; 3],
        shape: &AttentionShape,
        stats: &mut Tensor,
    ) -> [Tensor; 3] {
        let like = |x: &Tensor| cuda.empty(x.rows(), x.cols(), MatrixPrecision::Working);
        let (mut y, mut dq, mut dkv) = (like(q), like(q), like(kv));
        let sizes = AttentionSizes::of(cuda, shape, q.cols());
        let (mask, lse) = (to(stats), to(stats) + logsumexps(shape));
        let program = Program::AttentionReference;
        let sequences = shape.queries.count();
        let queries = [shape.queries.longest(), shape.heads.count, sequences];
        let keys = [shape.keys.longest(), shape.heads.count, sequences];
        if sizes.groups > 0 {
            let words = logsumexps(shape) as usize / 4;
            launch!(
                cuda, program, "attention_dropout", [words.div_ceil(256), 1, 1], [256, 1, 1], 0;
                sizes, words as u32, mask,
            );
        }
        launch!(
            cuda, program, "attention_reference", queries, [32, 1, 1], 0;
            at(q), at(kv), sizes, to(&mut y), lse, mask,
        );
        launch!(
            cuda, program, "attention_reference_dq", queries, [32, 1, 1], 0;
            at(q), at(kv), sizes, at(&y), lse, mask, at(dy), to(&mut dq),
        );
        launch!(
            cuda, program, "attention_reference_dkv", keys, [32, 1, 1], 0;
            at(q), at(kv), sizes, at(&y), lse, mask, at(dy), to(&mut dkv),
        );
        [y, dq, dkv]
    }

    /// Both fast kernels against the plain one: heads of 64 by each of them where the card has both.
    #[test]
    fn fast_attention_is_what_the_reference_computes() {
        let cuda = match Cuda::new(0) {
            Ok(cuda) => cuda,
            Err(error) => {
                terms::tests::left_out(&error.to_string());
                assert!(std::env::var_os("ISOGLOSS_GPU").is_none(), "a GPU was demanded: {error}");
                return;
            }
        };
        let cases: [(usize, usize, &[usize], &[usize]); 8] = [
            (2, 64, &[64, 1, 33, 0], &[64, 2, 40, 3]),
            (3, 64, &[128, 7, 100], &[128, 7, 100]),
            (2, 64, &[256, 200], &[256, 200]),
            (2, 64, &[300], &[400]),
            (1, 64, &[5, 3], &[256, 130]),
            (2, 16, &[70, 3], &[70, 3]),
            (2, 24, &[63, 65], &[63, 65]),
            (1, 128, &[130, 2], &[130, 9]),
        ];
        let key = Key { seed: 5, step: 1, stream: 3 };
        for (heads, width, queries, keys) in cases {
            for rate in [0.0, 0.1] {
                let shape = AttentionShape {
                    heads: heads.into(),
                    queries: Spans::of_lengths(queries.iter().copied()),
                    keys: Spans::of_lengths(keys.iter().copied()),
                    dropout: Dropout { rate, key },
                };
                let (rows, dim) = (shape.queries.rows(), heads * width);
                let mut draws = Draws::new(Key { seed: 6, step: 0, stream: 0 });
                let q = noise(&cuda, &mut draws, rows, dim);
                let kv = noise(&cuda, &mut draws, shape.keys.rows(), 2 * dim);
                let dy = noise(&cuda, &mut draws, rows, dim);
                let empty = |x: &Tensor| cuda.empty(x.rows(), x.cols(), MatrixPrecision::Working);
                let statistics =
                    || cuda.empty(rows, cuda.attention_stats(&shape), MatrixPrecision::Full);
                let expected = reference(&cuda, [&q, &kv, &dy], &shape, &mut statistics());
                let mut kernels = vec![("mma.sync", None)];
                let groups = hopper(&cuda, &shape, dim);
                kernels.extend(groups.map(|groups| ("wgmma", Some(groups))));
                for (name, groups) in kernels {
                    let (mut y, mut dq, mut dkv) = (empty(&q), empty(&q), empty(&kv));
                    let mut saved = statistics();
                    forward_with(&cuda, groups, &q, &kv, &shape, &mut y, &mut saved);
                    let forward = AttentionForward { q: &q, kv: &kv, y: &y, stats: &saved };
                    let grads = AttentionGrads { q: &mut dq, kv: &mut dkv };
                    match groups.filter(|_| shape.keys.longest() <= 64 * MOST_GROUPS) {
                        Some(groups) => backward_hopper(&cuda, groups, forward, &shape, &dy, grads),
                        None => backward_mma(&cuda, forward, &shape, &dy, grads),
                    }
                    let case =
                        format!("{name}: {heads} x {width}, {queries:?} over {keys:?}, {rate}");
                    for (what, ours, expected) in [
                        ("y", &y, &expected[0]),
                        ("dq", &dq, &expected[1]),
                        ("dkv", &dkv, &expected[2]),
                    ] {
                        assert_near(&format!("{case}: {what}"), ours, expected);
                    }
                }
            }
        }
    }
}
