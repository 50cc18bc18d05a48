//! `isogloss hub import`: what a folder of Hugging Face's holds, and a folder of ours made of it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use hub::CheckpointSummary;
use models::PretrainedModel;
use serde::{Deserialize, Serialize};

use crate::commands::models::Compute;
use crate::failure::Failure;
use crate::outcome::Outcome;

const EXAMPLES: &str = "Examples:
  What is in a folder, and whether it can be used:
    isogloss hub import bert-base-multilingual-cased
  The folder can be named wherever a model is asked for; to make a run of it all the same:
    isogloss hub import bert-base-multilingual-cased --out mbert";

/// Flags of `hub import`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Import {
    /// The folder: config.json, weights, and a tokenizer.
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// Also write it as a folder of ours, which must not exist yet.
    #[arg(long, value_name = "RUN")]
    out: Option<PathBuf>,

    #[command(flatten)]
    compute: Compute,
}

/// The file of an imported folder that says where it comes from.
pub(super) const IMPORTED: &str = "imported.json";

/// What stands in it.
#[derive(Serialize, Deserialize)]
pub(super) struct Note {
    /// The name of the model that was imported.
    pub(super) from: String,
}

/// What a folder of another's is called: by the hub's cache the model's own name, else the folder's.
pub(super) fn model_name(folder: &Path) -> String {
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let parts: Vec<_> = whole.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let cached = parts.iter().rev().find_map(|part| part.strip_prefix("models--"));
    cached.map_or_else(|| parts.last().cloned().unwrap_or_default(), |name| name.replace("--", "/"))
}

/// What `hub import` says.
#[derive(Serialize)]
struct Imported {
    #[serde(flatten)]
    found: CheckpointSummary,
    fingerprint: String,
    seconds: f64,
    out: Option<PathBuf>,
}

impl Import {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        if let Some(out) = &self.out {
            files::check_new_folder(out, false)?;
        }
        if self.folder.join("vocabulary").is_dir() {
            let folder = self.folder.display();
            return Err(Failure::Usage(format!(
                "{folder} is a run of ours already; name it wherever a model is asked for"
            )));
        }
        let device = self.compute.device()?;
        let start = Instant::now();
        let checkpoint = hub::open(&self.folder, &device)?;
        let seconds = start.elapsed().as_secs_f64();
        let (found, fingerprint) = (checkpoint.summary.clone(), checkpoint.fingerprint.clone());
        if let Some(out) = &self.out {
            PretrainedModel::from(checkpoint).save(out)?;
            let note = Note { from: model_name(&self.folder) };
            files::write(
                &out.join(IMPORTED),
                serde_json::to_string(&note).expect("a name") + "\n",
            )?;
        }
        let imported = Imported { found, fingerprint, seconds, out: self.out };
        Ok(Outcome::new(imported.in_words(), &imported))
    }
}

impl Imported {
    fn in_words(&self) -> String {
        let CheckpointSummary { encoder, .. } = &self.found;
        let mut text = format!(
            "{}: {:?}, {} layers of {} dimensions, {} heads, {} positions, {} entries\n\
             {} parameters, {} in {}; pieces from {}; read in {:.2} s\n",
            self.found.folder.display(),
            self.found.family,
            encoder.layers,
            encoder.dim,
            encoder.heads,
            encoder.positions,
            encoder.entries(0),
            self.found.parameters,
            self.found.stored_as,
            self.found.files.join(", "),
            self.found.tokenizer,
            self.seconds,
        );
        if encoder.language_embeddings {
            let _ = writeln!(text, "languages: {}", encoder.languages.join(", "));
        }
        if !self.found.has_mlm_head {
            let missing = self.found.missing.join(", ");
            let _ = writeln!(
                text,
                "it cannot guess masked tokens, but everything else; missing: {missing}"
            );
        }
        if !self.found.left_over.is_empty() {
            let _ = writeln!(text, "left over: {}", self.found.left_over.join(", "));
        }
        if let Some(out) = &self.out {
            let _ = writeln!(text, "written to {}", out.display());
        }
        text
    }
}
