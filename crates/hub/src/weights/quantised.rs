//! Numbers that GGUF keeps in a few bits each, in blocks with a scale of their own.
//!
//! The kinds are those of ggml: `Q8_0` has eight bits a number and one scale for 32 of them; `_1` adds a smallest number; `_K`
//! has 256 numbers in sub-blocks whose scales are themselves numbers of six or eight bits.

use half::f16;

/// A kind of block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, non_camel_case_types, reason = "ggml's own names")]
pub enum Quantised {
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q4_K,
    Q5_K,
    Q6_K,
}

impl Quantised {
    /// The kind of ggml's number.
    pub(crate) fn of(ggml: u32) -> Option<Self> {
        Some(match ggml {
            2 => Self::Q4_0,
            3 => Self::Q4_1,
            6 => Self::Q5_0,
            7 => Self::Q5_1,
            8 => Self::Q8_0,
            12 => Self::Q4_K,
            13 => Self::Q5_K,
            14 => Self::Q6_K,
            _ => return None,
        })
    }

    /// Numbers and bytes of a block.
    pub(crate) fn block(self) -> (usize, usize) {
        match self {
            Self::Q4_0 => (32, 18),
            Self::Q4_1 => (32, 20),
            Self::Q5_0 => (32, 22),
            Self::Q5_1 => (32, 24),
            Self::Q8_0 => (32, 34),
            Self::Q4_K => (256, 144),
            Self::Q5_K => (256, 176),
            Self::Q6_K => (256, 210),
        }
    }

    /// The numbers of a block.
    pub(crate) fn numbers(self, block: &[u8], out: &mut [f32]) {
        let half = |at: usize| f16::from_le_bytes([block[at], block[at + 1]]).to_f32();
        match self {
            Self::Q4_0 => nibbles(&block[2..], &[], (half(0), -8.0 * half(0)), out),
            Self::Q4_1 => nibbles(&block[4..], &[], (half(0), half(2)), out),
            Self::Q5_0 => nibbles(&block[6..], &block[2..6], (half(0), -16.0 * half(0)), out),
            Self::Q5_1 => nibbles(&block[8..], &block[4..8], (half(0), half(2)), out),
            Self::Q8_0 => {
                let scale = half(0);
                out.iter_mut().zip(&block[2..]).for_each(|(x, &q)| *x = scale * f32::from(q as i8));
            }
            Self::Q4_K => in_parts(&block[4..16], &[], &block[16..], (half(0), half(2)), out),
            Self::Q5_K => {
                in_parts(&block[4..16], &block[16..48], &block[48..], (half(0), half(2)), out);
            }
            Self::Q6_K => six_bits(block, half(208), out),
        }
    }
}

/// 32 numbers of four bits, those of the low halves of 16 bytes first, perhaps with a fifth bit each; `scale · q + first`.
fn nibbles(bytes: &[u8], fifth: &[u8], (scale, first): (f32, f32), out: &mut [f32]) {
    let bit = |at: usize| fifth.get(at / 8).map_or(0, |byte| (byte >> (at % 8)) & 1) << 4;
    for (at, &byte) in bytes[..16].iter().enumerate() {
        out[at] = scale * f32::from((byte & 15) | bit(at)) + first;
        out[at + 16] = scale * f32::from((byte >> 4) | bit(at + 16)) + first;
    }
}

/// 256 numbers of four bits in eight parts, each with a scale and a smallest number of six bits, perhaps with a fifth bit each:
/// the parts of an even and an odd number share bytes, and bit `part` of byte `at` is the fifth of number `at` of the part.
fn in_parts(
    scales: &[u8],
    fifth: &[u8],
    bytes: &[u8],
    (scale, smallest): (f32, f32),
    out: &mut [f32],
) {
    for (part, out) in out.chunks_exact_mut(32).enumerate() {
        let (own, least) = match part {
            0..4 => (scales[part] & 63, scales[part + 4] & 63),
            _ => (
                (scales[part + 4] & 15) | ((scales[part - 4] >> 6) << 4),
                (scales[part + 4] >> 4) | ((scales[part] >> 6) << 4),
            ),
        };
        let (scale, least) = (scale * f32::from(own), smallest * f32::from(least));
        let bytes = &bytes[part / 2 * 32..][..32];
        for (at, (x, &byte)) in out.iter_mut().zip(bytes).enumerate() {
            let low = if part % 2 == 0 { byte & 15 } else { byte >> 4 };
            let bit = fifth.get(at).map_or(0, |byte| (byte >> part) & 1) << 4;
            *x = scale * f32::from(low | bit) - least;
        }
    }
}

/// 256 numbers of six bits in 16 parts, each with a scale of eight bits: 128 bytes of low halves, 64 of two high bits each.
fn six_bits(block: &[u8], scale: f32, out: &mut [f32]) {
    let (low, high, scales) = (&block[..128], &block[128..192], &block[192..208]);
    for (at, x) in out.iter_mut().enumerate() {
        let (half, row, col) = (at / 128, at % 128 / 32, at % 32);
        let nibble = low[half * 64 + row % 2 * 32 + col] >> (row / 2 * 4) & 15;
        let top = high[half * 32 + col] >> (row * 2) & 3;
        let own = f32::from(scales[at / 16] as i8);
        *x = scale * own * (f32::from(nibble | (top << 4)) - 32.0);
    }
}
