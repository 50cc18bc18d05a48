//! For people: columns lined up, by spaces or by the bars of Markdown.

use super::{Cells, Column, Sheet};

/// Columns lined up by spaces, numbers to the right.
pub(super) fn table(sheet: &Sheet) -> String {
    lined(
        sheet,
        |cell| cell.replace(['\n', '\r'], " "),
        |cells, _| cells.join("  ").trim_end().to_owned(),
    )
}

/// A table of Markdown that is also lined up.
pub(super) fn markdown(sheet: &Sheet) -> String {
    let safe = |cell: String| cell.replace('|', "\\|").replace(['\n', '\r'], " ");
    lined(sheet, safe, |cells, head| {
        let line = format!("| {} |", cells.join(" | "));
        if !head {
            return line;
        }
        let rule = |(cell, column): (&String, &Column)| {
            let dashes = "-".repeat(cell.chars().count().max(3));
            if is_text(column) { dashes } else { format!("{}:", &dashes[1..]) }
        };
        let rules: Vec<String> = cells.iter().zip(&sheet.columns).map(rule).collect();
        format!("{line}\n| {} |", rules.join(" | "))
    })
}

fn is_text(column: &Column) -> bool {
    matches!(column.cells, Cells::Text(_))
}

/// Every line through `join`, its cells padded to the width of their column; the head comes first.
fn lined(
    sheet: &Sheet,
    safe: impl Fn(String) -> String,
    join: impl Fn(&[String], bool) -> String,
) -> String {
    let columns: Vec<Vec<String>> = sheet
        .columns
        .iter()
        .map(|column| {
            let rows = (0..sheet.rows()).map(|row| column.cells.rounded(row));
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
            let (cell, width) = (&columns[index][row], widths[index]);
            if is_text(&sheet.columns[index]) {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            }
        };
        let cells: Vec<String> = (0..columns.len()).map(pad).collect();
        out += &join(&cells, row == 0);
        out.push('\n');
    }
    out
}
