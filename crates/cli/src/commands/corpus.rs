//! `isogloss corpus`: tokenise text into the form that training reads, and look at it.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;
use text::{CorpusReport, Split, TokenizedCorpus, Vocabulary};

use super::texts::{TextFlags, describe_skipped, watch};
use crate::failure::Failure;
use crate::outcome::Outcome;

/// Tokenise text into the form that training reads.
#[derive(Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Corpus {
    /// Tokenise each language's text, or find it tokenised already, and say what it holds.
    #[command(after_help = EXAMPLES)]
    Prepare(Prepare),
}

const EXAMPLES: &str = "Examples:
  isogloss corpus prepare --vocab joint --out corpora \\
      --text en=en.txt.zst --text fr=fr.txt.zst \\
      --distinct --dev 5000 --test 5000
  isogloss corpus prepare --vocab mbert --out corpora \\
      --text en=- --sample 200000 --show 3 < en.txt";

impl Corpus {
    /// Runs the command to its end.
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        match self {
            Corpus::Prepare(prepare) => prepare.run(),
        }
    }
}

/// Flags of `corpus prepare`.
#[derive(Args)]
pub(crate) struct Prepare {
    /// The vocabulary's folder; text is prepared as the vocabulary's own was.
    #[arg(long, value_name = "DIR")]
    vocab: PathBuf,

    /// The folder to keep tokenised corpora in.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Show the first N sentences to train on, as subwords.
    #[arg(long, value_name = "N", default_value_t = 1)]
    show: usize,

    #[command(flatten)]
    text: TextFlags,
}

/// What `corpus prepare` says of one language.
#[derive(Serialize)]
struct Prepared {
    language: String,
    folder: PathBuf,
    found: bool,
    fingerprint: String,
    vocabulary: String,
    report: CorpusReport,
    sentences: [u64; 3],
    tokens: [usize; 3],
    unknown: f64,
    first: Vec<String>,
}

impl Prepare {
    fn run(self) -> Result<Outcome, Failure> {
        if self.text.texts.is_empty() {
            let message = "no text; give some for each language, as --text LANG=FILE";
            return Err(Failure::Usage(message.into()));
        }
        let vocabulary = Vocabulary::load(&self.vocab)?;
        for language in self.text.languages() {
            vocabulary.language(language)?;
        }
        let mut prepared = Vec::new();
        for source in self.text.sources()? {
            let language = vocabulary.language(source.language())?;
            let preparer = self.text.adapt(vocabulary.preparer(language));
            let mut watch = watch(format!("tokenising {}", source.language()));
            let corpus = self.text.corpus(source, preparer);
            let (corpus, found) =
                TokenizedCorpus::prepare(&corpus, &vocabulary, &self.out, &mut watch)?;
            if found {
                corpus.verify()?;
            }
            prepared.push(self.describe(&vocabulary, &corpus, found));
        }
        let text: String = prepared.iter().map(Prepared::in_words).collect();
        Ok(Outcome::new(text, &serde_json::json!({ "corpora": prepared })))
    }

    fn describe(&self, vocabulary: &Vocabulary, corpus: &TokenizedCorpus, found: bool) -> Prepared {
        let specials = vocabulary.specials();
        let counts = corpus.counts();
        let words: u64 = counts.iter().sum();
        let sentences = corpus.tokens(Split::Train).split(|&id| id == specials.end);
        let subwords = |ids: &[u32]| {
            let subwords = ids.iter().map(|&id| vocabulary.subword(id).unwrap_or_default());
            subwords.collect::<Vec<_>>().join(" ")
        };
        Prepared {
            language: corpus.language_name().to_owned(),
            folder: corpus.folder().to_owned(),
            found,
            fingerprint: corpus.fingerprint(),
            vocabulary: corpus.vocabulary().to_owned(),
            report: *corpus.report(),
            sentences: Split::ALL.map(|split| corpus.sentences(split)),
            tokens: Split::ALL.map(|split| corpus.tokens(split).len()),
            unknown: counts[specials.unknown as usize] as f64 / words.max(1) as f64,
            first: sentences.take(self.show).map(subwords).collect(),
        }
    }
}

impl Prepared {
    fn in_words(&self) -> String {
        let how = if self.found { "found" } else { "made" };
        let mut text = format!(
            "{}: {} ({how}), {} duplicates dropped{}\n",
            self.language,
            self.folder.display(),
            self.report.duplicates,
            describe_skipped(self.report.skipped)
        );
        for split in Split::ALL {
            let (sentences, tokens) = (self.sentences[split as usize], self.tokens[split as usize]);
            if sentences > 0 {
                let name = split.name();
                let _ = writeln!(text, "  {name:<6}{sentences:>12} sentences{tokens:>14} tokens");
            }
        }
        let _ = writeln!(text, "  unknown {:.3}%", 100.0 * self.unknown);
        for sentence in &self.first {
            let _ = writeln!(text, "  | {sentence}");
        }
        text
    }
}
