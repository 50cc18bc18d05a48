// What all kernels share: bf16 numbers, rows spread over a warp, counter-based random numbers (Philox).
//
// No header is included, so that nothing but the compiler itself must be found at run time.
// "Working" numbers are bf16: the upper half of an f32. Sums and statistics are always f32.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef u16 bf16;

#define INLINE __device__ __forceinline__

static constexpr u32 ALL = 0xffffffffu;

INLINE float wide(bf16 x) { return __uint_as_float((u32)x << 16); }

// Two numbers side by side, rounded to nearest; `low` comes first in memory.
INLINE u32 pack(float low, float high) {
    u32 both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

INLINE bf16 narrow(float x) { return (bf16)pack(x, 0.0f); }

// V numbers as they lie in memory, for callers that need them twice.
template <int V> struct Raw;
template <> struct Raw<1> {
    bf16 own;
    INLINE void read(const bf16 *from) { own = *from; }
    INLINE void widen(float *x) const { x[0] = wide(own); }
};
template <> struct Raw<8> {
    uint4 own;
    INLINE void read(const bf16 *from) { own = *reinterpret_cast<const uint4 *>(from); }
    INLINE void widen(float *x) const {
        u32 each[4] = {own.x, own.y, own.z, own.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            x[2 * i] = __uint_as_float(each[i] << 16);
            x[2 * i + 1] = __uint_as_float(each[i] & 0xffff0000u);
        }
    }
};

// V consecutive numbers, read or written in one go. V is 8 where rows are whole multiples of it.
template <int V> INLINE void load(const bf16 *from, float *x);
template <> INLINE void load<1>(const bf16 *from, float *x) { x[0] = wide(*from); }
template <> INLINE void load<8>(const bf16 *from, float *x) {
    Raw<8> raw;
    raw.read(from);
    raw.widen(x);
}
template <int V> INLINE void load(const float *from, float *x);
template <> INLINE void load<1>(const float *from, float *x) { x[0] = *from; }
template <> INLINE void load<8>(const float *from, float *x) {
    float4 a = reinterpret_cast<const float4 *>(from)[0], b = reinterpret_cast<const float4 *>(from)[1];
    x[0] = a.x; x[1] = a.y; x[2] = a.z; x[3] = a.w;
    x[4] = b.x; x[5] = b.y; x[6] = b.z; x[7] = b.w;
}
template <int V> INLINE void store(bf16 *to, const float *x);
template <> INLINE void store<1>(bf16 *to, const float *x) { *to = narrow(x[0]); }
template <> INLINE void store<8>(bf16 *to, const float *x) {
    *reinterpret_cast<uint4 *>(to) =
        make_uint4(pack(x[0], x[1]), pack(x[2], x[3]), pack(x[4], x[5]), pack(x[6], x[7]));
}
template <int V> INLINE void store(float *to, const float *x);
template <> INLINE void store<1>(float *to, const float *x) { *to = x[0]; }
template <> INLINE void store<8>(float *to, const float *x) {
    reinterpret_cast<float4 *>(to)[0] = make_float4(x[0], x[1], x[2], x[3]);
    reinterpret_cast<float4 *>(to)[1] = make_float4(x[4], x[5], x[6], x[7]);
}

// Rounds as memory would, so that what is computed now is what the backward pass reads.
INLINE float rounded(float x) { return __uint_as_float(pack(x, 0.0f) << 16); }

// 2 to the power of x; what is too small for an ordinary number becomes 0.
INLINE float fast_exp2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// 1 / x to a few units in the last place.
INLINE float inverse(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

INLINE float warp_sum(float x) {
#pragma unroll
    for (int other = 16; other > 0; other /= 2) x += __shfl_xor_sync(ALL, x, other);
    return x;
}

INLINE float warp_max(float x) {
#pragma unroll
    for (int other = 16; other > 0; other /= 2) x = fmaxf(x, __shfl_xor_sync(ALL, x, other));
    return x;
}

// One stream of dropout decisions; threshold 0 drops nothing.
struct Dropout {
    u32 seed_low, seed_high, step, stream, threshold;
    float scale;
};

// Philox 4x32 with 7 rounds at one counter, as eight decisions: bit APART * p is set where column
// 128 * (counter / 16) + counter % 16 + 16 * p of the row is kept.
template <int APART = 1> INLINE u32 kept_planes(const Dropout &drop, u32 counter, u32 row) {
    u32 a = counter, b = row, c = drop.stream, d = drop.step;
    u32 k0 = drop.seed_low, k1 = drop.seed_high;
#pragma unroll
    for (int round = 0; round < 7; round++) {
        u64 p = (u64)a * 0xD2511F53u, q = (u64)c * 0xCD9E8D57u;
        a = (u32)(q >> 32) ^ b ^ k0;
        b = (u32)q;
        c = (u32)(p >> 32) ^ d ^ k1;
        d = (u32)p;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    // The upper half of a word is compared as the whole word, the lower one shifted up.
    u32 words[4] = {a, b, c, d}, kept = 0, bound = drop.threshold << 16;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (words[i] << 16 >= bound) kept |= 1u << (2 * i * APART);
        if (words[i] >= bound) kept |= 1u << ((2 * i + 1) * APART);
    }
    return kept;
}

// Which of a lane's V columns are kept, where lane l of a warp has columns
// 32 * V * slab + V * l onwards. All lanes must take part.
template <int V> INLINE u32 kept(const Dropout &drop, u32 row, u32 slab);
template <> INLINE u32 kept<1>(const Dropout &drop, u32 row, u32 slab) {
    u32 col = 32 * slab + threadIdx.x % 32;
    return kept_planes(drop, col / 128 * 16 + col % 16, row) >> (col % 128 / 16) & 1;
}
template <> INLINE u32 kept<8>(const Dropout &drop, u32 row, u32 slab) {
    // Each lane draws for one counter, and the warp exchanges: a lane's eight columns lie in one
    // plane of eight counters.
    u32 lane = threadIdx.x % 32;
    u32 drawn = kept_planes(drop, 32 * slab + lane, row), mine = 0;
#pragma unroll
    for (u32 plane = 0; plane < 8; plane++) {
        u32 votes = __ballot_sync(ALL, drawn >> plane & 1);
        if (lane % 16 / 2 == plane) mine = votes;
    }
    return mine >> (lane / 16 * 16 + lane % 2 * 8) & 0xff;
}
