//! Warnings about a run that is too short for its own settings, given before it begins: its results look
//! like those of any other run.

use super::config::PretrainConfig;
use crate::schedule::Schedule;

/// A line for each setting that the run's updates are too few for.
pub(super) fn too_short(config: &PretrainConfig) -> Vec<String> {
    let steps = config.steps;
    if steps == 0 {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    let last = config.stages.iter().fold(0u64, |sum, stage| sum.saturating_add(stage.steps));
    if steps <= last {
        warnings.push(format!(
            "stages: they last {last} updates and the run {steps}, so that no batch has the shape that \
             `batch` gives, with rows of {} tokens; set steps above {last}, shorten the stages, or set \
             stages = []",
            config.batch.length
        ));
    }
    let warmup = match config.adam.schedule {
        Schedule::Constant => 0,
        Schedule::InverseSqrt { warmup } | Schedule::Linear { warmup, .. } => warmup,
    };
    if warmup >= steps {
        warnings.push(format!(
            "adam.schedule.warmup: it is as long as the run of {steps} updates, so that the learning rate \
             never decays; set more steps, or a shorter warm-up such as {}",
            steps / 10
        ));
    }
    warnings
}
