//! The result of the demo: its closing table, from the records of the study `demo`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tensor::Device;

use crate::draw::figure::{SpaceFigure, percent};
use crate::draw::short;
use crate::spaces::{self, SpaceError};
use crate::study::{Laboratory, StudyPlan};

use crate::record::{Record, TextRecord};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DemoResult {
    pub rows: Vec<DemoRow>,
    /// The layer that retrieval, words and CKA are of: that of the trained encoder's best raw retrieval, for both encoders.
    pub layer: String,
    /// The token translation output of the first sentences, line by line.
    pub translations: Vec<DemoLine>,
}

/// A measure, with chance and an untrained encoder beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DemoRow {
    /// The measure, as a reader knows it.
    pub measure: String,
    /// The score of chance, where it is defined.
    pub chance: Option<f64>,
    pub untrained: Option<f64>,
    pub trained: Option<f64>,
}

/// A sentence, its translation, or token translation output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DemoLine {
    /// The weight of the shift as text, or `input` or `reference`.
    pub alpha: String,
    pub text: String,
}

impl DemoResult {
    pub fn of(records: &[Record], texts: &[TextRecord]) -> Self {
        let (rows, layer) = crate::report::demo_rows(records);
        Self { rows, layer, translations: translations(texts) }
    }
}

impl DemoRow {
    /// A value as the page has it too: shares as per cent.
    pub fn shown(&self, value: Option<f64>) -> String {
        match value {
            None => "–".to_owned(),
            Some(value) if self.measure.starts_with("CKA") => short(value),
            Some(value) => share(value),
        }
    }
}

/// A share as the page has it too.
pub fn share(value: f64) -> String {
    percent(value).replace('\u{a0}', " ")
}

/// The pictures of the trained encoder's space, which open the demo's page.
///
/// # Errors
/// Where a file that the run has saved is damaged.
pub fn pictures(
    lab: &Laboratory,
    plan: &StudyPlan,
    device: &Device,
) -> Result<Vec<SpaceFigure>, SpaceError> {
    let Some(run) = encoder(lab, plan) else { return Ok(Vec::new()) };
    let means = bilingual(lab, plan, "shift means").map(|step| step.join("means.safetensors"));
    spaces::of_run(&run, means.as_deref(), device)
}

/// The run of the trained encoder.
pub fn encoder(lab: &Laboratory, plan: &StudyPlan) -> Option<PathBuf> {
    bilingual(lab, plan, "pretrain").map(|step| step.join("run"))
}

/// The folder of the trained encoder's first step of a kind.
fn bilingual(lab: &Laboratory, plan: &StudyPlan, kind: &str) -> Option<PathBuf> {
    let mut steps = plan.steps.iter();
    let step = steps.find(|step| step.kind.starts_with(kind) && step.name.contains("bilingual"))?;
    Some(lab.folder(&step.key))
}

/// The first three sentences of the trained encoder.
fn translations(texts: &[TextRecord]) -> Vec<DemoLine> {
    let mut lines = Vec::new();
    for line in ["1", "2", "3"] {
        for alpha in ["input", "0", "1", "reference"] {
            let of_line = texts.iter().filter(|text| {
                text.factors["system"] == "bilingual"
                    && text.factors["line"] == line
                    && text.factors["alpha"] == alpha
            });
            lines.extend(
                of_line.map(|text| DemoLine { alpha: alpha.to_owned(), text: text.text.clone() }),
            );
        }
    }
    lines
}
