// Activations after an affine map, and their derivatives. ACTIVATION, one of the names below, is fixed when
// compiling. The derivatives of GELU (both kinds) and SiLU are functions of the pre-activation, which the
// forward pass saves; those of ReLU and ELU are functions of the result.

#define GELU 1
#define GELU_TANH 2
#define RELU 3
#define SILU 4
#define ELU 5

#if ACTIVATION == GELU
// x times the normal distribution function, by the error function to 1.5e-7 (Abramowitz and Stegun 7.1.26).

// The distribution function of the normal distribution at x, and its bell there (unscaled).
INLINE void normal(float x, float &phi, float &bell) {
    bell = fast_exp2(x * x * -0.72134752f); // e to the -x² / 2
    float t = inverse(0.23164189f * fabsf(x) + 1.0f);
    float p = 0.5307027f;
    p = p * t - 0.726576f;
    p = p * t + 0.71070686f;
    p = p * t - 0.14224837f;
    p = p * t + 0.1274148f;
    float tail = p * t * bell;
    phi = x < 0.0f ? tail : 1.0f - tail;
}

INLINE float value(float x) {
    float phi, bell;
    normal(x, phi, bell);
    return x * phi;
}
INLINE float derivative(float x) {
    float phi, bell;
    normal(x, phi, bell);
    return phi + x * bell * 0.3989423f;
}
#endif

#if ACTIVATION == GELU_TANH || ACTIVATION == SILU
// The logistic function, by which tanh GELU is written too: (1 + tanh u) / 2 = sigmoid(2 u).
INLINE float sigmoid(float x) { return inverse(1.0f + fast_exp2(x * -1.4426950408889634f)); }
#endif

#if ACTIVATION == GELU_TANH
// x sigmoid(2 u) with u = sqrt(2 / pi) (x + 0.044715 x^3).
static constexpr float TWICE_ROOT = 1.5957691f, CUBIC = 0.044715f;
INLINE float value(float x) { return x * sigmoid(TWICE_ROOT * (x + CUBIC * x * x * x)); }
INLINE float derivative(float x) {
    float s = sigmoid(TWICE_ROOT * (x + CUBIC * x * x * x));
    return s + x * s * (1.0f - s) * TWICE_ROOT * (1.0f + 3.0f * CUBIC * x * x);
}
#endif

#if ACTIVATION == SILU
INLINE float value(float x) { return x * sigmoid(x); }
INLINE float derivative(float x) {
    float s = sigmoid(x);
    return s + x * s * (1.0f - s);
}
#endif

#if ACTIVATION == RELU
// Written so that a NaN stays one.
INLINE float value(float x) { return x < 0.0f ? 0.0f : x; }
INLINE float derivative(float y) { return y <= 0.0f ? 0.0f : 1.0f; }
#endif

#if ACTIVATION == ELU
// A NaN is not above 0, and stays one.
INLINE float value(float x) { return x > 0.0f ? x : expm1f(x); }
INLINE float derivative(float y) { return y > 0.0f ? 1.0f : y + 1.0f; }
#endif

// y = activation(z); both may be the same matrix.
extern "C" __global__ void activation_forward(const bf16 *z, bf16 *y, u64 count) {
    u64 at = 8 * ((u64)blockIdx.x * blockDim.x + threadIdx.x);
    float each[8];
    if (at + 8 <= count) {
        load<8>(z + at, each);
#pragma unroll
        for (int i = 0; i < 8; i++) each[i] = value(each[i]);
        store<8>(y + at, each);
    } else {
        for (; at < count; at++) y[at] = narrow(value(wide(z[at])));
    }
}

// The bias's gradient sums the gradients as they are stored; that of GELU sums them unrounded.
struct Derivative {
    static constexpr bool CHANGES = true, SUMS_STORED = ACTIVATION != GELU;
    static INLINE float of(float x) { return derivative(x); }
};

// dy *= the derivative, and the sums of its columns. `of` is what the derivative is a function of.
#define ACTIVATION_BACKWARD(V)                                                                            \
    extern "C" __global__ void activation_backward_##V(bf16 *dy, const bf16 *of, int rows, int cols,      \
                                                       int height, float *partial, u32 *arrived,          \
                                                       float *out, int accumulate) {                      \
        column_sums<V, Derivative>(dy, of, rows, cols, cols, height, partial, arrived, out, accumulate);  \
    }
ACTIVATION_BACKWARD(8)
ACTIVATION_BACKWARD(1)
