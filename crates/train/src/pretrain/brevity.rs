//! What a run is too short for, said before it begins: it is easily overlooked in what comes out.

use super::config::PretrainConfig;
use crate::schedule::Schedule;

/// A line for each thing that the run's updates are too few for.
pub(super) fn left_out(config: &PretrainConfig) -> Vec<String> {
    let steps = config.steps;
    if steps == 0 {
        return Vec::new();
    }
    let mut notes = Vec::new();
    let last = config.stages.iter().fold(0u64, |sum, stage| sum.saturating_add(stage.steps));
    if steps <= last {
        notes.push(format!(
            "stages: they last {last} updates and the run {steps}, so that it never comes to batches as \
             `batch` has them, with rows of {} tokens; give --steps more than {last}, shorter stages, or \
             none with --set stages=[]",
            config.batch.length
        ));
    }
    let warmup = match config.adam.schedule {
        Schedule::Constant => 0,
        Schedule::InverseSqrt { warmup } | Schedule::Linear { warmup, .. } => warmup,
    };
    if warmup >= steps {
        notes.push(format!(
            "adam.schedule.warmup: it is as long as the run of {steps} updates, so that the rate of learning \
             only rises; give more --steps, or a shorter one with --adam.schedule.warmup {}",
            steps / 10
        ));
    }
    notes
}
