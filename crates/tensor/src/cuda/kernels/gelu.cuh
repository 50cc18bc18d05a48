// GELU by the error function, to 1.5e-7 (Abramowitz and Stegun 7.1.26).

// The distribution function of the normal distribution at x, and its bell there (unscaled).
INLINE void normal(float x, float &phi, float &bell) {
    bell = power(x * x * -0.72134752f); // e to the -x² / 2
    float t = inverse(0.23164189f * fabsf(x) + 1.0f);
    float p = 0.5307027f;
    p = p * t - 0.726576f;
    p = p * t + 0.71070686f;
    p = p * t - 0.14224837f;
    p = p * t + 0.1274148f;
    float tail = p * t * bell;
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
