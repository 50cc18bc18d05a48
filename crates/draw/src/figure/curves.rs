//! Shares over the steps of training, or over the weights of a shift, with lines labelled where they end.

use std::fmt::Write as _;

use crate::data::number;
use crate::svg::{escaped, line, text, width};
use crate::{DataRow, Panel};

const HEIGHT: f64 = 236.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 40.0;
const LEFT: f64 = 40.0;
/// The room for labels on the right.
const RIGHT: f64 = 142.0;
/// The least distance of two labels.
const APART: f64 = 14.0;

pub(super) struct ShareCurve {
    pub(super) name: String,
    pub(super) colour: usize,
    /// Place (0 to 1) and share.
    pub(super) points: Vec<(f64, f64)>,
}

/// A level to compare with, as a dashed line.
pub(super) struct ShareLevel {
    pub(super) name: String,
    pub(super) share: f64,
}

/// Shares between 0 and 1 over some axis.
pub(super) struct ShareChart {
    pub(super) title: String,
    pub(super) width: f64,
    /// What runs across.
    pub(super) across: String,
    /// Places (0 to 1) that are marked, with their labels.
    pub(super) ticks: Vec<(f64, String)>,
    /// Whether ticks are drawn through the panel.
    pub(super) ruled: bool,
    pub(super) curves: Vec<ShareCurve>,
    pub(super) levels: Vec<ShareLevel>,
    pub(super) data: Vec<DataRow>,
}

impl ShareChart {
    pub(super) fn panel(self) -> Panel {
        let mut body = String::new();
        let (floor, right) = (HEIGHT - BOTTOM, self.width - RIGHT);
        let x = |place: f64| LEFT + place * (right - LEFT);
        let y = |share: f64| floor - share.clamp(0.0, 1.0) * (floor - TOP);
        text(&mut body, (0.0, 13.0), "name", &self.title);
        for quarter in 0..=4 {
            let share = f64::from(quarter) / 4.0;
            line(&mut body, "grid", (LEFT, y(share)), (right, y(share)));
            let label = format!("{}\u{a0}%", 25 * quarter);
            text(&mut body, (LEFT - 6.0, y(share) + 4.0), "small end", &label);
        }
        let mut free = f64::NEG_INFINITY;
        for (place, label) in &self.ticks {
            let half = width(label) / 2.0;
            let top = if self.ruled { TOP } else { floor };
            line(&mut body, "tick", (x(*place), top), (x(*place), floor + 4.0));
            if x(*place) - half > free {
                text(&mut body, (x(*place), floor + 17.0), "small middle", label);
                free = x(*place) + half + 5.0;
            }
        }
        text(&mut body, ((LEFT + right) / 2.0, HEIGHT - 6.0), "small middle", &self.across);
        let mut labels: Vec<(f64, Option<usize>, String)> = Vec::new();
        for level in &self.levels {
            line(&mut body, "level", (LEFT, y(level.share)), (right, y(level.share)));
            let name = format!("{} {}", level.name, super::percent(level.share));
            labels.push((y(level.share), None, name));
        }
        for curve in &self.curves {
            let steps: Vec<String> =
                curve.points.iter().map(|&(a, b)| format!("{:.1} {:.1}", x(a), y(b))).collect();
            let colour = curve.colour;
            let _ = writeln!(body, "<path class=\"c{colour} line\" d=\"M{}\"/>", steps.join("L"));
            if let [only] = curve.points[..] {
                body.push_str(&format!("<g class=\"c{colour}\">"));
                body.push_str(&crate::svg::marker(0, x(only.0), y(only.1)));
                body.push_str("</g>\n");
            }
            if let Some(&(_, last)) = curve.points.last() {
                let name = format!("{} {}", curve.name, super::percent(last));
                labels.push((y(last), Some(colour), name));
            }
        }
        for (place, colour, label) in spread(labels, floor + 4.0) {
            let class = colour.map_or("small".to_owned(), |colour| format!("word c{colour}"));
            let _ = writeln!(
                body,
                "<text class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                right + 8.0,
                place + 4.0,
                escaped(&label)
            );
        }
        let ends: Vec<String> = self
            .curves
            .iter()
            .map(|curve| {
                let share = |point: Option<&(f64, f64)>| point.map_or(0.0, |point| point.1);
                let (first, last) = (share(curve.points.first()), share(curve.points.last()));
                format!("{} from {} to {}", curve.name, super::percent(first), super::percent(last))
            })
            .collect();
        let description = format!("{} over {}: {}.", self.title, self.across, ends.join("; "));
        Panel { width: self.width, height: HEIGHT, description, body, data: self.data }
    }
}

/// Labels from top to bottom, none closer to the next than can be read, the lowest at most at `floor`.
fn spread(
    mut labels: Vec<(f64, Option<usize>, String)>,
    floor: f64,
) -> Vec<(f64, Option<usize>, String)> {
    labels.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut lowest = floor;
    for label in labels.iter_mut().rev() {
        label.0 = label.0.min(lowest);
        lowest = label.0 - APART;
    }
    labels
}

/// A row of the numbers of a curve.
pub(super) fn row(across: &'static str, at: String, measure: &str, share: f64) -> DataRow {
    vec![(across, at), ("measure", measure.to_owned()), ("value", number(share))]
}
