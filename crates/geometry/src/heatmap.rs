//! A table of values between 0 and 1 as a picture: SVG, in colours that everybody tells apart.

use std::fmt::Write as _;

/// Side of a cell, and the room around the table, in pixels.
const CELL: usize = 46;
const LEFT: usize = 86;
const TOP: usize = 74;
const BOTTOM: usize = 60;
/// From the table to the bar of colours, and the bar's width.
const GAP: usize = 26;
const BAR: usize = 16;
/// Viridis at even steps: rising in lightness, and clear to the colour-blind.
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

/// What is drawn.
pub struct Heatmap<'a> {
    /// Above the table.
    pub title: &'a str,
    /// Below the title, smaller.
    pub subtitle: &'a str,
    /// What the rows are, and the name of each.
    pub down: (&'a str, Vec<String>),
    /// What the columns are, and the name of each.
    pub across: (&'a str, Vec<String>),
    /// Row by row; none is left blank.
    pub values: &'a [Vec<Option<f64>>],
}

impl Heatmap<'_> {
    /// The picture, a whole SVG document.
    pub fn svg(&self) -> String {
        let (rows, cols) = (self.down.1.len(), self.across.1.len());
        let text_width =
            7 * self.subtitle.chars().count().max(8 * self.title.chars().count() / 6) + 20;
        let width = (LEFT + cols * CELL + GAP + BAR + 50).max(text_width);
        let height = TOP + rows * CELL + BOTTOM;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"Helvetica, Arial, sans-serif\" fill=\"#222\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
        );
        text(&mut svg, (12, 26), "font-size=\"17\" font-weight=\"600\"", self.title);
        text(&mut svg, (12, 47), "font-size=\"12\" fill=\"#555\"", self.subtitle);
        self.cells(&mut svg);
        self.names(&mut svg, rows, cols);
        bar(&mut svg, LEFT + cols * CELL + GAP, rows * CELL);
        svg.push_str("</svg>\n");
        svg
    }

    fn cells(&self, svg: &mut String) {
        for (i, row) in self.values.iter().enumerate() {
            for (j, &value) in row.iter().enumerate() {
                let (x, y) = (LEFT + j * CELL, TOP + i * CELL);
                let fill = value.map_or("#eee".to_owned(), |value| hex(colour(value)));
                let shown = value.map_or("none".to_owned(), |value| format!("{value:.3}"));
                let (down, across) = (escaped(&self.down.1[i]), escaped(&self.across.1[j]));
                let _ = writeln!(
                    svg,
                    "<rect x=\"{x}\" y=\"{y}\" width=\"{CELL}\" height=\"{CELL}\" fill=\"{fill}\" \
                     stroke=\"#fff\"><title>{down}, {across}: {shown}</title></rect>"
                );
                if let Some(value) = value {
                    let ink = if light(colour(value)) { "#000" } else { "#fff" };
                    let style = format!("font-size=\"13\" text-anchor=\"middle\" fill=\"{ink}\"");
                    text(svg, (x + CELL / 2, y + CELL / 2 + 5), &style, &short(value));
                }
            }
        }
    }

    fn names(&self, svg: &mut String, rows: usize, cols: usize) {
        for (i, name) in self.down.1.iter().enumerate() {
            let at = (LEFT - 8, TOP + i * CELL + CELL / 2 + 4);
            text(svg, at, "font-size=\"12\" text-anchor=\"end\"", name);
        }
        for (j, name) in self.across.1.iter().enumerate() {
            let at = (LEFT + j * CELL + CELL / 2, TOP + rows * CELL + 18);
            text(svg, at, "font-size=\"12\" text-anchor=\"middle\"", name);
        }
        let style = "font-size=\"13\" text-anchor=\"middle\" fill=\"#333\"";
        text(svg, (LEFT + cols * CELL / 2, TOP + rows * CELL + 42), style, self.across.0);
        let (x, y) = (22, TOP + rows * CELL / 2);
        let turned = format!("{style} transform=\"rotate(-90 {x} {y})\"");
        text(svg, (x, y), &turned, self.down.0);
    }
}

/// The bar that says which colour stands for what, from 1 at the top to 0.
fn bar(svg: &mut String, x: usize, height: usize) {
    for (stop, colour) in COLOURS.iter().rev().enumerate() {
        if stop == 0 {
            svg.push_str("<defs><linearGradient id=\"scale\" x1=\"0\" x2=\"0\" y1=\"0\" y2=\"1\">");
        }
        let share = stop as f64 / (COLOURS.len() - 1) as f64;
        let _ = write!(svg, "<stop offset=\"{share}\" stop-color=\"{}\"/>", hex(*colour));
    }
    svg.push_str("</linearGradient></defs>\n");
    let _ = writeln!(
        svg,
        "<rect x=\"{x}\" y=\"{TOP}\" width=\"{BAR}\" height=\"{height}\" fill=\"url(#scale)\"/>"
    );
    for (share, label) in [(0, "1"), (1, ".5"), (2, "0")] {
        let at = (x + BAR + 6, TOP + share * height / 2 + 4);
        text(svg, at, "font-size=\"12\"", label);
    }
}

fn text(svg: &mut String, (x, y): (usize, usize), style: &str, text: &str) {
    let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y}\" {style}>{}</text>", escaped(text));
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Two digits, without the zero before the point.
fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    match text.strip_prefix("0.").or_else(|| text.strip_prefix("-0.")) {
        Some(digits) if text.starts_with('-') && digits != "00" => format!("−.{digits}"),
        Some(digits) => format!(".{digits}"),
        None => text,
    }
}

/// The colour of a value; what lies outside of 0 to 1 has that of the nearer end.
fn colour(value: f64) -> [u8; 3] {
    let place = value.clamp(0.0, 1.0) * (COLOURS.len() - 1) as f64;
    let below = (place as usize).min(COLOURS.len() - 2);
    let share = place - below as f64;
    std::array::from_fn(|i| {
        let (a, b) = (f64::from(COLOURS[below][i]), f64::from(COLOURS[below + 1][i]));
        (a + share * (b - a)).round() as u8
    })
}

fn hex([r, g, b]: [u8; 3]) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Whether black is easier to read on a colour than white.
fn light([r, g, b]: [u8; 3]) -> bool {
    0.299 * f64::from(r) + 0.587 * f64::from(g) + 0.114 * f64::from(b) > 128.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_names_every_cell() {
        let values = vec![vec![Some(1.0), Some(0.0)], vec![None, Some(-0.034)]];
        let names = || vec!["0".to_owned(), "<1>".to_owned()];
        let map = Heatmap {
            title: "a & b",
            subtitle: "",
            down: ("left", names()),
            across: ("right", names()),
            values: &values,
        };
        let svg = map.svg();
        for part in ["a &amp; b", "#fde725", "#440154", ">1.00<", "−.03", "&lt;1&gt;, 0: none"] {
            assert!(svg.contains(part), "{part} in {svg}");
        }
        assert_eq!(svg.matches("<rect").count(), 6);
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
    }

    #[test]
    fn numbers_are_short() {
        let all = [0.5, 1.0, 0.0, -0.5, -0.001, 12.0].map(short);
        assert_eq!(all, [".50", "1.00", ".00", "−.50", ".00", "12.00"]);
    }
}
