//! Pretraining with masked language modelling: from a configuration to a folder with a trained encoder.
//!
//! A run is a folder: `config.toml` (the whole configuration), `vocabulary/`, `corpora/`,
//! `metrics.jsonl` (losses, perplexities, retrieval; the same for the same seed), events for
//! TensorBoard, `added.json` where a model was given a language, `model.safetensors` (the best weights so far) with `config.json` and `tokenizer.json`,
//! `state.safetensors` (the last checkpoint) and `summary.json`; and, at log-spaced updates, the hidden states of
//! parallel sentences in `probes/` ([`ProbeSeries`]) and the weights in `snapshots/`. Files appear whole or not at all, and
//! one process at a time may work in the folder.
//!
//! [`RunRequest`] becomes a [`PretrainConfig`], [`begin`] and [`resume`] run it, and the result is a
//! [`PretrainSummary`]. [`RunData`] and [`mlm_step`] are the parts of the loop, for loops of one's own.

mod config;
mod data;
mod evaluate;
mod init;
mod log;
mod parallel;
mod preparation;
mod presets;
mod probes;
mod request;
mod run;
mod summary;
mod warnings;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use encoder::ConfigError;
use encoder::archive::ArchiveError;
use files::{FolderKind, FolderLock, checkpoints};
use ranks::{RankError, Ranks};
use serde_json::Value;
use tensor::Device;
use terms::{Fault, memory};

pub use self::config::{
    AddedLanguagesConfig, DictionaryConfig, Extension, PretrainConfig, ProbeConfig, StageConfig,
    SwitchConfig, TrainableWeights, VocabularyConfig, overlay,
};
pub use self::data::{BatchFeed, RunData, count_sentences};
pub use self::evaluate::ProbeRetrieval;
pub use self::parallel::follow;
pub use self::preparation::TextConfig;
pub use self::presets::{preset_keys, preset_positions};
pub use self::probes::{ProbePair, ProbePoint, ProbeSeries};
pub use self::request::{RunRequest, RunText};
pub use self::run::mlm_step;
pub use self::summary::{BestWeights, PretrainSummary, TimeShares, TrainingMoment};

use self::run::PretrainRun;
use crate::trainer::TrainError;

/// Why a run could not be made.
#[derive(Debug, thiserror::Error)]
pub enum PretrainError {
    /// The configuration makes no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Text or arrays could not be read, what was saved while training not be written, or the folder holds no such run.
    #[error(transparent)]
    Input(#[from] terms::Error),
    /// Training failed.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// The loss, a gradient or the perplexity is not finite any more.
    #[error(
        "the run diverged at step {step}: the {what} is {value}. {} Begin another with a lower learning rate, \
         a longer warm-up, a smaller clip, or norm = \"pre\"",
        of_checkpoint(*checkpoint)
    )]
    Diverged {
        /// The step that failed.
        step: u64,
        /// What is not finite.
        what: String,
        /// NaN or infinite.
        value: f64,
        /// The step of the last checkpoint, if there is one.
        checkpoint: Option<u64>,
    },
    /// The weights could not be written or read.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The folder holds something already.
    #[error("{0} is not empty; resume the run in it, or name another folder")]
    Occupied(PathBuf),
    /// The folder holds a run that was killed, or failed, before its first checkpoint.
    #[error(
        "{0} holds another run, without a checkpoint yet; resume it, replace it by force, or name another folder"
    )]
    Unstarted(PathBuf),
    /// The files of a run are not where its configuration says.
    #[error(
        "{0}; paths in config.toml are relative to where the run was begun: resume it from there"
    )]
    Elsewhere(text::Error),
    /// A file of the run could not be put in its place, or another process works in the folder.
    #[error(transparent)]
    Files(#[from] files::Error),
    /// The ranks that train together cannot go on.
    #[error(transparent)]
    Ranks(#[from] RankError),
}

impl PretrainError {
    /// Why the ranks that train together cannot go on, where that is it.
    pub fn of_ranks(&self) -> Option<&RankError> {
        match self {
            PretrainError::Ranks(error) | PretrainError::Train(TrainError::Ranks(error)) => {
                Some(error)
            }
            _ => None,
        }
    }
}

impl Fault for PretrainError {
    fn is_usage(&self) -> bool {
        match self {
            PretrainError::Input(error) => error.is_usage(),
            PretrainError::Train(error) => error.is_usage(),
            PretrainError::Files(error) => error.is_usage(),
            PretrainError::Ranks(error) => error.is_usage(),
            PretrainError::Config(_) | PretrainError::Occupied(_) | PretrainError::Unstarted(_) => {
                true
            }
            _ => false,
        }
    }

    fn key(&self) -> Option<&str> {
        match self {
            PretrainError::Config(error) => Some(&error.key),
            PretrainError::Train(error) => error.key(),
            PretrainError::Diverged { .. } => Some("adam.lr"),
            _ => None,
        }
    }
}

fn of_checkpoint(checkpoint: Option<u64>) -> String {
    match checkpoint {
        None => "There is no checkpoint yet, so that nothing of use is lost.".to_owned(),
        Some(step) => format!(
            "The last checkpoint, of step {step}, is sound, but resumed as it was begun the run would diverge \
             again; the weights in its folder may be the init of another."
        ),
    }
}

/// Receives the progress of a run, and is asked whether it shall stop.
pub trait Observer {
    /// Something worth a line.
    fn note(&mut self, text: &str);
    /// A file of the run is damaged, and the run goes on without it: worth a line even where notes are not wanted.
    fn warn(&mut self, text: &str) {
        self.note(text);
    }
    /// An update was made.
    fn step(&mut self, done: u64, total: u64, text: &str);
    /// A line of `metrics.jsonl`.
    fn metrics(&mut self, _line: &Value) {}
    /// Whether to save and stop after this update.
    fn stop(&self) -> bool;
}

/// What a run may hold.
const RUN: FolderKind = FolderKind {
    mark: PretrainConfig::FILE,
    files: &[
        "added.json",
        "config.json",
        "corpora/*/corpus.json",
        "corpora/*/counts.bin",
        "corpora/*/dev.bin",
        "corpora/*/test.bin",
        "corpora/*/train.bin",
        "events.out.tfevents.#.#",
        "metrics.jsonl",
        "model.safetensors",
        "probes/*/#.npz",
        "probes/*/pairs.tsv",
        "snapshots/#.safetensors",
        "state.previous.safetensors",
        "state.safetensors",
        "summary.json",
        "tokenizer.*.json",
        "tokenizer.json",
        "vocabulary/isogloss.b3",
        "vocabulary/simplified.tsv",
        "vocabulary/subwords.tsv",
        "vocabulary/tokenizer.*.json",
        "vocabulary/tokenizer.json",
        "vocabulary/vocabulary.json",
    ],
};

/// Begins a run in `folder`, which must be new or empty or, with `force`, hold a run, which is replaced. Where it is shared with
/// other ranks, this is rank 0, and they [`follow`].
pub fn begin(
    config: &PretrainConfig,
    folder: &Path,
    force: bool,
    device: &Device,
    ranks: Option<&Arc<Ranks>>,
    observer: &mut dyn Observer,
) -> Result<PretrainSummary, PretrainError> {
    parallel::check(config, ranks)?;
    // Before the folder is touched, and again under its lock.
    check_vacant(config, folder, force)?;
    presets::check_preset(config)?;
    data::check(config)?;
    check_memory(config, device)?;
    warnings::too_short(config).iter().for_each(|warning| observer.note(warning));
    let lock = FolderLock::take(folder)?;
    check_vacant(config, folder, force)?;
    if force {
        lock.clear(&RUN);
    }
    let new = lock.is_empty();
    let written = files::write(&folder.join(PretrainConfig::FILE), config.to_toml());
    let opened = written
        .map_err(PretrainError::from)
        .and_then(|()| PretrainRun::open(config, folder, device, ranks, observer));
    match opened {
        Ok(run) => run.train(observer),
        Err(error) => {
            // Nothing was learned yet; left behind, it would only stand in the way of the mended command.
            if new {
                lock.discard(&RUN);
            }
            Err(error)
        }
    }
}

/// Bytes of a weight that is trained, with its gradient and Adam's two means, and of one that is not.
const TRAINED_WEIGHT: u128 = 16;
const FROZEN_WEIGHT: u128 = 4;

/// Refuses an encoder that the memory of this machine cannot train. A GPU says so itself.
fn check_memory(config: &PretrainConfig, device: &Device) -> Result<(), ConfigError> {
    if device.is_gpu() {
        return Ok(());
    }
    let frozen = config.add.as_ref().is_some_and(|add| add.trainable == TrainableWeights::New);
    let weight = if frozen { FROZEN_WEIGHT } else { TRAINED_WEIGHT };
    memory::check(weight * config.encoder.least_weights()).map_err(|shortage| {
        let reason = format!(
            "{shortage}, for the weights and what trains them alone; take a smaller encoder"
        );
        ConfigError::new("encoder.dim", reason)
    })
}

/// Refuses a folder that holds anything but the beginning of this very run: a process that was killed
/// before its first checkpoint may have left one.
fn check_vacant(config: &PretrainConfig, folder: &Path, force: bool) -> Result<(), PretrainError> {
    if files::is_vacant(folder) {
        return Ok(());
    }
    let there = |name: &str| folder.join(name).is_file();
    let learned = checkpoints::exists(&folder.join(run::STATE)) || there(PretrainSummary::FILE);
    match PretrainConfig::read(folder) {
        Ok(_) if force => Ok(RUN.refuse_others(folder)?),
        Ok(begun) if !learned && begun == *config => Ok(()),
        Ok(_) if !learned => Err(PretrainError::Unstarted(folder.to_owned())),
        _ => Err(PretrainError::Occupied(folder.to_owned())),
    }
}

/// Resumes the run in `folder` from its last checkpoint. What is asked for must be what the run was begun
/// with, but for more steps, which extend it (see [`PretrainConfig::extensions`]). A run that has reached
/// its goal is left as it is. Ranks are as in [`begin`], and may be more or fewer than before.
pub fn resume(
    folder: &Path,
    request: &RunRequest,
    device: &Device,
    ranks: Option<&Arc<Ranks>>,
    observer: &mut dyn Observer,
) -> Result<PretrainSummary, PretrainError> {
    // A folder without a run gets no lock either.
    PretrainConfig::read(folder)?;
    let _lock = files::lock(folder)?;
    let begun = PretrainConfig::read(folder)?;
    let steps = request.steps_over(&begun)?;
    let config = match begun.has_goal(steps) {
        true => begun.clone(),
        false => {
            let done = run::steps_done(folder, &mut |text| observer.warn(text))?;
            begun.extended(steps, done)?
        }
    };
    presets::check_preset(&config)?;
    parallel::check(&config, ranks)?;
    if let Some(summary) =
        PretrainSummary::read(folder).filter(|done| done.finished && done.steps == config.steps)
    {
        observer.note(&format!("{} is done; nothing was changed", folder.display()));
        return Ok(summary);
    }
    data::check(&config).map_err(PretrainError::Elsewhere)?;
    check_memory(&config, device)?;
    if config != begun {
        observer.note(&format!("extending from {} to {} updates", begun.steps, config.steps));
        files::write(&folder.join(PretrainConfig::FILE), config.to_toml())?;
    }
    if !checkpoints::exists(&folder.join(run::STATE)) {
        observer.note(&format!("{} holds no checkpoint: from step 0", folder.display()));
    }
    PretrainRun::open(&config, folder, device, ranks, observer)?.train(observer)
}
