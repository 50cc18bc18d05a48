//! Sounds: which a language has, how it builds words from them, and how it changes borrowed ones.

use rand::RngExt;
use rand::rngs::ChaCha8Rng;

use crate::random::{any, happens, shuffle};

/// Consonants that exist.
pub(crate) const CONSONANTS: usize = 16;
/// Vowels that exist.
pub(crate) const VOWELS: usize = 5;
/// Consonants one language uses.
const OWN_CONSONANTS: usize = 9;
/// Vowels one language uses.
const OWN_VOWELS: usize = 4;

/// A consonant, a vowel, perhaps a consonant; by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Syllable {
    pub(crate) onset: usize,
    pub(crate) vowel: usize,
    pub(crate) coda: Option<usize>,
}

/// The sounds of one language.
#[derive(Clone, Debug)]
pub(crate) struct Sounds {
    consonants: Vec<usize>,
    vowels: Vec<usize>,
    /// What becomes of any consonant or vowel here: its own stay, others are replaced for good.
    consonant_shift: Vec<usize>,
    vowel_shift: Vec<usize>,
}

impl Sounds {
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
                onset: *any(rng, &self.consonants),
                vowel: *any(rng, &self.vowels),
                coda: None,
            })
            .collect();
        if happens(rng, 0.4) {
            word[syllables - 1].coda = Some(*any(rng, &self.consonants));
        }
        word
    }

    /// A word of another language as it sounds here.
    pub(crate) fn adapt(&self, word: &[Syllable]) -> Vec<Syllable> {
        word.iter()
            .map(|syllable| Syllable {
                onset: self.consonant_shift[syllable.onset],
                vowel: self.vowel_shift[syllable.vowel],
                coda: syllable.coda.map(|coda| self.consonant_shift[coda]),
            })
            .collect()
    }

    /// The same word with another last vowel, for a borrowed word that came out as one that exists.
    pub(crate) fn bent(&self, word: &[Syllable], step: usize) -> Vec<Syllable> {
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
