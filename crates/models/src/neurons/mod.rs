//! Language-specific neurons of the feed-forward layers, and what the model loses without them (Tang et al. 2024).
//!
//! A neuron is a column of a layer's first feed-forward map; it is active on a token where its activation is above 0, which for
//! GELU, ReLU and SiLU is where the pre-activation is. From the share of a language's tokens on which a neuron is active,
//! [`lape()`] chooses the neurons that are active in few languages. They are found on one half of the sentences. On the other
//! half, 15 % of the tokens are masked, and the MLM loss is measured with all neurons, without those of each language (their
//! activations set to 0), and without as many random neurons of the same layers that are specific to no language: without
//! the last, a higher loss would only say that neurons were missing.
//!
//! Layers that each language has for itself have no neurons in common and are left out.

mod ablation;
mod activations;
mod lape;

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use terms::interrupt;
use text::RandomStreams;

pub use ablation::{Neuron, masked_loss, without_neurons};
pub use activations::{ActivationCounts, activation_counts};
pub use lape::{NeuronSelection, lape};

use crate::error::{Error, Result};
use crate::masked::MaskedSentences;
use crate::parallel::ParallelSide;
use crate::pretrained::PretrainedModel;

/// The fewest different sentences of a language.
const FEWEST: usize = 12;

/// What is computed.
#[derive(Clone, Copy, Debug)]
pub struct LanguageNeuronsConfig {
    /// The share of all neurons that are chosen, those of the lowest entropy; Tang et al. 2024 take 0.01.
    pub share: f64,
    /// How many times random neurons are drawn.
    pub draws: u64,
    /// Seed of the halves, of the masks and of the random neurons.
    pub seed: u64,
}

/// A language, its text, and how well its tokens are predicted with all neurons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NeuronsOfLanguage {
    /// The language.
    pub language: String,
    /// How many neurons are specific to it.
    pub neurons: usize,
    /// Tokens on which activations were counted, special tokens not among them.
    pub tokens: u64,
    /// Tokens of other sentences that were masked.
    pub masked: u64,
    /// The MLM loss of these with all neurons, in nats; none for a model without an MLM head.
    pub loss: Option<f64>,
}

/// The language-specific neurons of a layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayerNeurons {
    /// The layer, counted from 1.
    pub layer: usize,
    /// How many neurons it has.
    pub neurons: usize,
    /// The mean of their entropies, in nats; of as many languages at most the logarithm of their number.
    pub entropy: f64,
    /// Those specific to each language, in the order of the languages.
    pub specific: Vec<Vec<usize>>,
}

/// The neurons that are specific to both of two languages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NeuronOverlap {
    /// The two languages.
    pub languages: [String; 2],
    /// How many there are.
    pub both: usize,
    /// Their share of those specific to either (Jaccard index); none where there are none.
    pub jaccard: Option<f64>,
}

/// The MLM loss of a language without the neurons of another one, or without its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NeuronAblation {
    /// The language whose neurons were set to 0.
    pub ablated: String,
    /// The language whose masked tokens were predicted.
    pub measured: String,
    /// The loss without these neurons, in nats.
    pub loss: f64,
    /// The losses without as many random neurons of the same layers, one for each draw.
    pub random: Vec<f64>,
}

impl NeuronAblation {
    /// The mean loss over draws of random neurons; none without draws.
    pub fn random_mean(&self) -> Option<f64> {
        let draws = self.random.len();
        (draws > 0).then(|| self.random.iter().sum::<f64>() / draws as f64)
    }
}

/// Which neurons are language-specific, and what depends on them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LanguageNeuronsResult {
    /// The languages.
    pub languages: Vec<NeuronsOfLanguage>,
    /// The activation probability that a neuron must exceed in a language to be specific to it.
    pub threshold: f64,
    /// Each layer that the languages share.
    pub layers: Vec<LayerNeurons>,
    /// Each two languages.
    pub overlaps: Vec<NeuronOverlap>,
    /// Each language's neurons, and each language's loss without them; empty for a model without an MLM head.
    pub ablations: Vec<NeuronAblation>,
    /// Names every convention that a number depends on.
    pub signature: String,
}

/// Finds the language-specific neurons of a model, and measures what each language's predictions lose without them. `watch` is
/// called after each forward pass over a language's sentences.
///
/// # Errors
/// Where there are fewer than two languages, too few sentences, no layer that the languages share, or a share that is none.
pub fn language_neurons(
    model: &mut PretrainedModel,
    sides: &[ParallelSide],
    config: LanguageNeuronsConfig,
    watch: &(dyn Fn(u64, u64) + Sync),
) -> Result<LanguageNeuronsResult> {
    check(sides, config)?;
    let halves =
        sides.iter().map(|side| halves(model, side, config.seed)).collect::<Result<Vec<_>>>()?;
    let (passes, mut done) = (Passes::of(sides.len(), config.draws, model.has_mlm_head), 0);
    let mut step = || {
        interrupt::check();
        done += 1;
        watch(done, passes.0);
    };
    let mut counts = Vec::new();
    for half in &halves {
        counts.push(activation_counts(model, half.language, &half.identified)?);
        step();
    }
    let chosen =
        lape(&counts.iter().map(ActivationCounts::probabilities).collect::<Vec<_>>(), config.share);
    let neurons = SpecificNeurons::new(&counts[0], &chosen);
    let mut result = neurons.described(sides, &counts, &chosen, config);
    if model.has_mlm_head {
        let losses = measure(model, &halves, &neurons, config, &mut step);
        for (one, (masked, loss)) in result.languages.iter_mut().zip(&losses.whole) {
            (one.masked, one.loss) = (*masked, Some(*loss));
        }
        let names: Vec<&str> = sides.iter().map(|side| side.language.as_str()).collect();
        result.ablations = losses.named(&names);
    }
    Ok(result)
}

fn check(sides: &[ParallelSide], config: LanguageNeuronsConfig) -> Result<()> {
    if sides.len() < 2 {
        let reason = format!("there are {} languages; give at least two", sides.len());
        return Err(Error::of_key("text", reason));
    }
    if !(config.share > 0.0 && config.share <= 0.2) {
        let reason =
            format!("a share of {} of the neurons; take one above 0, at most 0.2", config.share);
        return Err(Error::of_key("share", reason));
    }
    Ok(())
}

/// How many forward passes over a language's sentences there will be.
struct Passes(u64);

impl Passes {
    fn of(languages: usize, draws: u64, has_mlm_head: bool) -> Self {
        let languages = languages as u64;
        let ablated =
            if has_mlm_head { languages + languages * languages * (1 + draws) } else { 0 };
        Self(languages + ablated)
    }
}

/// The sentences of a language as vocabulary ids.
struct SentenceHalves {
    language: usize,
    /// Those on which neurons are identified.
    identified: Vec<Vec<u32>>,
    /// Those on which losses are measured.
    measured: MaskedSentences,
}

/// Tokenizes the different sentences of a language and parts them. Lines are parted by their number, so that translations stay together.
fn halves(model: &PretrainedModel, side: &ParallelSide, seed: u64) -> Result<SentenceHalves> {
    let mut seen = FxHashSet::default();
    let lines = &side.lines;
    let mut rows: Vec<usize> = (0..lines.len())
        .filter(|&row| !lines[row].is_empty() && seen.insert(lines[row].as_str()))
        .collect();
    if rows.len() < FEWEST {
        let reason = format!("has {} different sentences of `{}`", rows.len(), side.language);
        return Err(Error::input(&side.file, reason, "give at least 12; hundreds are better"));
    }
    let streams = RandomStreams::new(seed, "halves of sentences for neurons");
    rows.sort_by_key(|&row| streams.rank(row as u64));
    let mut reader = model.reader(&side.language)?;
    let mut ids = |rows: &[usize]| -> Vec<Vec<u32>> {
        rows.iter().map(|&row| reader.sentence(&lines[row]).ids).collect()
    };
    let (first, second) = rows.split_at(rows.len() / 2);
    let (identified, measured) = (ids(first), ids(second));
    let measured = MaskedSentences::new(&model.vocabulary, &measured, seed);
    Ok(SentenceHalves { language: reader.language(), identified, measured })
}

/// The neurons of each language by layer.
struct SpecificNeurons {
    /// The number of each layer that is shared.
    layers: Vec<usize>,
    /// Neurons of a layer.
    width: usize,
    /// Of each language, in ascending order.
    specific: Vec<Vec<Neuron>>,
}

impl SpecificNeurons {
    fn new(counts: &ActivationCounts, chosen: &NeuronSelection) -> Self {
        let (layers, width) = (counts.layers.clone(), counts.width);
        let place = |&at: &usize| Neuron { layer: layers[at / width], neuron: at % width };
        let specific = chosen.specific.iter().map(|of| of.iter().map(place).collect()).collect();
        Self { layers, width, specific }
    }

    /// The result without ablations.
    fn described(
        &self,
        sides: &[ParallelSide],
        counts: &[ActivationCounts],
        chosen: &NeuronSelection,
        config: LanguageNeuronsConfig,
    ) -> LanguageNeuronsResult {
        let languages = sides.iter().zip(counts).zip(&self.specific);
        let languages = languages.map(|((side, counts), specific)| NeuronsOfLanguage {
            language: side.language.clone(),
            neurons: specific.len(),
            tokens: counts.tokens,
            masked: 0,
            loss: None,
        });
        let layers = self.layers.iter().zip(chosen.entropies.chunks(self.width));
        let layers = layers.map(|(&layer, entropies)| LayerNeurons {
            layer,
            neurons: self.width,
            entropy: entropies.iter().sum::<f64>() / self.width as f64,
            specific: self.specific.iter().map(|of| in_layer(of, layer)).collect(),
        });
        let pairs = (0..sides.len()).flat_map(|a| (a + 1..sides.len()).map(move |b| (a, b)));
        let overlaps = pairs.map(|(a, b)| {
            let own: FxHashSet<&Neuron> = self.specific[a].iter().collect();
            let both = self.specific[b].iter().filter(|neuron| own.contains(neuron)).count();
            let either = self.specific[a].len() + self.specific[b].len() - both;
            NeuronOverlap {
                languages: [a, b].map(|at| sides[at].language.clone()),
                both,
                jaccard: (either > 0).then(|| both as f64 / either as f64),
            }
        });
        LanguageNeuronsResult {
            languages: languages.collect(),
            threshold: chosen.threshold,
            layers: layers.collect(),
            overlaps: overlaps.collect(),
            ablations: Vec::new(),
            signature: format!(
                "language-neurons:lape|active:activation>0|share:{}|threshold:q95|ablation:zero|random:same-layers,{}|masked:15%|split:halves|seed:{}|v{}",
                config.share,
                config.draws,
                config.seed,
                env!("CARGO_PKG_VERSION")
            ),
        }
    }

    /// As many neurons of the same layers as a language has, drawn from those that are specific to none (of a layer that has too
    /// few of these, all).
    fn random(&self, language: usize, seed: u64, draw: u64) -> Vec<Neuron> {
        let taken: FxHashSet<&Neuron> = self.specific.iter().flatten().collect();
        let streams = RandomStreams::new(seed, &format!("random neurons {draw}"));
        let mut drawn = Vec::new();
        for &layer in &self.layers {
            let wanted = in_layer(&self.specific[language], layer).len();
            let free = (0..self.width).map(|neuron| Neuron { layer, neuron });
            let mut free: Vec<Neuron> = free.filter(|neuron| !taken.contains(neuron)).collect();
            streams.stream((language * self.layers.len() + layer) as u64).shuffle(&mut free);
            drawn.extend(free.into_iter().take(wanted));
        }
        drawn
    }
}

/// The numbers of the neurons that stand in a layer.
fn in_layer(neurons: &[Neuron], layer: usize) -> Vec<usize> {
    neurons.iter().filter(|neuron| neuron.layer == layer).map(|neuron| neuron.neuron).collect()
}

/// Losses by the numbers of the languages.
struct MaskedLosses {
    /// Masked tokens and loss of each language with all neurons.
    whole: Vec<(u64, f64)>,
    /// Of each ablated language: the losses of every language without its neurons, and without random ones, draw by draw.
    ablated: Vec<(Vec<f64>, Vec<Vec<f64>>)>,
}

impl MaskedLosses {
    fn named(&self, names: &[&str]) -> Vec<NeuronAblation> {
        let pairs = (0..names.len()).flat_map(|a| (0..names.len()).map(move |b| (a, b)));
        pairs
            .map(|(ablated, measured)| {
                let (own, random) = &self.ablated[ablated];
                NeuronAblation {
                    ablated: names[ablated].to_owned(),
                    measured: names[measured].to_owned(),
                    loss: own[measured],
                    random: random.iter().map(|draw| draw[measured]).collect(),
                }
            })
            .collect()
    }
}

fn measure(
    model: &mut PretrainedModel,
    halves: &[SentenceHalves],
    neurons: &SpecificNeurons,
    config: LanguageNeuronsConfig,
    step: &mut dyn FnMut(),
) -> MaskedLosses {
    let mut all = |model: &mut PretrainedModel| -> Vec<(u64, f64)> {
        let mut of = |half: &SentenceHalves| {
            let found = masked_loss(model, half.language, &half.measured);
            step();
            found
        };
        halves.iter().map(&mut of).collect()
    };
    let whole = all(model);
    let mut losses = |model: &mut PretrainedModel, neurons: &[Neuron]| -> Vec<f64> {
        let found = without_neurons(model, neurons, &mut all);
        found.into_iter().map(|(_, loss)| loss).collect()
    };
    let mut ablated = Vec::new();
    for (language, own) in neurons.specific.iter().enumerate() {
        let own = losses(model, own);
        let draws = 0..config.draws;
        let draws = draws.map(|draw| neurons.random(language, config.seed, draw));
        ablated.push((own, draws.map(|neurons| losses(model, &neurons)).collect()));
    }
    MaskedLosses { whole, ablated }
}
