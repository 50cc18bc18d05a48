// GELU, and sums over rows: gradients of biases. Sums are taken in two stages in a fixed order, so
// that the same input gives the same bits: the only atomic is a count of blocks.

extern "C" __global__ void gelu_forward(const bf16 *z, bf16 *y, u64 count) {
    u64 at = 8 * ((u64)blockIdx.x * blockDim.x + threadIdx.x);
    float each[8];
    if (at + 8 <= count) {
        load<8>(z + at, each);
#pragma unroll
        for (int i = 0; i < 8; i++) each[i] = gelu(each[i]);
        store<8>(y + at, each);
    } else {
        for (; at < count; at++) y[at] = narrow(gelu(wide(z[at])));
    }
}

// out = (out +) the sums of the columns of `dy`; where `z` is given, `dy` is first multiplied by GELU's
// slope there and written back. Eight warps take this block's rows by turns; what they find goes to
// partial[blockIdx.y], and the block that comes last adds that up, in the order of the blocks.
template <int V, bool GELU>
INLINE void column_sums(bf16 *dy, const bf16 *z, int rows, int cols, int pitch, int height, float *partial,
                        u32 *arrived, float *out, int accumulate) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int col = (blockIdx.x * 32 + lane) * V;
    int end = min(rows, (int)(blockIdx.y + 1) * height);
    float sum[V] = {};
    if (col < cols) {
#pragma unroll 4
        for (int row = blockIdx.y * height + warp; row < end; row += 8) {
            u64 at = (u64)row * pitch + col;
            float each[V];
            load<V>(dy + at, each);
            if (GELU) {
                float before[V];
                load<V>(z + at, before);
#pragma unroll
                for (int i = 0; i < V; i++) each[i] *= gelu_slope(before[i]);
                store<V>(dy + at, each);
            }
#pragma unroll
            for (int i = 0; i < V; i++) sum[i] += each[i];
        }
    }
    __shared__ float sums[8][32 * V];
#pragma unroll
    for (int i = 0; i < V; i++) sums[warp][lane * V + i] = sum[i];
    __syncthreads();
    for (int i = threadIdx.x; i < 32 * V; i += blockDim.x) {
        int at = blockIdx.x * 32 * V + i;
        if (at >= cols) continue;
        float total = 0.0f;
        for (int w = 0; w < 8; w++) total += sums[w][i];
        partial[(u64)blockIdx.y * cols + at] = total;
    }
    if (!out) return;
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    // The count begins at 0 again by itself.
    if (threadIdx.x == 0) last = atomicInc(arrived + blockIdx.x, gridDim.y - 1) == gridDim.y - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
#pragma unroll
    for (int i = 0; i < V; i++) sum[i] = 0.0f;
#pragma unroll 2
    for (int b = warp; b < gridDim.y; b += 8) {
#pragma unroll
        for (int i = 0; i < V; i++) {
            int at = (blockIdx.x * V + i) * 32 + lane;
            if (at < cols) sum[i] += __ldcg(partial + (u64)b * cols + at);
        }
    }
#pragma unroll
    for (int i = 0; i < V; i++) sums[warp][i * 32 + lane] = sum[i];
    __syncthreads();
    for (int i = threadIdx.x; i < 32 * V; i += blockDim.x) {
        int at = blockIdx.x * 32 * V + i;
        if (at >= cols) continue;
        float total = accumulate ? out[at] : 0.0f;
        for (int w = 0; w < 8; w++) total += sums[w][i];
        out[at] = total;
    }
}
#define COLUMN_SUMS(V)                                                                                     \
    extern "C" __global__ void column_sums_##V(bf16 *dy, int rows, int cols, int pitch, int height,        \
                                               float *partial, u32 *arrived, float *out, int accumulate) { \
        column_sums<V, false>(dy, 0, rows, cols, pitch, height, partial, arrived, out, accumulate);        \
    }                                                                                                      \
    extern "C" __global__ void gelu_backward_##V(bf16 *dy, const bf16 *z, int rows, int cols, int height,  \
                                                 float *partial, u32 *arrived, float *out,                 \
                                                 int accumulate) {                                         \
        column_sums<V, true>(dy, z, rows, cols, cols, height, partial, arrived, out, accumulate);          \
    }
COLUMN_SUMS(8)
COLUMN_SUMS(1)

// out = (out +) the sum of `count` rows of `partial`, `stride` apart. blockIdx.y chooses one of two
// lists that lie `cols` apart in each row, and where it goes. 32 columns by 32 rows of threads.
extern "C" __global__ void __launch_bounds__(1024) sum_partials(
    const float *partial, int count, int stride, int cols, float *first, int add_first, float *second, int add_second) {
    float *out = blockIdx.y ? second : first;
    int add = blockIdx.y ? add_second : add_first;
    int col = blockIdx.x * 32 + threadIdx.x;
    if (!out) return;
    partial += blockIdx.y * cols;
    float sum = 0.0f;
    if (col < cols) {
#pragma unroll 4
        for (int i = threadIdx.y; i < count; i += 32) sum += partial[(u64)i * stride + col];
    }
    __shared__ float sums[32][33];
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    // A warp for each column.
    float total = warp_sum(sums[threadIdx.x][threadIdx.y]);
    col = blockIdx.x * 32 + threadIdx.y;
    if (threadIdx.x == 0 && col < cols) out[col] = (add ? out[col] : 0.0f) + total;
}
