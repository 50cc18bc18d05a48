//! Horizontal bar charts, on which long names can be read: groups below one another, intervals as whiskers.

use std::fmt::Write as _;

use super::data::number;
use super::scale::{AxisScale, of_shares, range, shown};
use super::svg::{diamond, escaped, fitting, line, text, width};
use super::{COLOURS, DataRow, Panel};

const WIDTH: f64 = 360.0;
const TOP: f64 = 28.0;
const BOTTOM: f64 = 40.0;

/// A bar chart of groups.
#[derive(Clone, Debug, Default)]
pub struct BarChart {
    /// Above the panel.
    pub title: String,
    /// What the values are.
    pub unit: String,
    /// From top to bottom.
    pub groups: Vec<BarGroup>,
    /// The least end of the axis, such as 1 for shares.
    pub reach: Option<f64>,
}

/// The bars of one name.
#[derive(Clone, Debug, Default)]
pub struct BarGroup {
    /// The name.
    pub name: String,
    /// From top to bottom.
    pub bars: Vec<Bar>,
}

/// One bar.
#[derive(Clone, Debug, Default)]
pub struct Bar {
    /// The colour of its series.
    pub colour: usize,
    /// Our value; none where only the paper has one.
    pub value: Option<f64>,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// The paper's value.
    pub paper: Option<f64>,
}

impl BarChart {
    /// Draws them.
    pub fn panel(&self) -> Panel {
        let most = self.groups.iter().map(|group| group.bars.len()).max().unwrap_or(1);
        let thick: f64 = if most == 1 { 14.0 } else { 9.0 };
        let pitch = if most == 1 { 10.0 } else { 9.0 };
        let left =
            self.groups.iter().map(|group| width(&group.name)).fold(30.0, f64::max).min(130.0)
                + 12.0;
        let bars: usize = self.groups.iter().map(|group| group.bars.len()).sum();
        let height = TOP + bars as f64 * thick + self.groups.len() as f64 * pitch + BOTTOM;
        let scale = AxisScale::new(self.range(), left, WIDTH - 34.0);
        let mut body = String::new();
        text(&mut body, (left, 14.0), "name", &self.title);
        self.axis(&mut body, &scale, left, height - BOTTOM);
        let mut y = TOP + pitch / 2.0;
        for group in &self.groups {
            let middle = y + group.bars.len() as f64 * thick / 2.0 + 4.0;
            let _ = write!(body, "<g><title>{}</title>", escaped(&group.name));
            text(&mut body, (left - 8.0, middle), "end", &fitting(&group.name, left - 12.0));
            body.push_str("</g>");
            for bar in &group.bars {
                draw(&mut body, &scale, bar, (y, thick), most == 1);
                y += thick;
            }
            y += pitch;
        }
        Panel { width: WIDTH, height, description: self.description(), body, data: self.data() }
    }

    fn data(&self) -> Vec<DataRow> {
        let mut rows = Vec::new();
        for group in &self.groups {
            for bar in &group.bars {
                let mut row = vec![("panel", self.title.clone()), ("unit", self.unit.clone())];
                row.extend([("group", group.name.clone()), ("series", bar.colour.to_string())]);
                row.extend(bar.value.map(|value| ("value", number(value))));
                if let Some((low, high)) = bar.interval {
                    row.extend([("low", number(low)), ("high", number(high))]);
                }
                row.extend(bar.paper.map(|paper| ("paper", number(paper))));
                rows.push(row);
            }
        }
        rows
    }

    fn range(&self) -> (f64, f64) {
        let values = self.groups.iter().flat_map(|group| &group.bars).flat_map(|bar| {
            let ends = bar.interval.map_or([None, None], |(low, high)| [Some(low), Some(high)]);
            [bar.value, bar.paper].into_iter().chain(ends).flatten()
        });
        let (low, high) = range(values.chain(self.reach), true);
        // A whisker of a quantity that cannot be negative ends at 0.
        let mut bars = self.groups.iter().flat_map(|group| &group.bars);
        let negative = bars.any(|bar| bar.value.is_some_and(|value| value < 0.0));
        let range = (if negative { low } else { 0.0 }, high);
        let bars = self.groups.iter().flat_map(|group| &group.bars);
        match self.unit.contains('%') {
            true => range,
            false => of_shares(range, bars.flat_map(|bar| [bar.value, bar.paper]).flatten()),
        }
    }

    fn axis(&self, body: &mut String, scale: &AxisScale, left: f64, bottom: f64) {
        for (value, label) in scale.ticks() {
            let x = scale.at(value);
            line(body, "grid", (x, TOP), (x, bottom));
            text(body, (x, bottom + 15.0), "small middle", &label);
        }
        let zero = scale.at(0.0);
        line(body, "axis", (zero, TOP), (zero, bottom));
        text(body, ((left + WIDTH - 34.0) / 2.0, bottom + 33.0), "soft middle", &self.unit);
    }

    fn description(&self) -> String {
        let mut words = format!("{} ({})", self.title, self.unit);
        for (number, group) in self.groups.iter().enumerate() {
            let values: Vec<String> =
                group.bars.iter().filter_map(|bar| bar.value).map(shown).collect();
            let _ = write!(
                words,
                "{} {} {}",
                if number == 0 { ":" } else { ";" },
                group.name,
                values.join(", ")
            );
        }
        words + "."
    }
}

/// Half the width of the paper's marker.
const DIAMOND: f64 = 4.5;
/// The width of a label after its bar.
const LABEL: f64 = 34.0;

fn draw(body: &mut String, scale: &AxisScale, bar: &Bar, (y, thick): (f64, f64), labelled: bool) {
    let (zero, middle) = (scale.at(0.0), y + thick / 2.0);
    let mut end = zero;
    if let Some(value) = bar.value {
        let x = scale.at(value);
        let _ = writeln!(
            body,
            "<rect class=\"bar c{}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"1.5\"/>",
            bar.colour % COLOURS,
            x.min(zero),
            y + 0.75,
            (x - zero).abs().max(0.6),
            thick - 1.5
        );
        end = end.max(x);
    }
    if let Some((low, high)) = bar.interval {
        let (a, b, cap) = (scale.at(low), scale.at(high), thick * 0.26);
        let _ = writeln!(
            body,
            "<path class=\"error\" d=\"M{a:.1} {:.1}v{:.1}M{a:.1} {middle:.1}H{b:.1}M{b:.1} {:.1}v{:.1}\"/>",
            middle - cap,
            2.0 * cap,
            middle - cap,
            2.0 * cap
        );
        end = end.max(b);
    }
    if let Some(paper) = bar.paper {
        let x = scale.at(paper);
        body.push_str(&diamond(x, middle));
        // The label is beside its bar, unless it would cover a marker.
        if (end..end + LABEL).contains(&(x - DIAMOND))
            || (end..end + LABEL).contains(&(x + DIAMOND))
        {
            end = x + DIAMOND;
        }
    }
    if let (true, Some(value)) = (labelled, bar.value) {
        text(body, (end + 5.0, middle + 4.0), "small", &shown(value));
    }
}
