//! The evaluations: which commands measure a system, and what of their results is filed.
//!
//! Each takes a system that is planned and adds its steps and readings; a system that an evaluation
//! cannot be made on (tasks on two encoders that know nothing of one another) is passed over.

mod sentences;
mod shift;
mod tasks;
mod words;

pub(super) use sentences::{retrieval, similarity};
pub(super) use shift::shift;
pub(super) use tasks::{contexts, shifted_transfer, transfer};
pub(super) use words::{word_retrieval, words};

use super::plan::Scene;
use super::systems::{Made, Run};

/// The runs of a target and of the source, where the system is one of encoders.
fn two_runs<'a>(made: &'a Made, scene: &Scene<'_>, target: &str) -> Option<(&'a Run, &'a Run)> {
    let Made::Encoders { runs, .. } = made else { return None };
    Some((runs.get(target)?, &runs[&scene.materials.source]))
}

/// The same, where the target's run speaks the target's language.
fn two_languages<'a>(
    made: &'a Made,
    scene: &Scene<'_>,
    target: &str,
) -> Option<(&'a Run, &'a Run)> {
    let (from, to) = two_runs(made, scene, target)?;
    (from.language == target).then_some((from, to))
}
