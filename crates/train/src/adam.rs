//! Adam with decoupled weight decay and clipping by the norm of all gradients.

use encoder::ConfigError;
use serde::{Deserialize, Serialize};
use tensor::kernels::{AdamSlot, AdamStep};
use tensor::{ParamId, Params, Tensor};

use crate::schedule::Schedule;

/// How weights are updated. The defaults are those of the papers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdamConfig {
    /// The full rate of learning.
    pub rate: f64,
    /// How it changes with the step.
    pub schedule: Schedule,
    /// Decay of the running mean of gradients.
    pub beta1: f32,
    /// Decay of the running mean of their squares.
    pub beta2: f32,
    /// What keeps the division finite.
    pub epsilon: f32,
    /// Decoupled weight decay.
    pub weight_decay: f32,
    /// The largest norm that all gradients together may have; none for no clipping.
    pub clip: Option<f32>,
}

impl Default for AdamConfig {
    fn default() -> Self {
        Self {
            rate: 1e-4,
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
        if !(self.rate > 0.0 && self.rate.is_finite()) {
            return refuse("rate", format!("{} is not a positive number", self.rate));
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

/// How some of the weights differ from the rest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// What the rate of learning is multiplied by.
    pub rate: f64,
    /// What weight decay is multiplied by.
    pub decay: f32,
}

impl Default for Group {
    fn default() -> Self {
        Self { rate: 1.0, decay: 1.0 }
    }
}

/// The running means of one weight matrix.
pub(crate) struct Moments {
    pub(crate) mean: Tensor,
    pub(crate) square: Tensor,
    /// How often the matrix was updated: a part of one language only when that language comes by.
    pub(crate) updates: u64,
    pub(crate) group: Group,
}

/// The state of the optimiser.
pub struct Adam {
    config: AdamConfig,
    /// By the number of the weight matrix; none where it is frozen.
    pub(crate) moments: Vec<Option<Moments>>,
    norm: Tensor,
}

impl Adam {
    /// Begins with running means of zero for every weight that learns.
    pub fn new(
        config: AdamConfig,
        params: &Params,
        group: impl Fn(ParamId) -> Group,
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

    /// The rate of learning at a step.
    pub fn rate(&self, step: u64) -> f64 {
        self.config.rate * self.config.schedule.factor(step)
    }

    /// Step number `step`, counted from 1: updates every weight that a gradient has reached, and says
    /// which those were. The device may run behind; [`Adam::norm`] is then the norm of the gradients
    /// before clipping, and where that is not finite, nothing has changed, nor does anything until
    /// [`Adam::undo`].
    ///
    /// # Panics
    /// Where a gradient has reached a weight that was frozen when the optimiser was made.
    pub fn update(&mut self, params: &mut Params, step: u64) -> Updated {
        let rate = self.rate(step);
        let device = params.device().clone();
        let weights = params.iter_mut().zip(&mut self.moments);
        let mut slots: Vec<AdamSlot<'_>> = weights
            .filter_map(|((_, value, grad), moments)| {
                let grad = grad?;
                let moments = moments.as_mut().expect("what learns was not frozen at the start");
                let Moments { mean, square, updates, group } = moments;
                let lr = (rate * group.rate) as f32;
                let decay = self.config.weight_decay * group.decay;
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
        Updated(updated)
    }

    /// The norm of the gradients of the last update, before clipping.
    pub fn norm(&self) -> &Tensor {
        &self.norm
    }

    /// Forgets an update that changed nothing, and lets later ones change something again.
    pub fn undo(&mut self, updated: &Updated) {
        for &number in &updated.0 {
            let moments = self.moments[number].as_mut().expect("it was updated");
            moments.updates -= 1;
        }
        self.norm.write(&[0.0]);
    }
}

/// Which weight matrices an update reached, by their numbers.
pub struct Updated(Vec<usize>);

#[cfg(test)]
mod tests {
    use super::*;
    use tensor::Device;

    #[test]
    fn nonsense_is_refused_with_its_key() {
        let refused = |change: fn(&mut AdamConfig)| {
            let mut config = AdamConfig::default();
            config.check().expect("sound before the change");
            change(&mut config);
            config.check().unwrap_err().key
        };
        assert_eq!(refused(|c| c.rate = 0.0), "rate");
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
    fn frozen_weights_have_no_state() {
        let mut params = Params::new(&Device::cpu(1).unwrap());
        let device = params.device().clone();
        let learns = params.add("learns", device.zeros(2, 2));
        let frozen = params.add("frozen", device.zeros(2, 2));
        params.set_trainable(frozen, false);
        let adam = Adam::new(AdamConfig::default(), &params, |_| Group::default()).unwrap();
        let states: Vec<bool> = adam.moments.iter().map(Option::is_some).collect();
        assert_eq!(states, [true, false]);
        assert!(params.trainable(learns));
    }
}
