//! Lines over layers or weights, each with the band of its intervals.

use std::fmt::Write as _;

use super::data::number;
use super::scale::{AxisScale, of_shares, range, shown};
use super::svg::{line, marker, text, width};
use super::{COLOURS, DataRow, Panel};

const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 264.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 44.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 14.0;

/// Lines over one axis.
#[derive(Clone, Debug, Default)]
pub struct LineChart {
    /// Above the panel.
    pub title: String,
    /// What runs across.
    pub across: String,
    /// What the values are.
    pub unit: String,
    /// The lines, in the order of the legend.
    pub lines: Vec<LineSeries>,
    /// Whether the axis begins at 0.
    pub from_zero: bool,
}

/// One line.
#[derive(Clone, Debug, Default)]
pub struct LineSeries {
    /// Its name.
    pub name: String,
    /// Its colour, and the shape of its points.
    pub colour: usize,
    /// From left to right.
    pub points: Vec<ChartPoint>,
}

/// One point of a line.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChartPoint {
    /// Place across.
    pub x: f64,
    /// Value.
    pub y: f64,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
}

impl LineChart {
    /// Draws them. A line of one point, such as a model without layers, runs across as a level.
    pub fn panel(&self) -> Panel {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let values = points().flat_map(|point| {
            let (low, high) = point.interval.unwrap_or((point.y, point.y));
            [point.y, low, high]
        });
        let whole = of_shares(range(values, self.from_zero), points().map(|point| point.y));
        let y = AxisScale::new(whole, HEIGHT - BOTTOM, TOP);
        let longer = || self.lines.iter().filter(|line| line.points.len() > 1);
        let xs = || longer().flat_map(|line| &line.points).map(|point| point.x);
        let (low, high) =
            xs().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
        let (low, high) = if low < high { (low, high) } else { (0.0, 1.0) };
        let x = AxisScale::new((low, high), LEFT + 8.0, WIDTH - RIGHT);
        let mut body = String::new();
        text(&mut body, (LEFT, 14.0), "name", &self.title);
        self.axes(&mut body, &x, &y, xs().collect());
        for line in &self.lines {
            draw(&mut body, line, &x, &y, (low, high));
        }
        Panel {
            width: WIDTH,
            height: HEIGHT,
            description: self.description(),
            body,
            data: self.data(),
        }
    }

    fn data(&self) -> Vec<DataRow> {
        let mut rows = Vec::new();
        for line in &self.lines {
            for point in &line.points {
                let mut row = vec![("panel", self.title.clone()), ("unit", self.unit.clone())];
                row.extend([("across", self.across.clone()), ("series", line.name.clone())]);
                row.extend([("x", number(point.x)), ("value", number(point.y))]);
                if let Some((low, high)) = point.interval {
                    row.extend([("low", number(low)), ("high", number(high))]);
                }
                rows.push(row);
            }
        }
        rows
    }

    fn axes(&self, body: &mut String, x: &AxisScale, y: &AxisScale, mut places: Vec<f64>) {
        for (value, label) in y.ticks() {
            let at = y.at(value);
            line(body, "grid", (LEFT, at), (WIDTH - RIGHT, at));
            text(body, (LEFT - 6.0, at + 4.0), "small end", &label);
        }
        let floor = HEIGHT - BOTTOM;
        line(body, "axis", (LEFT, floor), (WIDTH - RIGHT, floor));
        places.sort_by(f64::total_cmp);
        places.dedup();
        let mut free = f64::NEG_INFINITY;
        for place in places {
            let (at, label) = (x.at(place), format!("{place}").replace('-', "\u{2212}"));
            line(body, "axis", (at, floor), (at, floor + 4.0));
            if at - width(&label) / 2.0 > free {
                text(body, (at, floor + 17.0), "small middle", &label);
                free = at + width(&label) / 2.0 + 4.0;
            }
        }
        text(body, ((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 8.0), "soft middle", &self.across);
        text(body, (WIDTH - RIGHT, 14.0), "small end", &self.unit);
    }

    fn description(&self) -> String {
        let mut words = format!("{} ({} over {})", self.title, self.unit, self.across);
        for (number, line) in self.lines.iter().enumerate() {
            let values: Vec<String> = line.points.iter().map(|point| shown(point.y)).collect();
            let _ = write!(
                words,
                "{} {} {}",
                if number == 0 { ":" } else { ";" },
                line.name,
                values.join(", ")
            );
        }
        words + "."
    }
}

fn draw(
    body: &mut String,
    line: &LineSeries,
    x: &AxisScale,
    y: &AxisScale,
    (low, high): (f64, f64),
) {
    let _ = write!(body, "<g class=\"c{}\">", line.colour % COLOURS);
    if let [only] = line.points[..] {
        let ends = [low, high].map(|place| ChartPoint { x: place, ..only });
        path(body, &ends, x, y);
    } else {
        path(body, &line.points, x, y);
        for point in &line.points {
            body.push_str(&marker(line.colour, x.at(point.x), y.at(point.y)));
        }
    }
    body.push_str("</g>\n");
}

/// The line, and below it the band, where every point has an interval.
fn path(body: &mut String, points: &[ChartPoint], x: &AxisScale, y: &AxisScale) {
    let join = |places: Vec<(f64, f64)>| {
        let steps = places.iter().map(|(a, b)| format!("{:.1} {:.1}", x.at(*a), y.at(*b)));
        steps.collect::<Vec<_>>().join("L")
    };
    let ends: Option<Vec<(f64, f64)>> = points.iter().map(|point| point.interval).collect();
    if let Some(ends) = ends.filter(|ends| !ends.is_empty()) {
        let upper = points.iter().zip(&ends).map(|(point, end)| (point.x, end.1));
        let lower = points.iter().zip(&ends).rev().map(|(point, end)| (point.x, end.0));
        let _ =
            write!(body, "<path class=\"band\" d=\"M{}Z\"/>", join(upper.chain(lower).collect()));
    }
    let middle = points.iter().map(|point| (point.x, point.y)).collect();
    let _ = write!(body, "<path class=\"line\" d=\"M{}\"/>", join(middle));
}
