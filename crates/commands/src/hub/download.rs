//! `isogloss hub download`: a model of the hub, whole, in the cache that its clients share.

use std::fmt::Write as _;

use clap::Args;

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::Coming;

pub(super) const EXAMPLES: &str = "Examples:
  isogloss hub download google-bert/bert-base-multilingual-cased
  isogloss hub download FacebookAI/xlm-mlm-xnli15-1024 --revision main
The cache is HF_HUB_CACHE, or HF_HOME/hub, or ~/.cache/huggingface/hub. A token
is taken from HF_TOKEN or from the file `token` in HF_HOME. HF_ENDPOINT names
another server. What was broken off goes on where it stopped.";

#[derive(Args)]
pub struct Download {
    /// The model, as OWNER/MODEL; mbert, xlm-r, xlm-r-large and xlm-100 are short for those of the papers. Every command then
    /// takes this name for a model.
    name: String,

    /// The branch, tag or commit.
    #[arg(long, default_value = "main")]
    revision: String,
}

impl Download {
    pub fn run(self) -> Result<Outcome, Failure> {
        let mut coming = Coming::default();
        let mut watch = |name: &str, done, total| coming.show(name, done, total);
        let model =
            catalogue::hub::download(::hub::hub_name(&self.name), &self.revision, &mut watch)?;
        drop(coming);
        let mut text = String::new();
        if model.offline {
            text.push_str("the hub could not be asked; this is what it had before\n");
        }
        for file in &model.files {
            let note = if file.found { " (found)" } else { "" };
            let _ = writeln!(text, "{:>15}  {}{note}", file.bytes, file.name);
        }
        let _ = writeln!(text, "{}", model.folder.display());
        Ok(Outcome::new(text, &model))
    }
}
