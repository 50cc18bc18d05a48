//! Studies: definitions, plans and runs.
//!
//! A [`Study`] (its definition) → its [`StudyPlan`] (steps, each a command that could be typed, and what is extracted
//! from their results) → a [`StepPool`] (the steps of several plans, each once) → [`run()`] (missing steps are run, side by
//! side where that is wished; completed ones are found by their keys, whichever study ran them) → records in the store.

mod altered;
pub mod cluster;
mod cost;
mod error;
mod file;
mod laboratory;
mod materials;
mod memory;
mod one_off;
mod pack;
mod plan;
mod pool;
mod recipes;
mod revision;
mod run;
mod runner;
mod settings;
mod shared_text;
mod sizes;
mod step;
mod system_planner;
mod systems;

pub use commands::measured::{Extractor, Measurement, StepResults, TextSample};
pub use error::{Error, Result};
pub use file::{
    InventedLanguages, LanguageAlteration, RealLanguages, ScaleSettings, Study, StudyEvaluation,
    System, SystemKind,
};
pub use laboratory::{Laboratory, PlanStatus, shell_line};
pub use materials::{TEST_COLUMNS, xnli_languages};
pub use one_off::{ONE_OFF, OWN_SCALE, OneOffOrigin};
pub use pack::{PackSummary, UnpackSummary, pack, unpack};
pub use plan::{Extraction, StudyPlan};
pub use pool::{PooledStep, StepPool};
pub use revision::{COMMANDS, RENAMED, RenamedFlag, StepCommand};
pub use run::{Collected, RunOptions, StepOutcome, StudyObserver, collect, run};
pub use sizes::SentenceCounter;
pub use step::{
    CPU, CommandArg, KeyedWord, REPEATABLE, StepDraft, StepId, StepInput, StepList, StepResume,
    StudyStep,
};
