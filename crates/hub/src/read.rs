//! Numbers out of a tensor's bytes, in the order in which an encoder keeps them.
//!
//! Hugging Face keeps most weights outputs x inputs, an encoder inputs x outputs, so most matrices are
//! transposed. Some families keep several maps as one tensor.

use std::ops::Range;

use half::{bf16, f16};

use text::Result;

use crate::weights::{NumberType, StoredTensor};

/// How a weight matrix is made of tensors of a file.
pub(crate) enum Reading<'a> {
    /// The rows of a table from one on; where a row is to be added, to each of them.
    Rows { table: StoredTensor<'a>, skip: usize, add: Option<StoredTensor<'a>> },
    /// Matrices as an encoder keeps them, side by side.
    Beside(Vec<Outputs<'a>>),
    /// Rows one after another, with a number added to each element.
    Joined(Vec<Outputs<'a>>, f32),
    /// Not from the file.
    Given(Vec<f32>),
}

/// Some outputs of a tensor: all of them, or those of one of several maps that are kept as one.
#[derive(Clone)]
pub(crate) struct Outputs<'a> {
    pub(crate) tensor: StoredTensor<'a>,
    pub(crate) range: Range<usize>,
    /// Whether the tensor is inputs x outputs.
    pub(crate) sideways: bool,
}

impl Reading<'_> {
    /// Writes the weight, all of it.
    pub(crate) fn write(&self, out: &mut [f32]) -> Result<()> {
        match self {
            Reading::Given(values) => out.copy_from_slice(values),
            Reading::Rows { table, skip, add } => {
                let cols = table.shape[1];
                copy(table, skip * cols, out)?;
                if let Some(row) = add {
                    let row = row.numbers()?;
                    for target in out.chunks_exact_mut(cols) {
                        target.iter_mut().zip(row.iter()).for_each(|(x, &add)| *x += add);
                    }
                }
            }
            Reading::Joined(parts, add) => {
                let mut rest = out;
                for Outputs { tensor, range, .. } in parts {
                    let (now, after) = rest.split_at_mut(range.len());
                    copy(tensor, range.start, now)?;
                    now.iter_mut().for_each(|x| *x += add);
                    rest = after;
                }
            }
            Reading::Beside(parts) => {
                let width: usize = parts.iter().map(|part| part.range.len()).sum();
                let mut first = 0;
                for Outputs { tensor, range, sideways } in parts {
                    let (numbers, cols) = (tensor.numbers()?, tensor.shape[1]);
                    if *sideways {
                        for (out, row) in out.chunks_mut(width).zip(numbers.chunks(cols)) {
                            out[first..first + range.len()].copy_from_slice(&row[range.clone()]);
                        }
                    } else {
                        let numbers = &numbers[range.start * cols..range.end * cols];
                        transpose(numbers, cols, out, width, first);
                    }
                    first += range.len();
                }
            }
        }
        Ok(())
    }
}

impl StoredTensor<'_> {
    /// The numbers in single precision.
    pub fn numbers(&self) -> Result<Vec<f32>> {
        let mut numbers = vec![0.0; self.shape.iter().product()];
        copy(self, 0, &mut numbers)?;
        let Some(rows) = self.head_rows else { return Ok(numbers) };
        let cols = self.shape[1];
        let mut turned = vec![0.0; numbers.len()];
        for (row, target) in turned.chunks_exact_mut(cols).enumerate() {
            let (head, at) = (row / rows, row % rows);
            let from = head * rows + at % (rows / 2) * 2 + at / (rows / 2);
            target.copy_from_slice(&numbers[from * cols..][..cols]);
        }
        Ok(turned)
    }
}

/// Reads numbers of any kind from one on, as many as there is room for.
fn copy(view: &StoredTensor<'_>, skip: usize, out: &mut [f32]) -> Result<()> {
    match view.element {
        // They stand in the file as in memory.
        NumberType::F32 if cfg!(target_endian = "little") => {
            view.read_at(skip * size_of::<f32>(), bytemuck::cast_slice_mut(out))
        }
        NumberType::F32 => convert(view, skip, out, f32::from_le_bytes),
        NumberType::F16 => convert(view, skip, out, |bytes| f16::from_le_bytes(bytes).to_f32()),
        NumberType::Bf16 => convert(view, skip, out, |bytes| bf16::from_le_bytes(bytes).to_f32()),
        NumberType::Quantised(kind) => {
            let (length, bytes) = kind.block();
            assert!(
                skip.is_multiple_of(length) && out.len().is_multiple_of(length),
                "whole rows are read"
            );
            let mut blocks = vec![0; out.len() / length * bytes];
            view.read_at(skip / length * bytes, &mut blocks)?;
            let blocks = blocks.chunks_exact(bytes);
            out.chunks_exact_mut(length)
                .zip(blocks)
                .for_each(|(out, block)| kind.numbers(block, out));
            Ok(())
        }
        _ => unreachable!("other kinds are refused before"),
    }
}

fn convert<const N: usize>(
    view: &StoredTensor<'_>,
    skip: usize,
    out: &mut [f32],
    number: impl Fn([u8; N]) -> f32,
) -> Result<()> {
    let mut bytes = vec![0; out.len() * N];
    view.read_at(skip * N, &mut bytes)?;
    let (numbers, _) = bytes.as_chunks::<N>();
    out.iter_mut().zip(numbers).for_each(|(out, &bytes)| *out = number(bytes));
    Ok(())
}

/// Rows and columns that are transposed at a time, so that both sides stay in the first cache.
const TILE: usize = 16;

/// Writes the columns of `from` (rows x `cols`) as rows of `out`, which are `width` wide, from column
/// `first` on.
fn transpose(from: &[f32], cols: usize, out: &mut [f32], width: usize, first: usize) {
    let rows = from.len() / cols;
    for row in (0..rows).step_by(TILE) {
        let row_end = (row + TILE).min(rows);
        for col in (0..cols).step_by(TILE) {
            for at in col..(col + TILE).min(cols) {
                let target = &mut out[at * width + first + row..][..row_end - row];
                for (offset, target) in target.iter_mut().enumerate() {
                    *target = from[(row + offset) * cols + at];
                }
            }
        }
    }
}

/// How sines and cosines of positions stand in a row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sinusoids {
    /// In turn.
    Alternating,
    /// Sines in the first half; the first position is counted as this.
    Halves { first: usize },
}

/// The sinusoids (Vaswani et al. 2017) that XGLM has, and that XLM and DistilBERT may have in place of learned positions.
pub(crate) fn sinusoid(positions: usize, dim: usize, waves: Sinusoids) -> Vec<f32> {
    let element = |at: usize| {
        let (position, col, half) = (at / dim, at % dim, dim / 2);
        let angle = |position: usize, share: f64| position as f64 / 10_000f64.powf(share);
        let (angle, sine) = match waves {
            Sinusoids::Alternating => {
                let share = 2.0 * (col / 2) as f64 / dim as f64;
                (angle(position, share), col.is_multiple_of(2))
            }
            Sinusoids::Halves { first } => {
                let share = (col % half.max(1)) as f64 / (half.max(2) - 1) as f64;
                (angle(position + first, share), col < half)
            }
        };
        (if sine { angle.sin() } else { angle.cos() }) as f32
    };
    (0..positions * dim).map(element).collect()
}
