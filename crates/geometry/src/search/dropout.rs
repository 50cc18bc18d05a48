//! Stochastic dropout of the similarity matrix (Artetxe et al. 2018), which keeps self-learning from
//! settling in a poor local optimum.

use std::ops::Range;

use tensor::search::ScoreDropout;

/// A random share of all similarities is kept, the others count as lowest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimilarityDropout {
    /// The share that is kept.
    pub keep: f64,
    /// Decides which.
    pub seed: u64,
}

impl SimilarityDropout {
    /// As a device decides it; none where all are kept.
    pub(super) fn as_bits(self) -> Option<ScoreDropout> {
        let bound = (self.keep * f64::from(u32::MAX)) as u32;
        let seed = mix(self.seed as u32 ^ mix((self.seed >> 32) as u32));
        (self.keep < 1.0).then_some(ScoreDropout { seed, bound })
    }

    /// Drops similarities of a tile (rows x cols) in place. The decision depends on row and column
    /// alone, so tiles may be cut in any way.
    pub(super) fn apply(self, first_row: usize, cols: Range<usize>, tile: &mut [f32]) {
        let Some(ScoreDropout { seed, bound }) = self.as_bits() else { return };
        for (row, scores) in (first_row..).zip(tile.chunks_exact_mut(cols.len())) {
            let key = mix(row as u32 ^ seed);
            for (col, score) in (cols.start as u32..).zip(scores) {
                let kept = mix(key ^ col.wrapping_mul(0x9e37_79b9)) <= bound;
                *score = if kept { *score } else { f32::NEG_INFINITY };
            }
        }
    }
}

/// A hash: every bit of the result depends on every bit of `x`.
fn mix(mut x: u32) -> u32 {
    x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d);
    x = (x ^ (x >> 15)).wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_kept_however_tiles_are_cut() {
        let dropout = SimilarityDropout { keep: 0.25, seed: 7 };
        let mut whole = vec![1.0; 200 * 300];
        dropout.apply(0, 0..300, &mut whole);
        let kept = whole.iter().filter(|score| score.is_finite()).count();
        assert!((14_400..15_600).contains(&kept), "{kept}");
        let mut part = vec![1.0; 3 * 40];
        dropout.apply(50, 100..140, &mut part);
        for (at, score) in part.iter().enumerate() {
            assert_eq!(*score, whole[(50 + at / 40) * 300 + 100 + at % 40]);
        }
    }
}
