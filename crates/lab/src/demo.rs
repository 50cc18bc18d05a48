//! The result of the demo: its closing table, from the records of the study `demo`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tensor::Device;

use crate::draw::figure::SpaceFigure;
use crate::spaces::{self, SpaceError};
use crate::study::{Laboratory, StudyPlan};

use crate::record::{Record, TextRecord};

/// The result of the demo.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DemoResult {
    /// The rows of the closing table.
    pub rows: Vec<DemoRow>,
    /// The token translation output of the first sentences, line by line.
    pub translations: Vec<DemoLine>,
}

/// A measure, with chance and an untrained encoder beside it; the best over layers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DemoRow {
    /// The measure, as a reader knows it.
    pub measure: String,
    /// The score of chance, where it is defined.
    pub chance: Option<f64>,
    /// The score of the untrained encoder.
    pub untrained: Option<f64>,
    /// The score of the trained encoder.
    pub trained: Option<f64>,
}

/// A sentence, its translation, or token translation output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DemoLine {
    /// The weight of the shift as text, or `input` or `reference`.
    pub alpha: String,
    /// The text.
    pub text: String,
}

impl DemoResult {
    /// From the records of the study.
    pub fn of(records: &[Record], texts: &[TextRecord]) -> Self {
        Self { rows: rows(records), translations: translations(texts) }
    }
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

/// The best over layers of a measure of a system, under some factors.
fn best(records: &[Record], measure: &str, system: &str, factors: &[(&str, &str)]) -> Option<f64> {
    let fits = |record: &&Record| {
        let has = |(name, value): &(&str, &str)| {
            record.factors.get(*name).is_some_and(|level| level == value)
        };
        record.measure == measure && has(&("system", system)) && factors.iter().all(has)
    };
    records.iter().filter(fits).map(|record| record.value).max_by(f64::total_cmp)
}

fn rows(records: &[Record]) -> Vec<DemoRow> {
    let row = |name: &str, chance, measure: &str, factors: &[(&str, &str)]| DemoRow {
        measure: name.to_owned(),
        chance,
        untrained: best(records, measure, "untrained", factors),
        trained: best(records, measure, "bilingual", factors),
    };
    let retrieval = |name: &str, kind| row(name, Some(0.001), "retrieval", &[("kind", kind)]);
    let target = |task| [("task", task), ("role", "target")];
    let shifted = [("alpha", "1")];
    let words = best(records, "p_at_1_chance", "bilingual", &[]);
    vec![
        retrieval("sentence retrieval P@1, raw", "raw"),
        retrieval("  mean-centred", "centered"),
        retrieval("  after Procrustes alignment", "aligned"),
        row("word translation P@1, Procrustes", words, "p_at_1", &[]),
        row("zero-shot NLI accuracy", Some(1.0 / 3.0), "accuracy", &target("nli")),
        row("zero-shot NER F1", None, "f1", &target("ner")),
        row("zero-shot parsing LAS", None, "las", &target("parse")),
        row("CKA within sentences of one length", None, "cka_within", &[]),
        row("token conversion rate, mean difference shift", Some(0.0), "conversion_rate", &shifted),
        row("  exact token translation", None, "dictionary_accuracy", &shifted),
    ]
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
