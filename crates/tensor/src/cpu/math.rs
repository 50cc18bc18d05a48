//! Functions of one number and reductions of a row, written so that the compiler vectorises them.
//!
//! Everything here is inlined into loops that [`crate::dispatch!`] compiles once for each kind
//! of CPU. A sum is kept in several lanes, in an order fixed by the length alone.

use crate::math::exp;

/// Partial sums kept side by side.
const LANES: usize = 32;

/// GELU and its derivative, with the error function to 1.5e-7 (Abramowitz and Stegun 7.1.26).
#[inline(always)]
pub(super) fn gelu(x: f32) -> (f32, f32) {
    let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let bell = exp(-z * z);
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let mut p = 1.061_405_4;
    p = p * t - 1.453_152;
    p = p * t + 1.421_413_7;
    p = p * t - 0.284_496_74;
    p = p * t + 0.254_829_6;
    let tail = 0.5 * p * t * bell;
    let phi = if x < 0.0 { tail } else { 1.0 - tail };
    // The derivative of Φ is the bell curve divided by √(2π).
    (x * phi, phi + x * bell * 0.398_942_3)
}

/// The logistic function `1 / (1 + e^-x)`.
#[inline(always)]
fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// GELU by the hyperbolic tangent and its derivative. Since `(1 + tanh u) / 2 = σ(2u)`, it is `x · σ(2u)`
/// with `u = √(2/π) (x + 0.044715 x³)`.
#[inline(always)]
pub(super) fn gelu_tanh(x: f32) -> (f32, f32) {
    const TWICE_ROOT: f32 = 1.595_769; // 2 √(2/π)
    const CUBIC: f32 = 0.044_715;
    let s = sigmoid(TWICE_ROOT * (x + CUBIC * x * x * x));
    let inner = TWICE_ROOT * (1.0 + 3.0 * CUBIC * x * x);
    (x * s, s + x * s * (1.0 - s) * inner)
}

#[inline(always)]
pub(super) fn silu(x: f32) -> (f32, f32) {
    let s = sigmoid(x);
    (x * s, s + x * s * (1.0 - s))
}

/// ReLU. NaN stays NaN.
#[inline(always)]
pub(super) fn relu(x: f32) -> f32 {
    if x < 0.0 { 0.0 } else { x }
}

/// The derivative of ReLU where it gave `y`.
#[inline(always)]
pub(super) fn relu_derivative(y: f32) -> f32 {
    if y <= 0.0 { 0.0 } else { 1.0 }
}

/// ELU.
#[inline(always)]
pub(super) fn elu(x: f32) -> f32 {
    if x > 0.0 { x } else { exp(x) - 1.0 }
}

/// The derivative of ELU where it gave `y`.
#[inline(always)]
pub(super) fn elu_derivative(y: f32) -> f32 {
    if y > 0.0 { 1.0 } else { y + 1.0 }
}

/// `Σ f(x_i)`.
#[inline(always)]
fn reduce(len: usize, f: impl Fn(usize) -> f32) -> f32 {
    let mut lanes = [0.0; LANES];
    let whole = len / LANES * LANES;
    for start in (0..whole).step_by(LANES) {
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum += f(start + lane);
        }
    }
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
        width /= 2;
    }
    (whole..len).fold(lanes[0], |sum, i| sum + f(i))
}

/// `Σ x`.
#[inline(always)]
pub(super) fn sum(x: &[f32]) -> f32 {
    reduce(x.len(), |i| x[i])
}

/// `Σ (x - centre)²`.
#[inline(always)]
pub(super) fn sum_squares(x: &[f32], centre: f32) -> f32 {
    reduce(x.len(), |i| (x[i] - centre) * (x[i] - centre))
}

/// `Σ x·y`.
#[inline(always)]
pub(super) fn dot(x: &[f32], y: &[f32]) -> f32 {
    let y = &y[..x.len()];
    reduce(x.len(), |i| x[i] * y[i])
}

/// The largest element; NaN where any is.
#[inline(always)]
pub(super) fn max(x: &[f32]) -> f32 {
    let larger = |a: f32, b: f32| if a > b || a.is_nan() { a } else { b };
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (whole, rest) = x.as_chunks::<LANES>();
    for chunk in whole {
        for (best, &x) in lanes.iter_mut().zip(chunk) {
            *best = larger(*best, x);
        }
    }
    lanes.iter().chain(rest).copied().fold(f32::NEG_INFINITY, larger)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gelu_is_gelu() {
        // Φ by a fine sum of the bell curve, from far out to x.
        let step = 1e-4;
        let (mut area, mut x) = (0.0_f64, -8.0_f64);
        let bell = |x: f64| (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
        while x < 8.0 {
            area += step / 6.0 * (bell(x) + 4.0 * bell(x + step / 2.0) + bell(x + step));
            x += step;
            let (y, derivative) = gelu(x as f32);
            assert!((f64::from(y) - x * area).abs() < 2e-6, "gelu({x})");
            assert!((f64::from(derivative) - area - x * bell(x)).abs() < 2e-6, "gelu'({x})");
        }
    }

    #[test]
    fn activations_are_what_they_are_called() {
        let mut x = -12.0_f64;
        while x < 12.0 {
            let sigmoid = 1.0 / (1.0 + (-x).exp());
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
            let tanh = 0.5 * x * (1.0 + inner.tanh());
            let near = |name: &str, ours: f32, exact: f64| {
                assert!(
                    (f64::from(ours) - exact).abs() < 2e-6 * (1.0 + exact.abs()),
                    "{name}({x})"
                );
            };
            near("silu", silu(x as f32).0, x * sigmoid);
            near("silu'", silu(x as f32).1, sigmoid * (1.0 + x * (1.0 - sigmoid)));
            near("gelu_tanh", gelu_tanh(x as f32).0, tanh);
            near("relu", relu(x as f32), x.max(0.0));
            near("elu", elu(x as f32), if x > 0.0 { x } else { x.exp_m1() });
            x += 0.01;
        }
        for f in [relu, elu, |x| silu(x).0, |x| gelu_tanh(x).0] {
            assert!(f(f32::NAN).is_nan());
        }
    }

    #[test]
    fn reductions_of_any_length() {
        for len in [0, 1, 31, 32, 33, 100] {
            let x: Vec<f32> = (0..len).map(|i| (i * 7 % 13) as f32 - 6.0).collect();
            assert_eq!(sum(&x), x.iter().sum::<f32>());
            assert_eq!(dot(&x, &x), x.iter().map(|x| x * x).sum::<f32>());
            assert_eq!(max(&x), x.iter().copied().fold(f32::NEG_INFINITY, f32::max));
        }
        assert!(max(&[1.0, f32::NAN, 2.0]).is_nan());
    }
}
