//! The language in the vector: how well a linear probe tells which language a sentence is in, layer by layer, and what is left
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
//! Beside the probe stand the share of the most frequent language and a probe that was trained and tested on shuffled labels;
//! beside both, the share of variance that lies between languages.

mod probe;
mod removal;

use arrays::{Matrix, Stack};
use serde::{Deserialize, Serialize};
use terms::interrupt;
use text::RandomStreams;

pub use removal::{leading_subspace, mean_subspace, subspace_of_means};

use crate::cka::SimilarityInterval;
use crate::error::{Error, Result};
use crate::projection::variance_between;
use crate::retrieval::check_layers;
use crate::search::Watch;
use probe::LinearProbe;
use removal::Removal;

/// The fewest sentences of a language.
const FEWEST: usize = 12;

/// What is computed.
#[derive(Clone, Copy, Debug)]
pub struct LanguageIdConfig {
    /// How many leading principal directions are removed.
    pub directions: usize,
    /// Seed of the split into training and test sentences, and of the shuffled labels.
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
}

/// What is left of the language after a treatment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TreatedLanguageId {
    /// `raw`, `centered`, `lsar` or `without-k`.
    pub treatment: String,
    /// The share of test sentences whose language the probe tells.
    pub accuracy: f64,
    /// Its 95 % interval (Wilson 1927).
    pub interval: SimilarityInterval,
    /// The accuracy of a probe that was trained and tested on shuffled labels.
    pub shuffled: f64,
    /// The share of the variance of test sentences that lies between languages.
    pub variance_between: f64,
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
    /// The share of variance that would lie between languages if labels were random.
    pub variance_chance: f64,
    /// Each layer.
    pub layers: Vec<LayerLanguageId>,
    /// Names every convention that a number depends on.
    pub signature: String,
}

/// Probes each layer of the vectors of some languages. One layer of all languages is in memory at a time. `watch` is called after
/// each layer.
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
    let rows: Vec<[Vec<usize>; 3]> =
        languages.iter().map(|(_, stack)| split(stack.rows(), config.seed)).collect();
    let mut layers = Vec::new();
    for layer in 0..first.layers() {
        interrupt::check();
        let name = first.layer_name(layer);
        let (number, name) = match name.parse() {
            Ok(number) => (number, None),
            Err(_) => (layer, Some(name.to_owned())),
        };
        let read = |((_, stack), rows): (&(String, Stack), &[Vec<usize>; 3])| -> Result<_> {
            let whole = stack.whole(layer)?;
            Ok([0, 1, 2].map(|part: usize| whole.select(rows[part].iter().copied())))
        };
        let parts = languages.iter().zip(&rows).map(read).collect::<Result<Vec<_>>>()?;
        let mut sentences = LabelledSentences::default();
        for [fitted, train, test] in parts {
            sentences.fitted.push(fitted);
            sentences.train.push(train);
            sentences.test.push(test);
        }
        layers.push(LayerLanguageId {
            layer: number,
            name,
            treatments: sentences.treated(config)?,
        });
        watch(layer as u64 + 1, first.layers() as u64);
    }
    let counts: Vec<LanguageRows> = languages
        .iter()
        .zip(&rows)
        .map(|((language, _), [fitted, train, test])| LanguageRows {
            language: language.clone(),
            fitted: fitted.len(),
            train: train.len(),
            test: test.len(),
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
            "language-id:logistic,l2=1/n,standardized|split:thirds|lsar:rank=languages-1|seed:{}|v{}",
            config.seed,
            env!("CARGO_PKG_VERSION")
        ),
    })
}

fn check(languages: &[(String, Stack)]) -> Result<()> {
    let [(_, first), others @ ..] = languages else {
        return Err(Error::request("text", "there is no language; give at least two"));
    };
    if others.is_empty() {
        return Err(Error::request("text", "there is one language only; give at least two"));
    }
    for (language, stack) in languages {
        check_layers(first, stack)?;
        if stack.rows() < FEWEST {
            let reason = format!("has {} sentences of `{language}`", stack.rows());
            return Err(Error::input(
                stack.name(),
                reason,
                "give at least 12; hundreds are better",
            ));
        }
    }
    Ok(())
}

/// The rows that treatments are learned from, that a probe is trained on and that it is tested on, a third each. Languages of as
/// many sentences are split alike, so that a sentence and its translation are not parted.
fn split(rows: usize, seed: u64) -> [Vec<usize>; 3] {
    let streams = RandomStreams::new(seed, "rows of a language-ID probe");
    let mut order: Vec<usize> = (0..rows).collect();
    order.sort_by_key(|&row| streams.rank(row as u64));
    let ends = [0, rows / 3, 2 * rows / 3, rows];
    [0, 1, 2].map(|part| {
        let mut own = order[ends[part]..ends[part + 1]].to_vec();
        own.sort_unstable();
        own
    })
}

/// Vectors of each language: those that treatments are learned from, those that a probe is trained on, and those that it is tested
/// on.
#[derive(Default)]
struct LabelledSentences {
    fitted: Vec<Matrix>,
    train: Vec<Matrix>,
    test: Vec<Matrix>,
}

impl LabelledSentences {
    fn treated(&self, config: LanguageIdConfig) -> Result<Vec<TreatedLanguageId>> {
        let removals = [
            ("raw".to_owned(), Removal::Nothing),
            ("centered".to_owned(), Removal::means(&self.fitted)),
            ("lsar".to_owned(), Removal::Subspace(mean_subspace(&self.fitted))),
            (
                format!("without-{}", config.directions),
                Removal::Subspace(leading_subspace(&self.fitted, config.directions)),
            ),
        ];
        let treated = |(treatment, removal): (String, Removal)| {
            let apply = |matrices: &[Matrix]| -> Vec<Matrix> {
                let of = |(at, matrix): (usize, &Matrix)| removal.apply(at, matrix);
                matrices.iter().enumerate().map(of).collect()
            };
            let (train, test) = (apply(&self.train), apply(&self.test));
            let labels = |matrices: &[Matrix]| -> Vec<u32> {
                let of = |(at, one): (usize, &Matrix)| vec![at as u32; one.rows()];
                matrices.iter().enumerate().flat_map(of).collect()
            };
            let (own, tested) = (labels(&train), labels(&test));
            let accuracy = |own: &[u32], tested: &[u32]| {
                LinearProbe::train(&train, own, train.len()).accuracy(&test, tested)
            };
            let streams = RandomStreams::new(config.seed, "shuffled labels");
            let shuffled = |labels: &[u32], number: u64| {
                let mut labels = labels.to_vec();
                streams.stream(number).shuffle(&mut labels);
                labels
            };
            let found = accuracy(&own, &tested);
            TreatedLanguageId {
                treatment,
                accuracy: found,
                interval: wilson(found, tested.len() as f64),
                shuffled: accuracy(&shuffled(&own, 0), &shuffled(&tested, 1)),
                variance_between: variance_between(&test.iter().collect::<Vec<_>>()),
            }
        };
        Ok(removals.into_iter().map(treated).collect())
    }
}

/// The 95 % score interval of a share (Wilson 1927).
fn wilson(share: f64, n: f64) -> SimilarityInterval {
    const Z: f64 = 1.959_963_985;
    let square = Z * Z;
    let centre = (share + square / (2.0 * n)) / (1.0 + square / n);
    let half = Z / (1.0 + square / n) * (share * (1.0 - share) / n + square / (4.0 * n * n)).sqrt();
    SimilarityInterval { low: centre - half, high: centre + half }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against `statsmodels.stats.proportion.proportion_confint(45, 50, method="wilson")`.
    #[test]
    fn intervals_are_wilsons() {
        let interval = wilson(0.9, 50.0);
        assert!((interval.low - 0.786_397).abs() < 1e-5, "{interval:?}");
        assert!((interval.high - 0.956_524).abs() < 1e-5, "{interval:?}");
    }

    #[test]
    fn a_row_is_in_one_part() {
        let parts = split(101, 1);
        assert_eq!([0, 1, 2].map(|part: usize| parts[part].len()), [33, 34, 34]);
        let mut all = parts.concat();
        all.sort_unstable();
        assert_eq!(all, (0..101).collect::<Vec<_>>());
        assert_ne!(split(101, 2), parts);
    }

    /// Two languages that differ by their means alone: centring and the removal of their subspace leave nothing to tell.
    #[test]
    fn what_means_alone_tell_is_removed() {
        let mut stream = RandomStreams::new(1, "test").stream(0);
        let mut draw = |offset: f32| {
            let row = |_| {
                let mut row = [0.0_f32; 4];
                row.iter_mut().for_each(|x| *x = stream.unit() as f32 - 0.5);
                row[1] += offset;
                row
            };
            Matrix::new(400, 4, (0..400).flat_map(row).collect())
        };
        let sides = [("a", draw(0.0)), ("b", draw(2.0))];
        let stacks = sides.map(|(name, side)| (name.to_owned(), Stack::of(name, vec![side])));
        let config = LanguageIdConfig { directions: 1, seed: 1 };
        let found = language_id(&stacks, config, &crate::search::unwatched).unwrap();
        let [raw, centred, lsar, leading] = found.layers[0].treatments.as_slice() else { panic!() };
        assert_eq!(found.chance, 0.5);
        assert!(raw.accuracy > 0.99 && raw.variance_between > 0.5, "{raw:?}");
        for one in [centred, lsar, leading] {
            assert!((one.accuracy - 0.5).abs() < 0.15, "{one:?}");
            assert!(one.variance_between < 0.02, "{one:?}");
        }
        assert!((raw.shuffled - 0.5).abs() < 0.12 && raw.interval.low < raw.accuracy);
        let alone = language_id(&stacks[..1], config, &crate::search::unwatched);
        assert!(alone.unwrap_err().to_string().contains("at least two"));
    }
}
