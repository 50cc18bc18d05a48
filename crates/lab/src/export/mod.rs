//! Records as a table of columns: CSV, JSON, Parquet, Markdown, or aligned text; and drawings as [`pdf`] and [`png`].
//!
//! A [`ResultsSheet`] has a column for each factor that occurs; a format only has to write columns. A factor whose levels are
//! all numbers, such as `layer`, is a column of numbers.

mod aligned;
mod csv;
mod json;
mod parquet;

pub use ::draw::{PictureError, colours, pdf, png};

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::str::FromStr;

use crate::record::{Factors, Record};
use terms::Estimate;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    Table,
    /// Comma-separated values with a header (RFC 4180).
    Csv,
    Json,
    Parquet,
    Markdown,
}

/// Columns of equal length.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultsSheet {
    /// From left to right.
    pub columns: Vec<SheetColumn>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SheetColumn {
    pub name: String,
    pub values: ColumnValues,
}

/// The values of a column; a row may have none.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnValues {
    Text(Vec<Option<String>>),
    /// Measured numbers, rounded where people read them.
    Number(Vec<Option<f64>>),
    /// Levels of a factor that are numbers, such as weights and distances.
    Level(Vec<Option<f64>>),
    /// Counts, seeds and layers.
    Whole(Vec<Option<u64>>),
}

impl ResultsSheet {
    /// A row for each record; with its origin, where that is asked for.
    pub fn of(records: &[Record], with_origin: bool) -> Self {
        let all: Vec<&Record> = records.iter().collect();
        let mut columns = key_columns(&all);
        columns.push(whole("seed", records.iter().map(|record| record.origin.seed)));
        columns.push(number("value", records.iter().map(|record| Some(record.value))));
        if with_origin {
            columns.push(text("signature", records.iter().map(|record| record.signature.clone())));
            columns.push(text("step", records.iter().map(|record| record.origin.step.clone())));
            columns
                .push(text("command", records.iter().map(|record| record.origin.command.clone())));
            columns.push(text("build", records.iter().map(|record| record.origin.build.clone())));
            let times = records.iter().map(|record| record.origin.finished_at);
            columns.push(whole("finished_at", times));
            columns.push(text("files", records.iter().map(|record| record.files.join(" "))));
        }
        Self { columns }
    }

    /// A row for each mean over seeds, with its 95 % interval (none of one seed) and the number of seeds.
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
        let means: Vec<Estimate> =
            groups.values().filter_map(|values| Estimate::of(values)).collect();
        let mut columns = key_columns(&chosen);
        columns.push(number("mean", means.iter().map(|mean| Some(mean.mean))));
        columns.push(number("low", means.iter().map(|mean| Some(mean.interval()?.0))));
        columns.push(number("high", means.iter().map(|mean| Some(mean.interval()?.1))));
        columns.push(whole("n", means.iter().map(|mean| mean.n as u64)));
        Self { columns }
    }

    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }

    pub fn write(&self, format: ExportFormat, out: &mut (impl io::Write + Send)) -> io::Result<()> {
        match format {
            ExportFormat::Table => out.write_all(aligned::table(self).as_bytes()),
            ExportFormat::Markdown => out.write_all(aligned::markdown(self).as_bytes()),
            ExportFormat::Csv => out.write_all(csv::csv(self).as_bytes()),
            ExportFormat::Json => {
                serde_json::to_writer(out, &json::rows(self)).map_err(io::Error::from)
            }
            ExportFormat::Parquet => parquet::write(self, out),
        }
    }

    pub fn json(&self) -> serde_json::Value {
        json::rows(self)
    }
}

impl ColumnValues {
    fn len(&self) -> usize {
        match self {
            ColumnValues::Text(cells) => cells.len(),
            ColumnValues::Number(cells) | ColumnValues::Level(cells) => cells.len(),
            ColumnValues::Whole(cells) => cells.len(),
        }
    }

    /// A value as text, numbers in the shortest form that loses nothing.
    fn exact(&self, row: usize) -> Option<String> {
        match self {
            ColumnValues::Text(cells) => cells[row].clone(),
            ColumnValues::Number(cells) | ColumnValues::Level(cells) => {
                cells[row].map(|value| value.to_string())
            }
            ColumnValues::Whole(cells) => cells[row].map(|value| value.to_string()),
        }
    }

    /// A value for people: measured numbers with four digits after the point.
    fn rounded(&self, row: usize) -> String {
        match self {
            ColumnValues::Number(cells) => {
                cells[row].map_or(String::new(), |value| format!("{value:.4}"))
            }
            _ => self.exact(row).unwrap_or_default(),
        }
    }
}

/// Study, scale, measure, and a column for each factor that occurs.
fn key_columns(records: &[&Record]) -> Vec<SheetColumn> {
    let mut columns = vec![
        text("study", records.iter().map(|record| record.origin.study.clone())),
        text("scale", records.iter().map(|record| record.origin.scale.clone())),
        text("measure", records.iter().map(|record| record.measure.clone())),
    ];
    let names: BTreeSet<&String> =
        records.iter().flat_map(|record| record.factors.keys()).collect();
    let reserved = [
        "study",
        "scale",
        "measure",
        "seed",
        "value",
        "signature",
        "step",
        "command",
        "build",
        "finished_at",
        "files",
        "mean",
        "low",
        "high",
        "n",
    ];
    for name in names {
        // A factor with the name of another column gets a prefix.
        let shown =
            if reserved.contains(&&**name) { format!("factor.{name}") } else { name.clone() };
        let levels = records.iter().map(|record| record.factors.get(name).cloned()).collect();
        columns.push(SheetColumn { name: shown, values: of_levels(levels) });
    }
    columns
}

/// The levels of a factor: whole numbers or numbers where all of them are, else text.
fn of_levels(levels: Vec<Option<String>>) -> ColumnValues {
    fn all<T: FromStr + ToString>(levels: &[Option<String>]) -> Option<Vec<Option<T>>> {
        let number =
            |level: &String| level.parse::<T>().ok().filter(|one| one.to_string() == *level);
        let each = |level: &Option<String>| match level {
            None => Some(None),
            Some(level) => number(level).map(Some),
        };
        levels.iter().map(each).collect()
    }
    let whole = || all::<u64>(&levels).map(ColumnValues::Whole);
    let number = || all::<f64>(&levels).map(ColumnValues::Level);
    whole().or_else(number).unwrap_or(ColumnValues::Text(levels))
}

fn text(name: &str, cells: impl Iterator<Item = String>) -> SheetColumn {
    SheetColumn { name: name.to_owned(), values: ColumnValues::Text(cells.map(Some).collect()) }
}

fn number(name: &str, cells: impl Iterator<Item = Option<f64>>) -> SheetColumn {
    SheetColumn { name: name.to_owned(), values: ColumnValues::Number(cells.collect()) }
}

fn whole(name: &str, cells: impl Iterator<Item = u64>) -> SheetColumn {
    SheetColumn { name: name.to_owned(), values: ColumnValues::Whole(cells.map(Some).collect()) }
}

#[cfg(test)]
mod tests;
