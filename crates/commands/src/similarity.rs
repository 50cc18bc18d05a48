//! `isogloss similarity`: measures of the similarity of two sides, layer by layer.

use std::fmt::Write as _;

use crate::measured::Extractor;
use clap::Args;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser as _;
use draw::similarity_figure;
use geometry::similarity::{
    LayerSimilarity, SimilarityConfig, SimilarityMeasure, SimilarityResult, similarity,
};
use serde::Serialize;

use super::cka::{ComparedSides, ComparisonOutput, rows_in_words, subsamples};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::counted;
use crate::request::Request;

const EXAMPLES: &str = "Examples:
  Every measure of parallel text at every layer of a model, and a figure:
    isogloss similarity --model run --parallel fr=fr.txt --parallel en=en.txt --svg layers.svg
  Two measures of two stacks of layers:
    isogloss similarity fr.npy en.npy --measure svcca,mexa
  One layer of two models:
    isogloss similarity --model run-fr --model run-en --parallel fr=fr.txt --parallel en=en.txt \\
      --layers 4 --measure rsa

The same layers of both sides are compared; `cka` compares all layers with all, and debiased. cka (Kornblith et al.
2019), svcca (Raghu et al. 2017, directions with 99 % of the variance), pwcca (Morcos et al. 2018, weighted by the first
side), rsa (Kriegeskorte et al. 2008: Spearman correlation of 1 - Pearson dissimilarities, of at most 500,000 pairs
of sentences) and mutual-nn (Huh et al. 2024: common neighbours among the 10 nearest of the own side) do not change when a
side is rotated. anc (Del & Fishel 2022: mean correlation of each neuron with the same neuron), mexa (Kargaran et
al. 2025: share of pairs that are each other's nearest), weak-alignment and strong-alignment (Roy et al. 2020: share whose
nearest is their translation, among the other side's sentences, and among those of both sides) compare coordinates.
Chance is the mean over five shuffles of the pairs. cka, svcca, pwcca and anc stream rows in bounded memory; the others
hold one layer of both sides.";

#[derive(Args, Serialize)]
#[command(after_help = EXAMPLES)]
pub struct Similarity {
    #[command(flatten)]
    pub sides: ComparedSides,

    /// Which measures; several with commas between [default: all].
    #[arg(long = "measure", value_name = "MEASURE", value_delimiter = ',',
        value_parser = PossibleValuesParser::new(SimilarityMeasure::ALL.map(SimilarityMeasure::name))
            .try_map(|name| name.parse::<SimilarityMeasure>()),
        help_heading = "Evaluation")]
    pub measures: Vec<SimilarityMeasure>,

    /// Subsamples (halves, drawn without replacement) for 95 % intervals; 0 for none. Measures of neighbours are shares,
    /// and have the score interval (Wilson 1927).
    #[arg(long, value_name = "N", default_value = "100", value_parser = subsamples,
        help_heading = "Evaluation")]
    pub subsamples: usize,

    /// Seed of --sample-size, of subsamples, of shuffled pairs and of the pairs that rsa compares.
    #[arg(long, default_value_t = 1, help_heading = "Evaluation")]
    pub seed: u64,

    #[command(flatten)]
    pub output: ComparisonOutput,
}

impl Request for Similarity {
    const NAME: &str = "similarity";
    const REVISION: u32 = 2;
}

impl Similarity {
    pub fn run(self) -> Result<Outcome, Failure> {
        self.output.check()?;
        let measures = match self.measures.as_slice() {
            [] => SimilarityMeasure::ALL.into(),
            chosen => chosen.iter().copied().collect(),
        };
        let config = SimilarityConfig { measures, subsamples: self.subsamples, seed: self.seed };
        let compute = &self.output.compute;
        let ([x, y], counts) = match self.sides.arrays()? {
            Some(stacks) => (stacks, None),
            None => {
                let encoded = self.sides.encode(compute, self.seed)?;
                (encoded.stacks, Some(encoded.counts))
            }
        };
        let watch = counted("layers");
        let result =
            compute.run(|device| similarity(&x, &y, counts, &config, device, &watch))??;
        let outcome = Outcome::new(in_words(&result), &result);
        let figure = || similarity_figure(&result);
        self.output.finish(outcome, figure, Extractor::Measures, &self.sides)
    }
}

fn in_words(result: &SimilarityResult) -> String {
    let mut text = String::new();
    let measures = result.layers.iter().flat_map(|layer| layer.measures.keys().copied());
    let measures: std::collections::BTreeSet<SimilarityMeasure> = measures.collect();
    let name = |layer: &LayerSimilarity| match &layer.name {
        Some(name) => name.clone(),
        None => layer.layer.to_string(),
    };
    for measure in measures {
        let _ = writeln!(text, "{}", measure.title());
        let _ = writeln!(text, "{:>8}{:>8}   {:16}{:>8}", "layer", "value", "95 %", "chance");
        for layer in &result.layers {
            let found = layer.measures[&measure];
            let range = found.interval.map_or("-".to_owned(), |interval| {
                format!("{:.3} to {:.3}", interval.low, interval.high)
            });
            let (value, chance) = (found.value, found.chance);
            let _ = writeln!(text, "{:>8}{value:>8.3}   {range:16}{chance:>8.3}", name(layer));
        }
        text.push('\n');
    }
    text + &rows_in_words(result.counts, result.dims) + &result.signature
}
