//! Adam (Kingma & Ba 2015) with decoupled weight decay (Loshchilov & Hutter 2019) and clipping by the
//! global norm of the gradients (Pascanu et al. 2013).
//!
//! What a checkpoint holds of the optimiser, and under which names, is decided here alone
//! ([`Adam::state`], [`AdamProgress`]).

use encoder::ConfigError;
use serde::{Deserialize, Serialize};
use tensor::kernels::{AdamSlot, AdamStep};
use tensor::{ParamId, Params, Tensor};

use crate::schedule::Schedule;

/// How weights are updated. The defaults are those of the papers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdamConfig {
    /// The peak learning rate, which the schedule scales.
    pub lr: f64,
    /// How the learning rate changes with the step.
    pub schedule: Schedule,
    /// Decay of the running mean of gradients.
    pub beta1: f32,
    /// Decay of the running mean of squared gradients.
    pub beta2: f32,
    /// Added to the denominator.
    pub epsilon: f32,
    /// Decoupled weight decay.
    pub weight_decay: f32,
    /// The largest global norm of the gradients; none for no clipping.
    pub clip: Option<f32>,
}

impl Default for AdamConfig {
    fn default() -> Self {
        Self {
            lr: 1e-4,
            schedule: Schedule::InverseSqrt { warmup: 30_000 },
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-6,
            weight_decay: 0.01,
            clip: Some(5.0),
        }
    }
}

impl AdamConfig {
    /// Whether it makes sense; if not, which key does not and why.
    pub fn check(&self) -> Result<(), ConfigError> {
        let refuse = |key: &'static str, reason: String| Err(ConfigError::new(key, reason));
        if !(self.lr > 0.0 && self.lr.is_finite()) {
            return refuse("lr", format!("{} is not a positive number", self.lr));
        }
        for (key, beta) in [("beta1", self.beta1), ("beta2", self.beta2)] {
            if !(0.0..1.0).contains(&beta) {
                return refuse(key, format!("{beta} is not a share from 0 to below 1"));
            }
        }
        if !(self.epsilon > 0.0 && self.epsilon.is_finite()) {
            return refuse("epsilon", format!("{} is not a positive number", self.epsilon));
        }
        if !(self.weight_decay >= 0.0 && self.weight_decay.is_finite()) {
            return refuse("weight_decay", format!("{} is below 0", self.weight_decay));
        }
        if self.clip.is_some_and(|clip| !(clip > 0.0 && clip.is_finite())) {
            let reason = "must be a positive number; leave it out for no clipping";
            return refuse("clip", reason.to_owned());
        }
        self.schedule.check()
    }
}

/// How some of the parameters differ from the rest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdamGroup {
    /// Multiplies the learning rate.
    pub lr_scale: f64,
    /// Multiplies the weight decay.
    pub decay_scale: f32,
}

impl Default for AdamGroup {
    fn default() -> Self {
        Self { lr_scale: 1.0, decay_scale: 1.0 }
    }
}

/// The running means of one weight matrix.
struct Moments {
    mean: Tensor,
    square: Tensor,
    /// Updates of this matrix: weights of one language learn only from batches of that language.
    updates: u64,
    group: AdamGroup,
}

/// What a checkpoint records of the optimiser besides tensors: for each parameter its number of updates
/// and its group; none where it is frozen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AdamProgress(Vec<Option<(u64, AdamGroup)>>);

impl AdamProgress {
    /// The groups alone, which a resumed run must share.
    pub(crate) fn groups(&self) -> Vec<Option<AdamGroup>> {
        self.0.iter().map(|one| one.map(|(_, group)| group)).collect()
    }
}

/// The optimiser and its state.
pub struct Adam {
    config: AdamConfig,
    /// By the number of the parameter; none where it is frozen.
    moments: Vec<Option<Moments>>,
    /// The global norm of the last gradients, 1 x 1.
    norm: Tensor,
}

impl Adam {
    /// Begins with running means of zero for every parameter that learns.
    pub fn new(
        config: AdamConfig,
        params: &Params,
        group: impl Fn(ParamId) -> AdamGroup,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let device = params.device();
        let moments = |id: ParamId| {
            let (rows, cols) = params.value(id).shape();
            params.trainable(id).then(|| Moments {
                mean: device.zeros(rows, cols),
                square: device.zeros(rows, cols),
                updates: 0,
                group: group(id),
            })
        };
        Ok(Self { moments: params.ids().map(moments).collect(), norm: device.zeros(1, 1), config })
    }

    /// How weights are updated.
    pub fn config(&self) -> &AdamConfig {
        &self.config
    }

    /// Replaces the schedule, from the next update on.
    pub fn set_schedule(&mut self, schedule: Schedule) {
        self.config.schedule = schedule;
    }

    /// The learning rate at a step.
    pub fn lr(&self, step: u64) -> f64 {
        self.config.lr * self.config.schedule.factor(step)
    }

    /// Step number `step`, counted from 1: updates every parameter that a gradient has reached, and
    /// returns which those were. The device may run behind; [`Adam::norm`] is then the norm of the
    /// gradients before clipping. Where that is not finite, nothing has changed, nor does anything until
    /// [`Adam::undo`].
    ///
    /// # Panics
    /// Where a gradient has reached a parameter that was frozen when the optimiser was made.
    pub fn update(&mut self, params: &mut Params, step: u64) -> UpdatedParams {
        let lr = self.lr(step);
        let device = params.device().clone();
        let weights = params.iter_mut().zip(&mut self.moments);
        let mut slots: Vec<AdamSlot<'_>> = weights
            .filter_map(|((_, value, grad), moments)| {
                let grad = grad?;
                let moments = moments.as_mut().expect("what learns was not frozen at the start");
                let Moments { mean, square, updates, group } = moments;
                let lr = (lr * group.lr_scale) as f32;
                let decay = self.config.weight_decay * group.decay_scale;
                let number = *updates + 1;
                Some(AdamSlot { value, grad, mean, square, lr, decay, number })
            })
            .collect();
        let step = AdamStep {
            beta1: self.config.beta1,
            beta2: self.config.beta2,
            epsilon: self.config.epsilon,
            clip: self.config.clip.unwrap_or(f32::INFINITY),
        };
        device.kernels().adam(&mut slots, step, &mut self.norm);
        let mut updated = Vec::new();
        for ((number, id), moments) in params.ids().enumerate().zip(&mut self.moments) {
            if let (Some(_), Some(moments)) = (params.grad(id), moments) {
                moments.updates += 1;
                updated.push(number);
            }
        }
        UpdatedParams(updated)
    }

    /// The global norm of the gradients of the last update, before clipping.
    pub fn norm(&self) -> &Tensor {
        &self.norm
    }

    /// Takes back the count of an update that changed nothing, and lets later ones change weights again.
    pub fn undo(&mut self, updated: &UpdatedParams) {
        for &number in &updated.0 {
            let moments = self.moments[number].as_mut().expect("it was updated");
            moments.updates -= 1;
        }
        self.norm.write(&[0.0]);
    }

    /// The tensors of the state, by the names that they have in a checkpoint.
    pub(crate) fn state<'a>(
        &'a self,
        params: &'a Params,
    ) -> impl Iterator<Item = (String, &'a Tensor)> {
        params.ids().zip(&self.moments).flat_map(|(id, moments)| {
            let name = params.name(id);
            moments.iter().flat_map(move |moments| {
                [(mean_name(name), &moments.mean), (square_name(name), &moments.square)]
            })
        })
    }

    /// The same of one parameter, to be overwritten.
    pub(crate) fn state_mut<'a>(
        &'a mut self,
        names: &'a [String],
    ) -> impl Iterator<Item = (String, &'a mut Tensor)> {
        names.iter().zip(&mut self.moments).flat_map(|(name, moments)| {
            moments.iter_mut().flat_map(move |Moments { mean, square, .. }| {
                [(mean_name(name), mean), (square_name(name), square)]
            })
        })
    }

    pub(crate) fn progress(&self) -> AdamProgress {
        let one = |moments: &Option<Moments>| {
            moments.as_ref().map(|moments| (moments.updates, moments.group))
        };
        AdamProgress(self.moments.iter().map(one).collect())
    }

    /// Puts the counts of updates where a checkpoint has them.
    pub(crate) fn set_progress(&mut self, progress: &AdamProgress) {
        for (moments, saved) in self.moments.iter_mut().zip(&progress.0) {
            if let (Some(moments), Some((updates, _))) = (moments, saved) {
                moments.updates = *updates;
            }
        }
    }
}

fn mean_name(parameter: &str) -> String {
    format!("mean/{parameter}")
}

fn square_name(parameter: &str) -> String {
    format!("square/{parameter}")
}

/// The parameters that an update reached, by their numbers.
#[derive(Default)]
pub struct UpdatedParams(Vec<usize>);

#[cfg(test)]
mod tests {
    use super::*;
    use tensor::Device;

    #[test]
    fn invalid_values_are_refused_with_their_key() {
        let refused = |change: fn(&mut AdamConfig)| {
            let mut config = AdamConfig::default();
            config.check().expect("valid before the change");
            change(&mut config);
            config.check().unwrap_err().key
        };
        assert_eq!(refused(|c| c.lr = 0.0), "lr");
        assert_eq!(refused(|c| c.beta2 = 1.0), "beta2");
        assert_eq!(refused(|c| c.epsilon = 0.0), "epsilon");
        assert_eq!(refused(|c| c.weight_decay = f32::NAN), "weight_decay");
        assert_eq!(refused(|c| c.clip = Some(0.0)), "clip");
        assert_eq!(
            refused(|c| c.schedule = Schedule::Linear { warmup: 0, total: 0 }),
            "schedule.total"
        );
    }

    #[test]
    fn frozen_parameters_have_no_state() {
        let mut params = Params::new(&Device::cpu(1).unwrap());
        let device = params.device().clone();
        let learns = params.add("learns", device.zeros(2, 2));
        let frozen = params.add("frozen", device.zeros(2, 2));
        params.set_trainable(frozen, false);
        let adam = Adam::new(AdamConfig::default(), &params, |_| AdamGroup::default()).unwrap();
        let names: Vec<String> = adam.state(&params).map(|(name, _)| name).collect();
        assert_eq!(names, ["mean/learns", "square/learns"]);
        assert!(params.trainable(learns));
    }
}
