//! `isogloss corpus exclude`: text for training without the sentences of tests.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use text::{ExclusionConfig, ExclusionResult, exclude_tests};

use super::texts::{ColumnsFlag, parse_text};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::request::Request;

pub(super) const EXAMPLES: &str = "Example:
  Text for pretraining without the sentences of two parallel test sets:
    isogloss corpus exclude --text en=en.txt.zst --exclude tatoeba.fra-eng.eng \\
      --exclude xnli-test-en.tsv --columns 1,2 --out en.clean.txt.zst
Sentences are the same where their letters and digits are. Studies of real languages do so for all text that an encoder
is trained on.";

#[derive(Args, Serialize)]
pub struct Exclude {
    /// The text: a file or a glob; plain, gzip or zstd. Repeat for more files of the same language.
    #[arg(long = "text", short = 't', value_name = "LANG=FILE", value_parser = parse_text,
        required = true, help_heading = "Input")]
    pub texts: Vec<(String, String)>,

    /// Test sentences of the same language, one a line (of a `.tsv` file, the columns named by --columns); repeat for more
    /// files.
    #[arg(long, value_name = "FILE", required = true, help_heading = "Input")]
    pub exclude: Vec<String>,

    #[command(flatten)]
    pub columns: ColumnsFlag,

    /// The file to write, compressed where it ends in `.zst`: lines as they were or, where a sentence was left out, the
    /// others, one a line.
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    pub out: PathBuf,

    /// Replace a file that exists.
    #[arg(long, short, help_heading = "Output")]
    pub force: bool,
}

impl Request for Exclude {
    const NAME: &str = "corpus exclude";
    const REVISION: u32 = 1;
    const ON_DEVICE: bool = false;
    const THREADED: bool = false;
}

impl Exclude {
    pub fn run(self) -> Result<Outcome, Failure> {
        files::check_new_file(&self.out, self.force)?;
        let Self { texts, exclude, columns, out, .. } = self;
        let language = texts[0].0.clone();
        if let Some((other, _)) = texts.iter().find(|(other, _)| *other != language) {
            let message = format!(
                "--text is of {language} and of {other}: tests are of one language; run this once for each"
            );
            return Err(Failure::Usage(message));
        }
        let texts = texts.into_iter().map(|(_, file)| file).collect();
        let columns = columns.columns;
        let result = exclude_tests(&ExclusionConfig { language, texts, exclude, columns, out })?;
        let ExclusionResult { out, language, rows, in_tests, used, .. } = &result;
        let text = format!(
            "{}: {used} sentences of {language}; {in_tests} of {rows} stand in the tests, and were left out\n",
            out.display()
        );
        Ok(Outcome::new(text, &result).beside(out))
    }
}
