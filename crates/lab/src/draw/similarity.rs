//! The figure of a comparison by CKA: a heatmap of layers by layers.

use geometry::cka::CkaResult;

use super::{Figure, Heatmap};

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
