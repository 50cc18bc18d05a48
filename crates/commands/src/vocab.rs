//! `isogloss vocab`: learn a subword vocabulary, and see what languages share of one.

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::measured::Extractor;
use clap::{Args, ValueEnum};
use models::VOCABULARY_FOLDER;
use models::inspect::vocabulary;
use serde::Serialize;
use text::{
    BpeSettings, CorpusReport, CountedText, LanguageSummary, Vocabulary, VocabularyKind,
    VocabularyStats, VocabularySummary,
};

use super::record::{RecordFlags, system};
use super::texts::{PreparationFlags, TextFlags, describe_skipped, watch_languages, with_threads};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::request::{Request, one_or_more};

const EXAMPLES: &str = "Examples:
  isogloss vocab train --out joint --text en=en.txt --text fr=fr.txt
  isogloss vocab stats joint";

subcommands! {
    /// Learn vocabularies, and see what languages share of them.
    #[command(after_help = EXAMPLES)]
    pub enum Vocab {
        /// Learn a BPE vocabulary from text, or adopt a WordPiece vocabulary, and save it as a folder.
        #[command(after_help = TRAIN_EXAMPLES)]
        Train(Train),

        /// Report how much languages share of a vocabulary: by types, by tokens, and the anchors by name.
        #[command(after_help = STATS_EXAMPLES)]
        Stats(Stats),
    }
}

const TRAIN_EXAMPLES: &str = "Examples:
  One vocabulary learned from both languages together:
    isogloss vocab train --out joint \\
      --text en=en.txt.zst --text fr='fr.*.txt.gz'
  One each, equal subwords shared (default anchors):
    isogloss vocab train --kind union --out union \\
      --merges 40000 --text en=en.txt --text fr=fr.txt
  One each, nothing shared (no anchors):
    isogloss vocab train --kind disjoint --out disjoint \\
      --merges 40000 --text en=en.txt --text fr=fr.txt
  Multilingual BERT's subwords:
    isogloss vocab train --kind wordpiece --out mbert \\
      --subwords vocab.txt --text en=en.txt --text zh=zh.txt";

const STATS_EXAMPLES: &str = "Examples:
  What the languages shared in the text that the vocabulary was made from:
    isogloss vocab stats joint
  What they share in other text:
    isogloss vocab stats mbert --top 30 \\
      --text en=xnli.en.txt --text de=xnli.de.txt
  Of a Hugging Face folder, in XNLI's sentences (Liu et al. 2020, Table 3):
    isogloss vocab stats bert-base-multilingual-cased --columns 1,2 \\
      --text en=test-en.tsv --text de=test-de.tsv";

#[derive(Args, Serialize)]
pub struct Train {
    /// How the languages' vocabularies relate.
    #[arg(long, value_enum, default_value_t = KindFlag::Joint, help_heading = "Training")]
    pub kind: KindFlag,

    /// Merges to learn [default: 80000 for a joint vocabulary, 40000 for each language otherwise].
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub merges: Option<usize>,

    /// The size of the alphabet: the N most frequent characters; words with others are not learned from.
    #[arg(long, value_name = "N", help_heading = "Training", default_value_t = BpeSettings::default().characters, value_parser = one_or_more())]
    pub characters: usize,

    /// In a joint vocabulary, weight languages by their share of words to this power: 1 is the text as
    /// given, 0 makes all languages equal.
    #[arg(long, value_name = "POWER", default_value_t = 1.0, help_heading = "Training")]
    pub balance: f64,

    /// The WordPiece vocabulary to adopt, one subword a line, such as BERT's `vocab.txt`.
    #[arg(
        long,
        value_name = "FILE",
        required_if_eq("kind", "wordpiece"),
        help_heading = "Training"
    )]
    pub subwords: Option<PathBuf>,

    /// The WordPiece vocabulary is lowercased, without accents.
    #[arg(long, requires = "subwords", help_heading = "Training")]
    pub uncased: bool,

    /// The folder to write.
    #[arg(long, short, value_name = "DIR", help_heading = "Output")]
    pub out: PathBuf,

    /// Replace the folder if it exists.
    #[arg(long, short, help_heading = "Output")]
    pub force: bool,

    /// Threads; 0 takes every core.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Compute")]
    pub threads: u16,

    #[command(flatten)]
    pub text: TextFlags,

    #[command(flatten)]
    pub preparation: PreparationFlags,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum KindFlag {
    /// One BPE learned from all languages together.
    Joint,
    /// One BPE per language; equal subwords are shared.
    Union,
    /// One BPE per language; only special tokens are shared.
    Disjoint,
    /// A given WordPiece vocabulary.
    Wordpiece,
}

impl KindFlag {
    pub fn named(name: &str) -> Option<Self> {
        Self::from_str(name, false).ok()
    }

    fn kind(self) -> VocabularyKind {
        match self {
            KindFlag::Joint => VocabularyKind::Joint,
            KindFlag::Union => VocabularyKind::Union,
            KindFlag::Disjoint => VocabularyKind::Disjoint,
            KindFlag::Wordpiece => VocabularyKind::WordPiece,
        }
    }
}

impl Request for Train {
    const NAME: &str = "vocab train";
    const REVISION: u32 = 1;
    const LAST: &[&str] = &["texts", "dev", "sample_size", "seed", "out"];
    const ON_DEVICE: bool = false;

    fn is_spelt(&self, field: &str) -> bool {
        ["kind", "dev", "seed"].contains(&field)
    }
}

impl Train {
    fn run(self) -> Result<Outcome, Failure> {
        with_threads(self.threads, || self.train())
    }

    fn train(&self) -> Result<Outcome, Failure> {
        self.check()?;
        let sources = self.text.sources()?;
        let names: Vec<_> = sources.iter().map(|source| source.language().to_owned()).collect();
        let wordpiece = self.kind == KindFlag::Wordpiece;
        let preparers = self.preparation.preparers(&self.text, &names, wordpiece)?;
        let corpora: Vec<_> = sources
            .into_iter()
            .zip(preparers)
            .map(|(source, preparer)| self.text.corpus(source, preparer))
            .collect();
        let (vocabulary, reports) = match &self.subwords {
            Some(file) if wordpiece => Vocabulary::wordpiece_from_corpora(
                file,
                self.uncased,
                &corpora,
                &mut watch_languages("counting"),
            )?,
            _ => self.learn(corpora)?,
        };
        vocabulary.save(&self.out, self.force)?;
        let summary = vocabulary.summary(&self.out, reports);
        Ok(Outcome::new(describe_summary(&summary), &summary))
    }

    /// What can be refused before anything is read.
    fn check(&self) -> Result<(), Failure> {
        let usage = |message: String| Err(Failure::Usage(message));
        if self.text.texts.is_empty() {
            return usage("no text; give some for each language, as --text LANG=FILE".into());
        }
        self.text.languages().try_for_each(text::check_language)?;
        if self.subwords.is_some() && self.kind != KindFlag::Wordpiece {
            return usage("--subwords are for --kind wordpiece; leave one of them out".into());
        }
        if self.merges.is_some() && self.kind == KindFlag::Wordpiece {
            return usage("--merges are learned, and --kind wordpiece takes subwords over; leave one of them out".into());
        }
        if !(self.balance.is_finite() && self.balance >= 0.0) {
            return usage("--balance is a number from 0 up".into());
        }
        Ok(files::check_new_folder(&self.out, self.force)?)
    }

    fn learn(
        &self,
        corpora: Vec<text::Corpus>,
    ) -> Result<(Vocabulary, Vec<CorpusReport>), Failure> {
        let default = if self.kind == KindFlag::Joint { 80_000 } else { 40_000 };
        let settings = BpeSettings {
            kind: self.kind.kind(),
            merges: self.merges.unwrap_or(default),
            characters: self.characters,
            balance: self.balance,
        };
        let mut watch = watch_languages("counting");
        Ok(Vocabulary::from_corpora(corpora, settings, &mut watch)?)
    }
}

fn describe_summary(summary: &VocabularySummary) -> String {
    let mut text = format!(
        "{}: {} subwords, fingerprint {}\n",
        summary.folder.display(),
        summary.subwords,
        &summary.fingerprint[..12]
    );
    // One BPE learned from all languages together belongs to none.
    let whose = if summary.kind == VocabularyKind::Joint { " occur in it" } else { " of its own" };
    for LanguageSummary { language, own_subwords, report } in &summary.languages {
        let _ = writeln!(
            text,
            "  {language}: {own_subwords} subwords{whose}, from {} sentences{}",
            report.kept[0],
            describe_skipped(report.skipped)
        );
    }
    text
}

#[derive(Args, Serialize)]
pub struct Stats {
    /// The vocabulary's folder, a run's, or (with --text) a Hugging Face folder.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,

    /// Count a subword as a language's if it occurs N times or more.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub min_count: u64,

    /// List the N most frequent anchors of each pair.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub top: usize,

    /// Threads; 0 takes every core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub threads: u16,

    #[command(flatten)]
    pub text: TextFlags,

    #[command(flatten)]
    pub record: RecordFlags,
}

impl Request for Stats {
    const NAME: &str = "vocab stats";
    const REVISION: u32 = 1;
    const ON_DEVICE: bool = false;
    const THREADED: bool = false;
}

impl Stats {
    fn run(self) -> Result<Outcome, Failure> {
        let stats = with_threads(self.threads, || self.stats())?;
        let outcome = Outcome::new(describe_stats(&stats), &stats);
        Ok(self.record.keep(outcome, Extractor::Vocabulary, 1, system([&self.folder])))
    }

    /// Counts subwords in the text given, or else in that which the vocabulary was made from.
    fn stats(&self) -> Result<VocabularyStats, Failure> {
        if self.text.texts.is_empty() {
            self.text.refuse_selection("the vocabulary's own counts are shown")?;
            let own = self.folder.join(VOCABULARY_FOLDER);
            let folder = if own.is_dir() { &own } else { &self.folder };
            return Ok(VocabularyStats::of_training_text(folder, self.min_count, self.top)?);
        }
        let vocabulary = vocabulary(&self.folder)?;
        let corpora = self.text.corpora_for(&vocabulary)?;
        let mut watch = watch_languages("counting");
        let counted = (self.min_count, self.top);
        Ok(VocabularyStats::of_corpora(&self.folder, &vocabulary, &corpora, counted, &mut watch)?)
    }
}

fn describe_stats(stats: &VocabularyStats) -> String {
    let mut text = format!(
        "{}: {:?}, {} subwords; counted in the {}\n\n{:<12}{:>12}{:>14}{:>10}\n",
        stats.folder.display(),
        stats.kind,
        stats.subwords,
        match stats.counted {
            CountedText::TrainingText => "training text",
            CountedText::GivenText => "given text",
        },
        "language",
        "|V_lang|",
        "tokens",
        "unknown"
    );
    for language in &stats.languages {
        let _ = writeln!(
            text,
            "{:<12}{:>12}{:>14}{:>9.2}%",
            language.language,
            language.types,
            language.tokens,
            100.0 * language.unknown
        );
    }
    if !stats.pairs.is_empty() {
        let _ = writeln!(
            text,
            "\n{:<12}{:>12}{:>14}{:>10}{:>18}{:>18}",
            "pair", "|V ∩ V'|", "with letters", "of types", "tokens of first", "tokens of second"
        );
    }
    for pair in &stats.pairs {
        let _ = writeln!(
            text,
            "{:<12}{:>12}{:>14}{:>9.1}%{:>17.1}%{:>17.1}%",
            format!("{}-{}", pair.first, pair.second),
            pair.shared_types,
            pair.shared_with_letters,
            100.0 * pair.of_types,
            100.0 * pair.of_first_tokens,
            100.0 * pair.of_second_tokens
        );
    }
    for pair in stats.pairs.iter().filter(|pair| !pair.anchors.is_empty()) {
        let _ = writeln!(text, "\nanchors of {}-{} (count in each):", pair.first, pair.second);
        for anchor in &pair.anchors {
            let _ =
                writeln!(text, "  {:<20}{:>12}{:>12}", anchor.subword, anchor.first, anchor.second);
        }
    }
    text
}
