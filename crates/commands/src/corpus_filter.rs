//! `isogloss corpus filter`: parallel text without long rows, by a bound that no tokenizer decides.

use std::path::PathBuf;

use clap::Args;
use models::row_filter::{RowFilterConfig, RowFilterResult, filter_rows};
use serde::Serialize;

use super::texts::{ColumnsFlag, parse_text};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::request::{Request, one_or_more};

pub(super) const EXAMPLES: &str = "Example:
  Sentences that two encoders of 256 positions both read whole, whatever their tokenizers:
    isogloss corpus filter --parallel en=test-en.tsv --parallel fr=test-fr.tsv --columns 1,2 \\
      --max-tokens 254 --out en.txt --out fr.txt
    isogloss retrieve --model one --parallel en=en.txt --parallel fr=fr.txt
    isogloss retrieve --model another --parallel en=en.txt --parallel fr=fr.txt
Tokens are estimated, on the high side, from the text alone: two for every three lower-case letters that follow one
another, and one for every other character. Studies of real languages do so for all encoders that they compare.";

#[derive(Args, Serialize)]
pub struct Filter {
    /// Parallel text: LANG=FILE for each language, where line i translates line i (of a `.tsv` file, the columns named by
    /// --columns); or LANG1-LANG2=FILE, with two columns separated by a tab or `|||`. Repeat for more files.
    #[arg(long, short = 'p', value_name = "LANG=FILE|LANG1-LANG2=FILE", value_parser = parse_text,
        required = true, help_heading = "Input")]
    pub parallel: Vec<(String, String)>,

    /// Another wording of the same rows, which must be short enough too and is not written: so that several copies of a
    /// language are measured on the same rows. Repeat for more.
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    pub beside: Vec<String>,

    #[command(flatten)]
    pub columns: ColumnsFlag,

    /// Leave out rows with a sentence that may have more tokens, special tokens not counted: the encoder's positions less 2.
    #[arg(long, value_name = "N", help_heading = "Input", value_parser = one_or_more())]
    pub max_tokens: usize,

    /// The file to write a language's sentences to; one for each language, in the order of --parallel.
    #[arg(long, short, value_name = "FILE", required = true, help_heading = "Output")]
    pub out: Vec<PathBuf>,

    /// Replace files that exist.
    #[arg(long, short, help_heading = "Output")]
    pub force: bool,
}

impl Request for Filter {
    const NAME: &str = "corpus filter";
    const REVISION: u32 = 1;
    const ON_DEVICE: bool = false;
    const THREADED: bool = false;
}

impl Filter {
    pub fn run(self) -> Result<Outcome, Failure> {
        for out in &self.out {
            files::check_new_file(out, self.force)?;
        }
        let Self { parallel, beside, columns, max_tokens, out, .. } = self;
        let columns = columns.columns;
        let config = RowFilterConfig { parallel, beside, columns, max_tokens, out };
        let result = filter_rows(&config)?;
        let RowFilterResult { out, counts, .. } = &result;
        let files: Vec<String> = out.iter().map(|file| file.display().to_string()).collect();
        let text = format!("{}: {counts}\n", files.join(", "));
        Ok(Outcome::new(text, &result))
    }
}
