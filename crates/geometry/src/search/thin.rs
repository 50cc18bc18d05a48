//! Leaving some scores out by chance, so that self-learning does not settle too early.

use std::ops::Range;

use tensor::search::ScoreDropout;

/// A random share of all scores is looked at, the others count as lowest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thinning {
    /// The share that is kept, of 1.
    pub share: f64,
    /// Decides which.
    pub seed: u64,
}

impl Thinning {
    /// As it is decided; nothing where all scores are kept.
    pub(super) fn as_bits(self) -> Option<ScoreDropout> {
        let bound = (self.share * f64::from(u32::MAX)) as u32;
        let seed = mix(self.seed as u32 ^ mix((self.seed >> 32) as u32));
        (self.share < 1.0).then_some(ScoreDropout { seed, bound })
    }

    /// Lowers the scores of a tile that are left out: rows x cols. A score is known by its row and
    /// its column alone, so tiles may be cut in any way.
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

/// A number scrambled: every bit of the result depends on every bit of `x`.
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
        let thinning = Thinning { share: 0.25, seed: 7 };
        let mut whole = vec![1.0; 200 * 300];
        thinning.apply(0, 0..300, &mut whole);
        let kept = whole.iter().filter(|score| score.is_finite()).count();
        assert!((14_400..15_600).contains(&kept), "{kept}");
        let mut part = vec![1.0; 3 * 40];
        thinning.apply(50, 100..140, &mut part);
        for (at, score) in part.iter().enumerate() {
            assert_eq!(*score, whole[(50 + at / 40) * 300 + 100 + at % 40]);
        }
    }
}
