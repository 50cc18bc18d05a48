//! The flags that shift target languages towards the source when they are scored.

use std::path::{Path, PathBuf};

use clap::Args;
use shift::shifter::ShiftKind;
use tasks::finetune::{Difference, SetConfig, ShiftConfig};

use super::missing;
use super::source::paths;
use crate::commands::shift::MEANS;
use crate::commands::texts::parse_text;
use crate::failure::Failure;

/// How target languages are shifted.
#[derive(Args)]
pub(super) struct ShiftFlags {
    /// Score target languages also shifted towards the source, after this layer (0 is the
    /// embeddings). No layer up to it may learn: see --train-layers.
    #[arg(long, value_name = "N")]
    shift_layer: Option<usize>,

    /// The means of `isogloss shift means`, whose difference is added; those in the run's folder if
    /// not given.
    #[arg(long, value_name = "FILE", requires = "shift_layer", conflicts_with = "shift")]
    means: Option<PathBuf>,

    /// Weights of the shift. Of several, each language takes the best on its own --dev file [0 to 2 by
    /// tenths; 1 where no target language has such a file].
    #[arg(
        long,
        value_name = "A,…",
        value_delimiter = ',',
        allow_hyphen_values = true,
        requires = "shift_layer"
    )]
    shift_weights: Vec<f64>,

    /// How the shift is made: mean, sharing (by whether languages share a piece), bands (by
    /// frequency), without-N (less N leading directions) [default: mean].
    #[arg(long, value_name = "KIND", value_parser = ShiftKind::parse, requires = "shift_layer",
        conflicts_with = "shift")]
    shift_kind: Option<ShiftKind>,

    /// A vector of your own to add to the hidden states of a language in place of a difference of
    /// means, an array of NumPy.
    #[arg(long, value_name = "LANG=D.npy", value_parser = parse_text, requires = "shift_layer")]
    shift: Vec<(String, String)>,
}

impl ShiftFlags {
    /// Whether a shift is asked for.
    pub(super) fn asked(&self) -> bool {
        self.shift_layer.is_some()
    }

    /// What is asked for, given the run's folder where there is one, and the development sets of
    /// target languages.
    pub(super) fn config(
        &self,
        run: Option<&Path>,
        devs: Vec<SetConfig>,
    ) -> Result<Option<ShiftConfig>, Failure> {
        let Some(layer) = self.shift_layer else {
            return match devs.first() {
                None => Ok(None),
                Some(dev) => Err(Failure::Usage(format!(
                    "--dev {}={}: nothing is chosen on a target language but the weight of a shift; \
                     give --shift-layer, or leave the file out",
                    dev.language,
                    dev.file.display()
                ))),
            };
        };
        let by = if self.shift.is_empty() {
            let own = || run.map(|run| run.join(MEANS));
            let file = self.means.clone().or_else(own).ok_or_else(|| missing("--means FILE"))?;
            Difference::Means { file, kind: self.shift_kind.unwrap_or(ShiftKind::Mean) }
        } else {
            Difference::Vectors(paths(&self.shift))
        };
        let weights = match (self.shift_weights.as_slice(), devs.is_empty()) {
            ([], true) => vec![1.0],
            // Paper 2 found weights from .2 to 2 by tenths (its Table 4).
            ([], false) => (0..=20).map(|tenths| f64::from(tenths) / 10.0).collect(),
            (given, _) => given.to_vec(),
        };
        Ok(Some(ShiftConfig { layer, by, weights, devs }))
    }
}
