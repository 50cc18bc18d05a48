//! Comma-separated values, as RFC 4180 has them.

use super::Sheet;

pub(super) fn csv(sheet: &Sheet) -> String {
    let mut out = line(sheet.columns.iter().map(|column| column.name.clone()));
    for row in 0..sheet.rows() {
        out +=
            &line(sheet.columns.iter().map(|column| column.cells.exact(row).unwrap_or_default()));
    }
    out
}

fn line(cells: impl Iterator<Item = String>) -> String {
    let quoted = |cell: String| {
        if cell.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", cell.replace('"', "\"\""))
        } else {
            cell
        }
    };
    cells.map(quoted).collect::<Vec<_>>().join(",") + "\r\n"
}
