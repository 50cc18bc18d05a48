//! `isogloss corpus`: tokenise text into the form that training reads, and look at it.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use models::paraphrases::{ParaphraseConfig, ParaphraseResult, find};
use serde::Serialize;
use text::{CorpusSummary, Split, TokenizedCorpusSummary, Vocabulary};

use super::corpus_alter::Alter;
use super::corpus_exclude::Exclude;
use super::corpus_filter::Filter;
use super::texts::{TextFlags, describe_skipped, parse_text, watch_languages, with_threads};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::request::Request;

subcommands! {
    /// Tokenise text into the form that training reads, find sentences for tests in it, and alter it.
    #[command(after_help = EXAMPLES)]
    pub enum CorpusCommand {
        /// Tokenise each language's text, or find it tokenised already, and report what it holds.
        #[command(after_help = EXAMPLES)]
        Prepare(Prepare),

        /// Find paraphrases in parallel text: different sentences of one language with the same translation.
        #[command(after_help = PARAPHRASE_EXAMPLES)]
        Paraphrases(Paraphrases),

        /// Make a second "language" of real text: another script, another word order, invented endings.
        #[command(after_help = super::corpus_alter::EXAMPLES)]
        Alter(Alter),

        /// Leave long rows out of parallel text, so that encoders with different tokenizers read the same sentences.
        #[command(after_help = super::corpus_filter::EXAMPLES)]
        Filter(Filter),

        /// Leave the sentences of tests out of text, so that no encoder is trained on what it is tested on.
        #[command(after_help = super::corpus_exclude::EXAMPLES)]
        Exclude(Exclude),
    }
}

const PARAPHRASE_EXAMPLES: &str = "Example:
  A language beside itself (en-en′, Conneau et al. 2020, section 5.2), then CKA of two encoders:
    isogloss corpus paraphrases --parallel en-fr=bitext.en-fr.tsv \\
      --parallel en-de=bitext.en-de.tsv --lang en --out paraphrases.tsv
    isogloss cka --model seed-1 --model seed-2 --parallel en-en=paraphrases.tsv
Sentences that translations link may all say the same, so one pair is taken of each such group.
Sentences that differ in punctuation and case alone are no paraphrases.";

const EXAMPLES: &str = "Examples:
  isogloss corpus prepare --vocab joint --out corpora \\
      --text en=en.txt.zst --text fr=fr.txt.zst \\
      --distinct --dev 5000 --test 5000
  isogloss corpus prepare --vocab mbert --out corpora \\
      --text en=- --sample-size 200000 --show 3 < en.txt";

#[derive(Args, Serialize)]
pub struct Prepare {
    /// The vocabulary's folder; text is preprocessed as the vocabulary's own was.
    #[arg(long, value_name = "DIR", help_heading = "Input")]
    pub vocab: PathBuf,

    /// The folder to keep tokenised corpora in; one that is there already is found again by its text,
    /// vocabulary and settings.
    #[arg(long, short, value_name = "DIR", help_heading = "Output")]
    pub out: PathBuf,

    /// Show the first N training sentences, as subwords.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Output")]
    pub show: usize,

    /// Threads; 0 takes every core.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Compute")]
    pub threads: u16,

    #[command(flatten)]
    pub text: TextFlags,
}

impl Request for Prepare {
    const NAME: &str = "corpus prepare";
    const REVISION: u32 = 1;
    const LAST: &[&str] = &["texts", "dev", "sample_size", "seed", "out"];
    const ON_DEVICE: bool = false;

    fn is_spelt(&self, field: &str) -> bool {
        ["dev", "seed"].contains(&field)
    }
}

impl Prepare {
    fn run(self) -> Result<Outcome, Failure> {
        let summary = with_threads(self.threads, || self.prepare())?;
        let text: String = summary.corpora.iter().map(describe).collect();
        Ok(Outcome::new(text, &summary))
    }

    fn prepare(&self) -> Result<CorpusSummary, Failure> {
        let vocabulary = Vocabulary::load(&self.vocab)?;
        for language in self.text.languages() {
            vocabulary.language(language)?;
        }
        let corpora = self.text.corpora_for(&vocabulary)?;
        let mut watch = watch_languages("tokenising");
        Ok(CorpusSummary::prepare(&corpora, &vocabulary, &self.out, self.show, &mut watch)?)
    }
}

#[derive(Args, Serialize)]
pub struct Paraphrases {
    /// Parallel text of two columns, one of them in --lang; repeat for more files and pairs.
    #[arg(long, short = 'p', value_name = "LANG1-LANG2=FILE", value_parser = parse_text,
        required = true)]
    pub parallel: Vec<(String, String)>,

    /// The language of the paraphrases.
    #[arg(long, value_name = "LANG")]
    pub lang: String,

    /// Leave out sentences that stand in this text as a line, such as the text of pretraining; repeat for
    /// more.
    #[arg(long, value_name = "FILE")]
    pub exclude: Vec<String>,

    /// The file to write: two columns, a pair a line.
    #[arg(long, short, value_name = "FILE.tsv")]
    pub out: PathBuf,

    /// Replace a file that exists.
    #[arg(long, short)]
    pub force: bool,
}

impl Request for Paraphrases {
    const NAME: &str = "corpus paraphrases";
    const REVISION: u32 = 1;
    const ON_DEVICE: bool = false;
    const THREADED: bool = false;
}

impl Paraphrases {
    fn run(self) -> Result<Outcome, Failure> {
        files::check_new_file(&self.out, self.force)?;
        let Self { parallel, lang: language, exclude, out, .. } = self;
        let result = find(&ParaphraseConfig { parallel, language, exclude, out })?;
        let ParaphraseResult { out, language, pairs, rows, sentences, excluded } = &result;
        let text = format!(
            "{}: {pairs} pairs of paraphrases, from {sentences} sentences of {language} in {rows} rows; \
             {excluded} sentences excluded\n",
            out.display()
        );
        Ok(Outcome::new(text, &result).beside(out))
    }
}

fn describe(corpus: &TokenizedCorpusSummary) -> String {
    let how = if corpus.found { "found" } else { "made" };
    let mut text = format!(
        "{}: {} ({how}), {} duplicates dropped{}\n",
        corpus.language,
        corpus.folder.display(),
        corpus.report.duplicates,
        describe_skipped(corpus.report.skipped)
    );
    for split in Split::ALL {
        let (sentences, tokens) = (corpus.sentences[split as usize], corpus.tokens[split as usize]);
        if sentences > 0 {
            let name = split.name();
            let _ = writeln!(text, "  {name:<6}{sentences:>12} sentences{tokens:>14} tokens");
        }
    }
    let _ = writeln!(text, "  unknown {:.3}%", 100.0 * corpus.unknown);
    for sentence in &corpus.first {
        let _ = writeln!(text, "  | {sentence}");
    }
    text
}
