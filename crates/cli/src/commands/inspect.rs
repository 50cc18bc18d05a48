//! `isogloss inspect`: what a file or folder holds.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use lab::store::{FILE, RecordFilter, Store};
use models::inspect::{Inspection, inspect};

use serde_json::json;

use crate::failure::Failure;
use crate::outcome::Outcome;
use commands::hub::checkpoint_in_words;
use commands::models::Compute;

const EXAMPLES: &str = "Examples:
  isogloss inspect bert-base-multilingual-cased
  isogloss inspect run
  isogloss inspect run/vocabulary
  isogloss inspect means.safetensors
  isogloss inspect fr.npy
  isogloss inspect cc.fr.300.vec.gz
  isogloss inspect lab

Nothing is changed. A Hugging Face folder is read as wherever a model is named, so that what cannot
be used is refused here too.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Inspect {
    /// A run, a Hugging Face folder, a vocabulary or a laboratory; or a file of arrays, word vectors, language mean
    /// vectors or text.
    #[arg(value_name = "PATH")]
    path: PathBuf,

    #[command(flatten)]
    compute: Compute,
}

impl Inspect {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        if self.path.join(FILE).is_file() {
            return laboratory(&self.path);
        }
        let inspection = inspect(&self.path, &self.compute.device()?)?;
        Ok(Outcome::new(in_words(&inspection), &inspection))
    }
}

/// The results of a laboratory are shown by commands of their own.
fn laboratory(path: &Path) -> Result<Outcome, Failure> {
    let records = Store::existing(&path.join(FILE))?.records(&RecordFilter::default())?.len();
    let shown = path.display();
    let text = format!(
        "{shown}: a laboratory; {records} results\n\
         Show them with `isogloss results --lab {shown}` or `isogloss report --lab {shown}`.\n"
    );
    Ok(Outcome::new(text, &json!({ "kind": "laboratory", "path": path, "results": records })))
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
        Inspection::States { path, languages, layers, dim } => format!(
            "{}: hidden states of layers 0 to {layers}, {dim} dimensions; languages: {}\n",
            path.display(),
            languages.join(", ")
        ),
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
        Inspection::Text { path, lines, words } => {
            format!("{}: text; {lines} lines of {words} words\n", path.display())
        }
        Inspection::WordVectors { path, words, dim } => {
            format!("{}: {words} word vectors of {dim} dimensions\n", path.display())
        }
    }
}
