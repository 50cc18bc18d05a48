// Attention in plain loops: what attention.cu and hopper.cu compute, written to be read first. Tests compare both
// with it; training never runs it.
//
// For each head of each sequence, with queries q, keys k and values v of `width` columns:
//
//     s[j] = scale * q . k[j]                      scores
//     p[j] = exp(s[j]) / sum over j of exp(s[j])   attention weights
//     y    = sum over j of m[j] * p[j] * v[j]      m: dropout, 0 or 1 / (1 - rate)
//
// One warp has one row; lane l has columns l, l + 32, l + 64 and l + 96 of the head. Sums are f32.

static constexpr int COLUMNS = 4; // of a lane: heads have at most 128 columns

// One row of a head, spread over the warp.
struct Row {
    float own[COLUMNS];
    INLINE Row() {
        for (int i = 0; i < COLUMNS; i++) own[i] = 0.0f;
    }
    INLINE Row(const bf16 *from, int width) {
        for (int i = 0; i < COLUMNS; i++) {
            int col = threadIdx.x + 32 * i;
            own[i] = col < width ? wide(from[col]) : 0.0f;
        }
    }
    INLINE float dot(const Row &other) const {
        float sum = 0.0f;
        for (int i = 0; i < COLUMNS; i++) sum += own[i] * other.own[i];
        return warp_sum(sum);
    }
    // this = this * keep + other * add
    INLINE void mix(float keep, const Row &other, float add) {
        for (int i = 0; i < COLUMNS; i++) own[i] = own[i] * keep + other.own[i] * add;
    }
    INLINE void write(bf16 *to, int width, float factor) const {
        for (int i = 0; i < COLUMNS; i++) {
            int col = threadIdx.x + 32 * i;
            if (col < width) to[col] = narrow(own[i] * factor);
        }
    }
};

// The head of one sequence that a block has.
struct Head {
    int number, width, dim;
    u32 query, queries, key, keys; // the first row of each, and how many
    INLINE Head(const Shape &shape) {
        int sequence = blockIdx.z;
        number = blockIdx.y;
        width = shape.width;
        dim = shape.dim;
        query = shape.queries[sequence];
        queries = shape.queries[sequence + 1] - query;
        key = shape.keys[sequence];
        keys = shape.keys[sequence + 1] - key;
    }
    INLINE u64 query_at(u32 i) const { return (u64)(query + i) * dim + number * width; }
    INLINE u64 key_at(u32 j) const { return (u64)(key + j) * 2 * dim + number * width; } // values are `dim` after
};

// What dropout multiplies the weight of query i and key j by.
INLINE float dropout_factor(const Shape &shape, const Head &head, const u8 *mask, u32 i, u32 j) {
    if (!shape.drop.threshold) return 1.0f;
    const u16 *words = (const u16 *)(mask + mask_offset(shape, head.query + i, head.number, j / 128));
    return words[j % 128 / 16] >> (j % 16) & 1 ? shape.drop.scale : 0.0f;
}

// The forward pass; block x of a head has query x.
//
// Online softmax (Milakov and Gimelshein 2018): the weights are needed relative to the highest score, which is
// known only after the last key. So keep the highest so far, and whenever it rises, shrink what was summed up by
// exp(old - new): the result is as if the final one had been known from the start.
extern "C" __global__ void attention_reference(const bf16 *q, const bf16 *kv, Shape shape, bf16 *y, float *lse,
                                               const u8 *mask) {
    Head head(shape);
    u32 i = blockIdx.x;
    if (i >= head.queries) return;
    Row query(q + head.query_at(i), head.width), out;
    float top = -infinity(), sum = 0.0f;
    for (u32 j = 0; j < head.keys; j++) {
        Row key(kv + head.key_at(j), head.width), value(kv + head.key_at(j) + head.dim, head.width);
        float score = query.dot(key) * shape.scale * LOG2E; // to base 2, like the exponentials below
        float highest = fmaxf(top, score);
        float shrink = exp2f(top - highest), weight = exp2f(score - highest);
        sum = sum * shrink + weight; // the softmax is over all weights, dropped or not
        out.mix(shrink, value, weight * dropout_factor(shape, head, mask, i, j));
        top = highest;
    }
    out.write(y + head.query_at(i), head.width, 1.0f / sum);
    if (threadIdx.x == 0) lse[lse_offset(shape, head.query + i, head.number)] = top + log2f(sum);
}

// A pair of a query and a key in the backward pass: its weight, recomputed from the saved logsumexp, and the
// gradient of its score,
//
//     ds[j] = p[j] * (m[j] * dy . v[j] - delta),   delta = sum over j of m[j] * p[j] * dy . v[j] = y . dy
struct PairGrad {
    float dropped, dscore; // m * p, and ds
    INLINE PairGrad(const Shape &shape, const Row &query, const Row &key, const Row &value, const Row &dy, float lse,
                    float delta, float factor) {
        float weight = exp2f(query.dot(key) * shape.scale * LOG2E - lse);
        dropped = weight * factor;
        dscore = weight * (dy.dot(value) * factor - delta);
    }
};

// dq = scale * sum over j of ds[j] * k[j]; block x of a head has query x.
extern "C" __global__ void attention_reference_dq(const bf16 *q, const bf16 *kv, Shape shape, const bf16 *y,
                                                  const float *lse, const u8 *mask, const bf16 *dy, bf16 *dq) {
    Head head(shape);
    u32 i = blockIdx.x;
    if (i >= head.queries) return;
    Row query(q + head.query_at(i), head.width), out(y + head.query_at(i), head.width);
    Row dout(dy + head.query_at(i), head.width), sum;
    float row_lse = lse[lse_offset(shape, head.query + i, head.number)], delta = out.dot(dout);
    for (u32 j = 0; j < head.keys; j++) {
        Row key(kv + head.key_at(j), head.width), value(kv + head.key_at(j) + head.dim, head.width);
        PairGrad pair(shape, query, key, value, dout, row_lse, delta, dropout_factor(shape, head, mask, i, j));
        sum.mix(1.0f, key, pair.dscore);
    }
    sum.write(dq + head.query_at(i), head.width, shape.scale);
}

// dk = scale * sum over queries of ds * q, dv = sum over queries of m * p * dy; block x of a head has key x.
extern "C" __global__ void attention_reference_dkv(const bf16 *q, const bf16 *kv, Shape shape, const bf16 *y,
                                                   const float *lse, const u8 *mask, const bf16 *dy, bf16 *dkv) {
    Head head(shape);
    u32 j = blockIdx.x;
    if (j >= head.keys) return;
    Row key(kv + head.key_at(j), head.width), value(kv + head.key_at(j) + head.dim, head.width), dk, dv;
    for (u32 i = 0; i < head.queries; i++) {
        Row query(q + head.query_at(i), head.width), out(y + head.query_at(i), head.width);
        Row dout(dy + head.query_at(i), head.width);
        float row_lse = lse[lse_offset(shape, head.query + i, head.number)], delta = out.dot(dout);
        PairGrad pair(shape, query, key, value, dout, row_lse, delta, dropout_factor(shape, head, mask, i, j));
        dk.mix(1.0f, query, pair.dscore);
        dv.mix(1.0f, dout, pair.dropped);
    }
    dk.write(dkv + head.key_at(j), head.width, shape.scale);
    dv.write(dkv + head.key_at(j) + head.dim, head.width, 1.0f);
}
