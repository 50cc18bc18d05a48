//! `isogloss man`: the manual in the form that `man` reads, made from the same definitions as `--help`.

use std::path::PathBuf;

use clap::Args;
use clap_mangen::Man as Page;
use serde_json::json;

use crate::failure::Failure;
use crate::outcome::Outcome;

/// The man page.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  isogloss man | man -l -\n  isogloss man --out ~/.local/share/man/man1"
)]
pub(crate) struct Man {
    /// A folder for one page for each command (isogloss-pretrain.1 and so on); pages there are replaced.
    #[arg(short, long)]
    out: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let Some(folder) = self.out else {
            let mut page = Vec::new();
            Page::new(crate::definition()).render(&mut page)?;
            let page = String::from_utf8_lossy(&page).into_owned();
            return Ok(Outcome::new(page.clone(), &json!({ "page": page })));
        };
        std::fs::create_dir_all(&folder)?;
        clap_mangen::generate_to(crate::definition(), &folder)?;
        let text = format!("wrote the man pages into {}", folder.display());
        Ok(Outcome::new(text, &json!({ "folder": folder })))
    }
}
