//! A table as HTML and as CSV: our means with their intervals, the papers' numbers, repeated row names left out.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::exhibit::{ReportTable, TableCell};
use super::finding::signed;
use crate::draw::escaped;
use crate::draw::figure::thousands;
use crate::draw::quoted;
use terms::Estimate;

/// A table of more rows is opened by the reader.
const MOST_ROWS: usize = 24;

impl ReportTable {
    /// Whether it is longer than a screen.
    pub(super) fn is_long(&self) -> bool {
        self.rows.len() > MOST_ROWS
    }

    /// The number of seeds of most means.
    fn usual_seeds(&self) -> usize {
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        for cell in self.rows.iter().flatten() {
            if let TableCell::Ours(Some(mean)) | TableCell::Percent(Some(mean)) = cell {
                *counts.entry(mean.n).or_default() += 1;
            }
        }
        counts.into_iter().max_by_key(|(_, count)| *count).map_or(0, |(n, _)| n)
    }

    /// As CSV (RFC 4180); a mean has a second column, half the width of its interval.
    pub(super) fn csv(&self) -> String {
        let means = |column: usize| {
            let ours = |row: &Vec<TableCell>| {
                matches!(
                    row.get(column),
                    Some(TableCell::Ours(_) | TableCell::Count(_) | TableCell::Percent(_))
                )
            };
            self.rows.iter().any(ours)
        };
        let spans: Vec<&str> = self
            .groups
            .iter()
            .flat_map(|(name, span)| std::iter::repeat_n(name.as_str(), *span))
            .collect();
        let mut lines = vec![Vec::new()];
        for (column, head) in self.heads.iter().enumerate() {
            let group = spans.get(column).filter(|name| !name.is_empty());
            let name = group.map_or(head.clone(), |group| format!("{group}: {head}"));
            lines[0].push(name.clone());
            lines[0].extend(means(column).then(|| format!("{name} \u{b1}")));
        }
        for row in &self.rows {
            let mut cells = Vec::new();
            for (column, cell) in row.iter().enumerate() {
                let (value, half) = match cell {
                    TableCell::Name(text) | TableCell::Text(text) => (text.clone(), None),
                    TableCell::Ours(mean) | TableCell::Count(mean) | TableCell::Percent(mean) => (
                        mean.map_or(String::new(), |mean| format!("{:.6}", mean.mean)),
                        mean.and_then(|mean| mean.half_width),
                    ),
                    TableCell::Paper(value, _) => {
                        (value.map_or(String::new(), |value| value.to_string()), None)
                    }
                };
                cells.push(value);
                if means(column) {
                    cells.push(half.map_or(String::new(), |half| format!("{half:.6}")));
                }
            }
            lines.push(cells);
        }
        let line = |cells: &Vec<String>| {
            cells.iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(",") + "\n"
        };
        lines.iter().map(line).collect()
    }
}

pub(super) fn rows(table: &ReportTable) -> String {
    let usual = table.usual_seeds();
    let mut html = String::from("<table>\n<thead>");
    if !table.groups.is_empty() {
        html.push_str("<tr class=\"groups\">");
        for (name, span) in &table.groups {
            let _ = match name.is_empty() {
                true => write!(html, "<td colspan=\"{span}\"></td>"),
                false => {
                    write!(html, "<th scope=\"colgroup\" colspan=\"{span}\">{}</th>", escaped(name))
                }
            };
        }
        html.push_str("</tr>");
    }
    html.push_str("<tr>");
    for (column, head) in table.heads.iter().enumerate() {
        // A header is aligned as its column: text to the left, numbers to the right.
        let first = table.rows.first().and_then(|row| row.get(column));
        let class = if matches!(first, Some(TableCell::Text(_))) { " class=\"text\"" } else { "" };
        let _ = write!(html, "<th scope=\"col\"{class}>{}</th>", escaped(head));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    let mut before = None;
    for row in &table.rows {
        html.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            // The name of the row above is not repeated for the eye; a screen reader has it.
            let again =
                column == 0 && matches!((cell, &before), (TableCell::Name(a), Some(b)) if a == b);
            html.push_str(&in_html(cell, again, usual));
        }
        if let Some(TableCell::Name(name)) = row.first() {
            before = Some(name.clone());
        }
        html.push_str("</tr>\n");
    }
    html + "</tbody>\n</table>"
}

fn in_html(cell: &TableCell, again: bool, usual: usize) -> String {
    match cell {
        TableCell::Name(name) if again => {
            format!("<th scope=\"row\"><span class=\"again\">{}</span></th>", escaped(name))
        }
        TableCell::Name(name) => {
            // A short name is not broken.
            let class = if name.chars().count() <= 18 { " class=\"whole\"" } else { "" };
            format!("<th scope=\"row\"{class}>{}</th>", escaped(name))
        }
        TableCell::Text(text) => format!("<td class=\"text\">{}</td>", escaped(text)),
        TableCell::Ours(Some(mean)) => number(*mean, 3, "", usual),
        TableCell::Count(Some(mean)) => number(*mean, 0, "", mean.n),
        TableCell::Percent(Some(mean)) => number(*mean, 1, " %", usual),
        TableCell::Paper(Some(value), digits) => {
            format!("<td class=\"theirs\">{}</td>", published(*value, *digits))
        }
        TableCell::Ours(None)
        | TableCell::Count(None)
        | TableCell::Percent(None)
        | TableCell::Paper(None, _) => "<td class=\"none\">–</td>".to_owned(),
    }
}

/// A number of a paper, with its own digits.
fn published(value: f64, digits: usize) -> String {
    if digits == 0 { grouped(value) } else { bare(value, digits) }
}

/// A share without its leading zero: `.712`.
fn bare(value: f64, digits: usize) -> String {
    let text = signed(value, digits);
    match digits > 1 && value.abs() < 1.0 {
        true => text.replacen("0.", ".", 1),
        false => text,
    }
}

/// A mean with its interval, and the number of seeds where it is not that of the table.
fn number(mean: Estimate, digits: usize, unit: &str, usual: usize) -> String {
    let shown = |value: f64| if digits == 0 { grouped(value) } else { bare(value, digits) };
    let half =
        mean.half_width.map_or(String::new(), |half| format!(" <span>±{}</span>", shown(half)));
    let seeds = match mean.n == usual {
        true => String::new(),
        false => format!(" <small>{}</small>", mean.n),
    };
    format!("<td><b>{}{unit}</b>{half}{seeds}</td>", shown(mean.mean))
}

/// A whole number with thousands separators.
pub(super) fn grouped(value: f64) -> String {
    let text = thousands(value.abs().round() as u64);
    if value <= -0.5 { format!("\u{2212}{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        assert_eq!(
            [0.0, 999.0, 1000.0, 1_234_567.0, -1500.0].map(grouped),
            ["0", "999", "1,000", "1,234,567", "\u{2212}1,500"]
        );
    }

    #[test]
    fn tables_are_files_as_well() {
        let mut table = ReportTable::new(&["a, b", "score"]);
        let mean = Estimate::of(&[0.5, 0.7]);
        table.rows.push(vec![TableCell::Name("x \"y\"".into()), TableCell::Ours(mean)]);
        table.rows.push(vec![TableCell::Name("z".into()), TableCell::Ours(None)]);
        let csv = table.csv();
        assert!(csv.starts_with("\"a, b\",score,score \u{b1}\n\"x \"\"y\"\"\",0.600000,"), "{csv}");
        assert!(csv.ends_with("z,,\n"), "{csv}");
        let html = rows(&table);
        assert!(html.contains("<b>.600</b>") && !html.contains("<small>"), "{html}");
    }
}
