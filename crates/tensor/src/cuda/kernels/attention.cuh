// What all attention kernels share: the shape, asynchronous copies (cp.async), and the dropout mask.
//
// Read attention_reference.cu first: the same computation in plain loops. attention.cu (mma.sync, every card)
// and hopper.cu (wgmma and TMA, Hopper) are FlashAttention-2 (Dao 2023) on tensor cores.

static constexpr float LOG2E = 1.4426950408889634f;

struct Shape {
    const u32 *queries, *keys; // where each sequence begins
    int heads, dim, width;
    int groups; // of 128 keys, in the longest sequence; 0 without dropout
    int rows;   // all queries
    float scale;
    Dropout drop;
};

INLINE float infinity() { return __int_as_float(0x7f800000); }

INLINE u32 address(const void *shared) { return (u32)__cvta_generic_to_shared(shared); }

INLINE void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int PENDING> INLINE void wait() { asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory"); }

// The saved dropout mask of one query and head: 16 bytes for every 128 keys, of which number p is a word of
// 16 bits for keys 16 * p onwards, 1 where the weight is kept. A row of a 16 x 8 result is two columns of a
// quarter of a warp's lanes: shifted down by 2 * (lane % 4), column 8 * n + 2 * (lane % 4) + e of 64 keys is
// bit `mask_bit(n, e)` of word n / 4 of 32 bits.
INLINE u64 mask_offset(const Shape &shape, u32 query, int head, int group) {
    return (((u64)head * shape.rows + query) * shape.groups + group) * 16;
}
// Where the logsumexp of a query's scores is saved, to base 2.
INLINE u64 lse_offset(const Shape &shape, u32 query, int head) { return (u64)head * shape.rows + query; }
INLINE constexpr u32 mask_bit(int n, int e) { return 1u << (n / 2 % 2 * 16 + n % 2 * 8 + e); }

// Draws the mask. Four threads draw for 128 keys, of which thread j has columns 4 * j to 4 * j + 3 of every
// 16; they exchange, so that each writes two of the eight words.
extern "C" __global__ void attention_dropout(Shape shape, u32 words, u32 *mask) {
    u32 at = blockIdx.x * blockDim.x + threadIdx.x, own = at % 4;
    u32 index = at / 4 / shape.groups, row = index % shape.rows * shape.heads + index / shape.rows;
    u32 counter = at / 4 % shape.groups * 16 + own * 4, drawn = 0, kept = 0;
#pragma unroll
    for (u32 i = 0; i < 4; i++) drawn |= kept_planes<4>(shape.drop, counter + i, row) << i;
#pragma unroll
    for (u32 from = 0; from < 4; from++) {
        u32 both = __shfl_sync(ALL, drawn, threadIdx.x / 4 * 4 + from) >> (8 * own);
        kept |= (both & 0xf) << (4 * from) | (both >> 4 & 0xf) << (4 * from + 16);
    }
    if (at < words) mask[at] = kept;
}
