//! Tokenizers that came with a model from elsewhere: text goes in as that model wants it, and the
//! ids are those it was trained with.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokenizers::{ModelWrapper, Tokenizer};

use super::disk::as_text;
use super::{Kind, Language, Specials, Vocabulary, WORD_END, WORD_GOES_ON, check_languages};
use crate::error::{Error, Result};
use crate::prepare::{Preparation, Preparer};

/// What is known of a tokenizer from elsewhere, beside what it says itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Foreign {
    /// Whether every name is a language: the model does not say which it knows.
    pub any_language: bool,
    /// What is put before and after a text.
    pub frame: (u32, u32),
    /// How pieces show where words begin or end.
    pub mark: Mark,
    /// Whether a word that is given by itself needs a space before it, to be what it is within text.
    pub space_before_word: bool,
}

/// How pieces show where words begin or end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// The last piece of a word ends with this.
    Ends(String),
    /// Pieces that go on a word begin with this.
    Continues(String),
    /// The first piece of a word begins with this.
    Starts(String),
}

impl Mark {
    pub(super) fn of_kind(kind: Kind) -> Self {
        match kind {
            Kind::WordPiece => Mark::Continues(WORD_GOES_ON.into()),
            _ => Mark::Ends(WORD_END.into()),
        }
    }

    pub(super) fn ends(&self, piece: &str) -> bool {
        matches!(self, Mark::Ends(mark) if piece.ends_with(mark))
    }

    pub(super) fn starts(&self, piece: &str) -> bool {
        match self {
            Mark::Ends(_) => false,
            Mark::Continues(mark) => !piece.starts_with(mark),
            Mark::Starts(mark) => piece.starts_with(mark),
        }
    }

    /// The word that a piece is, where it can be a whole one.
    pub(super) fn whole_word<'a>(&self, piece: &'a str) -> Option<&'a str> {
        let word = match self {
            Mark::Ends(mark) => piece.strip_suffix(mark.as_str())?,
            Mark::Continues(mark) => (!piece.starts_with(mark)).then_some(piece)?,
            Mark::Starts(mark) => piece.strip_prefix(mark.as_str())?,
        };
        (!word.is_empty()).then_some(word)
    }
}

impl Foreign {
    /// What can be learned from the tokenizer itself; `start` and `end` frame a text where it does
    /// not say what does.
    pub fn of(tokenizer: &Tokenizer, (start, end): (u32, u32), any_language: bool) -> Self {
        let before = serde_json::to_value(tokenizer.get_pre_tokenizer()).unwrap_or_default();
        let bytes = find(&before, "ByteLevel");
        let spaces = find(&before, "Metaspace");
        let mark = match tokenizer.get_model() {
            ModelWrapper::WordPiece(model) => {
                Mark::Continues(model.continuing_subword_prefix.clone())
            }
            ModelWrapper::BPE(model) => match (&model.end_of_word_suffix, bytes) {
                (Some(suffix), _) if !suffix.is_empty() => Mark::Ends(suffix.clone()),
                (_, Some(_)) => Mark::Starts("Ġ".into()),
                _ => Mark::Starts("▁".into()),
            },
            ModelWrapper::Unigram(_) => Mark::Starts("▁".into()),
            ModelWrapper::WordLevel(_) => Mark::Ends(String::new()),
        };
        let space_before_word = bytes.is_some_and(|bytes| bytes["add_prefix_space"] != true)
            || spaces.is_some_and(|spaces| spaces["prepend_scheme"] == "never");
        let framed = tokenizer.encode_fast("", true);
        let framed = framed.map(|encoding| encoding.get_ids().to_vec()).unwrap_or_default();
        let frame = if let [start, end] = framed[..] { (start, end) } else { (start, end) };
        Self { any_language, frame, mark, space_before_word }
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
    /// Takes over a tokenizer of `size` ids, with the languages that it is for and how the text of
    /// each is prepared.
    pub fn foreign(
        tokenizer: Tokenizer,
        languages: Vec<(String, Preparation)>,
        specials: Specials,
        size: usize,
        foreign: Foreign,
    ) -> Result<Self> {
        check_languages(languages.iter().map(|(name, _)| name.as_str()))?;
        let tokenizer = Arc::new(as_text(tokenizer));
        let language = |(name, preparation): (String, Preparation)| {
            let preparer = Preparer::new(&name, preparation, None)?;
            let tokenizer = Arc::clone(&tokenizer);
            Ok(Language { name, tokenizer, preparer, counts: vec![0; size], own: Vec::new() })
        };
        let languages: Vec<Language> =
            languages.into_iter().map(language).collect::<Result<_>>()?;
        Self::adopt(languages, specials, size, foreign)
    }

    /// Rows of the table that no piece has, which others fill up to a round number, are named by
    /// their number.
    pub(super) fn adopt(
        languages: Vec<Language>,
        specials: Specials,
        size: usize,
        foreign: Foreign,
    ) -> Result<Self> {
        let mut pieces: Vec<String> = (0..size).map(|row| format!("<row {row}>")).collect();
        for (piece, id) in languages[0].tokenizer.get_vocab(true) {
            let slot = pieces.get_mut(id as usize).ok_or_else(|| {
                let reason = format!("piece `{piece}` has number {id}, beyond the {size} rows");
                Error::request(reason, "give the model and the tokenizer that belong together")
            })?;
            *slot = piece;
        }
        let (start, end) = foreign.frame;
        if specials.ids().into_iter().chain([start, end]).any(|id| id as usize >= size) {
            let reason = format!("a special token has a number beyond the {size} rows");
            let remedy = "give the model and the tokenizer that belong together";
            return Err(Error::request(reason, remedy));
        }
        Self::assemble(Kind::Foreign, specials, pieces, languages, Some(foreign))
    }
}
