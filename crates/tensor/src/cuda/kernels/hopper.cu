// Attention on Hopper's tensor cores, for heads of 64 columns.
//
// Products are `wgmma`: four warps together multiply 64 rows, one factor or both straight from shared
// memory. There a row of a head is 128 bytes, and its sixteenths are exchanged as the tensor cores
// expect (sixteenth c of row r lies at c ^ r % 8). Four warps have a result as one warp has in
// `mma.sync`: warp w has rows 16 * w onwards, lane l columns 8 * n + 2 * (l % 4) and the next of rows
// l / 4 and l / 4 + 8.
//
// The way back is one kernel: a block has all keys of one head of one sequence, 64 for each of its
// GROUPS groups of four warps, and queries come by, 64 at a time. The gradients of keys and values stay
// in registers; that of the queries needs the scores of all groups, which meet in shared memory, and
// each tile's is computed by another group while the rest goes on. So every sum has one order.

static constexpr int HEAD = 64, TILE = 64, TILE_BYTES = TILE * HEAD * 2;
static constexpr int ROW = HEAD * 2; // bytes of a row in shared memory

// ---- Tensor cores

// Where a factor lies: rows of 128 bytes in the exchanged order, eight rows after eight rows. Rows are
// along the sum for a factor that is turned, else across it.
INLINE u64 factor(u32 at) { return (u64)((at & 0x3ffff) >> 4) | (u64)(1024 >> 4) << 32 | 1ull << 62; }

INLINE void begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
INLINE void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
INLINE void wait_products() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }
INLINE void finish() {
    commit_products();
    wait_products();
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
template <int TURNED> INLINE void multiply(float (&sum)[4][4], u64 a, u64 b, int add) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %18, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 " LIST_16 ", %16, %17, p, 1, 1, %19, %19;\n}"
                 : SUM_4(sum)
                 : "l"(a), "l"(b), "r"(add), "n"(TURNED));
}
// Of 64 x 64.
template <int TURNED> INLINE void multiply(float (&sum)[8][4], u64 a, u64 b, int add) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " LIST_32 ", %32, %33, p, 1, 1, %35, %35;\n}"
                 : SUM_8(sum)
                 : "l"(a), "l"(b), "r"(add), "n"(TURNED));
}
// The same with rows from registers and `b` turned, always added.
INLINE void multiply(float (&sum)[8][4], const u32 *a, u64 b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " LIST_32
                 ", {%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
                 : SUM_8(sum)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
// 16 columns of a result as rows of the next product.
INLINE void narrowed(const float (*sum)[4], u32 *a) {
    a[0] = pack(sum[0][0], sum[0][1]);
    a[1] = pack(sum[0][2], sum[0][3]);
    a[2] = pack(sum[1][0], sum[1][1]);
    a[3] = pack(sum[1][2], sum[1][3]);
}

// ---- Shared memory

// Where sixteenth `part` of row `row` lies.
INLINE u32 exchanged(u32 row, u32 part) { return row * ROW + ((part ^ row % 8) << 4); }

// Copies 16 bytes without waiting; zeros where they are not there.
INLINE void copy(u32 to, const void *from, bool there) {
    int bytes = there ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
INLINE void copy_word(u32 to, const void *from, bool there) {
    int bytes = there ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
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

// Every block begins where the exchanged order begins anew.
INLINE u32 shared_memory() {
    extern __shared__ u8 shared[];
    return (address(shared) + 1023) & ~1023u;
}

// Writes rows of a result of 8 * N columns, times a factor, where they are there.
template <int N> INLINE void put(bf16 *to, int pitch, float (&sum)[N][4], float upper, float lower, int row, int rows) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        if (row + half * 8 >= rows) continue;
        float factor = half ? lower : upper;
        u32 *own = reinterpret_cast<u32 *>(to + (u64)(row + half * 8) * pitch) + threadIdx.x % 4;
#pragma unroll
        for (int n = 0; n < N; n++) own[4 * n] = pack(sum[n][2 * half] * factor, sum[n][2 * half + 1] * factor);
    }
}

// ---- Forward. A block: 64 queries for each group, of one head of one sequence.

static constexpr int ASIDE = GROUPS > 1 ? 2 : 1;  // groups of a block
static constexpr int STAGES = GROUPS > 1 ? 4 : 2; // tiles of keys and values that are there or on their way

extern "C" __global__ void __launch_bounds__(128 * ASIDE, GROUPS > 1 ? 2 : 4)
    attention_forward(const bf16 *q, const bf16 *kv, Shape shape, bf16 *y, float *lse, const u8 *notes) {
    constexpr int THREADS = 128 * ASIDE;
    int head = blockIdx.y, sequence = blockIdx.z, dim = shape.dim;
    int first = shape.queries[sequence] + blockIdx.x * TILE * ASIDE, rows = (int)shape.queries[sequence + 1] - first;
    if (rows <= 0) return;
    int from = shape.keys[sequence], count = (int)shape.keys[sequence + 1] - from;
    int lane = threadIdx.x % 32, group = threadIdx.x / 128, row = threadIdx.x / 32 * 16 + lane / 4;
    u64 start = (u64)first * dim + head * HEAD;
    const bf16 *keys = kv + (u64)from * 2 * dim + head * HEAD;
    u32 queries = shared_memory(), tiles = queries + ASIDE * TILE_BYTES;

    int down = threadIdx.x / 8, part = threadIdx.x % 8;
    auto fetch = [&](int block) {
        u32 to = tiles + block % STAGES * 2 * TILE_BYTES;
#pragma unroll
        for (int r = down; r < TILE; r += THREADS / 8) {
            int key = block * TILE + r;
            bool there = key < count;
            const bf16 *source = keys + (u64)(there ? key : 0) * 2 * dim + part * 8;
            copy(to + exchanged(r, part), source, there);
            copy(to + TILE_BYTES + exchanged(r, part), source + dim, there);
        }
    };
#pragma unroll
    for (int r = down; r < ASIDE * TILE; r += THREADS / 8)
        copy(queries + exchanged(r, part), q + start + (u64)(r < rows ? r : 0) * dim + part * 8, r < rows);
    int blocks = (count + TILE - 1) / TILE;
#pragma unroll
    for (int block = 0; block < STAGES - 1; block++) {
        if (block < blocks) fetch(block);
        commit();
    }

    float out[8][4] = {}, top[2] = {-infinity(), -infinity()}, sum[2] = {};
    float exponent = shape.scale * LOG2E;
    for (int block = 0; block < blocks; block++) {
        wait<STAGES - 2>();
        publish();
        __syncthreads();
        if (block + STAGES - 1 < blocks) fetch(block + STAGES - 1);
        commit();
        u32 kept[2][2] = {{ALL, ALL}, {ALL, ALL}};
        if (shape.drop.threshold) {
#pragma unroll
            for (int half = 0; half < 2; half++) {
                if (row + half * 8 >= rows) continue;
                const u8 *note = notes + noted(shape, first + row + half * 8, head, block / 2) + block % 2 * 8;
                uint2 words = *reinterpret_cast<const uint2 *>(note);
                kept[half][0] = words.x >> (lane % 4 * 2);
                kept[half][1] = words.y >> (lane % 4 * 2);
            }
        }
        u32 tile = tiles + block % STAGES * 2 * TILE_BYTES;
        float scores[8][4];
        begin();
#pragma unroll
        for (int k = 0; k < 4; k++)
            multiply<0>(scores, factor(queries + group * TILE_BYTES + k * 32), factor(tile + k * 32), k > 0);
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
            float shrink = power((top[half] - best) * exponent), base = best * exponent, total = 0.0f;
#pragma unroll
            for (int n = 0; n < 8; n++) {
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    float weight = power(scores[n][2 * half + e] * exponent - base);
                    total += weight;
                    scores[n][2 * half + e] = kept[half][n / 4] & place(n, e) ? weight : 0.0f;
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
        for (int k = 0; k < 4; k++) multiply(out, weights[k], factor(tile + TILE_BYTES + k * 16 * ROW));
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
            lse[(u64)(first + row + half * 8) * shape.heads + head] = top[half] * exponent + log2f(total);
    }
    put(y + start, dim, out, factors[0], factors[1], row, rows);
}

// ---- The way back

static constexpr int THREADS = 128 * GROUPS, SIDE = GROUPS * TILE_BYTES; // bytes of all keys, or all values
static constexpr int NOTES = (GROUPS + 1) / 2 * 16;                      // bytes noted of a query
static constexpr int SHARE = TILE * 8 / THREADS;                        // sixteenths of a tile for each thread

// Where one block fills a processor, it goes from item to item, and brings the next one's keys and values
// while it computes; else blocks beside one another do.
static constexpr int BUFFERS = GROUPS == 4 ? 2 : 1;

// What lies where in shared memory; queries and slopes, facts and notes twice.
static constexpr u32 SIDES = 0, QUERIES = BUFFERS * 2 * SIDE, SCORES = QUERIES + 4 * TILE_BYTES, OUTPUTS = SCORES + SIDE,
                     FACTS = OUTPUTS + TILE_BYTES, KEPT = FACTS + 2 * TILE * 8;

// One head of one sequence.
struct Item {
    int head, first, rows, from, count;
    INLINE int tiles() const { return rows > TILE ? (rows + TILE - 1) / TILE : 1; }
};
INLINE Item item(const Shape &shape, int at) {
    int sequence = at / shape.heads;
    int first = shape.queries[sequence], from = shape.keys[sequence];
    return {at % shape.heads, first, (int)shape.queries[sequence + 1] - first, from,
            (int)shape.keys[sequence + 1] - from};
}

template <int NUMBER> INLINE void meet() { asm volatile("bar.sync %0, %1;" ::"n"(NUMBER), "n"(THREADS) : "memory"); }
template <int NUMBER> INLINE void pass() { asm volatile("bar.arrive %0, %1;" ::"n"(NUMBER), "n"(THREADS) : "memory"); }

extern "C" __global__ void __launch_bounds__(THREADS, GROUPS == 4 ? 1 : GROUPS == 2 ? 2 : 3)
    attention_backward(const bf16 *q, const bf16 *kv, Shape shape, const bf16 *y, const float *lse, const u8 *notes,
                       const bf16 *dy, bf16 *dq, bf16 *dkv, int items) {
    constexpr int READY = 1, FREE = 2, FULL = 3; // barriers: a tile is there; scores may be, and were, written
    u32 base = shared_memory();
    int dim = shape.dim, lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    int group = __shfl_sync(ALL, threadIdx.x / 128, 0); // so that the compiler sees that warps have one
    int down = threadIdx.x / 8, part = threadIdx.x % 8;
    float exponent = shape.scale * LOG2E;

    // A share of an item's keys and values.
    auto fetch_sides = [&](const Item &of, int buffer, int begin, int end) {
        const bf16 *source = kv + (u64)of.from * 2 * dim + of.head * HEAD + part * 8;
        u32 to = base + SIDES + buffer * 2 * SIDE;
        for (int r = begin + down; r < end; r += THREADS / 8) {
            bool there = r < of.count;
            const bf16 *own = source + (u64)(there ? r : 0) * 2 * dim;
            copy(to + exchanged(r, part), own, there);
            copy(to + SIDE + exchanged(r, part), own + dim, there);
        }
    };
    // A tile of queries, their outputs and the slopes of these, and what is needed to know the weights
    // again. A query that is not there is all zeros, which adds nothing anywhere.
    auto fetch_tile = [&](const Item &of, int tile, int stage) {
        u32 to = base + QUERIES + stage * 2 * TILE_BYTES;
#pragma unroll
        for (int i = 0; i < SHARE; i++) {
            int r = down + i * (THREADS / 8), row = tile * TILE + r;
            bool there = row < of.rows;
            u64 at = (u64)(of.first + (there ? row : 0)) * dim + of.head * HEAD + part * 8;
            copy(to + exchanged(r, part), q + at, there);
            copy(to + TILE_BYTES + exchanged(r, part), dy + at, there);
            copy(base + OUTPUTS + exchanged(r, part), y + at, there);
            if (part == 0)
                copy_word(base + FACTS + stage * TILE * 8 + r / 2 * 16 + r % 2 * 4,
                          lse + (u64)(of.first + (there ? row : 0)) * shape.heads + of.head, there);
        }
        if (shape.drop.threshold && threadIdx.x < TILE * NOTES / 16) {
            int r = threadIdx.x / (NOTES / 16), row = tile * TILE + r;
            bool there = row < of.rows;
            const u8 *note = notes + noted(shape, of.first + (there ? row : 0), of.head, threadIdx.x % (NOTES / 16));
            copy(base + KEPT + stage * TILE * NOTES + threadIdx.x * 16, note, there);
        }
    };
    // For two queries side by side: both logarithms, then each one's output times its slope.
    auto write_facts = [&](int stage) {
#pragma unroll
        for (int i = 0; i < SHARE; i++) {
            int r = down + i * (THREADS / 8);
            u32 at = base + exchanged(r, part), left[4], right[4];
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
            if (part == 0) write_float(base + FACTS + stage * TILE * 8 + r / 2 * 16 + r % 2 * 4 + 8, total);
        }
    };

    int at = blockIdx.x, buffer = 0, number = 0; // `number` counts tiles
    Item own = item(shape, at);
    fetch_sides(own, 0, 0, GROUPS * TILE);
    fetch_tile(own, 0, 0);
    commit();
    wait<0>();
    write_facts(0);
    publish();
    meet<READY>();
    for (;;) {
        int following = at + gridDim.x, tiles = own.tiles();
        bool last = following >= items;
        u32 keys = base + SIDES + buffer * 2 * SIDE, values = keys + SIDE;
        int row = group * TILE + warp * 16 + lane / 4; // of the keys; the other is eight below
        bool active = group * TILE < own.count;
        u32 there[2] = {row < own.count ? ALL : 0, row + 8 < own.count ? ALL : 0};
        float dk[8][4] = {}, dv[8][4] = {};
        for (int tile = 0; tile < tiles; tile++, number++) {
            int stage = number % 2;
            bool more = tile + 1 < tiles;
            if (more) fetch_tile(own, tile + 1, 1 - stage);
            else if (!last) fetch_tile(item(shape, following), 0, 1 - stage);
            u32 queries = base + QUERIES + stage * 2 * TILE_BYTES, slopes = queries + TILE_BYTES;
            u32 facts = base + FACTS + stage * TILE * 8 + lane % 4 * 16;
            u32 kept = base + KEPT + stage * TILE * NOTES + lane % 4 * 2 * NOTES + group * 8 + warp * 2;
#pragma unroll 1
            for (int half = 0; half < 2; half++) { // of the tile's queries
                u32 dropped[2][4], sloped[2][4];
                if (active) {
                    float weights[4][4], grads[4][4];
                    begin();
#pragma unroll
                    for (int k = 0; k < 4; k++)
                        multiply<0>(weights, factor(keys + group * TILE_BYTES + k * 32),
                                    factor(queries + half * 32 * ROW + k * 32), k > 0);
#pragma unroll
                    for (int k = 0; k < 4; k++)
                        multiply<0>(grads, factor(values + group * TILE_BYTES + k * 32),
                                    factor(slopes + half * 32 * ROW + k * 32), k > 0);
                    finish();
#pragma unroll
                    for (int n = 0; n < 4; n++) {
                        float4 fact = read4(facts + (half * 16 + n * 4) * 16);
                        float bases[2] = {fact.x, fact.y}, means[2] = {fact.z, fact.w};
#pragma unroll
                        for (int e = 0; e < 2; e++) {
                            u32 keep = ALL;
                            if (shape.drop.threshold)
                                keep = read_short(kept + (half * 32 + n * 8 + e) * NOTES) >> (lane / 4);
#pragma unroll
                            for (int low = 0; low < 2; low++) { // the upper key, the lower one
                                float weight = power(weights[n][2 * low + e] * exponent - bases[e]);
                                float factor = keep & 1u << (8 * low) ? shape.drop.scale : 0.0f;
                                grads[n][2 * low + e] = weight * (grads[n][2 * low + e] * factor - means[e]);
                                weights[n][2 * low + e] = weight * factor;
                            }
                        }
                        if (n % 2 == 0) continue;
                        narrowed(weights + n - 1, dropped[n / 2]);
                        narrowed(grads + n - 1, sloped[n / 2]);
#pragma unroll
                        for (int i = 0; i < 4; i++) {
                            dropped[n / 2][i] &= there[i % 2];
                            sloped[n / 2][i] &= there[i % 2];
                        }
                    }
                }
                if (half == 0) {
                    meet<FREE>();
                    // The group that computed the last tile's queries has done with the last item's keys.
                    if (!last) {
                        int share = (GROUPS * TILE / 8 + tiles - 1) / tiles * 8, begin = tile * share;
                        fetch_sides(item(shape, following), 1 - buffer, begin, min(begin + share, GROUPS * TILE));
                    }
                    commit();
                }
                if (active) {
                    u32 to = base + SCORES + (group * TILE + warp * 16 + lane / 4) * ROW + lane % 4 * 4;
#pragma unroll
                    for (int n = 0; n < 4; n++) {
                        u32 place = to + (((half * 4 + n) ^ lane / 4) << 4);
                        write_word(place, sloped[n / 2][n % 2 * 2]);
                        write_word(place + 8 * ROW, sloped[n / 2][n % 2 * 2 + 1]);
                    }
                    begin();
#pragma unroll
                    for (int k = 0; k < 2; k++)
                        multiply(dv, dropped[k], factor(slopes + (half * 32 + k * 16) * ROW));
#pragma unroll
                    for (int k = 0; k < 2; k++)
                        multiply(dk, sloped[k], factor(queries + (half * 32 + k * 16) * ROW));
                    finish();
                }
            }
            publish();
            auto prepare = [&] {
                if (!more && last) return;
                wait<0>();
                write_facts(1 - stage);
                publish();
                meet<READY>();
            };
            if (number % GROUPS == group) {
                meet<FULL>();
#pragma unroll 1
                for (int half = 0; half < 2; half++) { // of the columns
                    float sum[4][4];
                    begin();
                    multiply<1>(sum, factor(base + SCORES), factor(keys + half * 64), 0);
                    for (int k = 1; k * 16 < own.count; k++)
                        multiply<1>(sum, factor(base + SCORES + k * 16 * ROW),
                                        factor(keys + half * 64 + k * 16 * ROW), 1);
                    commit_products();
                    if (half == 0) prepare();
                    wait_products();
                    put(dq + (u64)(own.first + tile * TILE) * dim + own.head * HEAD + half * 32, dim, sum, shape.scale,
                        shape.scale, warp * 16 + lane / 4, own.rows - tile * TILE);
                }
            } else {
                pass<FULL>();
                prepare();
            }
        }
        if (active) {
            bf16 *to = dkv + (u64)own.from * 2 * dim + own.head * HEAD;
            put(to, 2 * dim, dk, shape.scale, shape.scale, row, own.count);
            put(to + dim, 2 * dim, dv, 1.0f, 1.0f, row, own.count);
        }
        if (last) return;
        at = following;
        own = item(shape, at);
        buffer = 1 - buffer;
    }
}
