// What all kernels of attention share: the shape, copies that run ahead, and which weights dropout keeps.

static constexpr float LOG2E = 1.4426950408889634f;

struct Shape {
    const u32 *queries, *keys; // where each sequence begins
    int heads, dim, width;
    int groups; // of 128 keys, in the longest sequence
    int rows;   // all queries
    float scale;
    Dropout drop;
};

INLINE float infinity() { return __int_as_float(0x7f800000); }

INLINE u32 address(const void *shared) { return (u32)__cvta_generic_to_shared(shared); }

INLINE void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int PENDING> INLINE void wait() { asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory"); }

// Which weights are kept, of one query and head: 16 bytes for every 128 keys, of which number p is a
// word of 16 bits for keys 16 * p onwards. A row of a 16 x 8 result is two columns of a quarter of a
// warp's lanes: shifted down by 2 * (lane % 4), column 8 * n + 2 * (lane % 4) + e of 64 keys is bit
// `place(n, e)` of word n / 4 of 32 bits.
INLINE u64 noted(const Shape &shape, u32 query, int head, int group) {
    return (((u64)head * shape.rows + query) * shape.groups + group) * 16;
}
// Where the logarithm, to base 2, of the sum of a query's softmax is noted.
INLINE u64 logged(const Shape &shape, u32 query, int head) { return (u64)head * shape.rows + query; }
INLINE constexpr u32 place(int n, int e) { return 1u << (n / 2 % 2 * 16 + n % 2 * 8 + e); }

// Draws them. Four threads draw for 128 keys, of which thread j has columns 4 * j to 4 * j + 3 of every
// 16; they exchange, so that each writes two of the eight words.
extern "C" __global__ void attention_dropout(Shape shape, u32 words, u32 *notes) {
    u32 at = blockIdx.x * blockDim.x + threadIdx.x, own = at % 4;
    u32 noted = at / 4 / shape.groups, row = noted % shape.rows * shape.heads + noted / shape.rows;
    u32 counter = at / 4 % shape.groups * 16 + own * 4, drawn = 0, kept = 0;
#pragma unroll
    for (u32 i = 0; i < 4; i++) drawn |= kept_planes<4>(shape.drop, counter + i, row) << i;
#pragma unroll
    for (u32 from = 0; from < 4; from++) {
        u32 both = __shfl_sync(ALL, drawn, threadIdx.x / 4 * 4 + from) >> (8 * own);
        kept |= (both & 0xf) << (4 * from) | (both >> 4 & 0xf) << (4 * from + 16);
    }
    if (at < words) notes[at] = kept;
}
