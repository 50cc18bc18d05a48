//! `isogloss vectors convert`.

use std::path::PathBuf;

use clap::Args;
use vectors::ConversionResult;
use vectors::formats::{self, ReadOptions};

use super::input::FormatFlag;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::request::one_or_more;

pub(super) const EXAMPLES: &str = "Examples:
  GloVe's text into what gensim reads with no flag:
    isogloss vectors convert glove.6B.50d.txt --out glove.vec
  The 50,000 most frequent words, as an array for NumPy:
    isogloss vectors convert wiki.en.vec --limit 50000 --out en.npy";

#[derive(Args)]
pub struct Convert {
    /// The vectors to read, plain, gzip or zstd, or `-` for standard input; the format is recognised by
    /// the content.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The format of the file, where its content does not tell.
    #[arg(long, value_enum)]
    from: Option<FormatFlag>,

    /// Read at most the first N words.
    #[arg(long, short = 'n', value_name = "N", value_parser = one_or_more())]
    limit: Option<usize>,

    /// The file to write, or `-` for standard output; its name decides its format: `.bin` is Word2Vec's
    /// binary, `.npy` an array beside a `.vocab`, `.glove` GloVe's text, `.vec` and `.txt` Word2Vec's
    /// text.
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,

    /// Write this format, whatever the file is called.
    #[arg(long, value_enum)]
    to: Option<FormatFlag>,

    /// Replace the file if it exists.
    #[arg(long, short)]
    force: bool,
}

impl Convert {
    pub fn run(self) -> Result<Outcome, Failure> {
        files::check_new_file(&self.out, self.force)?;
        if self.to.is_none() {
            formats::check_name(&self.out)?;
        }
        let options = ReadOptions { format: self.from.map(FormatFlag::format), limit: self.limit };
        let vectors = formats::read(&self.file, options)?;
        formats::write(&self.out, &vectors, self.to.map(FormatFlag::format))?;
        let (words, dim) = (vectors.len(), vectors.dim());
        let text = format!("{}: {words} words, {dim} columns", self.out.display());
        let result = ConversionResult { file: self.out.clone(), words, dim };
        Ok(Outcome::new(text, &result).beside(&self.out))
    }
}
