//! The training step: gradients accumulated over micro-batches, one update, and checkpoints from which
//! a run resumes to the bit.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use encoder::ConfigError;
use encoder::archive::{self, Archive, ArchiveError};
use ranks::{RankError, Ranks};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tensor::{DeferredRead, Mode, ParamId, Params, Tape, Tensor};
use terms::Fault;

use crate::adam::{Adam, AdamConfig, AdamGroup, AdamProgress, UpdatedParams};
use crate::schedule::Schedule;
use crate::shared::{BUCKET, SharedTraining};

/// Why training cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// The settings make no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The loss or the gradient is not finite any more. The weights are those of the step before.
    #[error(
        "diverged at step {step}: the {what} is {value}; the weights are still those of step {}. Try a lower \
         learning rate, a longer warm-up, a smaller clip, or norm = \"pre\"", step.saturating_sub(1)
    )]
    Diverged {
        /// The step that failed.
        step: u64,
        /// Loss or norm of the gradient.
        what: &'static str,
        /// NaN or infinite.
        value: f32,
    },
    /// A checkpoint could not be written or read.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A checkpoint is of a run with other settings.
    #[error("{0}; resume with the same settings")]
    OtherRun(String),
    /// The ranks that train together cannot go on.
    #[error(transparent)]
    Ranks(#[from] RankError),
}

impl TrainError {
    /// Whether a checkpoint is not what was once written, so that an older one may take its place.
    pub fn is_damage(&self) -> bool {
        matches!(self, TrainError::Archive(error) if error.is_damage())
    }
}

impl Fault for TrainError {
    fn is_usage(&self) -> bool {
        matches!(self, TrainError::Config(_))
    }

    fn key(&self) -> Option<&str> {
        match self {
            TrainError::Config(error) => Some(&error.key),
            TrainError::Diverged { .. } => Some("adam.lr"),
            _ => None,
        }
    }
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepReport {
    /// The number of the step, counted from 1.
    pub step: u64,
    /// The mean loss over all targets.
    pub loss: f64,
    /// The share of targets that were predicted correctly.
    pub accuracy: f64,
    /// The global norm of the gradients before clipping.
    pub norm: f32,
    /// The learning rate of this step.
    pub lr: f64,
    /// The summed loss of each micro-batch.
    pub micro_batch_losses: Vec<f64>,
}

/// A step that the device is still working on.
pub struct PendingStep {
    step: u64,
    targets: usize,
    lr: f64,
    updated: UpdatedParams,
    /// For each micro-batch its summed loss and correct predictions; last, the norm of the gradients.
    scores: DeferredRead,
    /// Why gradients could not be added up over ranks; then nothing was updated.
    failed: Option<RankError>,
}

/// What a checkpoint holds besides weights and the optimiser's state.
#[derive(Serialize, Deserialize)]
struct CheckpointMetadata<T> {
    step: u64,
    seed: u64,
    adam: AdamConfig,
    model: serde_json::Value,
    progress: AdamProgress,
    /// What the caller needs to go on: its configuration, its position in the data.
    caller: T,
}

/// Weights under training.
pub struct Trainer {
    params: Params,
    adam: Adam,
    /// The configuration of the model, as checkpoints record it.
    model: serde_json::Value,
    seed: u64,
    step: u64,
    /// Whether steps are of one shape and large.
    same_shape: bool,
    /// The ranks that train together, where there are several.
    shared: Option<SharedTraining>,
}

impl Trainer {
    /// Begins at step 0 with these weights. What is frozen must be frozen before. `model` is the
    /// configuration of what the weights are of: a checkpoint of anything else is refused.
    pub fn new(
        model: &impl Serialize,
        params: Params,
        config: AdamConfig,
        seed: u64,
        group: impl Fn(ParamId) -> AdamGroup,
    ) -> Result<Self, TrainError> {
        let adam = Adam::new(config, &params, group)?;
        let model = serde_json::to_value(model).expect("a configuration is valid JSON");
        Ok(Self { params, adam, model, seed, step: 0, same_shape: false, shared: None })
    }

    /// Declares that steps are of one shape, or nearly so, and so large that the device is the
    /// bottleneck: see [`tensor::kernels::Kernels::as_one`].
    pub fn expect_same_shape(&mut self) {
        self.same_shape = true;
    }

    /// From now on every step is shared with other ranks, which have the same weights and make the same calls: each is given
    /// its own micro-batches, and receives the report of all.
    pub fn share(&mut self, ranks: Arc<Ranks>) {
        self.shared = Some(SharedTraining::new(ranks, &self.params, BUCKET));
    }

    /// Replaces the schedule, from the next step on: a run that is extended decays more slowly.
    pub fn set_schedule(&mut self, schedule: Schedule) {
        self.adam.set_schedule(schedule);
    }

    /// How many steps were done.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// The weights.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The weights, to evaluate with.
    pub fn params_mut(&mut self) -> &mut Params {
        &mut self.params
    }

    /// A digest of the weights, by which ranks see that they have the same.
    pub(crate) fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for id in self.params.ids() {
            hasher.update(bytemuck::cast_slice(&self.params.value(id).elements()));
        }
        hasher.finalize().to_hex().to_string()
    }

    /// One step over all micro-batches, whose gradients are added up. `loss` runs one micro-batch and
    /// returns its score: the sum of its losses and the number of correct predictions. `targets` counts
    /// the targets of all micro-batches; `loss` weights its gradients by one over it.
    pub fn step<P: Sync>(
        &mut self,
        micro_batches: &[P],
        targets: usize,
        loss: impl Fn(&mut Tape<'_>, &P) -> Tensor + Sync,
    ) -> Result<StepReport, TrainError> {
        let pending = self.begin(micro_batches, targets, loss);
        self.finish(pending)
    }

    /// Submits a step as [`Trainer::step`] does, without waiting for the device. Submitting the next
    /// step before finishing this one keeps the device busy.
    pub fn begin<P: Sync>(
        &mut self,
        micro_batches: &[P],
        targets: usize,
        loss: impl Fn(&mut Tape<'_>, &P) -> Tensor + Sync,
    ) -> PendingStep {
        let device = self.params.device().clone();
        device.run(|| self.begin_here(micro_batches, targets, &loss))
    }

    /// How many micro-batches a step has, where each rank is given so many.
    fn in_all(&self, micro_batches: usize) -> usize {
        micro_batches * self.shared.as_ref().map_or(1, |shared| shared.ranks().count())
    }

    fn begin_here<P>(
        &mut self,
        micro_batches: &[P],
        targets: usize,
        loss: impl Fn(&mut Tape<'_>, &P) -> Tensor,
    ) -> PendingStep {
        self.step += 1;
        let device = self.params.device().clone();
        let (mut done, same_shape) = (None, self.same_shape);
        let mut work = || done = Some(self.work(micro_batches, &loss));
        if same_shape {
            device.kernels().as_one(&mut work)
        } else {
            work()
        }
        let done = done.expect("the device does the work once");
        let (scores, updated, failed) = match done {
            Ok((scores, updated)) => (scores, updated, None),
            Err(error) => (Vec::new(), UpdatedParams::default(), Some(error)),
        };
        let scores: Vec<&Tensor> = scores.iter().chain([self.adam.norm()]).collect();
        let scores = device.kernels().read_later(&scores);
        let lr = self.adam.lr(self.step);
        PendingStep { step: self.step, targets, lr, updated, scores, failed }
    }

    /// Gradients of all micro-batches, and the update; returns the scores.
    fn work<P>(
        &mut self,
        micro_batches: &[P],
        loss: impl Fn(&mut Tape<'_>, &P) -> Tensor,
    ) -> Result<(Vec<Tensor>, UpdatedParams), RankError> {
        let in_all = self.in_all(micro_batches.len());
        self.params.clear_grads();
        let mut scores = Vec::with_capacity(in_all);
        let (rank, ranks) = match &self.shared {
            Some(shared) => (shared.ranks().rank(), shared.ranks().count()),
            None => (0, 1),
        };
        let mut sums = self.shared.as_ref().map(SharedTraining::begin);
        for (own, micro_batch) in micro_batches.iter().enumerate() {
            let number = u16::try_from(rank + own * ranks);
            let micro_batch_number = number.expect("fewer than 65,536 micro-batches a step");
            let (seed, step) = (self.seed, self.step as u32);
            let mode = Mode::Train { seed, step, micro_batch: micro_batch_number };
            let mut tape = Tape::new(&mut self.params, mode);
            scores.push(loss(&mut tape, micro_batch));
            match &mut sums {
                Some(sums) if own + 1 == micro_batches.len() => {
                    tape.backward_with(&mut |params, id| sums.complete(params, id));
                }
                _ => tape.backward(),
            }
        }
        if let Some(sums) = sums {
            scores = sums.finish(&mut self.params, scores, in_all)?;
        }
        self.params.clear_frozen_grads();
        let updated = self.adam.update(&mut self.params, self.step);
        Ok((scores, updated))
    }

    /// Waits for a step, in the order in which steps were begun. Where it failed, the weights are those
    /// of the step before, whatever was begun since; to go on from there, finish that too (it fails
    /// likewise).
    pub fn finish(&mut self, pending: PendingStep) -> Result<StepReport, TrainError> {
        let PendingStep { step, targets, lr, updated, scores, failed } = pending;
        if let Some(error) = failed {
            self.step = self.step.min(step - 1);
            return Err(error.into());
        }
        let scores = scores.read();
        let (norm, scores) = scores.split_last().expect("the norm at least");
        let losses = || scores.iter().step_by(2);
        // A loss that is not finite has gradients that are not either, so the weights are unchanged.
        let loss = losses().map(|loss| ("loss", *loss));
        let failed = loss.chain([("norm of the gradient", *norm)]).find(|(_, x)| !x.is_finite());
        if let Some((what, value)) = failed {
            self.adam.undo(&updated);
            self.step = self.step.min(step - 1);
            return Err(TrainError::Diverged { step, what, value });
        }
        let count = targets.max(1) as f64;
        let micro_batch_losses: Vec<f64> = losses().map(|&loss| f64::from(loss)).collect();
        let correct: f64 = scores.iter().skip(1).step_by(2).map(|&x| f64::from(x)).sum();
        let loss = micro_batch_losses.iter().sum::<f64>() / count;
        let accuracy = correct / count;
        Ok(StepReport { step, loss, accuracy, norm: *norm, lr, micro_batch_losses })
    }

    /// Writes everything that the run needs to go on exactly, with whatever the caller adds. The checkpoint
    /// that stood there is kept beside it.
    pub fn save(&self, path: &Path, caller: &impl Serialize) -> Result<(), TrainError> {
        let weights =
            self.params.ids().map(|id| (weight_name(self.params.name(id)), self.params.value(id)));
        let metadata = CheckpointMetadata {
            step: self.step,
            seed: self.seed,
            adam: self.adam.config().clone(),
            model: self.model.clone(),
            progress: self.adam.progress(),
            caller,
        };
        let state = weights.chain(self.adam.state(&self.params));
        Ok(archive::write_checkpoint(path, state, &metadata)?)
    }

    /// Puts the run where its newest sound checkpoint left it: the one before, where the newest does not verify
    /// ([`files::checkpoints`]). `note` receives what happened then.
    pub fn resume_newest<T: DeserializeOwned>(
        &mut self,
        path: &Path,
        note: &mut dyn FnMut(&str),
    ) -> Result<T, TrainError> {
        files::checkpoints::read(path, |path| self.resume(path), TrainError::is_damage, note)
    }

    /// Puts the run where a checkpoint left it, and returns what the caller had added. Nothing has
    /// changed where the checkpoint is damaged or of another run. The schedule is the caller's own: that
    /// of a run that was extended differs from the checkpoint's.
    pub fn resume<T: DeserializeOwned>(&mut self, path: &Path) -> Result<T, TrainError> {
        let archive = Archive::open(path)?;
        let saved: CheckpointMetadata<T> = archive.metadata()?;
        self.refuse_other(&saved)?;
        let names: Vec<String> =
            self.params.ids().map(|id| self.params.name(id).to_owned()).collect();
        let weights = self.params.iter_mut().zip(&names);
        let weights = weights.map(|((_, value, _), name)| (weight_name(name), value));
        archive.load(weights.chain(self.adam.state_mut(&names)).collect())?;
        self.step = saved.step;
        self.adam.set_progress(&saved.progress);
        Ok(saved.caller)
    }

    /// Refuses a checkpoint of a run with other settings.
    fn refuse_other<T>(&self, saved: &CheckpointMetadata<T>) -> Result<(), TrainError> {
        if saved.seed != self.seed {
            return Err(other("seed", saved.seed, self.seed));
        }
        if saved.model != self.model {
            let (saved, asked) = difference(&saved.model, &self.model);
            return Err(other("model", saved, asked));
        }
        let (there, here) = (saved.progress.groups(), self.adam.progress().groups());
        if there.len() != here.len() {
            return Err(other("parameters", there.len(), here.len()));
        }
        if let Some((there, here)) = there.iter().zip(&here).find(|(there, here)| there != here) {
            return Err(other("parameter group", format!("{there:?}"), format!("{here:?}")));
        }
        let config = self.adam.config();
        if (AdamConfig { schedule: config.schedule, ..saved.adam.clone() }) != *config {
            let text = |config| serde_json::to_string(config).expect("settings are valid JSON");
            return Err(other("optimiser", text(&saved.adam), text(config)));
        }
        Ok(())
    }
}

/// Whether a file is a checkpoint as it was written. What a caller may do without it depends on this.
pub fn is_sound_checkpoint(path: &Path) -> bool {
    Archive::open(path).is_ok()
}

fn weight_name(parameter: &str) -> String {
    format!("weights/{parameter}")
}

/// The keys in which two configurations differ, on either side.
fn difference(saved: &serde_json::Value, asked: &serde_json::Value) -> (String, String) {
    let (Some(a), Some(b)) = (saved.as_object(), asked.as_object()) else {
        return (saved.to_string(), asked.to_string());
    };
    let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let differing = keys.into_iter().filter(|key| a.get(*key) != b.get(*key));
    let show = |key: &&String, value: Option<&serde_json::Value>| {
        format!("{key} {}", value.unwrap_or(&serde_json::Value::Null))
    };
    let both: (Vec<_>, Vec<_>) =
        differing.map(|key| (show(&key, a.get(key)), show(&key, b.get(key)))).unzip();
    (both.0.join(", "), both.1.join(", "))
}

fn other(key: &str, saved: impl Display, asked: impl Display) -> TrainError {
    let differs = format!("the checkpoint was made with {key} = {saved}, this run has {asked}");
    TrainError::OtherRun(differs)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use encoder::{Batch, Encoder, EncoderConfig, MaskedTokens, VocabularySize};
    use ranks::Placement;
    use tensor::{Device, Spans};

    use super::*;

    const MICRO_BATCHES: usize = 4;

    /// An encoder, and micro-batches of six sequences of different tokens.
    fn setting() -> (Trainer, Encoder, Vec<(Batch, MaskedTokens)>) {
        let config = EncoderConfig {
            vocabulary: VocabularySize::Size(40),
            layers: 2,
            heads: 2,
            dim: 8,
            hidden: 16,
            ..EncoderConfig::default()
        };
        let mut params = Params::new(&Device::cpu(1).unwrap());
        let model = Encoder::new(config, &mut params, 1).unwrap();
        let adam = AdamConfig { lr: 1e-2, schedule: Schedule::Constant, ..AdamConfig::default() };
        let group = |_| AdamGroup::default();
        let trainer = Trainer::new(model.config(), params, adam, 1, group).unwrap();
        let micro_batch = |number: usize| {
            let tokens = (0..24).map(|at| ((at * 7 + number * 5) % 40) as u32).collect();
            let spans = Spans::uniform(6, 4);
            let batch = Batch { language: 0, tokens, spans, segments: None };
            let rows: Vec<u32> = vec![1, 6, 11, 20];
            let targets = (0..4).map(|at| ((at * 11 + number) % 40) as u32).collect();
            (batch, MaskedTokens { rows: rows.into(), targets })
        };
        (trainer, model, (0..MICRO_BATCHES).map(micro_batch).collect())
    }

    /// The reports of ten steps of a rank, or of a process by itself, and the weights after them.
    fn train(ranks: Option<Arc<Ranks>>) -> (Vec<StepReport>, Vec<f32>) {
        let (mut trainer, model, all) = setting();
        let (rank, count) = ranks.as_ref().map_or((0, 1), |ranks| (ranks.rank(), ranks.count()));
        if let Some(ranks) = ranks {
            // Several buckets of a few matrices.
            let shared = SharedTraining::new(ranks, &trainer.params, 200);
            assert!(shared.bucket_count() > 5, "{}", shared.bucket_count());
            trainer.shared = Some(shared);
        }
        let own: Vec<_> = all.iter().skip(rank).step_by(count).collect();
        let step = |_| {
            let loss = |tape: &mut Tape<'_>, (batch, masked): &&(Batch, MaskedTokens)| {
                model.mlm_loss(tape, batch, masked, 1.0 / 16.0)
            };
            trainer.step(&own, 16, loss).unwrap()
        };
        let reports = (0..10).map(step).collect();
        let params = &trainer.params;
        (reports, params.ids().flat_map(|id| params.value(id).to_vec()).collect())
    }

    /// The same of two ranks.
    fn train_on_two() -> [(Vec<StepReport>, Vec<f32>); 2] {
        let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        let host = "127.0.0.1".to_owned();
        let folder = tempfile::tempdir().unwrap();
        let rank = &|rank| {
            let (count, local_rank, local_count) = (2, rank, 2);
            let placement =
                Placement { rank, count, local_rank, local_count, host: host.clone(), port };
            let ranks = Arc::new(Ranks::meet(placement, folder.path(), Box::new(|_| {})).unwrap());
            let result = train(Some(Arc::clone(&ranks)));
            ranks.leave(None);
            result
        };
        thread::scope(|scope| {
            [0, 1].map(|number| scope.spawn(move || rank(number))).map(|rank| rank.join().unwrap())
        })
    }

    #[test]
    fn ranks_have_the_steps_of_one_process() {
        let (alone, weights) = train(None);
        let [first, second] = train_on_two();
        assert!(first == second, "ranks have the same reports and the same weights, to the bit");
        for (together, alone) in first.0.iter().zip(&alone) {
            assert_eq!(together.micro_batch_losses.len(), MICRO_BATCHES);
            assert!((together.loss - alone.loss).abs() < 1e-5, "{together:?} beside {alone:?}");
            assert_eq!(together.accuracy, alone.accuracy);
        }
        let square = |x: f32| f64::from(x) * f64::from(x);
        let apart: f64 = first.1.iter().zip(&weights).map(|(a, b)| square(a - b)).sum();
        let size: f64 = weights.iter().map(|&x| square(x)).sum();
        // The gradient of a key's bias is 0 but for rounding, and Adam makes something of that.
        assert!((apart / size).sqrt() < 1e-4, "{}", (apart / size).sqrt());
    }
}
