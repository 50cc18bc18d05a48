//! The numbers behind a figure, for a CSV file beside it: what is drawn can be read, and drawn again elsewhere.

/// One row: names of columns, and values as text. Rows of one figure may differ in their columns.
pub type DataRow = Vec<(&'static str, String)>;

/// Rows as CSV (RFC 4180); the columns are those of all rows, in the order in which they occur.
pub(super) fn csv<'a>(rows: impl Iterator<Item = &'a DataRow> + Clone) -> String {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in rows.clone().flatten() {
        if !names.contains(name) {
            names.push(name);
        }
    }
    let mut out = names.join(",") + "\n";
    for row in rows {
        let value = |name: &&str| {
            row.iter()
                .find(|(own, _)| own == name)
                .map_or(String::new(), |(_, value)| quoted(value))
        };
        out += &(names.iter().map(value).collect::<Vec<_>>().join(",") + "\n");
    }
    out
}

/// A measured number with six significant digits, as a cell.
pub(super) fn number(value: f64) -> String {
    let digits = if value == 0.0 { 5.0 } else { 5.0 - value.abs().log10().floor() };
    let text = format!("{value:.*}", digits.clamp(0.0, 12.0) as usize);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A cell as CSV has it.
pub fn quoted(value: &str) -> String {
    match value.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", value.replace('"', "\"\"")),
        false => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_one_table() {
        let rows = [
            vec![("panel", "a, b".to_owned()), ("value", number(0.123_456_78))],
            vec![("panel", "\"c\"".to_owned()), ("paper", number(12.0))],
        ];
        let expected = "panel,value,paper\n\"a, b\",0.123457,\n\"\"\"c\"\"\",,12\n";
        assert_eq!(csv(rows.iter()), expected);
        assert_eq!([0.0, -0.000_5, 1e-20, 1e7].map(number), ["0", "-0.0005", "0", "10000000"]);
    }
}
