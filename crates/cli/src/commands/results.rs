//! `isogloss results`: the numbers of a laboratory, chosen, averaged, and handed to other programs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lab::export::{Format, Sheet};
use lab::store::{FILE, Filter, Store};
use serde_json::json;

use crate::failure::Failure;
use crate::outcome::Outcome;

const EXAMPLES: &str = "Examples:
  Everything, as a table:
    isogloss results
  Means over seeds of one study's transfer, with intervals of 95 %:
    isogloss results --study anchors --measure f1 --where role=target --mean
  Two conditions, for a notebook:
    isogloss results --where condition=default --where condition=no-anchors \\
      --format parquet --out two.parquet";

/// Flags of `results`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Results {
    /// The laboratory's folder.
    #[arg(long, value_name = "DIR", default_value = "lab")]
    lab: PathBuf,

    /// Only of this study; repeat for several.
    #[arg(long, value_name = "NAME")]
    study: Vec<String>,

    /// Only this measure, such as f1 or retrieval; repeat for several.
    #[arg(long, value_name = "NAME")]
    measure: Vec<String>,

    /// Only of this seed; repeat for several.
    #[arg(long, value_name = "N")]
    seed: Vec<u64>,

    /// Only at this scale; repeat for several.
    #[arg(long, value_name = "NAME")]
    scale: Vec<String>,

    /// Only where a factor has this value; repeated for one factor, any of the values will do.
    #[arg(long = "where", value_name = "FACTOR=VALUE", value_parser = factor)]
    wanted: Vec<(String, String)>,

    /// Means over seeds, with their intervals of 95 % (Student's t) and the number of seeds.
    #[arg(long)]
    mean: bool,

    /// How to write them.
    #[arg(long, value_enum, default_value = "table")]
    format: Written,

    /// A file to write to, rather than standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// What a sheet can be written as.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Written {
    Table,
    Csv,
    Json,
    Parquet,
    Markdown,
}

impl Results {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        if self.format == Written::Parquet && self.out.is_none() {
            return Err(Failure::Usage("Parquet is binary; name a file with --out".into()));
        }
        if let Some(path) = &self.out {
            files::check_new_file(path, true)?;
        }
        let store = Store::existing(&self.lab.join(FILE))?;
        let records = store.records(&self.filter())?;
        if records.is_empty() {
            self.check_factors(&store)?;
        }
        // A table for people leaves out where numbers come from; what programs read has it all.
        let for_people = matches!(self.format, Written::Table | Written::Markdown);
        let sheet =
            if self.mean { Sheet::means(&records) } else { Sheet::of(&records, !for_people) };
        let facts = if self.mean {
            json!({ "means": sheet.json() })
        } else {
            json!({ "records": records })
        };
        let Some(path) = &self.out else {
            let mut bytes = Vec::new();
            sheet.write(self.format.into(), &mut bytes)?;
            let text = if records.is_empty() && for_people {
                "no numbers like that; `isogloss results` shows all".to_owned()
            } else {
                String::from_utf8_lossy(&bytes).into_owned()
            };
            return Ok(Outcome::new(text, &facts));
        };
        files::write_with(path, |out| sheet.write(self.format.into(), out))?;
        let text = format!("{} rows in {}", sheet.rows(), path.display());
        Ok(Outcome::new(text, &json!({ "rows": sheet.rows(), "file": path })))
    }

    /// Refuses a factor that no number has.
    fn check_factors(&self, store: &Store) -> Result<(), Failure> {
        let records = store.records(&Filter::default())?;
        let names = records.into_iter().flat_map(|record| record.factors.into_keys());
        let known: BTreeSet<String> = names.collect();
        let unknown = self.wanted.iter().find(|(name, _)| !known.contains(name));
        let Some((name, _)) = unknown.filter(|_| !known.is_empty()) else { return Ok(()) };
        let known: Vec<String> = known.into_iter().collect();
        Err(Failure::Usage(format!(
            "--where: no number has a factor `{name}`; there are {}",
            known.join(", ")
        )))
    }

    fn filter(&self) -> Filter {
        let mut factors: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in &self.wanted {
            factors.entry(name.clone()).or_default().push(value.clone());
        }
        Filter {
            studies: self.study.clone(),
            scales: self.scale.clone(),
            seeds: self.seed.clone(),
            measures: self.measure.clone(),
            factors,
        }
    }
}

impl From<Written> for Format {
    fn from(written: Written) -> Self {
        match written {
            Written::Table => Format::Table,
            Written::Csv => Format::Csv,
            Written::Json => Format::Json,
            Written::Parquet => Format::Parquet,
            Written::Markdown => Format::Markdown,
        }
    }
}

fn factor(text: &str) -> Result<(String, String), String> {
    let (name, value) =
        text.split_once('=').ok_or("write FACTOR=VALUE, such as condition=no-anchors")?;
    Ok((name.to_owned(), value.to_owned()))
}
