// Adam (Kingma and Ba 2015) with decoupled weight decay (Loshchilov and Hutter 2019) over all matrices in one
// launch, clipped by their common norm.

struct Slot {
    float *value;
    const float *grad;
    float *mean, *square;
    bf16 *working; // the rounded copy that matmuls read, where there is one
    u64 count;
    float lr, keep, square_correction;
    u32 padding;
};

// A chunk of a matrix that one block works on.
struct Chunk {
    u32 slot, number;
};

static constexpr u64 CHUNK = 16384;

extern "C" __global__ void __launch_bounds__(256) squares(const Slot *slots, const Chunk *chunks, float *partial) {
    Chunk chunk = chunks[blockIdx.x];
    Slot slot = slots[chunk.slot];
    u64 begin = chunk.number * CHUNK, end = min(slot.count, begin + CHUNK);
    float sum = 0.0f;
    for (u64 at = begin + 4 * threadIdx.x; at < end; at += 1024) {
        if (at + 4 <= end) {
            float4 g = *reinterpret_cast<const float4 *>(slot.grad + at);
            sum += g.x * g.x + g.y * g.y + g.z * g.z + g.w * g.w;
        } else {
            for (u64 i = at; i < end; i++) sum += slot.grad[i] * slot.grad[i];
        }
    }
    __shared__ float sums[8];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < 8; i++) sum += sums[i];
        partial[blockIdx.x] = sum;
    }
}

extern "C" __global__ void norm_of_squares(const float *partial, int count, float *norm) {
    __shared__ double sums[1024];
    double sum = 0.0;
    for (int i = threadIdx.x; i < count; i += 1024) sum += partial[i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 512; half > 0; half /= 2) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    // A norm that is not finite stays, so that nothing is updated any more.
    if (threadIdx.x == 0 && isfinite(*norm)) *norm = (float)sqrt(sums[0]);
}

INLINE void update(const Slot &slot, float beta1, float beta2, float epsilon, float grad, float &value, float &mean, float &square) {
    mean += (1.0f - beta1) * (grad - mean);
    square = beta2 * square + (1.0f - beta2) * grad * grad;
    float deviation = sqrtf(square) / slot.square_correction + epsilon;
    value = value * slot.keep - slot.lr * mean / deviation;
}

extern "C" __global__ void __launch_bounds__(256)
    adam(const Slot *slots, const Chunk *chunks, const float *norm, float beta1, float beta2, float epsilon, float clip) {
    float total = *norm;
    if (!isfinite(total)) return;
    float shrink = total > clip ? clip / total : 1.0f;
    Chunk chunk = chunks[blockIdx.x];
    Slot slot = slots[chunk.slot];
    u64 begin = chunk.number * CHUNK, end = min(slot.count, begin + CHUNK);
    for (u64 at = begin + 4 * threadIdx.x; at < end; at += 1024) {
        if (at + 4 <= end) {
            float4 g = *reinterpret_cast<const float4 *>(slot.grad + at);
            float4 v = *reinterpret_cast<float4 *>(slot.value + at);
            float4 m = *reinterpret_cast<float4 *>(slot.mean + at);
            float4 s = *reinterpret_cast<float4 *>(slot.square + at);
            update(slot, beta1, beta2, epsilon, g.x * shrink, v.x, m.x, s.x);
            update(slot, beta1, beta2, epsilon, g.y * shrink, v.y, m.y, s.y);
            update(slot, beta1, beta2, epsilon, g.z * shrink, v.z, m.z, s.z);
            update(slot, beta1, beta2, epsilon, g.w * shrink, v.w, m.w, s.w);
            *reinterpret_cast<float4 *>(slot.value + at) = v;
            *reinterpret_cast<float4 *>(slot.mean + at) = m;
            *reinterpret_cast<float4 *>(slot.square + at) = s;
            if (slot.working) {
                *reinterpret_cast<uint2 *>(slot.working + at) = make_uint2(pack(v.x, v.y), pack(v.z, v.w));
            }
        } else {
            for (u64 i = at; i < end; i++) {
                update(slot, beta1, beta2, epsilon, slot.grad[i] * shrink, slot.value[i], slot.mean[i], slot.square[i]);
                if (slot.working) slot.working[i] = narrow(slot.value[i]);
            }
        }
    }
}
