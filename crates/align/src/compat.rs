//! The arithmetic of fast_align where it departs from its model, so that the two can be compared: known
//! faults, reproduced on request only.
//!
//! - The observed feature counts a target word's place from 0 and everything else from 1 (issue 4).
//! - The derivative of the normaliser is divided by the normaliser of the transposed shape (issue 11).
//! - Words that are likely linked to nothing count in full for the model's feature.
//! - The tension takes eight steps of fixed length, whatever they lead to.
//! - Before the first pass every translation has the probability 1e-9, which is no distribution.

use crate::diagonal::{Diagonal, LEAST_TENSION};
use crate::view::LengthPair;

/// The probability of every translation before the first pass.
pub(crate) const FIRST: f64 = 1e-9;

const MOST_TENSION: f64 = 14.0;

/// Eight steps of length 20 towards the observed mean feature.
pub(crate) fn step_tension(tension: f64, observed: f64, shapes: &[LengthPair]) -> f64 {
    let tokens: f64 = shapes.iter().map(|shape| (shape.sentences * shape.m) as f64).sum();
    (0..8).fold(tension, |tension, _| {
        let diagonal = Diagonal::new(tension, shapes.iter().map(|shape| shape.n));
        let of_shape = |shape: &LengthPair| {
            let &LengthPair { m, n, sentences, .. } = shape;
            let term = |j| diagonal.weighted_feature(j, m, n) / normaliser(j, n, m, tension);
            sentences as f64 * (1..=m).map(term).sum::<f64>()
        };
        let expected = shapes.iter().map(of_shape).sum::<f64>() / tokens;
        (tension + 20.0 * (observed - expected)).clamp(LEAST_TENSION, MOST_TENSION)
    })
}

/// The closed form, which is also asked for words j beyond m here; the number of places above the
/// diagonal then wraps around as an unsigned number does in the original.
fn normaliser(j: usize, m: usize, n: usize, tension: f64) -> f64 {
    let floor = (j * n / m) as u32;
    let ratio = (-tension / n as f64).exp();
    let weight = |i: u32| {
        (-tension * (f64::from(i) / n as f64 - j as f64 / m as f64).abs()).exp() / (1.0 - ratio)
    };
    let series = |from: u32, count: u32| match count {
        0 => 0.0,
        count => weight(from) * (1.0 - ratio.powf(f64::from(count))),
    };
    series(floor + 1, (n as u32).wrapping_sub(floor)) + series(floor, floor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closed_form_is_right_where_it_is_asked_rightly() {
        for (j, m, n) in [(3, 7, 10), (7, 7, 10), (1, 9, 4)] {
            let ours = Diagonal::new(4.0, [n].into_iter()).row(j, m, n).normaliser;
            assert!((normaliser(j, m, n, 4.0) - ours).abs() < 1e-12);
        }
        // Transposed, as the original divides by it.
        assert!((normaliser(3, 10, 7, 4.0) - 2.77).abs() < 0.01);
    }
}
