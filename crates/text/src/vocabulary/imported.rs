//! Tokenizers of imported models: text is tokenized as the model's own library would do it, and the
//! ids are those that the model was trained with.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use terms::guarded;
use tokenizers::{AddedToken, ModelWrapper, Tokenizer};

use super::disk::as_text;
use super::{
    CONTINUATION, Frame, SpecialTokens, Vocabulary, VocabularyKind, VocabularyLanguage, WORD_END,
    check_languages,
};
use crate::prepare::{Preparation, Preparer};
use crate::{Error, Result};

/// What is known of an imported tokenizer beyond its own file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedTokenizer {
    /// Whether any name is a language: the model does not say which languages it knows.
    pub any_language: bool,
    /// The special tokens before and after a text.
    pub bos_eos: Frame,
    /// How subwords mark where words begin or end.
    pub mark: WordMark,
    /// Whether a word given by itself needs a leading space to be tokenized as it is within text.
    pub space_before_word: bool,
}

/// How subwords mark where words begin or end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WordMark {
    /// The last subword of a word ends with this.
    Ends(String),
    /// Subwords that go on a word begin with this.
    Continues(String),
    /// The first subword of a word begins with this.
    Starts(String),
}

impl WordMark {
    pub(super) fn of_kind(kind: VocabularyKind) -> Self {
        match kind {
            VocabularyKind::WordPiece => WordMark::Continues(CONTINUATION.into()),
            _ => WordMark::Ends(WORD_END.into()),
        }
    }

    pub(super) fn ends(&self, subword: &str) -> bool {
        matches!(self, WordMark::Ends(mark) if subword.ends_with(mark))
    }

    pub(super) fn starts(&self, subword: &str) -> bool {
        match self {
            WordMark::Ends(_) => false,
            WordMark::Continues(mark) => !subword.starts_with(mark),
            WordMark::Starts(mark) => subword.starts_with(mark),
        }
    }

    /// The word that a subword is, where it can be a whole one.
    pub(super) fn whole_word<'a>(&self, subword: &'a str) -> Option<&'a str> {
        let word = match self {
            WordMark::Ends(mark) => subword.strip_suffix(mark.as_str())?,
            WordMark::Continues(mark) => (!subword.starts_with(mark)).then_some(subword)?,
            WordMark::Starts(mark) => subword.strip_prefix(mark.as_str())?,
        };
        (!word.is_empty()).then_some(word)
    }
}

impl ImportedTokenizer {
    /// What can be derived from the tokenizer itself; `frame` are the special tokens where it does not name its own,
    /// none for a tokenizer that says everything.
    pub fn of(tokenizer: &Tokenizer, frame: Option<(u32, u32)>, any_language: bool) -> Self {
        let before = serde_json::to_value(tokenizer.get_pre_tokenizer()).unwrap_or_default();
        let bytes = find(&before, "ByteLevel");
        let spaces = find(&before, "Metaspace");
        let mark = match tokenizer.get_model() {
            ModelWrapper::WordPiece(model) => {
                WordMark::Continues(model.continuing_subword_prefix.clone())
            }
            ModelWrapper::BPE(model) => match (&model.end_of_word_suffix, bytes) {
                (Some(suffix), _) if !suffix.is_empty() => WordMark::Ends(suffix.clone()),
                (_, Some(_)) => WordMark::Starts("Ġ".into()),
                _ => WordMark::Starts("▁".into()),
            },
            ModelWrapper::Unigram(_) => WordMark::Starts("▁".into()),
            ModelWrapper::WordLevel(_) => WordMark::Ends(String::new()),
        };
        let normal = serde_json::to_value(tokenizer.get_normalizer()).unwrap_or_default();
        let replaced = find(&normal, "Replace")
            .is_some_and(|found| found["pattern"]["String"] == " " && found["content"] == "▁");
        let space_before_word = bytes.is_some_and(|bytes| bytes["add_prefix_space"] != true)
            || spaces.is_some_and(|spaces| spaces["prepend_scheme"] == "never")
            || replaced && find(&normal, "Prepend").is_none();
        let framed = |text: &str| {
            let encoding = guarded(|| tokenizer.encode_fast(text, true)).and_then(|done| done.ok());
            encoding.map(|encoding| encoding.get_ids().to_vec()).unwrap_or_default()
        };
        let bos_eos = match (&framed("")[..], frame) {
            (&[start, end], _) => Frame(Some(start), Some(end)),
            (_, Some((start, end))) => Frame(Some(start), Some(end)),
            (&[one], None) if framed("a").first() == Some(&one) => Frame(Some(one), None),
            (&[one], None) => Frame(None, Some(one)),
            (_, None) => Frame(None, None),
        };
        Self { any_language, bos_eos, mark, space_before_word }
    }

    pub(super) fn before_word(&self) -> &'static str {
        if self.space_before_word { " " } else { "" }
    }
}

/// The part of a tokenizer's description that is of a type, however deep.
fn find<'a>(value: &'a Value, kind: &str) -> Option<&'a Value> {
    match value {
        Value::Object(map) if map.get("type").is_some_and(|known| known == kind) => Some(value),
        Value::Object(map) => map.values().find_map(|inner| find(inner, kind)),
        Value::Array(list) => list.iter().find_map(|inner| find(inner, kind)),
        _ => None,
    }
}

impl Vocabulary {
    /// Adopts a tokenizer of `size` ids, with the languages that it is for and how the text of each is
    /// preprocessed.
    pub fn imported(
        tokenizer: Tokenizer,
        languages: Vec<(String, Preparation)>,
        specials: SpecialTokens,
        size: usize,
        imported: ImportedTokenizer,
    ) -> Result<Self> {
        check_languages(languages.iter().map(|(name, _)| name.as_str()))?;
        let tokenizer = Arc::new(as_text(tokenizer));
        let language = |(name, preparation): (String, Preparation)| {
            let preparer = Preparer::new(&name, preparation, None)?;
            let tokenizer = Arc::clone(&tokenizer);
            Ok(VocabularyLanguage {
                name,
                tokenizer,
                preparer,
                counts: vec![0; size],
                own: Vec::new(),
            })
        };
        let languages: Vec<VocabularyLanguage> =
            languages.into_iter().map(language).collect::<Result<_>>()?;
        Self::adopt(languages, specials, size, imported)
    }

    /// Names of languages alone, for states that were computed elsewhere: it has no subwords of text, and nothing stands around
    /// one.
    pub fn nominal(languages: &[String]) -> Result<Self> {
        let raw = |name: &String| (name.clone(), Preparation::raw());
        let mut tokenizer = Tokenizer::new(tokenizers::models::wordlevel::WordLevel::default());
        let names = SpecialTokens::LEARNED_NAMES.map(|name| AddedToken::from(name, true));
        let _ = tokenizer.add_special_tokens(names);
        let imported = ImportedTokenizer::of(&tokenizer, None, false);
        let languages = languages.iter().map(raw).collect();
        let (specials, size) = (SpecialTokens::LEARNED, SpecialTokens::LEARNED_NAMES.len());
        Self::imported(tokenizer, languages, specials, size, imported)
    }

    /// The same tokenizer for languages of these names, where it takes text of any language: each then has
    /// text and counts of its own, as pretraining needs it. Other names still stand for the first.
    pub fn for_languages(&self, names: &[String]) -> Result<Self> {
        let listed = |name: &String| self.languages().any(|known| known == name);
        if !self.takes_any_language() || names.iter().all(listed) {
            return Ok(self.clone());
        }
        check_languages(names.iter().map(String::as_str))?;
        let first = &self.languages[0];
        let language = |name: &String| {
            let preparer = Preparer::new(name, first.preparer.preparation(), None)?;
            Ok(VocabularyLanguage { name: name.clone(), preparer, ..first.clone() })
        };
        // One language alone is the tokenizer itself, under whatever name.
        let kept = if self.languages.len() == 1 { &[] } else { self.languages.as_slice() };
        let unlisted = |name: &&String| !kept.iter().any(|kept| kept.name == **name);
        let new = names.iter().filter(unlisted).map(language);
        let languages = kept.iter().cloned().map(Ok).chain(new).collect::<Result<_>>()?;
        let (subwords, imported) = (self.subwords.clone(), self.imported.clone());
        Self::assemble(self.kind, self.specials, subwords, languages, imported)
    }

    /// Rows of the embedding table without a subword (tables are often padded to a round size) are named
    /// by their number.
    pub(super) fn adopt(
        languages: Vec<VocabularyLanguage>,
        specials: SpecialTokens,
        size: usize,
        imported: ImportedTokenizer,
    ) -> Result<Self> {
        let mut subwords: Vec<String> = (0..size).map(|row| format!("<row {row}>")).collect();
        let mut tokenizers: Vec<_> =
            languages.iter().map(|one| Arc::clone(&one.tokenizer)).collect();
        tokenizers.dedup_by(|one, other| Arc::ptr_eq(one, other));
        let known = tokenizers.iter().flat_map(|tokenizer| tokenizer.get_vocab(true));
        for (subword, id) in known {
            let slot = subwords.get_mut(id as usize).ok_or_else(|| {
                let reason = format!("subword `{subword}` has id {id}, beyond the {size} rows");
                Error::request(reason, "give the model and the tokenizer that belong together")
            })?;
            *slot = subword;
        }
        let Frame(start, end) = imported.bos_eos;
        if specials.ids().into_iter().chain(start).chain(end).any(|id| id as usize >= size) {
            let reason = format!("a special token has an id beyond the {size} rows");
            let remedy = "give the model and the tokenizer that belong together";
            return Err(Error::request(reason, remedy));
        }
        Self::assemble(VocabularyKind::Imported, specials, subwords, languages, Some(imported))
    }
}
