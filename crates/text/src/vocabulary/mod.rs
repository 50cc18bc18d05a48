//! Subword vocabularies: one id space for all languages, one tokenizer per language.
//!
//! The anchors (shared subwords) of Conneau et al. 2020 are decided here. A joint vocabulary is one BPE
//! learned from all languages together; a union is one BPE per language whose equal subwords share an id
//! (default anchors); a disjoint vocabulary is one BPE per language whose equal subwords have an id in
//! each (no anchors). In all three, the tokenizer of a language yields ids of the common space, so that
//! the code that follows need not know the kind.

mod disk;
mod encode;
mod extend;
mod foreign;
mod imported;
mod learn;
mod sentence;
mod stats;
mod summary;
mod unknown;

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokenizers::Tokenizer;

pub use encode::{EncodedWords, SubwordEncoder, SubwordEncoders};
pub use extend::ExtendedVocabulary;
pub use foreign::{read_tokenizer, tokenizer_of};
pub use imported::{ImportedTokenizer, WordMark};
pub use learn::{BpeSettings, LanguageText, WordCounts};
pub use sentence::{EncodedSentence, SentenceReader};
pub use stats::{
    Anchor, LanguageCounts, PairSharing, VocabularySharing, count_subwords, vocabulary_sharing,
};
pub use summary::{
    CountedText, LanguageObserver, LanguageSummary, VocabularyStats, VocabularySummary,
};
pub use unknown::{UnknownCounts, take_unknown_counts};

use crate::prepare::{Preparation, Preparer, SimplificationTable};
use crate::{Error, Result};

/// The suffix of a word's last subword, in vocabularies that are learned here.
const WORD_END: &str = "</w>";
/// The prefix of a subword that continues a word, in WordPiece vocabularies.
const CONTINUATION: &str = "##";

/// How the languages' vocabularies relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VocabularyKind {
    /// One BPE learned from all languages together.
    Joint,
    /// One BPE per language; equal subwords share an id.
    Union,
    /// One BPE per language; only special tokens share an id.
    Disjoint,
    /// WordPiece over a given list of subwords, such as multilingual BERT's.
    WordPiece,
    /// The tokenizer of an imported model.
    Imported,
}

/// The special tokens before and after a text. A decoder may have one alone, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame(pub Option<u32>, pub Option<u32>);

impl Frame {
    /// How many they are.
    pub fn count(self) -> usize {
        self.0.iter().chain(&self.1).count()
    }

    /// Ids with the special tokens around them.
    pub fn around(self, ids: &[u32]) -> Vec<u32> {
        self.0.into_iter().chain(ids.iter().copied()).chain(self.1).collect()
    }

    /// What is within, of rows that begin and end with the special tokens.
    pub fn within(self, rows: Range<usize>) -> Range<usize> {
        rows.start + usize::from(self.0.is_some())..rows.end - usize::from(self.1.is_some())
    }
}

/// The ids of special tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecialTokens {
    /// Beginning of text (`<s>`, `[CLS]`).
    pub start: u32,
    /// End of sentence (`</s>`, `[SEP]`).
    pub end: u32,
    /// Padding.
    pub pad: u32,
    /// A character or word that the vocabulary does not have.
    pub unknown: u32,
    /// A masked token.
    pub mask: u32,
}

impl SpecialTokens {
    /// XLM's order of ids; the id of its separator is reserved.
    const LEARNED: SpecialTokens = SpecialTokens { start: 0, end: 1, pad: 2, unknown: 3, mask: 5 };
    /// Their names, by id.
    const LEARNED_NAMES: [&str; 6] = ["<s>", "</s>", "<pad>", "<unk>", "<sep>", "<mask>"];

    /// All ids.
    pub fn ids(&self) -> [u32; 5] {
        [self.start, self.end, self.pad, self.unknown, self.mask]
    }
}

#[derive(Clone, Debug)]
struct VocabularyLanguage {
    name: String,
    tokenizer: Arc<Tokenizer>,
    preparer: Preparer,
    /// Occurrences of each subword in the text that the vocabulary was made from.
    counts: Vec<u64>,
    own: Vec<u32>,
}

/// Subwords with their ids, and how each language's text becomes such ids.
#[derive(Clone, Debug)]
pub struct Vocabulary {
    kind: VocabularyKind,
    specials: SpecialTokens,
    languages: Vec<VocabularyLanguage>,
    subwords: Vec<String>,
    boundaries: Boundaries,
    /// Set for the tokenizer of an imported model.
    imported: Option<ImportedTokenizer>,
    fingerprint: String,
}

impl Vocabulary {
    fn assemble(
        kind: VocabularyKind,
        specials: SpecialTokens,
        subwords: Vec<String>,
        mut languages: Vec<VocabularyLanguage>,
        imported: Option<ImportedTokenizer>,
    ) -> Result<Self> {
        for language in &mut languages {
            language.own = ids_of(kind, specials, language, subwords.len());
        }
        let mark =
            imported.as_ref().map_or_else(|| WordMark::of_kind(kind), |known| known.mark.clone());
        let boundaries = Boundaries::new(&mark, specials, &subwords);
        let fingerprint = String::new();
        let mut vocabulary =
            Self { kind, specials, languages, subwords, boundaries, imported, fingerprint };
        vocabulary.fingerprint = vocabulary.compute_fingerprint()?;
        Ok(vocabulary)
    }

    /// How the languages' vocabularies relate.
    pub fn kind(&self) -> VocabularyKind {
        self.kind
    }

    /// How many ids there are, over all languages.
    #[expect(clippy::len_without_is_empty, reason = "a vocabulary always has its special tokens")]
    pub fn len(&self) -> usize {
        self.subwords.len()
    }

    /// The ids of special tokens.
    pub fn specials(&self) -> SpecialTokens {
        self.specials
    }

    /// The special tokens before and after a text: `</s>` twice for XLM, `[CLS]` and `[SEP]` for BERT.
    pub fn frame(&self) -> Frame {
        match (self.kind, &self.imported) {
            (_, Some(imported)) => imported.bos_eos,
            (VocabularyKind::WordPiece, _) => {
                Frame(Some(self.specials.start), Some(self.specials.end))
            }
            _ => Frame(Some(self.specials.end), Some(self.specials.end)),
        }
    }

    /// The same where a model has both, as every masked language model does.
    pub fn bos_eos(&self) -> (u32, u32) {
        let Frame(start, end) = self.frame();
        (start.unwrap_or(self.specials.start), end.unwrap_or(self.specials.end))
    }

    /// Identifies the vocabulary: everything made with it records this string.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Refuses what was made with another vocabulary.
    pub fn check_fingerprint(&self, made_with: &str, what: &str) -> Result<()> {
        if made_with == self.fingerprint {
            return Ok(());
        }
        let short = |hex: &str| hex.chars().take(12).collect::<String>();
        Err(Error::request(
            format!(
                "{what} was made with vocabulary {}, not with this one ({})",
                short(made_with),
                short(&self.fingerprint)
            ),
            "use the vocabulary it was made with, or make it again with this one",
        ))
    }

    /// The languages' names, in the order of their indices.
    pub fn languages(&self) -> impl ExactSizeIterator<Item = &str> {
        self.languages.iter().map(|language| language.name.as_str())
    }

    /// The index of a language.
    pub fn language(&self, name: &str) -> Result<usize> {
        if let Some(known) = self.languages().position(|known| known == name) {
            return Ok(known);
        }
        if self.takes_any_language() {
            return check_language(name).map(|()| 0);
        }
        let known: Vec<_> = self.languages().collect();
        Err(Error::request(
            format!("the vocabulary has no language `{name}`"),
            format!("it has {}; train one with `{name}` to use it", known.join(", ")),
        ))
    }

    /// Whether any name is a language: imported models do not say which languages they know. Names that are not listed
    /// stand for the first.
    pub fn takes_any_language(&self) -> bool {
        self.imported.as_ref().is_some_and(|imported| imported.any_language)
    }

    /// The word that a subword spells, if it can be a whole word.
    pub fn whole_word(&self, language: &str, id: u32) -> Option<String> {
        let subword = self.subword(id)?;
        if let Some(imported) = &self.imported {
            return imported.mark.whole_word(subword).and_then(|_| {
                let language = self.language(language).unwrap_or(0);
                let word = self.decode(language, &[id]).trim().to_owned();
                (!word.is_empty()).then_some(word)
            });
        }
        let own = subword.strip_prefix(language).and_then(|rest| rest.strip_prefix(':'));
        let subword = own.filter(|_| self.kind == VocabularyKind::Disjoint).unwrap_or(subword);
        WordMark::of_kind(self.kind).whole_word(subword).map(str::to_owned)
    }

    /// The subword behind an id; in a disjoint vocabulary, its language comes first (`fr:le</w>`).
    pub fn subword(&self, id: u32) -> Option<&str> {
        self.subwords.get(id as usize).map(String::as_str)
    }

    /// The ids that belong to a language, in ascending order, special tokens included. The position of
    /// an id in this list is its row in a language-specific embedding table.
    pub fn language_ids(&self, language: usize) -> &[u32] {
        &self.languages[language].own
    }

    /// How often each id occurred in the language's text when the vocabulary was made.
    pub fn counts(&self, language: usize) -> &[u64] {
        &self.languages[language].counts
    }

    /// What prepares raw text of a language for this vocabulary.
    pub fn preparer(&self, language: usize) -> &Preparer {
        &self.languages[language].preparer
    }

    /// Turns prepared text of a language into ids.
    pub fn encoder(&self, language: usize) -> SubwordEncoder {
        self.encoder_of(language, &self.languages[language].name)
    }

    /// The same for text of a language that may go by another name.
    fn encoder_of(&self, language: usize, name: &str) -> SubwordEncoder {
        let tokenizer = Arc::clone(&self.languages[language].tokenizer);
        SubwordEncoder::new(tokenizer, self.specials.unknown, self.imported.as_ref(), name)
    }

    /// The same, one for each thread.
    pub fn encoders(&self, language: usize) -> SubwordEncoders {
        SubwordEncoders::new(self.encoder(language))
    }

    /// Encodes lines of a language as sequences of at most `longest` ids, special tokens included.
    pub fn reader(&self, language: &str, longest: usize) -> Result<SentenceReader> {
        Ok(SentenceReader::new(self, (self.language(language)?, language), longest))
    }

    /// The text of ids, as far as subwords determine it.
    pub fn decode(&self, language: usize, ids: &[u32]) -> String {
        // The only failure is a decoder that does not fit its model, which loading rules out.
        let decoded = terms::guarded(|| self.languages[language].tokenizer.decode(ids, true));
        decoded.and_then(|done| done.ok()).unwrap_or_default()
    }

    /// Whether an id is a special one.
    pub fn is_special(&self, id: u32) -> bool {
        self.specials.ids().contains(&id)
    }

    /// The words of a run of tokens, as ranges in it.
    pub fn words<'a>(
        &'a self,
        tokens: &'a [u32],
    ) -> impl Iterator<Item = std::ops::Range<usize>> + 'a {
        let mut start = 0;
        std::iter::from_fn(move || {
            let first = *tokens.get(start)?;
            let (mut last, mut end) = (first, start + 1);
            while end < tokens.len() && !self.boundaries.between(last, tokens[end]) {
                last = tokens[end];
                end += 1;
            }
            let word = start..end;
            start = end;
            Some(word)
        })
    }

    fn simplified(&self) -> Option<&SimplificationTable> {
        self.languages.iter().find_map(|language| language.preparer.simplified())
    }
}

/// The ids of a language: all that its own tokenizer can give, or, where all languages have one
/// tokenizer, those that its text used.
fn ids_of(
    kind: VocabularyKind,
    specials: SpecialTokens,
    language: &VocabularyLanguage,
    size: usize,
) -> Vec<u32> {
    let mut own: Vec<u32> = match kind {
        VocabularyKind::Union | VocabularyKind::Disjoint => {
            language.tokenizer.get_vocab(true).into_values().collect()
        }
        VocabularyKind::Joint | VocabularyKind::WordPiece | VocabularyKind::Imported
            if language.counts.iter().any(|&count| count > 0) =>
        {
            let used = |&id: &u32| language.counts[id as usize] > 0;
            (0..size as u32).filter(used).chain(specials.ids()).collect()
        }
        VocabularyKind::Joint | VocabularyKind::WordPiece | VocabularyKind::Imported => {
            (0..size as u32).collect()
        }
    };
    own.sort_unstable();
    own.dedup();
    own
}

/// Which subwords end a word, and which start one.
#[derive(Clone, Debug)]
struct Boundaries {
    ends: Vec<bool>,
    starts: Vec<bool>,
}

impl Boundaries {
    fn new(mark: &WordMark, specials: SpecialTokens, subwords: &[String]) -> Self {
        let mut boundaries = Self {
            ends: subwords.iter().map(|subword| mark.ends(subword)).collect(),
            starts: subwords.iter().map(|subword| mark.starts(subword)).collect(),
        };
        // An unknown character may be inside a word, so it neither ends nor starts one.
        for id in specials.ids().into_iter().filter(|&id| id != specials.unknown) {
            boundaries.ends[id as usize] = true;
            boundaries.starts[id as usize] = true;
        }
        boundaries
    }

    fn between(&self, left: u32, right: u32) -> bool {
        self.ends[left as usize] || self.starts[right as usize]
    }
}

/// Refuses a language name that could not be part of file names and subwords.
pub fn check_language(name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.len() <= 32 && name.chars().all(plain) {
        return Ok(());
    }
    Err(Error::request(
        format!("`{name}` is not a valid name for a language"),
        "use up to 32 letters, digits, `-` and `_`, such as `en` or `zh-Hant`",
    ))
}

fn check_languages<'a>(names: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut seen = Vec::new();
    for name in names {
        check_language(name)?;
        if seen.contains(&name) {
            return Err(Error::request(
                format!("language `{name}` is given twice"),
                "give each once",
            ));
        }
        seen.push(name);
    }
    if seen.is_empty() {
        return Err(Error::request("a vocabulary needs a language", "give text as LANG=FILE"));
    }
    Ok(())
}

#[derive(Debug, Serialize, Deserialize)]
struct LanguageManifest {
    name: String,
    tokenizer: String,
    preparation: Preparation,
}
