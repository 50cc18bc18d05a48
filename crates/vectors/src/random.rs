//! Fast random numbers for training: SplitMix64, seeded per stream number by [`RandomStreams`], and
//! the alias method for weighted draws.
//!
//! Draws depend on the seed, a purpose and a number alone, as everywhere; only the generator within
//! such a stream is faster than ChaCha.

use text::RandomStreams;

/// SplitMix64 (Steele, Lea and Flood 2014).
#[derive(Clone, Debug)]
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    pub(crate) fn new(streams: &RandomStreams, number: u64) -> Self {
        Self(streams.rank(number))
    }

    #[inline(always)]
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Uniform in `0..bound`, to within one part in 2^32.
    #[inline(always)]
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        (((self.next() >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// Uniform in `[-½, ½)`.
    #[inline(always)]
    pub(crate) fn centred(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 24) as f32 - 0.5
    }
}

/// Weighted draws in constant time by the alias method (Walker 1977, Vose 1991).
#[derive(Clone, Debug)]
pub(crate) struct Alias {
    /// How likely a place keeps its own number, as a share of 2^32, and the number it has otherwise.
    places: Vec<(u32, u32)>,
}

impl Alias {
    /// Weights must be positive, and at least one.
    pub(crate) fn new(weights: &[f64]) -> Self {
        let scale = weights.len() as f64 / weights.iter().sum::<f64>();
        let mut share: Vec<f64> = weights.iter().map(|weight| weight * scale).collect();
        let all = 0..weights.len() as u32;
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            all.partition(|&number| share[number as usize] < 1.0);
        let mut places: Vec<_> = (0..weights.len() as u32).map(|own| (u32::MAX, own)).collect();
        while let (Some(&poor), Some(&rich)) = (small.last(), large.last()) {
            small.pop();
            let own = share[poor as usize];
            places[poor as usize] = ((own * 4_294_967_296.0) as u32, rich);
            share[rich as usize] -= 1.0 - own;
            if share[rich as usize] < 1.0 {
                large.pop();
                small.push(rich);
            }
        }
        Self { places }
    }

    #[inline(always)]
    pub(crate) fn draw(&self, random: &mut SplitMix64) -> u32 {
        let bits = random.next();
        let place = (((bits >> 32) * self.places.len() as u64) >> 32) as usize;
        let (keep, other) = self.places[place];
        if (bits as u32) < keep { place as u32 } else { other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_by_their_weights() {
        let weights = [5.0, 1.0, 0.5, 3.0, 0.5];
        let alias = Alias::new(&weights);
        let mut random = SplitMix64::new(&RandomStreams::new(1, "test"), 0);
        let mut seen = [0u32; 5];
        for _ in 0..1_000_000 {
            seen[alias.draw(&mut random) as usize] += 1;
        }
        for (seen, weight) in seen.into_iter().zip(weights) {
            let expected = weight * 1e5;
            // Six standard deviations.
            assert!((f64::from(seen) - expected).abs() < 6.0 * expected.sqrt(), "{seen}");
        }
    }

    #[test]
    fn the_generator_is_splitmix() {
        // The first output for seed 1234567, as the authors' own program gives it.
        assert_eq!(SplitMix64(1_234_567).next(), 6_457_827_717_110_365_317);
    }
}
