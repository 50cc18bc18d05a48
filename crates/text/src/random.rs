//! Counter-based random streams: stream `n` of a seed and a purpose is the same in whatever order and
//! on however many threads it is drawn. This makes a batch computable without replaying those before
//! it.
//!
//! The generator is ChaCha8 (Bernstein 2008), whose output is fixed by its specification; the few
//! distributions are written out here, so that an upgrade of a library cannot change an experiment.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A family of random streams, one for each number.
#[derive(Clone, Debug)]
pub struct RandomStreams {
    key: [u8; 32],
}

impl RandomStreams {
    /// The family of a seed and a purpose; different purposes are independent.
    pub fn new(seed: u64, purpose: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(purpose.as_bytes()).update(&seed.to_le_bytes());
        Self { key: *hasher.finalize().as_bytes() }
    }

    /// The stream of this number.
    pub fn stream(&self, number: u64) -> RandomStream {
        let mut generator = ChaCha8Rng::from_seed(self.key);
        generator.set_stream(number);
        RandomStream(generator)
    }

    /// A pseudorandom rank for an item: no two items of a family have the same one.
    pub fn rank(&self, item: u64) -> u64 {
        let word = |at: usize| {
            u64::from_le_bytes(self.key[at..at + 8].try_into().expect("eight bytes of a key"))
        };
        // Each step is invertible, so the whole is a permutation of the 64-bit numbers.
        let mut x = item.wrapping_add(word(0));
        for at in [8, 16, 24] {
            x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            x = (x ^ (x >> 31)).wrapping_add(word(at));
        }
        x
    }

    /// One number in `[0, 1)` for each item, without opening a stream.
    pub fn unit(&self, item: u64) -> f64 {
        to_unit(self.rank(item))
    }
}

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub struct RandomStream(ChaCha8Rng);

impl RandomStream {
    /// Uniform in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        to_unit(self.0.next_u64())
    }

    /// Uniform in `0..bound`; `bound` must not be zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        debug_assert!(bound > 0);
        // Rejects the draws that would bias low numbers (Lemire 2019).
        loop {
            let product = u128::from(self.0.next_u64()) * u128::from(bound);
            if product as u64 >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }

    /// Puts the items in random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// The top 53 bits as a fraction: every value is exact.
fn to_unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_known_by_its_number_alone() {
        let streams = RandomStreams::new(7, "test");
        let draw = |number| streams.stream(number).below(1 << 40);
        let forwards: Vec<_> = (0..50).map(draw).collect();
        let mut backwards: Vec<_> = (0..50).rev().map(draw).collect();
        backwards.reverse();
        assert_eq!(forwards, backwards);
        assert_ne!(forwards[0], forwards[1]);
        assert_ne!(draw(0), RandomStreams::new(8, "test").stream(0).below(1 << 40));
        assert_ne!(draw(0), RandomStreams::new(7, "other").stream(0).below(1 << 40));
    }

    #[test]
    fn numbers_below_a_bound_are_uniform() {
        let mut stream = RandomStreams::new(1, "uniform").stream(0);
        let mut seen = [0u32; 7];
        for _ in 0..70_000 {
            seen[stream.below(7) as usize] += 1;
        }
        // Five standard deviations of a binomial with p = 1/7.
        assert!(seen.iter().all(|&count| count.abs_diff(10_000) < 470), "{seen:?}");
    }

    #[test]
    fn ranks_are_a_permutation_and_fill_the_range() {
        let streams = RandomStreams::new(3, "rank");
        let mut ranks: Vec<_> = (0..100_000).map(|item| streams.rank(item)).collect();
        ranks.sort_unstable();
        ranks.dedup();
        assert_eq!(ranks.len(), 100_000);
        let mean = (0..100_000).map(|item| streams.unit(item)).sum::<f64>() / 1e5;
        assert!((mean - 0.5).abs() < 0.005, "{mean}");
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..100).collect();
        RandomStreams::new(5, "shuffle").stream(1).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
