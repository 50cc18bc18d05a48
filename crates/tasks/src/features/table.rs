//! Static vectors: a word has one, whatever its context.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use shift::means::MeanVectors;
use tensor::random::{Draws, Key};
use tensor::{Device, Tensor};
use text::{EncodedWords, Preparation, Preparer};
use vectors::WordVectors;
use vectors::formats::{ReadOptions, read};

use super::frozen::FrozenVectors;
use super::{FeatureInput, InputForm, TokenSource};
use crate::error::{Error, Result};

/// Tokens that are no words: what begins a text, what ends one, and every word without a vector.
const START: u32 = 0;
const END: u32 = 1;
const UNKNOWN: u32 = 2;
/// The number of a table's first word.
const FIRST: u32 = 3;
/// The longest input, in words.
const LONGEST: usize = 256;

/// A table of vectors for each language, all of one space.
pub struct StaticVectors {
    languages: Vec<LanguageVectors>,
    dim: usize,
    /// The vectors of the tokens that are no words: 3 x dim, the same in all languages.
    specials: Vec<f32>,
    device: Device,
    fingerprint: String,
}

struct LanguageVectors {
    name: String,
    vectors: WordVectors,
    preparer: Preparer,
}

impl StaticVectors {
    /// Reads the vectors of each language, in any format of the field.
    pub fn open(files: &BTreeMap<String, PathBuf>, device: &Device) -> Result<Self> {
        let table = |(name, path): (&String, &PathBuf)| {
            Ok((name.clone(), read(path, ReadOptions::default())?))
        };
        Self::new(files.iter().map(table).collect::<Result<_>>()?, device)
    }

    /// Of these tables, which must be of one dimension.
    pub fn new(tables: Vec<(String, WordVectors)>, device: &Device) -> Result<Self> {
        let dim = tables.first().map_or(0, |(_, vectors)| vectors.dim());
        if tables.iter().any(|(_, vectors)| vectors.dim() != dim) || dim == 0 {
            let remedy = "give tables of one space, with the same number of columns";
            return Err(Error::request("vectors of different dimensions", remedy));
        }
        let mut hasher = blake3::Hasher::new();
        let mut languages = Vec::new();
        for (name, vectors) in tables {
            for (row, word) in vectors.words().enumerate() {
                let values = vectors.row(row).iter().flat_map(|value| value.to_le_bytes());
                hasher.update(word.as_bytes()).update(&values.collect::<Vec<u8>>());
            }
            let preparation = Preparation { split: false, ..Preparation::for_language(&name) };
            let preparer = Preparer::new(&name, preparation, None)?;
            languages.push(LanguageVectors { name, vectors, preparer });
        }
        let specials = specials(&languages[0].vectors);
        let fingerprint = hasher.finalize().to_hex().to_string();
        Ok(Self { languages, dim, specials, device: device.clone(), fingerprint })
    }

    fn token(&self, language: usize, word: &str) -> u32 {
        let vectors = &self.languages[language].vectors;
        let row = vectors.position(word).or_else(|| vectors.position(&word.to_lowercase()));
        row.map_or(UNKNOWN, |row| row as u32 + FIRST)
    }

    fn vector(&self, language: usize, token: u32) -> &[f32] {
        match token.checked_sub(FIRST) {
            Some(row) => self.languages[language].vectors.row(row as usize),
            None => &self.specials[token as usize * self.dim..(token as usize + 1) * self.dim],
        }
    }
}

/// Random directions as long as vectors are on average, and nothing at all for the unknown.
fn specials(vectors: &WordVectors) -> Vec<f32> {
    let squares: f64 = vectors.values().iter().map(|&x| f64::from(x) * f64::from(x)).sum();
    let deviation = (squares / vectors.values().len() as f64).sqrt() as f32;
    let mut draws = Draws::new(Key { seed: 0, step: 0, stream: 0 });
    let mut specials: Vec<f32> =
        (0..2 * vectors.dim()).map(|_| deviation * draws.normal()).collect();
    specials.resize(3 * vectors.dim(), 0.0);
    specials
}

impl TokenSource for StaticVectors {
    fn dim(&self) -> usize {
        self.dim
    }

    fn longest(&self) -> usize {
        LONGEST
    }

    fn layers(&self) -> Option<usize> {
        None
    }

    fn means(&self, _file: &Path) -> Result<MeanVectors> {
        let remedy = "shift a layer of an encoder";
        Err(Error::request("static vectors have no layers, and no mean vectors of them", remedy))
    }

    fn input(&self) -> InputForm {
        InputForm::both_sides((START, END))
    }

    fn language(&self, name: &str) -> Result<usize> {
        self.languages.iter().position(|table| table.name == name).ok_or_else(|| {
            let remedy = "add a file for the language to `files`";
            Error::request(format!("no vectors for {name}"), remedy)
        })
    }

    /// A word as it stands has one token.
    fn encode(&self, language: usize, words: &[&str]) -> EncodedWords {
        let ids: Vec<u32> = words.iter().map(|word| self.token(language, word)).collect();
        let firsts = (0..ids.len() as u32).collect();
        EncodedWords { ids, firsts }
    }

    fn encode_text(&self, language: usize, text: &str) -> Vec<u32> {
        let mut words = String::new();
        self.languages[language].preparer.prepare(text, &mut words);
        words.split(' ').map(|word| self.token(language, word)).collect()
    }

    fn metadata(&self) -> Value {
        json!({ "vectors": self.fingerprint })
    }
}

impl FrozenVectors for StaticVectors {
    fn vectors(&self, input: &FeatureInput<'_>) -> Tensor {
        let tokens = input.sequences.iter().copied().flatten();
        let rows = tokens.clone().count();
        let elements: Vec<f32> =
            tokens.flat_map(|&token| self.vector(input.language, token)).copied().collect();
        self.device.tensor(rows, self.dim, &elements)
    }

    fn states(&self, _input: &FeatureInput<'_>, _layer: usize) -> Tensor {
        unreachable!("there are no layers, and `layers` says so")
    }
}
