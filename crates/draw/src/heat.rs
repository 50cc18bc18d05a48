//! Heatmaps with their values printed in the cells.

use std::fmt::Write as _;

use super::data::number;
use super::scale::{short, shown};
use super::svg::{escaped, text, width};
use super::{DataRow, PANEL_WIDTH, Panel};

const TOP: f64 = 30.0;
const BOTTOM: f64 = 60.0;
/// Viridis (van der Walt and Smith 2015) at even steps: lightness increases, also for the colour-blind.
const COLOURS: [[u8; 3]; 9] = [
    [68, 1, 84],
    [71, 44, 122],
    [59, 81, 139],
    [44, 113, 142],
    [33, 144, 141],
    [39, 173, 129],
    [92, 200, 99],
    [170, 220, 50],
    [253, 231, 37],
];

#[derive(Clone, Debug, Default)]
pub struct Heatmap {
    pub title: String,
    /// What the rows are, and the name of each.
    pub down: (String, Vec<String>),
    /// What the columns are, and the name of each.
    pub across: (String, Vec<String>),
    /// Row by row; a cell without a value is blank.
    pub values: Vec<Vec<Option<f64>>>,
    /// The values of the first and the last colour.
    pub range: (f64, f64),
}

impl Heatmap {
    pub fn panel(&self) -> Panel {
        let (rows, cols) = (self.down.1.len().max(1) as f64, self.across.1.len().max(1) as f64);
        let names = self.down.1.iter().map(|name| width(name)).fold(10.0, f64::max).min(120.0);
        let left = names + 34.0;
        let wide = ((PANEL_WIDTH - 12.0 - left) / cols).clamp(25.0, 54.0);
        let tall = wide.min(26.0);
        let span = (left + cols * wide + 12.0).max(PANEL_WIDTH);
        let mut body = String::new();
        text(&mut body, (8.0, 14.0), "name", &self.title);
        for (i, row) in self.values.iter().enumerate() {
            let y = TOP + i as f64 * tall;
            text(&mut body, (left - 7.0, y + tall / 2.0 + 4.0), "small end", &self.down.1[i]);
            for (j, &value) in row.iter().enumerate() {
                self.cell(&mut body, (i, j), value, (left + j as f64 * wide, y, wide, tall));
            }
        }
        let floor = TOP + rows * tall;
        for (j, name) in self.across.1.iter().enumerate() {
            text(&mut body, (left + (j as f64 + 0.5) * wide, floor + 16.0), "small middle", name);
        }
        text(&mut body, (left + cols * wide / 2.0, floor + 36.0), "soft middle", &self.across.0);
        let (x, y) = (14.0, TOP + rows * tall / 2.0);
        let _ = writeln!(
            body,
            "<text class=\"soft middle\" x=\"{x}\" y=\"{y:.1}\" transform=\"rotate(-90 {x} {y:.1})\">{}</text>",
            escaped(&self.down.0)
        );
        Panel {
            width: span,
            height: floor + BOTTOM - 14.0,
            description: self.description(),
            body,
            data: self.data(),
        }
    }

    fn data(&self) -> Vec<DataRow> {
        let mut rows = Vec::new();
        for (down, values) in self.down.1.iter().zip(&self.values) {
            for (across, value) in self.across.1.iter().zip(values) {
                let mut row = vec![("panel", self.title.clone())];
                row.extend([("down", down.clone()), ("across", across.clone())]);
                row.extend(value.map(|value| ("value", number(value))));
                rows.push(row);
            }
        }
        rows
    }

    fn cell(
        &self,
        body: &mut String,
        (i, j): (usize, usize),
        value: Option<f64>,
        (x, y, w, h): (f64, f64, f64, f64),
    ) {
        let printed = value.map_or("none".to_owned(), shown);
        let about = escaped(&format!("{}, {}: {printed}", self.down.1[i], self.across.1[j]));
        let place = format!(
            "x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"2\"",
            w - 1.5,
            h - 1.5
        );
        let Some(value) = value else {
            let _ = writeln!(body, "<rect class=\"none\" {place}><title>{about}</title></rect>");
            return;
        };
        let (low, high) = self.range;
        let colour = colour((value - low) / (high - low));
        let ink = if light(colour) { "#14171b" } else { "#fff" };
        let [r, g, b] = colour;
        let _ = writeln!(
            body,
            "<rect fill=\"#{r:02x}{g:02x}{b:02x}\" {place}><title>{about}</title></rect>\
             <text class=\"cell\" x=\"{:.1}\" y=\"{:.1}\" style=\"fill:{ink}\">{}</text>",
            x + w / 2.0 - 0.75,
            y + h / 2.0 + 3.2,
            short(value)
        );
    }

    fn description(&self) -> String {
        let mut words = format!("{}: {} by {}", self.title, self.down.0, self.across.0);
        for (name, row) in self.down.1.iter().zip(&self.values) {
            let row: Vec<String> =
                row.iter().map(|value| value.map_or("none".to_owned(), shown)).collect();
            let _ = write!(words, "; {name}: {}", row.join(", "));
        }
        words + "."
    }
}

/// The colour of a share, clamped to 0 to 1.
fn colour(share: f64) -> [u8; 3] {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.5 };
    let place = share * (COLOURS.len() - 1) as f64;
    let below = (place as usize).min(COLOURS.len() - 2);
    let rest = place - below as f64;
    std::array::from_fn(|i| {
        let (a, b) = (f64::from(COLOURS[below][i]), f64::from(COLOURS[below + 1][i]));
        (a + rest * (b - a)).round() as u8
    })
}

/// Whether black text is easier to read on a colour than white.
fn light([r, g, b]: [u8; 3]) -> bool {
    0.299 * f64::from(r) + 0.587 * f64::from(g) + 0.114 * f64::from(b) > 128.0
}
