//! The settings of a grid, one after another.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use encoder::archive::{self, Archive};
use files::At;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tensor::{ParamId, Params};
use text::RandomStreams;
use train::pretrain::Observer;
use train::{AdamConfig, Group, Pending, Schedule, Trainer};

use super::config::{Pace, Setting, TransferConfig};
use super::evaluate::Model;
use super::sets::{Set, Sets};
use super::shifted::{self, Predicted, ShiftSummary};
use super::summary::{Outcome, Record, Speed, Summary, mean_of_best, read_records, write_records};
use crate::error::{Error, Result};
use crate::features::Features;
use crate::heads::{Classifier, Head, Parser, ParserSizes};
use crate::labelled::{Answer, Example, Score, Task};

const METRICS: &str = "metrics.jsonl";
const MODEL: &str = "model.safetensors";
const PREDICTIONS: &str = "predictions";
pub(super) const STATE: &str = "state.safetensors";
const EPOCH: &str = "epoch.safetensors";

/// Fine-tunes over any features and sets, in a folder that is there already; what it holds of this
/// run is gone on from.
pub fn transfer(
    config: &TransferConfig,
    features: &dyn Features,
    sets: &Sets,
    folder: &Path,
    observer: &mut dyn Observer,
) -> Result<Summary> {
    let _lock = files::lock(folder)?;
    for set in sets.all() {
        set.note().iter().for_each(|note| observer.note(note));
    }
    let records = read_records(folder, sets)?;
    let settings = config.settings();
    let mut run = Run { config, features, sets, folder, records, speed: Speed::default() };
    let mut finished = true;
    for (number, setting) in settings.iter().enumerate().skip(run.records.len()) {
        let label = run.label(number, settings.len(), setting);
        finished =
            run.setting(setting, &label, observer).map_err(|error| error.of_setting(&label))?;
        if !finished {
            break;
        }
    }
    let summary = run.summary(finished)?;
    summary.write(folder)?;
    Ok(summary)
}

/// What a checkpoint carries besides weights.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Position {
    /// Epochs done.
    epoch: u32,
    /// The best epoch so far, and its score.
    best: Option<(u32, f64)>,
    history: Vec<Value>,
}

/// A run under way.
struct Run<'a> {
    config: &'a TransferConfig,
    features: &'a dyn Features,
    sets: &'a Sets,
    folder: &'a Path,
    records: Vec<Record>,
    speed: Speed,
}

/// A setting under way.
struct Attempt {
    trainer: Trainer,
    head: Box<dyn Head>,
    position: Position,
}

/// An update that was begun.
struct Begun {
    pending: Pending,
    targets: usize,
    tokens: u64,
}

/// Weights of features and head before any learning.
struct Fresh {
    params: Params,
    head: Box<dyn Head>,
    /// How many of the matrices are the features'.
    below: usize,
}

impl Run<'_> {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A setting in words.
    fn label(&self, number: usize, of: usize, setting: &Setting) -> String {
        let Setting { seed, batch, rate, head_rate } = setting;
        let head = if head_rate == rate { String::new() } else { format!(", head {head_rate:e}") };
        format!("setting {} of {of} (seed {seed}, batch {batch}, rate {rate:e}{head})", number + 1)
    }

    /// Trains one setting to its end and scores it. False where it was asked to stop before.
    fn setting(
        &mut self,
        setting: &Setting,
        label: &str,
        observer: &mut dyn Observer,
    ) -> Result<bool> {
        let mut attempt = self.open(setting)?;
        let total = u64::from(self.config.epochs) * self.steps(setting);
        while attempt.position.epoch < self.config.epochs {
            if !self.epoch(&mut attempt, setting, total, observer)? {
                return Ok(false);
            }
            let Position { epoch, best, history } = &attempt.position;
            let line = history.last().expect("an epoch leaves a line");
            let (loss, dev) = (&line["loss"], &line["dev"]);
            let numbers = (loss.as_f64().unwrap_or(0.0), dev.as_f64().unwrap_or(0.0));
            let star = if best.is_some_and(|(at, _)| at == *epoch) { " *" } else { "" };
            observer.note(&format!(
                "{label}: epoch {epoch} of {}: loss {:.3}, dev {} {:.4}{star}",
                self.config.epochs,
                numbers.0,
                self.config.task.headline(),
                numbers.1,
            ));
        }
        self.finish(attempt, setting)?;
        Ok(true)
    }

    /// Batches in an epoch.
    fn steps(&self, setting: &Setting) -> u64 {
        self.sets.train.examples.len().div_ceil(setting.batch) as u64
    }

    /// Puts a setting at its start, or where its checkpoint left it.
    fn open(&self, setting: &Setting) -> Result<Attempt> {
        let Fresh { params, head, below } = self.fresh(setting.seed)?;
        let total = u64::from(self.config.epochs) * self.steps(setting);
        let schedule = match self.config.pace {
            Pace::Linear => Schedule::Linear { warmup: total / 10, total },
            Pace::Fixed => Schedule::Constant,
        };
        let adam = AdamConfig {
            rate: setting.rate,
            schedule,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            weight_decay: self.config.weight_decay,
            clip: Some(self.config.clip),
        };
        let of_head: Vec<ParamId> = params.ids().skip(below).collect();
        let group = |id: ParamId| match of_head.contains(&id) {
            true => Group { rate: setting.head_rate / setting.rate, ..Group::default() },
            false => Group::default(),
        };
        let mut trainer = Trainer::new(&self.facts(setting), params, adam, setting.seed, group)?;
        let state = self.path(STATE);
        let resumed = state.is_file() && of_setting(&state, setting);
        let position = if resumed { trainer.resume(&state)? } else { Position::default() };
        Ok(Attempt { trainer, head, position })
    }

    /// Weights as they are before the first step.
    fn fresh(&self, seed: u64) -> Result<Fresh> {
        let layers = self.config.train_layers()?;
        let mut params = self.features.start(seed, layers.as_ref())?;
        let below = params.ids().count();
        let head = self.head(&mut params, seed);
        Ok(Fresh { params, head, below })
    }

    fn head(&self, params: &mut Params, seed: u64) -> Box<dyn Head> {
        let (dim, labels, dropout) = (self.features.dim(), &self.sets.labels, self.config.dropout);
        match self.config.task {
            Task::Nli | Task::Ner => {
                Box::new(Classifier::new(params, seed, dim, labels.len(), dropout))
            }
            Task::Parse => {
                let sizes = self.config.parser.unwrap_or(ParserSizes::for_dim(dim));
                Box::new(Parser::new(params, seed, dim, sizes, labels, dropout))
            }
        }
    }

    /// What a checkpoint says it is of.
    fn facts(&self, setting: &Setting) -> Value {
        json!({
            "task": self.config.task, "features": self.features.facts(),
            "labels": self.sets.labels, "setting": setting,
            "examples": self.sets.train.examples.len(),
        })
    }

    /// One epoch: training, the score on the development set, and a checkpoint.
    fn epoch(
        &mut self,
        attempt: &mut Attempt,
        setting: &Setting,
        total: u64,
        observer: &mut dyn Observer,
    ) -> Result<bool> {
        let Attempt { trainer, head, position } = attempt;
        let model = Model { features: self.features, head: &**head };
        let train = &self.sets.train;
        let epoch = position.epoch + 1;
        let mut order: Vec<usize> = (0..train.examples.len()).collect();
        RandomStreams::new(setting.seed, "order of batches")
            .stream(epoch.into())
            .shuffle(&mut order);
        let (mut losses, mut targets) = (0.0, 0.0);
        let mut start = Instant::now();
        let mut finish = |speed: &mut Speed, trainer: &mut Trainer, begun: Begun| {
            let report = trainer.finish(begun.pending)?;
            losses += report.loss * begun.targets as f64;
            targets += begun.targets as f64;
            speed.trained += begun.tokens;
            speed.train_seconds +=
                std::mem::replace(&mut start, Instant::now()).elapsed().as_secs_f64();
            let text = format!("loss {:.3}, {:.0} tokens/s", losses / targets, speed.train());
            Ok::<_, Error>((report.step, text))
        };
        // The update that the device is working on while the next one is prepared.
        let mut begun: Option<Begun> = None;
        for batch in order.chunks(setting.batch) {
            if observer.stop() {
                return Ok(false);
            }
            let batch: Vec<&Example> = batch.iter().map(|&at| &train.examples[at]).collect();
            let targets: usize = batch.iter().map(|example| example.targets.len()).sum();
            let pending = trainer.begin(&[batch.as_slice()], targets, |tape, batch| {
                let vectors = model.vectors(tape, train.language, batch);
                model.head.loss(tape, vectors, batch)
            });
            let next = Begun { pending, targets, tokens: tokens(batch.iter().copied()) };
            if let Some(begun) = begun.replace(next) {
                let (step, text) = finish(&mut self.speed, trainer, begun)?;
                observer.step(step, total, &text);
            }
        }
        if let Some(begun) = begun {
            let (step, text) = finish(&mut self.speed, trainer, begun)?;
            observer.step(step, total, &text);
        }
        let score =
            evaluate(&mut self.speed, model, trainer.params_mut(), &self.sets.dev, self.sets);
        let dev = score.1.headline();
        position.epoch = epoch;
        if position.best.is_none_or(|(_, best)| dev > best) {
            position.best = Some((epoch, dev));
            self.keep(EPOCH, trainer.params(), setting, epoch, dev)?;
        }
        position.history.push(json!({
            "seed": setting.seed, "batch": setting.batch, "rate": setting.rate,
            "head_rate": setting.head_rate, "epoch": epoch, "step": trainer.steps(),
            "loss": losses / targets.max(1.0), "dev": dev, "score": score.1,
        }));
        // The state last: after a kill between the two, the epoch is gone through again and says the same.
        self.write_metrics(&position.history)?;
        trainer.save(&self.path(STATE), position)?;
        Ok(true)
    }

    /// Writes all weights, and what they are of.
    fn keep(
        &self,
        name: &str,
        params: &Params,
        setting: &Setting,
        epoch: u32,
        dev: f64,
    ) -> Result<()> {
        let weights = params.ids().map(|id| (params.name(id).to_owned(), params.value(id)));
        let facts = json!({ "run": self.facts(setting), "epoch": epoch, "dev": dev });
        Ok(archive::write(&self.path(name), weights, &facts)?)
    }

    /// Writes the lines of all settings that are done and of the one under way.
    fn write_metrics(&self, history: &[Value]) -> Result<()> {
        let done = self.records.iter().flat_map(|record| &record.history);
        let lines: String = done.chain(history).map(|line| format!("{line}\n")).collect();
        Ok(files::write(&self.path(METRICS), lines)?)
    }

    /// Scores the best epoch of a setting, and notes it down as done.
    fn finish(&mut self, attempt: Attempt, setting: &Setting) -> Result<()> {
        let Attempt { mut trainer, head, position } = attempt;
        let (epoch, dev) = position.best.expect("an epoch was scored");
        let params = trainer.params_mut();
        load(&self.path(EPOCH), params)?;
        let model = Model { features: self.features, head: &*head };
        let mut tests = BTreeMap::new();
        let mut predictions = Vec::new();
        for set in &self.sets.tests {
            let (answers, score) = evaluate(&mut self.speed, model, params, set, self.sets);
            predictions.push((set, set.labelled.render(&self.sets.labels, &answers)));
            tests.insert(set.name.clone(), score);
        }
        let (shifted, moved) = shifted::score(self.sets, model, params);
        let best_yet = self.records.iter().all(|record| record.dev < dev);
        if best_yet {
            self.write_predictions(&predictions, &moved)?;
            self.keep(MODEL, params, setting, epoch, dev)?;
        }
        let history = position.history;
        self.records.push(Record { setting: *setting, epoch, dev, tests, shifted, history });
        write_records(self.folder, &self.records)?;
        for name in [STATE, EPOCH] {
            let path = self.path(name);
            fs::remove_file(&path).at(&path, "remove")?;
        }
        Ok(())
    }

    fn write_predictions(&self, plain: &Predicted<'_>, moved: &Predicted<'_>) -> Result<()> {
        let folder = files::NewFolder::instead_of(&self.path(PREDICTIONS))?;
        let each = |predicted: &Predicted<'_>, how: &str| {
            predicted.iter().try_for_each(|(set, text)| {
                let file = set.labelled.path().file_name().unwrap_or_default().to_string_lossy();
                // What is written is not compressed, whatever was read.
                let file = text::plain_name(&file);
                let language = set.name.split(':').next().unwrap_or(&set.name);
                folder.write(&format!("{language}.{how}{file}"), text.as_bytes())
            })
        };
        each(plain, "")?;
        each(moved, "shifted.")?;
        Ok(folder.finish()?)
    }

    fn summary(&self, finished: bool) -> Result<Summary> {
        let records = &self.records;
        let params = self.fresh(0)?.params;
        let learns = params.ids().filter(|&id| params.trainable(id));
        let best = records.iter().fold(None, |best: Option<&Record>, record| match best {
            Some(best) if best.dev >= record.dev => Some(best),
            _ => Some(record),
        });
        let result = |set: &Set| {
            let score = mean_of_best(records, |record| record.tests[&set.name].headline())?;
            Some(Outcome { name: set.name.clone(), score })
        };
        let without_history = |record: &Record| {
            let mut value = serde_json::to_value(record).expect("a record is valid JSON");
            value.as_object_mut().expect("an object").remove("history");
            value
        };
        Ok(Summary {
            task: self.config.task,
            headline: self.config.task.headline().to_owned(),
            finished,
            best: best.map(|record| record.setting),
            dev: mean_of_best(records, |record| record.dev),
            results: self.sets.tests.iter().filter_map(result).collect(),
            scores: best.map(|record| record.tests.clone()).unwrap_or_default(),
            shift: best.and_then(|best| ShiftSummary::new(self.config, records, best)),
            settings: records.iter().map(without_history).collect(),
            sets: self.sets.all().map(|set| (set.name.clone(), set.facts.clone())).collect(),
            parameters: learns.map(|id| params.value(id).len()).sum(),
            speed: self.speed,
            padding: 0.0,
        })
    }
}

/// Whether a checkpoint is of this setting: one left by the setting before is not gone on from.
fn of_setting(state: &Path, setting: &Setting) -> bool {
    let facts = Archive::open(state).and_then(|archive| archive.metadata::<Value>());
    let wanted = serde_json::to_value(setting).expect("a setting is valid JSON");
    // What cannot be read is left to the trainer, which says why.
    facts.map_or(true, |facts| facts["model"]["setting"] == wanted)
}

/// Puts weights where a file has them.
fn load(path: &Path, params: &mut Params) -> Result<()> {
    let names: Vec<String> = params.ids().map(|id| params.name(id).to_owned()).collect();
    let values = params.iter_mut().map(|(_, value, _)| value);
    Ok(Archive::open(path)?.load(names.into_iter().zip(values).collect())?)
}

fn tokens<'a>(examples: impl Iterator<Item = &'a Example>) -> u64 {
    examples.map(|example| example.tokens.len() as u64).sum()
}

/// Evaluates, and takes the time.
fn evaluate(
    speed: &mut Speed,
    model: Model<'_>,
    params: &mut Params,
    set: &Set,
    sets: &Sets,
) -> (Vec<Vec<Answer>>, Score) {
    let start = Instant::now();
    let result = model.evaluate(params, set, &sets.labels);
    speed.evaluated += tokens(set.examples.iter());
    speed.evaluate_seconds += start.elapsed().as_secs_f64();
    result
}
