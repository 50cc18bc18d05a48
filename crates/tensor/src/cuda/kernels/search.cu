// The best few of every row and of every column of a tile of scores.
//
// A warp holds a list: lane i has the i-th best so far, and whose it is. The higher score comes first,
// of equal ones the lower number, whatever the order in which they are offered. So a list has 32 places
// at most; `k` of them count, and only those are read and written.

#define LOWEST __uint_as_float(0xff800000u)

// How a dot product becomes a score.
enum Kind : int {
    DOT = 0,
    CSLS = 1,            // Lample et al. 2018
    MARGIN_DISTANCE = 2, // Artetxe and Schwenk 2019, as is
    MARGIN_RATIO = 3,
};
struct Rule {
    // For each row and column of the whole matrix, the mean similarity to its nearest neighbours.
    const float *of_rows, *of_cols;
    Kind kind;
    // The smallest divisor of MARGIN_RATIO.
    float least;
    // Scores whose hash is above the bound are dropped (stochastic dropout, Artetxe et al. 2018).
    u32 seed, bound;
};

INLINE u32 mix(u32 x) {
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

INLINE float score(float x, const Rule &rule, u32 row, u32 col) {
    if (rule.kind != DOT) {
        float own = rule.of_rows[row], other = rule.of_cols[col];
        if (rule.kind == CSLS) x = 2.0f * x - own - other;
        if (rule.kind == MARGIN_DISTANCE) x -= (own + other) / 2.0f;
        if (rule.kind == MARGIN_RATIO) x /= fmaxf((own + other) / 2.0f, rule.least);
    }
    if (rule.bound != ALL && mix(mix(row ^ rule.seed) ^ col * 0x9e3779b9u) > rule.bound) x = LOWEST;
    return x;
}

struct List {
    float score;
    u32 id;

    // Where it was left, or empty.
    INLINE void open(bool kept, const float *scores, const u32 *ids, u64 at, int k) {
        int lane = threadIdx.x % 32;
        bool here = kept && lane < k;
        score = here ? scores[at * k + lane] : LOWEST;
        id = here ? ids[at * k + lane] : ALL;
    }

    INLINE void close(float *scores, u32 *ids, u64 at, int k) const {
        int lane = threadIdx.x % 32;
        if (lane >= k) return;
        scores[at * k + lane] = score;
        ids[at * k + lane] = id;
    }

    // Takes in what each lane has to offer, where `there`. All lanes of the warp come here together.
    INLINE void offer(float x, u32 of, bool there, int k) {
        int lane = threadIdx.x % 32;
        float floor = __shfl_sync(ALL, score, k - 1);
        u32 wanting = __ballot_sync(ALL, there && x >= floor);
        while (wanting) {
            int from = __ffs(wanting) - 1;
            wanting &= wanting - 1;
            float next = __shfl_sync(ALL, x, from);
            u32 next_id = __shfl_sync(ALL, of, from);
            // The list is in order, so those that stay before it are its first lanes.
            bool ahead = score > next || (score == next && id < next_id);
            int place = __popc(__ballot_sync(ALL, ahead));
            float left = __shfl_up_sync(ALL, score, 1);
            u32 left_id = __shfl_up_sync(ALL, id, 1);
            if (lane == place) {
                score = next;
                id = next_id;
            } else if (lane > place) {
                score = left;
                id = left_id;
            }
        }
    }
};

// tile: rows x cols, the first of which are `first_row` and `first_col` of the whole. A warp for each row,
// four times 32 columns at a time. Lists begin empty at the first column.
extern "C" __global__ void best_of_rows(
    const float *tile, int rows, int cols, u32 first_row, u32 first_col, Rule rule, int k, float *scores, u32 *ids) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    u32 number = first_row + row;
    List list;
    list.open(first_col > 0, scores, ids, number, k);
    tile += (u64)row * cols;
    for (int start = 0; start < cols; start += 4 * 32) {
        float x[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int col = start + i * 32 + lane;
            x[i] = col < cols ? score(tile[col], rule, number, first_col + col) : LOWEST;
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int col = start + i * 32 + lane;
            list.offer(x[i], first_col + col, col < cols, k);
        }
    }
    list.close(scores, ids, number, k);
}

// The same for columns: eight warps take 32 columns, four each, 32 rows at a time, transposed in shared
// memory. Lists begin empty at the first row.
extern "C" __global__ void best_of_columns(
    const float *tile, int rows, int cols, u32 first_row, u32 first_col, Rule rule, int k, float *scores, u32 *ids) {
    __shared__ float transposed[32][33];
    int lane = threadIdx.x % 32, part = threadIdx.x / 32 * 4, first = blockIdx.x * 32;
    List lists[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int col = first + part + i;
        lists[i].open(first_row > 0 && col < cols, scores, ids, first_col + col, k);
    }
    for (int start = 0; start < rows; start += 32) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int row = start + part + i, col = first + lane;
            bool there = row < rows && col < cols;
            float x = there ? tile[(u64)row * cols + col] : LOWEST;
            transposed[part + i][lane] = there ? score(x, rule, first_row + row, first_col + col) : LOWEST;
        }
        __syncthreads();
        int row = start + lane;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            bool there = row < rows && first + part + i < cols;
            lists[i].offer(transposed[lane][part + i], first_row + row, there, k);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int col = first + part + i;
        if (col < cols) lists[i].close(scores, ids, first_col + col, k);
    }
}
