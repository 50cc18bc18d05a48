//! Training: the optimiser, learning-rate schedules, the step, checkpoints, and pretraining on top.
//!
//! - [`AdamConfig`] and [`Adam`]: Adam with decoupled weight decay and gradient clipping, with a learning
//!   rate of its own for every [`AdamGroup`].
//! - [`Schedule`]: how the learning rate changes with the step.
//! - [`Trainer`]: gradient accumulation over micro-batches, the update, and a check that loss and gradients
//!   are finite.
//! - [`Trainer::save`] and [`Trainer::resume`]: checkpoints from which a run goes on as if it had never
//!   stopped, to the bit.
//! - [`Trainer::share`]: the same over several processes, each of which computes the gradients of some micro-batches.
//! - [`pretrain`]: from a configuration to a folder with a trained encoder.
//!
//! ```
//! use encoder::{Batch, Encoder, EncoderConfig, MaskedTokens, VocabularySize};
//! use tensor::{Device, Params, Spans};
//! use train::{AdamConfig, AdamGroup, Schedule, Trainer, pretrain::mlm_step};
//!
//! let vocabulary = VocabularySize::Size(50);
//! let config = EncoderConfig { vocabulary, layers: 1, heads: 2, dim: 16, hidden: 32, ..Default::default() };
//! let mut params = Params::new(&Device::cpu(1)?);
//! let model = Encoder::new(config, &mut params, 1)?;
//! let adam = AdamConfig { lr: 1e-2, schedule: Schedule::Constant, ..AdamConfig::default() };
//! let mut trainer = Trainer::new(model.config(), params, adam, 1, |_| AdamGroup::default())?;
//!
//! // One sequence of four tokens; the third, masked as token 0, is to be predicted as token 9.
//! let tokens = [7, 8, 0, 10].into_iter().collect();
//! let batch = Batch { language: 0, tokens, spans: Spans::of_lengths([4]), segments: None };
//! let masked = MaskedTokens { rows: [2].into_iter().collect(), targets: [9].into_iter().collect() };
//! let micro_batches = [(batch, masked)];
//! let mut losses = Vec::new();
//! for _ in 0..10 {
//!     let pending = mlm_step(&mut trainer, &model, &micro_batches);
//!     losses.push(trainer.finish(pending)?.loss);
//! }
//! assert!(losses[9] < losses[0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod adam;
mod events;
pub mod pretrain;
mod schedule;
mod shared;
mod trainer;

pub use crate::adam::{Adam, AdamConfig, AdamGroup, UpdatedParams};
pub use crate::schedule::Schedule;
pub use crate::trainer::{PendingStep, StepReport, TrainError, Trainer, is_sound_checkpoint};
