//! Every format gives back what went in, strange names and gaps included.

use std::fs::File;
use std::io::Write as _;

use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::{Field, RowAccessor};

use super::*;
use crate::record::Origin;

fn record(seed: u64, factors: &[(&str, &str)], value: f64) -> Record {
    let origin = Origin {
        study: "anchors".into(),
        scale: "tiny".into(),
        seed,
        step: "abc".into(),
        command: "isogloss pretrain, \"quoted\"".into(),
        build: "0.1.0".into(),
        finished_at: 5,
    };
    let factors =
        factors.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Record {
        origin,
        measure: "f1".into(),
        factors,
        value,
        signature: "a|b".into(),
        files: vec!["x".into()],
    }
}

fn records() -> Vec<Record> {
    vec![
        record(1, &[("condition", "no-anchors")], 0.1 + 0.2),
        record(u64::MAX, &[("condition", "no-anchors")], 0.5),
        record(1, &[("n", "a|b\nc")], -1.0),
    ]
}

fn written(sheet: &ResultsSheet, format: ExportFormat) -> Vec<u8> {
    let mut out = Vec::new();
    sheet.write(format, &mut out).unwrap();
    out
}

fn words(sheet: &ResultsSheet, format: ExportFormat) -> String {
    String::from_utf8(written(sheet, format)).unwrap()
}

#[test]
fn csv_keeps_every_digit_and_quotes() {
    let csv = words(&ResultsSheet::of(&records(), true), ExportFormat::Csv);
    let lines: Vec<&str> = csv.split("\r\n").collect();
    assert!(
        lines[0].starts_with("study,scale,measure,condition,factor.n,seed,value,signature"),
        "{csv}"
    );
    assert!(
        lines[1].contains(
            "no-anchors,,1,0.30000000000000004,a|b,abc,\"isogloss pretrain, \"\"quoted\"\"\""
        ),
        "{csv}"
    );
    assert!(lines[2].contains(&u64::MAX.to_string()), "{csv}");
    assert!(lines[3].contains("\"a|b\nc\""), "{csv}");
}

#[test]
fn means_have_intervals_where_there_are_seeds() {
    let sheet = ResultsSheet::means(&records());
    assert_eq!(sheet.rows(), 2);
    let json = sheet.json();
    assert!((json[0]["mean"].as_f64().unwrap() - 0.4).abs() < 1e-12 && json[0]["n"] == 2, "{json}");
    assert!((json[0]["high"].as_f64().unwrap() - 0.4 - 12.706_205 * 0.1).abs() < 1e-6, "{json}");
    assert!(json[1].get("low").is_none() && json[1]["n"] == 1, "{json}");
}

#[test]
fn people_get_columns() {
    let sheet = ResultsSheet::of(&records(), false);
    let table = words(&sheet, ExportFormat::Table);
    assert_eq!(table.lines().count(), 4, "{table}");
    assert!(table.contains("0.3000") && !table.contains("isogloss pretrain"), "{table}");
    let markdown = words(&sheet, ExportFormat::Markdown);
    assert!(
        markdown.lines().nth(1).unwrap().contains("---") && markdown.contains("a\\|b c"),
        "{markdown}"
    );
    let bars = |line: &str| line.replace("\\|", "").matches('|').count();
    assert!(markdown.lines().all(|line| bars(line) == 8), "{markdown}");
}

#[test]
fn levels_that_are_numbers_make_columns_of_numbers() {
    let layers = |levels: &[&str]| {
        let records: Vec<Record> =
            levels.iter().map(|level| record(1, &[("layer", level)], 0.5)).collect();
        ResultsSheet::of(&records, false).columns.remove(3).values
    };
    assert_eq!(layers(&["0", "12"]), ColumnValues::Whole(vec![Some(0), Some(12)]));
    assert_eq!(layers(&["0.5", "-1"]), ColumnValues::Level(vec![Some(0.5), Some(-1.0)]));
    assert!(matches!(layers(&["0", "best"]), ColumnValues::Text(_)));
    let sheet = ResultsSheet::of(&[record(1, &[("layer", "3"), ("alpha", "0.5")], 0.25)], false);
    assert_eq!(sheet.json()[0]["layer"], 3);
    assert!(words(&sheet, ExportFormat::Table).contains(" 0.5 "), "{sheet:?}");
}

#[test]
fn long_cells_and_control_characters_are_printed() {
    let long = "x".repeat(70_000);
    let sheet = ResultsSheet::of(&[record(1, &[("a", &long), ("b", "\u{1b}[31m")], 0.5)], false);
    let table = words(&sheet, ExportFormat::Table);
    assert!(table.contains(&long) && !table.contains('\u{1b}'));
}

#[test]
fn parquet_reads_back() {
    let sheet = ResultsSheet::of(&records(), true);
    let file = SerializedFileReader::new(file_of(&written(&sheet, ExportFormat::Parquet))).unwrap();
    let rows: Vec<_> = file.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[0].get_string(0).unwrap(), "anchors");
    let values: Vec<&Field> =
        rows.iter().map(|row| row.get_column_iter().nth(6).unwrap().1).collect();
    assert_eq!(values, [&Field::Double(0.1 + 0.2), &Field::Double(0.5), &Field::Double(-1.0)]);
    assert_eq!(rows[1].get_column_iter().nth(5).unwrap().1, &Field::ULong(u64::MAX));
    assert_eq!(rows[2].get_column_iter().nth(3).unwrap().1, &Field::Null);

    let nothing = ResultsSheet::of(&[], true);
    let file =
        SerializedFileReader::new(file_of(&written(&nothing, ExportFormat::Parquet))).unwrap();
    assert_eq!(file.get_row_iter(None).unwrap().count(), 0);
}

fn file_of(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}
