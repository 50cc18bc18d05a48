//! `isogloss hub export`: a run as a folder that `transformers` loads.

use std::path::{Path, PathBuf};

use clap::Args;
use files::At;
use hub::{ExportResult, ExportSource, ModelCard};
use models::PretrainedModel;

use super::import::{IMPORTED, ImportNote, model_name};
use crate::failure::Failure;
use crate::models::Compute;
use crate::outcome::Outcome;

const EXAMPLES: &str = "Examples:
  A run whose languages share everything:
    isogloss hub export --model run --out run-hf
  One language of a run whose embeddings are separate:
    isogloss hub export --model run --lang fr --out run-fr-hf
  In Python: AutoModelForMaskedLM.from_pretrained('run-hf')";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Export {
    /// The folder of a run, or a Hugging Face folder.
    #[arg(short, long, value_name = "DIR")]
    model: PathBuf,

    /// The folder to write.
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,

    /// Replace a folder that exists.
    #[arg(short, long)]
    force: bool,

    /// The language to export, where not everything is shared.
    #[arg(long, value_name = "LANG")]
    lang: Option<String>,

    /// Export a tokenizer for text that is prepared already (words and punctuation between spaces), rather than one for
    /// raw text: for words cut by jieba, and several languages that are cut by different rules.
    #[arg(long)]
    prepared: bool,

    #[command(flatten)]
    compute: Compute,
}

impl Export {
    pub fn run(self) -> Result<Outcome, Failure> {
        files::check_new_folder(&self.out, self.force)?;
        let mut opened = self.compute.open(&self.model)?;
        let card = card(&self.model, &self.out)?;
        let PretrainedModel { encoder: model, params, vocabulary, has_mlm_head, .. } = &mut opened;
        let (has_mlm_head, prepared) = (*has_mlm_head, self.prepared);
        let source = ExportSource { model, params, vocabulary, has_mlm_head, prepared };
        let exported = hub::export(source, self.lang.as_deref(), &card, &self.out, self.force)?;
        let ExportResult { out, architecture, languages, entries, largest_difference, .. } =
            &exported;
        let head = if has_mlm_head { "" } else { ", without an MLM head" };
        let text = format!(
            "{}: {architecture} of {entries} entries for {}{head}; read back, no score differs by more \
             than {largest_difference:.1e}\n",
            out.display(),
            languages.join(", "),
        );
        Ok(Outcome::new(text, &exported))
    }
}

/// What the run's folder says of how it was made.
fn card(run: &Path, out: &Path) -> Result<ModelCard, Failure> {
    let read = |name: &str| {
        let path = run.join(name);
        let there = path.is_file();
        there.then(|| std::fs::read_to_string(&path).at(&path, "read")).transpose()
    };
    let name = out.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let summary = read("summary.json")?.and_then(|text| serde_json::from_str(&text).ok());
    let config = read("config.toml")?;
    let noted = read(IMPORTED)?.and_then(|text| serde_json::from_str(&text).ok());
    let imported = match (noted, &config) {
        (Some(ImportNote { from }), _) => Some(from),
        (None, Some(_)) => None,
        (None, None) => Some(model_name(run)),
    };
    Ok(ModelCard { name, imported, config, summary })
}
