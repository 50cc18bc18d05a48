// Sums over rows: gradients of biases. Sums are taken in two stages in a fixed order, so that the same
// input gives the same bits: the only atomic is a count of blocks.

// out = (out +) the sums of the columns of `dy`; where Derivative::CHANGES, `dy` is first multiplied by
// Derivative::of(z) and written back. Eight warps take this block's rows in turn; their sums go to
// partial[blockIdx.y], and the block that finishes last adds those up, in the order of the blocks.
template <int V, class Derivative>
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
            if (Derivative::CHANGES) {
                float before[V];
                load<V>(z + at, before);
#pragma unroll
                for (int i = 0; i < V; i++) each[i] *= Derivative::of(before[i]);
                store<V>(dy + at, each);
                if (Derivative::SUMS_STORED) {
#pragma unroll
                    for (int i = 0; i < V; i++) each[i] = rounded(each[i]);
                }
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
