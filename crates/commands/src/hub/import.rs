//! `isogloss hub import`: a Hugging Face checkpoint as the folder of a run.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use hub::{CheckpointSummary, ImportResult};
use models::PretrainedModel;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::models::Compute;
use crate::outcome::Outcome;

const EXAMPLES: &str = "Example:
  isogloss hub import bert-base-multilingual-cased --out mbert

A Hugging Face folder can be named wherever a model is asked for, without being imported;
`isogloss inspect` says what one holds.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Import {
    /// The folder: config.json, weights, and a tokenizer.
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// The folder of the run to make.
    #[arg(short, long, value_name = "RUN")]
    out: PathBuf,

    /// Replace a folder that exists.
    #[arg(short, long)]
    force: bool,

    #[command(flatten)]
    compute: Compute,
}

/// The file of an imported folder that says where it comes from.
pub(super) const IMPORTED: &str = "imported.json";

#[derive(Serialize, Deserialize)]
pub(super) struct ImportNote {
    pub(super) from: String,
}

/// The name of a Hugging Face model: by the hub's cache the model's own, else the folder's.
pub(super) fn model_name(folder: &Path) -> String {
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let parts: Vec<_> = whole.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let cached = parts.iter().rev().find_map(|part| part.strip_prefix("models--"));
    cached.map_or_else(|| parts.last().cloned().unwrap_or_default(), |name| name.replace("--", "/"))
}

impl Import {
    pub fn run(self) -> Result<Outcome, Failure> {
        files::check_new_folder(&self.out, self.force)?;
        if self.folder.join("vocabulary").is_dir() {
            let folder = self.folder.display();
            return Err(Failure::Usage(format!(
                "{folder} is a run already; name it wherever a model is asked for"
            )));
        }
        let device = self.compute.device()?;
        let start = Instant::now();
        let checkpoint = hub::open(&self.folder, &device)?;
        let seconds = start.elapsed().as_secs_f64();
        let (summary, fingerprint) = (checkpoint.summary.clone(), checkpoint.fingerprint.clone());
        let draft = PretrainedModel::from(checkpoint).draft(&self.out, self.force)?;
        let note = ImportNote { from: model_name(&self.folder) };
        draft.write(IMPORTED, (serde_json::to_string(&note)? + "\n").as_bytes())?;
        draft.finish()?;
        let mut text = in_words(&summary);
        let _ = writeln!(text, "read in {seconds:.2} s, written to {}", self.out.display());
        let result = ImportResult { summary, fingerprint, seconds, out: self.out };
        Ok(Outcome::new(text, &result))
    }
}

pub fn in_words(summary: &CheckpointSummary) -> String {
    let encoder = &summary.encoder;
    let mut text = format!(
        "{}: {:?}, {} layers of {} dimensions, {} heads, {} positions, {} entries\n\
         {} parameters, {} in {}; subwords from {}\n",
        summary.folder.display(),
        summary.family,
        encoder.layers,
        encoder.dim,
        encoder.heads,
        encoder.positions,
        encoder.entries(0),
        summary.parameters,
        summary.stored_as,
        summary.files.join(", "),
        summary.tokenizer,
    );
    if encoder.language_embeddings {
        let _ = writeln!(text, "languages: {}", encoder.languages.join(", "));
    }
    if !summary.has_mlm_head && summary.missing.is_empty() {
        text += "it predicts no masked tokens; its hidden states serve wherever states are read\n";
    } else if !summary.has_mlm_head {
        let missing = summary.missing.join(", ");
        let _ =
            writeln!(text, "it has no MLM head, and can do everything else; missing: {missing}");
    }
    if !summary.left_over.is_empty() {
        let _ = writeln!(text, "left over: {}", summary.left_over.join(", "));
    }
    if let Some(vectors) = &summary.sentence_vectors {
        let _ = writeln!(text, "sentence-transformers (--pool own): {vectors}");
    }
    text
}
