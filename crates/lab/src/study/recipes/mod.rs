//! The evaluations: which commands measure a system, and which of their results become records.
//!
//! Each takes a planned system and adds steps and extractions. A system that an evaluation does not apply to
//! (zero-shot transfer between two separately trained encoders) is skipped.

mod sentences;
mod shift;
mod tasks;
mod words;

pub(super) use sentences::{
    language_id, language_neurons, mining, retrieval, similarity, similarity_measures,
};
pub(super) use shift::shift;
pub(super) use tasks::{align_contexts, reinit_transfer, shifted_transfer, transfer};
pub(super) use words::{align_many, align_words, word_alignment, word_retrieval};

pub use shift::translating_layer;

use super::plan::EvaluationContext;
use super::systems::{PlannedEncoder, PlannedSystem};

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
