//! `isogloss vectors convert`.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use vectors::formats::{self, ReadOptions};

use super::input::FormatFlag;
use crate::failure::Failure;
use crate::outcome::Outcome;

pub(super) const EXAMPLES: &str = "Examples:
  GloVe's text into what gensim reads with no flag:
    isogloss vectors convert glove.6B.50d.txt --out glove.vec
  The 50,000 most frequent words, as an array for NumPy:
    isogloss vectors convert wiki.en.vec --first 50000 --out en.npy";

/// Flags of `vectors convert`.
#[derive(Args)]
pub(crate) struct Convert {
    /// The vectors to read, plain, gzip or zstd; what they are is told by their content.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// What the file is, where its content does not tell.
    #[arg(long, value_enum)]
    from: Option<FormatFlag>,

    /// Read the first N words only.
    #[arg(long, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    first: Option<usize>,

    /// The file to make; its name decides its format: `.bin` is Word2Vec's binary, `.npy` an array
    /// beside a `.vocab`, `.glove` GloVe's text, anything else Word2Vec's text.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// Write this format, whatever the file is called.
    #[arg(long, value_enum)]
    to: Option<FormatFlag>,
}

#[derive(Serialize)]
struct Converted {
    file: PathBuf,
    words: usize,
    dim: usize,
}

impl Convert {
    pub(super) fn run(self) -> Result<Outcome, Failure> {
        files::check_new_file(&self.out, true)?;
        formats::check_name(&self.out)?;
        let options = ReadOptions { format: self.from.map(FormatFlag::format), first: self.first };
        let vectors = formats::read(&self.file, options)?;
        formats::write(&self.out, &vectors, self.to.map(FormatFlag::format))?;
        let converted = Converted { file: self.out, words: vectors.len(), dim: vectors.dim() };
        let Converted { file, words, dim } = &converted;
        let text = format!("{}: {words} words, {dim} columns", file.display());
        Ok(Outcome::new(text, &converted))
    }
}
