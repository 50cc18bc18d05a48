//! Lines over layers, weights or distances: the mean, and every seed as a dot.

use std::fmt::Write as _;

use super::data::number;
use super::scale::{AxisScale, level_label, of_shares, range, shown};
use super::svg::{line, marker, seeds, text, tick_label, title_lines, width};
use super::{COLOURS, DataRow, LegendEntry, PANEL_WIDTH, Panel, ReferenceLine, SeriesMark};

const HEIGHT: f64 = 196.0;
const BOTTOM: f64 = 38.0;
const LEFT: f64 = 40.0;
const RIGHT: f64 = 14.0;
/// Bands of more lines than this would cover one another; the dots of seeds remain.
const BANDS: usize = 2;

#[derive(Clone, Debug, Default)]
pub struct LineChart {
    pub title: String,
    /// What runs across.
    pub across: String,
    pub unit: String,
    /// The lines, in the order of the legend.
    pub lines: Vec<LineSeries>,
    pub from_zero: bool,
    /// Values that are no result, such as chance.
    pub references: Vec<ReferenceLine>,
    /// Lines are named at their ends in place of a legend, and all but the highest are grey.
    pub highest_only: bool,
}

#[derive(Clone, Debug, Default)]
pub struct LineSeries {
    pub name: String,
    /// Its colour, and the shape of its points.
    pub colour: usize,
    /// Whether it is a variant of the system with this colour, and drawn apart.
    pub dashed: bool,
    /// From left to right.
    pub points: Vec<ChartPoint>,
}

#[derive(Clone, Debug, Default)]
pub struct ChartPoint {
    /// Place across.
    pub x: f64,
    pub y: f64,
    pub interval: Option<(f64, f64)>,
    pub seeds: Vec<f64>,
}

impl LineSeries {
    pub fn highest_point(&self) -> Option<&ChartPoint> {
        self.points.iter().max_by(|a, b| a.y.total_cmp(&b.y))
    }
}

/// The axes of a panel, and where they end.
struct Frame {
    x: AxisScale,
    y: AxisScale,
    top: f64,
    floor: f64,
    right: f64,
    /// The values at both ends of the axis across.
    ends: (f64, f64),
}

impl LineChart {
    /// Draws them. A line of one point, such as a model without layers, runs across as a level.
    pub fn panel(&self) -> Panel {
        let title = title_lines(&self.title);
        let frame = self.frame(title.len());
        let mut body = String::new();
        for (number, words) in title.iter().enumerate() {
            text(&mut body, (8.0, 13.0 + 16.0 * number as f64), "name", words);
        }
        self.axes(&mut body, &frame);
        let best = self.highest();
        let coloured = if self.highest_only { 1 } else { self.lines.len() };
        // The coloured lines last, over the grey ones.
        let (muted, clear): (Vec<_>, Vec<_>) =
            self.lines.iter().enumerate().partition(|(i, _)| self.highest_only && *i != best);
        for (_, series) in muted {
            draw(&mut body, series, &frame, Emphasis::Muted);
        }
        for (_, series) in clear {
            let emphasis = if coloured <= BANDS { Emphasis::Banded } else { Emphasis::Plain };
            draw(&mut body, series, &frame, emphasis);
        }
        self.reference_labels(&mut body, &frame);
        if self.highest_only {
            self.end_labels(&mut body, &frame, best);
        }
        let height = frame.floor + BOTTOM;
        let (description, data) = (self.description(), self.data());
        Panel { width: PANEL_WIDTH, height, description, body, data }
    }

    /// The series and the kinds of marks that are drawn.
    pub(crate) fn legend(&self) -> Vec<LegendEntry> {
        let lines = self.lines.iter().filter(|line| !line.points.is_empty() && !self.highest_only);
        let of = |line: &LineSeries| {
            let mark = if line.dashed { SeriesMark::DashedLine } else { SeriesMark::Line };
            LegendEntry::of(&line.name, mark(line.colour))
        };
        let seeds = self.lines.iter().flat_map(|line| &line.points).any(|p| p.seeds.len() > 1);
        lines.map(of).chain(seeds.then(|| LegendEntry::of("one seed", SeriesMark::Seed))).collect()
    }

    fn highest(&self) -> usize {
        let peak =
            |line: &LineSeries| line.highest_point().map_or(f64::NEG_INFINITY, |point| point.y);
        let order = |a: &usize, b: &usize| peak(&self.lines[*a]).total_cmp(&peak(&self.lines[*b]));
        (0..self.lines.len()).max_by(order).unwrap_or(0)
    }

    fn frame(&self, lines: usize) -> Frame {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let values = points().flat_map(|p| [p.y].into_iter().chain(p.seeds.iter().copied()));
        let values = values.chain(self.references.iter().map(|reference| reference.value));
        let whole = of_shares(range(values, self.from_zero), points().map(|point| point.y));
        let top = 16.0 * lines as f64 + 18.0;
        let floor = top + HEIGHT - 44.0 - BOTTOM;
        let y = AxisScale::new(whole, floor, top);
        let longer = self.lines.iter().filter(|line| line.points.len() > 1);
        let xs = longer.flat_map(|line| &line.points).map(|point| point.x);
        let (low, high) =
            xs.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
        let ends = if low < high { (low, high) } else { (0.0, 1.0) };
        let names = self.lines.iter().map(|line| width(&line.name)).fold(0.0, f64::max);
        let labels = if self.highest_only { names + 2.0 } else { 0.0 };
        let right = PANEL_WIDTH - RIGHT - labels;
        Frame { x: AxisScale::new(ends, LEFT + 8.0, right - 4.0), y, top, floor, right, ends }
    }

    fn axes(&self, body: &mut String, frame: &Frame) {
        let Frame { x, y, floor, right, top, .. } = frame;
        text(body, (8.0, top - 8.0), "small", &self.unit);
        for (value, label) in y.ticks(4) {
            let at = y.at(value);
            line(body, "grid", (LEFT, at), (*right, at));
            text(body, (LEFT - 5.0, at + 4.0), "small end", &label);
        }
        line(body, "axis", (LEFT, *floor), (*right, *floor));
        let mut places: Vec<f64> = self
            .lines
            .iter()
            .filter(|line| line.points.len() > 1)
            .flat_map(|line| &line.points)
            .map(|point| point.x)
            .collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let mut free = f64::NEG_INFINITY;
        for place in places {
            let (at, label) = (x.at(place), format!("{place}").replace('-', "\u{2212}"));
            line(body, "axis", (at, *floor), (at, floor + 4.0));
            if at - width(&label) / 2.0 > free {
                tick_label(body, (at, floor + 16.0), &label);
                free = at + width(&label) / 2.0 + 4.0;
            }
        }
        text(body, ((LEFT + right) / 2.0, floor + 31.0), "soft middle", &self.across);
        for reference in &self.references {
            let at = y.at(reference.value);
            line(body, "level", (LEFT, at), (*right, at));
        }
    }

    /// The names of reference lines, over all that is drawn: above their lines at the end, and at the height, where no other line passes.
    fn reference_labels(&self, body: &mut String, frame: &Frame) {
        let Frame { x, y, right, .. } = frame;
        let points = self.lines.iter().flat_map(|line| &line.points);
        let places: Vec<(f64, f64)> = points.map(|point| (x.at(point.x), y.at(point.y))).collect();
        for reference in &self.references {
            let words = format!("{} {}", reference.name, level_label(reference.value));
            let ends = [(LEFT + 3.0, "small halo"), (right - width(&words), "small end halo")];
            let heights = [4.0, 15.0, 26.0].map(|above| y.at(reference.value) - above);
            // How far the next point is from the middle of the letters.
            let room = |&((from, _), height): &((f64, &str), f64)| {
                let beside = from - 14.0..from + width(&words) + 14.0;
                let near = places.iter().filter(|(across, _)| beside.contains(across));
                near.map(|(_, down)| (down - height + 4.0).abs()).fold(f64::INFINITY, f64::min)
            };
            let all = || heights.into_iter().flat_map(|height| ends.map(|end| (end, height)));
            let widest = || all().max_by(|a, b| room(a).total_cmp(&room(b)));
            let free = all().find(|place| room(place) >= 10.0).or_else(widest);
            if let Some(((from, class), height)) = free {
                let from = if class.contains("end") { *right } else { from };
                text(body, (from, height), class, &words);
            }
        }
    }

    /// Names at the ends of the lines, moved apart where they would meet.
    fn end_labels(&self, body: &mut String, frame: &Frame, best: usize) {
        let end = |line: &LineSeries| line.points.last().map(|point| frame.y.at(point.y));
        let mut places: Vec<(usize, f64)> =
            self.lines.iter().enumerate().filter_map(|(i, line)| Some((i, end(line)?))).collect();
        places.sort_by(|a, b| a.1.total_cmp(&b.1));
        let mut free = frame.top;
        for (_, y) in &mut places {
            *y = y.max(free);
            free = *y + 11.5;
        }
        // Too far down: back up from the floor.
        let mut limit = frame.floor + 4.0;
        for (_, y) in places.iter_mut().rev() {
            *y = y.min(limit);
            limit = *y - 11.5;
        }
        for (number, y) in places {
            let series = &self.lines[number];
            let class = if number == best {
                format!("small strong word c{}", series.colour % COLOURS)
            } else {
                "small".to_owned()
            };
            text(body, (frame.right + 4.0, y + 4.0), &class, &series.name);
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
                let seeds: Vec<String> = point.seeds.iter().copied().map(number).collect();
                row.push(("seeds", seeds.join(" ")));
                rows.push(row);
            }
        }
        rows
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

/// How much of a line is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Emphasis {
    /// A thin grey line.
    Muted,
    /// In colour, with the dots of seeds.
    Plain,
    Banded,
}

fn draw(body: &mut String, series: &LineSeries, frame: &Frame, emphasis: Emphasis) {
    let (x, y) = (&frame.x, &frame.y);
    let across = |points: &[(f64, f64)]| {
        let places = points.iter().map(|(a, b)| format!("{:.1} {:.1}", x.at(*a), y.at(*b)));
        places.collect::<Vec<_>>().join("L")
    };
    let level = |point: &ChartPoint| {
        [frame.ends.0, frame.ends.1].map(|place| ChartPoint { x: place, ..point.clone() }).to_vec()
    };
    let single = series.points.len() == 1;
    let points = if single { level(&series.points[0]) } else { series.points.clone() };
    let middle: Vec<(f64, f64)> = points.iter().map(|point| (point.x, point.y)).collect();
    if emphasis == Emphasis::Muted {
        let _ = writeln!(body, "<path class=\"muted\" d=\"M{}\"/>", across(&middle));
        return;
    }
    let _ = write!(body, "<g class=\"c{}\">", series.colour % COLOURS);
    let ends: Option<Vec<(f64, f64)>> = points.iter().map(|point| point.interval).collect();
    if let Some(ends) = ends.filter(|ends| emphasis == Emphasis::Banded && !ends.is_empty()) {
        let upper = points.iter().zip(&ends).map(|(point, end)| (point.x, end.1));
        let lower = points.iter().zip(&ends).rev().map(|(point, end)| (point.x, end.0));
        let outline: Vec<(f64, f64)> = upper.chain(lower).collect();
        let _ = write!(body, "<path class=\"band\" d=\"M{}Z\"/>", across(&outline));
    }
    let class = if series.dashed { "line dashed" } else { "line" };
    let _ = write!(body, "<path class=\"{class}\" d=\"M{}\"/>", across(&middle));
    let own = || series.points.iter().filter(|_| !single);
    let of_seeds =
        own().flat_map(|point| point.seeds.iter().map(|seed| (x.at(point.x), y.at(*seed))));
    body.push_str(&seeds(of_seeds, "seed fine"));
    for point in own() {
        body.push_str(&marker(series.colour, x.at(point.x), y.at(point.y)));
    }
    body.push_str("</g>\n");
}
