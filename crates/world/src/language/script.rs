//! Scripts: how sounds are written. No two scripts share a letter or a full stop.

use serde::{Deserialize, Serialize};

use super::phonology::{CONSONANTS, Syllable, VOWELS};

/// What a language is written in. Words are set apart by spaces in every script, so that no text
/// needs a segmenter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Script {
    /// Letters a to z.
    Latin,
    /// Cyrillic letters.
    Cyrillic,
    /// Greek letters.
    Greek,
    /// Armenian letters.
    Armenian,
    /// Georgian letters, which have no capitals.
    Georgian,
    /// Korean blocks, one a syllable.
    Hangul,
    /// Chinese characters, one a syllable.
    Han,
}

/// The consonants and vowels of an alphabet, in the order of the sounds they stand for.
struct Alphabet([char; CONSONANTS], [char; VOWELS]);

const LATIN: Alphabet = Alphabet(
    ['p', 't', 'k', 'b', 'd', 'g', 'm', 'n', 'l', 'r', 's', 'z', 'f', 'v', 'j', 'w'],
    ['a', 'e', 'i', 'o', 'u'],
);
const CYRILLIC: Alphabet = Alphabet(
    ['п', 'т', 'к', 'б', 'д', 'г', 'м', 'н', 'л', 'р', 'с', 'з', 'ф', 'в', 'ж', 'ш'],
    ['а', 'е', 'и', 'о', 'у'],
);
const GREEK: Alphabet = Alphabet(
    ['π', 'τ', 'κ', 'β', 'δ', 'γ', 'μ', 'ν', 'λ', 'ρ', 'ψ', 'ζ', 'φ', 'χ', 'ξ', 'θ'],
    ['α', 'ε', 'ι', 'ο', 'υ'],
);
const ARMENIAN: Alphabet = Alphabet(
    ['պ', 'տ', 'կ', 'բ', 'դ', 'գ', 'մ', 'ն', 'լ', 'ր', 'ս', 'զ', 'ֆ', 'վ', 'ջ', 'շ'],
    ['ա', 'է', 'ի', 'օ', 'ը'],
);
const GEORGIAN: Alphabet = Alphabet(
    ['პ', 'ტ', 'კ', 'ბ', 'დ', 'გ', 'მ', 'ნ', 'ლ', 'რ', 'ს', 'ზ', 'ფ', 'ვ', 'ჯ', 'შ'],
    ['ა', 'ე', 'ი', 'ო', 'უ'],
);

/// Indices into Unicode's arithmetic of Korean blocks.
const HANGUL_ONSETS: [u32; CONSONANTS] = [17, 16, 15, 7, 3, 0, 6, 2, 5, 11, 9, 12, 14, 10, 13, 18];
const HANGUL_VOWELS: [u32; VOWELS] = [0, 5, 20, 8, 13];
const HANGUL_CODAS: [u32; CONSONANTS] = [26, 25, 24, 17, 7, 1, 16, 4, 8, 21, 19, 22, 23, 20, 2, 27];

terms::named!(Script {
    Latin => "latin",
    Cyrillic => "cyrillic",
    Greek => "greek",
    Armenian => "armenian",
    Georgian => "georgian",
    Hangul => "hangul",
    Han => "han",
});

impl Script {
    /// The mark at the end of a sentence.
    pub(crate) fn stop(self) -> char {
        ['.', '⁘', '·', '։', '჻', '．', '。'][self as usize]
    }

    /// Whether names can begin with a capital.
    pub(crate) fn has_capitals(self) -> bool {
        matches!(self, Script::Latin | Script::Cyrillic | Script::Greek | Script::Armenian)
    }

    pub(crate) fn spell(self, word: &[Syllable]) -> String {
        let mut text = String::new();
        for syllable in word {
            match self {
                Script::Latin => LATIN.spell(syllable, &mut text),
                Script::Cyrillic => CYRILLIC.spell(syllable, &mut text),
                Script::Greek => GREEK.spell(syllable, &mut text),
                Script::Armenian => ARMENIAN.spell(syllable, &mut text),
                Script::Georgian => GEORGIAN.spell(syllable, &mut text),
                Script::Hangul => text.push(hangul(syllable)),
                Script::Han => text.push(han(syllable)),
            }
        }
        text
    }
}

impl Alphabet {
    fn spell(&self, syllable: &Syllable, text: &mut String) {
        let Alphabet(consonants, vowels) = self;
        text.push(consonants[syllable.onset]);
        text.push(vowels[syllable.vowel]);
        text.extend(syllable.coda.map(|coda| consonants[coda]));
    }
}

fn hangul(syllable: &Syllable) -> char {
    let (onset, vowel) = (HANGUL_ONSETS[syllable.onset], HANGUL_VOWELS[syllable.vowel]);
    let coda = syllable.coda.map_or(0, |coda| HANGUL_CODAS[coda]);
    char::from_u32(0xAC00 + (onset * 21 + vowel) * 28 + coda).expect("a Korean block")
}

/// Any fixed map from syllables to characters will do; the stride spreads them over the range.
fn han(syllable: &Syllable) -> char {
    let coda = syllable.coda.map_or(0, |coda| coda + 1);
    let index = (syllable.onset * VOWELS + syllable.vowel) * (CONSONANTS + 1) + coda;
    char::from_u32(0x4E00 + 11 * index as u32).expect("a Chinese character")
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    #[test]
    fn every_syllable_is_written_apart_and_no_character_is_shared() {
        let mut owner: HashMap<char, Script> = HashMap::new();
        for script in Script::ALL {
            let mut written = HashSet::new();
            for onset in 0..CONSONANTS {
                for vowel in 0..VOWELS {
                    for coda in std::iter::once(None).chain((0..CONSONANTS).map(Some)) {
                        let text = script.spell(&[Syllable { onset, vowel, coda }]);
                        assert_eq!(text.to_lowercase(), text);
                        assert!(text.chars().all(char::is_alphabetic), "{text}");
                        for c in text.chars().chain([script.stop()]) {
                            assert_eq!(*owner.entry(c).or_insert(script), script, "{c}");
                        }
                        assert!(written.insert(text));
                    }
                }
            }
        }
    }
}
