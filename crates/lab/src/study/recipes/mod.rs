//! The evaluations: which commands measure a system, and which of their results become records.
//!
//! Each takes a planned system and adds steps and extractions. A system that an evaluation does not apply to
//! (zero-shot transfer between two separately trained encoders) is skipped.

mod sentences;
mod shift;
mod tasks;
mod words;

pub(super) use tasks::transfer;

use super::error::Result;
use super::system_planner::SystemPlanner;
use super::systems::PlannedSystem;

/// An evaluation that is no task.
pub(super) struct Evaluation {
    pub(super) name: &'static str,
    /// Whether it trains a task, so that its results depend on the seed even of a model that is given.
    pub(super) is_finetuned: bool,
    /// Adds its steps, and which numbers of their results become records.
    pub(super) plan: fn(&mut SystemPlanner<'_, '_>, &PlannedSystem) -> Result<()>,
}

/// Every evaluation that is no task.
#[rustfmt::skip]
pub(super) static EVALUATIONS: [Evaluation; 14] = [
    Evaluation { name: "retrieval", is_finetuned: false, plan: sentences::retrieval },
    Evaluation { name: "align-words", is_finetuned: false, plan: words::align_words },
    Evaluation { name: "align-many", is_finetuned: false, plan: words::align_many },
    Evaluation { name: "align-contexts", is_finetuned: true, plan: tasks::align_contexts },
    Evaluation { name: "similarity", is_finetuned: false, plan: sentences::similarity },
    Evaluation { name: "similarity-measures", is_finetuned: false, plan: sentences::similarity_measures },
    Evaluation { name: "word-retrieval", is_finetuned: false, plan: words::word_retrieval },
    Evaluation { name: "language-id", is_finetuned: false, plan: sentences::language_id },
    Evaluation { name: "language-neurons", is_finetuned: false, plan: sentences::language_neurons },
    Evaluation { name: "shift", is_finetuned: false, plan: shift::shift },
    Evaluation { name: "shifted-transfer", is_finetuned: true, plan: tasks::shifted_transfer },
    Evaluation { name: "reinit-transfer", is_finetuned: true, plan: tasks::reinit_transfer },
    Evaluation { name: "word-alignment", is_finetuned: false, plan: words::word_alignment },
    Evaluation { name: "mining", is_finetuned: false, plan: sentences::mining },
];
