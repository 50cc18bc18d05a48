//! `isogloss inspect`: what a file or folder holds.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use models::inspect::{Inspection, inspect};

use super::hub::checkpoint_in_words;
use super::models::Compute;
use crate::failure::Failure;
use crate::outcome::Outcome;

const EXAMPLES: &str = "Examples:
  isogloss inspect bert-base-multilingual-cased
  isogloss inspect run
  isogloss inspect run/vocabulary
  isogloss inspect means.safetensors
  isogloss inspect fr.npy
  isogloss inspect cc.fr.300.vec.gz

Nothing is changed. A Hugging Face folder is read as wherever a model is named, so that what cannot
be used is refused here too.";

/// Flags of `inspect`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Inspect {
    /// A run, a Hugging Face folder or a vocabulary; or a file of arrays, word vectors or language mean
    /// vectors.
    #[arg(value_name = "PATH")]
    path: PathBuf,

    #[command(flatten)]
    compute: Compute,
}

impl Inspect {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let inspection = inspect(&self.path, &self.compute.device()?)?;
        Ok(Outcome::new(in_words(&inspection), &inspection))
    }
}

fn in_words(inspection: &Inspection) -> String {
    match inspection {
        Inspection::Run { path, encoder, step, subwords, .. } => {
            let mut text = format!(
                "{}: a run; {} layers of {} dimensions, {} heads, {} positions, {subwords} subwords\n\
                 languages: {}\n",
                path.display(),
                encoder.layers,
                encoder.dim,
                encoder.heads,
                encoder.positions,
                encoder.languages.join(", "),
            );
            if let Some(step) = step {
                let _ = writeln!(text, "weights of step {step}");
            }
            text
        }
        Inspection::HuggingFace { summary, .. } => checkpoint_in_words(summary),
        Inspection::Vocabulary { path, languages, subwords, .. } => format!(
            "{}: a vocabulary of {subwords} subwords; languages: {}\n",
            path.display(),
            languages.join(", ")
        ),
        Inspection::LanguageMeans { path, languages, layers, model } => format!(
            "{}: language mean vectors at layers 0 to {layers}; languages: {}\nof the model {model}\n",
            path.display(),
            languages.join(", ")
        ),
        Inspection::Arrays { path, layers, rows } => {
            let mut text =
                format!("{}: {} matrices of {rows} rows\n", path.display(), layers.len());
            for (name, dim) in layers {
                let _ = writeln!(text, "  {name:<12} {rows} x {dim}");
            }
            text
        }
        Inspection::WordVectors { path, words, dim } => {
            format!("{}: {words} word vectors of {dim} dimensions\n", path.display())
        }
    }
}
