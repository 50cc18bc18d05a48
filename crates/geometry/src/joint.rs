//! Many languages in one space: an orthogonal map for each of N languages, from dictionaries of some pairs of them.
//!
//! Beside mapping every language onto a hub, one dictionary at a time (through other languages where there is none with
//! the hub), all maps are learned together: generalised Procrustes (Gower 1975; for word vectors Kementchedjhieva et al.
//! 2018) minimises the squared distances of all dictionary pairs in the common space, language by language, each given
//! the others. The hub's map is the identity, which fixes the common rotation.
//!
//! Pairs are evaluated on words that their maps were not learned from, and every translation that any of the dictionaries
//! knows is right. Both matter where directions share files: MUSE's dictionaries of the two directions are different samples,
//! so that a third of the words of one's test part stand in the other's training part, and the reverse of a test dictionary
//! lacks most translations of its frequent words.

use std::collections::VecDeque;
use std::path::PathBuf;

use arrays::Matrix;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use tensor::Device;
use text::{Dictionary, LineRules};

use crate::align::{AlignObserver, SpaceOptions, WordSpace, check_dims, read_remarked, read_space};
use crate::lexicon::Lexicon;
use crate::map::{CrossProduct, Map};
use crate::normalize::{Step, describe};
use crate::search::{Measure, Scores, unwatched};
use crate::{Error, Result};

/// The most rounds of generalised Procrustes, and the relative decrease of the loss below which it has converged.
const MOST_ROUNDS: usize = 100;
const CONVERGED: f64 = 1e-6;

/// A dictionary between two of the languages, as pairs of their rows.
#[derive(Clone, Debug)]
pub struct LanguagePairs {
    /// The numbers of the two languages.
    pub languages: [usize; 2],
    /// Rows of the first and of the second.
    pub rows: Vec<(u32, u32)>,
}

/// Maps of all languages into one space.
#[derive(Clone, Debug)]
pub struct JointMaps {
    /// A map for each language, in their order; the hub's is the identity.
    pub maps: Vec<Map>,
    /// The mean squared distance of dictionary pairs in the common space after each round; of the hub's maps, one number.
    pub losses: Vec<f64>,
}

/// Maps every language onto the hub: by its dictionary with the hub or, where there is none, with the language nearest to
/// the hub that it has one with.
///
/// # Errors
/// Where no chain of dictionaries joins a language to the hub; `name` says what it is called.
pub fn onto_hub(
    spaces: &[Matrix],
    dictionaries: &[LanguagePairs],
    hub: usize,
    name: &dyn Fn(usize) -> String,
) -> Result<JointMaps> {
    let mut maps: Vec<Option<Map>> = vec![None; spaces.len()];
    maps[hub] = Some(Map::identity(spaces[hub].cols()));
    let mut queue = VecDeque::from([hub]);
    while let Some(near) = queue.pop_front() {
        let unreached: Vec<usize> = (0..spaces.len()).filter(|&far| maps[far].is_none()).collect();
        for far in unreached {
            let mut cross = CrossProduct::new(spaces[far].cols());
            for (rows, first) in between(dictionaries, far, near) {
                cross.add(&spaces[far], &spaces[near], rows, first);
            }
            if cross.pairs() == 0 {
                continue;
            }
            let via = maps[near].as_ref().expect("it was reached");
            maps[far] = Some(via.after(&cross.nearest_rotation()));
            queue.push_back(far);
        }
    }
    let maps = maps.into_iter().enumerate().map(|(language, map)| {
        map.ok_or_else(|| {
            let (language, hub) = (name(language), name(hub));
            let reason = format!("no dictionary, and no chain of them, joins {language} to {hub}");
            Error::setting("dictionary", reason, "give one more")
        })
    });
    let maps = maps.collect::<Result<Vec<_>>>()?;
    let losses = vec![loss(spaces, &maps, dictionaries)];
    Ok(JointMaps { maps, losses })
}

/// Learns all maps together, from those onto the hub; `progress` is called with the loss after each round.
///
/// # Errors
/// As [`onto_hub`].
pub fn generalized_procrustes(
    spaces: &[Matrix],
    dictionaries: &[LanguagePairs],
    hub: usize,
    name: &dyn Fn(usize) -> String,
    mut progress: impl FnMut(usize, f64),
) -> Result<JointMaps> {
    let JointMaps { mut maps, mut losses } = onto_hub(spaces, dictionaries, hub, name)?;
    // Σ y xᵀ of each pair of languages is all that any map depends on.
    let crosses: Vec<CrossProduct> = dictionaries
        .iter()
        .map(|LanguagePairs { languages: [a, b], rows }| {
            let mut cross = CrossProduct::new(spaces[*a].cols());
            cross.add(&spaces[*a], &spaces[*b], rows, true);
            cross
        })
        .collect();
    for round in 1..=MOST_ROUNDS {
        for language in (0..spaces.len()).filter(|&language| language != hub) {
            let mut sum = CrossProduct::new(spaces[language].cols());
            for (dictionary, cross) in dictionaries.iter().zip(&crosses) {
                let [a, b] = dictionary.languages;
                match () {
                    () if a == b => {}
                    () if a == language => sum.add_mapped(&maps[b], cross, false),
                    () if b == language => sum.add_mapped(&maps[a], cross, true),
                    () => {}
                }
            }
            maps[language] = sum.nearest_rotation();
        }
        let before = *losses.last().expect("one for the hub's maps");
        losses.push(loss(spaces, &maps, dictionaries));
        let after = *losses.last().expect("just pushed");
        progress(round, after);
        if before - after <= CONVERGED * before {
            break;
        }
    }
    Ok(JointMaps { maps, losses })
}

/// The dictionaries between two languages, and whether their first column is of the first of these.
fn between(
    dictionaries: &[LanguagePairs],
    a: usize,
    b: usize,
) -> impl Iterator<Item = (&[(u32, u32)], bool)> {
    dictionaries.iter().filter_map(move |dictionary| match dictionary.languages {
        pair if pair == [a, b] => Some((dictionary.rows.as_slice(), true)),
        pair if pair == [b, a] => Some((dictionary.rows.as_slice(), false)),
        _ => None,
    })
}

/// The mean squared distance of dictionary pairs in the common space.
fn loss(spaces: &[Matrix], maps: &[Map], dictionaries: &[LanguagePairs]) -> f64 {
    let mapped: Vec<Matrix> =
        spaces.iter().zip(maps).map(|(space, map)| map.apply(space)).collect();
    let (mut sum, mut pairs) = (0.0, 0);
    for LanguagePairs { languages: [a, b], rows } in dictionaries {
        for &(x, y) in rows {
            let (x, y) = (mapped[*a].row(x as usize), mapped[*b].row(y as usize));
            let square = |(x, y): (&f32, &f32)| (f64::from(*x) - f64::from(*y)).powi(2);
            sum += x.iter().zip(y).map(square).sum::<f64>();
            pairs += 1;
        }
    }
    sum / f64::from(pairs.max(1))
}

/// What a pair of languages got in one common space.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairAccuracy {
    /// The language whose words are looked up.
    pub source: String,
    /// The language they are looked up in.
    pub target: String,
    /// Whether a dictionary of this pair, in either direction, was learned from.
    pub trained: bool,
    /// Whether the words are translations in the test dictionary of the opposite direction, for want of one of this.
    pub reversed: bool,
    /// Whether translations are composed of two through the hub, for want of a test dictionary of this pair.
    pub pivoted: bool,
    /// Words that were looked up: those of the test dictionary that have a pair and were not learned from.
    pub queries: usize,
    /// Words that were left out, as the maps of this pair were learned from them.
    pub seen: usize,
    /// P@1 with every language mapped onto the hub.
    pub p_at_1_hub: f64,
    /// P@1 with all maps learned together.
    pub p_at_1_joint: f64,
    /// P@1 of the vectors as they are, without a map.
    pub p_at_1_unmapped: f64,
}

/// What came of mapping many languages into one space.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AlignManyResult {
    /// The languages, in the order given.
    pub languages: Vec<String>,
    /// The language whose space is the common one.
    pub hub: String,
    /// Words of each language.
    pub words: Vec<usize>,
    /// Pairs of each dictionary that were learned from.
    pub train_pairs: Vec<usize>,
    /// Pairs that each of them lists, with vectors or without.
    #[serde(default)]
    pub train_listed: Vec<usize>,
    /// Dimension of the space.
    pub dim: usize,
    /// The mean squared distance of dictionary pairs with every language mapped onto the hub.
    pub loss_hub: f64,
    /// The same after each round of generalised Procrustes.
    pub losses: Vec<f64>,
    /// Every pair that has a test dictionary with words that were not learned from.
    pub pairs: Vec<PairAccuracy>,
    /// The ordered pairs of whose test dictionary no word is left.
    pub untested: Vec<[String; 2]>,
    /// The mean P@1 over pairs: onto the hub, together, without maps; none without a test dictionary.
    pub mean: Option<[f64; 3]>,
    /// Names every convention that a number depends on.
    pub signature: String,
}

/// How many languages are mapped into one space and evaluated.
#[derive(Clone, Debug)]
pub struct AlignManyConfig {
    /// The languages and their vectors.
    pub vectors: Vec<(String, PathBuf)>,
    /// Dictionaries to learn from, each of two of the languages.
    pub dictionaries: Vec<([String; 2], PathBuf)>,
    /// Dictionaries to look up.
    pub test_dictionaries: Vec<([String; 2], PathBuf)>,
    /// The language whose space is the common one; the first where none is named.
    pub hub: Option<String>,
    /// What is done to all sides first.
    pub normalize: Vec<Step>,
    /// Neighbours of CSLS, by which translations are looked up.
    pub neighbours: usize,
    /// The most frequent words of each language that are read.
    pub max_vocab: usize,
    /// Leave vectors of zeros out, rather than refuse them.
    pub skip_zero_vectors: bool,
}

/// Many languages in one space: scores, and what can be saved.
pub struct ManyAlignment {
    /// The scores.
    pub result: AlignManyResult,
    /// The words of each language.
    pub spaces: Vec<WordSpace>,
    /// The maps learned together.
    pub maps: Vec<Map>,
}

type Entries = Vec<(String, String)>;

impl AlignManyConfig {
    fn number(&self, language: &str, key: &'static str) -> Result<usize> {
        let found = self.vectors.iter().position(|(known, _)| known == language);
        found.ok_or_else(|| {
            let known: Vec<&str> = self.vectors.iter().map(|(name, _)| name.as_str()).collect();
            let reason = format!(
                "there are no vectors of `{language}`; there are those of {}",
                known.join(", ")
            );
            Error::of_key(key, reason)
        })
    }

    fn pair(&self, languages: &[String; 2], key: &'static str) -> Result<[usize; 2]> {
        let pair = [self.number(&languages[0], key)?, self.number(&languages[1], key)?];
        match pair[0] == pair[1] {
            true => {
                Err(Error::of_key(key, format!("`{}` twice; give two languages", languages[0])))
            }
            false => Ok(pair),
        }
    }

    fn signature(&self, k: usize) -> String {
        format!(
            "generalised-procrustes|norm:{}|retrieval:csls,k={k}|queries:unique-source,not-trained|gold:any-known|oov:dropped|vocab:{}|ties:lower-row|v{}",
            describe(&self.normalize),
            self.max_vocab,
            env!("CARGO_PKG_VERSION"),
        )
    }
}

/// Reads the vectors of many languages, learns their maps into one space, onto the hub and together, and looks up every
/// pair in both directions: words that the maps of the pair were not learned from, any known translation of which is right.
/// A pair without a test dictionary is looked up by way of the hub.
///
/// # Errors
/// Where a file is at fault, a dictionary names a language without vectors, or no dictionaries join a language to the hub.
pub fn align_many(
    config: &AlignManyConfig,
    device: &Device,
    observer: &dyn AlignObserver,
) -> Result<ManyAlignment> {
    if config.vectors.len() < 2 {
        return Err(Error::of_key("vectors", "give the vectors of two languages or more"));
    }
    let hub = config.hub.as_ref().map_or(Ok(0), |hub| config.number(hub, "hub"))?;
    let options = SpaceOptions {
        max_vocab: config.max_vocab,
        skip_zero_vectors: config.skip_zero_vectors,
        normalize: &config.normalize,
    };
    let mut spaces = Vec::new();
    for (_, path) in &config.vectors {
        let space = read_space(path, None, &options, observer)?;
        let first = spaces.first().map_or(space.matrix.cols(), |one: &WordSpace| one.matrix.cols());
        check_dims((&config.vectors[0].1, first), (path, space.matrix.cols()))?;
        spaces.push(space);
    }
    let (mut dictionaries, mut train_listed) = (Vec::new(), Vec::new());
    for (languages, path) in &config.dictionaries {
        let [a, b] = config.pair(languages, "dictionary")?;
        let words = [&spaces[a].words, &spaces[b].words];
        let Lexicon { pairs: rows, listed, .. } = read_remarked(path, false, words, observer)?;
        train_listed.push(listed);
        dictionaries.push(LanguagePairs { languages: [a, b], rows });
    }
    let tests = KnownTranslations::read(config)?.tests(config.vectors.len(), hub);
    let matrices: Vec<Matrix> = spaces.iter().map(|space| space.matrix.clone()).collect();
    let name = |language: usize| format!("`{}`", config.vectors[language].0);
    observer.stage("mapping onto the hub");
    let separate = onto_hub(&matrices, &dictionaries, hub, &name)?;
    observer.stage("generalised Procrustes");
    let joint = generalized_procrustes(&matrices, &dictionaries, hub, &name, |_, _| {})?;
    let k = spaces.iter().map(|space| space.words.len()).min().unwrap_or(1).min(config.neighbours);
    let mut result = AlignManyResult {
        languages: config.vectors.iter().map(|(name, _)| name.clone()).collect(),
        hub: config.vectors[hub].0.clone(),
        words: spaces.iter().map(|space| space.words.len()).collect(),
        train_pairs: dictionaries.iter().map(|dictionary| dictionary.rows.len()).collect(),
        train_listed,
        dim: matrices[hub].cols(),
        loss_hub: separate.losses[0],
        losses: joint.losses[1..].to_vec(),
        pairs: Vec::new(),
        untested: Vec::new(),
        mean: None,
        signature: config.signature(k),
    };
    let identity = vec![Map::identity(matrices[hub].cols()); spaces.len()];
    for TestPair { languages: [a, b], entries, reversed, pivoted } in &tests {
        let names = [a, b].map(|language| config.vectors[*language].0.clone());
        observer.stage(&format!("looking up {}", names.join("-")));
        let entries = entries.iter().map(|(a, b)| (a.as_str(), b.as_str()));
        let mut lexicon = Lexicon::new(entries, &spaces[*a].words, &spaces[*b].words);
        let seen = leave_out(&mut lexicon, &learned_from(&dictionaries, [*a, *b], hub));
        if lexicon.pairs.is_empty() {
            result.untested.push(names);
            continue;
        }
        let look_up = |maps: &[Map]| {
            let (x, y) = (maps[*a].apply(&matrices[*a]), maps[*b].apply(&matrices[*b]));
            let scores = Scores::new(x, y, Measure::Csls { k }, device, &unwatched);
            lexicon.among_all(&scores)[0]
        };
        let [onto_hub, together, unmapped] =
            [&separate.maps, &joint.maps, &identity].map(|maps| look_up(maps));
        let [source, target] = names;
        result.pairs.push(PairAccuracy {
            source,
            target,
            trained: between(&dictionaries, *a, *b).next().is_some(),
            reversed: *reversed,
            pivoted: *pivoted,
            queries: together.queries,
            seen,
            p_at_1_hub: onto_hub.p_at_1,
            p_at_1_joint: together.p_at_1,
            p_at_1_unmapped: unmapped.p_at_1,
        });
    }
    let mean = |of: fn(&PairAccuracy) -> f64| {
        result.pairs.iter().map(of).sum::<f64>() / result.pairs.len().max(1) as f64
    };
    let means = [mean(|p| p.p_at_1_hub), mean(|p| p.p_at_1_joint), mean(|p| p.p_at_1_unmapped)];
    result.mean = (!result.pairs.is_empty()).then_some(means);
    Ok(ManyAlignment { result, spaces, maps: joint.maps })
}

/// The rows of the first of two languages that the maps of both were learned from: its words in any dictionary or, as the
/// hub's map is given, the hub's words in its dictionaries with the second.
fn learned_from(
    dictionaries: &[LanguagePairs],
    [source, target]: [usize; 2],
    hub: usize,
) -> FxHashSet<u32> {
    let mut rows = FxHashSet::default();
    for LanguagePairs { languages: [a, b], rows: pairs } in dictionaries {
        let counts = |other: usize| source != hub || other == target;
        match () {
            () if *a == source && counts(*b) => rows.extend(pairs.iter().map(|(row, _)| *row)),
            () if *b == source && counts(*a) => rows.extend(pairs.iter().map(|(_, row)| *row)),
            () => {}
        }
    }
    rows
}

/// Leaves the queries of some rows out, and counts them.
fn leave_out(lexicon: &mut Lexicon, rows: &FxHashSet<u32>) -> usize {
    let before = lexicon.queries().len();
    lexicon.pairs.retain(|(source, _)| !rows.contains(source));
    before - lexicon.queries().len()
}

/// What is looked up of an ordered pair of languages: words with every known translation.
struct TestPair {
    languages: [usize; 2],
    entries: Entries,
    reversed: bool,
    pivoted: bool,
}

/// The entries of all dictionaries, by ordered pair of languages.
#[derive(Default)]
struct KnownTranslations {
    /// Of test dictionaries, as they are given.
    tests: FxHashMap<[usize; 2], Entries>,
    /// Of every dictionary, to learn from or to look up, in both directions.
    all: FxHashMap<[usize; 2], Entries>,
}

impl KnownTranslations {
    fn read(config: &AlignManyConfig) -> Result<Self> {
        let mut known = Self::default();
        let kinds = [
            (&config.dictionaries, "dictionary", false),
            (&config.test_dictionaries, "test_dictionary", true),
        ];
        for (files, key, is_test) in kinds {
            for (languages, path) in files {
                let pair = config.pair(languages, key)?;
                let read =
                    Dictionary::read(path, &languages[0], &languages[1], LineRules::default())?;
                let entries = read.entries.into_iter().map(|(word, of, _)| (word, of)).collect();
                known.add(pair, entries, is_test);
            }
        }
        Ok(known)
    }

    fn add(&mut self, [a, b]: [usize; 2], entries: Entries, is_test: bool) {
        let turned = entries.iter().map(|(word, translation)| (translation.clone(), word.clone()));
        self.all.entry([b, a]).or_default().extend(turned);
        self.all.entry([a, b]).or_default().extend_from_slice(&entries);
        if is_test {
            self.tests.entry([a, b]).or_default().extend(entries);
        }
    }

    /// What is looked up of every ordered pair of languages that has a test dictionary: its own, that of the opposite
    /// direction or, for want of both, the source's with the hub.
    fn tests(&self, languages: usize, hub: usize) -> Vec<TestPair> {
        let pairs = (0..languages).flat_map(|a| (0..languages).map(move |b| [a, b]));
        let direct = |[a, b]: [usize; 2]| {
            let (words, reversed) = self.words(a, b)?;
            let entries = translated(&words, &self.translations(a, b));
            Some(TestPair { languages: [a, b], entries, reversed, pivoted: false })
        };
        let through_hub = |[a, b]: [usize; 2]| {
            let (words, reversed) = self.words(a, hub).filter(|_| b != hub)?;
            let onwards = self.translations(hub, b);
            let entries = translated(&words, &self.translations(a, hub));
            let entries = entries.iter().flat_map(|(word, of)| {
                let others = onwards.get(of.as_str()).into_iter().flatten();
                others.map(|other| (word.clone(), (*other).to_owned()))
            });
            let (languages, entries) = ([a, b], entries.collect());
            Some(TestPair { languages, entries, reversed, pivoted: true })
        };
        let tests = pairs.filter(|[a, b]| a != b).filter_map(|pair| match direct(pair) {
            None if pair[0] != hub => through_hub(pair).filter(|test| !test.entries.is_empty()),
            found => found,
        });
        tests.collect()
    }

    /// The words of one language to look up in another, as often as they are listed, and whether they are those of the
    /// opposite direction.
    fn words(&self, a: usize, b: usize) -> Option<(Vec<&str>, bool)> {
        let own = self.tests.get(&[a, b]);
        let own = own.map(|own| (own.iter().map(|(word, _)| word.as_str()).collect(), false));
        own.or_else(|| {
            let turned = self.tests.get(&[b, a])?;
            Some((turned.iter().map(|(_, word)| word.as_str()).collect(), true))
        })
    }

    /// All translations of the words of one language into another.
    fn translations(&self, a: usize, b: usize) -> FxHashMap<&str, Vec<&str>> {
        let mut translations: FxHashMap<&str, Vec<&str>> = FxHashMap::default();
        for (word, translation) in self.all.get(&[a, b]).into_iter().flatten() {
            translations.entry(word).or_default().push(translation);
        }
        translations
    }
}

/// Words, each once, with all their translations.
fn translated(words: &[&str], translations: &FxHashMap<&str, Vec<&str>>) -> Entries {
    let mut before = FxHashSet::default();
    let words = words.iter().filter(|word| before.insert(**word));
    let entries = words.flat_map(|word| {
        let known = translations.get(word).into_iter().flatten();
        known.map(|translation| ((*word).to_owned(), (*translation).to_owned()))
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(pairs: &[(&str, &str)]) -> Entries {
        pairs.iter().map(|&(a, b)| (a.to_owned(), b.to_owned())).collect()
    }

    /// French and English as MUSE has them: `house` stands in the training dictionary of the other direction, and `car` has
    /// a translation that only the other direction lists.
    #[test]
    fn every_known_translation_is_right_in_its_own_direction() {
        let (fr, en, de) = (0, 1, 2);
        let mut known = KnownTranslations::default();
        known.add([fr, en], entries(&[("maison", "house"), ("route", "road")]), false);
        known.add([fr, en], entries(&[("voiture", "car"), ("auto", "car")]), true);
        known.add([en, fr], entries(&[("car", "voiture"), ("house", "maison")]), true);
        known.add([de, en], entries(&[("strasse", "road"), ("auto", "car")]), false);
        let tests = known.tests(3, en);
        let of = |pair: [usize; 2]| tests.iter().find(|test| test.languages == pair).unwrap();
        let own = of([en, fr]);
        assert!(!own.reversed && !own.pivoted);
        let all = [("car", "voiture"), ("car", "auto"), ("car", "voiture"), ("house", "maison")];
        let mut found = own.entries.clone();
        found.sort();
        let mut wanted = entries(&all);
        wanted.push(("house".to_owned(), "maison".to_owned()));
        wanted.sort();
        assert_eq!(found, wanted);
        // By way of the hub, by a dictionary to learn from too.
        let pivoted = of([fr, de]);
        assert!(pivoted.pivoted && !pivoted.reversed);
        assert!(pivoted.entries.contains(&("voiture".to_owned(), "auto".to_owned())));
        assert!(pivoted.entries.iter().all(|(word, _)| word != "route"), "it is not to be tested");
        // German has no test dictionary with the hub.
        assert!(tests.iter().all(|test| test.languages[0] != de));
    }

    #[test]
    fn words_that_a_map_was_learned_from_are_left_out() {
        let pairs = |languages, rows: &[(u32, u32)]| LanguagePairs { languages, rows: rows.into() };
        let (fr, en, de) = (0, 1, 2);
        let dictionaries = [pairs([fr, en], &[(1, 2), (3, 4)]), pairs([en, de], &[(5, 6)])];
        let seen = |pair: [usize; 2]| {
            let mut rows: Vec<u32> = learned_from(&dictionaries, pair, en).into_iter().collect();
            rows.sort_unstable();
            rows
        };
        assert_eq!(seen([fr, en]), [1, 3]);
        assert_eq!(seen([fr, de]), [1, 3], "the map of French is one of the two");
        assert_eq!(seen([en, fr]), [2, 4], "no map was learned from the pairs with German");
        assert_eq!(seen([en, de]), [5]);
    }
}
