//! How a shared space emerges: the space at six moments of training, over the curves of retrieval and of the language's
//! share of variance.

use geometry::projection::{PlaneProjection, principal_plane, remove_lengths};
use train::pretrain::{PretrainError, ProbePoint, ProbeSeries};

use super::curves::{ShareChart, ShareCurve, ShareLevel, row};
use super::findings::{best_layer, of_training};
use super::scatter::{Scatter, extent};
use super::{
    RAW_COLOUR, SpaceFigure, SpaceView, joined_rows, language_legend, language_name, layer_name,
    percent, thousands,
};
use crate::{Figure, Panel};

const MOMENTS: usize = 6;
/// The side of a panel, of which two fit on a phone and six on a page, and the width of a chart, of which two do.
const SIDE: f64 = 166.0;
const CHART: f64 = 550.0;
/// The step from which on the axis is logarithmic.
const LINEAR_UNTIL: f64 = 50.0;

/// Draws what a run has saved while it was trained: raw vectors, at the layer whose raw retrieval is best in the end.
///
/// # Errors
/// Where the saved states cannot be read.
pub fn emergence(series: &ProbeSeries) -> Result<SpaceFigure, PretrainError> {
    let layer = best_layer(&series.points[series.points.len() - 1].raw);
    emergence_of(series, layer, SpaceView::Raw)
}

/// The layer whose raw retrieval is best in the end, and what training did to a layer, in a sentence.
pub fn training_finding(
    points: &[ProbePoint],
    candidates: usize,
    from_random: bool,
    layer: Option<usize>,
) -> (usize, String) {
    let best = best_layer(&points[points.len() - 1].raw);
    (best, of_training(points, layer.unwrap_or(best), candidates, from_random))
}

/// What [`emergence`] draws, at a layer and in a view.
///
/// # Errors
/// Where the saved states cannot be read.
pub fn emergence_of(
    series: &ProbeSeries,
    layer: usize,
    view: SpaceView,
) -> Result<SpaceFigure, PretrainError> {
    let points = &series.points;
    let moments = moments(points, layer);
    let joined = joined_rows(series.pairs.len());
    let mut panels = Vec::new();
    let mut before: Option<PlaneProjection> = None;
    for &moment in &moments {
        let point = &points[moment];
        let mut plane = plane_at(series, point.step, layer, view)?;
        if let Some(before) = &before {
            plane = plane.turned_to(before);
        }
        let name = match point.step {
            0 if series.from_random => "untrained".to_owned(),
            step => format!("step {}", thousands(step)),
        };
        let (raw, share) = (percent(point.raw[layer]), percent(point.language_share[layer]));
        let scatter = Scatter {
            name,
            detail: format!("P@1: {raw} · language: {share}"),
            size: SIDE,
            plane: &plane,
            extent: extent(&plane),
            languages: &series.languages,
            joined: &joined,
            labels: Vec::new(),
        };
        panels.push(scatter.panel());
        before = Some(plane);
    }
    panels.extend(charts(series, layer, &moments));
    let title = of_training(points, layer, series.candidates, series.from_random);
    let figure = Figure {
        id: "emergence".to_owned(),
        title,
        legend: language_legend(&series.languages),
        panels,
    };
    Ok(SpaceFigure { figure, caption: caption(series, layer, view, joined.len()) })
}

fn caption(series: &ProbeSeries, layer: usize, view: SpaceView, joined: usize) -> String {
    let best = layer == best_layer(&series.points[series.points.len() - 1].raw);
    let [a, b] = [0, 1].map(|side| language_name(&series.languages[side]));
    format!(
        "{pairs} sentences of {a} and their translations in {b}: mean vectors of {layer}{best}{view}. \
         Lines join {joined} translation pairs. Each panel is a PCA of its own, at its \
         own scale, with what sentence length explains removed, turned to fit the panel before it. P@1: how often the nearest of \
         {candidates} sentences of the other language is the translation. Language: the share of the variance of all vectors that \
         lies between the two languages' means. The axis is logarithmic; dotted lines mark the panels.",
        pairs = series.pairs.len(),
        layer = match layer {
            0 => "the embeddings".to_owned(),
            layer => layer_name(layer),
        },
        best = if best { ", the layer of the best raw retrieval in the end" } else { "" },
        view = match view {
            SpaceView::Raw => String::new(),
            view => format!(", {}", view.in_words()),
        },
        candidates = thousands(series.candidates as u64),
    )
}

/// The plane of a step: what lengths explain removed, the vectors brought into a view, then PCA.
///
/// # Errors
/// Where the saved states cannot be read.
pub fn plane_at(
    series: &ProbeSeries,
    step: u64,
    layer: usize,
    view: SpaceView,
) -> Result<PlaneProjection, PretrainError> {
    let [mut a, mut b] = series.states(step)?;
    let mut groups = [a.swap_remove(layer), b.swap_remove(layer)];
    let lengths = series.lengths();
    remove_lengths(&mut groups, &[&lengths[0], &lengths[1]]);
    view.apply(&mut groups);
    Ok(principal_plane(&[&groups[0], &groups[1]]))
}

/// The moments that are drawn, by their places: the first, the last, and between them those that divide the path into
/// equal parts, of what changes (retrieval, raw and centred, and language share) and of the axis together, so that panels follow
/// the change and no two are neighbours for long; the moment at which the languages are furthest apart is one of
/// them.
fn moments(points: &[ProbePoint], layer: usize) -> Vec<usize> {
    if points.len() <= MOMENTS {
        return (0..points.len()).collect();
    }
    let place = axis(points);
    let at =
        |point: &ProbePoint| [point.raw[layer], point.centered[layer], point.language_share[layer]];
    let mut path = vec![0.0];
    for pair in points.windows(2) {
        let (a, b) = (at(&pair[0]), at(&pair[1]));
        let change = a.iter().zip(&b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
        path.push(path[path.len() - 1] + change + place(pair[1].step) - place(pair[0].step));
    }
    let last = points.len() - 1;
    let whole = path[last];
    let mut chosen = vec![0];
    for part in 1..MOMENTS - 1 {
        let wanted = whole * part as f64 / (MOMENTS - 1) as f64;
        // Enough must be left for those to come.
        let free = chosen[part - 1] + 1..=last + part + 1 - MOMENTS;
        let nearest =
            free.min_by(|&a, &b| (path[a] - wanted).abs().total_cmp(&(path[b] - wanted).abs()));
        chosen.push(nearest.expect("there are more points than moments"));
    }
    chosen.push(last);
    let share = |&place: &usize| points[place].language_share[layer];
    let peak = (0..points.len()).max_by(|a, b| share(a).total_cmp(&share(b))).unwrap_or(0);
    if !chosen.contains(&peak) {
        let distance = |&number: &usize| (path[chosen[number]] - path[peak]).abs();
        let nearest = (1..MOMENTS - 1).min_by(|a, b| distance(a).total_cmp(&distance(b)));
        chosen[nearest.expect("some between the ends")] = peak;
    }
    chosen
}

/// The place of a step on the axis, from 0 to 1: logarithmic, but for the first steps.
fn axis(points: &[ProbePoint]) -> impl Fn(u64) -> f64 + use<> {
    let last = points[points.len() - 1].step;
    let whole = (last as f64 / LINEAR_UNTIL).ln_1p().max(f64::MIN_POSITIVE);
    move |step: u64| (step as f64 / LINEAR_UNTIL).ln_1p() / whole
}

/// A measure's name, and its value at a probe.
type NamedMeasure<'a> = (&'a str, &'a dyn Fn(&ProbePoint) -> f64);

fn charts(series: &ProbeSeries, layer: usize, moments: &[usize]) -> [Panel; 2] {
    let points = &series.points;
    let place = axis(points);
    let curve = |name: &str, colour: usize, of: &dyn Fn(&ProbePoint) -> f64| ShareCurve {
        name: name.to_owned(),
        colour,
        points: points.iter().map(|point| (place(point.step), of(point))).collect(),
    };
    let rows = |measures: &[NamedMeasure<'_>]| {
        let of_point = |point: &ProbePoint| {
            let of = |(measure, of): &NamedMeasure<'_>| {
                row("step", point.step.to_string(), measure, of(point))
            };
            measures.iter().map(of).collect::<Vec<_>>()
        };
        points.iter().flat_map(of_point).collect()
    };
    let ticks: Vec<(f64, String)> = moments
        .iter()
        .map(|&moment| points[moment].step)
        .map(|step| (place(step), thousands(step)))
        .collect();
    let first = &points[0];
    let untrained =
        |share: f64| series.from_random.then(|| ShareLevel { name: "untrained".to_owned(), share });
    let chance =
        ShareLevel { name: "chance".to_owned(), share: 1.0 / series.candidates.max(1) as f64 };
    let (raw, centered) = (|p: &ProbePoint| p.raw[layer], |p: &ProbePoint| p.centered[layer]);
    let share = |p: &ProbePoint| p.language_share[layer];
    let chart = |title: String, curves, levels: Vec<ShareLevel>, data| ShareChart {
        title,
        width: CHART,
        across: "training step".to_owned(),
        ticks: ticks.clone(),
        ruled: true,
        curves,
        levels,
        data,
    };
    let retrieval = chart(
        format!("Translations found among {} sentences (P@1)", thousands(series.candidates as u64)),
        vec![curve("raw", RAW_COLOUR, &raw), curve("mean-centred", RAW_COLOUR + 1, &centered)],
        untrained(raw(first)).into_iter().chain([chance]).collect(),
        rows(&[("raw retrieval", &raw), ("centred retrieval", &centered)]),
    );
    let variance = chart(
        "The language's share of variance".to_owned(),
        vec![curve("language", 4, &share)],
        untrained(share(first)).into_iter().collect(),
        rows(&[("language share of variance", &share)]),
    );
    [retrieval.panel(), variance.panel()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(shares: &[f64]) -> Vec<ProbePoint> {
        let point = |(number, &share): (usize, &f64)| ProbePoint {
            step: 100 * number as u64,
            raw: vec![0.0],
            centered: vec![0.0],
            language_share: vec![share],
        };
        shares.iter().enumerate().map(point).collect()
    }

    /// Six moments from the first to the last, in order, with the peak among them, whatever the curve.
    #[test]
    fn moments_follow_what_changes() {
        let still = points(&[0.1; 16]);
        let rising: Vec<f64> = (0..16).map(|i| f64::from(i) / 20.0).collect();
        let mut peaked = vec![0.05; 20];
        peaked[3] = 0.9;
        for series in [still, points(&rising), points(&peaked)] {
            let chosen = moments(&series, 0);
            assert_eq!((chosen.len(), chosen[0], chosen[5]), (6, 0, series.len() - 1));
            assert!(chosen.windows(2).all(|pair| pair[0] < pair[1]), "{chosen:?}");
        }
        assert!(moments(&points(&peaked), 0).contains(&3));
        assert_eq!(moments(&points(&[0.1, 0.2]), 0), [0, 1]);
    }
}
