//! The settings of a grid, one after another or side by side.
//!
//! The small batches of fine-tuning leave a GPU idle while the host prepares the next kernel. So several
//! settings are trained at a time, each in a thread with a device of its own: on a GPU a stream and a pool of
//! memory, on the CPU a share of the threads. They share nothing that is written but the run's files, and each
//! computes what it would compute alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use encoder::archive::{self, Archive, ArchiveError};
use files::checkpoints;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tensor::{Device, ParamId, Params, Tensor};
use text::RandomStreams;
use train::pretrain::Observer;
use train::{AdamConfig, AdamGroup, PendingStep, Schedule, Trainer};

use super::config::{FeaturesConfig, GridSetting, TransferConfig};
use super::evaluate::TaskModel;
use super::recipe::LrSchedule;
use super::result::{
    EpochMetrics, SettingResult, TestResult, TransferResult, TransferSpeed, mean_of_best,
    read_settings, write_settings,
};
use super::sets::{LabelledSet, LabelledSets};
use super::shift::{self, PredictedFiles, ShiftResult};
use crate::error::{Error, Result};
use crate::features::Features;
use crate::heads::Head;
use crate::labelled::{Annotation, Example};
use crate::registry::{HeadShape, ScoreResult, definition};

const METRICS: &str = "metrics.jsonl";
const MODEL: &str = "model.safetensors";
const PREDICTIONS: &str = "predictions";
pub(super) const STATE: &str = "state";
const EPOCH: &str = "epoch";

/// Training that is worth a checkpoint, in seconds by the byte: a state of 600 MB is written every 12 seconds at
/// most. Settings that take less write none, and are repeated after a kill.
const SECONDS_PER_SAVED_BYTE: f64 = 1.0 / 50e6;
/// The quantile of the normal distribution for a one-sided test at 5 %.
const ONE_SIDED_5: f64 = 1.645;

/// Fine-tunes over features and sets, in a folder whose lock is held; what it holds of this run is
/// continued. So many settings are trained side by side as there are features, each on a device of its own.
pub(super) fn run(
    config: &TransferConfig,
    features: &[Box<dyn Features>],
    sets: &LabelledSets,
    folder: &Path,
    observer: &mut (dyn Observer + Send),
) -> Result<TransferResult> {
    for set in sets.all() {
        set.note().iter().for_each(|note| observer.note(note));
    }
    let settings = config.settings();
    let read = read_settings(folder, sets)?;
    let done = by_number(&settings, read.clone());
    done.keys().for_each(|&number| remove_checkpoints(folder, number));
    let open: Vec<usize> =
        (0..settings.len()).filter(|number| !done.contains_key(number)).collect();
    let progress = GridProgress { done, ..GridProgress::default() };
    let mut run = GridRun {
        config,
        sets,
        folder,
        settings,
        replaced: BTreeSet::new(),
        side_by_side: features.len().min(open.len()).max(1),
        progress: Mutex::new(progress),
        observer: Mutex::new(observer),
        failed: AtomicBool::new(false),
    };
    let mut finished = run.train(features, &open)?;
    for _ in 0..config.restarts {
        let again = if finished { run.restart_failed(&read) } else { Vec::new() };
        finished &= run.train(features, &again)?;
    }
    let result = run.result(&*features[0], finished)?;
    result.write(folder)?;
    Ok(result)
}

/// A file of a setting while it is under way.
fn checkpoint(folder: &Path, name: &str, number: usize) -> PathBuf {
    folder.join(format!("{name}-{}.safetensors", number + 1))
}

/// Removes the files of a setting that is done; after a kill they may be gone already.
fn remove_checkpoints(folder: &Path, number: usize) {
    for name in [STATE, EPOCH] {
        let _ = checkpoints::remove(&checkpoint(folder, name, number));
    }
}

fn by_number(
    settings: &[GridSetting],
    results: Vec<SettingResult>,
) -> BTreeMap<usize, SettingResult> {
    let mut numbered = BTreeMap::new();
    for result in results {
        let own =
            |number: &usize| settings[*number] == result.setting && !numbered.contains_key(number);
        if let Some(number) = (0..settings.len()).find(own) {
            numbered.insert(number, result);
        }
    }
    numbered
}

fn label(number: usize, of: usize, setting: &GridSetting) -> String {
    let GridSetting { seed, batch, lr, head_lr } = setting;
    let head = if head_lr == lr { String::new() } else { format!(", head {head_lr:e}") };
    format!("setting {} of {of} (seed {seed}, batch {batch}, lr {lr:e}{head})", number + 1)
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct SettingProgress {
    epoch: u32,
    /// The best epoch so far, and its score.
    best: Option<(u32, f64)>,
    history: Vec<EpochMetrics>,
}

struct GridRun<'a> {
    config: &'a TransferConfig,
    sets: &'a LabelledSets,
    folder: &'a Path,
    settings: Vec<GridSetting>,
    /// Settings that did not learn, each trained again as one of the later ones.
    replaced: BTreeSet<usize>,
    /// How many settings are trained at a time.
    side_by_side: usize,
    progress: Mutex<GridProgress>,
    observer: Mutex<&'a mut (dyn Observer + Send)>,
    /// Whether a setting failed, so that the others stop.
    failed: AtomicBool,
}

#[derive(Default)]
struct GridProgress {
    done: BTreeMap<usize, SettingResult>,
    /// The epochs of the settings that are under way.
    histories: BTreeMap<usize, Vec<EpochMetrics>>,
    /// Updates made by this process, over all settings.
    updates: u64,
    speed: TransferSpeed,
}

/// A setting, trained over its own features.
#[derive(Clone, Copy)]
struct SettingTrainer<'s, 'a> {
    run: &'s GridRun<'a>,
    features: &'s dyn Features,
    number: usize,
    setting: GridSetting,
}

struct SettingRun {
    trainer: Trainer,
    head: Box<dyn Head>,
    progress: SettingProgress,
    /// The weights of the best epoch, where this process trained it.
    best: Option<Vec<Vec<f32>>>,
    /// When the last checkpoint was written, or the setting opened.
    saved: Instant,
}

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
        run: &GridRun<'_>,
        total: u64,
    ) -> Result<()> {
        let report = trainer.finish(update.pending)?;
        self.sum += report.loss * update.targets as f64;
        self.targets += update.targets as f64;
        let seconds = std::mem::replace(&mut self.last, Instant::now()).elapsed().as_secs_f64();
        run.count_update((report.step, total), update.tokens, seconds, self.mean());
        Ok(())
    }
}

impl<'a> GridRun<'a> {
    /// Trains the open settings; false where it was asked to stop before all were done.
    fn train(&self, features: &[Box<dyn Features>], open: &[usize]) -> Result<bool> {
        let next = AtomicUsize::new(0);
        let train = |features: &dyn Features| -> Result<bool> {
            while let Some(&number) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
                let setting = self.settings[number];
                let trainer = SettingTrainer { run: self, features, number, setting };
                let label = label(number, self.settings.len(), &setting);
                let finished = trainer.train(&label).map_err(|error| error.of_setting(&label));
                if !finished.inspect_err(|_| self.failed.store(true, Ordering::Relaxed))? {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        if self.side_by_side == 1 {
            return train(&*features[0]);
        }
        let ended: Vec<Result<bool>> = std::thread::scope(|scope| {
            let threads = features.iter().take(self.side_by_side);
            let threads: Vec<_> =
                threads.map(|features| scope.spawn(|| train(&**features))).collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
                // A fault of a device is reported by the code that catches it in the thread that asked.
                thread.join().unwrap_or_else(|fault| std::panic::resume_unwind(fault))
            };
            threads.into_iter().map(join).collect()
        });
        ended.into_iter().try_fold(true, |all, finished| Ok(all & finished?))
    }

    /// Adds a setting for each that did not learn, at half the learning rates, and says which of them are open.
    /// Only where a seed has one setting: among several, the best on the development set is taken anyway.
    fn restart_failed(&mut self, read: &[SettingResult]) -> Vec<usize> {
        if self.config.settings().len() > self.config.seeds.len() {
            return Vec::new();
        }
        let first = self.settings.len();
        let failed: Vec<usize> = {
            let progress = self.progress();
            let done = progress.done.iter().filter(|(number, _)| !self.replaced.contains(*number));
            done.filter(|(_, result)| self.did_not_learn(result))
                .map(|(&number, _)| number)
                .collect()
        };
        for number in failed {
            let failed = self.settings[number];
            let (lr, head_lr) = (failed.lr / 2.0, failed.head_lr / 2.0);
            self.observer().note(&format!(
                "{}: no better than the most frequent label; again at half the learning rates",
                label(number, self.settings.len(), &failed),
            ));
            self.replaced.insert(number);
            self.settings.push(GridSetting { lr, head_lr, ..failed });
        }
        let mut done = by_number(&self.settings, read.to_vec());
        let done = done.split_off(&first);
        done.keys().for_each(|&number| remove_checkpoints(self.folder, number));
        let open =
            (first..self.settings.len()).filter(|number| !done.contains_key(number)).collect();
        self.progress().done.extend(done);
        open
    }

    /// Whether a setting ended no better than the most frequent label on the development set, within the noise
    /// of a set of its size.
    fn did_not_learn(&self, result: &SettingResult) -> bool {
        let (dev, labels) = (&self.sets.dev, &self.sets.labels);
        if !definition(self.config.task).is_labelling() {
            return false;
        }
        let majority = dev.score_of_label(labels, self.sets.majority());
        let deviation = (majority * (1.0 - majority) / dev.examples.len().max(1) as f64).sqrt();
        result.dev <= majority + ONE_SIDED_5 * deviation
    }

    fn progress(&self) -> MutexGuard<'_, GridProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn observer(&self) -> MutexGuard<'_, &'a mut (dyn Observer + Send)> {
        self.observer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether to stop: an interrupt, or another setting that failed.
    fn is_stopped(&self) -> bool {
        self.failed.load(Ordering::Relaxed) || self.observer().stop()
    }

    /// Counts and shows an update: of its setting where there is one at a time, else of the grid. Settings
    /// that are trained side by side share the time that passes.
    fn count_update(&self, of_setting: (u64, u64), tokens: u64, seconds: f64, loss: f64) {
        // Held throughout, so that updates are shown in the order in which they are counted.
        let mut observer = self.observer();
        let mut progress = self.progress();
        progress.updates += 1;
        progress.speed.trained += tokens;
        progress.speed.train_seconds += seconds / self.side_by_side as f64;
        let (done, total) = match self.side_by_side {
            1 => of_setting,
            _ => (progress.updates, self.settings.iter().map(|one| self.steps(one)).sum()),
        };
        let speed = progress.speed.train();
        drop(progress);
        observer.step(done, total, &format!("loss {loss:.3}, {speed:.0} tokens/s"));
    }

    /// The updates of a setting, over all epochs.
    fn steps(&self, setting: &GridSetting) -> u64 {
        let batches = self.sets.train.examples.len().div_ceil(setting.batch) as u64;
        u64::from(self.config.epochs) * batches
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

impl SettingTrainer<'_, '_> {
    /// A file of this setting while it is under way.
    fn own_path(&self, name: &str) -> PathBuf {
        checkpoint(self.run.folder, name, self.number)
    }

    /// Trains the setting to its end and scores it. False where it was asked to stop before.
    fn train(&self, label: &str) -> Result<bool> {
        let run = self.run;
        let mut under_way = self.open()?;
        while under_way.progress.epoch < run.config.epochs {
            if !self.epoch(&mut under_way)? {
                return Ok(false);
            }
            let SettingProgress { epoch, best, history } = &under_way.progress;
            let line = history.last().expect("an epoch leaves a line");
            let EpochMetrics { loss, dev, .. } = line;
            run.observer().metrics(&serde_json::to_value(line).expect("metrics are valid JSON"));
            let star = if best.is_some_and(|(at, _)| at == *epoch) { " *" } else { "" };
            let (epochs, unit) = (run.config.epochs, run.config.task.unit());
            run.observer().note(&format!(
                "{label}: epoch {epoch} of {epochs}: loss {loss:.3}, dev {unit} {dev:.4}{star}"
            ));
            if *epoch < epochs && run.is_stopped() {
                // Between two epochs, where nothing is lost.
                self.save(&mut under_way)?;
                return Ok(false);
            }
        }
        self.finish(under_way)?;
        Ok(true)
    }

    /// Puts the setting at its start, or where its checkpoint left it.
    fn open(&self) -> Result<SettingRun> {
        let state = self.own_path(STATE);
        let mut setting = self.start()?;
        if !checkpoints::exists(&state) {
            return Ok(setting);
        }
        let mut warn = |text: &str| self.run.observer().warn(text);
        setting.progress = setting.trainer.resume_newest(&state, &mut warn)?;
        self.check_progress(&state, &setting.progress)?;
        let best = self.own_path(EPOCH);
        let damage = match Archive::open(&best) {
            Err(error) if error.is_damage() || !best.exists() => error,
            sound => return sound.map(|_| setting).map_err(Error::from),
        };
        // The weights of the best epoch are lost, unless they are those of the checkpoint.
        match setting.progress.best {
            Some((epoch, dev)) if epoch == setting.progress.epoch => {
                self.save_weights(&best, setting.trainer.params(), (epoch, dev))?;
                Ok(setting)
            }
            _ => {
                warn(&format!("{damage}\nthe setting is trained again from its start"));
                self.start()
            }
        }
    }

    /// Refuses what is sound but cannot be of this setting.
    fn check_progress(&self, path: &Path, progress: &SettingProgress) -> Result<()> {
        let SettingProgress { epoch, best, history } = progress;
        let within = |(at, _): (u32, f64)| (1..=*epoch).contains(&at);
        let whole = (1..=self.run.config.epochs).contains(epoch)
            && best.is_some_and(within)
            && history.len() == *epoch as usize;
        if whole {
            return Ok(());
        }
        let reason = format!("its progress is not that of {epoch} epochs of this setting");
        Err(ArchiveError::Misfit { path: path.to_owned(), reason }.into())
    }

    fn start(&self) -> Result<SettingRun> {
        let Self { run: GridRun { config, .. }, setting, .. } = self;
        let InitialWeights { params, head, below } =
            self.run.initial(self.features, setting.seed)?;
        let total = self.run.steps(setting);
        let schedule = match config.schedule {
            LrSchedule::Linear => Schedule::Linear { warmup: total / 10, total },
            LrSchedule::Constant => Schedule::Constant,
        };
        let adam = AdamConfig {
            lr: setting.lr,
            schedule,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            weight_decay: config.weight_decay,
            clip: Some(config.clip),
        };
        let of_head: Vec<ParamId> = params.ids().skip(below).collect();
        let group = |id: ParamId| match of_head.contains(&id) {
            true => AdamGroup { lr_scale: setting.head_lr / setting.lr, ..AdamGroup::default() },
            false => AdamGroup::default(),
        };
        let trainer = Trainer::new(&self.metadata(), params, adam, setting.seed, group)?;
        let progress = SettingProgress::default();
        Ok(SettingRun { trainer, head, progress, best: None, saved: Instant::now() })
    }

    fn metadata(&self) -> Value {
        let GridRun { config, sets, .. } = self.run;
        json!({
            "task": config.task, "features": self.features.metadata(),
            "labels": sets.labels, "setting": self.setting,
            "examples": sets.train.examples.len(),
        })
    }

    /// One epoch: training, the score on the development set, and a checkpoint where one is due. False where it
    /// was asked to stop before.
    fn epoch(&self, under_way: &mut SettingRun) -> Result<bool> {
        let Some(loss) = self.train_epoch(under_way)? else { return Ok(false) };
        let SettingRun { trainer, head, progress, best, .. } = under_way;
        let model = TaskModel { features: self.features, head: &**head };
        let (_, score) = self.run.evaluate(model, trainer.params_mut(), &self.run.sets.dev);
        let dev = score.value();
        progress.epoch += 1;
        let epoch = progress.epoch;
        if progress.best.is_none_or(|(_, best)| dev > best) {
            progress.best = Some((epoch, dev));
            let params = trainer.params();
            *best = Some(params.ids().map(|id| params.value(id).to_vec()).collect());
        }
        let (setting, step) = (self.setting, trainer.steps());
        progress.history.push(EpochMetrics { setting, epoch, step, loss, dev, score });
        self.run.write_metrics(self.number, &progress.history)?;
        if under_way.checkpoint_is_due() {
            self.save(under_way)?;
        }
        Ok(true)
    }

    /// Writes a checkpoint: the best epoch's weights, then the state, so that after a kill between the two
    /// epochs are repeated with the same result.
    fn save(&self, under_way: &mut SettingRun) -> Result<()> {
        let SettingRun { trainer, progress, best, saved, .. } = under_way;
        if let (Some(best), Some(scored)) = (best, progress.best) {
            let params = trainer.params();
            let host = Device::cpu(1).expect("a CPU");
            let shaped = params.ids().zip(best.iter());
            let weights: Vec<(String, Tensor)> = shaped
                .map(|(id, elements)| {
                    let (rows, cols) = params.value(id).shape();
                    (params.name(id).to_owned(), host.tensor(rows, cols, elements))
                })
                .collect();
            let weights = weights.iter().map(|(name, value)| (name.clone(), value));
            self.write_weights(&self.own_path(EPOCH), weights, scored)?;
        }
        trainer.save(&self.own_path(STATE), progress)?;
        *saved = Instant::now();
        Ok(())
    }

    /// Trains for one epoch and gives its mean loss; none where it was asked to stop before.
    fn train_epoch(&self, under_way: &mut SettingRun) -> Result<Option<f64>> {
        let Self { run, setting, .. } = self;
        let SettingRun { trainer, head, progress, .. } = under_way;
        let model = TaskModel { features: self.features, head: &**head };
        let train = &run.sets.train;
        let total = run.steps(setting);
        let mut order: Vec<usize> = (0..train.examples.len()).collect();
        let epoch = u64::from(progress.epoch + 1);
        RandomStreams::new(setting.seed, "order of batches").stream(epoch).shuffle(&mut order);
        let mut loss = EpochLoss { sum: 0.0, targets: 0.0, last: Instant::now() };
        // The update that the device is working on while the next one is prepared.
        let mut begun: Option<PendingUpdate> = None;
        for batch in order.chunks(setting.batch) {
            if run.is_stopped() {
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
                loss.finish(trainer, update, run, total)?;
            }
        }
        if let Some(update) = begun {
            loss.finish(trainer, update, run, total)?;
        }
        Ok(Some(loss.mean()))
    }

    fn save_weights(&self, path: &Path, params: &Params, (epoch, dev): (u32, f64)) -> Result<()> {
        let weights = params.ids().map(|id| (params.name(id).to_owned(), params.value(id)));
        self.write_weights(path, weights, (epoch, dev))
    }

    fn write_weights<'t>(
        &self,
        path: &Path,
        weights: impl Iterator<Item = (String, &'t Tensor)>,
        (epoch, dev): (u32, f64),
    ) -> Result<()> {
        let metadata = json!({ "run": self.metadata(), "epoch": epoch, "dev": dev });
        Ok(archive::write(path, weights, &metadata)?)
    }

    /// Scores the best epoch of the setting, and records it as done.
    fn finish(&self, under_way: SettingRun) -> Result<()> {
        let Self { run, setting, number, .. } = *self;
        let SettingRun { mut trainer, head, progress, best, .. } = under_way;
        let (epoch, dev) = progress.best.expect("an epoch was scored");
        let params = trainer.params_mut();
        match best {
            Some(best) => {
                params.iter_mut().zip(&best).for_each(|((_, value, _), best)| value.write(best));
            }
            None => load(&self.own_path(EPOCH), params)?,
        }
        let model = TaskModel { features: self.features, head: &*head };
        let (mut tests, mut without_overlap) = (BTreeMap::new(), BTreeMap::new());
        let mut files = Vec::new();
        for set in &run.sets.tests {
            let (predictions, score) = run.evaluate(model, params, set);
            if let Some(novel) = &set.novel {
                let score = novel.score(&run.sets.labels, &predictions);
                without_overlap.insert(set.name.clone(), score);
            }
            files.push((set, set.labelled.render(&run.sets.labels, &predictions)));
            tests.insert(set.name.clone(), score);
        }
        let (shifted, shifted_files) = shift::score(run.sets, model, params);
        {
            let mut grid = run.progress();
            // Of equals, the one with the lower number, whichever was done first.
            let worse = |(&other, result): (&usize, &SettingResult)| {
                (dev, number_before(number)) > (result.dev, number_before(other))
            };
            let others = grid.done.iter().filter(|(other, _)| !run.replaced.contains(other));
            if others.into_iter().all(worse) {
                run.write_predictions(&files, &shifted_files)?;
                self.save_weights(&run.path(MODEL), params, (epoch, dev))?;
            }
            let history = progress.history;
            let result =
                SettingResult { setting, epoch, dev, tests, without_overlap, shifted, history };
            grid.done.insert(number, result);
            grid.histories.remove(&number);
            write_settings(run.folder, grid.done.values())?;
        }
        remove_checkpoints(run.folder, number);
        Ok(())
    }
}

impl SettingRun {
    /// Whether enough was trained since the last checkpoint to be worth another.
    fn checkpoint_is_due(&self) -> bool {
        // Weights and Adam's two moments, and the weights of the best epoch.
        let bytes = 4.0 * 4.0 * self.trainer.params().count() as f64;
        self.saved.elapsed() >= Duration::from_secs_f64(bytes * SECONDS_PER_SAVED_BYTE)
    }
}

impl GridRun<'_> {
    /// Weights as they are before the first step.
    fn initial(&self, features: &dyn Features, seed: u64) -> Result<InitialWeights> {
        let layers = self.config.train_layers()?;
        let mut params = features.start(seed, layers.as_ref())?;
        let below = params.ids().count();
        let shape = HeadShape {
            seed,
            dim: features.source().dim(),
            labels: &self.sets.labels,
            dropout: self.config.dropout,
            parser: self.config.parser,
        };
        let head = definition(self.config.task).head(&mut params, &shape);
        Ok(InitialWeights { params, head, below })
    }

    /// Evaluates, and takes the time, which settings that are trained side by side share.
    fn evaluate(
        &self,
        model: TaskModel<'_>,
        params: &mut Params,
        set: &LabelledSet,
    ) -> (Vec<Vec<Annotation>>, ScoreResult) {
        let start = Instant::now();
        let result = model.evaluate(params, set, &self.sets.labels);
        let speed = &mut self.progress().speed;
        speed.evaluated += tokens(set.examples.iter());
        speed.evaluate_seconds += start.elapsed().as_secs_f64() / self.side_by_side as f64;
        result
    }

    /// Writes the lines of all settings that are done or under way, in the order of the grid.
    fn write_metrics(&self, number: usize, history: &[EpochMetrics]) -> Result<()> {
        let mut progress = self.progress();
        progress.histories.insert(number, history.to_vec());
        let done = progress.done.iter().map(|(number, setting)| (number, &setting.history));
        let lines: BTreeMap<&usize, &Vec<EpochMetrics>> = done.chain(&progress.histories).collect();
        let line = |metrics: &EpochMetrics| {
            serde_json::to_string(metrics).expect("metrics are valid JSON") + "\n"
        };
        let lines: String = lines.into_values().flatten().map(line).collect();
        Ok(files::write(&self.path(METRICS), lines)?)
    }

    fn write_predictions(
        &self,
        plain: &PredictedFiles<'_>,
        shifted: &PredictedFiles<'_>,
    ) -> Result<()> {
        let mut written = Vec::new();
        let mut each = |predicted: &PredictedFiles<'_>, how: &str| {
            predicted.iter().for_each(|(set, text)| {
                let file = set.labelled.path().file_name().unwrap_or_default().to_string_lossy();
                // What is written is not compressed, whatever was read.
                let file = text::plain_name(&file);
                let language = set.name.split(':').next().unwrap_or(&set.name);
                written.push((format!("{language}.{how}{file}"), text.clone()));
            })
        };
        each(plain, "");
        each(shifted, "shifted.");
        Ok(files::write_recorded(&self.path(PREDICTIONS), &written)?)
    }

    fn result(&self, features: &dyn Features, finished: bool) -> Result<TransferResult> {
        let (speed, settings) = {
            let progress = self.progress();
            (progress.speed, progress.done.clone())
        };
        // A setting that was replaced is shown, and counts for nothing.
        let counted = settings.iter().filter(|(number, _)| !self.replaced.contains(number));
        let counted: Vec<SettingResult> = counted.map(|(_, result)| result.clone()).collect();
        let (done, task) = (&counted[..], self.config.task);
        let params = self.initial(features, 0)?.params;
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
            source: self.config.train.language.clone(),
            measure: task.measure().to_owned(),
            finished,
            best: best.map(|setting| setting.setting),
            dev: mean_of_best(done, |setting| setting.dev),
            results: self.test_results(done),
            scores,
            shift: best.and_then(|best| ShiftResult::new(self.config, done, best)),
            settings: settings.values().map(without_history).collect(),
            sets: self.sets.all().map(|set| (set.name.clone(), set.metadata.clone())).collect(),
            parameters: trained.map(|id| params.value(id).len()).sum(),
            reinit_layers: match &self.config.features {
                FeaturesConfig::Encoder { reinit_layers, .. } => reinit_layers.clone(),
                _ => None,
            },
            speed,
            padding: 0.0,
        })
    }

    /// The result on every test set, with the baselines that it is to be compared with.
    fn test_results(&self, done: &[SettingResult]) -> Vec<TestResult> {
        let (task, labels) = (definition(self.config.task), &self.sets.labels);
        let majority = task.is_labelling().then(|| self.sets.majority());
        let result = |set: &LabelledSet| {
            let score = mean_of_best(done, |setting| setting.tests[&set.name].value())?;
            let majority = majority.map(|label| set.score_of_label(labels, label));
            Some(TestResult {
                name: set.name.clone(),
                score,
                chance: task.chance(labels),
                majority,
                overlap: set.overlap.trained,
                dev_overlap: set.overlap.chosen,
                without_overlap: set.novel.as_ref().and_then(|_| {
                    mean_of_best(done, |setting| setting.without_overlap[&set.name].value())
                }),
            })
        };
        self.sets.tests.iter().filter_map(result).collect()
    }
}

fn load(path: &Path, params: &mut Params) -> Result<()> {
    let names: Vec<String> = params.ids().map(|id| params.name(id).to_owned()).collect();
    let values = params.iter_mut().map(|(_, value, _)| value);
    Ok(Archive::open(path)?.load(names.into_iter().zip(values).collect())?)
}

/// Orders settings so that the first one is the greatest.
fn number_before(number: usize) -> std::cmp::Reverse<usize> {
    std::cmp::Reverse(number)
}

fn tokens<'a>(examples: impl Iterator<Item = &'a Example>) -> u64 {
    examples.map(|example| example.tokens.len() as u64).sum()
}
