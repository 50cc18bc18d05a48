//! The figures of similarity: a heatmap of CKA, layers by layers, and measures over layers.

use geometry::cka::CkaResult;
use geometry::similarity::{SimilarityMeasure, SimilarityResult};

use super::{Chart, ChartPoint, Figure, Heatmap, LineChart, LineSeries};

/// Both sides of a comparison: what each is called, and its layers.
pub type ComparedSides = [(String, Vec<String>); 2];

/// Draws all pairs of layers: debiased values, or the biased ones where rows were centred within groups.
pub fn cka_figure(result: &CkaResult, sides: ComparedSides) -> Figure {
    let within = result.debiased.iter().flatten().all(Option::is_none);
    let some = |row: &Vec<f64>| row.iter().map(|&value| Some(value)).collect();
    let [x, y] = sides;
    let [a, b] = result.dims;
    let kind = if within { "linear CKA within groups" } else { "debiased linear CKA" };
    let title = format!("{} and {}: {kind}", x.0, y.0);
    let of = |(name, layers): (String, Vec<String>)| (format!("layers of {name}"), layers);
    let map = Heatmap {
        title: format!("n = {}, d = {a} and {b}", result.counts.used),
        down: of(x),
        across: of(y),
        values: match within {
            true => result.cka.iter().map(some).collect(),
            false => result.debiased.clone(),
        },
        range: (0.0, 1.0),
    };
    Figure { id: "cka".into(), title, legend: vec![], panels: vec![map.panel()] }
}

/// Draws every measure over the layers, and beside it, dashed, what shuffled pairs give.
pub fn similarity_figure(result: &SimilarityResult) -> Figure {
    let panel = |measure: SimilarityMeasure| {
        let line = |chance: bool| {
            let point = |layer: &geometry::similarity::LayerSimilarity| {
                let found = layer.measures.get(&measure)?;
                let interval = found.interval.filter(|_| !chance);
                Some(ChartPoint {
                    x: layer.layer as f64,
                    y: if chance { found.chance } else { found.value },
                    interval: interval.map(|interval| (interval.low, interval.high)),
                    seeds: Vec::new(),
                })
            };
            LineSeries {
                name: if chance { "shuffled pairs" } else { "translations" }.to_owned(),
                colour: if chance { 6 } else { 0 },
                dashed: chance,
                points: result.layers.iter().filter_map(point).collect(),
            }
        };
        let lines = vec![line(false), line(true)];
        (!lines[0].points.is_empty()).then(|| {
            Chart::Lines(LineChart {
                title: measure.title().to_owned(),
                across: "layer".to_owned(),
                unit: measure.name().to_owned(),
                lines,
                from_zero: true,
                ..LineChart::default()
            })
        })
    };
    let panels: Vec<Chart> = SimilarityMeasure::ALL.into_iter().filter_map(panel).collect();
    let title = format!("Similarity by layer, n = {}", result.counts.used);
    Figure::of("similarity".to_owned(), title, &panels)
}
