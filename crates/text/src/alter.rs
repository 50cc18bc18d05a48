//! A second "language" made of real text: the same sentences in a script of their own, with their words in another
//! order or with invented endings. What two such languages have in common is known exactly, and every sentence has its
//! translation.
//!
//! - A **shifted script** leaves no character, and so no subword, in common (K et al. 2020; Dufter & Schütze 2020 shift the
//!   ids of subwords instead, which here follows from a vocabulary for each language; Deshpande et al. 2022 call it
//!   transliteration).
//! - The **order** of words is inverted (Dufter & Schütze 2020), or a share of each sentence's words is permuted at random
//!   (K et al. 2020; Deshpande et al. 2022).
//! - **Endings** are a random morphology: a word carries one of a number of invented endings, which the word before it
//!   decides. (Deshpande et al. 2022 change syntax by a parser instead; no parser is needed here.)
//!
//! Everything follows from the seed, so that text, test sentences and labelled files that were altered alike are of one
//! language.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::corpus::{Corpus, ReadObserver, SentenceBlock};
use crate::random::RandomStreams;
use crate::{Error, Result};

/// Code points below this have a letter of their own in the shifted script, the others have two.
const DIRECT: u32 = 1 << 12;
/// The shifted script is made of Tangut letters: they are letters to every tokenizer, have neither case nor marks, and no
/// normalisation changes them.
const FIRST_LETTER: u32 = 0x17000;
/// So many letters introduce a code point from [`DIRECT`] on: one for each 4096 code points of Unicode.
const LEADS: u32 = 0x11_0000 / DIRECT;
/// The letters of invented endings.
const CONSONANTS: &[u8] = b"bdfghjklmnprstvwxyzc";
const VOWELS: &[u8] = b"aeiou";

/// The most endings that there can be.
pub const MOST_ENDINGS: u32 = (CONSONANTS.len() * VOWELS.len()) as u32;

/// What is done to a language.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alteration {
    /// Whether its characters are those of another script.
    pub shifted_script: bool,
    /// The order of its words.
    pub order: AlteredOrder,
    /// How many invented endings its words have; 0 for none.
    pub endings: u32,
    /// Decides the script, the permutations and the endings.
    pub seed: u64,
}

/// The order of the words of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AlteredOrder {
    /// As it was.
    Same,
    /// From the last to the first.
    Inverted,
    /// Each word is chosen with this probability, and the chosen ones change places at random: 0 changes nothing, with 1
    /// every order is as likely as any other.
    Permuted(f64),
}

/// Alters words and sentences.
#[derive(Clone, Debug)]
pub struct LanguageAlterer {
    order: AlteredOrder,
    /// The letters of the script: [`DIRECT`] for code points, then [`LEADS`].
    script: Option<Vec<char>>,
    endings: Vec<[char; 2]>,
    permutations: RandomStreams,
    agreement: RandomStreams,
}

impl LanguageAlterer {
    /// Refuses what would change nothing, and numbers that make no sense.
    pub fn new(alteration: &Alteration) -> Result<Self> {
        let &Alteration { shifted_script, order, endings, seed } = alteration;
        if !shifted_script && order == AlteredOrder::Same && endings == 0 {
            let remedy = "shift the script, change the order of words, or give them endings";
            return Err(Error::request("nothing would be altered", remedy));
        }
        if let AlteredOrder::Permuted(strength) = order
            && !(0.0..=1.0).contains(&strength)
        {
            let reason = format!("{strength} is no share of the words to permute");
            return Err(Error::setting("strength", reason, "give a number from 0 to 1"));
        }
        if endings == 1 || endings > MOST_ENDINGS {
            let remedy = format!("give 0 for none, or from 2 to {MOST_ENDINGS}");
            return Err(Error::setting("endings", format!("{endings} endings"), remedy));
        }
        let letter = |at: u32| char::from_u32(FIRST_LETTER + at).expect("a Tangut letter");
        let script = shifted_script.then(|| {
            let mut letters: Vec<char> = (0..DIRECT + LEADS).map(letter).collect();
            RandomStreams::new(seed, "shifted script").stream(0).shuffle(&mut letters);
            letters
        });
        let mut syllables: Vec<[char; 2]> = CONSONANTS
            .iter()
            .flat_map(|&first| VOWELS.iter().map(move |&second| [first.into(), second.into()]))
            .collect();
        RandomStreams::new(seed, "invented endings").stream(0).shuffle(&mut syllables);
        syllables.truncate(endings as usize);
        Ok(Self {
            order,
            script,
            endings: syllables,
            permutations: RandomStreams::new(seed, "permuted words"),
            agreement: RandomStreams::new(seed, "agreement of endings"),
        })
    }

    /// The order of its words.
    pub fn order(&self) -> AlteredOrder {
        self.order
    }

    /// Appends a word as the altered language writes it. `before` is the word before it in the text as it was; none at
    /// the beginning of a sentence.
    pub fn push_word(&self, word: &str, before: Option<&str>, out: &mut String) {
        word.chars().for_each(|c| self.push_char(c, out));
        if let Some(ending) = self.ending(word, before) {
            ending.iter().for_each(|&c| self.push_char(c, out));
        }
    }

    /// The ending that the word before decides; punctuation and numbers have none.
    fn ending(&self, word: &str, before: Option<&str>) -> Option<&[char; 2]> {
        if self.endings.is_empty() || !word.ends_with(char::is_alphabetic) {
            return None;
        }
        let digest = blake3::hash(before.unwrap_or("").as_bytes());
        let item = u64::from_le_bytes(digest.as_bytes()[..8].try_into().expect("eight bytes"));
        let drawn = self.agreement.rank(item) % self.endings.len() as u64;
        Some(&self.endings[drawn as usize])
    }

    /// One letter for a frequent character, two for any other, of which the first is no letter of a frequent one: what is
    /// written can be read in one way only.
    fn push_char(&self, c: char, out: &mut String) {
        let Some(letters) = &self.script else { return out.push(c) };
        let point = u32::from(c);
        if point >= DIRECT {
            out.push(letters[(DIRECT + point / DIRECT) as usize]);
        }
        out.push(letters[(point % DIRECT) as usize]);
    }

    /// The places of the words of a sentence in the text as it was, in their new order. `number` is the sentence's.
    pub fn places(&self, words: usize, number: u64) -> Vec<usize> {
        let mut places: Vec<usize> = (0..words).collect();
        match self.order {
            AlteredOrder::Same => {}
            AlteredOrder::Inverted => places.reverse(),
            AlteredOrder::Permuted(strength) => {
                let mut random = self.permutations.stream(number);
                let chosen: Vec<usize> = (0..words).filter(|_| random.unit() < strength).collect();
                let mut moved = chosen.clone();
                random.shuffle(&mut moved);
                chosen.iter().zip(moved).for_each(|(&to, from)| places[to] = from);
            }
        }
        places
    }

    /// A sentence of words with spaces between, altered.
    pub fn sentence(&self, sentence: &str, number: u64) -> String {
        let words: Vec<&str> = sentence.split_whitespace().collect();
        let mut altered = String::with_capacity(4 * sentence.len());
        for (at, place) in self.places(words.len(), number).into_iter().enumerate() {
            if at > 0 {
                altered.push(' ');
            }
            self.push_word(words[place], place.checked_sub(1).map(|at| words[at]), &mut altered);
        }
        altered
    }
}

/// Where altered text goes.
#[derive(Clone, Debug)]
pub struct AlteredFiles {
    /// The altered sentences, one a line.
    pub out: PathBuf,
    /// The same sentences as they were, line by line.
    pub original: Option<PathBuf>,
    /// The words of both languages: altered word, space, word as it was; the most frequent first.
    pub dictionary: Option<PathBuf>,
    /// The most words of the dictionary.
    pub max_vocab: usize,
}

/// What was altered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AlterationResult {
    /// The altered file.
    pub out: PathBuf,
    /// The sentences as they were, line by line, where they were written.
    pub original: Option<PathBuf>,
    /// The dictionary, where one was written.
    pub dictionary: Option<PathBuf>,
    /// The language that was altered.
    pub language: String,
    /// Sentences.
    pub sentences: u64,
    /// Words.
    pub words: u64,
    /// Entries of the dictionary.
    pub entries: usize,
    /// What was done.
    pub alteration: Alteration,
}

impl AlteredFiles {
    /// Alters the sentences of a corpus, in its order.
    ///
    /// # Errors
    /// Where text cannot be read, or a file cannot be written; none appears then.
    pub fn write(
        &self,
        corpus: &Corpus,
        alteration: &Alteration,
        watch: ReadObserver<'_>,
    ) -> Result<AlterationResult> {
        let alterer = LanguageAlterer::new(alteration)?;
        let optional = [&self.original, &self.dictionary];
        let outputs = std::iter::once(&self.out).chain(optional.into_iter().flatten());
        let _together = files::lock_outputs(outputs.map(PathBuf::as_path));
        let counts = self.dictionary.is_some().then(FxHashMap::default);
        let mut pass = AlterationPass { alterer: &alterer, counts, sentences: 0, words: 0 };
        let mut failed = None;
        let mut read = |altered: &mut dyn Write, plain: Option<&mut dyn Write>| {
            pass.run(corpus, altered, plain, watch).map_err(|error| {
                failed = Some(error);
                io::Error::other("the text could not be altered")
            })
        };
        let written = match &self.original {
            None => files::write_with(&self.out, |altered| read(altered, None)),
            Some(path) => files::write_with(path, |plain| {
                files::write_with(&self.out, |altered| read(altered, Some(plain)))
                    .map_err(io::Error::other)
            }),
        };
        if let Some(error) = failed {
            return Err(error);
        }
        written?;
        let entries = match (&self.dictionary, &pass.counts) {
            (Some(path), Some(counts)) => write_dictionary(path, counts, self.max_vocab)?,
            _ => 0,
        };
        Ok(AlterationResult {
            out: self.out.clone(),
            original: self.original.clone(),
            dictionary: self.dictionary.clone(),
            language: corpus.source.language().to_owned(),
            sentences: pass.sentences,
            words: pass.words,
            entries,
            alteration: alteration.clone(),
        })
    }
}

/// How often each pair of a word and its altered form occurs.
type FormCounts = FxHashMap<(String, String), u64>;

struct AlterationPass<'a> {
    alterer: &'a LanguageAlterer,
    counts: Option<FormCounts>,
    sentences: u64,
    words: u64,
}

impl AlterationPass<'_> {
    fn run(
        &mut self,
        corpus: &Corpus,
        altered: &mut dyn Write,
        mut plain: Option<&mut dyn Write>,
        watch: ReadObserver<'_>,
    ) -> Result<()> {
        let write = |to: &mut dyn Write, line: &str| {
            to.write_all(line.as_bytes()).and_then(|()| to.write_all(b"\n"))
        };
        corpus.read(watch, &mut |blocks| {
            let sentences: Vec<&str> = blocks
                .iter()
                .flat_map(SentenceBlock::sentences)
                .map(|(_, sentence)| sentence)
                .collect();
            let numbered = (self.sentences..).zip(&sentences).collect::<Vec<_>>();
            let lines: Vec<String> = numbered
                .par_iter()
                .map(|(number, sentence)| self.alterer.sentence(sentence, *number))
                .collect();
            for (sentence, line) in sentences.iter().zip(&lines) {
                write(altered, line).map_err(unwritten)?;
                if let Some(plain) = &mut plain {
                    write(*plain, sentence).map_err(unwritten)?;
                }
                self.sentences += 1;
                self.words += sentence.split_whitespace().count() as u64;
            }
            self.count(&sentences);
            Ok(())
        })?;
        Ok(())
    }

    fn count(&mut self, sentences: &[&str]) {
        let Some(counts) = &mut self.counts else { return };
        for sentence in sentences {
            let mut before = None;
            for word in sentence.split_whitespace() {
                if word.chars().any(char::is_alphabetic) {
                    let mut form = String::new();
                    self.alterer.push_word(word, before, &mut form);
                    *counts.entry((word.to_owned(), form)).or_default() += 1;
                }
                before = Some(word);
            }
        }
    }
}

fn unwritten(source: io::Error) -> Error {
    files::Error::Io { doing: "write", path: PathBuf::from("the altered text"), source }.into()
}

/// Writes the most frequent words with their altered forms.
fn write_dictionary(path: &Path, counts: &FormCounts, most: usize) -> Result<usize> {
    let mut entries: Vec<_> = counts.iter().collect();
    entries.sort_by(|(a, of_a), (b, of_b)| of_b.cmp(of_a).then_with(|| a.cmp(b)));
    entries.truncate(most);
    files::write_with(path, |writer| {
        entries.iter().try_for_each(|((word, form), _)| writeln!(writer, "{form} {word}"))
    })?;
    Ok(entries.len())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;
    use crate::{LineRules, Preparation, Preparer, Selection, TextSource};

    fn shifted(seed: u64) -> Alteration {
        Alteration { shifted_script: true, order: AlteredOrder::Same, endings: 0, seed }
    }

    fn ordered(order: AlteredOrder) -> LanguageAlterer {
        let alteration = Alteration { shifted_script: false, order, ..shifted(1) };
        LanguageAlterer::new(&alteration).unwrap()
    }

    /// What was written in a shifted script.
    fn unshifted(alterer: &LanguageAlterer, text: &str) -> String {
        let letters = alterer.script.as_ref().unwrap();
        let place = |c: char| letters.iter().position(|&letter| letter == c).unwrap() as u32;
        let mut chars = text.chars();
        let mut read = String::new();
        while let Some(c) = chars.next() {
            let point = match place(c) {
                lead if lead >= DIRECT => (lead - DIRECT) * DIRECT + place(chars.next().unwrap()),
                direct => direct,
            };
            read.push(char::from_u32(point).unwrap());
        }
        read
    }

    proptest! {
        #[test]
        fn a_shifted_script_is_a_bijection_without_a_common_character(word in "[^\\s\u{17000}-\u{187f7}]{1,12}") {
            let alterer = LanguageAlterer::new(&shifted(7)).unwrap();
            let mut altered = String::new();
            alterer.push_word(&word, None, &mut altered);
            prop_assert_eq!(unshifted(&alterer, &altered), word.clone());
            let own: HashSet<char> = word.chars().collect();
            prop_assert!(altered.chars().all(|c| !own.contains(&c) && c.is_alphabetic()));
        }
    }

    #[test]
    fn seeds_have_scripts_of_their_own() {
        let word = |seed| LanguageAlterer::new(&shifted(seed)).unwrap().sentence("a cat", 0);
        assert_eq!(word(1), word(1));
        assert_ne!(word(1), word(2));
        assert_eq!(word(1).split(' ').map(|word| word.chars().count()).collect::<Vec<_>>(), [1, 3]);
    }

    #[test]
    fn inverted_twice_is_the_text_as_it_was() {
        let alterer = ordered(AlteredOrder::Inverted);
        assert_eq!(alterer.sentence("the cat sat", 0), "sat cat the");
        assert_eq!(alterer.sentence("sat cat the", 5), "the cat sat");
    }

    #[test]
    fn the_strength_of_a_permutation_goes_from_nothing_to_any_order() {
        let none = ordered(AlteredOrder::Permuted(0.0));
        assert!((0..50).all(|number| none.sentence("a b c d e", number) == "a b c d e"));
        // Every order of three words is as likely as any other: five standard deviations of a binomial with p = 1/6.
        let all = ordered(AlteredOrder::Permuted(1.0));
        let mut seen: FxHashMap<Vec<usize>, u32> = FxHashMap::default();
        for number in 0..12_000 {
            *seen.entry(all.places(3, number)).or_default() += 1;
        }
        assert_eq!(seen.len(), 6);
        assert!(seen.values().all(|count| count.abs_diff(2000) < 205), "{seen:?}");
        // A half moves fewer words than all, and more than none.
        let moved = |alterer: &LanguageAlterer| -> usize {
            let of = |number| alterer.places(10, number).into_iter().enumerate();
            (0..500).map(|number| of(number).filter(|(at, place)| at != place).count()).sum()
        };
        let half = moved(&ordered(AlteredOrder::Permuted(0.5)));
        assert!((1500..2500).contains(&half) && moved(&all) > 4000, "{half} {}", moved(&all));
    }

    #[test]
    fn endings_follow_the_word_before() {
        let alteration = Alteration { shifted_script: false, endings: 12, ..shifted(3) };
        let alterer = LanguageAlterer::new(&alteration).unwrap();
        let sentence = |text: &str| -> Vec<String> {
            alterer.sentence(text, 0).split(' ').map(str::to_owned).collect()
        };
        let [a, b] = ["red house .", "red car ."].map(sentence);
        let ending = |word: &str| word[word.len() - 2..].to_owned();
        assert_eq!(ending(&a[1]), ending(&b[1]), "both stand after `red`");
        assert_eq!((a[2].as_str(), a[1].len()), (".", 7), "punctuation has no ending");
        let after: HashSet<String> =
            (0..200).map(|n| ending(&sentence(&format!("w{n} house"))[1])).collect();
        assert_eq!(after.len(), 12);
    }

    #[test]
    fn nonsense_is_refused() {
        let refused = |alteration: Alteration| LanguageAlterer::new(&alteration).unwrap_err();
        let same = Alteration { shifted_script: false, ..shifted(1) };
        assert!(refused(same.clone()).to_string().contains("nothing would be altered"));
        for strength in [1.1, -0.1, f64::NAN] {
            let order = AlteredOrder::Permuted(strength);
            let error = refused(Alteration { order, ..same.clone() }).to_string();
            assert!(error.contains("from 0 to 1"), "{error}");
        }
        assert!(refused(Alteration { endings: 101, ..same }).to_string().contains("2 to 100"));
    }

    #[test]
    fn files_are_parallel_line_by_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("en.txt"), "The cat sat. It slept!\n\nA cat.\n").unwrap();
        let corpus = Corpus {
            source: TextSource::new("en", &[path("en.txt").display().to_string()]).unwrap(),
            preparer: Preparer::new("en", Preparation::for_language("en"), None).unwrap(),
            rules: LineRules::default(),
            selection: Selection::default(),
        };
        let files = AlteredFiles {
            out: path("xx.txt"),
            original: Some(path("plain.txt")),
            dictionary: Some(path("xx-en.txt")),
            max_vocab: 2,
        };
        let order = AlteredOrder::Inverted;
        let alteration = Alteration { order, ..shifted(1) };
        let result = files.write(&corpus, &alteration, &mut |_| {}).unwrap();
        assert_eq!((result.sentences, result.words, result.entries), (3, 10, 2));
        let lines = |name: &str| -> Vec<String> {
            std::fs::read_to_string(path(name)).unwrap().lines().map(str::to_owned).collect()
        };
        assert_eq!(lines("plain.txt"), ["The cat sat .", "It slept !", "A cat ."]);
        let alterer = LanguageAlterer::new(&alteration).unwrap();
        let back: Vec<String> = lines("xx.txt")
            .iter()
            .map(|line| {
                let words = line.split(' ').rev().map(|word| unshifted(&alterer, word));
                words.collect::<Vec<_>>().join(" ")
            })
            .collect();
        assert_eq!(back, lines("plain.txt"));
        let [first, second] = &lines("xx-en.txt")[..] else { panic!() };
        assert!(first.ends_with(" cat") && second.ends_with(" A"), "{first} {second}");
        // Where the text cannot be read, no file appears.
        let order = AlteredOrder::Permuted(2.0);
        let other = AlteredFiles { out: path("no.txt"), ..files };
        assert!(other.write(&corpus, &Alteration { order, ..shifted(1) }, &mut |_| {}).is_err());
        assert!(!path("no.txt").exists());
    }
}
