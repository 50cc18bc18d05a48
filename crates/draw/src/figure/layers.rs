//! What the layers of one encoder do: a panel each, on a plane of which one axis is the difference of the languages' means.

use arrays::Matrix;
use geometry::projection::{
    PlaneProjection, mean_difference_plane, remove_lengths, variance_between,
};
use geometry::retrieval::{Ties, accuracy};
use geometry::search::Measure;
use geometry::{Step, normalize};
use models::sentences::EncodedPairs;
use tensor::Device;
use train::pretrain::{PretrainError, ProbeSeries};

use super::findings::of_layers;
use super::scatter::{Scatter, extent};
use super::{
    SpaceFigure, joined_rows, language_legend, language_name, layer_name, percent, thousands,
};
use crate::Figure;

const SIDE: f64 = 166.0;
const DRAWN: usize = 200;

/// Parallel sentences at some layers of an encoder, with what was measured there.
#[derive(Clone, Debug)]
pub struct LayeredSpace {
    /// The model, as a caption names it.
    pub model: String,
    pub languages: [String; 2],
    /// The numbers of the layers; 0 is the embeddings.
    pub numbers: Vec<usize>,
    /// For each language and layer: pairs x dim.
    pub states: [Vec<Matrix>; 2],
    /// Tokens of each sentence, by language.
    pub lengths: [Vec<usize>; 2],
    /// How many sentences retrieval chooses from.
    pub candidates: usize,
    pub raw: Vec<f64>,
    /// The share of variance between the languages at each layer.
    pub language_share: Vec<f64>,
    /// Raw retrieval accuracy of each layer of the same encoder untrained, where it is known.
    pub untrained: Option<Vec<f64>>,
}

impl LayeredSpace {
    /// What a run has saved after an update.
    ///
    /// # Errors
    /// Where nothing was saved after it, or cannot be read.
    pub fn of_series(series: &ProbeSeries, step: u64) -> Result<Self, PretrainError> {
        let states = series.states(step)?;
        let point = series.points.iter().find(|point| point.step == step);
        let point = point.expect("states of a step have its measures beside them");
        let first = &series.points[0];
        Ok(Self {
            model: format!("step {}", thousands(step)),
            languages: series.languages.clone(),
            numbers: (0..series.layers()).collect(),
            states,
            lengths: series.lengths(),
            candidates: series.candidates,
            raw: point.raw.clone(),
            language_share: point.language_share.clone(),
            untrained: (series.from_random && first.step == 0).then(|| first.raw.clone()),
        })
    }

    /// Parallel sentences that a model has encoded, at these layers.
    ///
    /// # Errors
    /// Where vectors cannot be read.
    pub fn of_pairs(
        model: &str,
        encoded: &EncodedPairs,
        numbers: &[usize],
        device: &Device,
    ) -> arrays::Result<Self> {
        let whole = |side: usize| -> arrays::Result<Vec<Matrix>> {
            (0..numbers.len()).map(|layer| encoded.stacks[side].whole(layer)).collect()
        };
        let states = [whole(0)?, whole(1)?];
        let rows: Vec<(u32, u32)> = (0..states[0][0].rows() as u32).map(|row| (row, row)).collect();
        let pairs = || states[0].iter().zip(&states[1]);
        let raw = pairs().map(|(a, b)| {
            accuracy(a.clone(), b.clone(), &rows, Measure::Cosine, Ties::Wrong, device).mean
        });
        Ok(Self {
            model: model.to_owned(),
            languages: [0, 1].map(|side| encoded.sides[side].language.clone()),
            numbers: numbers.to_vec(),
            lengths: [0, 1]
                .map(|side| encoded.lengths[side].iter().map(|&length| length as usize).collect()),
            candidates: rows.len(),
            raw: raw.collect(),
            language_share: pairs().map(|(a, b)| variance_between(&[a, b])).collect(),
            untrained: None,
            states,
        })
    }

    /// The plane of a layer, its within-language standard deviation as the unit.
    fn plane(&self, layer: usize) -> PlaneProjection {
        let drawn = self.states[0][layer].rows().min(DRAWN);
        let mut groups = [0, 1].map(|side| self.states[side][layer].head(drawn));
        let lengths = [0, 1].map(|side| &self.lengths[side][..drawn]);
        remove_lengths(&mut groups, &lengths);
        let unit = within(&groups).max(f64::MIN_POSITIVE);
        let mut plane = mean_difference_plane([&groups[0], &groups[1]]);
        plane.groups.iter_mut().flatten().flatten().for_each(|x| *x /= unit);
        plane
    }
}

/// The standard deviation of all points from the mean of their language.
fn within(groups: &[Matrix; 2]) -> f64 {
    let mut squares = 0.0;
    for group in groups {
        let mut centred = group.clone();
        normalize(&mut centred, &[Step::Center]);
        squares += centred.values().iter().map(|&x| f64::from(x).powi(2)).sum::<f64>();
    }
    (squares / (2 * groups[0].rows().max(1)) as f64).sqrt()
}

pub fn layers(space: &LayeredSpace) -> SpaceFigure {
    let mut planes: Vec<PlaneProjection> = Vec::new();
    for layer in 0..space.numbers.len() {
        let plane = space.plane(layer);
        planes.push(match planes.last() {
            Some(before) => upright(plane, before),
            None => plane,
        });
    }
    let joined = joined_rows(planes[0].groups[0].len());
    // One scale for all, so that distances between the languages can be compared.
    let extent = planes.iter().map(extent).fold(0.0, f64::max);
    let panels = planes.iter().enumerate().map(|(layer, plane)| {
        let (raw, share) = (percent(space.raw[layer]), percent(space.language_share[layer]));
        let scatter = Scatter {
            name: layer_name(space.numbers[layer]),
            detail: format!("P@1: {raw} · language: {share}"),
            size: SIDE,
            plane,
            extent,
            languages: &space.languages,
            joined: &joined,
            labels: Vec::new(),
        };
        scatter.panel()
    });
    let panels = panels.collect();
    let (numbers, untrained) = (&space.numbers, space.untrained.as_deref());
    let title = of_layers(numbers, &space.raw, &space.language_share, space.candidates, untrained);
    let figure = Figure {
        id: "layers".to_owned(),
        title,
        legend: language_legend(&space.languages),
        panels,
    };
    let [a, b] = [0, 1].map(|side| language_name(&space.languages[side]));
    let caption = format!(
        "{drawn} sentences of {a} and their translations in {b}, {model}. Across: the difference of the two languages' means, an axis \
         that is supervised (it is chosen by the language labels, so the clouds part wherever the means differ at all). Up: the \
         direction of greatest variance within the languages. What sentence length explains is removed; one unit, the standard \
         deviation within the languages, is the same in all panels. Lines join {joined} translation pairs. P@1: how often the nearest of \
         {candidates} sentences of the other language is the translation (chance {chance}). Language: the share of variance between \
         the languages' means.",
        drawn = planes[0].groups[0].len(),
        model = space.model,
        joined = joined.len(),
        candidates = thousands(space.candidates as u64),
        chance = percent(1.0 / space.candidates.max(1) as f64),
    );
    SpaceFigure { figure, caption }
}

/// The plane with its second axis turned so that points lie as in the plane before: its sign has no meaning.
fn upright(mut plane: PlaneProjection, before: &PlaneProjection) -> PlaneProjection {
    let pairs = plane.groups.iter().flatten().zip(before.groups.iter().flatten());
    if pairs.map(|(a, b)| a[1] * b[1]).sum::<f64>() < 0.0 {
        plane.groups.iter_mut().flatten().for_each(|point| point[1] = -point[1]);
    }
    plane
}
