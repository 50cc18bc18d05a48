//! `isogloss report`: the papers' tables and figures from our own numbers, on one page.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use files::At;
use lab::report::Report as Page;
use lab::store::{FILE, Filter, Store};
use serde::Serialize;

use crate::failure::Failure;
use crate::outcome::Outcome;

const EXAMPLES: &str = "Examples:
  The page of all studies that have been run, in report.html:
    isogloss report
  Of another laboratory, with every figure as a file of its own:
    isogloss report --lab lab-en-fr --out en-fr.html --figures figures";

/// Flags of `report`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Report {
    /// The laboratory's folder.
    #[arg(long, value_name = "DIR", default_value = "lab")]
    lab: PathBuf,

    /// The page to write; it opens anywhere, with no network.
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,

    /// Write each figure here as well, as an SVG of its own.
    #[arg(long, value_name = "DIR")]
    figures: Option<PathBuf>,
}

/// What `report` says when done.
#[derive(Serialize)]
struct Reported {
    page: PathBuf,
    figures: Vec<PathBuf>,
    findings: Vec<lab::report::Finding>,
    /// Studies that have no numbers yet.
    missing: Vec<&'static str>,
}

impl Report {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        files::check_new_file(&self.out, true)?;
        let store = Store::existing(&self.lab.join(FILE))?;
        let page = Page::of(&store.records(&Filter::default())?, &store.notes(&Filter::default())?);
        files::write(&self.out, &page.html)?;
        let mut written = Vec::new();
        if let Some(folder) = &self.figures {
            fs::create_dir_all(folder).at(folder, "make the folder")?;
            for (name, svg) in &page.figures {
                let path = folder.join(name).with_added_extension("svg");
                files::write(&path, svg)?;
                written.push(path);
            }
        }
        let reported = Reported {
            page: self.out,
            figures: written,
            findings: page.findings,
            missing: page.missing,
        };
        Ok(Outcome::new(in_words(&reported), &reported))
    }
}

fn in_words(reported: &Reported) -> String {
    let count =
        |verdict: &str| reported.findings.iter().filter(|one| one.verdict == verdict).count();
    let mut lines = vec![
        format!("findings that hold          {}", count("holds")),
        format!("that do not hold            {}", count("does not hold")),
        format!("too noisy to say            {}", count("too noisy")),
        format!("not measured                {}", count("not measured")),
    ];
    if !reported.missing.is_empty() {
        lines.push(format!("studies that were not run   {}", reported.missing.join(", ")));
    }
    if !reported.figures.is_empty() {
        lines.push(format!("figures                     {}", reported.figures.len()));
    }
    lines.push(format!("the page                    {}", reported.page.display()));
    lines.join("\n")
}
