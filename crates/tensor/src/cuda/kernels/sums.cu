// Sums over rows of matrices and of partial sums; f64 sums of f32 matmuls.

struct Identity {
    static constexpr bool CHANGES = false, SUMS_STORED = false;
    static INLINE float of(float) { return 1.0f; }
};
#define COLUMN_SUMS(V)                                                                                     \
    extern "C" __global__ void column_sums_##V(bf16 *dy, int rows, int cols, int pitch, int height,        \
                                               float *partial, u32 *arrived, float *out, int accumulate) { \
        column_sums<V, Identity>(dy, 0, rows, cols, pitch, height, partial, arrived, out, accumulate);     \
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

// sum = (sum +) x, `count` numbers.
extern "C" __global__ void add_f64(double *sum, const float *x, u64 count, int accumulate) {
    u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count) sum[at] = (accumulate ? sum[at] : 0.0) + x[at];
}
