// FlashAttention-2 (Dao 2023) on Hopper, for heads of 64 columns: `wgmma` reads tiles that TMA copies.
// attention_reference.cu is the same in plain loops, attention.cu the version for every card.
//
// A warpgroup (four warps) multiplies 64 rows at once, one operand or both straight from shared memory. There a
// row of a head is 128 bytes with the 128-byte swizzle that wgmma expects: chunk c of 16 bytes of row r lies at
// c ^ r % 8. A warpgroup has a result as one warp has in `mma.sync`: warp w has rows 16 * w onwards, lane l
// columns 8 * n + 2 * (l % 4) and the next of rows l / 4 and l / 4 + 8.
//
// The backward pass is one kernel, for up to 256 keys: a block has all keys of one head of one sequence, 64 for
// each of its GROUPS warpgroups, and queries come by, 64 at a time. The gradients of keys and values stay in
// registers; that of the queries needs the gradients of the scores of all warpgroups, which meet in shared memory,
// and each tile's is computed by another warpgroup while the rest goes on. So every sum has one order, where
// FlashAttention adds the gradient of the queries atomically.

static constexpr int HEAD = 64, TILE = 64, TILE_BYTES = TILE * HEAD * 2;
static constexpr int ROW = HEAD * 2; // bytes of a row in shared memory

// ---- Tensor cores

// The matrix descriptor of an operand: swizzled rows of 128 bytes, eight rows after eight rows. Rows are along
// the sum for an operand that is transposed, else across it. The descriptor has the address in units of
// sixteen bytes, and beside it the swizzle and the distance of eight rows.
INLINE u32 operand(u32 at) { return at >> 4; }
static constexpr u32 PARTS = 2, ROWS = 16 * ROW >> 4; // from one sixteen of the sum to the next: across, or down
#define OPERANDS(a, b) "{\n.reg .pred p;\n.reg .b64 a, b;\nmov.b64 a, {" a ", 0x40000040};\nmov.b64 b, {" b ", 0x40000040};\n"

INLINE void begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
INLINE void commit_wgmma() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
INLINE void wait_wgmma() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }
INLINE void finish() {
    commit_wgmma();
    wait_wgmma();
}
// What was written in the ordinary way is seen by the tensor cores, after the next barrier.
INLINE void publish() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

#define FOUR(sum, n) "+f"(sum[n][0]), "+f"(sum[n][1]), "+f"(sum[n][2]), "+f"(sum[n][3])
#define SUM_4(sum) FOUR(sum, 0), FOUR(sum, 1), FOUR(sum, 2), FOUR(sum, 3)
#define SUM_8(sum) SUM_4(sum), FOUR(sum, 4), FOUR(sum, 5), FOUR(sum, 6), FOUR(sum, 7)
#define LIST_16 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}"
#define LIST_32                                                                                                        \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                          \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"

// sum (+)= a b over 16, of 64 x 32.
template <int TRANSPOSED> INLINE void multiply(float (&sum)[4][4], u32 a, u32 b, int add) {
    asm volatile(OPERANDS("%16", "%17") "setp.ne.b32 p, %18, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 " LIST_16 ", a, b, p, 1, 1, %19, %19;\n}"
                 : SUM_4(sum)
                 : "r"(a), "r"(b), "r"(add), "n"(TRANSPOSED));
}
// Of 64 x 64.
template <int TRANSPOSED> INLINE void multiply(float (&sum)[8][4], u32 a, u32 b, int add) {
    asm volatile(OPERANDS("%32", "%33") "setp.ne.b32 p, %34, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " LIST_32 ", a, b, p, 1, 1, %35, %35;\n}"
                 : SUM_8(sum)
                 : "r"(a), "r"(b), "r"(add), "n"(TRANSPOSED));
}
// The same with rows from registers and `b` transposed, always added.
INLINE void multiply(float (&sum)[8][4], const u32 *a, u32 b) {
    asm volatile("{\n.reg .b64 b;\nmov.b64 b, {%36, 0x40000040};\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " LIST_32
                 ", {%32, %33, %34, %35}, b, 1, 1, 1, 1;\n}"
                 : SUM_8(sum)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b));
}
// 16 columns of a result as rows of the next matmul.
INLINE void narrowed(const float (*sum)[4], u32 *a) {
    a[0] = pack(sum[0][0], sum[0][1]);
    a[1] = pack(sum[0][2], sum[0][3]);
    a[2] = pack(sum[1][0], sum[1][1]);
    a[3] = pack(sum[1][2], sum[1][3]);
}

// ---- Shared memory

// Where chunk `part` of 16 bytes of row `row` lies.
INLINE u32 swizzled(u32 row, u32 part) { return row * ROW + ((part ^ row % 8) << 4); }

// A tensor map of TMA, which copies 64 rows of a head with the swizzle, zeros where the matrix ends. Rows of the
// next sequence come along; readers know how many are their own.
struct alignas(64) Map {
    u64 own[16];
};
INLINE void tma_copy(u32 to, const Map &from, int col, int row, u32 barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(to), "l"(&from), "r"(col), "r"(row), "r"(barrier)
                 : "memory");
}
INLINE void tma_copy_bytes(u32 to, const void *from, u32 bytes, u32 barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(to), "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}
// An mbarrier that completes a phase when the announced bytes have arrived, again and again: `turn` counts the
// phases from 0.
INLINE void make_barrier(u32 barrier) { asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory"); }
INLINE void barriers_made() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    publish();
}
INLINE void announce(u32 barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
INLINE void await(u32 barrier, int turn) {
    asm volatile("{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra DONE;\nbra AGAIN;\nDONE:\n}"
                 ::"r"(barrier), "r"(turn & 1)
                 : "memory");
}
INLINE void copy_word(u32 to, const void *from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}
INLINE void read_words(u32 at, u32 *x) {
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at));
}
INLINE float4 read4(u32 at) {
    float4 x;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w) : "r"(at));
    return x;
}
INLINE u32 read_short(u32 at) {
    u16 x;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(x) : "r"(at));
    return x;
}
INLINE void write_word(u32 at, u32 x) { asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(x) : "memory"); }
INLINE void write_float(u32 at, float x) { asm volatile("st.shared.f32 [%0], %1;" ::"r"(at), "f"(x) : "memory"); }

// Tiles begin where the swizzle begins anew: at multiples of 1024 bytes.
INLINE u32 shared_memory() {
    extern __shared__ u8 shared[];
    return (address(shared) + 1023) & ~1023u;
}

// Transposes the four words that each of four neighbouring lanes has: lane l % 4 gets the one of that number
// from all four, in their order.
INLINE void transpose_words(u32 (&words)[4]) {
    bool odd = threadIdx.x & 1, upper = threadIdx.x & 2;
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
        u32 got = __shfl_xor_sync(ALL, odd ? words[i] : words[i + 1], 1);
        words[i] = odd ? got : words[i];
        words[i + 1] = odd ? words[i + 1] : got;
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        u32 got = __shfl_xor_sync(ALL, upper ? words[i] : words[i + 2], 2);
        words[i] = upper ? got : words[i];
        words[i + 2] = upper ? words[i + 2] : got;
    }
}
// Writes rows of a result of 8 * N columns, times a factor, where they are there: sixteen bytes at a time.
template <int N> INLINE void put(bf16 *to, int pitch, float (&sum)[N][4], float upper, float lower, int row, int rows) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float factor = half ? lower : upper;
        bf16 *own = to + (u64)(row + half * 8) * pitch + threadIdx.x % 4 * 8;
#pragma unroll
        for (int n = 0; n < N; n += 4) {
            u32 words[4];
#pragma unroll
            for (int i = 0; i < 4; i++)
                words[i] = pack(sum[n + i][2 * half] * factor, sum[n + i][2 * half + 1] * factor);
            transpose_words(words);
            if (row + half * 8 < rows)
                // In assembly because the compiler would split the store.
                asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(own + n * 8), "r"(words[0]), "r"(words[1]),
                             "r"(words[2]), "r"(words[3])
                             : "memory");
        }
    }
}

// Of twice PART sums, lanes that are OTHER apart keep half each, and add what the other has of it. Returns
// which half.
template <int PART, int OTHER> INLINE int halve(float *sums) {
    bool upper = threadIdx.x & OTHER;
#pragma unroll
    for (int i = 0; i < PART; i++) {
        float given = __shfl_xor_sync(ALL, upper ? sums[i] : sums[i + PART], OTHER);
        sums[i] = (upper ? sums[i + PART] : sums[i]) + given;
    }
    return upper ? PART : 0;
}
// Sums up the rows of a warp's result, for the gradient of a bias: each lane ends up with the sum of one
// column, or of two neighbours.
template <int N> INLINE void put_sums(float *to, float (&sum)[N][4], float factor) {
    float sums[2 * N];
#pragma unroll
    for (int i = 0; i < 2 * N; i++) sums[i] = sum[i / 2][i % 2] + sum[i / 2][2 + i % 2];
    int own = halve<N, 16>(sums);
    own += halve<N / 2, 8>(sums);
    own += halve<N / 4, 4>(sums);
    to += own / 2 * 8 + threadIdx.x % 4 * 2 + own % 2;
#pragma unroll
    for (int i = 0; i < N / 4; i++) to[i] = sums[i] * factor;
}

// ---- Forward pass. A block: 64 queries for each warpgroup, of one head of one sequence.

static constexpr int ASIDE = GROUPS > 1 ? 2 : 1;  // warpgroups of a block
static constexpr int STAGES = GROUPS > 1 ? 4 : 2; // tiles of keys and values that are there or on their way

extern "C" __global__ void __launch_bounds__(128 * ASIDE, GROUPS > 1 ? 2 : 4)
    attention_forward(const __grid_constant__ Map q, const __grid_constant__ Map kv, Shape shape, bf16 *y, float *lse,
                      const u8 *mask) {
    int head = blockIdx.y, sequence = blockIdx.z, dim = shape.dim;
    int first = shape.queries[sequence] + blockIdx.x * TILE * ASIDE, rows = (int)shape.queries[sequence + 1] - first;
    if (rows <= 0) return;
    int from = shape.keys[sequence], count = (int)shape.keys[sequence + 1] - from;
    int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4;
    int group = __shfl_sync(ALL, threadIdx.x / 128, 0); // so that the compiler sees that warps have one
    int blocks = (count + TILE - 1) / TILE;
    u32 queries = shared_memory(), tiles = queries + ASIDE * TILE_BYTES, barriers = tiles + STAGES * 2 * TILE_BYTES;

    auto fetch = [&](int block) {
        u32 to = tiles + block % STAGES * 2 * TILE_BYTES, barrier = barriers + block % STAGES * 8;
        announce(barrier, 2 * TILE_BYTES + (block == 0 ? ASIDE * TILE_BYTES : 0));
        if (block == 0) {
#pragma unroll
            for (int i = 0; i < ASIDE; i++) tma_copy(queries + i * TILE_BYTES, q, head * HEAD, first + i * TILE, barrier);
        }
        tma_copy(to, kv, head * HEAD, from + block * TILE, barrier);
        tma_copy(to + TILE_BYTES, kv, dim + head * HEAD, from + block * TILE, barrier);
    };
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; stage++) make_barrier(barriers + stage * 8);
        barriers_made();
        for (int block = 0; block < STAGES - 1 && block < blocks; block++) fetch(block);
    }
    __syncthreads();

    float out[8][4] = {}, top[2] = {-infinity(), -infinity()}, sum[2] = {};
    float exponent = shape.scale * LOG2E;
    for (int block = 0; block < blocks; block++) {
        // What was read last may be overwritten when all have read it.
        if (block > 0) __syncthreads();
        if (threadIdx.x == 0 && block + STAGES - 1 < blocks) fetch(block + STAGES - 1);
        uint2 kept[2] = {make_uint2(ALL, ALL), make_uint2(ALL, ALL)};
        if (shape.drop.threshold) {
#pragma unroll
            for (int half = 0; half < 2; half++) {
                if (row + half * 8 >= rows) continue;
                const u8 *row_mask = mask + mask_offset(shape, first + row + half * 8, head, block / 2) + block % 2 * 8;
                kept[half] = *reinterpret_cast<const uint2 *>(row_mask);
            }
        }
        u32 tile = tiles + block % STAGES * 2 * TILE_BYTES;
        float scores[8][4];
        await(barriers + block % STAGES * 8, block / STAGES);
        begin();
#pragma unroll
        for (int k = 0; k < 4; k++)
            multiply<0>(scores, operand(queries + group * TILE_BYTES) + k * PARTS, operand(tile) + k * PARTS, k > 0);
        finish();
        if ((block + 1) * TILE > count) {
#pragma unroll
            for (int n = 0; n < 8; n++) {
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    if (block * TILE + n * 8 + lane % 4 * 2 + e >= count) scores[n][e] = scores[n][2 + e] = -infinity();
                }
            }
        }
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float best = top[half];
#pragma unroll
            for (int n = 0; n < 8; n++) best = fmaxf(best, fmaxf(scores[n][2 * half], scores[n][2 * half + 1]));
            best = fmaxf(best, __shfl_xor_sync(ALL, best, 1));
            best = fmaxf(best, __shfl_xor_sync(ALL, best, 2));
            float shrink = fast_exp2((top[half] - best) * exponent), base = best * exponent, total = 0.0f;
            u32 words[2] = {kept[half].x >> (lane % 4 * 2), kept[half].y >> (lane % 4 * 2)};
            if (!shape.drop.threshold) words[0] = words[1] = ALL;
#pragma unroll
            for (int n = 0; n < 8; n++) {
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    float weight = fast_exp2(scores[n][2 * half + e] * exponent - base);
                    total += weight;
                    scores[n][2 * half + e] = words[n / 4] & mask_bit(n, e) ? weight : 0.0f;
                }
            }
            top[half] = best;
            sum[half] = sum[half] * shrink + total;
#pragma unroll
            for (int n = 0; n < 8; n++) {
                out[n][2 * half] *= shrink;
                out[n][2 * half + 1] *= shrink;
            }
        }
        u32 weights[4][4];
#pragma unroll
        for (int k = 0; k < 4; k++) narrowed(scores + 2 * k, weights[k]);
        begin();
#pragma unroll
        for (int k = 0; k < 4; k++) multiply(out, weights[k], operand(tile + TILE_BYTES) + k * ROWS);
        finish();
    }
    float factors[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float total = sum[half];
        total += __shfl_xor_sync(ALL, total, 1);
        total += __shfl_xor_sync(ALL, total, 2);
        factors[half] = shape.drop.scale / total;
        if (lane % 4 == 0 && row + half * 8 < rows)
            lse[lse_offset(shape, first + row + half * 8, head)] = top[half] * exponent + log2f(total);
    }
    put(y + (u64)first * dim + head * HEAD, dim, out, factors[0], factors[1], row, rows);
}

// ---- Backward pass

static constexpr int THREADS = 128 * GROUPS, SIDE = GROUPS * TILE_BYTES; // bytes of all keys, or all values
static constexpr int MASK = (GROUPS + 1) / 2 * 16;                       // bytes of a query's dropout mask

// Where one block fills an SM, it goes from item to item, and copies the next one's keys and values while it
// computes; else blocks beside one another overlap.
static constexpr int BUFFERS = GROUPS == 4 ? 2 : 1;

// The layout of shared memory; queries and gradients of outputs, statistics and masks twice.
static constexpr u32 SIDES = 0, QUERIES = BUFFERS * 2 * SIDE, SCORES = QUERIES + 4 * TILE_BYTES, OUTPUTS = SCORES + SIDE,
                     STATS = OUTPUTS + TILE_BYTES, KEPT = STATS + 2 * TILE * 8, BARRIERS = KEPT + 2 * TILE * MASK, ITEMS = BARRIERS + 32;

// One head of one sequence: its queries and its keys.
struct Item {
    int head, first, rows, from, count;
    INLINE int tiles() const { return rows > TILE ? (rows + TILE - 1) / TILE : 1; }
};
INLINE Item find_item(const Shape &shape, int at) {
    int sequence = at / shape.heads;
    int first = shape.queries[sequence], from = shape.keys[sequence];
    return {at % shape.heads, first, (int)shape.queries[sequence + 1] - first, from,
            (int)shape.keys[sequence + 1] - from};
}
INLINE void write_item(u32 to, const Item &item) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(item.head), "r"(item.first), "r"(item.rows),
                 "r"(item.from)
                 : "memory");
    write_word(to + 16, item.count);
}
INLINE Item read_item(u32 from) {
    u32 words[4], count;
    read_words(from, words);
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(count) : "r"(from + 16));
    return {(int)words[0], (int)words[1], (int)words[2], (int)words[3], (int)count};
}

template <int NUMBER> INLINE void meet() { asm volatile("bar.sync %0, %1;" ::"n"(NUMBER), "n"(THREADS) : "memory"); }

extern "C" __global__ void __launch_bounds__(THREADS, GROUPS == 4 ? 1 : GROUPS == 2 ? 2 : 3)
    attention_backward(const __grid_constant__ Map q, const __grid_constant__ Map kv, Shape shape,
                       const __grid_constant__ Map y, const float *lse, const u8 *mask, const __grid_constant__ Map dy,
                       bf16 *dq, bf16 *dkv, float *dq_sums, float *dkv_sums, int most, int items) {
    constexpr int READY = 1, FREE = 2; // scores' gradients were written and the next tile is there; they may be written
    u32 base = shared_memory();
    int dim = shape.dim, lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    int group = __shfl_sync(ALL, threadIdx.x / 128, 0); // so that the compiler sees that warps have one
    bool leader = threadIdx.x == 0;
    float exponent = shape.scale * LOG2E;

    // An item's keys and values, as many tiles as there are.
    auto fetch_sides = [&](const Item &of, int buffer) {
        u32 to = base + SIDES + buffer * 2 * SIDE, barrier = base + BARRIERS + 16 + buffer * 8;
        int tiles = max((of.count + TILE - 1) / TILE, 1);
        announce(barrier, tiles * 2 * TILE_BYTES);
        for (int i = 0; i < tiles; i++) {
            tma_copy(to + i * TILE_BYTES, kv, of.head * HEAD, of.from + i * TILE, barrier);
            tma_copy(to + SIDE + i * TILE_BYTES, kv, dim + of.head * HEAD, of.from + i * TILE, barrier);
        }
    };
    // A tile of queries, their outputs and the gradients of these, and the dropout masks: for the leader.
    auto fetch_tile = [&](const Item &of, int tile, int stage) {
        u32 to = base + QUERIES + stage * 2 * TILE_BYTES, barrier = base + BARRIERS + stage * 8;
        int first = of.first + tile * TILE, there = min(of.rows - tile * TILE, TILE);
        u32 mask_bytes = shape.drop.threshold ? there * MASK : 0;
        announce(barrier, 3 * TILE_BYTES + mask_bytes);
        tma_copy(to, q, of.head * HEAD, first, barrier);
        tma_copy(to + TILE_BYTES, dy, of.head * HEAD, first, barrier);
        tma_copy(base + OUTPUTS, y, of.head * HEAD, first, barrier);
        if (mask_bytes)
            tma_copy_bytes(base + KEPT + stage * TILE * MASK, mask + mask_offset(shape, first, of.head, 0), mask_bytes, barrier);
    };
    // Statistics of a tile, for two queries side by side: both logsumexps, then both deltas (the dot product of
    // the output with its gradient). Logsumexps are fetched ahead, each by a thread; a query beyond the end has
    // no weights.
    auto fetch_lse = [&](const Item &of, int tile, int stage) {
        if (threadIdx.x >= TILE) return;
        u32 to = base + STATS + stage * TILE * 8 + threadIdx.x / 2 * 16 + threadIdx.x % 2 * 4;
        int query = tile * TILE + threadIdx.x;
        if (query < of.rows) copy_word(to, lse + lse_offset(shape, of.first + query, of.head));
        else write_float(to, infinity());
    };
    auto finish_stats = [&](int stage) {
        for (int r = threadIdx.x / 8; r < TILE; r += THREADS / 8) {
            u32 at = base + swizzled(r, threadIdx.x % 8), left[4], right[4];
            read_words(at + OUTPUTS, left);
            read_words(at + QUERIES + stage * 2 * TILE_BYTES + TILE_BYTES, right);
            float total = 0.0f;
#pragma unroll
            for (int j = 0; j < 4; j++) {
                total += __uint_as_float(left[j] << 16) * __uint_as_float(right[j] << 16);
                total += __uint_as_float(left[j] & 0xffff0000u) * __uint_as_float(right[j] & 0xffff0000u);
            }
#pragma unroll
            for (int other = 4; other > 0; other /= 2) total += __shfl_xor_sync(ALL, total, other);
            if (threadIdx.x % 8 == 0) write_float(base + STATS + stage * TILE * 8 + r / 2 * 16 + r % 2 * 4 + 8, total);
        }
        wait<0>();
    };

    int at = blockIdx.x, turn = 0, number = 0; // `turn` counts items, `number` tiles
    Item own = find_item(shape, at);
    if (leader) {
        for (int i = 0; i < 4; i++) make_barrier(base + BARRIERS + i * 8);
        barriers_made();
        fetch_sides(own, 0);
        fetch_tile(own, 0, 0);
    }
    fetch_lse(own, 0, 0);
    commit();
    __syncthreads();
    await(base + BARRIERS, 0);
    finish_stats(0);
    meet<READY>();
    for (;;) {
        int following = at + gridDim.x, tiles = own.tiles();
        bool last = following >= items;
        int buffer = turn % BUFFERS, sequence = at / shape.heads;
        u32 keys = base + SIDES + buffer * 2 * SIDE, next_item = base + ITEMS + turn % 2 * 32;
        int row = group * TILE + warp * 16 + lane / 4; // of the keys; the other is eight below
        // Keys beyond the end weigh nothing, whatever lies in their places. No warpgroup skips them: all take the
        // same path through the barriers.
        u32 there[2] = {row < own.count ? ALL : 0, row + 8 < own.count ? ALL : 0};
        float dk[8][4] = {}, dv[8][4] = {};
        for (int tile = 0; tile < tiles; tile++, number++) {
            int stage = number % 2;
            bool more = tile + 1 < tiles;
            if (leader && more) fetch_tile(own, tile + 1, 1 - stage);
            if (more) fetch_lse(own, tile + 1, 1 - stage);
            if (tile == 0 && leader && !last) write_item(next_item, find_item(shape, following));
            if (tile == 0) await(base + BARRIERS + 16 + buffer * 8, turn / BUFFERS);
            u32 queries = base + QUERIES + stage * 2 * TILE_BYTES;
            u32 stats = base + STATS + stage * TILE * 8 + lane % 4 * 16;
            u32 kept = base + KEPT + stage * TILE * MASK + lane % 4 * 2 * MASK + group * 8 + warp * 2;
#pragma unroll 1
            for (int half = 0; half < 2; half++) { // of the tile's queries
                u32 dropped[2][4], dscores[2][4], own_keys = operand(keys + group * TILE_BYTES);
                u32 own_queries = operand(queries + half * 32 * ROW);
                float weights[4][4], grads[4][4];
                begin();
#pragma unroll
                for (int k = 0; k < 4; k++) multiply<0>(weights, own_keys + k * PARTS, own_queries + k * PARTS, k > 0);
#pragma unroll
                for (int k = 0; k < 4; k++)
                    multiply<0>(grads, own_keys + (SIDE >> 4) + k * PARTS, own_queries + (TILE_BYTES >> 4) + k * PARTS, k > 0);
                finish();
#pragma unroll
                for (int n = 0; n < 4; n++) {
                    float4 stat = read4(stats + (half * 16 + n * 4) * 16);
                    float bases[2] = {stat.x, stat.y}, deltas[2] = {stat.z, stat.w};
#pragma unroll
                    for (int e = 0; e < 2; e++) {
                        u32 keep = ALL;
                        if (shape.drop.threshold) keep = read_short(kept + (half * 32 + n * 8 + e) * MASK) >> (lane / 4);
#pragma unroll
                        for (int low = 0; low < 2; low++) { // the upper key, the lower one
                            float weight = fast_exp2(weights[n][2 * low + e] * exponent - bases[e]);
                            float factor = keep & 1u << (8 * low) ? shape.drop.scale : 0.0f;
                            grads[n][2 * low + e] = weight * (grads[n][2 * low + e] * factor - deltas[e]);
                            weights[n][2 * low + e] = weight * factor;
                        }
                    }
                    if (n % 2 == 0) continue;
                    narrowed(weights + n - 1, dropped[n / 2]);
                    narrowed(grads + n - 1, dscores[n / 2]);
#pragma unroll
                    for (int i = 0; i < 4; i++) {
                        dropped[n / 2][i] &= there[i % 2];
                        dscores[n / 2][i] &= there[i % 2];
                    }
                }
                begin();
#pragma unroll
                for (int k = 0; k < 2; k++) multiply(dv, dropped[k], own_queries + (TILE_BYTES >> 4) + k * ROWS);
#pragma unroll
                for (int k = 0; k < 2; k++) multiply(dk, dscores[k], own_queries + k * ROWS);
                commit_wgmma();
                if (half == 0) {
                    // Scores may be written when the group that computed the last tile's queries has read them; it
                    // has then done with the last item's keys too.
                    meet<FREE>();
                    if (tile == 0 && leader && !last) fetch_sides(read_item(next_item), (turn + 1) % BUFFERS);
                    if (!more && !last) {
                        Item next = read_item(next_item);
                        if (leader) fetch_tile(next, 0, 1 - stage);
                        fetch_lse(next, 0, 1 - stage);
                    }
                    commit();
                }
                u32 to = base + SCORES + (group * TILE + warp * 16 + lane / 4) * ROW + lane % 4 * 4;
#pragma unroll
                for (int n = 0; n < 4; n++) {
                    u32 place = to + (((half * 4 + n) ^ lane / 4) << 4);
                    write_word(place, dscores[n / 2][n % 2 * 2]);
                    write_word(place + 8 * ROW, dscores[n / 2][n % 2 * 2 + 1]);
                }
                wait_wgmma();
            }
            publish();
            // The next tile is prepared before all meet, so that one meeting serves it and this tile's scores.
            if (more || !last) {
                await(base + BARRIERS + (1 - stage) * 8, (number + 1) / 2);
                finish_stats(1 - stage);
            }
            meet<READY>();
            if (number % GROUPS != group) continue;
#pragma unroll 1
            for (int half = 0; half < 2; half++) { // of the columns of the queries' gradients
                float sum[4][4];
                u32 left = operand(base + SCORES), right = operand(keys + half * 64);
                begin();
                multiply<1>(sum, left, right, 0);
                for (int k = 1; k * 16 < own.count; k++) multiply<1>(sum, left + k * ROWS, right + k * ROWS, 1);
                finish();
                put(dq + (u64)(own.first + tile * TILE) * dim + own.head * HEAD + half * 32, dim, sum, shape.scale,
                    shape.scale, warp * 16 + lane / 4, own.rows - tile * TILE);
                put_sums(dq_sums + (u64)((sequence * most + tile) * 4 + warp) * dim + own.head * HEAD + half * 32, sum,
                         shape.scale);
            }
        }
        // A shorter sequence has nothing to add where a longer one has more tiles.
        for (int i = tiles * 4 * HEAD + threadIdx.x; i < most * 4 * HEAD; i += THREADS)
            dq_sums[(u64)(sequence * most * 4 + i / HEAD) * dim + own.head * HEAD + i % HEAD] = 0.0f;
        float *sums = dkv_sums + (u64)(sequence * GROUPS * 4 + group * 4 + warp) * 2 * dim + own.head * HEAD;
        put_sums(sums, dk, shape.scale);
        put_sums(sums + dim, dv, 1.0f);
        bf16 *to = dkv + (u64)own.from * 2 * dim + own.head * HEAD;
        put(to, 2 * dim, dk, shape.scale, shape.scale, row, own.count);
        put(to + dim, 2 * dim, dv, 1.0f, 1.0f, row, own.count);
        if (last) return;
        at = following;
        own = read_item(next_item);
        turn++;
    }
}
