// LayerNorm (Ba et al. 2016), alone or after a residual connection with dropout. A warp has a row, which stays in its
// registers: SLABS times 32 * LANES columns, both fixed when compiling.

static constexpr int V = LANES, N = SLABS;

template <bool ADD, bool NORM>
INLINE void forward(const bf16 *x, const bf16 *update, const Dropout &drop, const float *gamma, const float *beta,
                    float epsilon, int rows, int cols, bf16 *sum, bf16 *y, float *stats) {
    int lane = threadIdx.x % 32, row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (row >= rows) return;
    u64 start = (u64)row * cols;
    float each[N][V];
    float total = 0.0f;
#pragma unroll
    for (int n = 0; n < N; n++) {
        int col = (n * 32 + lane) * V;
        u32 keep = ADD && drop.threshold ? kept<V>(drop, row, n) : 0xff;
#pragma unroll
        for (int i = 0; i < V; i++) each[n][i] = 0.0f;
        if (col >= cols) continue;
        load<V>(x + start + col, each[n]);
        if (ADD) {
            float more[V];
            load<V>(update + start + col, more);
#pragma unroll
            for (int i = 0; i < V; i++)
                each[n][i] = rounded(each[n][i] + (keep >> i & 1 ? more[i] * drop.scale : 0.0f));
            store<V>(sum + start + col, each[n]);
        }
#pragma unroll
        for (int i = 0; i < V; i++) total += each[n][i];
    }
    if (!NORM) return;
    float mean = warp_sum(total) / cols, squares = 0.0f;
#pragma unroll
    for (int n = 0; n < N; n++) {
        if ((n * 32 + lane) * V >= cols) continue;
#pragma unroll
        for (int i = 0; i < V; i++) squares += (each[n][i] - mean) * (each[n][i] - mean);
    }
    float inverse = 1.0f / sqrtf(warp_sum(squares) / cols + epsilon);
#pragma unroll
    for (int n = 0; n < N; n++) {
        int col = (n * 32 + lane) * V;
        if (col >= cols) continue;
        float g[V], b[V];
        load<V>(gamma + col, g);
        load<V>(beta + col, b);
#pragma unroll
        for (int i = 0; i < V; i++) g[i] = (each[n][i] - mean) * inverse * g[i] + b[i];
        store<V>(y + start + col, g);
    }
    if (lane == 0) {
        stats[2 * row] = mean;
        stats[2 * row + 1] = inverse;
    }
}

// Whether the column sums of what is written to `dropped` are computed too: where they fit.
static constexpr bool TAKES_SUMS = N * V <= 32;

// The backward pass: writes or adds to `dx`, writes its dropout where `dropped` is given, and leaves this
// block's share of the gradients of scale and offset, and of the sum of `dropped`, in partial[blockIdx.x].
INLINE void backward(const bf16 *x, const float *stats, const float *gamma, const bf16 *dy, int rows, int cols, bf16 *dx,
                     int accumulate, const Dropout &drop, bf16 *dropped, float *partial) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    float dgamma[N][V] = {}, dbeta[N][V] = {};
    // The update's sums are kept in shared memory, since registers are few: each lane's own.
    __shared__ float updates[8][TAKES_SUMS ? N * V : 1][32];
    if (TAKES_SUMS && dropped) {
#pragma unroll
        for (int i = 0; i < N * V; i++) updates[warp][i][lane] = 0.0f;
    }
    for (int row = blockIdx.x * warps + warp; row < rows; row += gridDim.x * warps) {
        u64 start = (u64)row * cols;
        float mean = stats[2 * row], inverse = stats[2 * row + 1];
        // Read once, widened twice: registers are few, and more warps hide more of the memory.
        Raw<V> raw_x[N], raw_dy[N];
        float flat = 0.0f, along = 0.0f;
#pragma unroll
        for (int n = 0; n < N; n++) {
            int col = (n * 32 + lane) * V;
            if (col >= cols) continue;
            raw_x[n].read(x + start + col);
            raw_dy[n].read(dy + start + col);
        }
#pragma unroll
        for (int n = 0; n < N; n++) {
            int col = (n * 32 + lane) * V;
            if (col >= cols) continue;
            float normed[V], scaled[V], g[V];
            raw_x[n].widen(normed);
            raw_dy[n].widen(scaled);
            load<V>(gamma + col, g);
#pragma unroll
            for (int i = 0; i < V; i++) {
                normed[i] = (normed[i] - mean) * inverse;
                dgamma[n][i] += scaled[i] * normed[i];
                dbeta[n][i] += scaled[i];
                scaled[i] *= g[i];
                flat += scaled[i];
                along += scaled[i] * normed[i];
            }
        }
        flat = warp_sum(flat) / cols;
        along = warp_sum(along) / cols;
#pragma unroll
        for (int n = 0; n < N; n++) {
            int col = (n * 32 + lane) * V;
            u32 keep = dropped && drop.threshold ? kept<V>(drop, row, n) : 0xff;
            if (col >= cols) continue;
            float normed[V], scaled[V], g[V], out[V];
            raw_x[n].widen(normed);
            raw_dy[n].widen(scaled);
            load<V>(gamma + col, g);
            if (accumulate) load<V>(dx + start + col, out);
#pragma unroll
            for (int i = 0; i < V; i++) {
                float here = inverse * (scaled[i] * g[i] - flat - (normed[i] - mean) * inverse * along);
                out[i] = accumulate ? out[i] + here : here;
            }
            store<V>(dx + start + col, out);
            if (dropped) {
#pragma unroll
                for (int i = 0; i < V; i++) {
                    out[i] = keep >> i & 1 ? out[i] * drop.scale : 0.0f;
                    if (TAKES_SUMS) updates[warp][n * V + i][lane] += out[i];
                }
                store<V>(dropped + start + col, out);
            }
        }
    }
    __shared__ float sums[8][32 * V];
    int lists = TAKES_SUMS && dropped ? 3 : 2;
#pragma unroll
    for (int n = 0; n < N; n++) {
#pragma unroll
        for (int list = 0; list < 3; list++) {
            if (list == lists) break;
#pragma unroll
            for (int i = 0; i < V; i++)
                sums[warp][lane * V + i] = list == 0 ? dgamma[n][i] : list == 1 ? dbeta[n][i] : updates[warp][TAKES_SUMS ? n * V + i : 0][lane];
            __syncthreads();
            for (int i = threadIdx.x; i < 32 * V; i += blockDim.x) {
                int col = n * 32 * V + i;
                float total = 0.0f;
                for (int w = 0; w < warps; w++) total += sums[w][i];
                if (col < cols) partial[((u64)blockIdx.x * lists + list) * cols + col] = total;
            }
            __syncthreads();
        }
    }
}

extern "C" __global__ void residual(const bf16 *x, const bf16 *update, Dropout drop, int rows, int cols, bf16 *sum) {
    forward<true, false>(x, update, drop, 0, 0, 0.0f, rows, cols, sum, 0, 0);
}
extern "C" __global__ void layer_norm(const bf16 *x, const float *gamma, const float *beta, float epsilon, int rows, int cols,
                                bf16 *y, float *stats) {
    Dropout none = {};
    forward<false, true>(x, 0, none, gamma, beta, epsilon, rows, cols, 0, y, stats);
}
extern "C" __global__ void residual_norm(const bf16 *x, const bf16 *update, Dropout drop, const float *gamma,
                                         const float *beta, float epsilon, int rows, int cols, bf16 *sum, bf16 *y,
                                         float *stats) {
    forward<true, true>(x, update, drop, gamma, beta, epsilon, rows, cols, sum, y, stats);
}
extern "C" __global__ void __launch_bounds__(256, N * V > 32 ? 1 : 2)
    norm_grad(const bf16 *x, const float *stats, const float *gamma, const bf16 *dy, int rows, int cols, bf16 *dx,
              int accumulate, Dropout drop, bf16 *dropped, float *partial) {
    backward(x, stats, gamma, dy, rows, cols, dx, accumulate, drop, dropped, partial);
}
