// GELU by the error function, to 1.5e-7 (Abramowitz and Stegun 7.1.26).

// The distribution function of the normal distribution at x, and its bell there (unscaled).
INLINE void normal(float x, float &phi, float &bell) {
    float z = fabsf(x) * 0.70710678f;
    bell = __expf(-z * z);
    float t = __fdividef(1.0f, 1.0f + 0.3275911f * z);
    float p = 1.0614054f;
    p = p * t - 1.453152f;
    p = p * t + 1.4214137f;
    p = p * t - 0.28449674f;
    p = p * t + 0.2548296f;
    float tail = 0.5f * p * t * bell;
    phi = x < 0.0f ? tail : 1.0f - tail;
}

INLINE float gelu(float x) {
    float phi, bell;
    normal(x, phi, bell);
    return x * phi;
}

INLINE float gelu_slope(float x) {
    float phi, bell;
    normal(x, phi, bell);
    return phi + x * bell * 0.3989423f;
}
