//! Many languages in one space: an orthogonal map for each of N languages, from dictionaries of some pairs of them.
//!
//! Beside mapping every language onto a hub, one dictionary at a time (through other languages where there is none with
//! the hub), all maps are learned together: generalised Procrustes (Gower 1975; for word vectors Kementchedjhieva et al.
//! 2018) minimises the squared distances of all dictionary pairs in the common space, language by language, each given
//! the others. The hub's map is the identity, which fixes the common rotation.

use std::collections::VecDeque;
use std::path::PathBuf;

use arrays::Matrix;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use tensor::Device;
use text::{Dictionary, LineRules};

use crate::align::{AlignObserver, SpaceOptions, WordSpace, check_dims, read_space};
use crate::error::{Error, Result};
use crate::lexicon::{Lexicon, TrainingOverlap};
use crate::map::{CrossProduct, Map};
use crate::normalize::{Step, describe};
use crate::search::{Measure, Scores, unwatched};

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
        map.ok_or_else(|| Error::Request {
            reason: format!(
                "no dictionary, and no chain of them, joins {} to {}; give one more",
                name(language),
                name(hub)
            ),
            key: Some("dictionary"),
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

/// The pairs of two languages that are learned from, the row of the first of these first.
fn learned(dictionaries: &[LanguagePairs], a: usize, b: usize) -> FxHashSet<(u32, u32)> {
    let all = between(dictionaries, a, b).flat_map(|(rows, first)| {
        rows.iter().map(move |&(x, y)| if first { (x, y) } else { (y, x) })
    });
    all.collect()
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
    /// Whether the test dictionary was composed of two with the hub, for want of one of this pair.
    pub pivoted: bool,
    /// Source words of the test dictionary that have a pair.
    pub queries: usize,
    /// How much of the test dictionary is in a dictionary of this pair, in either direction, that was learned from. Source words
    /// of one direction are translations in the other, where they come again: it is pairs that matter.
    #[serde(default)]
    pub train_overlap: TrainingOverlap,
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
    /// Dimension of the space.
    pub dim: usize,
    /// The mean squared distance of dictionary pairs with every language mapped onto the hub.
    pub loss_hub: f64,
    /// The same after each round of generalised Procrustes.
    pub losses: Vec<f64>,
    /// Every pair that has a test dictionary.
    pub pairs: Vec<PairAccuracy>,
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

/// Entries of a dictionary between two languages.
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
            Error::request(key, reason)
        })
    }

    fn pair(&self, languages: &[String; 2], key: &'static str) -> Result<[usize; 2]> {
        let pair = [self.number(&languages[0], key)?, self.number(&languages[1], key)?];
        match pair[0] == pair[1] {
            true => {
                Err(Error::request(key, format!("`{}` twice; give two languages", languages[0])))
            }
            false => Ok(pair),
        }
    }

    fn signature(&self, k: usize) -> String {
        format!(
            "generalised-procrustes|norm:{}|retrieval:csls,k={k}|queries:unique-source|gold:any|oov:dropped|vocab:{}|ties:lower-row|v{}",
            describe(&self.normalize),
            self.max_vocab,
            env!("CARGO_PKG_VERSION"),
        )
    }
}

/// Reads the vectors of many languages, learns their maps into one space, onto the hub and together, and looks up every
/// pair in both directions. A pair without a test dictionary is looked up in one that is composed of those with the hub.
///
/// # Errors
/// Where a file is at fault, a dictionary names a language without vectors, or no dictionaries join a language to the hub.
pub fn align_many(
    config: &AlignManyConfig,
    device: &Device,
    observer: &dyn AlignObserver,
) -> Result<ManyAlignment> {
    if config.vectors.len() < 2 {
        return Err(Error::request("vectors", "give the vectors of two languages or more"));
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
    let mut dictionaries = Vec::new();
    for (languages, path) in &config.dictionaries {
        let [a, b] = config.pair(languages, "dictionary")?;
        let rows = Lexicon::read(path, &spaces[a].words, &spaces[b].words)?.pairs;
        dictionaries.push(LanguagePairs { languages: [a, b], rows });
    }
    let tests = test_entries(config, hub)?;
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
        dim: matrices[hub].cols(),
        loss_hub: separate.losses[0],
        losses: joint.losses[1..].to_vec(),
        pairs: Vec::new(),
        mean: None,
        signature: config.signature(k),
    };
    let identity = vec![Map::identity(matrices[hub].cols()); spaces.len()];
    for TestPair { languages: [a, b], entries, pivoted } in &tests {
        observer.stage(&format!("looking up {}-{}", config.vectors[*a].0, config.vectors[*b].0));
        let entries = entries.iter().map(|(a, b)| (a.as_str(), b.as_str()));
        let lexicon = Lexicon::new(entries, &spaces[*a].words, &spaces[*b].words);
        if lexicon.pairs.is_empty() {
            continue;
        }
        let train_overlap = lexicon.overlap(&learned(&dictionaries, *a, *b));
        if train_overlap.pairs > 0 {
            observer.remark(&format!(
                "warning: {} of the {} test pairs of {}-{} were learned from: what is found for them is how well the maps fit, \
                 and no test; give dictionaries without a common pair",
                train_overlap.pairs,
                lexicon.pairs.len(),
                config.vectors[*a].0,
                config.vectors[*b].0
            ));
        }
        let look_up = |maps: &[Map]| {
            let (x, y) = (maps[*a].apply(&matrices[*a]), maps[*b].apply(&matrices[*b]));
            let scores = Scores::new(x, y, Measure::Csls { k }, device, &unwatched);
            lexicon.among_all(&scores)[0]
        };
        let [onto_hub, together, unmapped] =
            [&separate.maps, &joint.maps, &identity].map(|maps| look_up(maps));
        result.pairs.push(PairAccuracy {
            source: config.vectors[*a].0.clone(),
            target: config.vectors[*b].0.clone(),
            trained: between(&dictionaries, *a, *b).next().is_some(),
            pivoted: *pivoted,
            queries: together.queries,
            train_overlap,
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

/// What is looked up of an ordered pair of languages.
struct TestPair {
    languages: [usize; 2],
    entries: Entries,
    pivoted: bool,
}

/// The entries of every ordered pair of languages: those of its own dictionary, of the reversed one of the opposite
/// direction or, for want of both, of two with the hub that are joined by the hub's words.
fn test_entries(config: &AlignManyConfig, hub: usize) -> Result<Vec<TestPair>> {
    let mut given: FxHashMap<[usize; 2], Entries> = FxHashMap::default();
    for (languages, path) in &config.test_dictionaries {
        let pair = config.pair(languages, "test_dictionary")?;
        let read = Dictionary::read(path, &languages[0], &languages[1], LineRules::default())?;
        let entries = read.entries.into_iter().map(|(a, b, _)| (a, b));
        given.entry(pair).or_default().extend(entries);
    }
    let direct = |a: usize, b: usize| -> Option<Entries> {
        let turned = |entries: &Entries| {
            entries.iter().map(|(x, y)| (y.clone(), x.clone())).collect::<Entries>()
        };
        given.get(&[a, b]).cloned().or_else(|| given.get(&[b, a]).map(turned))
    };
    let mut tests = Vec::new();
    let count = config.vectors.len();
    for (a, b) in (0..count).flat_map(|a| (0..count).map(move |b| (a, b))).filter(|(a, b)| a != b) {
        let (entries, pivoted) = match direct(a, b) {
            Some(entries) => (entries, false),
            None if a == hub || b == hub => continue,
            None => match direct(a, hub).zip(direct(hub, b)) {
                Some((to_hub, from_hub)) => (join(&to_hub, &from_hub), true),
                None => continue,
            },
        };
        tests.push(TestPair { languages: [a, b], entries, pivoted });
    }
    Ok(tests)
}

/// Words of two languages that have a translation in common.
fn join(to_hub: &Entries, from_hub: &Entries) -> Entries {
    let mut by_word: FxHashMap<&str, Vec<&str>> = FxHashMap::default();
    for (hub, word) in from_hub {
        by_word.entry(hub).or_default().push(word);
    }
    let all = to_hub.iter().flat_map(|(word, hub)| {
        let others = by_word.get(hub.as_str()).into_iter().flatten();
        others.map(move |other| (word.clone(), (*other).to_owned()))
    });
    all.collect()
}
