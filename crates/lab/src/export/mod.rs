//! Numbers as a sheet for other programs and for people: CSV, JSON, Parquet, Markdown, or lined up.
//!
//! A [`Sheet`] has a column for each factor that occurs; a format only has to write columns.

mod csv;
mod json;
mod lined;
mod parquet;

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use crate::record::{Factors, Record};
use crate::statistics::Mean;

/// How a sheet is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Columns lined up by spaces.
    Table,
    /// Comma-separated values with a head, as RFC 4180 has them.
    Csv,
    /// A list of objects.
    Json,
    /// Parquet, a binary format of columns.
    Parquet,
    /// A table of Markdown.
    Markdown,
}

/// Columns of equal length.
#[derive(Clone, Debug, PartialEq)]
pub struct Sheet {
    /// From left to right.
    pub columns: Vec<Column>,
}

/// A column with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// What stands above it.
    pub name: String,
    /// What is in it.
    pub cells: Cells,
}

/// What is in a column; a row may have nothing there.
#[derive(Clone, Debug, PartialEq)]
pub enum Cells {
    /// Words.
    Text(Vec<Option<String>>),
    /// Numbers.
    Number(Vec<Option<f64>>),
    /// Counts and seeds.
    Whole(Vec<Option<u64>>),
}

impl Sheet {
    /// A row for each record; with everything that tells where it comes from, where that is asked for.
    pub fn of(records: &[Record], with_origin: bool) -> Self {
        let all: Vec<&Record> = records.iter().collect();
        let mut columns = beginning(&all);
        columns.push(whole("seed", records.iter().map(|record| record.origin.seed)));
        columns.push(number("value", records.iter().map(|record| Some(record.value))));
        if with_origin {
            columns.push(text("signature", records.iter().map(|record| record.signature.clone())));
            columns.push(text("step", records.iter().map(|record| record.origin.step.clone())));
            columns
                .push(text("command", records.iter().map(|record| record.origin.command.clone())));
            columns
                .push(text("version", records.iter().map(|record| record.origin.version.clone())));
            columns.push(whole("made", records.iter().map(|record| record.origin.made)));
            columns.push(text("files", records.iter().map(|record| record.files.join(" "))));
        }
        Self { columns }
    }

    /// A row for each mean over seeds, with its interval of 95 % (none of one seed) and their count.
    pub fn means(records: &[Record]) -> Self {
        let mut groups: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        let mut firsts: BTreeMap<(&str, &str, &str, &Factors), usize> = BTreeMap::new();
        for (place, record) in records.iter().enumerate() {
            let key =
                (&*record.origin.study, &*record.origin.scale, &*record.measure, &record.factors);
            // Rows stay in the order in which their first record came.
            let first = *firsts.entry(key).or_insert(place);
            groups.entry(first).or_default().push(record.value);
        }
        let chosen: Vec<&Record> = groups.keys().map(|first| &records[*first]).collect();
        let means: Vec<Mean> = groups.values().filter_map(|values| Mean::of(values)).collect();
        let mut columns = beginning(&chosen);
        columns.push(number("mean", means.iter().map(|mean| Some(mean.value))));
        columns.push(number("low", means.iter().map(|mean| Some(mean.interval()?.0))));
        columns.push(number("high", means.iter().map(|mean| Some(mean.interval()?.1))));
        columns.push(whole("n", means.iter().map(|mean| mean.n as u64)));
        Self { columns }
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.cells.len())
    }

    /// The sheet in a format.
    pub fn write(&self, format: Format, out: &mut (impl io::Write + Send)) -> io::Result<()> {
        match format {
            Format::Table => out.write_all(lined::table(self).as_bytes()),
            Format::Markdown => out.write_all(lined::markdown(self).as_bytes()),
            Format::Csv => out.write_all(csv::csv(self).as_bytes()),
            Format::Json => serde_json::to_writer(out, &json::rows(self)).map_err(io::Error::from),
            Format::Parquet => parquet::write(self, out),
        }
    }

    /// The rows as JSON.
    pub fn json(&self) -> serde_json::Value {
        json::rows(self)
    }
}

impl Cells {
    fn len(&self) -> usize {
        match self {
            Cells::Text(cells) => cells.len(),
            Cells::Number(cells) => cells.len(),
            Cells::Whole(cells) => cells.len(),
        }
    }

    /// A cell as text, numbers as short as they can be without loss.
    fn exact(&self, row: usize) -> Option<String> {
        match self {
            Cells::Text(cells) => cells[row].clone(),
            Cells::Number(cells) => cells[row].map(|value| value.to_string()),
            Cells::Whole(cells) => cells[row].map(|value| value.to_string()),
        }
    }

    /// A cell for people: four digits after the point.
    fn rounded(&self, row: usize) -> String {
        match self {
            Cells::Number(cells) => cells[row].map_or(String::new(), |value| format!("{value:.4}")),
            _ => self.exact(row).unwrap_or_default(),
        }
    }
}

/// Study, scale, measure, and a column for each factor that occurs.
fn beginning(records: &[&Record]) -> Vec<Column> {
    let mut columns = vec![
        text("study", records.iter().map(|record| record.origin.study.clone())),
        text("scale", records.iter().map(|record| record.origin.scale.clone())),
        text("measure", records.iter().map(|record| record.measure.clone())),
    ];
    let names: BTreeSet<&String> =
        records.iter().flat_map(|record| record.factors.keys()).collect();
    let ours = [
        "study",
        "scale",
        "measure",
        "seed",
        "value",
        "signature",
        "step",
        "command",
        "version",
        "made",
        "files",
        "mean",
        "low",
        "high",
        "n",
    ];
    for name in names {
        // A factor that has the name of a column of ours is told apart.
        let shown = if ours.contains(&&**name) { format!("factor.{name}") } else { name.clone() };
        let cells = records.iter().map(|record| record.factors.get(name).cloned());
        columns.push(Column { name: shown, cells: Cells::Text(cells.collect()) });
    }
    columns
}

fn text(name: &str, cells: impl Iterator<Item = String>) -> Column {
    Column { name: name.to_owned(), cells: Cells::Text(cells.map(Some).collect()) }
}

fn number(name: &str, cells: impl Iterator<Item = Option<f64>>) -> Column {
    Column { name: name.to_owned(), cells: Cells::Number(cells.collect()) }
}

fn whole(name: &str, cells: impl Iterator<Item = u64>) -> Column {
    Column { name: name.to_owned(), cells: Cells::Whole(cells.map(Some).collect()) }
}

#[cfg(test)]
mod tests;
