//! `isogloss study list`: the built-in studies, or every table and figure of the papers with the study that makes it.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use lab::papers::{ItemCoverage, coverage};
use lab::store::{FILE, RecordFilter, Store};
use lab::study::Study;
use serde_json::json;

use crate::failure::Failure;
use crate::outcome::Outcome;

const EXAMPLES: &str = "Examples:
  The built-in studies:
    isogloss study list
  Every table and figure of both papers, what makes it, and on what it has been run:
    isogloss study list --papers --lab lab";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ListFlags {
    /// List every table, figure and appendix of both papers instead: the study and command that make it, and the
    /// section of the report that shows it.
    #[arg(long)]
    papers: bool,

    /// With --papers, say on what each has been run: scales, languages and seeds among the results in this laboratory.
    #[arg(long, value_name = "DIR", requires = "papers")]
    lab: Option<PathBuf>,
}

impl ListFlags {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        if self.papers { self.items() } else { studies() }
    }

    fn items(&self) -> Result<Outcome, Failure> {
        let records = match &self.lab {
            Some(lab) => Store::existing(&lab.join(FILE))?.records(&RecordFilter::default())?,
            None => Vec::new(),
        };
        let items = coverage(&records);
        let text: String = items.iter().map(|item| self.described(item)).collect();
        Ok(Outcome::new(text, &json!({ "items": items })))
    }

    fn described(&self, item: &ItemCoverage) -> String {
        let name = format!("{}, {}", item.paper, item.item);
        let mut text = format!("{name:<32}{}\n", item.shows);
        let mut line = |label: &str, what: &str| {
            let _ = writeln!(text, "{:<32}{label:<10}{what}", "");
        };
        if let Some(reason) = item.not_made {
            line("–", reason);
        }
        if let Some(section) = item.section {
            line("made by", &item.commands.join(", "));
            line("shown in", &format!("report.html#{section}"));
            for run in &item.runs {
                let seeds: Vec<String> = run.seeds.iter().map(u64::to_string).collect();
                let pairs = run.pairs.join(", ");
                let run =
                    format!("{}: {}, {pairs}; seeds {}", run.study, run.setting, seeds.join(", "));
                line("run on", &run);
            }
            if self.lab.is_some() && item.runs.is_empty() {
                line("run on", "nothing yet");
            }
        }
        text
    }
}

fn studies() -> Result<Outcome, Failure> {
    let (mut text, mut studies) = (String::new(), Vec::new());
    for name in Study::names() {
        let study = Study::find(name)?;
        let _ = writeln!(text, "{name:<18}{}\n{:<18}({})", study.question, "", study.place);
        studies.push(json!({ "name": name, "question": study.question, "place": study.place }));
    }
    Ok(Outcome::new(text, &json!({ "studies": studies })))
}
