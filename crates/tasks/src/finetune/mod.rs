//! Fine-tuning on the source language and scoring the others, with no further training.
//!
//! A run tries every setting of a grid in one process, over data that is encoded once. A run is a
//! folder: `config.toml`, `inputs.json` (digests of what it reads), `metrics.jsonl` (a line for every epoch of
//! every setting; the same for the same seed), `results.json` (every setting that is done),
//! `model.safetensors` and `predictions/` (of the best setting by the source language's development set),
//! `summary.json` (a [`TransferResult`]); and while setting N is under way, `state-N.safetensors` (the checkpoint
//! after its last epoch) and `epoch-N.safetensors` (its best epoch so far). Files appear whole or not at all, so
//! that a run killed at any moment is resumed as if it had never stopped.

mod config;
mod digests;
mod evaluate;
mod recipe;
mod result;
mod run;
mod sets;
mod shift;
mod start;

pub use self::config::{
    FeaturesConfig, GridSetting, SetConfig, SetHalf, ShiftConfig, ShiftSource, TransferConfig,
};
pub use self::recipe::{EncoderSize, FinetuneRecipe, LrSchedule, RecipeOverrides};
pub use self::result::{EpochMetrics, SettingResult, TestResult, TransferResult, TransferSpeed};
pub use self::sets::SetMetadata;
pub use self::shift::{AlphaScore, ShiftResult, ShiftedScore, ShiftedTestResult};
pub use self::start::{begin, resume, saved_config};
