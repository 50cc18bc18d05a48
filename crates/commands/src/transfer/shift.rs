//! The flags that shift target languages towards the source when they are scored.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use shift::shifter::ShiftKind;
use tasks::finetune::{SetConfig, ShiftConfig, ShiftSource};

use super::missing;
use super::source::paths;
use crate::failure::Failure;
use crate::shift::MEANS;
use crate::texts::parse_text;

#[derive(Args, Serialize)]
pub struct ShiftFlags {
    /// Score target languages also shifted towards the source, after this layer (0 is the
    /// embeddings). No layer up to it may be trained: see --train-layers.
    #[arg(long, value_name = "N", help_heading = "Evaluation")]
    pub shift_layer: Option<usize>,

    /// The language mean vectors of `isogloss shift means`, whose difference is added [default: those in the
    /// model's folder].
    #[arg(long, value_name = "FILE", conflicts_with = "shift_vector", help_heading = "Evaluation")]
    pub means: Option<PathBuf>,

    /// Weights of the shift. Of several, each language takes the best on its own --dev file [default: 0 to 2
    /// by tenths; 1 where no target language has such a file].
    #[arg(
        long,
        value_name = "A,…",
        value_delimiter = ',',
        allow_hyphen_values = true,
        help_heading = "Evaluation"
    )]
    pub alpha: Vec<f64>,

    /// How the shift is made: mean, sharing (by whether languages share a subword), bands (by
    /// frequency), without-N (less N leading directions), lsar (the component in the subspace of the languages' means is
    /// replaced by the target's), principal-N (mean, and deviations in N leading directions removed) [default: mean].
    #[arg(long, value_name = "KIND", value_parser = ShiftKind::parse, conflicts_with = "shift_vector",
        help_heading = "Evaluation")]
    pub shift_kind: Option<ShiftKind>,

    /// A vector of your own to add to the hidden states of a language in place of a difference of
    /// means, an array of NumPy.
    #[arg(long, value_name = "LANG=D.npy", value_parser = parse_text, help_heading = "Evaluation")]
    pub shift_vector: Vec<(String, String)>,
}

impl ShiftFlags {
    pub(super) fn asked(&self) -> bool {
        self.shift_layer.is_some()
    }

    /// What is asked for, given the model's folder where there is one, and the development sets of
    /// target languages. Where a run is resumed, what is not given is as it was.
    pub(super) fn config(
        &self,
        model: Option<&Path>,
        devs: Vec<SetConfig>,
        saved: Option<&ShiftConfig>,
    ) -> Result<Option<ShiftConfig>, Failure> {
        let Some(layer) = self.shift_layer.or(saved.map(|saved| saved.layer)) else {
            return self.refuse_without_layer(&devs).map(|()| None);
        };
        let (file, kind) = match saved.map(|saved| &saved.by) {
            Some(ShiftSource::Means { file, kind }) => (Some(file.clone()), Some(*kind)),
            _ => (None, None),
        };
        let by = match (self.shift_vector.as_slice(), saved.map(|saved| &saved.by)) {
            ([], Some(ShiftSource::Vectors(files))) if self.means.is_none() => {
                ShiftSource::Vectors(files.clone())
            }
            ([], _) => {
                let own = || model.map(|model| model.join(MEANS));
                let file = self.means.clone().or(file).or_else(own);
                let file = file.ok_or_else(|| missing("--means FILE"))?;
                ShiftSource::Means {
                    file,
                    kind: self.shift_kind.or(kind).unwrap_or(ShiftKind::Mean),
                }
            }
            (vectors, _) => ShiftSource::Vectors(paths(vectors)),
        };
        let alpha = match (self.alpha.as_slice(), saved) {
            ([], Some(saved)) => saved.alpha.clone(),
            ([], None) => ShiftConfig::default_alpha(!devs.is_empty()),
            (alpha, _) => alpha.to_vec(),
        };
        Ok(Some(ShiftConfig { layer, by, alpha, devs }))
    }

    /// Refuses what only means something where languages are shifted.
    fn refuse_without_layer(&self, devs: &[SetConfig]) -> Result<(), Failure> {
        if let Some(dev) = devs.first() {
            return Err(Failure::Usage(format!(
                "--dev {}={}: nothing is chosen on a target language but the weight of a shift; \
                 give --shift-layer, or leave the file out",
                dev.language,
                dev.file.display()
            )));
        }
        let given = [
            ("--means", self.means.is_some()),
            ("--alpha", !self.alpha.is_empty()),
            ("--shift-kind", self.shift_kind.is_some()),
            ("--shift-vector", !self.shift_vector.is_empty()),
        ];
        match given.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((flag, _)) => Err(Failure::Usage(format!("{flag} needs --shift-layer N"))),
        }
    }
}
