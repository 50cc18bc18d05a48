//! `isogloss report`: the papers' findings, tables and figures from our own results, on one page.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use files::At;
use lab::build::BuildCounts;
use lab::report::ReportPage;
use lab::store::{FILE, RecordFilter, Store};
use lab::study::Study;
use serde::Serialize;

use crate::failure::Failure;
use crate::outcome::Outcome;

const EXAMPLES: &str = "Examples:
  The page of all completed studies, report.html:
    isogloss report
  Of another laboratory, with every figure as a file of its own:
    isogloss report --lab lab-en-fr --out en-fr.html --figures figures
  With verdicts on the claims of one's own study:
    isogloss report mine.toml";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Report {
    /// Files of studies whose `[[claims]]` are tested as well.
    #[arg(value_name = "FILE.toml")]
    studies: Vec<String>,

    /// The laboratory's folder.
    #[arg(long, value_name = "DIR", default_value = "lab")]
    lab: PathBuf,

    /// The page to write; - for standard output. It needs no network.
    #[arg(long, short, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,

    /// Write each figure here as well: as SVG and PDF, with its numbers as CSV.
    #[arg(long, value_name = "DIR")]
    figures: Option<PathBuf>,

    /// Overwrite an existing page and existing figures.
    #[arg(long, short)]
    force: bool,
}

#[derive(Serialize)]
struct ReportSummary {
    page: PathBuf,
    figures: Vec<PathBuf>,
    findings: Vec<lab::report::FindingVerdict>,
    missing: Vec<&'static str>,
    /// How many results each build of the program gave.
    builds: BTreeMap<String, usize>,
}

impl Report {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        files::check_new_file(&self.out, self.force)?;
        let printed = self.out == Path::new("-");
        let store = Store::existing(&self.lab.join(FILE))?;
        let all = RecordFilter::default();
        let records = store.records(&all)?;
        let studies = self.studies.iter().map(|file| {
            let study = Study::find(file)?;
            study.check_claims(file, &records).map(|()| study)
        });
        let studies = studies.collect::<Result<Vec<Study>, _>>()?;
        let builds = BuildCounts::of(records.iter().map(|record| &*record.origin.build));
        if let Some(warning) = builds.warning("results") {
            say!("{warning}");
        }
        let spaces = lab::spaces::of_laboratory(&self.lab)?;
        let page = ReportPage::with(&records, &store.texts(&all)?, &spaces, &studies);
        if !printed {
            files::write(&self.out, &page.html)?;
        }
        let mut written = Vec::new();
        if let Some(folder) = &self.figures {
            fs::create_dir_all(folder).at(folder, "make the folder")?;
            for figure in &page.figures {
                let svg = figure.svg();
                let (pdf, csv) = (lab::export::pdf(&svg)?, figure.csv());
                let contents =
                    [("svg", svg.as_bytes()), ("pdf", &pdf[..]), ("csv", csv.as_bytes())];
                for (ending, content) in contents {
                    let path = folder.join(&figure.id).with_added_extension(ending);
                    files::check_new_file(&path, self.force)?;
                    files::write(&path, content)?;
                    written.push(path);
                }
            }
        }
        let summary = ReportSummary {
            page: self.out,
            figures: written,
            findings: page.findings,
            missing: page.missing,
            builds: builds.0,
        };
        let text = if printed { page.html } else { summary.describe() };
        Ok(Outcome::new(text, &summary))
    }
}

impl ReportSummary {
    fn describe(&self) -> String {
        let count =
            |verdict: &str| self.findings.iter().filter(|one| one.verdict == verdict).count();
        let mut verdicts = vec!["holds", "fails", "inconclusive", "not measured", "not tested"];
        // No spread, too few units or too few seeds for a verdict; said where it is so.
        verdicts.extend(
            ["no test", "two seeds", "one seed"].into_iter().filter(|seeds| count(seeds) > 0),
        );
        let mut lines: Vec<String> =
            verdicts.iter().map(|verdict| format!("{verdict:<16}{}", count(verdict))).collect();
        if !self.missing.is_empty() {
            lines.push(format!("{:<16}{}", "not run", self.missing.join(", ")));
        }
        if !self.figures.is_empty() {
            lines.push(format!("{:<16}{}", "figure files", self.figures.len()));
        }
        lines.push(format!("{:<16}{}", "page", self.page.display()));
        lines.join("\n")
    }
}
