//! `isogloss shift difference`: what a shift adds, for other programs and for changes of one's own.

use std::path::PathBuf;

use arrays::npy::{self, Precision};
use clap::Args;
use serde_json::json;
use shift::shifter::{Kind, Shifter};

use super::{Measured, refused};
use crate::failure::Failure;
use crate::outcome::Outcome;

const EXAMPLES: &str = "Example:
  isogloss shift difference --model run --from qab --to qaa --layer 2 --out D.npy
  In NumPy, np.load('D.npy') is then what is added to every state of qab.";

/// Flags of `shift difference`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DifferenceOf {
    #[command(flatten)]
    measured: Measured,

    /// The language to shift.
    #[arg(long, value_name = "LANG")]
    from: String,

    /// The language to shift it to.
    #[arg(long, value_name = "LANG")]
    to: String,

    /// After which layer; 0 is the embeddings.
    #[arg(long, value_name = "N")]
    layer: usize,

    /// How the shift is made: mean, or without-N (less N leading directions).
    #[arg(long, value_name = "KIND", default_value = "mean", value_parser = one_vector)]
    kind: Kind,

    /// The file to write: an array of as many numbers as a hidden state has.
    #[arg(long, value_name = "D.npy")]
    out: PathBuf,
}

/// A kind of shift that is the same for all pieces.
fn one_vector(text: &str) -> Result<Kind, String> {
    match Kind::parse(text)? {
        kind @ (Kind::Mean | Kind::Without(_)) => Ok(kind),
        kind => Err(format!("{} has a vector for each class of pieces, not one", kind.name())),
    }
}

impl DifferenceOf {
    pub(super) fn run(self) -> Result<Outcome, Failure> {
        let Self { from, to, layer, kind, out, .. } = &self;
        files::check_new_file(out, true)?;
        let (_, _, means) = self.measured.open()?;
        let place = |name: &str| means.language(name).map_err(refused);
        let shifter =
            Shifter::new(&means, place(from)?, place(to)?, *layer, *kind).map_err(refused)?;
        let vector = shifter.vector(0);
        npy::write(out, &[vector.len()], vector, Precision::Single)?;
        let length = vector.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
        let text = format!(
            "{}: the mean of {to} less that of {from} after layer {layer}, of length {length:.3}\n",
            out.display()
        );
        let facts = json!({
            "file": out, "from": from, "to": to, "layer": layer, "kind": kind, "length": length,
        });
        Ok(Outcome::new(text, &facts))
    }
}
