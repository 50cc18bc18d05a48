//! Named, counter-based random streams: results do not depend on the order of draws.
//!
//! Every random draw has a purpose and an index (the third document of the corpus of `qaa`), and
//! each pair has its own stream of the counter-based ChaCha8 generator: the key comes from seed and
//! purpose, the stream number is the index. Documents can so be made in any order on any number of
//! threads and come out the same.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::Distribution;
use rand_distr::weighted::WeightedAliasIndex;

/// The streams of one purpose under one seed.
#[derive(Clone, Debug)]
pub(crate) struct NamedStreams {
    key: [u8; 32],
}

impl NamedStreams {
    /// The streams of `purpose`, a path such as `corpus/qaa/base`.
    pub(crate) fn new(seed: u64, purpose: &str) -> Self {
        let mut hash = blake3::Hasher::new_derive_key("isogloss world 1");
        hash.update(&seed.to_le_bytes());
        hash.update(purpose.as_bytes());
        Self { key: *hash.finalize().as_bytes() }
    }

    /// The stream of one index, always the same.
    pub(crate) fn at(&self, index: u64) -> ChaCha8Rng {
        let mut stream = ChaCha8Rng::from_seed(self.key);
        stream.set_stream(index);
        stream
    }
}

/// A choice among `0..n` by weight, in constant time.
#[derive(Clone, Debug)]
pub(crate) struct WeightedChoice(WeightedAliasIndex<f64>);

impl WeightedChoice {
    /// From weights; where all are zero, the choice is uniform.
    pub(crate) fn new(mut weights: Vec<f64>) -> Self {
        if !weights.iter().any(|weight| *weight > 0.0) {
            weights.fill(1.0);
        }
        Self(WeightedAliasIndex::new(weights).expect("weights are finite and not all zero"))
    }

    pub(crate) fn draw(&self, rng: &mut ChaCha8Rng) -> usize {
        self.0.sample(rng)
    }
}

/// A Bernoulli draw with probability `p`, which may lie outside 0..1.
pub(crate) fn bernoulli(rng: &mut ChaCha8Rng, p: f64) -> bool {
    rng.random::<f64>() < p
}

/// A uniform choice from a slice that is not empty.
pub(crate) fn choose<'a, T>(rng: &mut ChaCha8Rng, items: &'a [T]) -> &'a T {
    &items[rng.random_range(0..items.len())]
}

pub(crate) fn shuffle<T>(rng: &mut ChaCha8Rng, items: &mut [T]) {
    for last in (1..items.len()).rev() {
        items.swap(last, rng.random_range(0..=last));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_seed_purpose_and_index_only() {
        let draw =
            |seed, purpose, index| NamedStreams::new(seed, purpose).at(index).random::<u64>();
        assert_eq!(draw(1, "a", 0), draw(1, "a", 0));
        let all = [draw(1, "a", 0), draw(1, "a", 1), draw(1, "b", 0), draw(2, "a", 0)];
        for (i, x) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|y| x != y));
        }
    }

    #[test]
    fn choices_follow_their_weights() {
        let mut rng = NamedStreams::new(1, "choices").at(0);
        let choice = WeightedChoice::new(vec![1.0, 0.0, 3.0]);
        let mut counts = [0; 3];
        (0..40_000).for_each(|_| counts[choice.draw(&mut rng)] += 1);
        assert_eq!(counts[1], 0);
        assert!((counts[2] as f64 / counts[0] as f64 - 3.0).abs() < 0.15, "{counts:?}");
        let even = WeightedChoice::new(vec![0.0, 0.0]);
        assert!((0..100).map(|_| even.draw(&mut rng)).any(|drawn| drawn == 1));
    }
}
