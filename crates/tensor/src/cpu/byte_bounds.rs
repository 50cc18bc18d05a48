//! The most likely tokens by upper bounds in bytes.
//!
//! States and entries of the vocabulary are rounded to 8 bits, whose products the processor adds up four times as fast as `f32`
//! (AVX-512 VNNI). With ŵ and ĥ the rounded vectors, `w · h` differs from `ŵ · ĥ` by at most
//! `|w - ŵ| |h| + |ŵ| |h - ĥ|` (Cauchy and Schwarz); so each score has an upper bound, and only where
//! that is not below the best score so far is the score itself computed, in `f32`. The outcome is that of
//! comparing all scores. Threads share the best scores so far; which scores are left out depends on
//! their timing, the outcome does not.

#![allow(unsafe_code, reason = "instructions that not every processor has")]

use super::Cpu;
use super::best_tokens::TokenSearch;

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn run(_: &Cpu, _: &TokenSearch<'_>) -> Option<Vec<u32>> {
    None
}

/// The best entry of each row; none where the processor cannot do it.
#[cfg(target_arch = "x86_64")]
pub(super) fn run(cpu: &Cpu, search: &TokenSearch<'_>) -> Option<Vec<u32>> {
    let able = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vnni");
    // Sums of bytes stay within 32 bits.
    let fits = search.dim <= i32::MAX as usize / (255 * 128);
    (able && fits).then(|| vnni::run(cpu, search))
}

#[cfg(target_arch = "x86_64")]
mod vnni {
    use std::arch::x86_64::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    use rayon::prelude::*;

    use super::{Cpu, TokenSearch};

    /// Rows whose sums are in registers at once.
    const ROWS: usize = 12;
    /// Entries whose sums are: two registers of sixteen.
    const ENTRIES: usize = 32;
    /// Entries of a task.
    const TASK: usize = 16 * ENTRIES;
    /// What rounding in `f32` may add to a score, relative to the norms of its vectors, and to its bias.
    const ROUNDING: f32 = 1e-5;
    const ROUNDING_OF_BIAS: f32 = 1e-6;

    /// A vector of bytes: what they are multiplied by, and the norms of the vector and of the error.
    #[derive(Clone, Copy, Default)]
    struct Rounded {
        scale: f32,
        norm: f32,
        error: f32,
    }

    /// The best score of a row so far and whose it is, in one word: the larger word is the better score, or the
    /// lower id of equals.
    struct SharedBest(AtomicU64);

    impl SharedBest {
        fn new() -> Self {
            Self(AtomicU64::new(Self::word(f32::NEG_INFINITY, 0)))
        }

        fn word(score: f32, id: u32) -> u64 {
            // Adding 0 makes the two zeros one.
            let bits = (score + 0.0).to_bits();
            let ordered = if bits >> 31 == 0 { bits | 1 << 31 } else { !bits };
            u64::from(ordered) << 32 | u64::from(!id)
        }

        fn score(&self) -> f32 {
            let ordered = (self.0.load(Ordering::Relaxed) >> 32) as u32;
            f32::from_bits(if ordered >> 31 == 1 { ordered & !(1 << 31) } else { !ordered })
        }

        fn offer(&self, score: f32, id: u32) {
            if !score.is_nan() {
                self.0.fetch_max(Self::word(score, id), Ordering::Relaxed);
            }
        }

        fn id(&self) -> u32 {
            !(self.0.load(Ordering::Relaxed) as u32)
        }
    }

    /// All rows as signed bytes, four to a word, and the best of each so far.
    struct RoundedRows<'a> {
        search: &'a TokenSearch<'a>,
        /// Words of a row.
        steps: usize,
        /// Groups of [`ROWS`] rows, each steps x rows: what is multiplied next lies beside what was, and the loop need not
        /// compute where a row begins.
        words: Vec<i32>,
        rounded: Vec<Rounded>,
        /// For each row, 128 times the sum of its bytes: entries are stored with 128 added.
        offsets: Vec<i32>,
        best: Vec<SharedBest>,
    }

    pub(super) fn run(cpu: &Cpu, search: &TokenSearch<'_>) -> Vec<u32> {
        let rows = search.rows();
        let (steps, padded) = (search.dim.div_ceil(4), rows.next_multiple_of(ROWS));
        let mut all = RoundedRows {
            search,
            steps,
            words: vec![0; padded * steps],
            rounded: vec![Rounded::default(); padded],
            offsets: vec![0; padded],
            best: (0..rows).map(|_| SharedBest::new()).collect(),
        };
        let words = all.words.par_chunks_mut((ROWS * steps).max(1));
        let sizes = all.rounded.par_chunks_mut(ROWS).zip(all.offsets.par_chunks_mut(ROWS));
        let hidden = search.hidden.par_chunks((ROWS * search.dim).max(1));
        words.zip(sizes).zip(hidden).for_each(|((words, (rounded, offsets)), hidden)| {
            let rows = hidden.chunks(search.dim).zip(rounded).zip(offsets);
            for (row, ((hidden, rounded), offset)) in rows.enumerate() {
                let mut sum = 0;
                let put = |step: usize, word: u32| {
                    words[step * ROWS + row] = word.cast_signed();
                    sum += word.to_le_bytes().map(|byte| i32::from(byte as i8)).iter().sum::<i32>();
                };
                // SAFETY: `super::run` has asked for these instructions.
                *rounded = unsafe { round(hidden, 0, put) };
                *offset = 128 * sum;
            }
        });
        let tasks = search.bias.len().div_ceil(TASK);
        (0..tasks).into_par_iter().with_max_len(1).for_each(|task| {
            let mut panel = cpu.scratch(steps * ENTRIES);
            let end = search.bias.len().min((task + 1) * TASK);
            for first in (task * TASK..end).step_by(ENTRIES) {
                // SAFETY: as above.
                unsafe { all.compare(first, bytemuck::cast_slice_mut(panel.as_mut_slice())) };
            }
        });
        all.best.iter().map(SharedBest::id).collect()
    }

    /// Rounds a vector to bytes, to each of which `added` is added, and hands out words of four.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    fn round(vector: &[f32], added: i32, mut put: impl FnMut(usize, u32)) -> Rounded {
        let mut tops = [0.0_f32; 16];
        for sixteen in vector.chunks(16) {
            tops.iter_mut().zip(sixteen).for_each(|(top, x)| *top = top.max(x.abs()));
        }
        let most = tops.iter().copied().fold(0.0, f32::max);
        let scale = most / 127.0;
        let inverse = if scale >= f32::MIN_POSITIVE { 1.0 / scale } else { 0.0 };
        let (sixteens, rest) = vector.as_chunks::<16>();
        let [mut norms, mut errors] = [_mm512_setzero_ps(); 2];
        for (number, sixteen) in sixteens.iter().enumerate() {
            // SAFETY: a chunk of sixteen.
            let x = unsafe { _mm512_loadu_ps(sixteen.as_ptr()) };
            let whole = _mm512_cvtps_epi32(_mm512_mul_ps(x, _mm512_set1_ps(inverse)));
            let rounded = _mm512_mul_ps(_mm512_cvtepi32_ps(whole), _mm512_set1_ps(scale));
            let off = _mm512_sub_ps(x, rounded);
            norms = _mm512_fmadd_ps(x, x, norms);
            errors = _mm512_fmadd_ps(off, off, errors);
            let bytes = _mm512_cvtepi32_epi8(_mm512_add_epi32(whole, _mm512_set1_epi32(added)));
            let mut words = [0_u32; 4];
            // SAFETY: sixteen bytes.
            unsafe { _mm_storeu_si128(words.as_mut_ptr().cast(), bytes) };
            words.into_iter().zip(4 * number..).for_each(|(word, step)| put(step, word));
        }
        let mut norm = f64::from(_mm512_reduce_add_ps(norms));
        let mut error = f64::from(_mm512_reduce_add_ps(errors));
        for (four, step) in rest.chunks(4).zip(4 * sixteens.len()..) {
            let mut word = [added as u8; 4];
            for (byte, &x) in word.iter_mut().zip(four) {
                let whole = (x * inverse).round_ties_even();
                let (x, rounded) = (f64::from(x), f64::from(whole) * f64::from(scale));
                norm += x * x;
                error += (x - rounded) * (x - rounded);
                *byte = (whole as i32 + added) as u8;
            }
            put(step, u32::from_le_bytes(word));
        }
        let up = |square: f64| (square.sqrt() * (1.0 + 1e-4)) as f32;
        Rounded { scale, norm: up(norm), error: up(error) }
    }

    /// Some entries, as the instruction takes them: four bytes of sixteen entries in a register.
    struct EntryPanel<'a> {
        /// Steps x [`ENTRIES`].
        words: &'a [u32],
        first: usize,
        scales: [f32; ENTRIES],
        /// The norms of the rounded vectors, and of their errors with what rounding in `f32` may add.
        norms: [f32; ENTRIES],
        errors: [f32; ENTRIES],
        bias: [f32; ENTRIES],
    }

    impl RoundedRows<'_> {
        /// Compares some entries, from this one on, with all rows.
        #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
        fn compare(&self, first: usize, words: &mut [u32]) {
            let TokenSearch { table, bias, dim, .. } = *self.search;
            let count = ENTRIES.min(bias.len() - first);
            let (scales, norms, errors) = ([0.0; ENTRIES], [0.0; ENTRIES], [0.0; ENTRIES]);
            // Entries beyond the last are never better.
            let bias_of_none = [f32::NEG_INFINITY; ENTRIES];
            let mut panel =
                EntryPanel { words: &[], first, scales, norms, errors, bias: bias_of_none };
            words.fill(0);
            for at in 0..count {
                let entry = &table[(first + at) * dim..(first + at + 1) * dim];
                let rounded = round(entry, 128, |step, word| words[step * ENTRIES + at] = word);
                panel.scales[at] = rounded.scale;
                panel.norms[at] = rounded.norm + rounded.error;
                panel.errors[at] = rounded.error + ROUNDING * panel.norms[at];
                let bias = bias[first + at];
                panel.bias[at] = bias + ROUNDING_OF_BIAS * bias.abs();
            }
            panel.words = words;
            for row in (0..self.best.len()).step_by(ROWS) {
                self.compare_rows(row, &panel);
            }
        }

        /// Compares them with [`ROWS`] rows.
        #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
        fn compare_rows(&self, first: usize, panel: &EntryPanel<'_>) {
            let steps = self.steps;
            let rows = &self.words[first * steps..(first + ROWS) * steps];
            let mut sums = [[_mm512_setzero_si512(); 2]; ROWS];
            for (row, sums) in sums.iter_mut().enumerate() {
                *sums = [_mm512_set1_epi32(-self.offsets[first + row]); 2];
            }
            for (step, words) in panel.words.chunks_exact(ENTRIES).enumerate() {
                // SAFETY: thirty-two words are two registers.
                let [low, high] = unsafe {
                    let words = words.as_ptr().cast::<__m512i>();
                    [_mm512_loadu_si512(words), _mm512_loadu_si512(words.add(1))]
                };
                for (row, [low_sums, high_sums]) in sums.iter_mut().enumerate() {
                    // SAFETY: `rows` has `steps` times `ROWS` words, and the panel as many steps.
                    let word = _mm512_set1_epi32(unsafe { *rows.get_unchecked(step * ROWS + row) });
                    *low_sums = _mm512_dpbusd_epi32(*low_sums, low, word);
                    *high_sums = _mm512_dpbusd_epi32(*high_sums, high, word);
                }
            }
            let rows = self.best.len().min(first + ROWS) - first;
            for (row, sums) in sums[..rows].iter().enumerate() {
                for (half, &sums) in sums.iter().enumerate() {
                    self.sift(first + row, panel, half * 16, sums);
                }
            }
        }

        /// Computes the scores that may be the best of a row: `sums` are those of sixteen entries.
        #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
        #[inline]
        fn sift(&self, row: usize, panel: &EntryPanel<'_>, from: usize, sums: __m512i) {
            let Rounded { scale, norm, error } = self.rounded[row];
            let load = |of: &[f32; ENTRIES]| {
                // SAFETY: `from` is 0 or 16 of thirty-two.
                unsafe { _mm512_loadu_ps(of.as_ptr().add(from)) }
            };
            let slack = _mm512_fmadd_ps(
                _mm512_set1_ps(norm),
                load(&panel.errors),
                _mm512_mul_ps(_mm512_set1_ps(error), load(&panel.norms)),
            );
            let sums = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), _mm512_set1_ps(scale));
            let bounds = _mm512_fmadd_ps(sums, load(&panel.scales), load(&panel.bias));
            let bounds = _mm512_add_ps(bounds, slack);
            let best = &self.best[row];
            // A bound that is NaN is not below: what it is of is computed.
            let mut open = _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(bounds, _mm512_set1_ps(best.score()));
            if open == 0 {
                return;
            }
            let mut each = [0.0; 16];
            // SAFETY: sixteen numbers are one register.
            unsafe { _mm512_storeu_ps(each.as_mut_ptr(), bounds) };
            while open != 0 {
                let at = open.trailing_zeros() as usize;
                open &= open - 1;
                let id = panel.first + from + at;
                if each[at] < best.score() || id >= self.search.bias.len() {
                    continue;
                }
                best.offer(self.score(row, id), id as u32);
            }
        }

        /// A score, in `f32`.
        #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
        fn score(&self, row: usize, id: usize) -> f32 {
            let TokenSearch { hidden, table, bias, dim } = *self.search;
            let (hidden, entry) = (&hidden[row * dim..][..dim], &table[id * dim..][..dim]);
            let ((hidden, rest), (entry, rest_of_entry)) =
                (hidden.as_chunks::<16>(), entry.as_chunks::<16>());
            let mut sums = _mm512_setzero_ps();
            for (hidden, entry) in hidden.iter().zip(entry) {
                // SAFETY: chunks of sixteen.
                let (hidden, entry) =
                    unsafe { (_mm512_loadu_ps(hidden.as_ptr()), _mm512_loadu_ps(entry.as_ptr())) };
                sums = _mm512_fmadd_ps(hidden, entry, sums);
            }
            let rest: f32 = rest.iter().zip(rest_of_entry).map(|(h, w)| h * w).sum();
            _mm512_reduce_add_ps(sums) + rest + bias[id]
        }
    }
}
