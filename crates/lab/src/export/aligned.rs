//! For people: columns aligned by spaces or by the bars of Markdown.

use super::{ColumnValues, ResultsSheet, SheetColumn};

/// Columns aligned by spaces, numbers to the right.
pub(super) fn table(sheet: &ResultsSheet) -> String {
    aligned(sheet, printable, |cells, _| cells.join("  ").trim_end().to_owned())
}

/// A table of Markdown that is also aligned.
pub(super) fn markdown(sheet: &ResultsSheet) -> String {
    let safe = |cell: String| printable(cell).replace('|', "\\|");
    aligned(sheet, safe, |cells, head| {
        let line = format!("| {} |", cells.join(" | "));
        if !head {
            return line;
        }
        let rule = |(cell, column): (&String, &SheetColumn)| {
            let dashes = "-".repeat(cell.chars().count().max(3));
            if is_text(column) { dashes } else { format!("{}:", &dashes[1..]) }
        };
        let rules: Vec<String> = cells.iter().zip(&sheet.columns).map(rule).collect();
        format!("{line}\n| {} |", rules.join(" | "))
    })
}

fn is_text(column: &SheetColumn) -> bool {
    matches!(column.values, ColumnValues::Text(_))
}

/// A cell without control characters, which a terminal would obey.
fn printable(cell: String) -> String {
    cell.replace(char::is_control, " ")
}

/// Every line through `join`, its cells padded to the width of their column; the header comes first.
fn aligned(
    sheet: &ResultsSheet,
    safe: impl Fn(String) -> String,
    join: impl Fn(&[String], bool) -> String,
) -> String {
    let columns: Vec<Vec<String>> = sheet
        .columns
        .iter()
        .map(|column| {
            let rows = (0..sheet.rows()).map(|row| column.values.rounded(row));
            std::iter::once(column.name.clone()).chain(rows).map(&safe).collect()
        })
        .collect();
    let wide = |cells: &Vec<String>| {
        cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0).max(3)
    };
    let widths: Vec<usize> = columns.iter().map(wide).collect();
    let mut out = String::new();
    for row in 0..=sheet.rows() {
        let pad = |index: usize| {
            let cell = &columns[index][row];
            // A width in a format string is limited to 65,535.
            let padding = " ".repeat(widths[index] - cell.chars().count());
            match is_text(&sheet.columns[index]) {
                true => format!("{cell}{padding}"),
                false => format!("{padding}{cell}"),
            }
        };
        let cells: Vec<String> = (0..columns.len()).map(pad).collect();
        out += &join(&cells, row == 0);
        out.push('\n');
    }
    out
}
