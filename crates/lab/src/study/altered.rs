//! A real language beside an altered copy of itself: the steps of `corpus alter` that make its text and test sentences.
//!
//! Every sentence and every word has its translation, so that no parallel text is needed (Dufter & Schütze 2020, K et al.
//! 2020).

use std::path::{Path, PathBuf};
use std::result::Result as StdResult;

use commands::corpus_alter::Alter;
use commands::request::Request as _;
use commands::texts::ColumnsFlag;
use terms::{Scale, iso639_3};

use super::error::Result;
use super::file::LanguageAlteration;
use super::materials::test_columns;
use super::step::{CommandArg, StepDraft, StepList};

/// What the altered copy of any language is called.
pub(super) const COPY: &str = "xx";
/// The file of a step's folder that holds words and their altered forms.
const DICTIONARY: &str = "dictionary.txt";
/// The sentences of a language at scale `tiny`, whose encoders see no more than that.
const TINY_SENTENCES: usize = 200_000;

/// The folders of the steps that alter a language; each holds the sentences as they were and altered, line by line.
#[derive(Clone)]
pub(super) struct AlteredText {
    text: CommandArg,
    test: StdResult<CommandArg, String>,
    train: StdResult<CommandArg, String>,
}

impl AlteredText {
    /// Plans the alteration of a language's text in some files, and of its test sentences in a folder of data.
    pub(super) fn plan(
        steps: &mut StepList,
        (data, texts): (&Path, Vec<CommandArg>),
        language: &str,
        alteration: &LanguageAlteration,
        (scale, seed): (Scale, u64),
    ) -> Result<Self> {
        let mut alter = |what: &str, files: &[CommandArg], rest: Alter| -> Result<CommandArg> {
            let flags = alteration.flags.join(" ");
            let name = format!("alter {what} of {language}, seed {seed} ({flags})");
            let texts = files.iter().map(|file| file.named(language)).collect();
            let here = |file: &str| CommandArg::here(file).path();
            let rest = Alter {
                seed,
                out: here(&sentences(COPY)),
                original: Some(here(&sentences(language))),
                dictionary: Some(here(DICTIONARY)),
                ..rest
            };
            let draft = StepDraft::of(&Alter { texts, ..Alter::unset() }, name);
            let draft = draft.args(alteration.flags.clone()).then(&rest);
            Ok(StepList::made(steps.add(draft)?, ""))
        };
        let mut sampled = Alter::unset();
        sampled.sentences.rows.sample_size = (scale == Scale::Tiny).then_some(TINY_SENTENCES);
        let text = alter("text", &texts, sampled)?;
        let lines = |columns| {
            let mut lines = Alter::unset();
            lines.sentences.lines = true;
            lines.sentences.columns = columns;
            lines
        };
        let test = match tatoeba_file(data, language) {
            Some(file) => {
                let lines = lines(ColumnsFlag::default());
                Ok(alter("test sentences", &[CommandArg::file(file)], lines)?)
            }
            None => Err(format!(
                "sentences of {language}: there is no {}",
                data.join(format!("tatoeba/tatoeba.*.{}", iso639_3(language))).display()
            )),
        };
        let xnli = data.join(format!("xnli/dev-{language}.tsv"));
        let train = match xnli.is_file() {
            true => {
                Ok(alter("other sentences", &[CommandArg::file(&xnli)], lines(test_columns()))?)
            }
            false => Err(format!("sentences of {language}: there is no {}", xnli.display())),
        };
        Ok(Self { text, test, train })
    }

    pub(super) fn text(&self, language: &str) -> CommandArg {
        self.text.join(&sentences(language))
    }

    /// The words of the text and their altered forms, the most frequent first.
    pub(super) fn dictionary(&self) -> CommandArg {
        self.text.join(DICTIONARY)
    }

    /// Sentences to retrieve, of both languages; the error is the line that says which file is missing.
    pub(super) fn test(&self, languages: [&str; 2]) -> StdResult<[CommandArg; 2], String> {
        let folder = self.test.clone()?;
        Ok(languages.map(|language| folder.join(&sentences(language))))
    }

    /// The altered sentences that stand, in another alteration of the same language, where this one has a file.
    pub(super) fn instead_of(&self, file: &CommandArg, other: &Self) -> Option<CommandArg> {
        let kinds = [(&self.test, &other.test), (&self.train, &other.train)];
        let kinds =
            kinds.into_iter().filter_map(|(own, other)| own.as_ref().ok().zip(other.as_ref().ok()));
        let altered = sentences(COPY);
        let own = kinds.into_iter().find(|(own, _)| own.join(&altered) == *file)?;
        Some(own.1.join(&altered))
    }

    /// Other sentences, from which maps are learned.
    pub(super) fn train(&self, languages: [&str; 2]) -> StdResult<[CommandArg; 2], String> {
        let folder = self.train.clone()?;
        Ok(languages.map(|language| folder.join(&sentences(language))))
    }
}

fn sentences(language: &str) -> String {
    format!("{language}.txt")
}

/// Test sentences of a language, with whichever other language they are paired there.
pub(super) fn tatoeba_file(data: &Path, language: &str) -> Option<PathBuf> {
    let ending = format!(".{}", iso639_3(language));
    let entries = std::fs::read_dir(data.join("tatoeba")).into_iter().flatten().flatten();
    let named = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("tatoeba.") && name.ends_with(&ending)
    };
    entries.map(|entry| entry.path()).filter(named).min()
}
