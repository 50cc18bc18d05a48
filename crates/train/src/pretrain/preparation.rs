//! How the text of a run becomes words: by its keys where the run learns a vocabulary, and as the
//! vocabulary's own text did where there is one. A key that differs from it is refused, since subwords mean
//! nothing in text that was prepared in another way.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use encoder::ConfigError;
use serde::{Deserialize, Serialize};
use terms::is_chinese;
use text::{Preparation, Preparer, SimplificationTable, Subset, Vocabulary, WordTokenizer};

/// How text is prepared before it is cut into subwords, and which of it is read. A key that is left out
/// follows the language, or the vocabulary that the run uses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextConfig {
    /// A line is a sentence, with words between spaces, as in invented languages.
    pub prepared: Option<bool>,
    /// A line is a sentence.
    pub lines: Option<bool>,
    /// How text is cut into words.
    pub words: Option<WordTokenizer>,
    /// Lowercase.
    pub lowercase: Option<bool>,
    /// Strip accents.
    pub strip_accents: Option<bool>,
    /// Convert traditional Chinese characters to simplified ones, by this table of two columns.
    pub simplify: Option<PathBuf>,
    /// Read only the first so many sentences of each language.
    pub first: Option<u64>,
    /// Read a random sample of so many sentences of each language.
    pub sample: Option<u64>,
    /// The same for single languages, in place of `sample`: so that text of another domain is of the
    /// size of what it stands for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sample_of: BTreeMap<String, u64>,
    /// Drop repeated sentences.
    #[serde(default)]
    pub distinct: bool,
    /// Hold out so many sentences of each language as a development set.
    pub dev: u64,
    /// Seeds the sample and the choice of held-out sentences; the run's seed if none.
    pub seed: Option<u64>,
    /// A folder of `corpus prepare`: corpora that were tokenised there from the same sentences by the same
    /// vocabulary are not tokenised again.
    pub corpora: Option<PathBuf>,
}

impl TextConfig {
    /// Refuses what can be refused before anything is read.
    pub(super) fn check(&self, languages: &[String], taken: bool) -> Result<(), ConfigError> {
        let refuse = |key: &'static str, reason: &str| Err(ConfigError::new(key, reason));
        if self.first.is_some() && self.sample.is_some() {
            return refuse("text.sample", "leave out text.first: it is one or the other");
        }
        for (language, &sample) in &self.sample_of {
            let key = format!("text.sample_of.{language}");
            if self.first.is_some() {
                let reason = "leave out text.first: it is one or the other";
                return Err(ConfigError::new(key, reason));
            }
            if !languages.contains(language) {
                let reason = format!("is none of the languages: {}", languages.join(", "));
                return Err(ConfigError::new(key, reason));
            }
            if sample == 0 {
                return Err(ConfigError::new(key, "must not be 0"));
            }
        }
        let prepared = self.prepared == Some(true);
        if prepared && self.words.is_some_and(|words| words != WordTokenizer::Whitespace) {
            return refuse("text.words", "text.prepared has words between spaces; leave one out");
        }
        if prepared && self.lines == Some(false) {
            return refuse("text.lines", "text.prepared has a sentence a line; leave one out");
        }
        if self.words == Some(WordTokenizer::Raw) && !taken {
            return refuse(
                "text.words",
                "nothing to learn from raw text; take whitespace, moses or jieba",
            );
        }
        if self.simplify.is_some() && !languages.iter().any(|language| is_chinese(language)) {
            return refuse(
                "text.simplify",
                "is for Chinese, and no language is `zh`; leave it out",
            );
        }
        Ok(())
    }

    /// Which sentences of a language are read.
    pub(super) fn subset(&self, language: &str) -> Subset {
        let sample = self.sample_of.get(language).copied().or(self.sample);
        match (self.first, sample) {
            (Some(first), _) => Subset::First(first),
            (None, Some(sample)) => Subset::Sample(sample),
            (None, None) => Subset::All,
        }
    }

    /// One preparer for each language, for a vocabulary that is to be made: learned, or of WordPiece,
    /// whose tokenizer finds words itself.
    pub(super) fn preparers(
        &self,
        languages: &[String],
        wordpiece: bool,
    ) -> text::Result<Vec<Preparer>> {
        let table = self.table()?;
        let own = |language: &str| match wordpiece {
            true => WordTokenizer::Whitespace,
            false => WordTokenizer::for_language(language),
        };
        let prepare = |language: &String| {
            let preparation = Preparation {
                split: !self.is_line_by_line().unwrap_or(false),
                words: self.words().map_or_else(|| own(language), |(_, words)| words),
                lowercase: self.lowercase.unwrap_or(false),
                strip_accents: self.strip_accents.unwrap_or(false),
                simplify: table.is_some() && is_chinese(language),
            };
            Preparer::new(language, preparation, table.clone())
        };
        languages.iter().map(prepare).collect()
    }

    /// The vocabulary's own preparer for each language, but for whether lines are split, which is up to
    /// the text.
    pub(super) fn preparers_of(
        &self,
        vocabulary: &Vocabulary,
        languages: &[String],
    ) -> text::Result<Vec<Preparer>> {
        let adapt = |language: &String| {
            self.preparer_like(vocabulary.preparer(vocabulary.language(language)?).clone())
        };
        languages.iter().map(adapt).collect()
    }

    /// A vocabulary's preparer as the text of the run needs it.
    pub(super) fn preparer_like(&self, own: Preparer) -> text::Result<Preparer> {
        self.refuse_other(own.language(), &own, self.table()?.as_deref())?;
        let split = self.is_line_by_line().map_or(own.preparation().split, |lines| !lines);
        Ok(own.splitting(split))
    }

    /// Refuses a key that asks for text unlike the vocabulary's.
    fn refuse_other(
        &self,
        language: &str,
        own: &Preparer,
        table: Option<&SimplificationTable>,
    ) -> text::Result<()> {
        let has = own.preparation();
        let name = |words: WordTokenizer| format!("words = {words:?}").to_lowercase();
        let switch = |key, asked: Option<bool>, has: bool| {
            asked
                .filter(|&asked| asked != has)
                .map(|asked| (key, asked.to_string(), has.to_string()))
        };
        let words = self.words().filter(|&(_, words)| words != has.words);
        let words = words.map(|(key, words)| (key, name(words), name(has.words)));
        let simplify =
            table.filter(|_| is_chinese(language)).filter(|&table| own.simplified() != Some(table));
        let simplify = simplify.map(|_| {
            let has = if has.simplify { "another table" } else { "no table" };
            ("text.simplify", "this table".to_owned(), has.to_owned())
        });
        let others = [
            switch("text.lowercase", self.lowercase, has.lowercase),
            switch("text.strip_accents", self.strip_accents, has.strip_accents),
            words,
            simplify,
        ];
        let Some((key, asked, has)) = others.into_iter().flatten().next() else { return Ok(()) };
        let lines = if key == "text.prepared" { " (text.lines has a sentence a line)" } else { "" };
        Err(text::Error::request(
            format!(
                "{key}: asks for {asked}, and the vocabulary was made with {has} for `{language}`"
            ),
            format!("leave it out{lines}, or take a vocabulary that was made with {asked}"),
        ))
    }

    /// Whether a line is a sentence, where a key says so.
    fn is_line_by_line(&self) -> Option<bool> {
        self.lines.or(self.prepared)
    }

    /// How text is cut into words, where a key says so, and which.
    fn words(&self) -> Option<(&'static str, WordTokenizer)> {
        let prepared = self.prepared.filter(|&prepared| prepared);
        let words = self.words.map(|words| ("text.words", words));
        words.or(prepared.map(|_| ("text.prepared", WordTokenizer::Whitespace)))
    }

    fn table(&self) -> text::Result<Option<Arc<SimplificationTable>>> {
        Ok(self.simplify.as_deref().map(SimplificationTable::read).transpose()?.map(Arc::new))
    }
}
