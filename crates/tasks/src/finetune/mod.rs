//! Fine-tuning on the source language and scoring the others, with no further training.
//!
//! A run tries every setting of a grid in one process, over data that is encoded once. A run is a
//! folder: `config.toml`, `inputs.json` (digests of what it reads), `metrics.jsonl` (a line for every epoch of every setting; the same for the
//! same seed), `results.json` (every setting that is done), `model.safetensors` and `predictions/`
//! (of the best setting by the source language's development set), `summary.json`; and while a setting
//! is under way, `state.safetensors` (the checkpoint after its last epoch) and `epoch.safetensors` (its
//! best epoch so far). Files appear whole or not at all, so that a run killed at any moment goes on
//! as if it had never stopped.

mod config;
mod evaluate;
mod inputs;
mod run;
mod sets;
mod shifted;
mod start;
mod summary;

pub use self::config::{
    Difference, FeaturesConfig, Pace, Recipe, SetConfig, Setting, ShiftConfig, TransferConfig,
};
pub use self::evaluate::Model;
pub use self::run::transfer;
pub use self::sets::{Set, SetFacts, Sets};
pub use self::shifted::{Point, Shift, ShiftSummary, Shifted, ShiftedSet, Target};
pub use self::start::{begin, resume};
pub use self::summary::{Outcome, Record, Speed, Summary, mean_of_best, ranked};
