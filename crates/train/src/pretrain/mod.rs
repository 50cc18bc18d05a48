//! Pretraining: from a configuration to a folder with a trained encoder.
//!
//! A run is a folder: `config.toml` (everything that was decided), `vocabulary/`, `corpora/`,
//! `metrics.jsonl` (losses, perplexities, retrieval; the same for the same seed), `model.safetensors`
//! (the best weights so far), `state.safetensors` (the last checkpoint) and `summary.json`. Files
//! appear whole or not at all, and one process at a time may work in the folder.

mod config;
mod data;
mod evaluate;
mod log;
pub(crate) mod numbering;
mod presets;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use encoder::archive::{self, ArchiveError};
use encoder::{ConfigError, Encoder};
use files::At;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tensor::{Device, Params};
use toml::{Table, Value};

pub use self::config::{
    DictionaryConfig, PretrainConfig, ProbeConfig, SwitchConfig, TextConfig, VocabularyConfig,
    overlay,
};
pub use self::evaluate::Retrieval;
pub use self::presets::{CONDITIONS, SCALES, preset};

use self::data::Data;
use self::evaluate::{Probe, perplexities};
use self::log::{Log, Metrics};
use crate::adam::Group;
use crate::pretrained::MODEL;
use crate::trainer::{TrainError, Trainer};

/// Batches made ahead of training.
const AHEAD: usize = 8;

/// Why a run could not be made.
#[derive(Debug, thiserror::Error)]
pub enum PretrainError {
    /// The configuration makes no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The text could not be read.
    #[error(transparent)]
    Text(#[from] text::Error),
    /// Training failed.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// The weights could not be written or read.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The folder holds something already.
    #[error("{0} is not empty; go on with --resume, or name another folder")]
    Occupied(PathBuf),
    /// There is nothing to go on with.
    #[error("{0} holds no run; leave out --resume to begin one")]
    Nothing(PathBuf),
    /// A file of the run could not be put in its place, or another process works in the folder.
    #[error(transparent)]
    Files(#[from] files::Error),
}

/// Told how a run goes on, and asked whether it shall stop.
pub trait Observer {
    /// Something worth a line.
    fn note(&mut self, text: &str);
    /// An update was made.
    fn step(&mut self, done: u64, total: u64, text: &str);
    /// Whether to save and stop after this update.
    fn stop(&self) -> bool;
}

/// The best weights so far.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// After which update.
    pub step: u64,
    /// Their perplexity.
    pub perplexity: f64,
}

/// What a checkpoint carries besides weights.
#[derive(Clone, Serialize, Deserialize)]
struct Position {
    log: Log,
    best: Option<Best>,
    /// Evaluations since the best one.
    since_best: u64,
    /// Perplexity on held-out text, last measured.
    perplexity: BTreeMap<String, f64>,
    /// Retrieval of translations, last measured.
    retrieval: Vec<Retrieval>,
}

/// What came of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The condition and the scale.
    pub preset: String,
    /// The scale.
    pub scale: String,
    /// The seed.
    pub seed: u64,
    /// Updates made, over all processes.
    pub steps: u64,
    /// Whether all updates that were asked for were made, or stopping early was called for.
    pub finished: bool,
    /// Tokens seen by this process.
    pub tokens: u64,
    /// Seconds spent training by this process.
    pub seconds: f64,
    /// Share of those seconds spent waiting for batches.
    pub waiting: f64,
    /// Numbers that learn.
    pub parameters: usize,
    /// The update at which the loss left the plateau.
    pub left_plateau: Option<u64>,
    /// The best weights, which stand in `model.safetensors`.
    pub best: Option<Best>,
    /// Perplexity on held-out text, last measured.
    pub perplexity: BTreeMap<String, f64>,
    /// Retrieval of translations, last measured.
    pub retrieval: Vec<Retrieval>,
}

/// Fills in what follows from other keys: a linear schedule ends with the run.
pub fn complete(table: &mut Table) {
    let steps = table.get("steps").and_then(Value::as_integer).unwrap_or(1).max(1);
    let schedule = table.get_mut("adam").and_then(|adam| adam.get_mut("schedule"));
    let Some(Value::Table(schedule)) = schedule else { return };
    if schedule.get("kind").and_then(Value::as_str) == Some("linear") {
        schedule.entry("total").or_insert(Value::Integer(steps));
        let total = schedule["total"].as_integer().unwrap_or(steps);
        if let Some(Value::Integer(warmup)) = schedule.get_mut("warmup") {
            *warmup = (*warmup).min(total);
        }
    }
}

/// Begins a run in `folder`.
pub fn begin(
    config: &PretrainConfig,
    folder: &Path,
    device: &Device,
    observer: &mut dyn Observer,
) -> Result<Summary, PretrainError> {
    let occupied = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if occupied {
        return Err(PretrainError::Occupied(folder.to_owned()));
    }
    data::check(config)?;
    fs::create_dir_all(folder).at(folder, "make the folder")?;
    let lock = files::lock(folder)?;
    let text = config.to_toml();
    files::write(&folder.join(CONFIG), text)?;
    let summary = Run::open(config, folder, device, observer)?.go(observer);
    drop(lock);
    summary
}

/// Goes on with the run in `folder`, from its last checkpoint.
pub fn resume(
    folder: &Path,
    device: &Device,
    observer: &mut dyn Observer,
) -> Result<Summary, PretrainError> {
    let path = folder.join(CONFIG);
    if !path.is_file() {
        return Err(PretrainError::Nothing(folder.to_owned()));
    }
    let lock = files::lock(folder)?;
    let text = fs::read_to_string(&path).at(&path, "read")?;
    let table: Table = text.parse().map_err(|error: toml::de::Error| ConfigError {
        key: "config.toml",
        reason: error.to_string(),
    })?;
    let config = PretrainConfig::from_table(table)?;
    let summary = Run::open(&config, folder, device, observer)?.go(observer);
    drop(lock);
    summary
}

const CONFIG: &str = "config.toml";
const STATE: &str = "state.safetensors";

/// A run under way.
struct Run<'a> {
    config: &'a PretrainConfig,
    folder: &'a Path,
    data: Data,
    model: Encoder,
    trainer: Trainer,
    position: Position,
    metrics: Metrics,
    probes: Vec<Probe>,
    /// The loss of guessing by frequency.
    by_frequency: f64,
}

impl<'a> Run<'a> {
    fn open(
        config: &'a PretrainConfig,
        folder: &'a Path,
        device: &Device,
        observer: &mut dyn Observer,
    ) -> Result<Self, PretrainError> {
        let data = Data::prepare(config, folder, &mut |text| observer.note(text))?;
        let mut params = Params::new(device);
        let model = Encoder::new(data.encoder_config(config), &mut params, config.seed)?;
        let adam = config.adam.clone();
        let mut trainer =
            Trainer::new(model.config(), params, adam, config.seed, |_| Group::default())?;
        let mut position = Position {
            log: Log::new(config.languages.len()),
            best: None,
            since_best: 0,
            perplexity: BTreeMap::new(),
            retrieval: Vec::new(),
        };
        let state = folder.join(STATE);
        let resumed = state.is_file();
        if resumed {
            position = trainer.resume(&state)?;
            observer.note(&format!("going on from step {}", trainer.steps()));
        }
        let metrics =
            Metrics::open(folder.join("metrics.jsonl"), resumed.then(|| trainer.steps()))?;
        let longest = model.config().positions;
        let probes = config.probes.iter().map(|probe| Probe::read(probe, &data, longest));
        let probes = probes.collect::<text::Result<_>>()?;
        let by_frequency = guessing_by_frequency(&data);
        Ok(Self { config, folder, data, model, trainer, position, metrics, probes, by_frequency })
    }

    fn go(mut self, observer: &mut dyn Observer) -> Result<Summary, PretrainError> {
        let (config, start) = (self.config, Instant::now());
        let first = self.trainer.steps();
        if first == 0 {
            self.evaluate(observer)?;
        }
        let per_step = config.accumulate as u64;
        let mut batches = self.data.batches.ahead(first * per_step, AHEAD * config.accumulate);
        let (mut tokens, mut waited) = (0, 0.0);
        let mut finished = false;
        loop {
            let step = self.trainer.steps();
            finished = finished || step >= config.steps || self.out_of_patience();
            if finished || observer.stop() {
                break;
            }
            let waiting = Instant::now();
            let pieces: Vec<_> = batches
                .by_ref()
                .take(config.accumulate)
                .map(|batch| self.data.piece(&batch))
                .collect();
            waited += waiting.elapsed().as_secs_f64();
            tokens += pieces.iter().map(|(batch, _)| batch.tokens.len() as u64).sum::<u64>();
            let speed = tokens as f64 / start.elapsed().as_secs_f64();
            self.step(&pieces, speed, observer)?;
        }
        if self.trainer.steps() > first
            && !self.trainer.steps().is_multiple_of(config.checkpoint_every)
        {
            self.save()?;
        }
        let seconds = start.elapsed().as_secs_f64();
        let summary = self.summary(finished, tokens, seconds, waited / seconds.max(1e-9));
        let text = serde_json::to_string_pretty(&summary).expect("a summary is valid JSON");
        files::write(&self.folder.join("summary.json"), text)?;
        Ok(summary)
    }

    /// One update, and whatever is due after it.
    fn step(
        &mut self,
        pieces: &[(encoder::Batch, encoder::Masked)],
        speed: f64,
        observer: &mut dyn Observer,
    ) -> Result<(), PretrainError> {
        let config = self.config;
        let targets = pieces.iter().map(|(_, masked)| masked.rows.len()).sum();
        let model = &self.model;
        let report = self.trainer.step(pieces, targets, |tape, (batch, masked)| {
            model.guess(tape, batch, masked, 1.0 / targets as f32)
        })?;
        let facts = pieces.iter().map(|(batch, masked)| (batch.language, masked.rows.len()));
        let log = &mut self.position.log;
        let told = log.step(&report, facts, &config.languages, self.by_frequency, config.steps);
        if let Some(line) = told.line {
            self.metrics.write(&line)?;
        }
        if let Some(note) = told.note {
            observer.note(&note);
        }
        let loss = told.loss.unwrap_or(report.loss);
        let text = format!("loss {loss:.3}, {speed:.0} tokens/s");
        observer.step(report.step, config.steps, &text);
        if report.step % config.evaluate_every == 0 || report.step == config.steps {
            self.evaluate(observer)?;
        }
        if report.step % config.checkpoint_every == 0 {
            self.save()?;
        }
        Ok(())
    }

    fn save(&self) -> Result<(), PretrainError> {
        Ok(self.trainer.save(&self.folder.join(STATE), &self.position)?)
    }

    fn out_of_patience(&self) -> bool {
        self.config.patience.is_some_and(|patience| self.position.since_best >= patience)
    }

    /// Measures perplexity and retrieval, and keeps the weights if they are the best so far.
    fn evaluate(&mut self, observer: &mut dyn Observer) -> Result<(), PretrainError> {
        let step = self.trainer.steps();
        let device = self.trainer.params().device().clone();
        let (model, data, probes) = (&self.model, &self.data, &self.probes);
        let params = self.trainer.params_mut();
        let (perplexities, retrieval) = device.run(|| {
            let found: Vec<_> = probes.iter().map(|probe| probe.retrieve(model, params)).collect();
            (perplexities(model, params, data), found)
        });
        let names = self.config.languages.iter().cloned();
        self.position.perplexity = names.zip(perplexities).collect();
        self.position.retrieval = retrieval;
        let line = json!({
            "kind": "evaluation", "step": step,
            "perplexity": self.position.perplexity, "retrieval": self.position.retrieval,
        });
        self.metrics.write(&line)?;
        observer.note(&self.evaluated(step));
        let perplexity = self.position.perplexity[self.config.selector()];
        if self.position.best.is_none_or(|best| perplexity < best.perplexity) {
            self.position.best = Some(Best { step, perplexity });
            self.position.since_best = 0;
            self.keep(step)?;
        } else {
            self.position.since_best += 1;
        }
        Ok(())
    }

    /// An evaluation in words.
    fn evaluated(&self, step: u64) -> String {
        let each = |(name, perplexity): (&String, &f64)| format!("{name} {perplexity:.1}");
        let perplexity: Vec<String> = self.position.perplexity.iter().map(each).collect();
        let mut text = format!("step {step}: perplexity {}", perplexity.join(", "));
        for retrieval in &self.position.retrieval {
            let (raw, shifted) = retrieval.best();
            let [a, b] = &retrieval.languages;
            text += &format!("; {a}-{b} found {raw:.3}, shifted {shifted:.3}");
        }
        text
    }

    /// Writes the weights, with what is needed to use them.
    fn keep(&self, step: u64) -> Result<(), PretrainError> {
        let params = self.trainer.params();
        let weights = params.ids().map(|id| (params.name(id).to_owned(), params.value(id)));
        let facts = json!({
            "encoder": self.model.config(),
            "vocabulary": self.data.vocabulary.fingerprint(),
            "step": step, "perplexity": self.position.perplexity,
        });
        Ok(archive::write(&self.folder.join(MODEL), weights, &facts)?)
    }

    fn summary(&self, finished: bool, tokens: u64, seconds: f64, waiting: f64) -> Summary {
        Summary {
            preset: self.config.preset.clone(),
            scale: self.config.scale.clone(),
            seed: self.config.seed,
            steps: self.trainer.steps(),
            finished,
            tokens,
            seconds,
            waiting,
            parameters: self.trainer.params().count(),
            left_plateau: self.position.log.left_plateau,
            best: self.position.best,
            perplexity: self.position.perplexity.clone(),
            retrieval: self.position.retrieval.clone(),
        }
    }
}

/// The loss of guessing every token by its frequency in its language, over all languages as they
/// come by.
fn guessing_by_frequency(data: &Data) -> f64 {
    let entropy = |counts: &[u64]| {
        let total = counts.iter().sum::<u64>().max(1) as f64;
        let share = |&count: &u64| count as f64 / total;
        let seen = counts.iter().map(share).filter(|&share| share > 0.0);
        seen.map(|share| -share * share.ln()).sum::<f64>()
    };
    let chances = data.batches.chances();
    let each = chances.iter().enumerate();
    each.map(|(language, chance)| chance * entropy(data.vocabulary.counts(language))).sum()
}
