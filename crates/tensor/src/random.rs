//! Random numbers without state.
//!
//! A number is a function of where it is used: the seed, the step, the operation, the row and the
//! column. So a mask need not be kept for the backward pass, the result does not depend on the number of
//! threads, and a resumed run draws what the uninterrupted one would have drawn. The function is
//! Philox 4x32 (Salmon et al. 2011) with 7 rounds, the fewest its authors found to pass every test.

use rayon::iter::{IndexedParallelIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;

const ROUNDS: usize = 7;
/// Numbers computed side by side, so that the compiler uses the widest registers there are.
const LANES: usize = 16;
/// Words that one call of the lanes yields.
const ROW: usize = LANES * 4;
/// How many dropout decisions one call of the lanes yields: four words of two halves a lane.
const GROUP: usize = LANES * 8;

/// Names one stream of random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// The seed of the whole run.
    pub seed: u64,
    /// The step of training.
    pub step: u32,
    /// The operation within the step.
    pub stream: u32,
}

impl Key {
    /// The stream of a name: every weight matrix is initialised from its own, so that adding one to a
    /// model leaves the initial values of every other as they were.
    pub fn named(seed: u64, name: &str) -> Self {
        let hash = blake3::hash(name.as_bytes());
        let (words, _) = hash.as_bytes().as_chunks::<4>();
        let [step, stream] = [words[0], words[1]].map(u32::from_le_bytes);
        Self { seed, step, stream }
    }
}

/// Dropout (Srivastava et al. 2014): which elements are zeroed is a function of the key and of the
/// element's position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropout {
    /// The share of elements that become zero; 0 switches dropout off.
    pub rate: f32,
    /// The stream that decides.
    pub key: Key,
}

impl Dropout {
    /// What a kept element is multiplied by.
    pub fn scale(&self) -> f32 {
        1.0 / (1.0 - self.rate)
    }

    /// Draws of 16 bits below this drop their element.
    pub(crate) fn threshold(&self) -> u32 {
        (self.rate * 65536.0).round() as u32
    }

    /// Writes the factor of each element of a row: zero, or [`Dropout::scale`].
    #[inline(always)]
    pub fn factors(&self, row: u32, factors: &mut [f32]) {
        let threshold = self.threshold();
        let scale = self.scale();
        for (group, factors) in factors.chunks_mut(GROUP).enumerate() {
            let words = lanes(self.key, (group * LANES) as u32, row);
            for (plane, factors) in factors.chunks_mut(LANES).enumerate() {
                let words = &words[plane / 2];
                let shift = 16 * (plane as u32 % 2);
                for (factor, word) in factors.iter_mut().zip(words) {
                    let draw = (word >> shift) & 0xffff;
                    *factor = if draw < threshold { 0.0 } else { scale };
                }
            }
        }
    }
}

/// Philox at [`LANES`] consecutive counters, beginning with `first`.
#[inline(always)]
fn lanes(key: Key, first: u32, row: u32) -> [[u32; LANES]; 4] {
    let mut a = [0; LANES];
    for (lane, a) in a.iter_mut().enumerate() {
        *a = first.wrapping_add(lane as u32);
    }
    let mut b = [row; LANES];
    let mut c = [key.stream; LANES];
    let mut d = [key.step; LANES];
    let (mut k0, mut k1) = (key.seed as u32, (key.seed >> 32) as u32);
    for _ in 0..ROUNDS {
        for lane in 0..LANES {
            let p = u64::from(a[lane]) * 0xD251_1F53;
            let q = u64::from(c[lane]) * 0xCD9E_8D57;
            a[lane] = (q >> 32) as u32 ^ b[lane] ^ k0;
            b[lane] = q as u32;
            c[lane] = (p >> 32) as u32 ^ d[lane] ^ k1;
            d[lane] = p as u32;
        }
        k0 = k0.wrapping_add(0x9E37_79B9);
        k1 = k1.wrapping_add(0xBB67_AE85);
    }
    [a, b, c, d]
}

/// An endless sequence of numbers drawn from one key, for initial weights and the like.
#[derive(Clone, Debug)]
pub struct Draws {
    key: Key,
    row: u32,
    words: [[u32; LANES]; 4],
    used: usize,
}

impl Draws {
    /// Begins the sequence named by `key`.
    pub fn new(key: Key) -> Self {
        Self::after(key, 0)
    }

    /// Goes on with the sequence after so many times [`ROW`] words.
    fn after(key: Key, row: u32) -> Self {
        Self { key, row, words: lanes(key, 0, row), used: 0 }
    }

    /// The next 32 random bits.
    pub fn word(&mut self) -> u32 {
        if self.used == ROW {
            self.row += 1;
            self.words = lanes(self.key, 0, self.row);
            self.used = 0;
        }
        let word = self.words[self.used / LANES][self.used % LANES];
        self.used += 1;
        word
    }

    /// A number from 0 up to but not including `below`, each equally likely.
    pub fn below(&mut self, below: u32) -> u32 {
        // Multiply and keep the high half; redraw the few that would favour some numbers.
        let reject = below.wrapping_neg() % below;
        loop {
            let product = u64::from(self.word()) * u64::from(below);
            if product as u32 >= reject {
                return (product >> 32) as u32;
            }
        }
    }

    /// A number in [0, 1).
    pub fn unit(&mut self) -> f32 {
        (self.word() >> 8) as f32 / (1 << 24) as f32
    }

    /// A number from the standard normal distribution (Box and Muller's transform).
    pub fn normal(&mut self) -> f32 {
        let radius = (-2.0 * (1.0 - f64::from(self.unit())).ln()).sqrt();
        let angle = std::f64::consts::TAU * f64::from(self.unit());
        (radius * angle.cos()) as f32
    }
}

/// The first `count` numbers that [`Draws::normal`] gives, times `deviation`, drawn by all threads.
pub fn normals(key: Key, deviation: f32, count: usize) -> Vec<f32> {
    const ROWS: usize = 256;
    let mut numbers = vec![0.0; count];
    // A number takes two words.
    numbers.par_chunks_mut(ROWS * ROW / 2).enumerate().for_each(|(part, numbers)| {
        let mut draws = Draws::after(key, (part * ROWS) as u32);
        numbers.iter_mut().for_each(|number| *number = deviation * draws.normal());
    });
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key { seed: 7, step: 1, stream: 2 };

    #[test]
    fn philox_is_philox() {
        // The known answers that its authors publish for 7 rounds (Random123, kat_vectors).
        let words = lanes(Key { seed: 0, step: 0, stream: 0 }, 0, 0);
        assert_eq!(words.map(|lane| lane[0]), [0x5f6f_b709, 0x0d89_3f64, 0x4f12_1f81, 0x4f73_0a48]);
    }

    #[test]
    fn a_name_has_its_own_stream() {
        let key = Key::named(7, "layers.1.query.weight");
        assert_eq!(key, Key::named(7, "layers.1.query.weight"));
        assert_ne!(key.stream, Key::named(7, "layers.2.query.weight").stream);
        let hash = blake3::hash(b"layers.1.query.weight");
        assert_eq!(key.step.to_le_bytes(), hash.as_bytes()[..4]);
        assert_eq!(key.stream.to_le_bytes(), hash.as_bytes()[4..8]);
    }

    #[test]
    fn many_threads_draw_what_one_draws() {
        let mut draws = Draws::new(KEY);
        let one: Vec<f32> = (0..20_000).map(|_| 0.02 * draws.normal()).collect();
        assert_eq!(normals(KEY, 0.02, one.len()), one);
        assert!(normals(KEY, 0.02, 0).is_empty());
    }

    #[test]
    fn dropout_keeps_its_rate_and_its_mean() {
        let dropout = Dropout { rate: 0.1, key: KEY };
        let mut factors = vec![0.0; 1000];
        let (mut zeros, mut sum) = (0, 0.0);
        for row in 0..1000 {
            dropout.factors(row, &mut factors);
            zeros += factors.iter().filter(|&&factor| factor == 0.0).count();
            sum += factors.iter().map(|&factor| f64::from(factor)).sum::<f64>();
        }
        // A million draws: the standard error of the share is 0.0003.
        assert!((zeros as f64 / 1e6 - 0.1).abs() < 0.0015, "{zeros}");
        assert!((sum / 1e6 - 1.0).abs() < 0.002, "{sum}");
    }

    #[test]
    fn a_row_does_not_depend_on_how_much_of_it_is_asked_for() {
        let dropout = Dropout { rate: 0.5, key: KEY };
        let (mut long, mut short) = (vec![0.0; 300], vec![0.0; 77]);
        dropout.factors(3, &mut long);
        dropout.factors(3, &mut short);
        assert_eq!(long[..77], short);
    }

    #[test]
    fn draws_are_uniform_and_normal() {
        let mut draws = Draws::new(KEY);
        let mut counts = [0; 6];
        (0..60_000).for_each(|_| counts[draws.below(6) as usize] += 1);
        assert!(counts.iter().all(|&count| (9_600..10_400).contains(&count)), "{counts:?}");
        let normal: Vec<f64> = (0..100_000).map(|_| f64::from(draws.normal())).collect();
        let mean = normal.iter().sum::<f64>() / 1e5;
        let variance = normal.iter().map(|x| x * x).sum::<f64>() / 1e5;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
    }
}
