// Cross-entropy of logits over a vocabulary. A block has a row; logits are bf16, everything else f32. Maxima
// and sums are taken in one pass by online softmax (Milakov and Gimelshein 2018).

INLINE float block_reduce(float x, bool largest) {
    __shared__ float each[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    x = largest ? warp_max(x) : warp_sum(x);
    __syncthreads();
    if (lane == 0) each[warp] = x;
    __syncthreads();
    x = lane < warps ? each[lane] : largest ? -__int_as_float(0x7f800000) : 0.0f;
    return largest ? warp_max(x) : warp_sum(x);
}

// losses[row] = the loss, and 1 where the target had the highest score. With `weight` not 0, scores
// become weight * (probability - one at the target). `pitch` is a multiple of 8.
extern "C" __global__ void __launch_bounds__(512)
    cross_entropy(bf16 *scores, const u32 *targets, int vocabulary, int pitch, float weight, float *losses) {
    int row = blockIdx.x;
    bf16 *own = scores + (u64)row * pitch;
    u32 target = targets[row];
    const float LOG2E = 1.4426950408889634f;
    float top = -__int_as_float(0x7f800000), sum = 0.0f;
    // Each thread keeps its own highest score and the sum of exponentials relative to it.
    for (int col = 8 * threadIdx.x; col < vocabulary; col += 8 * blockDim.x) {
        float each[8], best = top;
        load<8>(own + col, each);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            if (col + i >= vocabulary) each[i] = -__int_as_float(0x7f800000);
            best = fmaxf(best, each[i]);
        }
        if (best > top) {
            sum *= fast_exp2((top - best) * LOG2E);
            top = best;
        }
        float base = top * LOG2E;
#pragma unroll
        for (int i = 0; i < 8; i++) sum += fast_exp2(each[i] * LOG2E - base);
    }
    float highest = block_reduce(top, true);
    sum = block_reduce(sum * fast_exp2((top - highest) * LOG2E), false);
    float lse = highest + logf(sum), chosen = wide(own[target]);
    __syncthreads();
    if (threadIdx.x == 0) {
        losses[2 * row] = lse - chosen;
        losses[2 * row + 1] = chosen >= highest ? 1.0f : 0.0f;
    }
    if (weight == 0.0f) return;
    float base = lse * LOG2E;
    for (int col = 8 * threadIdx.x; col < vocabulary; col += 8 * blockDim.x) {
        float each[8];
        load<8>(own + col, each);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            float grad = fast_exp2(each[i] * LOG2E - base) - (col + i == target ? 1.0f : 0.0f);
            each[i] = weight * grad;
        }
        store<8>(own + col, each);
    }
}

// score = (score +) the sums of losses and correct predictions over all rows, in one block and a fixed order.
extern "C" __global__ void sum_losses(const float *losses, int rows, int add, float *score) {
    __shared__ double sums[2][256];
    double loss = 0.0, right = 0.0;
    for (int row = threadIdx.x; row < rows; row += 256) {
        loss += losses[2 * row];
        right += losses[2 * row + 1];
    }
    sums[0][threadIdx.x] = loss;
    sums[1][threadIdx.x] = right;
    __syncthreads();
    if (threadIdx.x < 2) {
        double total = add ? score[threadIdx.x] : 0.0;
        for (int i = 0; i < 256; i++) total += sums[threadIdx.x][i];
        score[threadIdx.x] = (float)total;
    }
}
