//! Functions of one number that vectorise, which the standard library's do not.

/// Runs a closure compiled for the vectors of this processor: `dispatch!(arch, || …)`.
///
/// Only what is inlined into a function of the processor's features is compiled for them. A large closure is not unless it
/// says so, nor is the adapter through which one that could be called twice is called once: both would run with the
/// same result, on vectors of four numbers in place of sixteen. So the closure is marked, and it consumes something.
#[macro_export]
macro_rules! dispatch {
    ($arch:expr, || $body:expr) => {{
        let once = $crate::math::CalledOnce;
        $arch.dispatch(
            #[inline(always)]
            || {
                let _once = once;
                $body
            },
        )
    }};
}

/// What a closure of [`dispatch!`] consumes.
#[derive(Debug)]
pub struct CalledOnce;

/// `e^x` to a few units in the last place. NaN stays NaN.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
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
}
