//! Matmuls of numbers rounded to bf16, with sums in f32, by AVX-512 BF16.
//!
//! One instruction (`vdpbf16ps`) adds 32 products of bf16 numbers to 16 sums, twice as many as a multiply-add of
//! f32, from half the bytes: a matmul takes half the time. The instruction wants numbers that are added up side
//! by side, so operands are kept as *pairs* of neighbours along the inner dimension, a `u32` each. The left side is
//! rounded row after row; the right side is packed into panels of 32 columns. A sum runs over the pairs in their
//! order, whatever the block, so that a row of the result does not depend on the rows beside it.

#![allow(unsafe_code, reason = "the instructions take pointers, and blocks are written at once")]

use std::ops::Range;

use rayon::prelude::*;

use super::Cpu;
use super::matmul::{MatrixView, MatrixViewMut};

/// Rows and columns of a tile: its sums take 28 of the 32 registers, two hold columns and one a row's pair.
const TILE_ROWS: usize = 14;
const TILE_COLS: usize = 32;
/// Rows and columns of a block: what one thread computes from beginning to end.
const BLOCK_ROWS: usize = 14 * TILE_ROWS;
const BLOCK_COLS: usize = 8 * TILE_COLS;
/// Pairs of the inner dimension that are worked through at once: so many of a block's rows (600 kB) and of a panel
/// (100 kB) stay in the second cache.
const PAIRS: usize = 768;
/// Added to the pairs of a row, so that the rows of a tile do not fall onto the same lines of the first cache.
const ROW_PADDING: usize = 16;

type TileSums = [[f32; TILE_COLS]; TILE_ROWS];

/// The instructions, on a processor that has them.
#[derive(Clone, Copy)]
pub(super) struct Bf16Dots(());

impl Bf16Dots {
    /// None where the processor lacks them.
    pub(super) fn detect() -> Option<Self> {
        instructions::available().then_some(Self(()))
    }

    /// `y = x · weight`, both rounded to bf16, on all threads; `finish` is called once for each block of `y` when it
    /// is done, with the rows and columns of the block.
    pub(super) fn multiply_parallel(
        self,
        cpu: &Cpu,
        y: &MatrixViewMut<'_>,
        x: MatrixView<'_>,
        weight: MatrixView<'_>,
        finish: impl Fn(Range<usize>, Range<usize>) + Sync,
    ) {
        let ((rows, inner), (_, cols)) = (x.shape(), weight.shape());
        assert_eq!((inner, y.shape()), (weight.shape().0, (rows, cols)), "shapes of a matmul");
        if rows == 0 || cols == 0 {
            return;
        }
        let pairs = inner.div_ceil(2);
        let stride = pairs + ROW_PADDING;
        let mut space = cpu.scratch(rows.next_multiple_of(TILE_ROWS) * stride);
        let left: &mut [u32] = bytemuck::cast_slice_mut(space.as_mut_slice());
        left.par_chunks_mut(stride).enumerate().for_each(|(row, left)| {
            if row < rows { self.round_row(x.row(row), left) } else { left.fill(0) }
        });
        let mut space = cpu.scratch(cols.div_ceil(TILE_COLS) * pairs * TILE_COLS);
        let right: &mut [u32] = bytemuck::cast_slice_mut(space.as_mut_slice());
        right.par_chunks_mut((pairs * TILE_COLS).max(1)).enumerate().for_each(|(panel, right)| {
            self.pack_panel(weight, panel * TILE_COLS, right);
        });
        let product = PackedProduct { dots: self, left, stride, right, pairs, y };
        let (down, across) = (rows.div_ceil(BLOCK_ROWS), cols.div_ceil(BLOCK_COLS));
        (0..down * across).into_par_iter().with_max_len(1).for_each(|block| {
            let (row, col) = (block / across * BLOCK_ROWS, block % across * BLOCK_COLS);
            let rows = row..rows.min(row + BLOCK_ROWS);
            let cols = col..cols.min(col + BLOCK_COLS);
            product.block(rows.clone(), cols.clone());
            finish(rows, cols);
        });
    }

    /// Rounds a row to pairs; what is beyond its end is zero.
    fn round_row(self, x: &[f32], pairs: &mut [u32]) {
        // SAFETY: `self` is proof that the processor has the instructions.
        unsafe { instructions::round_row(x, pairs) }
    }

    /// Packs the columns from `first` on into a panel: pairs x 32. Columns beyond the matrix are zero.
    fn pack_panel(self, weight: MatrixView<'_>, first: usize, panel: &mut [u32]) {
        let (rows, cols) = weight.shape();
        let mut edge = [[0.0; TILE_COLS]; 2];
        for (pair, packed) in panel.as_chunks_mut().0.iter_mut().enumerate() {
            let both = [2 * pair, 2 * pair + 1].map(|row| match row < rows {
                true => &weight.row(row)[first..cols.min(first + TILE_COLS)],
                false => &[],
            });
            let both = match both.map(TryFrom::try_from) {
                [Ok(low), Ok(high)] => [low, high],
                _ => {
                    for (edge, row) in edge.iter_mut().zip(both) {
                        edge[..row.len()].copy_from_slice(row);
                        edge[row.len()..].fill(0.0);
                    }
                    [&edge[0], &edge[1]]
                }
            };
            // SAFETY: `self` is proof that the processor has the instructions.
            unsafe { instructions::interleave(both[0], both[1], packed) };
        }
    }

    /// The sums of one tile over `panel`, the pairs of 32 columns; `left` begins at the first pair of its first row.
    fn tile(self, left: &[u32], stride: usize, panel: &[u32], sums: &mut TileSums) {
        // SAFETY: `self` is proof that the processor has the instructions; it checks the lengths itself.
        unsafe { instructions::tile(left, stride, panel, sums) }
    }
}

/// Both operands in pairs, and where the result goes.
struct PackedProduct<'a> {
    dots: Bf16Dots,
    /// Rows, padded to whole tiles, of `stride` words.
    left: &'a [u32],
    stride: usize,
    /// Panels of pairs x 32.
    right: &'a [u32],
    pairs: usize,
    y: &'a MatrixViewMut<'a>,
}

impl PackedProduct<'_> {
    /// Computes a block of the result, on this thread.
    fn block(&self, rows: Range<usize>, cols: Range<usize>) {
        let Self { dots, left, stride, right, pairs, y } = *self;
        let mut sums = [[0.0; TILE_COLS]; TILE_ROWS];
        for start in (0..pairs.max(1)).step_by(PAIRS) {
            let inner = start..pairs.min(start + PAIRS);
            for col in cols.clone().step_by(TILE_COLS) {
                let panel = &right[col * pairs..][inner.start * TILE_COLS..inner.end * TILE_COLS];
                let width = TILE_COLS.min(cols.end - col);
                for row in rows.clone().step_by(TILE_ROWS) {
                    dots.tile(&left[row * stride + start..], stride, panel, &mut sums);
                    for (row, sums) in (row..rows.end).zip(&sums) {
                        // SAFETY: blocks share no element, and one segment of this block is live at a time.
                        let y = unsafe { y.segment(row, col..col + width) };
                        match <&mut [f32; TILE_COLS]>::try_from(&mut *y) {
                            Ok(whole) if start == 0 => *whole = *sums,
                            _ if start == 0 => y.copy_from_slice(&sums[..width]),
                            _ => y.iter_mut().zip(sums).for_each(|(y, sum)| *y += sum),
                        }
                    }
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod instructions {
    use std::arch::x86_64::*;

    use super::{TILE_COLS, TILE_ROWS, TileSums};

    pub(super) fn available() -> bool {
        is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bf16")
    }

    /// Rounds numbers to bf16, neighbours to a word; what is beyond them is zero.
    #[target_feature(enable = "avx512f,avx512bf16")]
    pub(super) fn round_row(x: &[f32], pairs: &mut [u32]) {
        assert!(x.len() <= 2 * pairs.len());
        let mut chunks = x.chunks_exact(2 * 16);
        let mut out = pairs.chunks_exact_mut(16);
        for (x, pairs) in chunks.by_ref().zip(out.by_ref()) {
            // SAFETY: 32 numbers are read and 16 words written, as many as the chunks have.
            unsafe {
                let (low, high) =
                    (_mm512_loadu_ps(x.as_ptr()), _mm512_loadu_ps(x.as_ptr().add(16)));
                let rounded = _mm512_cvtne2ps_pbh(high, low);
                let rounded = std::mem::transmute::<__m512bh, __m512i>(rounded);
                _mm512_storeu_si512(pairs.as_mut_ptr().cast(), rounded);
            }
        }
        let rest = chunks.remainder();
        if !rest.is_empty() {
            let mut padded = [0.0; 32];
            padded[..rest.len()].copy_from_slice(rest);
            let words = rest.len().div_ceil(2);
            let mut last = [0; 16];
            round_row(&padded, &mut last);
            let at = x.len() / 32 * 16;
            pairs[at..at + words].copy_from_slice(&last[..words]);
        }
        pairs[x.len().div_ceil(2)..].fill(0);
    }

    /// Rounds two rows to bf16; each word has an element of the first in its low half, of the second in its high half.
    #[target_feature(enable = "avx512f,avx512bf16")]
    pub(super) fn interleave(
        first: &[f32; TILE_COLS],
        second: &[f32; TILE_COLS],
        words: &mut [u32; TILE_COLS],
    ) {
        for at in [0, 16] {
            // SAFETY: 16 elements from `at` on are within the arrays of 32; the types have the same bits.
            unsafe {
                let round = |x: &[f32; TILE_COLS]| {
                    let rounded = _mm512_cvtneps_pbh(_mm512_loadu_ps(x.as_ptr().add(at)));
                    _mm512_cvtepu16_epi32(std::mem::transmute::<__m256bh, __m256i>(rounded))
                };
                let both = _mm512_or_si512(round(first), _mm512_slli_epi32::<16>(round(second)));
                _mm512_storeu_si512(words.as_mut_ptr().add(at).cast(), both);
            }
        }
    }

    /// The sums of products of 14 rows, `stride` words apart, with a panel of pairs x 32.
    #[target_feature(enable = "avx512f,avx512bf16")]
    pub(super) fn tile(left: &[u32], stride: usize, panel: &[u32], sums: &mut TileSums) {
        let pairs = panel.len() / TILE_COLS;
        assert!((TILE_ROWS - 1) * stride + pairs <= left.len(), "fourteen rows of pairs");
        let mut registers = [[_mm512_setzero_ps(); 2]; TILE_ROWS];
        for pair in 0..pairs {
            // SAFETY: `pair` is below the pairs of the panel and, by the assertion, of every row; the types have the
            // same bits.
            unsafe {
                let at = panel.as_ptr().add(pair * TILE_COLS);
                let right = [0, 16].map(|half| {
                    let words = _mm512_loadu_si512(at.add(half).cast());
                    std::mem::transmute::<__m512i, __m512bh>(words)
                });
                for (row, registers) in registers.iter_mut().enumerate() {
                    let word = *left.get_unchecked(row * stride + pair);
                    let left = _mm512_set1_epi32(word.cast_signed());
                    let left = std::mem::transmute::<__m512i, __m512bh>(left);
                    for (sum, right) in registers.iter_mut().zip(right) {
                        *sum = _mm512_dpbf16_ps(*sum, left, right);
                    }
                }
            }
        }
        // By reference: arrays of registers that move are copied through memory, which takes longer than 64 pairs.
        for (sums, registers) in sums.iter_mut().zip(&registers) {
            for (half, &register) in registers.iter().enumerate() {
                // SAFETY: a row of sums has two halves of 16.
                unsafe { _mm512_storeu_ps(sums.as_mut_ptr().add(16 * half), register) };
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod instructions {
    //! A processor of another kind: nothing here is ever called.

    use super::{TILE_COLS, TileSums};

    pub(super) fn available() -> bool {
        false
    }

    pub(super) unsafe fn round_row(_: &[f32], _: &mut [u32]) {
        unreachable!("not on this processor")
    }

    pub(super) unsafe fn interleave(
        _: &[f32; TILE_COLS],
        _: &[f32; TILE_COLS],
        _: &mut [u32; TILE_COLS],
    ) {
        unreachable!("not on this processor")
    }

    pub(super) unsafe fn tile(_: &[u32], _: usize, _: &[u32], _: &mut TileSums) {
        unreachable!("not on this processor")
    }
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;

    fn numbers(len: usize) -> Vec<f32> {
        (0..len).map(|i| (i * 7919 % 1009) as f32 / 1009.0 - 0.5).collect()
    }

    #[test]
    fn products_are_those_of_rounded_numbers() {
        let Some(dots) = Bf16Dots::detect() else {
            return terms::tests::left_out("this processor has no AVX-512 BF16");
        };
        let cpu = Cpu::new(2).unwrap();
        let shapes =
            [(1, 1, 1), (3, 200, 5), (14, 32, 64), (215, 33, 17), (29, 300, 1601), (5, 7, 0)];
        for (m, n, k) in shapes {
            let (a, b) = (numbers(m * k), numbers(k * n));
            let mut c = vec![f32::NAN; m * n];
            let view = MatrixViewMut::new(&mut c, m, n, n);
            let calls = std::sync::Mutex::new(0);
            dots.multiply_parallel(
                &cpu,
                &view,
                MatrixView::new(&a, m, k, k),
                MatrixView::new(&b, k, n, n),
                |rows, cols| *calls.lock().unwrap() += rows.len() * cols.len(),
            );
            assert_eq!(*calls.lock().unwrap(), m * n, "every element is finished once");
            let rounded = |x: f32| f64::from(bf16::from_f32(x).to_f32());
            for (at, &c) in c.iter().enumerate() {
                let exact: f64 =
                    (0..k).map(|i| rounded(a[at / n * k + i]) * rounded(b[i * n + at % n])).sum();
                assert!(
                    (f64::from(c) - exact).abs() < 2e-5 * (1.0 + k as f64).sqrt(),
                    "{m}x{n}x{k} at {at}: {c} {exact}"
                );
            }
        }
    }

    #[test]
    fn a_row_does_not_depend_on_those_beside_it_and_nan_stays() {
        let Some(dots) = Bf16Dots::detect() else {
            return terms::tests::left_out("this processor has no AVX-512 BF16");
        };
        let (m, n, k) = (40, 70, 96);
        let (mut a, b) = (numbers(m * k), numbers(k * n));
        let product = |threads: usize, a: &[f32]| {
            let mut c = vec![0.0; a.len() / k * n];
            let view = MatrixViewMut::new(&mut c, a.len() / k, n, n);
            let x = MatrixView::new(a, a.len() / k, k, k);
            let cpu = Cpu::new(threads).unwrap();
            dots.multiply_parallel(&cpu, &view, x, MatrixView::new(&b, k, n, n), |_, _| {});
            c
        };
        let whole = product(2, &a);
        assert_eq!(product(1, &a), whole);
        assert_eq!(product(1, &a[17 * k..18 * k]), whole[17 * n..18 * n]);
        a[17 * k + 3] = f32::NAN;
        let damaged = product(2, &a);
        assert!(damaged[17 * n..18 * n].iter().all(|x| x.is_nan()));
        assert_eq!(damaged[..17 * n], whole[..17 * n]);
    }
}
