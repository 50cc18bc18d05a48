//! Points of several languages on a plane, with lines between translations.

use std::fmt::Write as _;

use geometry::projection::PlaneProjection;

use crate::data::number;
use crate::svg::{escaped, fitting, text};
use crate::{COLOURS, DataRow, Panel};

/// The height of the lines above the frame.
const HEAD: f64 = 38.0;
/// Points of one language drawn before some of the next, so that none covers another as a whole.
const AT_ONCE: usize = 20;
/// The share of points that fix the scale; the others, if they lie beyond the frame, are drawn at its edge.
const FITTING: f64 = 0.995;

pub(super) struct Scatter<'a> {
    /// Above the frame.
    pub(super) name: String,
    /// Below the name, in small type.
    pub(super) detail: String,
    /// The side of the frame.
    pub(super) size: f64,
    pub(super) plane: &'a PlaneProjection,
    /// What half the frame stands for.
    pub(super) extent: f64,
    pub(super) languages: &'a [String],
    /// Rows whose points are joined from language to language.
    pub(super) joined: &'a [usize],
    /// Labels: the language, the row, and the text beside the point.
    pub(super) labels: Vec<(usize, usize, &'a str)>,
}

/// Half of a frame that holds the points of a plane.
pub(super) fn extent(plane: &PlaneProjection) -> f64 {
    let mut sizes: Vec<f64> =
        plane.groups.iter().flatten().map(|[x, y]| x.abs().max(y.abs())).collect();
    sizes.sort_by(f64::total_cmp);
    let last = ((sizes.len() as f64 * FITTING).ceil() as usize).clamp(1, sizes.len().max(1)) - 1;
    sizes.get(last).copied().unwrap_or(1.0).max(1e-12) * 1.08
}

impl Scatter<'_> {
    pub(super) fn panel(&self) -> Panel {
        let size = self.size;
        let mut body = String::new();
        text(&mut body, (0.0, 13.0), "name", &fitting(&self.name, size * 0.95));
        text(&mut body, (0.0, 29.0), "small", &self.detail);
        let _ = writeln!(
            body,
            "<rect class=\"frame\" x=\".5\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"4\"/>",
            HEAD + 0.5,
            size - 1.0,
            size - 1.0
        );
        let places: Vec<Vec<(f64, f64)>> = self
            .plane
            .groups
            .iter()
            .map(|group| group.iter().map(|&point| self.place(point)).collect())
            .collect();
        self.dots(&mut body, &places);
        self.lines(&mut body, &places);
        for &(group, row, label) in &self.labels {
            let (x, y) = places[group][row];
            // Towards the middle, so that no label leaves the frame.
            let (x, end) = if x > size * 0.6 { (x - 5.0, " end") } else { (x + 5.0, "") };
            let _ = writeln!(
                body,
                "<g class=\"c{}\"><text class=\"word small{end}\" x=\"{x:.1}\" y=\"{:.1}\">{}</text></g>",
                group % COLOURS,
                y + 3.5,
                escaped(label)
            );
        }
        let description = format!("{}: {}.", self.name, self.detail);
        Panel { width: size, height: HEAD + size, description, body, data: self.data() }
    }

    fn place(&self, [x, y]: [f64; 2]) -> (f64, f64) {
        let half = self.size / 2.0;
        let inner = half - 5.0;
        let at = |value: f64| (value / self.extent).clamp(-1.0, 1.0) * inner;
        (half + at(x), HEAD + half - at(y))
    }

    /// All points: as one path for each some, which is a third of the bytes of circles.
    fn dots(&self, body: &mut String, places: &[Vec<(f64, f64)>]) {
        let longest = places.iter().map(Vec::len).max().unwrap_or(0);
        for start in (0..longest).step_by(AT_ONCE) {
            for (group, points) in places.iter().enumerate() {
                let some = points.iter().skip(start).take(AT_ONCE);
                let path: String = some.map(|(x, y)| format!("M{x:.1} {y:.1}h.1")).collect();
                if !path.is_empty() {
                    let colour = group % COLOURS;
                    let _ = writeln!(body, "<path class=\"c{colour} dots\" d=\"{path}\"/>");
                }
            }
        }
    }

    fn lines(&self, body: &mut String, places: &[Vec<(f64, f64)>]) {
        let mut path = String::new();
        for pair in places.windows(2) {
            for &row in self.joined {
                if let (Some((x1, y1)), Some((x2, y2))) = (pair[0].get(row), pair[1].get(row)) {
                    let _ = write!(path, "M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}");
                }
            }
        }
        if !path.is_empty() {
            let _ = writeln!(body, "<path class=\"pair\" d=\"{path}\"/>");
        }
    }

    fn data(&self) -> Vec<DataRow> {
        let mut rows = Vec::new();
        for (group, language) in self.plane.groups.iter().zip(self.languages) {
            for (row, [x, y]) in group.iter().enumerate() {
                rows.push(vec![
                    ("panel", self.name.clone()),
                    ("language", language.clone()),
                    ("row", (row + 1).to_string()),
                    ("x", number(*x)),
                    ("y", number(*y)),
                ]);
            }
        }
        rows
    }
}
