//! A map of words or sentences of several languages: their principal plane, a panel for each layer.

use arrays::Matrix;
use geometry::projection::{principal_plane, variance_between};

use super::scatter::{Scatter, extent};
use super::{SpaceFigure, language_legend, percent};
use crate::Figure;

/// The side of a panel: one by itself has room for labels.
const ALONE: f64 = 560.0;
const BESIDE: f64 = 360.0;
/// Labels are drawn where one panel stands by itself.
const LABELLED: usize = 1;

#[derive(Clone, Debug)]
pub struct MapPanel {
    /// Its name: a layer, or what the vectors are.
    pub name: String,
    /// The vectors of each language: items x dim.
    pub groups: Vec<Matrix>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapLabel {
    pub language: usize,
    pub row: usize,
    pub text: String,
}

#[derive(Clone, Debug)]
pub struct SpaceMap {
    pub languages: Vec<String>,
    pub panels: Vec<MapPanel>,
    /// The items: `sentences` or `words`.
    pub items: &'static str,
    /// What was done to the vectors, for the caption: `raw vectors` or such.
    pub mode: String,
    /// Rows of all languages that belong together, and are joined by lines.
    pub joined: Vec<usize>,
    /// Texts beside points, where there is room for them.
    pub labels: Vec<MapLabel>,
    /// The text of each item of each language, for the table of numbers.
    pub texts: Vec<Vec<String>>,
}

pub fn map(space: &SpaceMap) -> SpaceFigure {
    let alone = space.panels.len() == LABELLED;
    let mut shares = Vec::new();
    let mut panels = Vec::new();
    for panel in &space.panels {
        let groups: Vec<&Matrix> = panel.groups.iter().collect();
        let plane = principal_plane(&groups);
        let share = variance_between(&groups);
        shares.push((panel.name.as_str(), share));
        let labels = space.labels.iter().filter(|_| alone);
        let scatter = Scatter {
            name: panel.name.clone(),
            detail: format!(
                "language: {} of variance · axes: {} and {}",
                percent(share),
                percent(plane.shares[0]),
                percent(plane.shares[1])
            ),
            size: if alone { ALONE } else { BESIDE },
            plane: &plane,
            extent: extent(&plane),
            languages: &space.languages,
            joined: &space.joined,
            labels: labels.map(|label| (label.language, label.row, label.text.as_str())).collect(),
        };
        let mut drawn = scatter.panel();
        let texts = space.texts.iter().flatten();
        drawn.data.iter_mut().zip(texts).for_each(|(row, text)| row.push(("text", text.clone())));
        panels.push(drawn);
    }
    let figure = Figure {
        id: "map".to_owned(),
        title: title(&shares, space.items),
        legend: language_legend(&space.languages),
        panels,
    };
    let lines = match space.joined.len() {
        0 => String::new(),
        count => format!(" Lines join {count} translations."),
    };
    let counts: Vec<String> = space.texts.iter().map(|texts| texts.len().to_string()).collect();
    let caption = format!(
        "{} {} on the two directions of greatest variance (PCA, each panel by itself and at its own scale): {}.{lines} Language: \
         the share of the variance of all vectors that lies between the languages' means.",
        counts.join(" and "),
        space.items,
        space.mode
    );
    SpaceFigure { figure, caption }
}

/// What the language explains, over all panels.
fn title(shares: &[(&str, f64)], items: &str) -> String {
    let least = shares.iter().min_by(|a, b| a.1.total_cmp(&b.1));
    let most = shares.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    match (least, most) {
        // Nothing that was found: the means were subtracted.
        (_, Some((_, most))) if *most < 1e-6 => {
            format!("The {items} of each language around its mean")
        }
        (Some((name, share)), _) if shares.len() == 1 => {
            format!("The language explains {} of the variance: {name}", percent(*share))
        }
        (Some((low, least)), Some((high, most))) => format!(
            "The language explains {} of the variance in {low}, {} in {high}",
            percent(*least),
            percent(*most)
        ),
        _ => String::new(),
    }
}
