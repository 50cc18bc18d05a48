//! The language in the vector: how well a probe tells which language a sentence is in, layer by layer, and what is left
//! of that once language identity was removed.
//!
//! Four treatments of the vectors are compared, each learned from a third of the sentences; the probe is trained on another and
//! tested on the last. (With means of the very sentences that it is trained on there would be nothing to learn from.)
//!
//! - `raw`: the vectors as they are.
//! - `centered`: each language's own mean is subtracted (Libovický et al. 2020). A shift of one language onto another by the
//!   difference of their means (Liu et al. 2020) is the same but for a translation of all vectors, which no linear probe sees.
//! - `lsar`: the components in the subspace of the languages' means are removed (LSAR, Xie et al. 2022), whatever the
//!   language of a sentence is.
//! - `without-k`: the components in the k leading principal directions of all vectors are removed (Mu & Viswanath 2018).
//!
//! **Means of one half, means of the other.** Which mean is subtracted depends on the label, and an estimated mean is wrong by
//! some offset. Were the same means subtracted from training and test sentences, both would have that offset, and the probe
//! would read the label from it: of two samples of one normal distribution (48 dimensions, 1,000 sentences) it told .57 to .60.
//! So training sentences are centred by the means of one half of the fitted third, and test sentences by those of the other.
//! The two offsets are independent, and what is learned from the one says nothing of the other: such samples give .50.
//!
//! **A linear probe sees means alone.** The gradient of its loss at weights of 0 is the difference of the means: where these are
//! equal it stays there, whatever else tells languages apart, and after `centered` it gives chance for any encoder. So a second
//! probe reads each column with its square and its hyperbolic tangent, in which a difference of spread and of skew is one of
//! means, and products of `PRODUCTS_OF` leading principal components, in which one of correlations is. It is the same logistic
//! regression, and as deterministic. What it cannot see are differences that these features do not have.
//!
//! LSAR and `without-k` do to a vector what does not depend on its label, and put nothing in. But their directions are estimated
//! too, and what they miss of the language is left and told: .57 of languages that differ by their mean alone (48 dimensions,
//! 1,000 sentences).
//!
//! **No sentence twice.** A sentence that stands in several parts (XNLI has each premise three times) would be recognised and
//! not its language. Of rows with a sentence of an earlier row, in any language, none is taken ([`distinct_rows`]).
//!
//! **Controls.** Beside each accuracy and each share of variance stands what [`SHUFFLES`] languages without information get:
//! the sentences of all languages are dealt out to them at random before anything is learned, and go through the whole
//! procedure. Beside all stands the share of the most frequent language; where languages are of unequal size, a probe without
//! information is below it, and the control alone tells chance.

mod probe;
mod removal;

use std::hash::Hash;

use arrays::{Matrix, Stack};
use rayon::prelude::*;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use terms::interrupt;
use text::RandomStreams;

pub use removal::{leading_subspace, mean_subspace, subspace_of_means};

use crate::cka::SimilarityInterval;
use crate::projection::variance_between;
use crate::retrieval::{check_layers, row_digests};
use crate::search::Watch;
use crate::{Error, Result};
use probe::{Features, LOOSE, LinearProbe, TOLERANCE};
use removal::Removal;

/// The fewest different sentences of a language.
const FEWEST: usize = 12;
/// Leading principal components whose products the second probe reads.
const PRODUCTS_OF: usize = 12;
/// How often labels are shuffled for the control, which is the mean over all shuffles.
pub const SHUFFLES: usize = 5;

/// What is computed.
#[derive(Clone, Copy, Debug)]
pub struct LanguageIdConfig {
    /// How many leading principal directions are removed.
    pub directions: usize,
    /// Seed of the split of the sentences, and of the shuffled labels.
    pub seed: u64,
}

/// How many sentences there were of a language.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LanguageRows {
    /// The language.
    pub language: String,
    /// Sentences that means and directions were learned from.
    pub fitted: usize,
    /// Sentences that the probe was trained on.
    pub train: usize,
    /// Sentences that it was tested on.
    pub test: usize,
    /// Sentences that were left out, since they or a translation of them stand in an earlier row.
    #[serde(default)]
    pub repeated: usize,
}

/// What is left of the language after a treatment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TreatedLanguageId {
    /// `raw`, `centered`, `lsar` or `without-k`.
    pub treatment: String,
    /// The share of test sentences whose language the probe tells.
    pub accuracy: f64,
    /// Its 95 % interval over test sentences, given the treatment and the probe (Wilson 1927).
    pub interval: SimilarityInterval,
    /// The mean accuracy where labels were shuffled before the treatment: what the same procedure gives for languages that
    /// do not differ.
    pub shuffled: f64,
    /// The same of the probe that sees more than means; none in results of before there was one.
    pub nonlinear: Option<NonlinearAccuracy>,
    /// The share of the variance of test sentences that lies between languages.
    pub variance_between: f64,
    /// The same where labels were shuffled before the treatment. Translations may be below it: they have the same content in
    /// every language, and shuffled languages have not.
    pub variance_shuffled: f64,
}

/// What a probe tells that sees spread, skew and correlations beside means.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NonlinearAccuracy {
    /// The share of test sentences whose language it tells.
    pub accuracy: f64,
    /// Its 95 % interval over test sentences, given the treatment and the probe (Wilson 1927).
    pub interval: SimilarityInterval,
    /// The mean accuracy where labels were shuffled before the treatment.
    pub shuffled: f64,
}

/// The language at one layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayerLanguageId {
    /// The layer; 0 is the embeddings.
    pub layer: usize,
    /// Its name, where the file gives it one that is not numeric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Each treatment.
    pub treatments: Vec<TreatedLanguageId>,
}

/// How much of the language is in the vectors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LanguageIdResult {
    /// The languages.
    pub languages: Vec<LanguageRows>,
    /// The share of the most frequent language among test sentences.
    pub chance: f64,
    /// The share of variance that would lie between languages if the labels of raw vectors were random.
    pub variance_chance: f64,
    /// Each layer.
    pub layers: Vec<LayerLanguageId>,
    /// Names every convention that a number depends on.
    pub signature: String,
}

/// Probes each layer of the vectors of some languages. One layer of all languages is in memory at a time. `watch` is called after
/// each layer.
///
/// Sentences whose vectors at the last layer are equal are taken for equal, and languages of equally many rows for
/// translations of one another, row by row.
///
/// # Errors
/// Where there are fewer than two languages, too few sentences, or layers that differ in shape.
pub fn language_id(
    languages: &[(String, Stack)],
    config: LanguageIdConfig,
    watch: Watch<'_>,
) -> Result<LanguageIdResult> {
    check(languages)?;
    let first = &languages[0].1;
    let keys = |(_, stack): &(String, Stack)| -> Result<Vec<_>> {
        Ok(row_digests(stack)?.into_iter().map(Some).collect())
    };
    let keys = languages.iter().map(keys).collect::<Result<Vec<_>>>()?;
    let taken = distinct_rows(&keys);
    let mut rows = Vec::new();
    for ((language, stack), taken) in languages.iter().zip(&taken) {
        check_count(language, stack, taken.rows.len())?;
        rows.push(split(&taken.rows, config.seed));
    }
    let mut layers = Vec::new();
    for layer in 0..first.layers() {
        interrupt::check();
        let (number, name) = first.layer_number(layer);
        let mut sentences = LabelledSentences::default();
        for ((_, stack), [fitted, train, test]) in languages.iter().zip(&rows) {
            let whole = stack.whole(layer)?;
            let select = |rows: &[usize]| whole.select(rows.iter().copied());
            sentences.fitted.push(select(fitted));
            sentences.train.push(select(train));
            sentences.test.push(select(test));
        }
        layers.push(LayerLanguageId { layer: number, name, treatments: sentences.treated(config) });
        watch(layer as u64 + 1, first.layers() as u64);
    }
    let counts: Vec<LanguageRows> = languages
        .iter()
        .zip(rows.iter().zip(&taken))
        .map(|((language, _), ([fitted, train, test], taken))| LanguageRows {
            language: language.clone(),
            fitted: fitted.len(),
            train: train.len(),
            test: test.len(),
            repeated: taken.repeated,
        })
        .collect();
    let tested: usize = counts.iter().map(|one| one.test).sum();
    let most = counts.iter().map(|one| one.test).max().unwrap_or(0);
    Ok(LanguageIdResult {
        chance: most as f64 / tested as f64,
        variance_chance: (counts.len() - 1) as f64 / (tested - 1) as f64,
        languages: counts,
        layers,
        signature: format!(
            "language-id:logistic,l2=1/n,standardized|nonlinear:x,x^2,tanh2x,products-of-{PRODUCTS_OF}|split:thirds,distinct|centered:train-and-test-by-other-means|\
             lsar:rank=languages-1|shuffled:before-treatment,n={SHUFFLES}|seed:{}|v{}",
            config.seed,
            env!("CARGO_PKG_VERSION")
        ),
    })
}

fn check(languages: &[(String, Stack)]) -> Result<()> {
    let [(_, first), others @ ..] = languages else {
        return Err(Error::of_key("text", "there is no language; give at least two"));
    };
    if others.is_empty() {
        return Err(Error::of_key("text", "there is one language only; give at least two"));
    }
    languages.iter().try_for_each(|(_, stack)| check_layers(first, stack))
}

fn check_count(language: &str, stack: &Stack, different: usize) -> Result<()> {
    if different >= FEWEST {
        return Ok(());
    }
    let reason = format!("has {different} different sentences of `{language}`");
    Err(Error::input(stack.name(), reason, "give at least 12; hundreds are better"))
}

/// The rows of a language that are taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DistinctRows {
    /// Their numbers.
    pub rows: Vec<usize>,
    /// How many rows were left out because of a sentence that had come before.
    pub repeated: usize,
}

/// The rows of each language that are taken, so that no sentence can come in two parts of a split. A row is taken where none of its
/// sentences stands in a row that was taken before. Languages of equally many rows are translations of one another, row by
/// row; their rows are taken together, and not where one of them has no sentence (`None`).
///
/// ```
/// let english = ["yes", "no", "yes", "no"].map(Some);
/// let french = ["oui", "non", "si", "non"].map(Some);
/// let taken = geometry::language_id::distinct_rows(&[english.to_vec(), french.to_vec()]);
/// assert_eq!((&taken[0].rows, taken[0].repeated), (&vec![0, 1], 2));
/// ```
pub fn distinct_rows<K: Hash + Eq>(languages: &[Vec<Option<K>>]) -> Vec<DistinctRows> {
    let of = |rows: usize| {
        let parallel: Vec<_> = languages.iter().filter(|keys| keys.len() == rows).collect();
        let mut seen: Vec<FxHashSet<&K>> = vec![FxHashSet::default(); parallel.len()];
        let mut taken = DistinctRows::default();
        for row in 0..rows {
            let keys: Option<Vec<&K>> = parallel.iter().map(|keys| keys[row].as_ref()).collect();
            let Some(keys) = keys else { continue };
            if keys.iter().zip(&seen).any(|(key, seen)| seen.contains(key)) {
                taken.repeated += 1;
                continue;
            }
            keys.into_iter().zip(&mut seen).for_each(|(key, seen)| _ = seen.insert(key));
            taken.rows.push(row);
        }
        taken
    };
    languages.iter().map(|keys| of(keys.len())).collect()
}

/// The rows that treatments are learned from, that a probe is trained on and that it is tested on, a third each. Languages of the
/// same rows are split alike, so that a sentence and its translation are not parted. The first third is in random order, so
/// that either half of it is a sample.
fn split(rows: &[usize], seed: u64) -> [Vec<usize>; 3] {
    let streams = RandomStreams::new(seed, "rows of a language-ID probe");
    let mut order = rows.to_vec();
    order.sort_by_key(|&row| streams.rank(row as u64));
    let ends = [0, rows.len() / 3, 2 * rows.len() / 3, rows.len()];
    let mut parts = [0, 1, 2].map(|part: usize| order[ends[part]..ends[part + 1]].to_vec());
    parts[1..].iter_mut().for_each(|own| own.sort_unstable());
    parts
}

/// Vectors of each language: those that treatments are learned from, those that a probe is trained on, and those that it is tested
/// on.
#[derive(Default)]
struct LabelledSentences {
    fitted: Vec<Matrix>,
    train: Vec<Matrix>,
    test: Vec<Matrix>,
}

struct ProbedTreatment {
    accuracy: f64,
    nonlinear: f64,
    variance_between: f64,
}

impl LabelledSentences {
    fn treated(&self, config: LanguageIdConfig) -> Vec<TreatedLanguageId> {
        let names = ["raw", "centered", "lsar"]
            .map(str::to_owned)
            .into_iter()
            .chain([format!("without-{}", config.directions)]);
        let controls: Vec<[ProbedTreatment; 4]> = (0..SHUFFLES)
            .into_par_iter()
            .map(|number| self.shuffled(config.seed, number).probed(config.directions))
            .collect();
        let mean = |at: usize, of: fn(&ProbedTreatment) -> f64| {
            controls.iter().map(|control| of(&control[at])).sum::<f64>() / SHUFFLES as f64
        };
        let tested: usize = self.test.iter().map(Matrix::rows).sum();
        let interval = |share| SimilarityInterval::of_share(share, tested as f64);
        let own = self.probed(config.directions).into_iter().zip(names).enumerate();
        own.map(|(at, (found, treatment))| TreatedLanguageId {
            treatment,
            accuracy: found.accuracy,
            interval: interval(found.accuracy),
            shuffled: mean(at, |control| control.accuracy),
            nonlinear: Some(NonlinearAccuracy {
                accuracy: found.nonlinear,
                interval: interval(found.nonlinear),
                shuffled: mean(at, |control| control.nonlinear),
            }),
            variance_between: found.variance_between,
            variance_shuffled: mean(at, |control| control.variance_between),
        })
        .collect()
    }

    fn probed(&self, directions: usize) -> [ProbedTreatment; 4] {
        let means = |second: bool| {
            let half = |fitted: &Matrix| {
                let (rows, middle) = (fitted.rows(), fitted.rows() / 2);
                fitted.select(if second { middle..rows } else { 0..middle })
            };
            Removal::means(&self.fitted.iter().map(half).collect::<Vec<_>>())
        };
        let lsar = Removal::Subspace(mean_subspace(&self.fitted));
        let principal = leading_subspace(&self.fitted, directions.max(PRODUCTS_OF));
        let removed = principal.len().min(directions);
        let leading = Removal::Subspace(principal[..removed].to_vec());
        let components = &principal[..principal.len().min(PRODUCTS_OF)];
        let probed = |of_train, of_test| self.probed_after(of_train, of_test, components);
        [
            probed(&Removal::Nothing, &Removal::Nothing),
            probed(&means(false), &means(true)),
            probed(&lsar, &lsar),
            probed(&leading, &leading),
        ]
    }

    fn probed_after(
        &self,
        of_train: &Removal,
        of_test: &Removal,
        components: &[Vec<f64>],
    ) -> ProbedTreatment {
        let apply = |removal: &Removal, languages: &[Matrix]| -> Vec<Matrix> {
            let of = |(at, matrix): (usize, &Matrix)| removal.apply(at, matrix);
            languages.iter().enumerate().map(of).collect()
        };
        let (train, test) = (apply(of_train, &self.train), apply(of_test, &self.test));
        let of = |train: &[Matrix], test: &[Matrix], tolerance| {
            let probe = LinearProbe::train(train, &labels(train), train.len(), tolerance);
            probe.accuracy(test, &labels(test))
        };
        let features = Features::of(&train, components);
        let [more_train, more_test] = [&train, &test].map(|one| features.apply(one));
        ProbedTreatment {
            accuracy: of(&train, &test, TOLERANCE),
            nonlinear: of(&more_train, &more_test, LOOSE),
            variance_between: variance_between(&test.iter().collect::<Vec<_>>()),
        }
    }

    /// The same sentences, dealt out at random to as many languages of the same sizes, within each part.
    fn shuffled(&self, seed: u64, number: usize) -> Self {
        let streams = RandomStreams::new(seed, "shuffled labels");
        let deal = |languages: &[Matrix], part: usize| {
            let all = languages.iter().flat_map(Matrix::iter);
            let mut sentences: Vec<&[f32]> = all.collect();
            streams.stream((3 * number + part) as u64).shuffle(&mut sentences);
            let mut sentences = sentences.into_iter();
            let language = |own: &Matrix| {
                let values: Vec<f32> =
                    sentences.by_ref().take(own.rows()).flatten().copied().collect();
                Matrix::new(own.rows(), own.cols(), values)
            };
            languages.iter().map(language).collect()
        };
        Self {
            fitted: deal(&self.fitted, 0),
            train: deal(&self.train, 1),
            test: deal(&self.test, 2),
        }
    }
}

/// The number of its language, for each sentence.
fn labels(languages: &[Matrix]) -> Vec<u32> {
    let of = |(at, one): (usize, &Matrix)| vec![at as u32; one.rows()];
    languages.iter().enumerate().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: LanguageIdConfig = LanguageIdConfig { directions: 1, seed: 1 };

    /// Normal numbers, near enough: sums of twelve uniform ones (Irwin–Hall).
    fn normal(rows: usize, cols: usize, seed: u64) -> Matrix {
        let mut stream = RandomStreams::new(seed, "test").stream(0);
        let mut draw = || (0..12).map(|_| stream.unit()).sum::<f64>() as f32 - 6.0;
        Matrix::new(rows, cols, (0..rows * cols).map(|_| draw()).collect())
    }

    fn probed(languages: Vec<Matrix>, seed: u64) -> LanguageIdResult {
        let name = |(at, matrix): (usize, Matrix)| {
            let name = format!("language {at}");
            (name.clone(), Stack::of(&name, vec![matrix]))
        };
        let stacks: Vec<_> = languages.into_iter().enumerate().map(name).collect();
        language_id(&stacks, LanguageIdConfig { seed, ..CONFIG }, &crate::search::unwatched)
            .unwrap()
    }

    /// Accuracy and control of each treatment, means over pairs of languages that `make` draws.
    fn means(seeds: u64, make: impl Fn(u64) -> [Matrix; 2]) -> Vec<[f64; 4]> {
        let mut sums = vec![[0.0; 4]; 4];
        for seed in 0..seeds {
            let found = probed(make(seed).to_vec(), seed);
            for (sum, one) in sums.iter_mut().zip(&found.layers[0].treatments) {
                let own = [one.accuracy, one.shuffled, one.variance_between, one.variance_shuffled];
                sum.iter_mut().zip(own).for_each(|(sum, x)| *sum += x / seeds as f64);
            }
        }
        sums
    }

    /// Two samples of one distribution: whatever the treatment, there is nothing to tell, and the control says so. (With the
    /// same means subtracted from training and test sentences the probe told .58 of these.)
    #[test]
    fn samples_of_one_distribution_are_not_told_apart() {
        let found = means(20, |seed| [normal(600, 24, 2 * seed), normal(600, 24, 2 * seed + 1)]);
        for [accuracy, shuffled, variance, variance_shuffled] in found {
            assert!((accuracy - 0.5).abs() < 0.025, "{accuracy}");
            assert!((shuffled - 0.5).abs() < 0.015, "{shuffled}");
            assert!((variance / variance_shuffled - 1.0).abs() < 0.15, "{variance}");
        }
    }

    /// What a procedure puts into the vectors by their label is in the control as well: here the means of the fitted
    /// sentences, subtracted from training and test sentences alike.
    #[test]
    fn controls_go_through_the_treatment() {
        let languages = |seed: u64| [0, 1].map(|at: u64| normal(100, 24, 10 * seed + at)).to_vec();
        let accuracy = |sentences: &LabelledSentences| {
            let means = Removal::means(&sentences.fitted);
            sentences.probed_after(&means, &means, &[]).accuracy
        };
        let sentences =
            LabelledSentences { fitted: languages(1), train: languages(2), test: languages(3) };
        let controls = (0..20).map(|number| accuracy(&sentences.shuffled(1, number)));
        let control = controls.sum::<f64>() / 20.0;
        assert!(control > 0.55 && accuracy(&sentences) > 0.55, "{control}");
    }

    #[test]
    fn a_row_is_in_one_part() {
        let rows: Vec<usize> = (0..101).map(|row| 2 * row).collect();
        let parts = split(&rows, 1);
        assert_eq!([0, 1, 2].map(|part: usize| parts[part].len()), [33, 34, 34]);
        let mut all = parts.concat();
        all.sort_unstable();
        assert_eq!(all, rows);
        assert_ne!(split(&rows, 2), parts);
    }

    /// Every sentence three times, as XNLI's premises: each is used once, and the rest is counted. The labels of single
    /// sentences are random, so that only a sentence that comes back could be told.
    #[test]
    fn a_sentence_that_comes_back_is_left_out() {
        let thrice = |seed| normal(120, 60, seed).select((0..360).map(|row| row / 3));
        let found = probed(vec![thrice(1), thrice(2)], 1);
        for one in &found.languages {
            assert_eq!((one.fitted, one.train, one.test, one.repeated), (40, 40, 40, 240));
        }
        let raw = &found.layers[0].treatments[0];
        assert!((raw.accuracy - 0.5).abs() < 0.2, "{raw:?}");
        let once = probed(vec![normal(120, 60, 1), normal(120, 60, 2)], 1);
        assert_eq!(once.languages[0].repeated, 0);
    }

    /// Rows of as many sentences go together: one that comes back in either language is left out of both. Others are by
    /// themselves.
    #[test]
    fn translations_are_left_out_together() {
        let keys = |text: &str| -> Vec<Option<char>> {
            text.chars().map(|letter| Some(letter).filter(|&letter| letter != ' ')).collect()
        };
        let taken = distinct_rows(&[keys("abac ef"), keys("xyzyuvv"), keys("aab")]);
        let of = |rows: &[usize], repeated| DistinctRows { rows: rows.to_vec(), repeated };
        assert_eq!(taken, [of(&[0, 1, 5], 3), of(&[0, 1, 5], 3), of(&[0, 2], 1)]);
    }

    /// Two languages that differ by their means alone: centring leaves nothing to tell, and the removal of a direction what its
    /// estimate misses.
    #[test]
    fn what_means_alone_tell_is_removed() {
        let moved = |seed| {
            let mut other = normal(600, 24, 2 * seed + 1);
            other.values_mut().iter_mut().skip(1).step_by(24).for_each(|x| *x += 6.0);
            [normal(600, 24, 2 * seed), other]
        };
        let found = means(10, moved);
        let [raw, centred, lsar, leading] = found.as_slice() else { panic!() };
        assert!(raw[0] > 0.99 && raw[2] > 0.2 && (raw[1] - 0.5).abs() < 0.02, "{raw:?}");
        assert!((centred[0] - centred[1]).abs() < 0.03, "{centred:?}");
        for one in [centred, lsar, leading] {
            assert!((one[0] - 0.5).abs() < 0.1 && (one[1] - 0.5).abs() < 0.02, "{one:?}");
            assert!(one[2] < 0.01, "{one:?}");
        }
        let one = probed(moved(1).to_vec(), 1);
        assert_eq!(one.chance, 0.5);
        let raw = &one.layers[0].treatments[0];
        assert!(raw.interval.low < raw.accuracy && raw.accuracy <= raw.interval.high);
    }

    /// Languages that differ in another direction than that which is removed are still told.
    #[test]
    fn what_a_treatment_leaves_is_told() {
        let halves = |seed| {
            let mut other = normal(600, 24, 2 * seed + 1);
            // Most of the variance is common to both languages, and their difference is at right angles to it.
            let mut one = normal(600, 24, 2 * seed);
            for side in [&mut one, &mut other] {
                side.values_mut().iter_mut().step_by(24).for_each(|x| *x *= 9.0);
            }
            other.values_mut().iter_mut().skip(1).step_by(24).for_each(|x| *x += 4.0);
            [one, other]
        };
        let found = means(5, halves);
        let [raw, _, lsar, leading] = found.as_slice() else { panic!() };
        assert!(
            raw[0] > 0.95 && leading[0] > 0.95 && lsar[0] < 0.65,
            "{raw:?} {lsar:?} {leading:?}"
        );
        assert!((leading[1] - 0.5).abs() < 0.03, "{leading:?}");
    }

    /// Accuracies after centring, means of pairs of languages: of the linear probe, of the other, and its control.
    fn centred(make: impl Fn(u64) -> [Matrix; 2]) -> [f64; 3] {
        const PAIRS: u64 = 4;
        let mut means = [0.0; 3];
        for seed in 0..PAIRS {
            let found = probed(make(seed).to_vec(), seed);
            let one = &found.layers[0].treatments[1];
            let other = one.nonlinear.unwrap();
            let all = [one.accuracy, other.accuracy, other.shuffled];
            means.iter_mut().zip(all).for_each(|(mean, x)| *mean += x / PAIRS as f64);
        }
        means
    }

    /// Two languages of one mean: centring takes nothing away, a linear probe tells nothing, and they are told apart by what else
    /// they differ in.
    #[test]
    fn languages_of_one_mean_are_told_by_what_else_differs() {
        let spread = |seed| {
            let mut other = normal(600, 24, 2 * seed + 1);
            other.values_mut().iter_mut().for_each(|x| *x *= 3.0);
            [normal(600, 24, 2 * seed), other]
        };
        // One coordinate is 9 in one of ten sentences and -1 in the others, of the other language the opposite.
        let skew = |seed| {
            [1.0, -1.0].map(|sign: f32| {
                let mut one = normal(600, 24, 2 * seed + u64::from(sign > 0.0));
                let skewed = |x: &mut f32| *x = sign * if *x > 1.28 { 9.0 } else { -1.0 };
                one.values_mut().iter_mut().step_by(24).for_each(skewed);
                one
            })
        };
        // Two coordinates that go together in one language and against one another in the other, far more than the rest.
        let correlation = |seed| {
            [1.0, -1.0].map(|sign: f32| {
                let mut one = normal(600, 24, 2 * seed + u64::from(sign > 0.0));
                for row in one.values_mut().chunks_exact_mut(24) {
                    row[0] *= 3.0;
                    row[1] += sign * row[0];
                }
                one
            })
        };
        let found = [(centred(spread), 0.95), (centred(skew), 0.85), (centred(correlation), 0.7)];
        for ([linear, nonlinear, shuffled], least) in found {
            println!("linear {linear:.3}, nonlinear {nonlinear:.3}, shuffled {shuffled:.3}");
            assert!(linear < 0.65, "{linear}");
            assert!(nonlinear > least && (shuffled - 0.5).abs() < 0.04, "{nonlinear}, {shuffled}");
        }
        let same = centred(|seed| [normal(600, 24, 2 * seed), normal(600, 24, 2 * seed + 1)]);
        assert!((same[1] - same[2]).abs() < 0.05, "{same:?}");
    }

    #[test]
    fn too_little_is_refused() {
        let stack = |rows| ("a".to_owned(), Stack::of("a.npy", vec![normal(rows, 3, 1)]));
        let refused = |languages: &[(String, Stack)]| {
            language_id(languages, CONFIG, &crate::search::unwatched).unwrap_err().to_string()
        };
        assert!(refused(&[stack(20)]).contains("at least two"));
        let few = refused(&[stack(20), stack(11)]);
        assert!(
            few.contains("a.npy: has 11 different sentences of `a`; give at least 12"),
            "{few}"
        );
    }
}
