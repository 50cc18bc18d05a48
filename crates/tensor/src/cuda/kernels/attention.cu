// Attention within each sequence, for heads of at most HEAD columns (a multiple of 16).
//
// Scores never reach memory: a block of queries meets the keys a tile at a time, and the softmax is
// corrected as higher scores appear. The way back computes the weights again from the logarithm of
// each row's sum, once for the gradient of the queries and once for that of keys and values, so that
// no sum depends on the order in which blocks finish.
//
// Products are m16n8k16 of the tensor cores. Of a 16 x 8 result, lane l has columns 2 * (l % 4) and
// the next, in rows l / 4 and l / 4 + 8.

static constexpr int STRIDE = HEAD + 8; // of a row in shared memory: eight rows then touch all banks
static constexpr int TILE = 64;         // rows of a tile
static constexpr int QUERIES = HEAD > 64 ? 32 : 64; // queries that keys meet at a time on the way back
static constexpr int KEYS = 128;        // keys of a block on the way back: one counter's eight planes
static constexpr float LOG2E = 1.4426950408889634f;

struct Shape {
    const u32 *queries, *keys; // where each sequence begins
    int heads, dim, width;
    float scale;
    Dropout drop;
};

INLINE float infinity() { return __int_as_float(0x7f800000); }

INLINE u32 address(const void *shared) { return (u32)__cvta_generic_to_shared(shared); }

INLINE void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int PENDING> INLINE void wait() { asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory"); }

// Brings ROWS rows of one head into shared memory; rows and columns that are not there become 0.
template <int ROWS> INLINE void fetch(bf16 *tile, const bf16 *from, int pitch, int valid, int width) {
    if (width % 8 == 0) {
        for (int i = threadIdx.x; i < ROWS * HEAD / 8; i += blockDim.x) {
            int row = i / (HEAD / 8), col = i % (HEAD / 8) * 8;
            bool there = row < valid && col < width;
            const bf16 *source = there ? from + (u64)row * pitch + col : from;
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address(tile + row * STRIDE + col)),
                         "l"(source), "r"(there ? 16 : 0)
                         : "memory");
        }
    } else {
        for (int i = threadIdx.x; i < ROWS * HEAD; i += blockDim.x) {
            int row = i / HEAD, col = i % HEAD;
            tile[row * STRIDE + col] = row < valid && col < width ? from[(u64)row * pitch + col] : (bf16)0;
        }
    }
}

INLINE void matrices(u32 *to, const bf16 *from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address(from))
                 : "memory");
}
INLINE void matrices_turned(u32 *to, const bf16 *from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address(from))
                 : "memory");
}
INLINE void multiply(float *sum, const u32 *a, u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// sum = the warp's 16 rows of `a` times the COLS rows of `b`, turned.
template <int COLS> INLINE void across(float (*sum)[4], const bf16 *a, const bf16 *b) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < COLS / 8; n++) sum[n][0] = sum[n][1] = sum[n][2] = sum[n][3] = 0.0f;
#pragma unroll
    for (int k = 0; k < HEAD; k += 16) {
        u32 rows[4];
        matrices(rows, a + lane % 16 * STRIDE + k + lane / 16 * 8);
#pragma unroll
        for (int n = 0; n < COLS / 16; n++) {
            u32 cols[4];
            matrices(cols, b + (n * 16 + lane % 8 + lane / 16 * 8) * STRIDE + k + lane / 8 % 2 * 8);
            multiply(sum[2 * n], rows, cols[0], cols[1]);
            multiply(sum[2 * n + 1], rows, cols[2], cols[3]);
        }
    }
}

// sum += weights (16 x ROWS, as `across` leaves them) times the ROWS rows of `b`.
template <int ROWS> INLINE void along(float (*sum)[4], float (*weights)[4], const bf16 *b) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < ROWS / 16; k++) {
        float *left = weights[2 * k], *right = weights[2 * k + 1];
        u32 rows[4] = {pack(left[0], left[1]), pack(left[2], left[3]), pack(right[0], right[1]), pack(right[2], right[3])};
#pragma unroll
        for (int n = 0; n < HEAD / 16; n++) {
            u32 cols[4];
            matrices_turned(cols, b + (k * 16 + lane % 16) * STRIDE + n * 16 + lane / 16 * 8);
            multiply(sum[2 * n], rows, cols[0], cols[1]);
            multiply(sum[2 * n + 1], rows, cols[2], cols[3]);
        }
    }
}

// Writes two rows of a result, each times its factor, where they are there.
INLINE void put(bf16 *to, int pitch, int width, float (*sum)[4], const float *factors, int row, int rows) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int at = row + half * 8;
        if (at >= rows) continue;
        bf16 *own = to + (u64)at * pitch;
#pragma unroll
        for (int n = 0; n < HEAD / 8; n++) {
            int col = n * 8 + lane % 4 * 2;
            float a = sum[n][2 * half] * factors[half], b = sum[n][2 * half + 1] * factors[half];
            if (width % 2 == 0) {
                if (col < width) *reinterpret_cast<u32 *>(own + col) = pack(a, b);
            } else {
                if (col < width) own[col] = narrow(a);
                if (col + 1 < width) own[col + 1] = narrow(b);
            }
        }
    }
}

// Which of a lane's 32 keys among 128 are kept for a query: bit 2 * n + e for column 8 * n + 2 * (lane % 4) + e.
INLINE u32 kept_keys(const Dropout &drop, u32 group, u32 weight_row) {
    u32 kept = 0, lane = threadIdx.x % 32;
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        u32 planes = kept_planes(drop, group * 16 + i / 2 * 8 + lane % 4 * 2 + i % 2, weight_row);
#pragma unroll
        for (u32 plane = 0; plane < 8; plane++) kept |= (planes >> plane & 1) << (plane * 4 + i);
    }
    return kept;
}

// A block: 64 queries of one head of one sequence, 16 for each of four warps.
extern "C" __global__ void __launch_bounds__(128)
    attention(const bf16 *q, const bf16 *kv, Shape shape, bf16 *y, float *lse) {
    int head = blockIdx.y, sequence = blockIdx.z;
    int first = shape.queries[sequence] + blockIdx.x * TILE, rows = (int)shape.queries[sequence + 1] - first;
    if (rows <= 0) return;
    int from = shape.keys[sequence], count = (int)shape.keys[sequence + 1] - from;
    int dim = shape.dim, width = shape.width, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const bf16 *keys = kv + (u64)from * 2 * dim + head * width, *values = keys + dim;

    extern __shared__ __align__(16) bf16 shared[];
    bf16 *queries = shared, *tiles = shared + TILE * STRIDE; // then keys and values, twice
    fetch<TILE>(queries, q + (u64)first * dim + head * width, dim, rows, width);
    fetch<TILE>(tiles, keys, 2 * dim, count, width);
    fetch<TILE>(tiles + TILE * STRIDE, values, 2 * dim, count, width);
    commit();

    float out[HEAD / 8][4] = {}, top[2] = {-infinity(), -infinity()}, sum[2] = {};
    u32 kept[2] = {ALL, ALL};
    float exponent = shape.scale * LOG2E;
    int row = warp * 16 + lane / 4, blocks = (count + TILE - 1) / TILE;
    for (int block = 0; block < blocks; block++) {
        bf16 *tile = tiles + block % 2 * 2 * TILE * STRIDE;
        if (block + 1 < blocks) {
            bf16 *next = tiles + (block + 1) % 2 * 2 * TILE * STRIDE;
            int at = (block + 1) * TILE;
            fetch<TILE>(next, keys + (u64)at * 2 * dim, 2 * dim, count - at, width);
            fetch<TILE>(next + TILE * STRIDE, values + (u64)at * 2 * dim, 2 * dim, count - at, width);
            commit();
            wait<1>();
        } else {
            wait<0>();
        }
        __syncthreads();
        float scores[TILE / 8][4];
        across<TILE>(scores, queries + warp * 16 * STRIDE, tile);
        if (shape.drop.threshold && block % 2 == 0) {
            for (int half = 0; half < 2; half++)
                kept[half] = kept_keys(shape.drop, block / 2, (first + row + half * 8) * shape.heads + head);
        }
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float best = top[half];
#pragma unroll
            for (int n = 0; n < TILE / 8; n++) {
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    float *score = &scores[n][2 * half + e];
                    if (block * TILE + n * 8 + lane % 4 * 2 + e >= count) *score = -infinity();
                    best = fmaxf(best, *score);
                }
            }
            best = fmaxf(best, __shfl_xor_sync(ALL, best, 1));
            best = fmaxf(best, __shfl_xor_sync(ALL, best, 2));
            float shrink = exp2f((top[half] - best) * exponent);
            top[half] = best;
            sum[half] *= shrink;
            u32 keep = kept[half] >> (block % 2 * 16);
#pragma unroll
            for (int n = 0; n < TILE / 8; n++) {
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    float *score = &scores[n][2 * half + e];
                    float weight = exp2f((*score - best) * exponent);
                    sum[half] += weight;
                    *score = keep >> (2 * n + e) & 1 ? weight : 0.0f;
                }
            }
#pragma unroll
            for (int n = 0; n < HEAD / 8; n++) {
                out[n][2 * half] *= shrink;
                out[n][2 * half + 1] *= shrink;
            }
        }
        along<TILE>(out, scores, tile + TILE * STRIDE);
        __syncthreads();
    }
    float factors[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        sum[half] += __shfl_xor_sync(ALL, sum[half], 1);
        sum[half] += __shfl_xor_sync(ALL, sum[half], 2);
        factors[half] = shape.drop.scale / sum[half];
        int at = row + half * 8;
        if (lane % 4 == 0 && at < rows)
            lse[(u64)(first + at) * shape.heads + head] = top[half] * shape.scale + logf(sum[half]);
    }
    put(y + (u64)first * dim + head * width, dim, width, out, factors, row, rows);
}

// The gradient of the queries, and `delta`: each query's output times its gradient.
extern "C" __global__ void __launch_bounds__(128)
    attention_queries(const bf16 *q, const bf16 *kv, Shape shape, const bf16 *y, const float *lse, const bf16 *dy,
                      bf16 *dq, float *delta) {
    int head = blockIdx.y, sequence = blockIdx.z;
    int first = shape.queries[sequence] + blockIdx.x * TILE, rows = (int)shape.queries[sequence + 1] - first;
    if (rows <= 0) return;
    int from = shape.keys[sequence], count = (int)shape.keys[sequence + 1] - from;
    int dim = shape.dim, width = shape.width, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const bf16 *keys = kv + (u64)from * 2 * dim + head * width, *values = keys + dim;
    u64 start = (u64)first * dim + head * width;

    extern __shared__ __align__(16) bf16 shared[];
    bf16 *queries = shared, *slopes = queries + TILE * STRIDE, *tiles = slopes + TILE * STRIDE;
    __shared__ float deltas[TILE];
    fetch<TILE>(queries, q + start, dim, rows, width);
    fetch<TILE>(slopes, dy + start, dim, rows, width);
    fetch<TILE>(tiles, keys, 2 * dim, count, width);
    fetch<TILE>(tiles + TILE * STRIDE, values, 2 * dim, count, width);
    commit();
    {
        // Two threads for each query.
        int at = threadIdx.x / 2;
        float total = 0.0f;
        if (at < rows) {
            const bf16 *a = y + start + (u64)at * dim, *b = dy + start + (u64)at * dim;
            if (width % 8 == 0) {
                for (int col = threadIdx.x % 2 * 8; col < width; col += 16) {
                    float left[8], right[8];
                    load<8>(a + col, left);
                    load<8>(b + col, right);
#pragma unroll
                    for (int i = 0; i < 8; i++) total += left[i] * right[i];
                }
            } else {
                for (int col = threadIdx.x % 2; col < width; col += 2) total += wide(a[col]) * wide(b[col]);
            }
        }
        total += __shfl_xor_sync(ALL, total, 1);
        if (threadIdx.x % 2 == 0) {
            deltas[at] = total;
            if (at < rows) delta[(u64)(first + at) * shape.heads + head] = total;
        }
    }
    int row = warp * 16 + lane / 4;
    float base[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int at = row + half * 8;
        base[half] = at < rows ? lse[(u64)(first + at) * shape.heads + head] * LOG2E : infinity();
    }
    float sum[HEAD / 8][4] = {};
    u32 kept[2] = {ALL, ALL};
    float exponent = shape.scale * LOG2E;
    int blocks = (count + TILE - 1) / TILE;
    for (int block = 0; block < blocks; block++) {
        bf16 *tile = tiles + block % 2 * 2 * TILE * STRIDE;
        if (block + 1 < blocks) {
            bf16 *next = tiles + (block + 1) % 2 * 2 * TILE * STRIDE;
            int at = (block + 1) * TILE;
            fetch<TILE>(next, keys + (u64)at * 2 * dim, 2 * dim, count - at, width);
            fetch<TILE>(next + TILE * STRIDE, values + (u64)at * 2 * dim, 2 * dim, count - at, width);
            commit();
            wait<1>();
        } else {
            wait<0>();
        }
        __syncthreads();
        float weights[TILE / 8][4], grads[TILE / 8][4];
        across<TILE>(weights, queries + warp * 16 * STRIDE, tile);
        across<TILE>(grads, slopes + warp * 16 * STRIDE, tile + TILE * STRIDE);
        if (shape.drop.threshold && block % 2 == 0) {
            for (int half = 0; half < 2; half++)
                kept[half] = kept_keys(shape.drop, block / 2, (first + row + half * 8) * shape.heads + head);
        }
#pragma unroll
        for (int half = 0; half < 2; half++) {
            u32 keep = kept[half] >> (block % 2 * 16);
            float mean = deltas[row + half * 8];
#pragma unroll
            for (int n = 0; n < TILE / 8; n++) {
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    float weight = exp2f(weights[n][2 * half + e] * exponent - base[half]);
                    if (block * TILE + n * 8 + lane % 4 * 2 + e >= count) weight = 0.0f;
                    float grad = keep >> (2 * n + e) & 1 ? grads[n][2 * half + e] * shape.drop.scale : 0.0f;
                    grads[n][2 * half + e] = weight * (grad - mean);
                }
            }
        }
        along<TILE>(sum, grads, tile);
        __syncthreads();
    }
    float factors[2] = {shape.scale, shape.scale};
    put(dq + start, dim, width, sum, factors, row, rows);
}

// The gradients of keys and values. A block: 128 keys of one head of one sequence, 16 for each of
// eight warps; queries come by, and weights are computed with keys running down.
extern "C" __global__ void __launch_bounds__(256)
    attention_keys(const bf16 *q, const bf16 *kv, Shape shape, const float *lse, const bf16 *dy, const float *delta,
                   bf16 *dkv) {
    int head = blockIdx.y, sequence = blockIdx.z;
    int from = shape.keys[sequence] + blockIdx.x * KEYS, there = (int)shape.keys[sequence + 1] - from;
    if (there <= 0) return;
    int first = shape.queries[sequence], rows = (int)shape.queries[sequence + 1] - first;
    int dim = shape.dim, width = shape.width, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u64 start = (u64)from * 2 * dim + head * width;
    const bf16 *queries = q + (u64)first * dim + head * width, *slopes = dy + (u64)first * dim + head * width;

    extern __shared__ __align__(16) bf16 shared[];
    bf16 *keys = shared, *values = keys + KEYS * STRIDE, *tiles = values + KEYS * STRIDE;
    __shared__ float bases[QUERIES], deltas[QUERIES];
    __shared__ u8 planes[QUERIES][16];
    fetch<KEYS>(keys, kv + start, 2 * dim, there, width);
    fetch<KEYS>(values, kv + start + dim, 2 * dim, there, width);
    fetch<QUERIES>(tiles, queries, dim, rows, width);
    fetch<QUERIES>(tiles + QUERIES * STRIDE, slopes, dim, rows, width);
    commit();

    float dk[HEAD / 8][4] = {}, dv[HEAD / 8][4] = {};
    float exponent = shape.scale * LOG2E;
    int blocks = (rows + QUERIES - 1) / QUERIES;
    for (int block = 0; block < blocks; block++) {
        bf16 *tile = tiles + block % 2 * 2 * QUERIES * STRIDE;
        if (block + 1 < blocks) {
            bf16 *next = tiles + (block + 1) % 2 * 2 * QUERIES * STRIDE;
            int at = (block + 1) * QUERIES;
            fetch<QUERIES>(next, queries + (u64)at * dim, dim, rows - at, width);
            fetch<QUERIES>(next + QUERIES * STRIDE, slopes + (u64)at * dim, dim, rows - at, width);
            commit();
        }
        for (int i = threadIdx.x; i < QUERIES; i += blockDim.x) {
            int at = block * QUERIES + i;
            u64 place = (u64)(first + at) * shape.heads + head;
            bases[i] = at < rows ? lse[place] * LOG2E : infinity();
            deltas[i] = at < rows ? delta[place] : 0.0f;
        }
        if (shape.drop.threshold) {
            for (int i = threadIdx.x; i < QUERIES * 16; i += blockDim.x) {
                u32 weight_row = (first + block * QUERIES + i / 16) * shape.heads + head;
                planes[i / 16][i % 16] = (u8)kept_planes(shape.drop, blockIdx.x * 16 + i % 16, weight_row);
            }
        }
        if (block + 1 < blocks) wait<1>();
        else wait<0>();
        __syncthreads();
        float weights[QUERIES / 8][4], grads[QUERIES / 8][4];
        across<QUERIES>(weights, keys + warp * 16 * STRIDE, tile);
        across<QUERIES>(grads, values + warp * 16 * STRIDE, tile + QUERIES * STRIDE);
#pragma unroll
        for (int n = 0; n < QUERIES / 8; n++) {
#pragma unroll
            for (int e = 0; e < 2; e++) {
                int at = n * 8 + lane % 4 * 2 + e;
                float base = bases[at], mean = deltas[at];
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    float weight = exp2f(weights[n][2 * half + e] * exponent - base);
                    float factor = shape.drop.scale;
                    if (shape.drop.threshold && !(planes[at][lane / 4 + half * 8] >> warp & 1)) factor = 0.0f;
                    grads[n][2 * half + e] = weight * (grads[n][2 * half + e] * factor - mean);
                    weights[n][2 * half + e] = weight * factor;
                }
            }
        }
        along<QUERIES>(dv, weights, tile + QUERIES * STRIDE);
        along<QUERIES>(dk, grads, tile);
        __syncthreads();
    }
    wait<0>();
    float scales[2] = {shape.scale, shape.scale}, ones[2] = {1.0f, 1.0f};
    int row = warp * 16 + lane / 4;
    put(dkv + start, 2 * dim, width, dk, scales, row, there);
    put(dkv + start + dim, 2 * dim, width, dv, ones, row, there);
}
