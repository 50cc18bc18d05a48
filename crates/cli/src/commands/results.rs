//! `isogloss results`: the records of a laboratory, selected, averaged over seeds, and exported.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use lab::build::BuildCounts;
use lab::export::{ExportFormat, ResultsSheet};
use lab::record::Factors;
use lab::store::{FILE, RecordFilter, Store};
use lab::study::{Measurement, ONE_OFF, OWN_SCALE, OneOffOrigin};
use serde_json::json;
use terms::Scale;

use super::study_view::this_build;
use crate::failure::Failure;
use crate::outcome::Outcome;
use commands::record;

const EXAMPLES: &str = "Examples:
  Everything, as a table:
    isogloss results
  Means over seeds of one study's transfer, with 95 % intervals:
    isogloss results --study anchors --measure f1 --where role=target --mean
  Two conditions, for a notebook:
    isogloss results --where condition=default --where condition=no-anchors \\
      --format parquet --out two.parquet";

#[derive(Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Results {
    #[command(subcommand)]
    command: Option<ResultsCommand>,

    /// The laboratory's folder.
    #[arg(long, value_name = "DIR", default_value = "lab")]
    lab: PathBuf,

    /// Only of this study; repeat for several.
    #[arg(long, value_name = "NAME", help_heading = "Selection")]
    study: Vec<String>,

    /// Only this measure, such as f1 or retrieval; repeat for several.
    #[arg(long, value_name = "NAME", help_heading = "Selection")]
    measure: Vec<String>,

    /// Only of this seed; repeat for several.
    #[arg(long, value_name = "N", help_heading = "Selection")]
    seed: Vec<u64>,

    /// Only at this scale; repeat for several.
    #[arg(long, value_name = "NAME", value_parser = Scale::ALL.map(Scale::name), help_heading = "Selection")]
    scale: Vec<String>,

    /// Only where a factor has this level; repeated for one factor, any of its levels matches.
    #[arg(long = "where", value_name = "FACTOR=LEVEL", value_parser = factor, help_heading = "Selection")]
    levels: Vec<(String, String)>,

    /// Means over seeds, with 95 % intervals (Student's t) and the number of seeds.
    #[arg(long)]
    mean: bool,

    /// The format.
    #[arg(long, value_enum, default_value = "table", help_heading = "Output")]
    format: FormatName,

    /// A file to write to [default: -, standard output].
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    out: Option<PathBuf>,

    /// Overwrite an existing file.
    #[arg(long, short, help_heading = "Output")]
    force: bool,
}

/// What can be done with results besides showing them.
#[derive(Subcommand)]
enum ResultsCommand {
    /// Add a number of one's own, with the command that gave it.
    #[command(after_help = ADD_EXAMPLES)]
    Add(AddNumber),
}

const ADD_EXAMPLES: &str = "Examples:
  isogloss results add --measure accuracy --value 0.672 --factor system=mbert \\
    --factor task=nli --factor language=zh --command 'python finetune.py --seed 1'
  A number of another program beside those of a study, in its tables:
    isogloss results add --study language-shift --scale paper --measure bleu1 --value 0.1968 \\
      --factor system=mbert --factor direction=en-zh --factor layer=11 --factor alpha=3 \\
      --factor kind=mean --command 'python mds.py'";

#[derive(Args)]
struct AddNumber {
    /// The laboratory's folder; it is made where there is none.
    #[arg(long, value_name = "DIR", default_value = "lab")]
    lab: PathBuf,

    /// What was measured, such as f1, accuracy or bleu1.
    #[arg(long, value_name = "NAME")]
    measure: String,

    /// The number; shares are from 0 to 1.
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    value: f64,

    /// What it depends on, such as system=mbert or language=zh; repeat for more.
    #[arg(long = "factor", value_name = "NAME=VALUE", value_parser = record::factor)]
    factors: Vec<(String, String)>,

    /// The command that gave it, or where it was printed.
    #[arg(long, value_name = "TEXT")]
    command: String,

    /// The random seed that it belongs to; intervals are over seeds.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// The study that it belongs to.
    #[arg(long, value_name = "NAME", default_value = ONE_OFF)]
    study: String,

    /// The scale that it belongs to.
    #[arg(long, value_name = "NAME", default_value = OWN_SCALE)]
    scale: String,
}

impl AddNumber {
    fn run(self) -> Result<Outcome, Failure> {
        let Self { lab, measure, value, command, seed, study, scale, .. } = &self;
        if !value.is_finite() {
            return Err(Failure::Usage("--value: give a finite number".to_owned()));
        }
        let origin = OneOffOrigin { study, seed: *seed, command, build: &this_build() };
        let factors: Factors = self.factors.iter().cloned().collect();
        let (measure, value) = (measure.clone(), *value);
        origin.add(lab, scale, Measurement { measure, factors, value })?;
        let text = format!("added to {}: isogloss results --study {study}", lab.display());
        Ok(Outcome::new(text, &json!({ "lab": lab, "study": study, "added": 1 })))
    }
}

flag_values! {
    enum FormatName => ExportFormat {
        Table,
        Csv,
        Json,
        Parquet,
        Markdown,
    }
}

impl Results {
    pub(crate) fn run(mut self) -> Result<Outcome, Failure> {
        match self.command.take() {
            Some(ResultsCommand::Add(add)) => add.run(),
            None => self.show(),
        }
    }

    fn show(self) -> Result<Outcome, Failure> {
        let out = self.out.as_ref().filter(|path| *path != Path::new("-"));
        if self.format == FormatName::Parquet && out.is_none() {
            return Err(Failure::Usage("Parquet is binary; name a file with --out".into()));
        }
        if let Some(path) = out {
            files::check_new_file(path, self.force)?;
        }
        let store = Store::existing(&self.lab.join(FILE))?;
        let records = store.records(&self.filter())?;
        if records.is_empty() {
            self.check_factors(&store)?;
        }
        let builds = BuildCounts::of(records.iter().map(|record| &*record.origin.build));
        if let Some(warning) = builds.warning("results") {
            say!("{warning}");
        }
        // A table for people leaves out the origin of numbers; what programs read has all of it.
        let for_people = matches!(self.format, FormatName::Table | FormatName::Markdown);
        let sheet = match self.mean {
            true => ResultsSheet::means(&records),
            false => ResultsSheet::of(&records, !for_people),
        };
        let json = match self.mean {
            true => json!({ "means": sheet.json(), "builds": builds.0 }),
            false => json!({ "records": records, "builds": builds.0 }),
        };
        let Some(path) = out else {
            let mut bytes = Vec::new();
            sheet.write(self.format.into(), &mut bytes)?;
            let text = if records.is_empty() && for_people {
                "no results match; `isogloss results` shows all".to_owned()
            } else {
                String::from_utf8_lossy(&bytes).into_owned()
            };
            return Ok(Outcome::new(text, &json));
        };
        files::write_with(path, |out| sheet.write(self.format.into(), out))?;
        let text = format!("{} rows in {}", sheet.rows(), path.display());
        Ok(Outcome::new(text, &json!({ "rows": sheet.rows(), "file": path })))
    }

    fn check_factors(&self, store: &Store) -> Result<(), Failure> {
        let records = store.records(&RecordFilter::default())?;
        let names = records.into_iter().flat_map(|record| record.factors.into_keys());
        let known: BTreeSet<String> = names.collect();
        let unknown = self.levels.iter().find(|(name, _)| !known.contains(name));
        let Some((name, _)) = unknown.filter(|_| !known.is_empty()) else { return Ok(()) };
        let known: Vec<String> = known.into_iter().collect();
        Err(Failure::Usage(format!(
            "--where: no result has a factor `{name}`; there are {}",
            known.join(", ")
        )))
    }

    fn filter(&self) -> RecordFilter {
        let mut factors: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in &self.levels {
            factors.entry(name.clone()).or_default().push(value.clone());
        }
        RecordFilter {
            studies: self.study.clone(),
            scales: self.scale.clone(),
            seeds: self.seed.clone(),
            measures: self.measure.clone(),
            factors,
        }
    }
}

fn factor(text: &str) -> Result<(String, String), String> {
    let (name, value) =
        text.split_once('=').ok_or("write FACTOR=LEVEL, such as condition=no-anchors")?;
    Ok((name.to_owned(), value.to_owned()))
}
