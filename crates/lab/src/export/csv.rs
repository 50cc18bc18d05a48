//! Comma-separated values (RFC 4180).

use super::ResultsSheet;

pub(super) fn csv(sheet: &ResultsSheet) -> String {
    let mut out = line(sheet.columns.iter().map(|column| column.name.clone()));
    for row in 0..sheet.rows() {
        out +=
            &line(sheet.columns.iter().map(|column| column.values.exact(row).unwrap_or_default()));
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
