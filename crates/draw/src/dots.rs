//! Dot plots: a row for each name, and in it every seed as a dot, the mean as a tick, its interval as a line. Names stand above
//! their rows, so that long ones can be read in a narrow panel.

use std::fmt::Write as _;

use super::data::number;
use super::scale::{AxisScale, level_label, of_shares, range, short, shown};
use super::svg::{diamond, escaped, line, seeds, text, tick_label, title_lines, wrapped};
use super::{COLOURS, DataRow, LegendEntry, PANEL_WIDTH, Panel, SeriesMark};

const LEFT: f64 = 8.0;
/// Where the axis begins: the label of its first tick has room on both sides.
const START: f64 = 16.0;
const RIGHT: f64 = PANEL_WIDTH - 14.0;
const BOTTOM: f64 = 36.0;
/// The height of a name, of one series below it, and the space between rows.
const NAME: f64 = 15.0;
const SERIES: f64 = 13.0;
const PITCH: f64 = 5.0;

#[derive(Clone, Debug, Default)]
pub struct DotChart {
    pub title: String,
    pub unit: String,
    /// From top to bottom.
    pub rows: Vec<DotRow>,
    /// The least end of the axis, such as 1 for shares.
    pub reach: Option<f64>,
    /// Values that are no result, such as chance or a criterion.
    pub references: Vec<ReferenceLine>,
}

/// A value drawn across a panel.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceLine {
    pub name: String,
    pub value: f64,
}

/// What was measured under one name.
#[derive(Clone, Debug, Default)]
pub struct DotRow {
    pub name: String,
    /// From top to bottom.
    pub marks: Vec<DotMark>,
}

/// One series within a row.
#[derive(Clone, Debug, Default)]
pub struct DotMark {
    /// The name of its series; empty where the row says it all.
    pub series: String,
    pub colour: usize,
    /// Whether it is a variant of the system with this colour, and drawn apart.
    pub dashed: bool,
    pub seeds: Vec<f64>,
    /// Our mean; none where only the paper has one.
    pub value: Option<f64>,
    pub interval: Option<(f64, f64)>,
    /// The paper's value.
    pub paper: Option<f64>,
}

impl DotRow {
    /// Its name in lines; the first leaves room for the value of a single series.
    fn lines(&self) -> Vec<String> {
        wrapped(&self.name, RIGHT - LEFT - 48.0)
    }
}

impl DotChart {
    pub fn panel(&self) -> Panel {
        let title = title_lines(&self.title);
        let top = 16.0 * title.len() as f64 + if self.references.is_empty() { 4.0 } else { 18.0 };
        let of_row = |row: &DotRow| {
            NAME * row.lines().len() as f64 + row.marks.len() as f64 * SERIES + PITCH
        };
        let bottom = top + self.rows.iter().map(of_row).sum::<f64>();
        let scale = AxisScale::new(self.range(), START, RIGHT);
        let mut body = String::new();
        for (number, words) in title.iter().enumerate() {
            text(&mut body, (LEFT, 13.0 + 16.0 * number as f64), "name", words);
        }
        self.axis(&mut body, &scale, top, bottom);
        let mut y = top;
        for row in &self.rows {
            let _ = write!(body, "<g><title>{}</title>", escaped(&row.name));
            if let [only] = &row.marks[..]
                && let Some(value) = only.value.or(only.paper)
            {
                text(&mut body, (RIGHT, y + 12.0), "small end halo", &short(value));
            }
            for words in row.lines() {
                text(&mut body, (LEFT, y + 12.0), "label halo", &words);
                y += NAME;
            }
            body.push_str("</g>\n");
            for mark in &row.marks {
                draw(&mut body, &scale, mark, y + SERIES / 2.0);
                y += SERIES;
            }
            y += PITCH;
        }
        Panel {
            width: PANEL_WIDTH,
            height: bottom + BOTTOM,
            description: self.description(),
            body,
            data: self.data(),
        }
    }

    /// The series and the kinds of marks that are drawn.
    pub(crate) fn legend(&self) -> Vec<LegendEntry> {
        let marks = || self.rows.iter().flat_map(|row| &row.marks);
        let named = marks().filter(|mark| !mark.series.is_empty() && mark.value.is_some());
        let mut legend: Vec<LegendEntry> = named
            .map(|mark| LegendEntry {
                name: mark.series.clone(),
                mark: match mark.dashed {
                    true => SeriesMark::DashedSample(mark.colour),
                    false => SeriesMark::Sample(mark.colour),
                },
            })
            .collect();
        let several = marks().any(|mark| mark.seeds.len() > 1);
        legend.extend(several.then(|| LegendEntry::of("one seed", SeriesMark::Seed)));
        legend.extend(several.then(|| LegendEntry::of("mean", SeriesMark::Mean)));
        let interval = marks().any(|mark| mark.interval.is_some());
        legend.extend(interval.then(|| LegendEntry::of("95 % interval", SeriesMark::Interval)));
        let paper = marks().any(|mark| mark.paper.is_some());
        legend.extend(paper.then(|| LegendEntry::of("the paper", SeriesMark::Paper)));
        legend
    }

    fn data(&self) -> Vec<DataRow> {
        let mut rows = Vec::new();
        for row in &self.rows {
            for mark in &row.marks {
                let mut cells = vec![("panel", self.title.clone()), ("unit", self.unit.clone())];
                cells.extend([("row", row.name.clone()), ("series", mark.series.clone())]);
                cells.extend(mark.value.map(|value| ("value", number(value))));
                if let Some((low, high)) = mark.interval {
                    cells.extend([("low", number(low)), ("high", number(high))]);
                }
                let seeds: Vec<String> = mark.seeds.iter().copied().map(number).collect();
                cells.push(("seeds", seeds.join(" ")));
                cells.extend(mark.paper.map(|paper| ("paper", number(paper))));
                rows.push(cells);
            }
        }
        rows.extend(self.references.iter().map(|reference| {
            let panel = [("panel", self.title.clone()), ("unit", self.unit.clone())];
            let own = [("row", reference.name.clone()), ("value", number(reference.value))];
            panel.into_iter().chain(own).collect()
        }));
        rows
    }

    fn range(&self) -> (f64, f64) {
        let marks = || self.rows.iter().flat_map(|row| &row.marks);
        let values = marks().flat_map(|mark| {
            let ends = mark.interval.map_or([None, None], |(low, high)| [Some(low), Some(high)]);
            let seeds = mark.seeds.iter().copied().map(Some);
            [mark.value, mark.paper].into_iter().chain(ends).chain(seeds).flatten()
        });
        let references = self.references.iter().map(|reference| reference.value);
        let (low, high) = range(values.chain(references).chain(self.reach), true);
        // A whisker of a quantity that cannot be negative ends at 0.
        let negative = marks().any(|mark| mark.seeds.iter().any(|value| *value < 0.0));
        let negative = negative || marks().any(|mark| mark.value.is_some_and(|value| value < 0.0));
        let range = (if negative { low } else { 0.0 }, high);
        let means = marks().flat_map(|mark| {
            [mark.value, mark.paper].into_iter().flatten().chain(mark.seeds.iter().copied())
        });
        let references = self.references.iter().map(|reference| reference.value);
        match self.unit.contains('%') {
            true => range,
            false => of_shares(range, means.chain(references)),
        }
    }

    fn axis(&self, body: &mut String, scale: &AxisScale, top: f64, bottom: f64) {
        for (value, label) in scale.ticks(5) {
            let x = scale.at(value);
            line(body, "grid", (x, top), (x, bottom));
            tick_label(body, (x, bottom + 14.0), &label);
        }
        let zero = scale.at(0.0);
        line(body, "axis", (zero, top), (zero, bottom));
        for reference in &self.references {
            let x = scale.at(reference.value);
            line(body, "level", (x, top - 3.0), (x, bottom));
            if self.references.len() > 1 {
                continue;
            }
            let words = format!("{} {}", reference.name, level_label(reference.value));
            let class = match x {
                x if x > RIGHT - 60.0 => "small end",
                x if x < LEFT + 40.0 => "small",
                _ => "small middle",
            };
            text(body, (x, top - 6.0), class, &words);
        }
        if self.references.len() > 1 {
            // Two labels would cover one another.
            let values: Vec<String> =
                self.references.iter().map(|reference| level_label(reference.value)).collect();
            let words = format!("{}s {}", self.references[0].name, values.join(" and "));
            text(body, (RIGHT, top - 6.0), "small end", &words);
        }
        text(body, ((START + RIGHT) / 2.0, bottom + 30.0), "soft middle", &self.unit);
    }

    fn description(&self) -> String {
        let mut words = format!("{} ({})", self.title, self.unit);
        for (number, row) in self.rows.iter().enumerate() {
            let values: Vec<String> =
                row.marks.iter().filter_map(|mark| mark.value).map(shown).collect();
            let _ = write!(
                words,
                "{} {} {}",
                if number == 0 { ":" } else { ";" },
                row.name,
                values.join(", ")
            );
        }
        words + "."
    }
}

fn draw(body: &mut String, scale: &AxisScale, mark: &DotMark, y: f64) {
    let _ = write!(body, "<g class=\"c{}\">", mark.colour % COLOURS);
    if let Some((low, high)) = mark.interval {
        let (a, b) = (scale.at(low), scale.at(high));
        let class = if mark.dashed { "interval dashed" } else { "interval" };
        let _ = write!(body, "<path class=\"{class}\" d=\"M{a:.1} {y:.1}H{b:.1}\"/>");
    }
    body.push_str(&seeds(mark.seeds.iter().map(|value| (scale.at(*value), y)), "seed"));
    if let Some(value) = mark.value {
        let (x, class) = (scale.at(value), if mark.dashed { "mean thin" } else { "mean" });
        let _ = write!(body, "<path class=\"{class}\" d=\"M{x:.1} {:.1}v10\"/>", y - 5.0);
    }
    body.push_str("</g>\n");
    if let Some(paper) = mark.paper {
        body.push_str(&diamond(scale.at(paper), y));
        body.push('\n');
    }
}
