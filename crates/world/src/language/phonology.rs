//! Phonology: the phoneme inventory of a language, how words are built from it, and regular sound change in
//! inherited words.

use rand::RngExt;
use rand::rngs::ChaCha8Rng;

use crate::random::{bernoulli, choose, shuffle};

/// Consonants of all languages together.
pub(crate) const CONSONANTS: usize = 16;
/// Vowels of all languages together.
pub(crate) const VOWELS: usize = 5;
/// Consonants one language uses.
const OWN_CONSONANTS: usize = 9;
/// Vowels one language uses.
const OWN_VOWELS: usize = 4;

/// Onset, vowel and optional coda, as phoneme numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Syllable {
    pub(crate) onset: usize,
    pub(crate) vowel: usize,
    pub(crate) coda: Option<usize>,
}

#[derive(Clone, Debug)]
pub(crate) struct Phonology {
    consonants: Vec<usize>,
    vowels: Vec<usize>,
    /// Sound change: what each phoneme becomes in this language. Its own stay, others are always replaced by
    /// the same one.
    consonant_shift: Vec<usize>,
    vowel_shift: Vec<usize>,
}

impl Phonology {
    pub(crate) fn new(rng: &mut ChaCha8Rng) -> Self {
        let consonants = inventory(CONSONANTS, OWN_CONSONANTS, rng);
        let vowels = inventory(VOWELS, OWN_VOWELS, rng);
        let consonant_shift = shift(CONSONANTS, &consonants, rng);
        let vowel_shift = shift(VOWELS, &vowels, rng);
        Self { consonants, vowels, consonant_shift, vowel_shift }
    }

    /// A new word; only its last syllable can be closed.
    pub(crate) fn word(&self, syllables: usize, rng: &mut ChaCha8Rng) -> Vec<Syllable> {
        let mut word: Vec<Syllable> = (0..syllables)
            .map(|_| Syllable {
                onset: *choose(rng, &self.consonants),
                vowel: *choose(rng, &self.vowels),
                coda: None,
            })
            .collect();
        if bernoulli(rng, 0.4) {
            word[syllables - 1].coda = Some(*choose(rng, &self.consonants));
        }
        word
    }

    /// A word of another language after this language's sound changes.
    pub(crate) fn adapt(&self, word: &[Syllable]) -> Vec<Syllable> {
        word.iter()
            .map(|syllable| Syllable {
                onset: self.consonant_shift[syllable.onset],
                vowel: self.vowel_shift[syllable.vowel],
                coda: syllable.coda.map(|coda| self.consonant_shift[coda]),
            })
            .collect()
    }

    /// The same word with another last vowel, for an inherited word whose form is in use.
    pub(crate) fn with_other_vowel(&self, word: &[Syllable], step: usize) -> Vec<Syllable> {
        let mut word = word.to_vec();
        if let Some(last) = word.last_mut() {
            let at = self.vowels.iter().position(|&vowel| vowel == last.vowel).unwrap_or(0);
            last.vowel = self.vowels[(at + step) % self.vowels.len()];
        }
        word
    }
}

fn inventory(all: usize, own: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
    let mut sounds: Vec<usize> = (0..all).collect();
    shuffle(rng, &mut sounds);
    sounds.truncate(own);
    sounds.sort_unstable();
    sounds
}

fn shift(all: usize, own: &[usize], rng: &mut ChaCha8Rng) -> Vec<usize> {
    let mut heir = || own[rng.random_range(0..own.len())];
    (0..all).map(|sound| if own.contains(&sound) { sound } else { heir() }).collect()
}
