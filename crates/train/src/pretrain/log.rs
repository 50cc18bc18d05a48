//! Training metrics, and whether the loss has left the initial plateau: at first a masked language model
//! learns no more than token frequencies, and its loss stays near the unigram entropy.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use files::At;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::trainer::StepReport;

/// Updates between two lines of training metrics.
const LINE_EVERY: u64 = 50;
/// The loss has left the plateau when it is this share of the unigram entropy.
const LEFT: f64 = 0.9;
/// The share of the updates after which a run still on the plateau gets advice.
const LATE: f64 = 0.4;

/// Losses since the last line, and the plateau. Part of every checkpoint, so that a resumed run
/// writes the lines that the unbroken one would have written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct LossLog {
    /// For each language: the sum of the losses, and how many targets.
    sums: Vec<(f64, u64)>,
    correct: f64,
    left_plateau: bool,
    advised: bool,
}

/// What there is to report after an update.
#[derive(Default)]
pub(crate) struct LogOutput {
    pub(crate) line: Option<Value>,
    pub(crate) note: Option<String>,
    /// Whether the loss has just left the plateau.
    pub(crate) left_plateau: bool,
    /// The mean loss of the line.
    pub(crate) loss: Option<f64>,
}

impl LossLog {
    pub(crate) fn new(languages: usize) -> Self {
        Self { sums: vec![(0.0, 0); languages], ..Self::default() }
    }

    pub(crate) fn languages(&self) -> usize {
        self.sums.len()
    }

    /// Adds an update: its report, and the language and number of targets of each micro-batch.
    pub(crate) fn step(
        &mut self,
        report: &StepReport,
        micro_batches: impl Iterator<Item = (usize, usize)>,
        names: &[String],
        unigram_entropy: f64,
        steps: u64,
    ) -> LogOutput {
        for ((language, targets), loss) in micro_batches.zip(&report.micro_batch_losses) {
            self.sums[language].0 += loss;
            self.sums[language].1 += targets as u64;
            self.correct += report.accuracy * targets as f64;
        }
        if !report.step.is_multiple_of(LINE_EVERY) {
            return LogOutput::default();
        }
        let targets: u64 = self.sums.iter().map(|(_, targets)| targets).sum();
        let loss = self.sums.iter().map(|(loss, _)| loss).sum::<f64>() / targets.max(1) as f64;
        let each = names.iter().zip(&self.sums).filter(|(_, (_, targets))| *targets > 0);
        let by_language: serde_json::Map<String, Value> = each
            .map(|(name, (loss, targets))| (name.clone(), json!(loss / *targets as f64)))
            .collect();
        let line = json!({
            "kind": "train", "step": report.step, "loss": loss, "losses": by_language,
            "accuracy": self.correct / targets.max(1) as f64, "norm": report.norm, "lr": report.lr,
        });
        let on_plateau = !self.left_plateau;
        let note = self.plateau(report.step, loss, unigram_entropy, steps);
        self.sums.fill((0.0, 0));
        self.correct = 0.0;
        let left_plateau = on_plateau && self.left_plateau;
        LogOutput { line: Some(line), note, left_plateau, loss: Some(loss) }
    }

    fn plateau(&mut self, step: u64, loss: f64, entropy: f64, steps: u64) -> Option<String> {
        if self.left_plateau {
            return None;
        }
        if loss < LEFT * entropy {
            self.left_plateau = true;
            return Some(format!(
                "step {step}: the loss has left the initial plateau ({loss:.2}; the unigram entropy is \
                 {entropy:.2})"
            ));
        }
        if !self.advised && step as f64 > LATE * steps as f64 {
            self.advised = true;
            return Some(format!(
                "step {step}: the loss is {loss:.2}, hardly below the unigram entropy ({entropy:.2}). What \
                 has helped: encoder.norm = \"pre\", a higher adam.lr with a warm-up, \
                 encoder.start_positions = \"sinusoid\", no dropout, and more steps"
            ));
        }
        None
    }
}

/// The file of metrics, a JSON object a line.
pub(crate) struct MetricsFile {
    path: PathBuf,
    /// Of all lines so far.
    hasher: blake3::Hasher,
}

impl MetricsFile {
    /// Begins the file, or truncates it to the lines up to a checkpoint at `step`.
    pub(crate) fn open(path: PathBuf, step: Option<u64>) -> files::Result<Self> {
        let text = match step {
            Some(_) => fs::read_to_string(&path).unwrap_or_default(),
            None => String::new(),
        };
        let seen = |line: &&str| {
            let line: Option<Value> = serde_json::from_str(line).ok();
            line.and_then(|line| line["step"].as_u64()).is_some_and(|at| Some(at) <= step)
        };
        let kept: String = text.lines().filter(seen).flat_map(|line| [line, "\n"]).collect();
        files::write(&path, &kept)?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(kept.as_bytes());
        Ok(Self { path, hasher })
    }

    pub(crate) fn write(&mut self, line: &Value) -> files::Result<()> {
        let line = format!("{line}\n");
        self.hasher.update(line.as_bytes());
        let append = |path: &Path| {
            let mut file = OpenOptions::new().append(true).open(path)?;
            file.write_all(line.as_bytes())
        };
        append(&self.path).at(&self.path, "write")
    }

    /// A digest of all lines so far.
    pub(crate) fn digest(&self) -> String {
        self.hasher.finalize().to_hex().to_string()
    }
}
