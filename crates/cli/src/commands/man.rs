//! `isogloss man`: the manual in the form that `man` reads, or the book's reference in Markdown, made from the
//! same definitions as `--help`.

use std::path::{Path, PathBuf};

use clap::Args;
use clap_mangen::Man as Page;
use serde_json::json;

use super::markdown;
use crate::failure::Failure;
use crate::outcome::Outcome;

/// The man page.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  isogloss man | man -l -\n  isogloss man --out ~/.local/share/man/man1\n  \
                  isogloss man --markdown docs/src/cli"
)]
pub(crate) struct Man {
    /// A folder for one page for each command (isogloss-pretrain.1 and so on); pages there are replaced.
    #[arg(short, long)]
    out: Option<PathBuf>,

    /// A folder for the reference in Markdown, a page for each command; pages there are replaced, and those
    /// of commands that no longer exist removed.
    #[arg(long, value_name = "DIR", conflicts_with = "out")]
    markdown: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        if let Some(folder) = self.markdown {
            return write_reference(&folder);
        }
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

fn write_reference(folder: &Path) -> Result<Outcome, Failure> {
    let pages = markdown::pages(crate::definition());
    std::fs::create_dir_all(folder)?;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        // A page of ours begins with the command that it is about.
        let is_page = path.extension().is_some_and(|extension| extension == "md")
            && std::fs::read(&path).is_ok_and(|page| page.starts_with(b"# `isogloss "));
        if is_page && !pages.iter().any(|page| page.file.as_str() == name) {
            std::fs::remove_file(&path)?;
        }
    }
    for page in &pages {
        files::write(&folder.join(&page.file), &page.text)?;
    }
    let text = format!("wrote {} pages into {}", pages.len(), folder.display());
    Ok(Outcome::new(text, &json!({ "folder": folder, "pages": pages.len() })))
}
