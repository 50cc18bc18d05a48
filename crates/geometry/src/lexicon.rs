//! Bilingual lexicons as pairs of rows, and the accuracy of lookups by the conventions of MUSE (Lample
//! et al. 2018).
//!
//! A pair counts where both its words have vectors. A source word is one query however many
//! translations it has, and any of them is right: P@k is the share of queries with a right answer
//! among the first k, over the words that have a pair at all. How many of the dictionary's source
//! words those are is the coverage.
//!
//! A word whose translation is spelled like it (names, numbers, loans) is found by any system whose two
//! languages share subwords, an untrained one included. So every accuracy is also given over the queries
//! none of whose translations equals the query.
//!
//! A word that a map was learned from is no test of it. MUSE's dictionaries 0-5000 and 5000-6500 have no source word in common;
//! how much of a test dictionary was learned from is counted ([`TrainingOverlap`]).

use std::path::Path;

use arrays::Matrix;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use tensor::Device;
use text::{Dictionary, LineRules, TableRecord};
use vectors::WordVectors;

use crate::predictions::{Prediction, RetrievalDirection, RetrievalSpace};
use crate::search::{Measure, Scores, Watch, unwatched};
use crate::{Error, Result};

/// A dictionary of whose pairs a smaller share has vectors is remarked on.
const LOW_COVERAGE: f64 = 0.1;

/// A dictionary between two tables of vectors.
#[derive(Clone, Debug, PartialEq)]
pub struct Lexicon {
    /// Rows of words and of their translations, no pair twice, in the order of the file.
    pub pairs: Vec<(u32, u32)>,
    /// Pairs of the file, no pair twice.
    pub listed: usize,
    /// Source words of the file, no word twice.
    pub words: usize,
    /// Pairs of the file that would have vectors with its columns swapped.
    pub swapped: usize,
    /// Rows of source words that the file translates by themselves, upper and lower case alike.
    identical: FxHashSet<u32>,
}

impl Lexicon {
    /// Reads a dictionary from the source to the target, or reversed, and refuses one of which no pair can be used.
    pub fn read(
        path: &Path,
        reversed: bool,
        source: &WordVectors,
        target: &WordVectors,
    ) -> Result<Self> {
        let read = Dictionary::read(path, "source", "target", LineRules::default())?;
        let entries = if reversed { read.reversed() } else { read }.entries;
        let lexicon =
            Self::new(entries.iter().map(|(a, b, _)| (a.as_str(), b.as_str())), source, target);
        if lexicon.pairs.is_empty() {
            let known =
                entries.iter().filter(|(word, _, _)| source.position(word).is_some()).count();
            let reason = format!(
                "none of its {} pairs has a vector on both sides ({known} have one on the source side)",
                lexicon.listed
            );
            let remedy = "check that the dictionary goes from the source to the target language, \
                          and that both sides write words alike";
            return Err(Error::input(path.display(), reason, remedy));
        }
        Ok(lexicon)
    }

    /// The pairs among these that have vectors.
    pub fn new<'a>(
        entries: impl Iterator<Item = (&'a str, &'a str)>,
        source: &WordVectors,
        target: &WordVectors,
    ) -> Self {
        let (mut seen, mut words, mut pairs) = (FxHashSet::default(), FxHashSet::default(), vec![]);
        let (mut identical, mut swapped) = (FxHashSet::default(), 0);
        for (word, translation) in entries {
            words.insert(word);
            if word.to_lowercase() == translation.to_lowercase() {
                identical.extend(source.position(word).map(|row| row as u32));
            }
            if !seen.insert((word, translation)) {
                continue;
            }
            if let Some((a, b)) = source.position(word).zip(target.position(translation)) {
                pairs.push((a as u32, b as u32));
            }
            swapped +=
                usize::from(source.position(translation).and(target.position(word)).is_some());
        }
        Self { pairs, listed: seen.len(), words: words.len(), swapped, identical }
    }

    /// `93 of 11,977 pairs (0.8 %)`: those that have vectors on both sides.
    pub fn covered(&self) -> String {
        let Self { pairs, listed, .. } = self;
        let share = 100.0 * pairs.len() as f64 / (*listed).max(1) as f64;
        format!("{} of {listed} pairs ({share:.1} %)", pairs.len())
    }

    /// A line where so few of its pairs have vectors that it is probably of other languages or of another direction.
    pub fn remark(&self, path: &Path) -> Option<String> {
        if self.pairs.len() as f64 >= LOW_COVERAGE * self.listed as f64 {
            return None;
        }
        let covered = self.covered();
        let why = match self.swapped > self.pairs.len() {
            true => format!("with its columns swapped, {} would: are they?", self.swapped),
            false => "is it of these languages, and are words written alike?".to_owned(),
        };
        let path = path.display();
        Some(format!("warning: {path}: only {covered} have vectors on both sides; {why}"))
    }

    /// Every source word that has a pair, with all its translations, in the order of the file.
    pub fn queries(&self) -> Vec<(u32, Vec<u32>)> {
        let mut place = FxHashMap::default();
        let mut queries: Vec<(u32, Vec<u32>)> = Vec::new();
        for &(source, target) in &self.pairs {
            let at = *place.entry(source).or_insert_with(|| {
                queries.push((source, Vec::new()));
                queries.len() - 1
            });
            queries[at].1.push(target);
        }
        queries
    }

    /// How much of it is among the pairs that a map was learned from.
    pub fn overlap(&self, learned: &FxHashSet<(u32, u32)>) -> TrainingOverlap {
        let words: FxHashSet<u32> = learned.iter().map(|(source, _)| *source).collect();
        let targets: FxHashSet<u32> = learned.iter().map(|(_, target)| *target).collect();
        let (mut queries, mut translations) = (0, 0);
        for (source, of) in self.queries() {
            if words.contains(&source) {
                queries += 1;
            } else if of.iter().any(|target| targets.contains(target)) {
                translations += 1;
            }
        }
        let pairs = self.pairs.iter().filter(|pair| learned.contains(pair)).count();
        TrainingOverlap { pairs, queries, translations }
    }

    /// What is left of it without the source words that a map was learned from.
    pub fn unseen(&self, learned: &FxHashSet<(u32, u32)>) -> Self {
        let words: FxHashSet<u32> = learned.iter().map(|(source, _)| *source).collect();
        let mut left = self.clone();
        left.pairs.retain(|(source, _)| !words.contains(source));
        left
    }

    /// The share of the dictionary's source words that have a pair.
    pub fn coverage(&self) -> f64 {
        self.queries().len() as f64 / self.words.max(1) as f64
    }

    /// Lookup among the whole target vocabulary, by the scores of all source words with all target words:
    /// over all queries, and over those that no translation equals.
    pub fn among_all(&self, scores: &Scores) -> [LookupAccuracy; 2] {
        let queries = self.queries();
        let ranks = scores.ranks(&queries);
        self.accuracies(queries.iter().map(|(source, _)| *source), &ranks)
    }

    /// The same lookup, query by query: the `k` best of the target vocabulary.
    pub fn predictions(
        &self,
        scores: &Scores,
        k: usize,
        space: RetrievalSpace,
        [source, target]: [&WordVectors; 2],
    ) -> Vec<Prediction> {
        let queries = self.queries();
        let sources: Vec<u32> = queries.iter().map(|(source, _)| *source).collect();
        let nearest = scores.nearest_of(&sources, k);
        let word = |row: u32| target.word(row as usize).to_owned();
        let predict = |(at, (query, gold)): (usize, &(u32, Vec<u32>))| {
            let found = nearest.ids(at).iter().zip(nearest.scores(at));
            let asked = Prediction {
                layer: None,
                space,
                direction: RetrievalDirection::Forward,
                query: source.word(*query as usize).to_owned(),
                gold: gold.iter().map(|&row| word(row)).collect(),
                rank: None,
                neighbors: Vec::new(),
            };
            asked.with(found.map(|(&row, &score)| (word(row), score, gold.contains(&row))))
        };
        queries.iter().enumerate().map(predict).collect()
    }

    /// The accuracy over all queries, and over those that no translation equals.
    fn accuracies(
        &self,
        queries: impl Iterator<Item = u32>,
        ranks: &[usize],
    ) -> [LookupAccuracy; 2] {
        let different = queries.zip(ranks).filter(|(source, _)| !self.identical.contains(source));
        let different: Vec<usize> = different.map(|(_, &rank)| rank).collect();
        [LookupAccuracy::of(ranks), LookupAccuracy::of(&different)]
    }

    /// Lookup of each pair's translation, by cosine, among the translations that the
    /// dictionary lists: the word retrieval of Liu et al. 2020. Every pair is a query, and only its own
    /// translation is right. Over all pairs, and over those of words that no translation equals.
    pub fn among_candidates(
        &self,
        source: &Matrix,
        target: &Matrix,
        device: &Device,
    ) -> [CandidateAccuracy; 2] {
        let number = |words: &mut FxHashMap<u32, u32>, word: u32| {
            let next = words.len() as u32;
            *words.entry(word).or_insert(next)
        };
        let (mut sources, mut targets) = (FxHashMap::default(), FxHashMap::default());
        let queries: Vec<(u32, Vec<u32>)> = self
            .pairs
            .iter()
            .map(|&(a, b)| (number(&mut sources, a), vec![number(&mut targets, b)]))
            .collect();
        let chosen = |matrix: &Matrix, numbers: &FxHashMap<u32, u32>| {
            let mut rows: Vec<(u32, u32)> =
                numbers.iter().map(|(&row, &number)| (number, row)).collect();
            rows.sort_unstable();
            matrix.select(rows.into_iter().map(|(_, row)| row as usize))
        };
        let (source, target) = (chosen(source, &sources), chosen(target, &targets));
        let scores = Scores::new(source, target, Measure::Cosine, device, &unwatched);
        let words = targets.len();
        let sources = self.pairs.iter().map(|(source, _)| *source);
        self.accuracies(sources, &scores.ranks(&queries))
            .map(|accuracy| CandidateAccuracy { words, accuracy })
    }
}

/// How much of a test dictionary a map was learned from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainingOverlap {
    /// Test pairs that are training pairs.
    pub pairs: usize,
    /// Test words that have a training pair, with whatever translation.
    pub queries: usize,
    /// Other test words one of whose translations has a training pair, with another word.
    #[serde(default)]
    pub translations: usize,
}

/// A pair of an induced lexicon: two words that are each other's nearest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InducedPair {
    /// The source word.
    pub source: String,
    /// The target word.
    pub target: String,
    /// Their score by the measure of the search.
    pub score: f32,
}

/// The lexicon that a common space induces: the words that are each other's nearest, in the order of the
/// source vocabulary.
pub fn induce(
    scores: &Scores,
    [source, target]: [&WordVectors; 2],
    watch: Watch<'_>,
) -> Vec<InducedPair> {
    let pair = |(a, b, score): (u32, u32, f32)| InducedPair {
        source: source.word(a as usize).to_owned(),
        target: target.word(b as usize).to_owned(),
        score,
    };
    scores.mutual(watch).into_iter().map(pair).collect()
}

impl TableRecord for InducedPair {
    const COLUMNS: &'static [&'static str] = &["source", "target", "score"];

    fn lines(&self, line: &mut dyn FnMut(&[&str])) {
        line(&[&self.source, &self.target, &format!("{:.6}", self.score)]);
    }
}

/// The accuracy of dictionary lookups.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LookupAccuracy {
    /// Queries.
    pub queries: usize,
    /// P@1: the share of queries whose best answer is right.
    pub p_at_1: f64,
    /// P@5: the share with a right one among the best five.
    pub p_at_5: f64,
    /// P@10: the share with a right one among the best ten.
    pub p_at_10: f64,
    /// Mean reciprocal rank of the first right answer.
    pub mrr: f64,
}

impl LookupAccuracy {
    /// From the place of the first right answer to each query, counted from 1.
    pub fn of(ranks: &[usize]) -> Self {
        let share = |k: usize| mean(ranks.iter().map(|&rank| f64::from(u8::from(rank <= k))));
        let mrr = mean(ranks.iter().map(|&rank| 1.0 / rank as f64));
        Self { queries: ranks.len(), p_at_1: share(1), p_at_5: share(5), p_at_10: share(10), mrr }
    }
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len().max(1) as f64;
    values.sum::<f64>() / count
}

/// Word retrieval among a dictionary's own translations (Liu et al. 2020).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CandidateAccuracy {
    /// Distinct translations to choose from.
    pub words: usize,
    /// A query for each pair.
    #[serde(flatten)]
    pub accuracy: LookupAccuracy,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vectors(words: &[&str], values: Vec<f32>) -> WordVectors {
        WordVectors::new(words.iter().map(|&word| word.to_owned()).collect(), 2, values).unwrap()
    }

    #[test]
    fn any_translation_is_right_and_missing_pairs_only_lower_coverage() {
        let source = vectors(&["a", "b", "c"], vec![1.0, 0.0, 0.0, 1.0, -1.0, 0.0]);
        let target = vectors(&["x", "y", "z"], vec![0.0, 1.0, 1.0, 0.1, -1.0, 0.3]);
        let entries = [("a", "x"), ("a", "y"), ("a", "x"), ("b", "y"), ("c", "none"), ("d", "x")];
        let lexicon = Lexicon::new(entries.into_iter(), &source, &target);
        assert_eq!(lexicon.pairs, [(0, 0), (0, 1), (1, 1)]);
        assert_eq!((lexicon.listed, lexicon.words), (5, 4));
        assert_eq!(lexicon.coverage(), 0.5);
        assert_eq!(lexicon.queries(), [(0, vec![0, 1]), (1, vec![1])]);
        // `a` finds `y` first, which is right; `b` finds `x`, then `z`, and only then `y`.
        let (source, target) = (Matrix::from(&source), Matrix::from(&target));
        let cpu = Device::cpu(1).unwrap();
        let (a, b) = (source.clone(), target.clone());
        let scores = Scores::new(a, b, Measure::Cosine, &cpu, &unwatched);
        let [found, different] = lexicon.among_all(&scores);
        assert_eq!(found, different, "no word is its own translation");
        assert_eq!((found.queries, found.p_at_1, found.p_at_5), (2, 0.5, 1.0));
        assert!((found.mrr - (1.0 + 1.0 / 3.0) / 2.0).abs() < 1e-12);
        // Query by query: of `b` no translation is among the best two.
        let words =
            [&vectors(&["a", "b", "c"], vec![0.0; 6]), &vectors(&["x", "y", "z"], vec![0.0; 6])];
        let predictions = lexicon.predictions(&scores, 2, RetrievalSpace::Raw, words);
        let found = |at: usize| -> Vec<(&str, bool)> {
            predictions[at].neighbors.iter().map(|n| (n.text.as_str(), n.correct)).collect()
        };
        assert_eq!((predictions[0].query.as_str(), predictions[0].rank), ("a", Some(1)));
        assert_eq!(predictions[0].gold, ["x", "y"]);
        assert_eq!(found(0), [("y", true), ("x", true)]);
        assert_eq!((found(1), predictions[1].rank), (vec![("x", false), ("z", false)], None));
        // `a` and `y`, `b` and `x`, `c` and `z` are each other's nearest.
        let induced = induce(&scores, words, &unwatched);
        let pairs: Vec<_> =
            induced.iter().map(|p| (p.source.as_str(), p.target.as_str())).collect();
        assert_eq!(pairs, [("a", "y"), ("b", "x"), ("c", "z")]);
        assert!((induced[2].score - 1.0 / 1.09_f32.sqrt()).abs() < 1e-6, "{induced:?}");
        // Among candidates x and y: (a, x) is second, (a, y) first, (b, y) second.
        let [candidates, _] = lexicon.among_candidates(&source, &target, &cpu);
        assert_eq!((candidates.words, candidates.accuracy.queries), (2, 3));
        assert!((candidates.accuracy.mrr - 2.0 / 3.0).abs() < 1e-12);
    }

    /// Worked by hand: `Paris` and `taxi` translate by themselves, so that of four words two are left.
    #[test]
    fn words_that_translate_by_themselves_are_no_evidence() {
        let source = vectors(
            &["Paris", "taxi", "dog", "cat"],
            vec![1.0, 0.0, 0.0, 1.0, 1.0, 1.0, -1.0, 0.2],
        );
        let target = vectors(
            &["paris", "taxi", "chien", "chat"],
            vec![1.0, 0.0, 0.0, 1.0, -1.0, 0.0, 1.0, 0.9],
        );
        let entries = [
            ("Paris", "paris"),
            ("taxi", "chat"),
            ("taxi", "taxi"),
            ("dog", "chien"),
            ("cat", "chat"),
        ];
        let lexicon = Lexicon::new(entries.into_iter(), &source, &target);
        let (x, y) = (Matrix::from(&source), Matrix::from(&target));
        let cpu = Device::cpu(1).unwrap();
        let scores = Scores::new(x.clone(), y.clone(), Measure::Cosine, &cpu, &unwatched);
        let [all, different] = lexicon.among_all(&scores);
        // dog finds chat, paris, taxi, then chien: rank 4; cat finds chien, taxi, chat, paris: rank 3.
        assert_eq!((all.queries, all.p_at_1), (4, 0.5));
        assert_eq!((different.queries, different.p_at_1, different.p_at_5), (2, 0.0, 1.0));
        assert!((different.mrr - (0.25 + 1.0 / 3.0) / 2.0).abs() < 1e-12, "{different:?}");
        let [all, different] = lexicon.among_candidates(&x, &y, &cpu);
        assert_eq!((all.accuracy.queries, different.accuracy.queries), (5, 2));
        assert!((different.accuracy.mrr - (0.25 + 1.0 / 3.0) / 2.0).abs() < 1e-12);
    }
}
