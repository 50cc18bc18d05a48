//! Functions of one number and reductions of a row, written so that the compiler vectorises them.
//!
//! Everything here is inlined into loops that [`pulp::Arch::dispatch`] compiles once for each kind
//! of processor. A sum is kept in several lanes, in an order fixed by the length alone.

/// Partial sums kept side by side.
const LANES: usize = 32;

/// `e^x` to a few units in the last place. Not a number stays not a number.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    // Comparisons, not `max` and `min`, because those would swallow a NaN.
    let x = if x < -87.0 { -87.0 } else { x };
    let x = if x > 88.0 { 88.0 } else { x };
    // Adding 1.5 * 2^23 rounds to an integer, whose low bits then stand in the mantissa.
    const ROUND: f32 = 12_582_912.0;
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = x - n * 0.693_359_4 - n * -2.121_944_4e-4;
    let mut p = 1.987_569_1e-4;
    p = p * r + 1.398_199_9e-3;
    p = p * r + 8.333_452e-3;
    p = p * r + 4.166_579_6e-2;
    p = p * r + 1.666_666_5e-1;
    p = p * r + 5e-1;
    p = p * r * r + r + 1.0;
    let exponent = shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23;
    p * f32::from_bits(exponent)
}

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

/// The largest element; not a number where any is not.
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
    fn exp_is_exp() {
        for i in -8700..=8800 {
            let x = i as f32 / 100.0;
            let exact = f64::from(x).exp();
            let error = (f64::from(exp(x)) - exact).abs() / exact;
            assert!(error < 3e-7, "exp({x}) is off by {error:e}");
        }
        assert!(exp(f32::NAN).is_nan());
        assert!(exp(-1e9) < 1e-37 && exp(-1e9) >= 0.0);
    }

    #[test]
    fn gelu_is_gelu() {
        // Φ by a fine sum of the bell curve, from far out to x.
        let step = 1e-4;
        let (mut area, mut x) = (0.0_f64, -8.0_f64);
        let bell = |x: f64| (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
        while x < 8.0 {
            area += step / 6.0 * (bell(x) + 4.0 * bell(x + step / 2.0) + bell(x + step));
            x += step;
            let (y, slope) = gelu(x as f32);
            assert!((f64::from(y) - x * area).abs() < 2e-6, "gelu({x})");
            assert!((f64::from(slope) - area - x * bell(x)).abs() < 2e-6, "gelu'({x})");
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
