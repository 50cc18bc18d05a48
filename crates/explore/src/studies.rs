//! The verdicts, figures and records of a laboratory.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use lab::draw::{ColourScheme, Figure};
use lab::export::ResultsSheet;
use lab::report::{FindingVerdict, missing_studies, study_figures, verdicts};
use lab::store::{FILE, RecordFilter, Store};
use serde::Serialize;
use serde_json::{Value, json};

use crate::error::{ApiFailure, ApiResult};
use crate::request::{ApiAnswer, ApiRequest};

/// The results of a laboratory, as the report judges and draws them.
pub(crate) struct StudyResults {
    written: Option<SystemTime>,
    findings: Vec<FindingVerdict>,
    figures: Vec<Figure>,
    missing: Vec<&'static str>,
}

#[derive(Serialize)]
struct FindingsAnswer<'a> {
    findings: &'a [FindingVerdict],
    /// Their names and titles.
    figures: Vec<Value>,
    /// Figures that an exported page does not hold.
    left_out: usize,
    missing: &'a [&'static str],
    commands: [String; 2],
}

fn written(root: &Path) -> Option<SystemTime> {
    let time = |name: String| fs::metadata(root.join(name)).ok()?.modified().ok();
    time(format!("{FILE}-wal")).max(time(FILE.to_owned()))
}

impl StudyResults {
    pub(crate) fn read(root: &Path) -> ApiResult<Self> {
        let written = written(root);
        let store = Store::existing(&root.join(FILE))?;
        let all = RecordFilter::default();
        let (records, texts) = (store.records(&all)?, store.texts(&all)?);
        Ok(Self {
            written,
            findings: verdicts(&records, &texts),
            figures: study_figures(&records, &texts),
            missing: missing_studies(&records, &texts),
        })
    }

    pub(crate) fn is_current(&self, root: &Path) -> bool {
        self.written == written(root)
    }

    pub(crate) fn findings(&self, root: &Path) -> ApiAnswer {
        let words = |words: &[&str]| {
            let root = root.display().to_string();
            let words = [words, &["--lab", &root]].concat();
            lab::study::shell_line(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
        };
        let label = |figure: &Figure| json!({ "id": figure.id, "title": figure.title });
        ApiAnswer::json(&FindingsAnswer {
            findings: &self.findings,
            figures: self.figures.iter().map(label).collect(),
            left_out: 0,
            missing: &self.missing,
            commands: [
                words(&["report", "--json", "--out", "report.html", "--figures", "figures"]),
                words(&["results", "--mean"]),
            ],
        })
    }

    /// A figure by the name of its file, `ID.svg` or `ID.csv`.
    pub(crate) fn figure(&self, request: &ApiRequest, file: &str) -> ApiResult<ApiAnswer> {
        let unknown = || ApiFailure::unknown("there is no such figure");
        let (id, ending) = file.rsplit_once('.').ok_or_else(unknown)?;
        let figure = self.figures.iter().find(|figure| figure.id == id).ok_or_else(unknown)?;
        let schemes = [("light", ColourScheme::Light), ("dark", ColourScheme::Dark)];
        let scheme = request.choice("colors", &schemes)?;
        match ending {
            "svg" => {
                let width = request.number::<u32>("width")?.map_or(f64::INFINITY, f64::from);
                let svg = figure.svg_within(scheme, width);
                Ok(ApiAnswer::of("image/svg+xml; charset=utf-8", svg))
            }
            "csv" => Ok(ApiAnswer::of("text/csv; charset=utf-8", figure.csv())),
            _ => Err(unknown()),
        }
    }
}

/// The records of a selection, as `results --format json` prints them.
pub(crate) fn records(root: &Path, request: &ApiRequest) -> ApiResult<ApiAnswer> {
    let list = |name: &str| -> Vec<String> {
        request.get(name).map(|one| one.to_owned()).into_iter().collect()
    };
    let seeds = request.number::<u64>("seed")?.into_iter().collect();
    let filter = RecordFilter {
        studies: list("study"),
        scales: list("scale"),
        seeds,
        measures: list("measure"),
        ..RecordFilter::default()
    };
    let records = Store::existing(&root.join(FILE))?.records(&filter)?;
    let mean = request.get("mean").is_some();
    let sheet = if mean { ResultsSheet::means(&records) } else { ResultsSheet::of(&records, true) };
    Ok(ApiAnswer::json(&sheet.json()))
}
