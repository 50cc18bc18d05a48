// What task heads need: the softmax over a few classes, and the scores of pairs of rows (the biaffine forms
// of Dozat and Manning 2017).
//
// Everything between operations is bf16, sums are f32 and taken in a fixed order. Heads are small beside the
// encoder, so matmuls here are plain tiles of fused multiply-adds, without tensor cores.

// Softmax over the first widths[row] columns; a warp for each row. losses[row] = the loss, and 1 where
// the target had the highest score. Where `dscores` is given it becomes
// weight * (probability - one at the target), and 0 beyond the width.
extern "C" __global__ void class_entropy(const bf16 *scores, const u32 *widths, const u32 *targets, int rows, int cols,
                                         float weight, float *losses, bf16 *dscores) {
    int lane = threadIdx.x % 32, row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (row >= rows) return;
    const float LOG2E = 1.4426950408889634f;
    const bf16 *own = scores + (u64)row * cols;
    int width = widths[row], target = targets[row];
    float top = -__int_as_float(0x7f800000), sum = 0.0f;
    for (int col = lane; col < width; col += 32) top = fmaxf(top, wide(own[col]));
    top = warp_max(top);
    // The maximum passes over a NaN; the sum does not.
    for (int col = lane; col < width; col += 32) sum += fast_exp2((wide(own[col]) - top) * LOG2E);
    sum = warp_sum(sum);
    float chosen = wide(own[target]);
    if (lane == 0) {
        losses[2 * row] = logf(sum) + top - chosen;
        losses[2 * row + 1] = chosen >= top && sum == sum ? 1.0f : 0.0f;
    }
    if (!dscores) return;
    float factor = weight / sum;
    for (int col = lane; col < cols; col += 32) {
        float grad = 0.0f;
        if (col < width) {
            grad = fast_exp2((wide(own[col]) - top) * LOG2E) * factor - (col == target ? weight : 0.0f);
        }
        dscores[(u64)row * cols + col] = narrow(grad);
    }
}

// y[i][c] = x[i][c * dim ..] . z[i]; a warp for each of the `count` results.
template <int V> INLINE void block_dots(const bf16 *x, const bf16 *z, u64 count, int blocks, int dim, bf16 *y) {
    int lane = threadIdx.x % 32;
    u64 at = (u64)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (at >= count) return;
    const bf16 *left = x + at * dim, *right = z + at / blocks * dim;
    float sum = 0.0f;
    for (int col = lane * V; col < dim; col += 32 * V) {
        float a[V], b[V];
        load<V>(left + col, a);
        load<V>(right + col, b);
#pragma unroll
        for (int i = 0; i < V; i++) sum += a[i] * b[i];
    }
    sum = warp_sum(sum);
    if (lane == 0) y[at] = narrow(sum);
}

// The backward pass, a block of eight warps for each row: dx[i][c * dim ..] = dy[i][c] * z[i] and
// dz[i] = the sum over c of dy[i][c] * x[i][c * dim ..]. Warps take the c in turn.
template <int V>
INLINE void block_dots_grad(const bf16 *x, const bf16 *z, const bf16 *dy, int blocks, int dim, bf16 *dx, bf16 *dz) {
    __shared__ float sums[8][32 * V];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u64 row = blockIdx.x;
    for (int start = 0; start < dim; start += 32 * V) {
        int col = start + lane * V;
        float sum[V] = {};
        if (col < dim) {
            float own[V];
            load<V>(z + row * dim + col, own);
            for (int c = warp; c < blocks; c += 8) {
                u64 at = (row * blocks + c) * dim + col;
                float grad = wide(dy[row * blocks + c]), each[V], out[V];
                load<V>(x + at, each);
#pragma unroll
                for (int i = 0; i < V; i++) {
                    sum[i] += grad * each[i];
                    out[i] = grad * own[i];
                }
                store<V>(dx + at, out);
            }
        }
#pragma unroll
        for (int i = 0; i < V; i++) sums[warp][lane * V + i] = sum[i];
        __syncthreads();
        for (int i = threadIdx.x; i < 32 * V && start + i < dim; i += blockDim.x) {
            float total = 0.0f;
            for (int w = 0; w < 8; w++) total += sums[w][i];
            dz[row * dim + start + i] = narrow(total);
        }
        __syncthreads();
    }
}
#define BLOCK_DOTS(V)                                                                                            \
    extern "C" __global__ void block_dots_##V(const bf16 *x, const bf16 *z, u64 count, int blocks, int dim,      \
                                              bf16 *y) {                                                         \
        block_dots<V>(x, z, count, blocks, dim, y);                                                              \
    }                                                                                                            \
    extern "C" __global__ void block_dots_grad_##V(const bf16 *x, const bf16 *z, const bf16 *dy, int blocks,     \
                                                   int dim, bf16 *dx, bf16 *dz) {                                \
        block_dots_grad<V>(x, z, dy, blocks, dim, dx, dz);                                                       \
    }
BLOCK_DOTS(8)
BLOCK_DOTS(1)

// A block of 256 threads has SIDE x SIDE results, and sums over DEEP at a time.
static constexpr int SIDE = 64, DEEP = 32;
// One operand, DEEP along the sum for SIDE rows or columns. One more column keeps banks apart.
typedef float Tile[DEEP][SIDE + 1];

// An operand of a matmul from this block's first row or column on, of which `count` are left. What lies one
// after another in memory runs along the sum where INNER, else along the rows or columns. V is 8 only
// where that length and `pitch` are multiples of it.
template <int V, bool INNER> struct Part {
    const bf16 *from;
    int pitch, count;

    // Columns `begin` to `begin` + DEEP of the `depth` along the sum; 0 where there is nothing.
    INLINE void fetch(int begin, int depth, Tile &tile) const {
        constexpr int LINES = INNER ? SIDE : DEEP, EACH = (INNER ? DEEP : SIDE) / V;
        const bf16 *start = from + (INNER ? (u64)begin : (u64)begin * pitch);
        int lines = INNER ? count : depth - begin, length = INNER ? depth - begin : count;
#pragma unroll
        for (int n = threadIdx.x; n < LINES * EACH; n += 256) {
            int line = n / EACH, at = n % EACH * V;
            float each[V] = {};
            if (line < lines && at < length) load<V>(start + (u64)line * pitch + at, each);
#pragma unroll
            for (int i = 0; i < V; i++) (INNER ? tile[at + i][line] : tile[line][at + i]) = each[i];
        }
    }
};

// out = left . right. `out` lies at the block's first result; of its columns `right.count` have a sum,
// and those after it, up to `cols`, are 0.
template <class Left, class Right>
INLINE void matmul(const Left &left, const Right &right, int depth, bf16 *out, int pitch, int cols) {
    __shared__ Tile lefts, rights;
    int down = threadIdx.x / 16, across = threadIdx.x % 16;
    float sum[4][4] = {};
    for (int begin = 0; begin < depth; begin += DEEP) {
        left.fetch(begin, depth, lefts);
        right.fetch(begin, depth, rights);
        __syncthreads();
#pragma unroll 8
        for (int p = 0; p < DEEP; p++) {
            float a[4], b[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                a[i] = lefts[p][down + 16 * i];
                b[i] = rights[p][across + 16 * i];
            }
#pragma unroll
            for (int i = 0; i < 4; i++) {
#pragma unroll
                for (int j = 0; j < 4; j++) sum[i][j] += a[i] * b[j];
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            int row = down + 16 * i, col = across + 16 * j;
            if (row >= left.count || col >= cols) continue;
            // Not the sum beyond: 0 times NaN would be NaN.
            out[(u64)row * pitch + col] = narrow(col < right.count ? sum[i][j] : 0.0f);
        }
    }
}

// The sequence of this block: its first query and key, and how many of each it has.
struct Sequence {
    u64 query, key;
    int queries, keys;
    INLINE Sequence(const u32 *query_starts, const u32 *key_starts) {
        query = query_starts[blockIdx.x];
        key = key_starts[blockIdx.x];
        queries = query_starts[blockIdx.x + 1] - query_starts[blockIdx.x];
        keys = key_starts[blockIdx.x + 1] - key_starts[blockIdx.x];
    }
};

// Scores of queries (queries x dim) against keys (keys x dim) of their sequence, and the backward passes. Blocks
// are sequences by rows by columns of the result; `cols` is the width of the scores.

// y[i][j] = q[i] . k[first + j], and 0 beyond the sequence's keys.
template <int V>
INLINE void pair_scores(const bf16 *q, const bf16 *k, const u32 *queries, const u32 *keys, int dim, int cols, bf16 *y) {
    Sequence own(queries, keys);
    int row = blockIdx.y * SIDE, col = blockIdx.z * SIDE;
    if (row >= own.queries) return;
    Part<V, true> left = {q + (own.query + row) * dim, dim, own.queries - row};
    Part<V, true> right = {k + (own.key + col) * dim, dim, own.keys - col};
    int depth = col < own.keys ? dim : 0;
    matmul(left, right, depth, y + (own.query + row) * cols + col, cols, cols - col);
}

// dq[i] = the sum over the keys of dy[i][j] * k[first + j].
template <int V>
INLINE void pair_scores_dq(const bf16 *dy, const bf16 *k, const u32 *queries, const u32 *keys, int dim, int cols, bf16 *dq) {
    Sequence own(queries, keys);
    int row = blockIdx.y * SIDE, col = blockIdx.z * SIDE;
    if (row >= own.queries) return;
    Part<1, true> left = {dy + (own.query + row) * cols, cols, own.queries - row};
    Part<V, false> right = {k + own.key * dim + col, dim, dim - col};
    matmul(left, right, own.keys, dq + (own.query + row) * dim + col, dim, dim - col);
}

// dk[first + j] = the sum over the queries of dy[i][j] * q[i].
template <int V>
INLINE void pair_scores_dk(const bf16 *dy, const bf16 *q, const u32 *queries, const u32 *keys, int dim, int cols, bf16 *dk) {
    Sequence own(queries, keys);
    int row = blockIdx.y * SIDE, col = blockIdx.z * SIDE;
    if (row >= own.keys) return;
    Part<1, false> left = {dy + own.query * cols + row, cols, own.keys - row};
    Part<V, false> right = {q + own.query * dim + col, dim, dim - col};
    matmul(left, right, own.queries, dk + (own.key + row) * dim + col, dim, dim - col);
}
#define PAIRS(NAME, V)                                                                                           \
    extern "C" __global__ void __launch_bounds__(256)                                                            \
        NAME##_##V(const bf16 *left, const bf16 *right, const u32 *queries, const u32 *keys, int dim, int cols,  \
                   bf16 *out) {                                                                                  \
        NAME<V>(left, right, queries, keys, dim, cols, out);                                                     \
    }
PAIRS(pair_scores, 8)
PAIRS(pair_scores, 1)
PAIRS(pair_scores_dq, 8)
PAIRS(pair_scores_dq, 1)
PAIRS(pair_scores_dk, 8)
PAIRS(pair_scores_dk, 1)
