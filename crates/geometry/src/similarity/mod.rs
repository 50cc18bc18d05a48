//! Measures of how similar two languages (or two encoders) are, layer by layer, each with a 95 % interval and beside what
//! shuffled pairs give.
//!
//! | measure | what it asks | invariant to |
//! | --- | --- | --- |
//! | `cka` | linear CKA, biased (Kornblith et al. 2019; [`crate::cka`] has all pairs of layers) | rotation, scale |
//! | `svcca` | mean canonical correlation of the directions that hold 99 % of the variance (Raghu et al. 2017) | rotation, scale |
//! | `pwcca` | canonical correlations weighted by what they account for in the first side (Morcos et al. 2018) | linear maps |
//! | `anc` | mean correlation of each neuron with the same neuron (Del & Fishel 2022) | scale of a neuron |
//! | `rsa` | rank correlation of pairwise dissimilarities (Kriegeskorte et al. 2008) | rotation, scale |
//! | `mutual-nn` | share of common nearest neighbours within each side (Huh et al. 2024) | rotation, scale |
//! | `mexa` | share of pairs that are each other's nearest across the sides (Kargaran et al. 2025) | common rotation |
//! | `weak-alignment` | share whose nearest on the other side is their translation (Roy et al. 2020) | common rotation |
//! | `strong-alignment` | the same among the sentences of both sides (Roy et al. 2020) | common rotation |
//!
//! The first four are functions of XᵀX, YᵀY and XᵀY, and rows are streamed (`moments`). The others look at pairs of rows: they
//! hold one layer of both sides at a time and never all scores (`neighbourhoods`), and of dissimilarities at
//! most [`DISSIMILARITIES`] pairs drawn at random (`dissimilarities`).
//!
//! Intervals are those of [`crate::cka`]: the spread over halves of the rows drawn without replacement. Here rows are
//! dealt into [`BLOCKS`] random blocks first and a half is half of the blocks, so that sums are made once for all
//! halves. Measures of neighbours are means of shares over rows, which at 0 and 1 do not spread at all: theirs are score
//! intervals (Wilson 1927), of as many trials as a share with this variance over rows would have.

mod dissimilarities;
mod moments;
mod neighbourhoods;

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use arrays::Stack;
use serde::{Deserialize, Serialize};
use tensor::Device;
use terms::{RowCounts, interrupt};
use text::RandomStreams;

use crate::cka::{SimilarityInterval, check, counts_of_arrays};
use crate::search::Watch;
use crate::{Error, Result};

/// Blocks that rows are dealt into for intervals.
pub const BLOCKS: usize = 20;
/// How often pairs are shuffled for the chance level, which is the mean over all shuffles.
pub const SHUFFLES: usize = 5;
/// The most pairs of rows whose dissimilarities are compared.
pub const DISSIMILARITIES: usize = 500_000;
/// Neighbours of a row that `mutual-nn` compares.
pub const NEIGHBOURS: usize = 10;
/// Fewer rows have no interval: a block needs some.
const FEWEST_WITH_INTERVAL: usize = 2 * BLOCKS;

/// A measure of similarity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SimilarityMeasure {
    /// Linear centred kernel alignment (Kornblith et al. 2019), biased.
    Cka,
    /// Singular vector canonical correlation analysis (Raghu et al. 2017).
    Svcca,
    /// Projection-weighted canonical correlation analysis (Morcos et al. 2018).
    Pwcca,
    /// Average neuron-wise correlation (Del & Fishel 2022).
    Anc,
    /// Representational similarity analysis (Kriegeskorte et al. 2008).
    Rsa,
    /// Mutual nearest neighbours within each side (Huh et al. 2024).
    MutualNn,
    /// The alignment score of MEXA (Kargaran et al. 2025).
    Mexa,
    /// Weak alignment (Roy et al. 2020): retrieval among the sentences of the other side.
    WeakAlignment,
    /// Strong alignment (Roy et al. 2020): retrieval among the sentences of both sides.
    StrongAlignment,
}

terms::named!(SimilarityMeasure {
    Cka => "cka",
    Svcca => "svcca",
    Pwcca => "pwcca",
    Anc => "anc",
    Rsa => "rsa",
    MutualNn => "mutual-nn",
    Mexa => "mexa",
    WeakAlignment => "weak-alignment",
    StrongAlignment => "strong-alignment",
});

impl SimilarityMeasure {
    /// Its name and who proposed it, for readers.
    pub fn title(self) -> &'static str {
        match self {
            Self::Cka => "CKA (Kornblith et al. 2019)",
            Self::Svcca => "SVCCA (Raghu et al. 2017)",
            Self::Pwcca => "PWCCA (Morcos et al. 2018)",
            Self::Anc => "ANC, average neuron-wise correlation (Del & Fishel 2022)",
            Self::Rsa => "RSA (Kriegeskorte et al. 2008)",
            Self::MutualNn => "mutual nearest neighbours (Huh et al. 2024)",
            Self::Mexa => "MEXA (Kargaran et al. 2025)",
            Self::WeakAlignment => "weak alignment (Roy et al. 2020)",
            Self::StrongAlignment => "strong alignment (Roy et al. 2020)",
        }
    }

    /// Whether it compares coordinates, so that both sides need the same dimension.
    fn shares_coordinates(self) -> bool {
        matches!(self, Self::Anc | Self::Mexa | Self::WeakAlignment | Self::StrongAlignment)
    }

    /// The conventions that its value depends on, as a signature names them.
    fn conventions(self) -> String {
        match self {
            Self::Cka => "cka:linear,biased".to_owned(),
            Self::Svcca => "svcca:variance=0.99".to_owned(),
            Self::Pwcca => format!("pwcca:weights=first,rank={:e}", moments::NEGLIGIBLE),
            Self::Anc => "anc:signed".to_owned(),
            Self::Rsa => format!("rsa:1-pearson,spearman,pairs<={DISSIMILARITIES}"),
            Self::MutualNn => format!("mutual-nn:cosine,k={NEIGHBOURS}"),
            Self::Mexa => "mexa:cosine,ties=wrong".to_owned(),
            Self::WeakAlignment => "weak-alignment:cosine,both-ways,ties=wrong".to_owned(),
            Self::StrongAlignment => "strong-alignment:cosine,both-ways,ties=wrong".to_owned(),
        }
    }
}

impl FromStr for SimilarityMeasure {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Self, String> {
        let found = Self::ALL.into_iter().find(|measure| measure.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("there is no measure `{name}`; there are {names}")
        })
    }
}

/// What is computed.
#[derive(Clone, Debug)]
pub struct SimilarityConfig {
    /// The measures.
    pub measures: BTreeSet<SimilarityMeasure>,
    /// Half-samples for intervals; 0 for none.
    pub subsamples: usize,
    /// Seed of the half-samples, of the shuffled pairs and of the pairs whose dissimilarities are compared.
    pub seed: u64,
}

/// A value beside what it is by chance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredSimilarity {
    /// The value; at most 1.
    pub value: f64,
    /// Its 95 % interval, where one was asked for and there are rows enough.
    pub interval: Option<SimilarityInterval>,
    /// The mean value of shuffled pairs.
    pub chance: f64,
}

/// The measures of one layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayerSimilarity {
    /// The layer; 0 is the embeddings.
    pub layer: usize,
    /// Its name, where the file gives it one that is not numeric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The value of each measure.
    pub measures: BTreeMap<SimilarityMeasure, MeasuredSimilarity>,
}

/// How similar the same layers of two stacks are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SimilarityResult {
    /// Each layer.
    pub layers: Vec<LayerSimilarity>,
    /// Rows, and what became of them.
    #[serde(flatten)]
    pub counts: RowCounts,
    /// Dimensions of the first and of the second.
    pub dims: [usize; 2],
    /// Half-samples that the intervals rest on.
    pub subsamples: usize,
    /// Names every convention that a number depends on.
    pub signature: String,
}

/// Compares each layer of a stack with the same layer of another. `watch` is called after each layer.
///
/// # Errors
/// Where the two differ in rows, in layers or, for measures that compare coordinates, in dimension; where nothing varies.
pub fn similarity(
    x: &Stack,
    y: &Stack,
    counts: Option<RowCounts>,
    config: &SimilarityConfig,
    device: &Device,
    watch: Watch<'_>,
) -> Result<SimilarityResult> {
    check(x, y, x.rows())?;
    check_shapes(x, y, config)?;
    let draws = SampleDraws::new(x.rows(), config);
    let mut layers = Vec::new();
    for layer in 0..x.layers() {
        interrupt::check();
        let (number, name) = x.layer_number(layer);
        let measures = of_layer(x, y, layer, config, &draws, device)?;
        layers.push(LayerSimilarity { layer: number, name, measures });
        watch(layer as u64 + 1, x.layers() as u64);
    }
    Ok(SimilarityResult {
        layers,
        counts: counts.map_or_else(|| counts_of_arrays(x, y), Ok)?,
        dims: [x.dim(0), y.dim(0)],
        subsamples: draws.halves.len(),
        signature: signature(config, draws.halves.len()),
    })
}

fn check_shapes(x: &Stack, y: &Stack, config: &SimilarityConfig) -> Result<()> {
    if x.layers() != y.layers() {
        let reason = format!("has {} layers, {} has {}", y.layers(), x.name(), x.layers());
        let remedy = "choose as many layers of both; `cka` compares all with all";
        return Err(Error::input(y.name(), reason, remedy));
    }
    let differs = |layer: &usize| x.dim(*layer) != y.dim(*layer);
    let needs = config.measures.iter().find(|measure| measure.shares_coordinates());
    if let (Some(layer), Some(measure)) = ((0..x.layers()).find(differs), needs) {
        let reason = format!(
            "`{}` compares coordinates, and the sides have {} and {} of them; leave it out",
            measure.name(),
            x.dim(layer),
            y.dim(layer)
        );
        return Err(Error::of_key("measure", reason));
    }
    Ok(())
}

fn signature(config: &SimilarityConfig, halves: usize) -> String {
    let measures = config.measures.iter().map(|measure| measure.conventions());
    let measures: Vec<String> = measures.collect();
    let intervals = match halves {
        0 => "none".to_owned(),
        _ => format!("95%,half-samples={halves},blocks={BLOCKS},neighbours=wilson"),
    };
    format!(
        "similarity|{}|interval:{intervals}|chance:shuffles={SHUFFLES}|seed:{}|v{}",
        measures.join("|"),
        config.seed,
        env!("CARGO_PKG_VERSION")
    )
}

struct SampleDraws {
    /// The block of each row; all 0 without intervals.
    blocks: Vec<u8>,
    /// The blocks of each half-sample.
    halves: Vec<Vec<bool>>,
    /// Shuffled pairs: row i of the first side with this row of the second.
    shuffles: Vec<Vec<u32>>,
    /// The pairs of rows whose dissimilarities are compared; empty where none are asked for.
    pairs: Vec<(u32, u32)>,
}

impl SampleDraws {
    fn new(rows: usize, config: &SimilarityConfig) -> Self {
        let halves = if rows < FEWEST_WITH_INTERVAL { 0 } else { config.subsamples };
        let mut blocks = vec![0; rows];
        if halves > 0 {
            let mut order: Vec<usize> = (0..rows).collect();
            RandomStreams::new(config.seed, "blocks of rows").stream(0).shuffle(&mut order);
            order.iter().enumerate().for_each(|(at, &row)| blocks[row] = (at % BLOCKS) as u8);
        }
        let of_halves = RandomStreams::new(config.seed, "halves of blocks");
        let half = |number: usize| {
            let mut kept: Vec<bool> = (0..BLOCKS).map(|block| block < BLOCKS / 2).collect();
            of_halves.stream(number as u64).shuffle(&mut kept);
            kept
        };
        let shuffled = RandomStreams::new(config.seed, "shuffled pairs");
        let shuffle = |number: usize| {
            let mut order: Vec<u32> = (0..rows as u32).collect();
            shuffled.stream(number as u64).shuffle(&mut order);
            order
        };
        let pairs = match config.measures.contains(&SimilarityMeasure::Rsa) {
            true => dissimilarities::pairs(rows, config.seed),
            false => Vec::new(),
        };
        Self {
            blocks,
            halves: (0..halves).map(half).collect(),
            shuffles: (0..SHUFFLES).map(shuffle).collect(),
            pairs,
        }
    }

    fn block_count(&self) -> usize {
        if self.halves.is_empty() { 1 } else { BLOCKS }
    }
}

/// What the interval of a value comes from.
enum SampledSpread {
    /// Values of the half-samples.
    Halves(Vec<f64>),
    /// It is a share of so many trials.
    Trials(f64),
}

/// A value, how far it spreads, and values of shuffled pairs.
struct SampledValue {
    value: f64,
    spread: SampledSpread,
    shuffled: Vec<f64>,
}

impl SampledValue {
    fn measured(&self, with_interval: bool) -> MeasuredSimilarity {
        let Self { value, spread, shuffled } = self;
        let interval = || match spread {
            SampledSpread::Halves(halves) => halves
                .iter()
                .all(|half| half.is_finite())
                .then(|| SimilarityInterval::around(*value, halves)),
            SampledSpread::Trials(trials) => Some(SimilarityInterval::of_share(*value, *trials)),
        };
        MeasuredSimilarity {
            value: *value,
            interval: with_interval.then(interval).flatten(),
            chance: shuffled.iter().sum::<f64>() / shuffled.len() as f64,
        }
    }
}

fn of_layer(
    x: &Stack,
    y: &Stack,
    layer: usize,
    config: &SimilarityConfig,
    draws: &SampleDraws,
    device: &Device,
) -> Result<BTreeMap<SimilarityMeasure, MeasuredSimilarity>> {
    let sides = LayerSides { x, y, layer };
    let mut found = moments::measure(sides, &config.measures, draws, device)?;
    found.extend(neighbourhoods::measure(sides, &config.measures, draws, device)?);
    if config.measures.contains(&SimilarityMeasure::Rsa) {
        found.push((SimilarityMeasure::Rsa, dissimilarities::measure(sides, draws)?));
    }
    let drawn = !draws.halves.is_empty();
    Ok(found.into_iter().map(|(measure, sampled)| (measure, sampled.measured(drawn))).collect())
}

#[derive(Clone, Copy)]
struct LayerSides<'a> {
    x: &'a Stack,
    y: &'a Stack,
    layer: usize,
}
