//! One step after another.

use std::collections::BTreeSet;
use std::path::Path;

use encoder::ConfigError;
use encoder::archive::{self, Archive, ArchiveError};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tensor::{DeferredRead, Mode, ParamId, Params, Tape, Tensor};

use crate::adam::{Adam, AdamConfig, Group, Moments, Updated};

/// Why training cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// The settings make no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The loss or the gradient is no number any more. The weights are those of the step before.
    #[error(
        "step {step}: the {what} is {value}; the weights are still those of step {}. Try a lower \
         rate, a longer warm-up, a smaller clip, or norm = \"pre\", from the last checkpoint", step - 1
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
    #[error(
        "the checkpoint was made with {key} = {found}, this run has {wanted}; resume with the same settings"
    )]
    OtherRun {
        /// What differs.
        key: &'static str,
        /// In the checkpoint.
        found: String,
        /// Here.
        wanted: String,
    },
}

/// What a step did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The number of the step, counted from 1.
    pub step: u64,
    /// The mean loss over all targets.
    pub loss: f64,
    /// The share of targets that were guessed right.
    pub accuracy: f64,
    /// The norm of the gradients before clipping.
    pub norm: f32,
    /// The full rate of learning at this step.
    pub rate: f64,
    /// The sum of the losses of each piece.
    pub piece_losses: Vec<f64>,
}

/// A step that was begun.
pub struct Pending {
    step: u64,
    targets: usize,
    updated: Updated,
    /// The score of each piece, and the norm of the gradients.
    told: DeferredRead,
}

/// What a checkpoint says besides weights and running means.
#[derive(Serialize, Deserialize)]
struct Facts<T> {
    step: u64,
    seed: u64,
    adam: AdamConfig,
    /// What the weights are of.
    model: serde_json::Value,
    /// How often each weight matrix was updated, and its group; none where it is frozen.
    updates: Vec<Option<(u64, Group)>>,
    /// Whatever the caller needs to go on: its configuration, its place in the data.
    rest: T,
}

/// Weights that learn.
pub struct Trainer {
    params: Params,
    adam: Adam,
    /// What the weights are of, as checkpoints say it.
    model: serde_json::Value,
    seed: u64,
    step: u64,
    /// Whether steps are of one shape and large.
    same_shape: bool,
}

impl Trainer {
    /// Begins at step 0 with these weights. What is frozen must be frozen before. `model` says what
    /// the weights are of (its configuration): a checkpoint of anything else is refused.
    pub fn new(
        model: &impl Serialize,
        params: Params,
        config: AdamConfig,
        seed: u64,
        group: impl Fn(ParamId) -> Group,
    ) -> Result<Self, TrainError> {
        let adam = Adam::new(config, &params, group)?;
        let model = serde_json::to_value(model).expect("a configuration is valid JSON");
        Ok(Self { params, adam, model, seed, step: 0, same_shape: false })
    }

    /// Says that steps are of one shape, or nearly so, and so large that a device is busier than whoever
    /// asks it: see [`tensor::kernels::Kernels::as_one`].
    pub fn expect_same_shape(&mut self) {
        self.same_shape = true;
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

    /// One step over all `pieces`, whose gradients are added up. `loss` runs one piece and returns
    /// its score: the sum of its losses and how many targets were right. `targets` counts the
    /// targets of all pieces; whoever computes the losses weighs their gradients by one over it.
    pub fn step<P: Sync>(
        &mut self,
        pieces: &[P],
        targets: usize,
        loss: impl Fn(&mut Tape<'_>, &P) -> Tensor + Sync,
    ) -> Result<Report, TrainError> {
        let pending = self.begin(pieces, targets, loss);
        self.finish(pending)
    }

    /// Asks for a step as [`Trainer::step`] does, without waiting for the device. Whoever asks for the
    /// next one before finishing this one keeps the device busy.
    pub fn begin<P: Sync>(
        &mut self,
        pieces: &[P],
        targets: usize,
        loss: impl Fn(&mut Tape<'_>, &P) -> Tensor + Sync,
    ) -> Pending {
        let device = self.params.device().clone();
        device.run(|| self.begin_here(pieces, targets, &loss))
    }

    fn begin_here<P>(
        &mut self,
        pieces: &[P],
        targets: usize,
        loss: impl Fn(&mut Tape<'_>, &P) -> Tensor,
    ) -> Pending {
        self.step += 1;
        let device = self.params.device().clone();
        let (mut done, same_shape) = (None, self.same_shape);
        let mut work = || done = Some(self.work(pieces, &loss));
        if same_shape {
            device.kernels().as_one(&mut work)
        } else {
            work()
        }
        let (scores, updated) = done.expect("the device does the work once");
        let told: Vec<&Tensor> = scores.iter().chain([self.adam.norm()]).collect();
        let told = device.kernels().read_later(&told);
        Pending { step: self.step, targets, updated, told }
    }

    /// Gradients of all pieces, and the update; returns the scores.
    fn work<P>(
        &mut self,
        pieces: &[P],
        loss: impl Fn(&mut Tape<'_>, &P) -> Tensor,
    ) -> (Vec<Tensor>, Updated) {
        self.params.clear_grads();
        let mut scores = Vec::with_capacity(pieces.len());
        for (number, piece) in pieces.iter().enumerate() {
            let piece_number = u16::try_from(number).expect("fewer than 65,536 pieces a step");
            let mode =
                Mode::Train { seed: self.seed, step: self.step as u32, micro_batch: piece_number };
            let mut tape = Tape::new(&mut self.params, mode);
            scores.push(loss(&mut tape, piece));
            tape.backward();
        }
        (scores, self.adam.update(&mut self.params, self.step))
    }

    /// Waits for a step, in the order in which steps were begun. Where it failed, the weights are those
    /// of the step before, whatever was begun since; to go on from there, finish that too (it fails
    /// likewise).
    pub fn finish(&mut self, pending: Pending) -> Result<Report, TrainError> {
        let Pending { step, targets, updated, told } = pending;
        let told = told.read();
        let (norm, scores) = told.split_last().expect("the norm at least");
        let losses = || scores.iter().step_by(2);
        // Gradients of a loss that is no number are none, so the weights are as they were.
        let loss = losses().map(|loss| ("loss", *loss));
        let failed = loss.chain([("norm of the gradient", *norm)]).find(|(_, x)| !x.is_finite());
        if let Some((what, value)) = failed {
            self.adam.undo(&updated);
            self.step = self.step.min(step - 1);
            return Err(TrainError::Diverged { step, what, value });
        }
        let count = targets.max(1) as f64;
        let piece_losses: Vec<f64> = losses().map(|&loss| f64::from(loss)).collect();
        let right: f64 = scores.iter().skip(1).step_by(2).map(|&right| f64::from(right)).sum();
        let (loss, rate) = (piece_losses.iter().sum::<f64>() / count, self.adam.rate(step));
        Ok(Report { step, loss, accuracy: right / count, norm: *norm, rate, piece_losses })
    }

    /// Writes everything that the run needs to go on exactly, with whatever the caller adds.
    pub fn save(&self, path: &Path, rest: &impl Serialize) -> Result<(), TrainError> {
        let name = |id: ParamId| self.params.name(id);
        let weights =
            self.params.ids().map(|id| (format!("weights/{}", name(id)), self.params.value(id)));
        let moments = self.params.ids().zip(&self.adam.moments).filter_map(|(id, moments)| {
            let moments = moments.as_ref()?;
            Some([
                (format!("mean/{}", name(id)), &moments.mean),
                (format!("square/{}", name(id)), &moments.square),
            ])
        });
        let adam = self.adam.config().clone();
        let updates = |moments: &Option<Moments>| {
            moments.as_ref().map(|moments| (moments.updates, moments.group))
        };
        let updates = self.adam.moments.iter().map(updates).collect();
        let model = self.model.clone();
        let facts = Facts { step: self.step, seed: self.seed, model, adam, updates, rest };
        archive::write(path, weights.chain(moments.flatten()), &facts)?;
        Ok(())
    }

    /// Puts the run where a checkpoint left it, and returns what the caller had added. Nothing has
    /// changed where the checkpoint is unsound or of another run.
    pub fn resume<T: DeserializeOwned>(&mut self, path: &Path) -> Result<T, TrainError> {
        let archive = Archive::open(path)?;
        let facts: Facts<T> = archive.metadata()?;
        let (adam, config) = (&facts.adam, self.adam.config());
        if facts.seed != self.seed {
            return Err(other("seed", facts.seed, self.seed));
        }
        if facts.model != self.model {
            let (found, wanted) = difference(&facts.model, &self.model);
            return Err(other("model", found, wanted));
        }
        for (moments, updates) in self.adam.moments.iter().zip(&facts.updates) {
            let (here, there) =
                (moments.as_ref().map(|m| m.group), updates.map(|(_, group)| group));
            if here != there {
                return Err(other("rate of a group", format!("{there:?}"), format!("{here:?}")));
            }
        }
        if adam != config {
            let text = |config| serde_json::to_string(config).expect("settings are valid JSON");
            return Err(other("optimiser", text(adam), text(config)));
        }
        let names: Vec<String> =
            self.params.ids().map(|id| self.params.name(id).to_owned()).collect();
        let mut targets = Vec::new();
        let weights = self.params.iter_mut().zip(&mut self.adam.moments).zip(&names);
        for (((_, value, _), moments), name) in weights {
            targets.push((format!("weights/{name}"), value));
            if let Some(moments) = moments {
                targets.push((format!("mean/{name}"), &mut moments.mean));
                targets.push((format!("square/{name}"), &mut moments.square));
            }
        }
        archive.load(targets)?;
        self.step = facts.step;
        for (moments, updates) in self.adam.moments.iter_mut().zip(facts.updates) {
            if let (Some(moments), Some((updates, _))) = (moments, updates) {
                moments.updates = updates;
            }
        }
        Ok(facts.rest)
    }
}

/// The keys in which two descriptions differ, on either side.
fn difference(found: &serde_json::Value, wanted: &serde_json::Value) -> (String, String) {
    let (Some(a), Some(b)) = (found.as_object(), wanted.as_object()) else {
        return (found.to_string(), wanted.to_string());
    };
    let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let differing = keys.into_iter().filter(|key| a.get(*key) != b.get(*key));
    let say = |key: &&String, value: Option<&serde_json::Value>| {
        format!("{key} {}", value.unwrap_or(&serde_json::Value::Null))
    };
    let both: (Vec<_>, Vec<_>) =
        differing.map(|key| (say(&key, a.get(key)), say(&key, b.get(key)))).unzip();
    (both.0.join(", "), both.1.join(", "))
}

fn other(key: &'static str, found: impl ToString, wanted: impl ToString) -> TrainError {
    TrainError::OtherRun { key, found: found.to_string(), wanted: wanted.to_string() }
}
