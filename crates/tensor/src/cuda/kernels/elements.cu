// Element by element.

template <class T> INLINE void fill(T *y, float value, u64 count) {
    u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count) store<1>(y + at, &value);
}
extern "C" __global__ void fill_full(float *y, float value, u64 count) { fill(y, value, count); }
extern "C" __global__ void fill_working(bf16 *y, float value, u64 count) { fill(y, value, count); }

// y = x, rounded.
extern "C" __global__ void narrow_all(const float *x, bf16 *y, u64 count) {
    u64 at = 8 * ((u64)blockIdx.x * blockDim.x + threadIdx.x);
    float each[8];
    if (at + 8 <= count) {
        load<8>(x + at, each);
        store<8>(y + at, each);
    } else {
        for (; at < count; at++) y[at] = narrow(x[at]);
    }
}

template <class T> INLINE void add(T *y, const T *x, u64 count) {
    u64 at = 8 * ((u64)blockIdx.x * blockDim.x + threadIdx.x);
    float a[8], b[8];
    if (at + 8 <= count) {
        load<8>(y + at, a);
        load<8>(x + at, b);
#pragma unroll
        for (int i = 0; i < 8; i++) a[i] += b[i];
        store<8>(y + at, a);
    } else {
        for (; at < count; at++) {
            load<1>(y + at, a);
            load<1>(x + at, b);
            a[0] += b[0];
            store<1>(y + at, a);
        }
    }
}
extern "C" __global__ void add_full(float *y, const float *x, u64 count) { add(y, x, count); }
extern "C" __global__ void add_working(bf16 *y, const bf16 *x, u64 count) { add(y, x, count); }

// y = dropout(x); a warp for each row.
template <int V> INLINE void dropout(const bf16 *x, Dropout drop, int rows, int cols, bf16 *y) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (row >= rows) return;
    for (int slab = 0; slab * 32 * V < cols; slab++) {
        u32 keep = drop.threshold ? kept<V>(drop, row, slab) : 0xff;
        int col = slab * 32 * V + threadIdx.x % 32 * V;
        if (col >= cols) continue;
        float each[V];
        load<V>(x + (u64)row * cols + col, each);
#pragma unroll
        for (int i = 0; i < V; i++) each[i] = keep >> i & 1 ? each[i] * drop.scale : 0.0f;
        store<V>(y + (u64)row * cols + col, each);
    }
}
extern "C" __global__ void dropout_8(const bf16 *x, Dropout drop, int rows, int cols, bf16 *y) {
    dropout<8>(x, drop, rows, cols, y);
}
extern "C" __global__ void dropout_1(const bf16 *x, Dropout drop, int rows, int cols, bf16 *y) {
    dropout<1>(x, drop, rows, cols, y);
}
