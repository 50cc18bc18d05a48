//! Pretraining with masked language modelling: from a configuration to a folder with a trained encoder.
//!
//! A run is a folder: `config.toml` (the whole configuration), `vocabulary/`, `corpora/`,
//! `metrics.jsonl` (losses, perplexities, retrieval; the same for the same seed), events for
//! TensorBoard, `model.safetensors` (the best weights so far) with `config.json` and `tokenizer.json`,
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
mod preparation;
mod presets;
mod probes;
mod request;
mod run;
mod summary;
mod warnings;

use std::fs;
use std::path::{Path, PathBuf};

use encoder::ConfigError;
use encoder::archive::ArchiveError;
use files::At;
use tensor::Device;
use terms::Fault;

pub use self::config::{
    DictionaryConfig, Extension, PretrainConfig, ProbeConfig, StageConfig, SwitchConfig,
    VocabularyConfig, overlay,
};
pub use self::data::{BatchFeed, RunData, count_sentences};
pub use self::evaluate::ProbeRetrieval;
pub use self::preparation::TextConfig;
pub use self::presets::preset_keys;
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
    /// The text could not be read.
    #[error(transparent)]
    Text(#[from] text::Error),
    /// Training failed.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// The weights could not be written or read.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The folder holds something already.
    #[error("{0} is not empty; resume the run in it, or name another folder")]
    Occupied(PathBuf),
    /// The folder holds a run that was killed, or failed, before its first checkpoint.
    #[error("{0} holds a run without a checkpoint; resume it, or remove the folder to begin anew")]
    Unstarted(PathBuf),
    /// The folder holds a run of another kind.
    #[error("{0} is a run of transfer; resume it with: isogloss transfer --resume --out {0}")]
    OtherKind(PathBuf),
    /// The files of a run are not where its configuration says.
    #[error(
        "{0}; paths in config.toml are relative to where the run was begun: resume it from there"
    )]
    Elsewhere(text::Error),
    /// The text is not what the run began with.
    #[error(
        "{0} began with other text: a file was changed, or a pattern matches other files now; restore the \
         text, or begin another run"
    )]
    OtherText(PathBuf),
    /// There is nothing to resume.
    #[error("{0} holds no run to resume; begin one")]
    Nothing(PathBuf),
    /// What was saved while training could not be written or read.
    #[error(transparent)]
    Arrays(#[from] arrays::Error),
    /// A file of the run could not be put in its place, or another process works in the folder.
    #[error(transparent)]
    Files(#[from] files::Error),
}

impl Fault for PretrainError {
    fn is_usage(&self) -> bool {
        match self {
            PretrainError::Text(error) => matches!(error, text::Error::Request { .. }),
            PretrainError::Train(error) => error.is_usage(),
            PretrainError::Config(_)
            | PretrainError::Occupied(_)
            | PretrainError::Unstarted(_)
            | PretrainError::OtherKind(_)
            | PretrainError::Nothing(_) => true,
            _ => false,
        }
    }

    fn key(&self) -> Option<&str> {
        match self {
            PretrainError::Config(error) => Some(&error.key),
            PretrainError::Train(error) => error.key(),
            _ => None,
        }
    }
}

/// Receives the progress of a run, and is asked whether it shall stop.
pub trait Observer {
    /// Something worth a line.
    fn note(&mut self, text: &str);
    /// An update was made.
    fn step(&mut self, done: u64, total: u64, text: &str);
    /// Whether to save and stop after this update.
    fn stop(&self) -> bool;
}

/// Begins a run in `folder`, which must be new or empty or, with `force`, hold a run, which is replaced.
pub fn begin(
    config: &PretrainConfig,
    folder: &Path,
    force: bool,
    device: &Device,
    observer: &mut dyn Observer,
) -> Result<PretrainSummary, PretrainError> {
    let occupied = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    let replaced = occupied && force && PretrainConfig::read(folder).is_ok();
    if occupied && !replaced {
        let there = |name: &str| folder.join(name).is_file();
        let unstarted =
            there(PretrainConfig::FILE) && !there(run::STATE) && !there(PretrainSummary::FILE);
        let refused = if unstarted { PretrainError::Unstarted } else { PretrainError::Occupied };
        return Err(refused(folder.to_owned()));
    }
    presets::check_preset(config)?;
    data::check(config)?;
    warnings::too_short(config).iter().for_each(|warning| observer.note(warning));
    let new = !folder.exists();
    fs::create_dir_all(folder).at(folder, "make the folder")?;
    if replaced {
        // Refused where another process works in the folder.
        drop(files::lock(folder)?);
        files::clear(folder, false);
    }
    let lock = files::lock(folder)?;
    files::write(&folder.join(PretrainConfig::FILE), config.to_toml())?;
    let run = PretrainRun::open(config, folder, device, observer).inspect_err(|_| {
        // Nothing was learned yet; left behind, it would only stand in the way of the mended command.
        files::clear(folder, new);
    })?;
    let summary = run.train(observer);
    drop(lock);
    summary
}

/// Resumes the run in `folder` from its last checkpoint. What is asked for must be what the run was begun
/// with, but for more steps, which extend it (see [`PretrainConfig::extensions`]). A run that has reached
/// its goal is left as it is.
pub fn resume(
    folder: &Path,
    request: &RunRequest,
    device: &Device,
    observer: &mut dyn Observer,
) -> Result<PretrainSummary, PretrainError> {
    let begun = PretrainConfig::read(folder)?;
    let lock = files::lock(folder)?;
    let steps = request.steps_over(&begun)?;
    let config = match begun.has_goal(steps) {
        true => begun.clone(),
        false => begun.extended(steps, run::checkpoint_step(folder)?)?,
    };
    presets::check_preset(&config)?;
    if let Some(summary) =
        PretrainSummary::read(folder).filter(|done| done.finished && done.steps == config.steps)
    {
        observer.note(&format!("{} is done; nothing was changed", folder.display()));
        return Ok(summary);
    }
    data::check(&config).map_err(PretrainError::Elsewhere)?;
    if config != begun {
        observer.note(&format!("extending from {} to {} updates", begun.steps, config.steps));
        files::write(&folder.join(PretrainConfig::FILE), config.to_toml())?;
    }
    if !folder.join(run::STATE).is_file() {
        observer.note(&format!("{} holds no checkpoint: from step 0", folder.display()));
    }
    let summary = PretrainRun::open(&config, folder, device, observer)?.train(observer);
    drop(lock);
    summary
}
