//! Figures as SVG in one style: text stays text, colour-blind-safe colours, light and dark.
//!
//! A [`Figure`] is a row of panels under one legend. A panel is about as wide as a phone, so that a page
//! sets panels beside one another or below one another and nothing is scaled until it cannot be read.
//! Colours are variables of a style sheet that follows the reader's scheme. The same drawing goes into a
//! page, where the sheet stands once, or into a file of its own, which carries a sheet with literal colours ([`Figure::svg`]);
//! [`crate::pdf`] and [`crate::png`] convert such a file. [`Figure::csv`] has the numbers.

#![allow(missing_docs, reason = "only surfaces import it; a name says what it is")]

mod data;
mod dots;
pub mod figure;
mod heat;
mod lines;
mod picture;
mod scale;
mod sheet;
mod similarity;
pub mod spaces;
mod svg;

pub use data::{DataRow, quoted};
pub use dots::{DotChart, DotMark, DotRow, ReferenceLine};
pub use heat::Heatmap;
pub use lines::{ChartPoint, LineChart, LineSeries};
pub use picture::{PictureError, colours, pdf, png};
pub use scale::short;
pub use sheet::ColourScheme;
pub use similarity::{ComparedSides, cka_figure, similarity_figure};
pub use svg::escaped;

use std::fmt::Write as _;

/// The style sheet of all figures, to stand once in a page.
pub const STYLE: &str = include_str!("style.css");

/// The number of colours; further series begin again with another marker.
pub const COLOURS: usize = 15;

/// The width of a panel: three beside one another on a page of 1280 pixels with its column of contents, one on a phone.
pub const PANEL_WIDTH: f64 = 290.0;

/// What every file has beside its panels.
const FIXED: &str = "<rect class=\"ground\"/><text class=\"title\"/>";

/// The space between panels, and between panels and the edge, in a file.
const GAP: f64 = 20.0;
/// The width of a file: three panels of charts, six of points.
const PAGE: f64 = 1160.0;
/// The height of a line of a caption.
const CAPTION_LINE: f64 = 16.0;
/// From which width on a panel is printed in a row of its own.
const WIDE: f64 = 400.0;
/// By how much a title is wider than a caption of the same letters.
const TITLE: f64 = 1.45;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegendEntry {
    pub name: String,
    pub mark: SeriesMark,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesMark {
    /// A line and its points in this colour.
    Line(usize),
    /// The same, dashed: a variant of the system with this colour.
    DashedLine(usize),
    /// The dots and the mean of a series in this colour.
    Sample(usize),
    /// The same of a variant: with a dashed interval.
    DashedSample(usize),
    Dot(usize),
    Seed,
    Mean,
    Interval,
    /// The hollow diamond of a paper's numbers.
    Paper,
}

impl LegendEntry {
    pub fn of(name: &str, mark: SeriesMark) -> Self {
        Self { name: name.to_owned(), mark }
    }
}

/// A drawing before it is drawn: what is compared can be read off it.
#[derive(Clone, Debug)]
pub enum Chart {
    Dots(DotChart),
    Lines(LineChart),
    Heat(Heatmap),
}

impl Chart {
    fn panel(&self) -> Panel {
        match self {
            Chart::Dots(chart) => chart.panel(),
            Chart::Lines(chart) => chart.panel(),
            Chart::Heat(chart) => chart.panel(),
        }
    }

    fn legend(&self) -> Vec<LegendEntry> {
        match self {
            Chart::Dots(chart) => chart.legend(),
            Chart::Lines(chart) => chart.legend(),
            Chart::Heat(_) => vec![],
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Width in units of the drawing, pixels at full size.
    pub width: f64,
    /// Height in the same.
    pub height: f64,
    pub description: String,
    body: String,
    pub data: Vec<DataRow>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// A name of letters, digits and hyphens: of the file, and of what refers to it.
    pub id: String,
    pub title: String,
    /// The series, in the order in which they are drawn.
    pub legend: Vec<LegendEntry>,
    pub panels: Vec<Panel>,
}

impl Figure {
    /// Charts as panels, under a legend of the marks that are drawn in any of them.
    pub fn of(id: String, title: String, charts: &[Chart]) -> Self {
        let mut legend: Vec<LegendEntry> = Vec::new();
        for entry in charts.iter().flat_map(Chart::legend) {
            if !legend.contains(&entry) {
                legend.push(entry);
            }
        }
        // Series first, then what dots, ticks and lines mean.
        legend.sort_by_key(|entry| {
            use SeriesMark::{Interval, Mean, Paper, Seed};
            matches!(entry.mark, Seed | Mean | Interval | Paper)
        });
        Self { id, title, legend, panels: charts.iter().map(Chart::panel).collect() }
    }

    /// The legend and the panels as parts of a page that has the style sheet.
    pub fn html(&self) -> String {
        let mut html = String::new();
        if !self.legend.is_empty() {
            html.push_str("<ul class=\"legend\">");
            for key in &self.legend {
                let swatch =
                    "<svg class=\"isogloss\" width=\"22\" height=\"12\" aria-hidden=\"true\">";
                let _ = write!(
                    html,
                    "<li>{swatch}{}</svg>{}</li>",
                    swatch_of(key.mark),
                    escaped(&key.name)
                );
            }
            html.push_str("</ul>");
        }
        html.push_str("<div class=\"panels\">");
        for (number, panel) in self.panels.iter().enumerate() {
            html.push_str(&panel.svg(&format!("{}-{number}", self.id)));
        }
        html.push_str("</div>");
        html
    }

    /// The whole figure as an SVG file in light colours, which any program can paint.
    pub fn svg(&self) -> String {
        self.svg_in(ColourScheme::Light)
    }

    /// The whole figure as an SVG file in one scheme of colours.
    pub fn svg_in(&self, scheme: ColourScheme) -> String {
        self.svg_with_caption(scheme, "")
    }

    pub fn svg_with_caption(&self, scheme: ColourScheme, caption: &str) -> String {
        self.svg_of(scheme, caption, PAGE)
    }

    /// The same for a narrower place: as many panels beside one another as it has room for.
    pub fn svg_within(&self, scheme: ColourScheme, width: f64) -> String {
        self.svg_of(scheme, "", width.min(PAGE))
    }

    fn svg_of(&self, scheme: ColourScheme, caption: &str, page: f64) -> String {
        let rows = self.rows(page);
        let titles = match page < PAGE {
            // Letters of a title are wider than those of a caption.
            true => svg::wrapped(&self.title, (page - 2.0 * GAP) / TITLE),
            false => vec![self.title.clone()],
        };
        let row_width =
            |row: &[Panel]| row.iter().map(|panel| panel.width + GAP).sum::<f64>() + GAP;
        let row_height = |row: &[Panel]| row.iter().map(|panel| panel.height).fold(0.0, f64::max);
        let longest = titles.iter().map(|line| line.chars().count()).max().unwrap_or(0);
        let title = longest as f64 * 8.2 + 2.0 * GAP;
        let width = rows.iter().map(|row| row_width(row)).fold(title, f64::max);
        let top = GAP + 22.0 + 19.0 * titles.len().saturating_sub(1) as f64;
        let (legend, mut y) = self.legend_svg(width, top);
        let title: String = titles
            .iter()
            .enumerate()
            .map(|(number, line)| {
                let y = GAP + 8.0 + 19.0 * number as f64;
                format!("<text class=\"title\" x=\"{GAP}\" y=\"{y}\">{}</text>\n", escaped(line))
            })
            .collect();
        let height = y + rows.iter().map(|row| row_height(row) + GAP).sum::<f64>();
        let mut drawn = legend;
        for row in rows {
            let mut x = GAP;
            for panel in row {
                let _ =
                    writeln!(drawn, "<g transform=\"translate({x:.0} {y:.0})\">{}</g>", panel.body);
                x += panel.width + GAP;
            }
            y += row_height(row) + GAP;
        }
        for line in svg::wrapped(caption, width - 2.0 * GAP) {
            svg::text(&mut drawn, (GAP, y), "small", &line);
            y += CAPTION_LINE;
        }
        let height = if caption.is_empty() { height } else { y };
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"isogloss\" role=\"img\" width=\"{width:.0}\" \
             height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\">\n<title>{name}</title>\n<desc>{about}</desc>\n\
             <style>{sheet}</style>\n<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n\
             {title}{drawn}</svg>\n",
            name = escaped(&self.title),
            about =
                escaped(&self.panels.iter().map(|p| &*p.description).collect::<Vec<_>>().join(" ")),
            sheet = sheet::literal_sheet(&(FIXED.to_owned() + &drawn), scheme),
            drawn = sheet::literal(&drawn, scheme),
        )
    }

    fn rows(&self, page: f64) -> Vec<&[Panel]> {
        let mut rows: Vec<&[Panel]> = Vec::new();
        let (mut start, mut width) = (0, GAP);
        for (number, panel) in self.panels.iter().enumerate() {
            if number > start && width + panel.width + GAP > page {
                rows.push(&self.panels[start..number]);
                (start, width) = (number, GAP);
            }
            width += panel.width + GAP;
        }
        rows.push(&self.panels[start..]);
        rows
    }

    /// The numbers of all panels as CSV, a row for each mark.
    pub fn csv(&self) -> String {
        data::csv(self.panels.iter().flat_map(|panel| &panel.data))
    }

    /// The legend in lines of a width, and the height below it.
    fn legend_svg(&self, width: f64, top: f64) -> (String, f64) {
        let (mut out, mut x, mut y) = (String::new(), GAP, top);
        for key in &self.legend {
            let wide = 40.0 + 6.6 * key.name.chars().count() as f64;
            if x > GAP && x + wide > width {
                (x, y) = (GAP, y + 20.0);
            }
            let _ = writeln!(
                out,
                "<g transform=\"translate({x:.0} {y:.0})\">{}<text x=\"28\" y=\"10\">{}</text></g>",
                swatch_of(key.mark),
                escaped(&key.name)
            );
            x += wide;
        }
        (out, if self.legend.is_empty() { y } else { y + 28.0 })
    }
}

impl Panel {
    fn svg(&self, id: &str) -> String {
        let Self { width, height, description, body, .. } = self;
        format!(
            "<svg class=\"isogloss{wide}\" role=\"img\" aria-labelledby=\"{id}\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             width=\"{width:.0}\" height=\"{height:.0}\"><title id=\"{id}\">{}</title>\n{body}</svg>\n",
            escaped(description),
            wide = if *width > WIDE { " wide" } else { "" },
        )
    }
}

/// The swatch of a series in a legend, 22 x 12.
fn swatch_of(mark: SeriesMark) -> String {
    match mark {
        SeriesMark::Line(colour) | SeriesMark::DashedLine(colour) => format!(
            "<g class=\"c{}\"><path class=\"line{}\" d=\"M0 6h22\"/>{}</g>",
            colour % COLOURS,
            if matches!(mark, SeriesMark::DashedLine(_)) { " dashed" } else { "" },
            svg::marker(colour, 11.0, 6.0)
        ),
        SeriesMark::Sample(colour) => format!(
            "<g class=\"c{}\">{}<path class=\"mean\" d=\"M11 1v10\"/></g>",
            colour % COLOURS,
            svg::seeds([(6.0, 6.0), (16.0, 6.0)].into_iter(), "seed")
        ),
        SeriesMark::DashedSample(colour) => format!(
            "<g class=\"c{}\"><path class=\"interval dashed\" d=\"M0 6h22\"/><path class=\"mean thin\" d=\"M11 1v10\"/></g>",
            colour % COLOURS
        ),
        SeriesMark::Dot(colour) => {
            format!(
                "<path class=\"c{} dots\" style=\"stroke-width:9;stroke-opacity:1\" d=\"M11 6h.1\"/>",
                colour % COLOURS
            )
        }
        SeriesMark::Seed => {
            format!("<g class=\"c6\">{}</g>", svg::seeds([(11.0, 6.0)].into_iter(), "seed"))
        }
        SeriesMark::Mean => "<g class=\"c6\"><path class=\"mean\" d=\"M11 1v10\"/></g>".to_owned(),
        SeriesMark::Interval => {
            "<g class=\"c6\"><path class=\"interval\" d=\"M2 6h18\"/></g>".to_owned()
        }
        SeriesMark::Paper => svg::diamond(11.0, 6.0),
    }
}

#[cfg(test)]
mod tests;
