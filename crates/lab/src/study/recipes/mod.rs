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
use super::file::System;
use super::plan::{EvaluationContext, StudyPlanner};
use super::systems::{PlannedEncoder, PlannedSystem};

/// An evaluation that is no task.
pub(super) struct Evaluation {
    /// Its name in a study's file.
    pub(super) name: &'static str,
    /// Whether it trains a task, so that its results depend on the seed even of a model that is given.
    pub(super) is_finetuned: bool,
    /// Adds its steps, and which numbers of their results become records.
    pub(super) plan:
        fn(&mut StudyPlanner<'_>, &EvaluationContext<'_>, &System, &PlannedSystem) -> Result<()>,
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

/// The encoders of a target and of the source, where the system has encoders.
fn two_runs<'a>(
    made: &'a PlannedSystem,
    scene: &EvaluationContext<'_>,
    target: &str,
) -> Option<(&'a PlannedEncoder, &'a PlannedEncoder)> {
    let PlannedSystem::Encoders { runs, .. } = made else { return None };
    Some((runs.get(target)?, &runs[&scene.materials.source]))
}

/// The same, where the target's encoder is given the target's language.
fn two_languages<'a>(
    made: &'a PlannedSystem,
    scene: &EvaluationContext<'_>,
    target: &str,
) -> Option<(&'a PlannedEncoder, &'a PlannedEncoder)> {
    let (from, to) = two_runs(made, scene, target)?;
    (from.language == target).then_some((from, to))
}
