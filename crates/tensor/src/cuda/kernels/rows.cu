// Rows gathered from tables, and scattered back.

struct Gather {
    const void *table;
    const u32 *rows;
};
struct Gathers {
    Gather each[4];
};

// sum[i] = the sum over tables of table[rows[i]]; a warp for each row.
template <int V, class T> INLINE void gather_sum(const Gathers &tables, int count, int rows, int cols, bf16 *sum) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (row >= rows) return;
    for (int col = threadIdx.x % 32 * V; col < cols; col += 32 * V) {
        float total[V] = {};
        for (int t = 0; t < count; t++) {
            const T *table = (const T *)tables.each[t].table;
            float each[V];
            load<V>(table + (u64)tables.each[t].rows[row] * cols + col, each);
#pragma unroll
            for (int i = 0; i < V; i++) total[i] += each[i];
        }
        store<V>(sum + (u64)row * cols + col, total);
    }
}
#define GATHER(NAME, T)                                                                                          \
    extern "C" __global__ void NAME##_8(Gathers tables, int count, int rows, int cols, bf16 *sum) {              \
        gather_sum<8, T>(tables, count, rows, cols, sum);                                                        \
    }                                                                                                            \
    extern "C" __global__ void NAME##_1(Gathers tables, int count, int rows, int cols, bf16 *sum) {              \
        gather_sum<1, T>(tables, count, rows, cols, sum);                                                        \
    }
GATHER(gather_full, float)
GATHER(gather_working, bf16)

// Some sources of one row of the table: order[begin..end]. Where all of a row's sources are in one
// group the sum goes to the table, else to a row of `partial`.
struct Group {
    u32 row, begin, end;
    int slot;
};

template <int V, class T>
INLINE void scatter_groups(const bf16 *x, const u32 *order, const Group *groups, int count, int cols, T *table, float *partial) {
    int at = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (at >= count) return;
    Group group = groups[at];
    for (int col = threadIdx.x % 32 * V; col < cols; col += 32 * V) {
        float total[V] = {};
#pragma unroll 4
        for (u32 i = group.begin; i < group.end; i++) {
            float each[V];
            load<V>(x + (u64)order[i] * cols + col, each);
#pragma unroll
            for (int k = 0; k < V; k++) total[k] += each[k];
        }
        if (group.slot < 0) {
            float before[V];
            T *to = table + (u64)group.row * cols + col;
            load<V>(to, before);
#pragma unroll
            for (int k = 0; k < V; k++) total[k] += before[k];
            store<V>(to, total);
        } else {
            store<V>(partial + (u64)group.slot * cols + col, total);
        }
    }
}

// Rows of the table with several groups: their slots begin..end.
struct Joint {
    u32 row, begin, end;
};

template <class T>
INLINE void scatter_joints(const float *partial, const Joint *joints, int cols, T *table) {
    Joint joint = joints[blockIdx.x];
    int col = blockIdx.y * blockDim.x + threadIdx.x;
    if (col >= cols) return;
    float total;
    T *to = table + (u64)joint.row * cols + col;
    load<1>(to, &total);
#pragma unroll 8
    for (u32 i = joint.begin; i < joint.end; i++) total += partial[(u64)i * cols + col];
    store<1>(to, &total);
}
#define SCATTER(NAME, T)                                                                                         \
    extern "C" __global__ void NAME##_groups_8(const bf16 *x, const u32 *order, const Group *groups, int count,  \
                                               int cols, T *table, float *partial) {                             \
        scatter_groups<8, T>(x, order, groups, count, cols, table, partial);                                     \
    }                                                                                                            \
    extern "C" __global__ void NAME##_groups_1(const bf16 *x, const u32 *order, const Group *groups, int count,  \
                                               int cols, T *table, float *partial) {                             \
        scatter_groups<1, T>(x, order, groups, count, cols, table, partial);                                     \
    }                                                                                                            \
    extern "C" __global__ void NAME##_joints(const float *partial, const Joint *joints, int cols, T *table) {    \
        scatter_joints<T>(partial, joints, cols, table);                                                         \
    }
SCATTER(scatter_full, float)
SCATTER(scatter_working, bf16)

// The mean of a range of rows: a block for a range and 32 * V columns, of which each warp adds up every
// eighth row.
template <int V> INLINE void row_means(const bf16 *x, const u32 *ranges, int cols, float *y) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, col = (blockIdx.y * 32 + lane) * V;
    u32 begin = ranges[2 * blockIdx.x], end = ranges[2 * blockIdx.x + 1];
    float sum[V] = {};
    for (u32 row = begin + warp; row < end && col < cols; row += 8) {
        float own[V];
        load<V>(x + (u64)row * cols + col, own);
#pragma unroll
        for (int i = 0; i < V; i++) sum[i] += own[i];
    }
    __shared__ float sums[8][32 * V];
#pragma unroll
    for (int i = 0; i < V; i++) sums[warp][lane * V + i] = sum[i];
    __syncthreads();
    float share = end > begin ? 1.0f / (end - begin) : 0.0f;
    for (int i = threadIdx.x; i < 32 * V; i += blockDim.x) {
        int at = blockIdx.y * 32 * V + i;
        if (at >= cols) continue;
        float total = 0.0f;
        for (int w = 0; w < 8; w++) total += sums[w][i];
        y[(u64)blockIdx.x * cols + at] = total * share;
    }
}
extern "C" __global__ void row_means_8(const bf16 *x, const u32 *ranges, int cols, float *y) {
    row_means<8>(x, ranges, cols, y);
}
extern "C" __global__ void row_means_1(const bf16 *x, const u32 *ranges, int cols, float *y) {
    row_means<1>(x, ranges, cols, y);
}

// y[i] = x[i] + scale * table[rows[i]]; a warp for each row. Rounded after the multiplication as on the CPU,
// not fused.
template <class T>
INLINE void add_rows(const T *x, const float *table, const u32 *rows, float scale, int count, int cols, T *y) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (row >= count) return;
    const float *entry = table + (u64)rows[row] * cols;
    for (int col = threadIdx.x % 32; col < cols; col += 32) {
        u64 at = (u64)row * cols + col;
        float each;
        load<1>(x + at, &each);
        each = __fadd_rn(each, __fmul_rn(scale, entry[col]));
        store<1>(y + at, &each);
    }
}
extern "C" __global__ void add_rows_full(const float *x, const float *table, const u32 *rows, float scale, int count,
                                         int cols, float *y) {
    add_rows(x, table, rows, scale, count, cols, y);
}
extern "C" __global__ void add_rows_working(const bf16 *x, const float *table, const u32 *rows, float scale, int count,
                                            int cols, bf16 *y) {
    add_rows(x, table, rows, scale, count, cols, y);
}
