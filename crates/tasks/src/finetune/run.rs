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
use train::{AdamConfig, AdamGroup, PendingStep, Schedule, Trainer};

use super::config::{GridSetting, TransferConfig};
use super::evaluate::TaskModel;
use super::recipe::LrSchedule;
use super::result::{
    EpochMetrics, SettingResult, TestResult, TransferResult, TransferSpeed, mean_of_best,
    read_settings, write_settings,
};
use super::sets::{LabelledSet, LabelledSets};
use super::shift::{self, PredictedFiles, ShiftResult};
use crate::error::Result;
use crate::features::Features;
use crate::heads::Head;
use crate::labelled::{Annotation, Example};
use crate::registry::{HeadShape, ScoreResult, definition};

const METRICS: &str = "metrics.jsonl";
const MODEL: &str = "model.safetensors";
const PREDICTIONS: &str = "predictions";
pub(super) const STATE: &str = "state.safetensors";
const EPOCH: &str = "epoch.safetensors";

/// Fine-tunes over features and sets, in a folder that exists already; what it holds of this run is
/// continued.
pub(super) fn run(
    config: &TransferConfig,
    features: &dyn Features,
    sets: &LabelledSets,
    folder: &Path,
    observer: &mut dyn Observer,
) -> Result<TransferResult> {
    let _lock = files::lock(folder)?;
    for set in sets.all() {
        set.note().iter().for_each(|note| observer.note(note));
    }
    let done = read_settings(folder, sets)?;
    let settings = config.settings();
    let mut run =
        TransferRun { config, features, sets, folder, done, speed: TransferSpeed::default() };
    let mut finished = true;
    for (number, setting) in settings.iter().enumerate().skip(run.done.len()) {
        let label = label(number, settings.len(), setting);
        finished =
            run.setting(setting, &label, observer).map_err(|error| error.of_setting(&label))?;
        if !finished {
            break;
        }
    }
    let result = run.result(finished)?;
    result.write(folder)?;
    Ok(result)
}

/// A setting in words.
fn label(number: usize, of: usize, setting: &GridSetting) -> String {
    let GridSetting { seed, batch, lr, head_lr } = setting;
    let head = if head_lr == lr { String::new() } else { format!(", head {head_lr:e}") };
    format!("setting {} of {of} (seed {seed}, batch {batch}, lr {lr:e}{head})", number + 1)
}

/// What a checkpoint carries besides weights.
#[derive(Clone, Default, Serialize, Deserialize)]
struct SettingProgress {
    /// Epochs done.
    epoch: u32,
    /// The best epoch so far, and its score.
    best: Option<(u32, f64)>,
    history: Vec<EpochMetrics>,
}

/// A run under way.
struct TransferRun<'a> {
    config: &'a TransferConfig,
    features: &'a dyn Features,
    sets: &'a LabelledSets,
    folder: &'a Path,
    /// The settings that are done.
    done: Vec<SettingResult>,
    speed: TransferSpeed,
}

/// A setting under way.
struct SettingRun {
    trainer: Trainer,
    head: Box<dyn Head>,
    progress: SettingProgress,
}

/// An update that was begun.
struct PendingUpdate {
    pending: PendingStep,
    targets: usize,
    tokens: u64,
}

/// Weights of features and head before any training.
struct InitialWeights {
    params: Params,
    head: Box<dyn Head>,
    /// How many of the matrices are the features'.
    below: usize,
}

/// The mean loss of an epoch under way, and the time it takes.
struct EpochLoss {
    /// The sum over targets.
    sum: f64,
    targets: f64,
    /// When the last update was finished.
    last: Instant,
}

impl EpochLoss {
    fn mean(&self) -> f64 {
        self.sum / self.targets.max(1.0)
    }

    /// Waits for an update, adds its loss, and shows it.
    fn finish(
        &mut self,
        trainer: &mut Trainer,
        update: PendingUpdate,
        speed: &mut TransferSpeed,
        (total, observer): (u64, &mut dyn Observer),
    ) -> Result<()> {
        let report = trainer.finish(update.pending)?;
        self.sum += report.loss * update.targets as f64;
        self.targets += update.targets as f64;
        speed.trained += update.tokens;
        speed.train_seconds +=
            std::mem::replace(&mut self.last, Instant::now()).elapsed().as_secs_f64();
        let text = format!("loss {:.3}, {:.0} tokens/s", self.sum / self.targets, speed.train());
        observer.step(report.step, total, &text);
        Ok(())
    }
}

impl TransferRun<'_> {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Trains one setting to its end and scores it. False where it was asked to stop before.
    fn setting(
        &mut self,
        setting: &GridSetting,
        label: &str,
        observer: &mut dyn Observer,
    ) -> Result<bool> {
        let mut under_way = self.open(setting)?;
        while under_way.progress.epoch < self.config.epochs {
            if !self.epoch(&mut under_way, setting, observer)? {
                return Ok(false);
            }
            let SettingProgress { epoch, best, history } = &under_way.progress;
            let EpochMetrics { loss, dev, .. } = history.last().expect("an epoch leaves a line");
            let star = if best.is_some_and(|(at, _)| at == *epoch) { " *" } else { "" };
            let (epochs, unit) = (self.config.epochs, self.config.task.unit());
            observer.note(&format!(
                "{label}: epoch {epoch} of {epochs}: loss {loss:.3}, dev {unit} {dev:.4}{star}"
            ));
        }
        self.finish(under_way, setting)?;
        Ok(true)
    }

    /// The updates of a setting, over all epochs.
    fn steps(&self, setting: &GridSetting) -> u64 {
        let batches = self.sets.train.examples.len().div_ceil(setting.batch) as u64;
        u64::from(self.config.epochs) * batches
    }

    /// Puts a setting at its start, or where its checkpoint left it.
    fn open(&self, setting: &GridSetting) -> Result<SettingRun> {
        let InitialWeights { params, head, below } = self.initial(setting.seed)?;
        let total = self.steps(setting);
        let schedule = match self.config.schedule {
            LrSchedule::Linear => Schedule::Linear { warmup: total / 10, total },
            LrSchedule::Constant => Schedule::Constant,
        };
        let adam = AdamConfig {
            lr: setting.lr,
            schedule,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            weight_decay: self.config.weight_decay,
            clip: Some(self.config.clip),
        };
        let of_head: Vec<ParamId> = params.ids().skip(below).collect();
        let group = |id: ParamId| match of_head.contains(&id) {
            true => AdamGroup { lr_scale: setting.head_lr / setting.lr, ..AdamGroup::default() },
            false => AdamGroup::default(),
        };
        let mut trainer = Trainer::new(&self.metadata(setting), params, adam, setting.seed, group)?;
        let state = self.path(STATE);
        let resumed = state.is_file() && of_setting(&state, setting);
        let progress = if resumed { trainer.resume(&state)? } else { SettingProgress::default() };
        Ok(SettingRun { trainer, head, progress })
    }

    /// Weights as they are before the first step.
    fn initial(&self, seed: u64) -> Result<InitialWeights> {
        let layers = self.config.train_layers()?;
        let mut params = self.features.start(seed, layers.as_ref())?;
        let below = params.ids().count();
        let shape = HeadShape {
            seed,
            dim: self.features.source().dim(),
            labels: &self.sets.labels,
            dropout: self.config.dropout,
            parser: self.config.parser,
        };
        let head = definition(self.config.task).head(&mut params, &shape);
        Ok(InitialWeights { params, head, below })
    }

    /// What a checkpoint says it is of.
    fn metadata(&self, setting: &GridSetting) -> Value {
        json!({
            "task": self.config.task, "features": self.features.metadata(),
            "labels": self.sets.labels, "setting": setting,
            "examples": self.sets.train.examples.len(),
        })
    }

    /// One epoch: training, the score on the development set, and a checkpoint. False where it was asked to
    /// stop before.
    fn epoch(
        &mut self,
        under_way: &mut SettingRun,
        setting: &GridSetting,
        observer: &mut dyn Observer,
    ) -> Result<bool> {
        let Some(loss) = self.train_epoch(under_way, setting, observer)? else { return Ok(false) };
        let SettingRun { trainer, head, progress } = under_way;
        let model = TaskModel { features: self.features, head: &**head };
        let (_, score) =
            evaluate(&mut self.speed, model, trainer.params_mut(), &self.sets.dev, self.sets);
        let dev = score.value();
        progress.epoch += 1;
        let epoch = progress.epoch;
        if progress.best.is_none_or(|(_, best)| dev > best) {
            progress.best = Some((epoch, dev));
            self.save_weights(EPOCH, trainer.params(), setting, (epoch, dev))?;
        }
        let (setting, step) = (*setting, trainer.steps());
        progress.history.push(EpochMetrics { setting, epoch, step, loss, dev, score });
        // The state last: after a kill between the two, the epoch is repeated with the same result.
        self.write_metrics(&progress.history)?;
        trainer.save(&self.path(STATE), progress)?;
        Ok(true)
    }

    /// Trains for one epoch and gives its mean loss; none where it was asked to stop before.
    fn train_epoch(
        &mut self,
        under_way: &mut SettingRun,
        setting: &GridSetting,
        observer: &mut dyn Observer,
    ) -> Result<Option<f64>> {
        let SettingRun { trainer, head, progress } = under_way;
        let model = TaskModel { features: self.features, head: &**head };
        let train = &self.sets.train;
        let total = self.steps(setting);
        let mut order: Vec<usize> = (0..train.examples.len()).collect();
        let epoch = u64::from(progress.epoch + 1);
        RandomStreams::new(setting.seed, "order of batches").stream(epoch).shuffle(&mut order);
        let mut loss = EpochLoss { sum: 0.0, targets: 0.0, last: Instant::now() };
        // The update that the device is working on while the next one is prepared.
        let mut begun: Option<PendingUpdate> = None;
        for batch in order.chunks(setting.batch) {
            if observer.stop() {
                return Ok(None);
            }
            let batch: Vec<&Example> = batch.iter().map(|&at| &train.examples[at]).collect();
            let targets: usize = batch.iter().map(|example| example.gold.len()).sum();
            let pending = trainer.begin(&[batch.as_slice()], targets, |tape, batch| {
                let vectors = model.vectors(tape, train.language, batch);
                model.head.loss(tape, vectors, batch)
            });
            let next = PendingUpdate { pending, targets, tokens: tokens(batch.iter().copied()) };
            if let Some(update) = begun.replace(next) {
                loss.finish(trainer, update, &mut self.speed, (total, observer))?;
            }
        }
        if let Some(update) = begun {
            loss.finish(trainer, update, &mut self.speed, (total, observer))?;
        }
        Ok(Some(loss.mean()))
    }

    /// Writes all weights, and what they are of.
    fn save_weights(
        &self,
        name: &str,
        params: &Params,
        setting: &GridSetting,
        (epoch, dev): (u32, f64),
    ) -> Result<()> {
        let weights = params.ids().map(|id| (params.name(id).to_owned(), params.value(id)));
        let metadata = json!({ "run": self.metadata(setting), "epoch": epoch, "dev": dev });
        Ok(archive::write(&self.path(name), weights, &metadata)?)
    }

    /// Writes the lines of all settings that are done and of the one under way.
    fn write_metrics(&self, history: &[EpochMetrics]) -> Result<()> {
        let done = self.done.iter().flat_map(|setting| &setting.history);
        let line = |metrics: &EpochMetrics| {
            serde_json::to_string(metrics).expect("metrics are valid JSON") + "\n"
        };
        let lines: String = done.chain(history).map(line).collect();
        Ok(files::write(&self.path(METRICS), lines)?)
    }

    /// Scores the best epoch of a setting, and records it as done.
    fn finish(&mut self, under_way: SettingRun, setting: &GridSetting) -> Result<()> {
        let SettingRun { mut trainer, head, progress } = under_way;
        let (epoch, dev) = progress.best.expect("an epoch was scored");
        let params = trainer.params_mut();
        load(&self.path(EPOCH), params)?;
        let model = TaskModel { features: self.features, head: &*head };
        let mut tests = BTreeMap::new();
        let mut files = Vec::new();
        for set in &self.sets.tests {
            let (predictions, score) = evaluate(&mut self.speed, model, params, set, self.sets);
            files.push((set, set.labelled.render(&self.sets.labels, &predictions)));
            tests.insert(set.name.clone(), score);
        }
        let (shifted, shifted_files) = shift::score(self.sets, model, params);
        if self.done.iter().all(|other| other.dev < dev) {
            self.write_predictions(&files, &shifted_files)?;
            self.save_weights(MODEL, params, setting, (epoch, dev))?;
        }
        let history = progress.history;
        self.done.push(SettingResult { setting: *setting, epoch, dev, tests, shifted, history });
        write_settings(self.folder, &self.done)?;
        for name in [STATE, EPOCH] {
            let path = self.path(name);
            fs::remove_file(&path).at(&path, "remove")?;
        }
        Ok(())
    }

    fn write_predictions(
        &self,
        plain: &PredictedFiles<'_>,
        shifted: &PredictedFiles<'_>,
    ) -> Result<()> {
        let folder = files::NewFolder::instead_of(&self.path(PREDICTIONS))?;
        let each = |predicted: &PredictedFiles<'_>, how: &str| {
            predicted.iter().try_for_each(|(set, text)| {
                let file = set.labelled.path().file_name().unwrap_or_default().to_string_lossy();
                // What is written is not compressed, whatever was read.
                let file = text::plain_name(&file);
                let language = set.name.split(':').next().unwrap_or(&set.name);
                folder.write(&format!("{language}.{how}{file}"), text.as_bytes())
            })
        };
        each(plain, "")?;
        each(shifted, "shifted.")?;
        Ok(folder.finish()?)
    }

    fn result(&self, finished: bool) -> Result<TransferResult> {
        let (done, task) = (&self.done, self.config.task);
        let params = self.initial(0)?.params;
        let trained = params.ids().filter(|&id| params.trainable(id));
        let best = done.iter().fold(None, |best: Option<&SettingResult>, setting| match best {
            Some(best) if best.dev >= setting.dev => Some(best),
            _ => Some(setting),
        });
        let scores = best.map(|setting| setting.tests.clone()).unwrap_or_default();
        let without_history =
            |setting: &SettingResult| SettingResult { history: Vec::new(), ..setting.clone() };
        Ok(TransferResult {
            signature: scores
                .values()
                .next()
                .map_or_else(String::new, |s| s.signature().to_owned()),
            task,
            measure: task.measure().to_owned(),
            finished,
            best: best.map(|setting| setting.setting),
            dev: mean_of_best(done, |setting| setting.dev),
            results: self.test_results(),
            scores,
            shift: best.and_then(|best| ShiftResult::new(self.config, done, best)),
            settings: done.iter().map(without_history).collect(),
            sets: self.sets.all().map(|set| (set.name.clone(), set.metadata.clone())).collect(),
            parameters: trained.map(|id| params.value(id).len()).sum(),
            speed: self.speed,
            padding: 0.0,
        })
    }

    /// The result on every test set, with the baselines that it is to be compared with.
    fn test_results(&self) -> Vec<TestResult> {
        let (task, labels) = (definition(self.config.task), &self.sets.labels);
        let majority = task.is_labelling().then(|| self.sets.majority());
        let result = |set: &LabelledSet| {
            let score = mean_of_best(&self.done, |setting| setting.tests[&set.name].value())?;
            let majority = majority.map(|label| set.score_of_label(labels, label));
            Some(TestResult {
                name: set.name.clone(),
                score,
                chance: task.chance(labels),
                majority,
            })
        };
        self.sets.tests.iter().filter_map(result).collect()
    }
}

/// Whether a checkpoint is of this setting: one left by the setting before is not continued.
fn of_setting(state: &Path, setting: &GridSetting) -> bool {
    let metadata = Archive::open(state).and_then(|archive| archive.metadata::<Value>());
    let own = serde_json::to_value(setting).expect("a setting is valid JSON");
    // What cannot be read is left to the trainer, which says why.
    metadata.map_or(true, |metadata| metadata["model"]["setting"] == own)
}

/// Loads weights from a file.
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
    speed: &mut TransferSpeed,
    model: TaskModel<'_>,
    params: &mut Params,
    set: &LabelledSet,
    sets: &LabelledSets,
) -> (Vec<Vec<Annotation>>, ScoreResult) {
    let start = Instant::now();
    let result = model.evaluate(params, set, &sets.labels);
    speed.evaluated += tokens(set.examples.iter());
    speed.evaluate_seconds += start.elapsed().as_secs_f64();
    result
}
