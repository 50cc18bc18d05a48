//! The arithmetic of a batch of pairs, on one thread's columns.

use pulp::{Arch, Simd, WithSimd};

use super::buckets::PairRecord;
use crate::columns::{ColumnMatrix, ColumnShare};

/// One thread's columns of the four tables.
pub(super) struct ThreadTables {
    pub(super) share: ColumnShare,
    pub(super) word: ColumnMatrix,
    pub(super) context: ColumnMatrix,
    /// Sums of squares of what `word` was moved by.
    pub(super) word_squares: ColumnMatrix,
    pub(super) context_squares: ColumnMatrix,
}

/// AdaGrad's learning rate and clipping threshold.
#[derive(Clone, Copy)]
pub(super) struct AdaGradStep {
    pub(super) lr: f32,
    pub(super) clip: f32,
}

/// The dot product of each pair, in parts: units x pairs.
pub(super) fn dots(arch: Arch, tables: &ThreadTables, records: &[PairRecord], parts: &mut [f32]) {
    arch.dispatch(Dots { tables, records, parts });
}

/// AdaGrad on both tables, by each pair's weighted error.
pub(super) fn update(
    arch: Arch,
    tables: &mut ThreadTables,
    records: &[PairRecord],
    errors: &[f32],
    step: AdaGradStep,
) {
    arch.dispatch(Update { tables, records, errors, step });
}

struct Dots<'a> {
    tables: &'a ThreadTables,
    records: &'a [PairRecord],
    parts: &'a mut [f32],
}

impl WithSimd for Dots<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { tables, records, parts } = self;
        let width = tables.share.width;
        let row = |table: &'_ ColumnMatrix, row: u32| row as usize * table.width;
        for (at, record) in records.iter().enumerate() {
            let word = &tables.word.values()[row(&tables.word, record.word)..][..width];
            let context = &tables.context.values()[row(&tables.context, record.context)..][..width];
            for (unit, within) in tables.share.within.iter().enumerate() {
                let (word, _) = S::as_simd_f32s(&word[within.clone()]);
                let (context, _) = S::as_simd_f32s(&context[within.clone()]);
                let mut sum = simd.splat_f32s(0.0);
                for (&word, &context) in word.iter().zip(context) {
                    sum = simd.mul_add_e_f32s(word, context, sum);
                }
                parts[unit * records.len() + at] = simd.reduce_sum_f32s(sum);
            }
        }
    }
}

struct Update<'a> {
    tables: &'a mut ThreadTables,
    records: &'a [PairRecord],
    errors: &'a [f32],
    step: AdaGradStep,
}

impl WithSimd for Update<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { tables, records, errors, step } = self;
        let width = tables.share.width;
        let (lr, clip) = (simd.splat_f32s(step.lr), simd.splat_f32s(step.clip));
        let floor = simd.splat_f32s(-step.clip);
        let scaled = |gradient: S::f32s| {
            simd.mul_f32s(simd.max_f32s(simd.min_f32s(gradient, clip), floor), lr)
        };
        for (record, &error) in records.iter().zip(errors) {
            let error = simd.splat_f32s(error);
            let word = row::<S>(&mut tables.word, record.word, width);
            let context = row::<S>(&mut tables.context, record.context, width);
            let word_squares = row::<S>(&mut tables.word_squares, record.word, width);
            let context_squares = row::<S>(&mut tables.context_squares, record.context, width);
            let both = word.iter_mut().zip(word_squares);
            let others = context.iter_mut().zip(context_squares);
            for ((word, word_squares), (context, context_squares)) in both.zip(others) {
                let to_word = scaled(simd.mul_f32s(error, *context));
                let to_context = scaled(simd.mul_f32s(error, *word));
                let moved =
                    |to: S::f32s, squares: S::f32s| simd.div_f32s(to, simd.sqrt_f32s(squares));
                *word = simd.sub_f32s(*word, moved(to_word, *word_squares));
                *context = simd.sub_f32s(*context, moved(to_context, *context_squares));
                *word_squares = simd.mul_add_e_f32s(to_word, to_word, *word_squares);
                *context_squares = simd.mul_add_e_f32s(to_context, to_context, *context_squares);
            }
        }
    }
}

#[inline(always)]
fn row<S: Simd>(table: &mut ColumnMatrix, row: u32, width: usize) -> &mut [S::f32s] {
    let start = row as usize * table.width;
    S::as_mut_simd_f32s(&mut table.values_mut()[start..start + width]).0
}
