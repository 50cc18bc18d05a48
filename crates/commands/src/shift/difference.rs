//! `isogloss shift difference`: the vector that a shift adds, for other programs.

use std::path::PathBuf;

use arrays::npy::{self, Precision};
use clap::Args;
use shift::shifter::{DifferenceResult, ShiftKind, Shifter};

use super::MeasuredModel;
use crate::failure::Failure;
use crate::outcome::Outcome;

const EXAMPLES: &str = "Example:
  isogloss shift difference --model run --means means.safetensors \\
    --from qab --to qaa --layer 2 --out D.npy
  In NumPy, np.load('D.npy') is then what is added to every state of qab.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct DifferenceOf {
    #[command(flatten)]
    measured: MeasuredModel,

    /// The language to shift.
    #[arg(long, value_name = "LANG")]
    from: String,

    /// The language to shift it to.
    #[arg(long, value_name = "LANG")]
    to: String,

    /// After which layer; 0 is the embeddings.
    #[arg(long, value_name = "N")]
    layer: usize,

    /// How the shift is made: mean, or without-N (without N leading directions).
    #[arg(long, value_name = "KIND", default_value = "mean", value_parser = one_vector)]
    shift_kind: ShiftKind,

    /// The file to write: an array of as many numbers as a hidden state has.
    #[arg(short, long, value_name = "D.npy", help_heading = "Output")]
    out: PathBuf,

    /// Replace a file that exists.
    #[arg(short, long, help_heading = "Output")]
    force: bool,
}

/// A kind of shift that is the same for all subwords.
fn one_vector(text: &str) -> Result<ShiftKind, String> {
    match ShiftKind::parse(text)? {
        kind @ (ShiftKind::Mean | ShiftKind::Without(_)) => Ok(kind),
        kind => Err(format!("{} has a vector for each class of subwords, not one", kind.name())),
    }
}

impl DifferenceOf {
    pub fn run(self) -> Result<Outcome, Failure> {
        let Self { from, to, layer, shift_kind, out, .. } = &self;
        files::check_new_file(out, self.force)?;
        let (_, _, means) = self.measured.open()?;
        let (source, target) = (means.language(from)?, means.language(to)?);
        let shifter = Shifter::new(&means, source, target, *layer, *shift_kind)?;
        let vector = shifter.vector(0);
        npy::write(out, &[vector.len()], vector, Precision::Single)?;
        let length = vector.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
        let text = format!(
            "{}: the mean vector of {to} less that of {from} after layer {layer}, of length {length:.3}\n",
            out.display()
        );
        let result = DifferenceResult {
            out: out.clone(),
            from: from.clone(),
            to: to.clone(),
            layer: *layer,
            kind: *shift_kind,
            length,
        };
        Ok(Outcome::new(text, &result))
    }
}
