//! `isogloss vocab`: learn a vocabulary, and see what languages share of one.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use text::{
    BpeSettings, CorpusReport, LanguageText, Vocabulary, VocabularyKind, VocabularySharing,
    WordCounts, count_subwords, vocabulary_sharing,
};

use super::texts::{PreparationFlags, TextFlags, describe_skipped, watch};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::Waiting;

const EXAMPLES: &str = "Examples:
  isogloss vocab train --out joint --text en=en.txt --text fr=fr.txt
  isogloss vocab stats joint";

/// Learn vocabularies, and see what languages share of them.
#[derive(Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Vocab {
    /// Learn a vocabulary from text, or take one over, and save it as a folder.
    #[command(after_help = TRAIN_EXAMPLES)]
    Train(Train),

    /// Say how much languages share of a vocabulary: by types, by tokens, and by name.
    #[command(after_help = STATS_EXAMPLES)]
    Stats(Stats),
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
    isogloss vocab stats mbert --anchors 30 \\
      --text en=xnli.en.txt --text de=xnli.de.txt";

impl Vocab {
    /// Runs the command to its end.
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        match self {
            Vocab::Train(train) => train.run(),
            Vocab::Stats(stats) => stats.run(),
        }
    }
}

/// Flags of `vocab train`.
#[derive(Args)]
pub(crate) struct Train {
    /// How the languages' vocabularies hang together.
    #[arg(long, value_enum, default_value_t = KindFlag::Joint)]
    kind: KindFlag,

    /// Merges to learn [default: 80000 for a joint vocabulary, 40000 for each language otherwise].
    #[arg(long, value_name = "N")]
    merges: Option<usize>,

    /// Know the N most frequent characters; words with others are not learned from.
    #[arg(long, value_name = "N", default_value_t = BpeSettings::default().characters,
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    characters: usize,

    /// In a joint vocabulary, weigh languages by their share of words to this power: 1 as they
    /// come, 0 all alike.
    #[arg(long, value_name = "POWER", default_value_t = 1.0)]
    balance: f64,

    /// The subwords to take over, one a line, such as BERT's `vocab.txt`.
    #[arg(long, value_name = "FILE", required_if_eq("kind", "wordpiece"))]
    subwords: Option<PathBuf>,

    /// The subwords are of small letters without accents.
    #[arg(long, requires = "subwords")]
    uncased: bool,

    /// The folder to make.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    #[command(flatten)]
    text: TextFlags,

    #[command(flatten)]
    preparation: PreparationFlags,
}

/// How the languages' vocabularies hang together.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KindFlag {
    /// One BPE learned from all languages together.
    Joint,
    /// One BPE per language; equal subwords are shared.
    Union,
    /// One BPE per language; only special tokens are shared.
    Disjoint,
    /// WordPiece over given subwords.
    Wordpiece,
}

impl KindFlag {
    fn kind(self) -> VocabularyKind {
        match self {
            KindFlag::Joint => VocabularyKind::Joint,
            KindFlag::Union => VocabularyKind::Union,
            KindFlag::Disjoint => VocabularyKind::Disjoint,
            KindFlag::Wordpiece => VocabularyKind::WordPiece,
        }
    }
}

/// What `vocab train` says when done.
#[derive(Serialize)]
struct Trained {
    folder: PathBuf,
    kind: VocabularyKind,
    subwords: usize,
    fingerprint: String,
    languages: Vec<TrainedLanguage>,
}

#[derive(Serialize)]
struct TrainedLanguage {
    language: String,
    own_subwords: usize,
    report: CorpusReport,
}

impl Train {
    fn run(self) -> Result<Outcome, Failure> {
        self.check()?;
        let sources = self.text.sources()?;
        let names: Vec<_> = sources.iter().map(|source| source.language().to_owned()).collect();
        let cuts_itself = self.kind == KindFlag::Wordpiece;
        let preparers = self.preparation.preparers(&self.text, &names, cuts_itself)?;
        let corpora: Vec<_> = sources
            .into_iter()
            .zip(preparers)
            .map(|(source, preparer)| self.text.corpus(source, preparer))
            .collect();
        let (vocabulary, reports) = match &self.subwords {
            Some(subwords) if cuts_itself => take_over(subwords, self.uncased, &corpora)?,
            _ => self.learn(corpora)?,
        };
        vocabulary.save(&self.out)?;
        Ok(self.outcome(&vocabulary, reports))
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
        if self.out.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
            let out = self.out.display();
            return usage(format!("{out} exists and is not empty; name another folder with --out"));
        }
        Ok(files::check_new_folder(&self.out, false)?)
    }

    fn learn(
        &self,
        corpora: Vec<text::Corpus>,
    ) -> Result<(Vocabulary, Vec<CorpusReport>), Failure> {
        let (mut texts, mut reports) = (Vec::new(), Vec::new());
        for corpus in corpora {
            let name = corpus.source.language().to_owned();
            let (words, report) = WordCounts::of(&corpus, &mut watch(format!("counting {name}")))?;
            texts.push(LanguageText { name, preparer: corpus.preparer, words });
            reports.push(report);
        }
        let default = if self.kind == KindFlag::Joint { 80_000 } else { 40_000 };
        let merges = self.merges.unwrap_or(default);
        let settings = BpeSettings {
            kind: self.kind.kind(),
            merges,
            characters: self.characters,
            balance: self.balance,
        };
        let words: usize = texts.iter().map(|text| text.words.types()).sum();
        let _waiting = Waiting::new(&format!("learning {merges} merges from {words} words"));
        Ok((Vocabulary::learn(texts, settings)?, reports))
    }

    fn outcome(&self, vocabulary: &Vocabulary, reports: Vec<CorpusReport>) -> Outcome {
        let languages = vocabulary.languages().zip(reports).enumerate();
        let languages = languages.map(|(index, (language, report))| TrainedLanguage {
            language: language.to_owned(),
            own_subwords: vocabulary.language_ids(index).len(),
            report,
        });
        let trained = Trained {
            folder: self.out.clone(),
            kind: vocabulary.kind(),
            subwords: vocabulary.len(),
            fingerprint: vocabulary.fingerprint().to_owned(),
            languages: languages.collect(),
        };
        let mut text = format!(
            "{}: {} subwords, fingerprint {}\n",
            trained.folder.display(),
            trained.subwords,
            &trained.fingerprint[..12]
        );
        for TrainedLanguage { language, own_subwords, report } in &trained.languages {
            let _ = writeln!(
                text,
                "  {language}: {own_subwords} subwords of its own, from {} sentences{}",
                report.kept[0],
                describe_skipped(report.skipped)
            );
        }
        Outcome::new(text, &trained)
    }
}

fn take_over(
    subwords: &std::path::Path,
    uncased: bool,
    corpora: &[text::Corpus],
) -> Result<(Vocabulary, Vec<CorpusReport>), Failure> {
    let languages =
        corpora.iter().map(|corpus| (corpus.source.language().to_owned(), corpus.preparer.clone()));
    let vocabulary = Vocabulary::wordpiece(subwords, languages.collect(), uncased)?;
    let (mut counts, mut reports) = (Vec::new(), Vec::new());
    for (index, corpus) in corpora.iter().enumerate() {
        let mut watch = watch(format!("counting {}", corpus.source.language()));
        let (counted, report) = count_subwords(&vocabulary, index, corpus, &mut watch)?;
        counts.push(counted);
        reports.push(report);
    }
    Ok((vocabulary.with_counts(counts)?, reports))
}

/// Flags of `vocab stats`.
#[derive(Args)]
pub(crate) struct Stats {
    /// The vocabulary's folder.
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// Count a subword as a language's if it occurs N times or more.
    #[arg(long, value_name = "N", default_value_t = 1)]
    least: u64,

    /// Name the N most frequent anchors of each pair.
    #[arg(long, value_name = "N", default_value_t = 10)]
    anchors: usize,

    #[command(flatten)]
    text: TextFlags,
}

/// What `vocab stats` says.
#[derive(Serialize)]
struct Counted {
    folder: PathBuf,
    kind: VocabularyKind,
    subwords: usize,
    fingerprint: String,
    counted: &'static str,
    least: u64,
    #[serde(flatten)]
    sharing: VocabularySharing,
}

impl Stats {
    fn run(self) -> Result<Outcome, Failure> {
        let vocabulary = Vocabulary::load(&self.folder)?;
        let counts = self.counts(&vocabulary)?;
        let counted = Counted {
            folder: self.folder,
            kind: vocabulary.kind(),
            subwords: vocabulary.len(),
            fingerprint: vocabulary.fingerprint().to_owned(),
            counted: if self.text.texts.is_empty() { "training text" } else { "given text" },
            least: self.least,
            sharing: vocabulary_sharing(&vocabulary, &counts, self.least, self.anchors),
        };
        Ok(Outcome::new(counted.describe(), &counted))
    }

    /// Counts of subwords in the text given, or else in that which the vocabulary was made from.
    fn counts(&self, vocabulary: &Vocabulary) -> Result<Vec<(usize, Vec<u64>)>, Failure> {
        if self.text.texts.is_empty() {
            self.text.refuse_selection("the vocabulary's own counts are shown")?;
            let all = 0..vocabulary.languages().len();
            return Ok(all.map(|index| (index, vocabulary.counts(index).to_vec())).collect());
        }
        for language in self.text.languages() {
            vocabulary.language(language)?;
        }
        let mut counts = Vec::new();
        for source in self.text.sources()? {
            let language = vocabulary.language(source.language())?;
            let preparer = self.text.adapt(vocabulary.preparer(language));
            let mut watch = watch(format!("counting {}", source.language()));
            let corpus = self.text.corpus(source, preparer);
            counts.push((language, count_subwords(vocabulary, language, &corpus, &mut watch)?.0));
        }
        Ok(counts)
    }
}

impl Counted {
    fn describe(&self) -> String {
        let mut text = format!(
            "{}: {:?}, {} subwords; counted in the {}\n\n{:<12}{:>12}{:>14}{:>10}\n",
            self.folder.display(),
            self.kind,
            self.subwords,
            self.counted,
            "language",
            "|V_lang|",
            "tokens",
            "unknown"
        );
        for language in &self.sharing.languages {
            let _ = writeln!(
                text,
                "{:<12}{:>12}{:>14}{:>9.2}%",
                language.language,
                language.types,
                language.tokens,
                100.0 * language.unknown
            );
        }
        if !self.sharing.pairs.is_empty() {
            let _ = writeln!(
                text,
                "\n{:<12}{:>12}{:>14}{:>10}{:>18}{:>18}",
                "pair",
                "|V ∩ V'|",
                "with letters",
                "of types",
                "tokens of first",
                "tokens of second"
            );
        }
        for pair in &self.sharing.pairs {
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
        for pair in self.sharing.pairs.iter().filter(|pair| !pair.anchors.is_empty()) {
            let _ = writeln!(text, "\nanchors of {}-{} (count in each):", pair.first, pair.second);
            for anchor in &pair.anchors {
                let _ = writeln!(
                    text,
                    "  {:<20}{:>12}{:>12}",
                    anchor.subword, anchor.first, anchor.second
                );
            }
        }
        text
    }
}
