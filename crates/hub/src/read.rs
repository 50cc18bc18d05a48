//! Numbers out of a tensor's bytes, in the order in which an encoder keeps them.
//!
//! Hugging Face keeps weights outputs x inputs, an encoder inputs x outputs, so most matrices are
//! transposed.

use half::{bf16, f16};

use text::Result;

use crate::weights::{NumberType, StoredTensor};

/// How a weight matrix is made of tensors of a file.
pub(crate) enum Reading<'a> {
    /// The rows of a table from one on; where a row is to be added, to each of them.
    Rows { table: StoredTensor<'a>, skip: usize, add: Option<StoredTensor<'a>> },
    /// Matrices, transposed, side by side.
    Transposed(Vec<StoredTensor<'a>>),
    /// One after another.
    Joined(Vec<StoredTensor<'a>>),
    /// Not from the file.
    Given(Vec<f32>),
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
            Reading::Joined(views) => {
                let mut rest = out;
                for view in views {
                    let (now, after) = rest.split_at_mut(view.shape.iter().product());
                    copy(view, 0, now)?;
                    rest = after;
                }
            }
            Reading::Transposed(views) => {
                let width: usize = views.iter().map(|view| view.shape[0]).sum();
                let mut first = 0;
                for view in views {
                    transpose(&view.numbers()?, view.shape[1], out, width, first);
                    first += view.shape[0];
                }
            }
        }
        Ok(())
    }
}

impl StoredTensor<'_> {
    /// The numbers in single precision.
    pub(crate) fn numbers(&self) -> Result<Vec<f32>> {
        let mut numbers = vec![0.0; self.shape.iter().product()];
        copy(self, 0, &mut numbers)?;
        Ok(numbers)
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

/// The sinusoids (Vaswani et al. 2017) that XLM and DistilBERT may have in place of learned positions.
pub(crate) fn sinusoid(positions: usize, dim: usize) -> Vec<f32> {
    let element = |at: usize| {
        let (position, col) = (at / dim, at % dim);
        let angle = position as f64 / 10_000f64.powf(2.0 * (col / 2) as f64 / dim as f64);
        (if col.is_multiple_of(2) { angle.sin() } else { angle.cos() }) as f32
    };
    (0..positions * dim).map(element).collect()
}
