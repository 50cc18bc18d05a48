//! Pretraining: from a configuration to a folder with a trained encoder.
//!
//! A run is a folder: `config.toml` (everything that was decided), `vocabulary/`, `corpora/`,
//! `metrics.jsonl` (losses, perplexities, retrieval; the same for the same seed), events for
//! TensorBoard, `model.safetensors` (the best weights so far) with `config.json` and `tokenizer.json`,
//! `state.safetensors` (the last checkpoint) and `summary.json`. Files appear whole or not at all, and
//! one process at a time may work in the folder.

mod beginning;
mod brevity;
mod config;
mod data;
mod evaluate;
mod log;
mod preparation;
mod presets;
mod run;
mod summary;

use std::fs;
use std::path::{Path, PathBuf};

use encoder::ConfigError;
use encoder::archive::ArchiveError;
use files::At;
use tensor::Device;
use toml::{Table, Value};

pub use self::beginning::Beginning;
pub use self::config::{
    DictionaryConfig, PretrainConfig, ProbeConfig, StageConfig, SwitchConfig, VocabularyConfig,
    overlay,
};
pub use self::data::count_sentences;
pub use self::evaluate::Retrieval;
pub use self::preparation::TextConfig;
pub use self::presets::{CONDITIONS, SCALES, preset};
pub use self::summary::{Best, Moment, Shares, Summary};

use self::run::Run;
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
    #[error("{0} is not empty; go on with --resume, or name another folder")]
    Occupied(PathBuf),
    /// The folder holds a run that was killed, or failed, before its first checkpoint.
    #[error(
        "{0} holds a run without a checkpoint; go on with --resume, or remove the folder to begin anew"
    )]
    Unstarted(PathBuf),
    /// The folder holds a run of another kind.
    #[error("{0} is a run of transfer; go on with: isogloss transfer --resume --out {0}")]
    OtherKind(PathBuf),
    /// The files of a run are not where it says.
    #[error(
        "{0}; paths in config.toml are meant from where the run was begun: resume it from there"
    )]
    Elsewhere(text::Error),
    /// The text is not what the run began with.
    #[error(
        "{0} began with other text: a file was changed, or a pattern matches other files now; put the text \
         back, or begin another run"
    )]
    OtherText(PathBuf),
    /// There is nothing to go on with.
    #[error("{0} holds no run; leave out --resume to begin one")]
    Nothing(PathBuf),
    /// A file of the run could not be put in its place, or another process works in the folder.
    #[error(transparent)]
    Files(#[from] files::Error),
}

/// Told how a run goes on, and asked whether it shall stop.
pub trait Observer {
    /// Something worth a line.
    fn note(&mut self, text: &str);
    /// An update was made.
    fn step(&mut self, done: u64, total: u64, text: &str);
    /// Whether to save and stop after this update.
    fn stop(&self) -> bool;
}

/// Forgets what [`complete`] filled in for keys of a file, because flags have others: updates, layers.
pub fn loosen(file: &mut Table, flags: &Table) {
    if flags.contains_key("steps") {
        loosen_schedule(file);
    }
    if flags.get("encoder").is_some_and(|encoder| encoder.get("layers").is_some()) {
        presets::loosen_separate(file);
    }
}

/// A schedule that ended with the run shall do so again, and a warm-up that was cut to it not stay cut.
fn loosen_schedule(file: &mut Table) {
    let steps = file.get("steps").and_then(Value::as_integer);
    let schedule = file.get_mut("adam").and_then(|adam| adam.get_mut("schedule"));
    let Some(Value::Table(schedule)) = schedule else { return };
    let ends_with_run = |key: &str, schedule: &Table| {
        steps.is_some() && schedule.get(key).and_then(Value::as_integer) == steps
    };
    if ends_with_run("total", schedule) {
        schedule.remove("total");
        if ends_with_run("warmup", schedule) {
            schedule.remove("warmup");
        }
    }
}

/// Does what follows from other keys: a linear schedule ends with the run, the layers that a condition
/// separates follow the depth, and where a vocabulary is taken as it is, a preset has nothing to say of the
/// one to learn.
pub fn complete(table: &mut Table) {
    presets::complete_separate(table);
    if let Some(Value::Table(vocabulary)) = table.get_mut("vocabulary")
        && vocabulary.contains_key("folder")
    {
        vocabulary.retain(|key, _| key != "kind" && key != "merges");
    }
    let steps = table.get("steps").and_then(Value::as_integer).unwrap_or(1).max(1);
    let schedule = table.get_mut("adam").and_then(|adam| adam.get_mut("schedule"));
    let Some(Value::Table(schedule)) = schedule else { return };
    if schedule.get("kind").and_then(Value::as_str) == Some("linear") {
        schedule.entry("total").or_insert(Value::Integer(steps));
        let total = schedule["total"].as_integer().unwrap_or(steps);
        if let Some(Value::Integer(warmup)) = schedule.get_mut("warmup") {
            *warmup = (*warmup).min(total);
        }
    }
}

/// Begins a run in `folder`.
pub fn begin(
    config: &PretrainConfig,
    folder: &Path,
    device: &Device,
    observer: &mut dyn Observer,
) -> Result<Summary, PretrainError> {
    let occupied = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if occupied {
        let there = |name: &str| folder.join(name).is_file();
        let unstarted = there(CONFIG) && !there(run::STATE) && !there(Summary::FILE);
        let refused = if unstarted { PretrainError::Unstarted } else { PretrainError::Occupied };
        return Err(refused(folder.to_owned()));
    }
    presets::check_condition(config)?;
    data::check(config)?;
    brevity::left_out(config).iter().for_each(|note| observer.note(note));
    let new = !folder.exists();
    fs::create_dir_all(folder).at(folder, "make the folder")?;
    let lock = files::lock(folder)?;
    let text = config.to_toml();
    files::write(&folder.join(CONFIG), text)?;
    let run = Run::open(config, folder, device, observer).inspect_err(|_| {
        // Nothing was learned yet; left behind, it would only stand in the way of the mended command.
        files::clear(folder, new);
    })?;
    let summary = run.go(observer);
    drop(lock);
    summary
}

/// Goes on with the run in `folder`, from its last checkpoint. One that is done stays as it is.
pub fn resume(
    folder: &Path,
    device: &Device,
    observer: &mut dyn Observer,
) -> Result<Summary, PretrainError> {
    let config = read(folder)?;
    let lock = files::lock(folder)?;
    if let Some(summary) =
        Summary::read(folder).filter(|done| done.finished && done.steps == config.steps)
    {
        observer.note(&format!("{} is done; nothing was changed", folder.display()));
        return Ok(summary);
    }
    data::check(&config).map_err(PretrainError::Elsewhere)?;
    if !folder.join(run::STATE).is_file() {
        observer.note(&format!("{} holds no checkpoint: from step 0", folder.display()));
    }
    let summary = Run::open(&config, folder, device, observer)?.go(observer);
    drop(lock);
    summary
}

/// What was decided for the run in `folder`.
fn read(folder: &Path) -> Result<PretrainConfig, PretrainError> {
    let path = folder.join(CONFIG);
    if !path.is_file() {
        return Err(PretrainError::Nothing(folder.to_owned()));
    }
    let text = fs::read_to_string(&path).at(&path, "read")?;
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        ConfigError::new(path.display().to_string(), error.to_string())
    })?;
    if table.contains_key("task") {
        return Err(PretrainError::OtherKind(folder.to_owned()));
    }
    Ok(PretrainConfig::from_table(table)?)
}

const CONFIG: &str = "config.toml";
