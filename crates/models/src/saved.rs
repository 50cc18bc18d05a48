//! Hidden states that were computed before, here or elsewhere, in place of a model.
//!
//! A folder holds `states.npy` (layers x rows x dim; `states.npz` and `states.safetensors` serve too) and `sentences.jsonl`:
//! for each sentence, in the order of the rows, a line such as
//! `{"lang": "fr", "text": "Le chat dort.", "tokens": ["▁Le", "▁chat", …], "words": [0, 1, …]}`. A sentence has as many rows as tokens;
//! `length` gives their number where there are no `tokens`, and without either it has one row, its vector. `words` says
//! of which word each token is, counted from 0; only what looks at words needs it.
//!
//! The folder stands where a model's states alone are wanted. Text is looked up there instead of being encoded, so it must be
//! the same text; white space does not count.

use std::collections::HashMap;
use std::io::BufRead;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrays::{Matrix, Stack};
use encoder::Encoder;
use files::At;
use serde::{Deserialize, Serialize};
use tensor::{Device, Params, Tensor};
use text::{EncodedSentence, EncodedWords, SentenceReader, UnknownCounts, Vocabulary};

use crate::error::{Error, Result};
use crate::pretrained::PretrainedModel;

/// The file of the sentences.
pub(crate) const SENTENCES: &str = "sentences.jsonl";
/// The file of the states as it is written here.
pub(crate) const STATES: &str = "states.npy";
/// More than any model has.
const MOST_LAYERS: usize = 1024;
const ARRAYS: [&str; 3] = [STATES, "states.npz", "states.safetensors"];

/// A line of `sentences.jsonl`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SavedLine {
    pub(crate) lang: String,
    pub(crate) text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) length: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tokens: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) words: Option<Vec<u32>>,
}

impl SavedLine {
    fn rows(&self) -> usize {
        self.length.or(self.tokens.as_ref().map(Vec::len)).unwrap_or(1)
    }
}

/// The rows of a sentence, and its words where they are told.
type SavedRows = (Range<u32>, Option<Vec<u32>>);

/// Hidden states of sentences.
#[derive(Debug)]
pub struct SavedStates {
    folder: PathBuf,
    /// Of each layer: rows x dim.
    layers: Vec<Matrix>,
    languages: Vec<String>,
    sentences: HashMap<(usize, String), SavedRows>,
    fingerprint: String,
    longest: usize,
}

/// Whether a folder holds saved states.
pub(crate) fn is_saved(folder: &Path) -> bool {
    folder.join(SENTENCES).is_file() && ARRAYS.iter().any(|name| folder.join(name).is_file())
}

/// Text as it is looked up.
fn key(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl SavedStates {
    /// Reads a folder.
    ///
    /// # Errors
    /// Where the two files do not belong together, or one cannot be read.
    pub fn open(folder: &Path) -> Result<Self> {
        let array = ARRAYS.iter().map(|name| folder.join(name)).find(|path| path.is_file());
        let array = array.unwrap_or_else(|| folder.join(STATES));
        let stack = Stack::open(&array)?;
        let dim = stack.dim(0);
        let even = (0..stack.layers()).all(|layer| stack.dim(layer) == dim);
        if !even || stack.layers() > MOST_LAYERS {
            let reason = format!("its {} layers are too many, or not of one width", stack.layers());
            return Err(Error::input(array.display(), reason, "save some layers, of one width"));
        }
        let mut saved = Self {
            folder: folder.to_owned(),
            layers: (0..stack.layers()).map(|layer| stack.whole(layer)).collect::<Result<_>>()?,
            languages: Vec::new(),
            sentences: HashMap::new(),
            fingerprint: String::new(),
            longest: 1,
        };
        let path = folder.join(SENTENCES);
        let rows = saved.read_sentences(&path)?;
        if rows != stack.rows() {
            let reason = format!(
                "its sentences have {rows} rows, and {} has {}",
                array.display(),
                stack.rows()
            );
            let remedy = "give each sentence as many `tokens`, or the `length`, as it has rows";
            return Err(Error::input(path.display(), reason, remedy));
        }
        let mut hasher = blake3::Hasher::new();
        for file in [&array, &path] {
            let file = std::fs::File::open(file).at(file, "open")?;
            hasher.update_reader(file).at(&array, "read")?;
        }
        saved.fingerprint = hasher.finalize().to_hex().to_string();
        Ok(saved)
    }

    /// Reads the list of sentences, and says how many rows they have.
    fn read_sentences(&mut self, path: &Path) -> Result<usize> {
        let file = std::io::BufReader::new(std::fs::File::open(path).at(path, "open")?);
        let mut rows = 0usize;
        for (number, line) in (1..).zip(file.lines()) {
            let line = line.at(path, "read")?;
            let refuse = |reason: String| {
                let remedy = "write one object a line with `lang` and `text`, and with `tokens` or \
                              `length` unless a sentence is one row";
                Error::input(format!("{}:{number}", path.display()), reason, remedy)
            };
            let line: SavedLine =
                serde_json::from_str(&line).map_err(|error| refuse(error.to_string()))?;
            let length = line.rows();
            if length == 0 || line.tokens.as_ref().is_some_and(|tokens| tokens.len() != length) {
                return Err(refuse(format!("a sentence of {length} rows does not fit its tokens")));
            }
            if line.words.as_ref().is_some_and(|words| words.len() != length || !words.is_sorted())
            {
                return Err(refuse("`words` does not give each token's word in order".to_owned()));
            }
            text::check_language(&line.lang).map_err(|error| refuse(error.to_string()))?;
            let known = self.languages.iter().position(|language| *language == line.lang);
            let language = known.unwrap_or_else(|| {
                self.languages.push(line.lang.clone());
                self.languages.len() - 1
            });
            let end = rows.saturating_add(length);
            let range = u32::try_from(rows).ok().zip(u32::try_from(end).ok());
            let (first, last) = range.ok_or_else(|| refuse("too many rows".to_owned()))?;
            let entry = self.sentences.entry((language, key(&line.text)));
            entry.or_insert((first..last, line.words));
            self.longest = self.longest.max(length);
            rows = end;
        }
        Ok(rows)
    }

    fn find(&self, language: usize, text: &str) -> Result<&SavedRows> {
        let text = key(text);
        self.sentences.get(&(language, text.clone())).ok_or_else(|| {
            let reason = format!("has no states of `{text}` in {}", self.languages[language]);
            Error::input(self.folder.display(), reason, "save the states of this text too")
        })
    }

    /// The rows of a sentence, as a model has its ids.
    pub(crate) fn sentence(&self, language: usize, text: &str) -> Result<EncodedSentence> {
        let (rows, _) = self.find(language, text)?;
        Ok(EncodedSentence { ids: rows.clone().collect(), truncated: false })
    }

    /// The rows of a sentence, word by word.
    pub(crate) fn words(&self, language: usize, words: &[&str]) -> Result<EncodedWords> {
        let text = words.join(" ");
        let (rows, of) = self.find(language, &text)?;
        let number = |word: usize| of.as_ref()?.iter().position(|&of| of as usize == word);
        let firsts: Option<Vec<u32>> =
            (0..words.len()).map(|word| Some(number(word)? as u32)).collect();
        let last = of.as_ref().and_then(|of| of.last());
        match firsts {
            Some(firsts)
                if firsts.first() == Some(&0)
                    && last.is_some_and(|&last| last as usize + 1 == words.len()) =>
            {
                Ok(EncodedWords { ids: rows.clone().collect(), firsts })
            }
            _ => {
                let reason = format!("does not say which tokens are which words of `{text}`");
                let remedy = "give `words`, the number of each token's word among those between spaces, from 0";
                Err(Error::input(self.folder.display(), reason, remedy))
            }
        }
    }

    /// The states of some sentences' rows at each layer up to `last`.
    pub(crate) fn rows<S: AsRef<[u32]>>(
        &self,
        sentences: &[S],
        last: Option<usize>,
        device: &Device,
    ) -> Vec<Tensor> {
        let rows: Vec<usize> =
            sentences.iter().flat_map(|ids| ids.as_ref()).map(|&row| row as usize).collect();
        let wanted = last.map_or(self.layers.len(), |last| last + 1).min(self.layers.len());
        let gather = |layer: &Matrix| {
            let values = layer.select(rows.iter().copied()).into_values();
            device.tensor(rows.len(), layer.cols(), &values)
        };
        self.layers[..wanted].iter().map(gather).collect()
    }

    pub(crate) fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl PretrainedModel {
    /// Opens a model or saved states, where nothing but states is wanted.
    ///
    /// # Errors
    /// Where it cannot be opened.
    pub fn open_states(name: &Path, device: &Device) -> Result<Self> {
        if !is_saved(name) {
            return Ok(Self::open(name, device)?);
        }
        let saved = SavedStates::open(name)?;
        // Gathering rows is no work for a GPU.
        let device = Device::cpu(0).map_err(|error| Error::of_key("device", error.to_string()))?;
        let mut params = Params::new(&device);
        let SavedStates { layers, languages, longest, .. } = &saved;
        let sizes = [layers.len() - 1, layers[0].cols(), *longest];
        let encoder = Encoder::nominal(languages.clone(), sizes, &mut params);
        let vocabulary = Vocabulary::nominal(&saved.languages)?;
        Ok(Self::of_saved(encoder, params, vocabulary, saved))
    }
}

/// Reads sentences for their states: tokens of a text, or the rows of one whose states are there.
pub struct StateReader {
    pub(crate) reader: SentenceReader,
    pub(crate) prompt: String,
    pub(crate) lowercase: bool,
    pub(crate) saved: Option<Arc<SavedStates>>,
}

impl StateReader {
    /// The number of the language.
    pub fn language(&self) -> usize {
        self.reader.language()
    }

    /// What it has read so far.
    pub fn unknown_counts(&self) -> UnknownCounts {
        self.reader.unknown_counts()
    }

    /// The most tokens of a sequence, special tokens not counted.
    pub fn max_subwords(&self) -> usize {
        self.reader.max_subwords()
    }

    /// A sentence, behind the prompt.
    ///
    /// # Errors
    /// Where it is not among those whose states are there.
    pub fn sentence(&mut self, line: &str) -> Result<EncodedSentence> {
        if let Some(saved) = &self.saved {
            return saved.sentence(self.language(), line);
        }
        let line = if self.lowercase { &line.to_lowercase() } else { line };
        Ok(match self.prompt.as_str() {
            "" => self.reader.sentence(line),
            prompt => self.reader.sentence(&format!("{prompt}{line}")),
        })
    }

    /// Words that are given one by one.
    ///
    /// # Errors
    /// Where their sentence is not among those whose states are there.
    pub fn words(&mut self, words: &[&str]) -> Result<EncodedWords> {
        match &self.saved {
            Some(saved) => saved.words(self.language(), words),
            None => Ok(self.reader.raw_words(words.iter().copied())),
        }
    }

    /// Puts ids between the special tokens.
    pub fn with_special_tokens(&self, ids: &[u32]) -> Vec<u32> {
        self.reader.with_special_tokens(ids)
    }
}
