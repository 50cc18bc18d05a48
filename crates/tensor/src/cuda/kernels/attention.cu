// FlashAttention-2 (Dao 2023) within each sequence on `mma.sync`, for every card from Ampere on and heads of at
// most HEAD columns (a power of two, 16 at least); WHOLE says that they are whole multiples of eight.
// attention_reference.cu is the same in plain loops.
//
// Scores never reach memory: a block of queries meets the keys a tile at a time, and the softmax is corrected as
// higher scores appear (online softmax, Milakov and Gimelshein 2018). Only the dropout mask is drawn ahead and
// saved, a bit for each weight. The backward pass recomputes the weights from the logsumexp of each row, once for
// the gradient of the queries and once for that of keys and values (FlashAttention-2 adds the former atomically),
// so that no sum depends on the order in which blocks finish.
//
// Matmuls are m16n8k16 of the tensor cores. Of a 16 x 8 result, lane l has columns 2 * (l % 4) and the next, in
// rows l / 4 and l / 4 + 8. A warp has TALL such results below one another, so that what it reads of the other
// operand serves them all.

static constexpr int STRIDE = HEAD + 8; // of a row in shared memory: eight rows then touch all banks
static constexpr int KEYS = 128;        // keys of a block in the backward pass: one Philox counter's eight planes

// For each kernel: how many heights of 16 rows a warp has, what its block meets at a time, and how many
// blocks are to fit an SM. Measured on an H200 with heads of 64.
#define FORWARD_TALL 1
#define FORWARD_TILE 64
#define FORWARD_BLOCKS (HEAD > 64 ? 1 : 4)
#define QUERIES_TALL 1
#define QUERIES_TILE (HEAD > 64 ? 32 : 64)
#define QUERIES_BLOCKS (HEAD > 64 ? 1 : 3)
#define KEYS_TALL (HEAD > 64 ? 1 : 2)
#define KEYS_TILE 32
#define KEYS_BLOCKS (HEAD > 64 ? 1 : 2)

// Brings ROWS rows of one head into shared memory; rows and columns that are not there become 0. Where
// heads are whole multiples of eight columns, sixteen bytes at a time, without waiting.
template <int ROWS, int THREADS> INLINE void fetch(bf16 *tile, const bf16 *from, int pitch, int valid, int width) {
#if WHOLE
    constexpr int ACROSS = HEAD / 8, DOWN = THREADS / ACROSS;
    int row = threadIdx.x / ACROSS, col = threadIdx.x % ACROSS * 8;
    const bf16 *source = from + row * pitch + col;
    bf16 *to = tile + row * STRIDE + col;
    if (ROWS < DOWN && row >= ROWS) return;
    if (valid >= ROWS && width == HEAD) {
#pragma unroll
        for (int i = 0; i < (ROWS + DOWN - 1) / DOWN; i++) {
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address(to + i * DOWN * STRIDE)), "l"(source)
                         : "memory");
            source += DOWN * pitch;
        }
    } else {
#pragma unroll
        for (int i = 0; i < (ROWS + DOWN - 1) / DOWN; i++) {
            if (row + i * DOWN < valid && col < width) {
                asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address(to + i * DOWN * STRIDE)),
                             "l"(source)
                             : "memory");
            } else {
                *reinterpret_cast<uint4 *>(to + i * DOWN * STRIDE) = make_uint4(0, 0, 0, 0);
            }
            source += DOWN * pitch;
        }
    }
#else
    for (int i = threadIdx.x; i < ROWS * HEAD; i += THREADS) {
        int row = i / HEAD, col = i % HEAD;
        tile[row * STRIDE + col] = row < valid && col < width ? from[row * pitch + col] : (bf16)0;
    }
#endif
}

INLINE void matrices(u32 *to, const bf16 *from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address(from))
                 : "memory");
}
INLINE void matrices_transposed(u32 *to, const bf16 *from) {
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

// The warp's rows of `a` in registers, as operands.
template <int TALL> struct RowOperand {
    u32 part[HEAD / 16][TALL][4];
};
template <int TALL> INLINE void load_rows(RowOperand<TALL> &to, const bf16 *a) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < HEAD / 16; k++) {
#pragma unroll
        for (int m = 0; m < TALL; m++)
            matrices(to.part[k][m], a + (m * 16 + lane % 16) * STRIDE + k * 16 + lane / 16 * 8);
    }
}

// sum = the rows times the COLS rows of `b`, transposed.
template <int TALL, int COLS> INLINE void across(float (*sum)[COLS / 8][4], const RowOperand<TALL> &rows, const bf16 *b) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int m = 0; m < TALL; m++) {
#pragma unroll
        for (int n = 0; n < COLS / 8; n++) sum[m][n][0] = sum[m][n][1] = sum[m][n][2] = sum[m][n][3] = 0.0f;
    }
#pragma unroll
    for (int k = 0; k < HEAD / 16; k++) {
#pragma unroll
        for (int n = 0; n < COLS / 16; n++) {
            u32 cols[4];
            matrices(cols, b + (n * 16 + lane % 8 + lane / 16 * 8) * STRIDE + k * 16 + lane / 8 % 2 * 8);
#pragma unroll
            for (int m = 0; m < TALL; m++) {
                multiply(sum[m][2 * n], rows.part[k][m], cols[0], cols[1]);
                multiply(sum[m][2 * n + 1], rows.part[k][m], cols[2], cols[3]);
            }
        }
    }
}

// The same, with the rows read from shared memory as they are needed: registers are few.
template <int TALL, int COLS> INLINE void across(float (*sum)[COLS / 8][4], const bf16 *a, const bf16 *b) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int m = 0; m < TALL; m++) {
#pragma unroll
        for (int n = 0; n < COLS / 8; n++) sum[m][n][0] = sum[m][n][1] = sum[m][n][2] = sum[m][n][3] = 0.0f;
    }
#pragma unroll
    for (int k = 0; k < HEAD / 16; k++) {
        u32 rows[TALL][4];
#pragma unroll
        for (int m = 0; m < TALL; m++)
            matrices(rows[m], a + (m * 16 + lane % 16) * STRIDE + k * 16 + lane / 16 * 8);
#pragma unroll
        for (int n = 0; n < COLS / 16; n++) {
            u32 cols[4];
            matrices(cols, b + (n * 16 + lane % 8 + lane / 16 * 8) * STRIDE + k * 16 + lane / 8 % 2 * 8);
#pragma unroll
            for (int m = 0; m < TALL; m++) {
                multiply(sum[m][2 * n], rows[m], cols[0], cols[1]);
                multiply(sum[m][2 * n + 1], rows[m], cols[2], cols[3]);
            }
        }
    }
}

// sum += weights (of DEPTH columns, as `across` leaves them) times the DEPTH rows of `b`.
template <int TALL, int DEPTH>
INLINE void along(float (*sum)[HEAD / 8][4], float (*weights)[DEPTH / 8][4], const bf16 *b) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < DEPTH / 16; k++) {
        u32 rows[TALL][4];
#pragma unroll
        for (int m = 0; m < TALL; m++) {
            float *left = weights[m][2 * k], *right = weights[m][2 * k + 1];
            rows[m][0] = pack(left[0], left[1]);
            rows[m][1] = pack(left[2], left[3]);
            rows[m][2] = pack(right[0], right[1]);
            rows[m][3] = pack(right[2], right[3]);
        }
#pragma unroll
        for (int n = 0; n < HEAD / 16; n++) {
            u32 cols[4];
            matrices_transposed(cols, b + (k * 16 + lane % 16) * STRIDE + n * 16 + lane / 16 * 8);
#pragma unroll
            for (int m = 0; m < TALL; m++) {
                multiply(sum[m][2 * n], rows[m], cols[0], cols[1]);
                multiply(sum[m][2 * n + 1], rows[m], cols[2], cols[3]);
            }
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
#if WHOLE
            if (col < width) *reinterpret_cast<u32 *>(own + col) = pack(a, b);
#else
            if (col < width) own[col] = narrow(a);
            if (col + 1 < width) own[col + 1] = narrow(b);
#endif
        }
    }
}

// The mask of a row of a tile of TILE keys that begins with key `from`.
template <int TILE> INLINE void read_kept(const Shape &shape, const u8 *mask, u32 query, int head, int from, u32 *kept) {
    const u32 *words = reinterpret_cast<const u32 *>(mask + mask_offset(shape, query, head, from / KEYS)) + from % KEYS / 32;
#pragma unroll
    for (int i = 0; i < TILE / 32; i++) kept[i] = words[i] >> (threadIdx.x % 4 * 2);
}

// A block: some queries of one head of one sequence.
extern "C" __global__ void __launch_bounds__(128, FORWARD_BLOCKS)
    attention(const bf16 *q, const bf16 *kv, Shape shape, bf16 *y, float *lse, const u8 *mask) {
    constexpr int TALL = FORWARD_TALL, ROWS = 16 * TALL, QUERIES = 4 * ROWS, TILE = FORWARD_TILE;
    int head = blockIdx.y, sequence = blockIdx.z;
    int first = shape.queries[sequence] + blockIdx.x * QUERIES, rows = (int)shape.queries[sequence + 1] - first;
    if (rows <= 0) return;
    int from = shape.keys[sequence], count = (int)shape.keys[sequence + 1] - from;
    int dim = shape.dim, width = shape.width, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const bf16 *keys = kv + (u64)from * 2 * dim + head * width, *values = keys + dim;

    extern __shared__ __align__(16) bf16 shared[];
    bf16 *queries = shared, *tiles = shared + QUERIES * STRIDE; // then keys and values, twice
    fetch<QUERIES, 128>(queries, q + (u64)first * dim + head * width, dim, rows, width);
    fetch<TILE, 128>(tiles, keys, 2 * dim, count, width);
    fetch<TILE, 128>(tiles + TILE * STRIDE, values, 2 * dim, count, width);
    commit();

    RowOperand<TALL> own;
    float out[TALL][HEAD / 8][4] = {}, top[TALL][2], sum[TALL][2];
    u32 kept[TALL][2][TILE / 32];
#pragma unroll
    for (int m = 0; m < TALL; m++) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            top[m][half] = -infinity();
            sum[m][half] = 0.0f;
#pragma unroll
            for (int i = 0; i < TILE / 32; i++) kept[m][half][i] = ALL;
        }
    }
    float exponent = shape.scale * LOG2E;
    int row = warp * ROWS + lane / 4, blocks = (count + TILE - 1) / TILE;
    for (int block = 0; block < blocks; block++) {
        bf16 *tile = tiles + block % 2 * 2 * TILE * STRIDE;
        if (block + 1 < blocks) {
            bf16 *next = tiles + (block + 1) % 2 * 2 * TILE * STRIDE;
            int at = (block + 1) * TILE;
            fetch<TILE, 128>(next, keys + (u64)at * 2 * dim, 2 * dim, count - at, width);
            fetch<TILE, 128>(next + TILE * STRIDE, values + (u64)at * 2 * dim, 2 * dim, count - at, width);
            commit();
            wait<1>();
        } else {
            wait<0>();
        }
        __syncthreads();
        if (shape.drop.threshold) {
#pragma unroll
            for (int m = 0; m < TALL; m++) {
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    int at = row + m * 16 + half * 8;
                    if (at < rows) read_kept<TILE>(shape, mask, first + at, head, block * TILE, kept[m][half]);
                }
            }
        }
        if (block == 0) load_rows(own, queries + warp * ROWS * STRIDE);
        float scores[TALL][TILE / 8][4];
        across<TALL, TILE>(scores, own, tile);
        if ((block + 1) * TILE > count) {
#pragma unroll
            for (int n = 0; n < TILE / 8; n++) {
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    if (block * TILE + n * 8 + lane % 4 * 2 + e < count) continue;
#pragma unroll
                    for (int m = 0; m < TALL; m++) scores[m][n][e] = scores[m][n][2 + e] = -infinity();
                }
            }
        }
#pragma unroll
        for (int m = 0; m < TALL; m++) {
#pragma unroll
            for (int half = 0; half < 2; half++) {
                float best = top[m][half];
#pragma unroll
                for (int n = 0; n < TILE / 8; n++)
                    best = fmaxf(best, fmaxf(scores[m][n][2 * half], scores[m][n][2 * half + 1]));
                best = fmaxf(best, __shfl_xor_sync(ALL, best, 1));
                best = fmaxf(best, __shfl_xor_sync(ALL, best, 2));
                float shrink = fast_exp2((top[m][half] - best) * exponent), base = best * exponent, total = 0.0f;
#pragma unroll
                for (int n = 0; n < TILE / 8; n++) {
#pragma unroll
                    for (int e = 0; e < 2; e++) {
                        float weight = fast_exp2(scores[m][n][2 * half + e] * exponent - base);
                        total += weight;
                        scores[m][n][2 * half + e] = kept[m][half][n / 4] & mask_bit(n, e) ? weight : 0.0f;
                    }
                }
                top[m][half] = best;
                sum[m][half] = sum[m][half] * shrink + total;
#pragma unroll
                for (int n = 0; n < HEAD / 8; n++) {
                    out[m][n][2 * half] *= shrink;
                    out[m][n][2 * half + 1] *= shrink;
                }
            }
        }
        along<TALL, TILE>(out, scores, tile + TILE * STRIDE);
        __syncthreads();
    }
#pragma unroll
    for (int m = 0; m < TALL; m++) {
        float factors[2];
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float total = sum[m][half];
            total += __shfl_xor_sync(ALL, total, 1);
            total += __shfl_xor_sync(ALL, total, 2);
            factors[half] = shape.drop.scale / total;
            int at = row + m * 16 + half * 8;
            if (lane % 4 == 0 && at < rows)
                lse[lse_offset(shape, first + at, head)] = top[m][half] * exponent + log2f(total);
        }
        put(y + (u64)first * dim + head * width, dim, width, out[m], factors, row + m * 16, rows);
    }
}

// The gradient of the queries, and `delta`: the dot product of each query's output with its gradient.
extern "C" __global__ void __launch_bounds__(128, QUERIES_BLOCKS)
    attention_queries(const bf16 *q, const bf16 *kv, Shape shape, const bf16 *y, const float *lse, const u8 *mask,
                      const bf16 *dy, bf16 *dq, float *delta) {
    constexpr int TALL = QUERIES_TALL, ROWS = 16 * TALL, QUERIES = 4 * ROWS, TILE = QUERIES_TILE;
    int head = blockIdx.y, sequence = blockIdx.z;
    int first = shape.queries[sequence] + blockIdx.x * QUERIES, rows = (int)shape.queries[sequence + 1] - first;
    if (rows <= 0) return;
    int from = shape.keys[sequence], count = (int)shape.keys[sequence + 1] - from;
    int dim = shape.dim, width = shape.width, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const bf16 *keys = kv + (u64)from * 2 * dim + head * width, *values = keys + dim;
    u64 start = (u64)first * dim + head * width;

    extern __shared__ __align__(16) bf16 shared[];
    bf16 *queries = shared, *dys = queries + QUERIES * STRIDE, *tiles = dys + QUERIES * STRIDE;
    __shared__ float deltas[QUERIES];
    fetch<QUERIES, 128>(queries, q + start, dim, rows, width);
    fetch<QUERIES, 128>(dys, dy + start, dim, rows, width);
    fetch<TILE, 128>(tiles, keys, 2 * dim, count, width);
    fetch<TILE, 128>(tiles + TILE * STRIDE, values, 2 * dim, count, width);
    commit();
    // Two threads for each query.
    for (int at = threadIdx.x / 2; at < QUERIES; at += 64) {
        float total = 0.0f;
        if (at < rows) {
            const bf16 *a = y + start + (u64)at * dim, *b = dy + start + (u64)at * dim;
#if WHOLE
            for (int col = threadIdx.x % 2 * 8; col < width; col += 16) {
                float left[8], right[8];
                load<8>(a + col, left);
                load<8>(b + col, right);
#pragma unroll
                for (int i = 0; i < 8; i++) total += left[i] * right[i];
            }
#else
            for (int col = threadIdx.x % 2; col < width; col += 2) total += wide(a[col]) * wide(b[col]);
#endif
        }
        total += __shfl_xor_sync(ALL, total, 1);
        if (threadIdx.x % 2 == 0) {
            deltas[at] = total;
            if (at < rows) delta[(u64)(first + at) * shape.heads + head] = total;
        }
    }
    int row = warp * ROWS + lane / 4;
    float sum[TALL][HEAD / 8][4] = {}, base[TALL][2];
    u32 kept[TALL][2][TILE / 32];
#pragma unroll
    for (int m = 0; m < TALL; m++) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int at = row + m * 16 + half * 8;
            base[m][half] = at < rows ? lse[lse_offset(shape, first + at, head)] : infinity();
#pragma unroll
            for (int i = 0; i < TILE / 32; i++) kept[m][half][i] = ALL;
        }
    }
    float exponent = shape.scale * LOG2E;
    int blocks = (count + TILE - 1) / TILE;
    for (int block = 0; block < blocks; block++) {
        bf16 *tile = tiles + block % 2 * 2 * TILE * STRIDE;
        if (block + 1 < blocks) {
            bf16 *next = tiles + (block + 1) % 2 * 2 * TILE * STRIDE;
            int at = (block + 1) * TILE;
            fetch<TILE, 128>(next, keys + (u64)at * 2 * dim, 2 * dim, count - at, width);
            fetch<TILE, 128>(next + TILE * STRIDE, values + (u64)at * 2 * dim, 2 * dim, count - at, width);
            commit();
        }
        if (shape.drop.threshold) {
#pragma unroll
            for (int m = 0; m < TALL; m++) {
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    int at = row + m * 16 + half * 8;
                    if (at < rows) read_kept<TILE>(shape, mask, first + at, head, block * TILE, kept[m][half]);
                }
            }
        }
        if (block + 1 < blocks) wait<1>();
        else wait<0>();
        __syncthreads();
        float weights[TALL][TILE / 8][4], grads[TALL][TILE / 8][4];
        across<TALL, TILE>(weights, queries + warp * ROWS * STRIDE, tile);
        across<TALL, TILE>(grads, dys + warp * ROWS * STRIDE, tile + TILE * STRIDE);
#pragma unroll
        for (int m = 0; m < TALL; m++) {
#pragma unroll
            for (int half = 0; half < 2; half++) {
                float delta_row = deltas[row + m * 16 + half * 8];
#pragma unroll
                for (int n = 0; n < TILE / 8; n++) {
#pragma unroll
                    for (int e = 0; e < 2; e++) {
                        float weight = fast_exp2(weights[m][n][2 * half + e] * exponent - base[m][half]);
                        float factor = kept[m][half][n / 4] & mask_bit(n, e) ? shape.drop.scale : 0.0f;
                        grads[m][n][2 * half + e] = weight * (grads[m][n][2 * half + e] * factor - delta_row);
                    }
                }
            }
        }
        if ((block + 1) * TILE > count) {
#pragma unroll
            for (int n = 0; n < TILE / 8; n++) {
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    if (block * TILE + n * 8 + lane % 4 * 2 + e < count) continue;
#pragma unroll
                    for (int m = 0; m < TALL; m++) grads[m][n][e] = grads[m][n][2 + e] = 0.0f;
                }
            }
        }
        along<TALL, TILE>(sum, grads, tile);
        __syncthreads();
    }
    float factors[2] = {shape.scale, shape.scale};
#pragma unroll
    for (int m = 0; m < TALL; m++) put(dq + start, dim, width, sum[m], factors, row + m * 16, rows);
}

// The gradients of keys and values. A block: 128 keys of one head of one sequence; queries come by,
// and weights are computed with keys running down.
extern "C" __global__ void __launch_bounds__(KEYS * 2 / KEYS_TALL, KEYS_BLOCKS)
    attention_keys(const bf16 *q, const bf16 *kv, Shape shape, const float *lse, const u8 *mask, const bf16 *dy,
                   const float *delta, bf16 *dkv) {
    constexpr int TALL = KEYS_TALL, ROWS = 16 * TALL, THREADS = KEYS / ROWS * 32, TILE = KEYS_TILE;
    int head = blockIdx.y, sequence = blockIdx.z;
    int from = shape.keys[sequence] + blockIdx.x * KEYS, there = (int)shape.keys[sequence + 1] - from;
    if (there <= 0) return;
    int first = shape.queries[sequence], rows = (int)shape.queries[sequence + 1] - first;
    int dim = shape.dim, width = shape.width, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u64 start = (u64)from * 2 * dim + head * width;
    const bf16 *queries = q + (u64)first * dim + head * width, *dys = dy + (u64)first * dim + head * width;

    extern __shared__ __align__(16) bf16 shared[];
    bf16 *keys = shared, *values = keys + KEYS * STRIDE, *tiles = values + KEYS * STRIDE;
    __shared__ float bases[TILE], deltas[TILE];
    __shared__ __align__(16) u16 planes[TILE][8];
    fetch<KEYS, THREADS>(keys, kv + start, 2 * dim, there, width);
    fetch<KEYS, THREADS>(values, kv + start + dim, 2 * dim, there, width);
    fetch<TILE, THREADS>(tiles, queries, dim, rows, width);
    fetch<TILE, THREADS>(tiles + TILE * STRIDE, dys, dim, rows, width);
    commit();

    float dk[TALL][HEAD / 8][4] = {}, dv[TALL][HEAD / 8][4] = {};
    float exponent = shape.scale * LOG2E;
    int blocks = (rows + TILE - 1) / TILE;
    for (int block = 0; block < blocks; block++) {
        bf16 *tile = tiles + block % 2 * 2 * TILE * STRIDE;
        if (block + 1 < blocks) {
            bf16 *next = tiles + (block + 1) % 2 * 2 * TILE * STRIDE;
            int at = (block + 1) * TILE;
            fetch<TILE, THREADS>(next, queries + (u64)at * dim, dim, rows - at, width);
            fetch<TILE, THREADS>(next + TILE * STRIDE, dys + (u64)at * dim, dim, rows - at, width);
            commit();
        }
        if (threadIdx.x < TILE) {
            int at = block * TILE + threadIdx.x;
            u64 place = (u64)(first + at) * shape.heads + head;
            bases[threadIdx.x] = at < rows ? lse[lse_offset(shape, first + at, head)] : infinity();
            deltas[threadIdx.x] = at < rows ? delta[place] : 0.0f;
            if (shape.drop.threshold && at < rows) {
                const u8 *row_mask = mask + mask_offset(shape, first + at, head, blockIdx.x);
                *reinterpret_cast<uint4 *>(planes[threadIdx.x]) = *reinterpret_cast<const uint4 *>(row_mask);
            }
        }
        if (block + 1 < blocks) wait<1>();
        else wait<0>();
        __syncthreads();
        float weights[TALL][TILE / 8][4], grads[TALL][TILE / 8][4];
        across<TALL, TILE>(weights, keys + warp * ROWS * STRIDE, tile);
        across<TALL, TILE>(grads, values + warp * ROWS * STRIDE, tile + TILE * STRIDE);
#pragma unroll
        for (int n = 0; n < TILE / 8; n++) {
#pragma unroll
            for (int e = 0; e < 2; e++) {
                int at = n * 8 + lane % 4 * 2 + e;
                float base = bases[at], delta_row = deltas[at];
#pragma unroll
                for (int half = 0; half < 2; half++) {
#pragma unroll
                    for (int m = 0; m < TALL; m++) {
                        u32 keep = shape.drop.threshold ? planes[at][warp * TALL + m] >> (lane / 4 + half * 8) : 1;
                        float weight = fast_exp2(weights[m][n][2 * half + e] * exponent - base);
                        float factor = keep & 1 ? shape.drop.scale : 0.0f;
                        grads[m][n][2 * half + e] = weight * (grads[m][n][2 * half + e] * factor - delta_row);
                        weights[m][n][2 * half + e] = weight * factor;
                    }
                }
            }
        }
        along<TALL, TILE>(dv, weights, tile + TILE * STRIDE);
        along<TALL, TILE>(dk, grads, tile);
        __syncthreads();
    }
    wait<0>();
    float scales[2] = {shape.scale, shape.scale}, ones[2] = {1.0f, 1.0f};
#pragma unroll
    for (int m = 0; m < TALL; m++) {
        int row = warp * ROWS + m * 16 + lane / 4;
        put(dkv + start, 2 * dim, width, dk[m], scales, row, there);
        put(dkv + start + dim, 2 * dim, width, dv[m], ones, row, there);
    }
}
