//! A table as HTML: our means with their intervals, the papers' numbers, repeated row names left out.

use std::fmt::Write as _;

use super::exhibit::{ReportTable, TableCell};
use super::finding::signed;
use crate::draw::escaped;
use terms::Estimate;

/// A table in HTML.
pub(super) fn rows(table: &ReportTable) -> String {
    let mut html = String::from("<table>\n<thead>");
    if !table.groups.is_empty() {
        html.push_str("<tr class=\"groups\">");
        for (name, span) in &table.groups {
            let _ = write!(html, "<th colspan=\"{span}\">{}</th>", escaped(name));
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
            // The name of the row above is not repeated.
            let again =
                column == 0 && matches!((cell, &before), (TableCell::Name(a), Some(b)) if a == b);
            html.push_str(&in_html(cell, again));
        }
        if let Some(TableCell::Name(name)) = row.first() {
            before = Some(name.clone());
        }
        html.push_str("</tr>\n");
    }
    html + "</tbody>\n</table>"
}

fn in_html(cell: &TableCell, again: bool) -> String {
    match cell {
        TableCell::Name(name) if again => {
            format!("<th scope=\"row\"><span class=\"again\">{}</span></th>", escaped(name))
        }
        TableCell::Name(name) => format!("<th scope=\"row\">{}</th>", escaped(name)),
        TableCell::Text(text) => format!("<td class=\"text\">{}</td>", escaped(text)),
        TableCell::Ours(Some(mean)) => number(*mean, 3, ""),
        TableCell::Count(Some(mean)) => number(*mean, 0, ""),
        TableCell::Percent(Some(mean)) => number(*mean, 1, " %"),
        TableCell::Paper(Some(value), 0) => {
            format!("<td class=\"theirs\">{}</td>", grouped(*value))
        }
        TableCell::Paper(Some(value), digits) => {
            format!("<td class=\"theirs\">{}</td>", signed(*value, *digits))
        }
        TableCell::Ours(None)
        | TableCell::Count(None)
        | TableCell::Percent(None)
        | TableCell::Paper(None, _) => "<td class=\"none\">–</td>".to_owned(),
    }
}

fn number(mean: Estimate, digits: usize, unit: &str) -> String {
    let shown = |value: f64| if digits == 0 { grouped(value) } else { signed(value, digits) };
    let half =
        mean.half_width.map_or(String::new(), |half| format!(" <span>±{}</span>", shown(half)));
    format!("<td><b>{}{unit}</b>{half} <small>{}</small></td>", shown(mean.mean), mean.n)
}

/// A whole number with thousands separators.
pub(super) fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
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
}
