//! The beginning of a run, update by update: for laying its curve beside that of another program or of
//! another device.

use std::path::Path;

use encoder::{Batch, Encoder, Masked};
use tensor::{Device, Params};

use super::data::{Data, Feed};
use super::run::begin_update;
use super::{PretrainConfig, PretrainError, read};
use crate::adam::Group;
use crate::trainer::{Report, TrainError, Trainer};

/// The weights of a run before its first update, and its batches from the first on. Nothing of what is
/// learned here is kept.
pub struct Beginning {
    /// What was decided for the run.
    pub config: PretrainConfig,
    /// The encoder.
    pub model: Encoder,
    /// Its weights.
    pub trainer: Trainer,
    data: Data,
    feed: Feed,
}

impl Beginning {
    /// Goes back to the beginning of the run in `folder`, whose vocabulary and corpora are there.
    pub fn open(folder: &Path, device: &Device) -> Result<Self, PretrainError> {
        let config = read(folder)?;
        let lock = files::lock(folder)?;
        let data = Data::prepare(&config, folder, &mut |_| {})?;
        // Freed by name: a child that another thread is starting has its own hold of the file until it runs.
        let _ = lock.unlock();
        let mut params = Params::new(device);
        let model = Encoder::new(data.encoder_config(&config), &mut params, config.seed)?;
        let adam = config.adam.clone();
        let trainer =
            Trainer::new(model.config(), params, adam, config.seed, |_| Group::default())?;
        let feed = data.feed(0);
        Ok(Self { config, model, trainer, data, feed })
    }

    /// The batches of the next update.
    pub fn next_batches(&mut self) -> Vec<(Batch, Masked)> {
        self.feed.next_step(&self.data)
    }

    /// Makes an update from batches.
    pub fn update(&mut self, pieces: &[(Batch, Masked)]) -> Result<Report, TrainError> {
        let pending = begin_update(&mut self.trainer, &self.model, pieces);
        self.trainer.finish(pending)
    }
}
