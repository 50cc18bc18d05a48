//! The pictures of a laboratory's runs.

use std::path::{Path, PathBuf};

use draw::figure::{LayeredSpace, SpaceFigure, emergence, layers};
pub use draw::spaces::*;
use train::pretrain::ProbeSeries;

/// The pictures that open the page of a laboratory: those of the run of the default encoder, or without anchors, that has the
/// lowest seed of all that have saved something. None where no run has.
///
/// # Errors
/// Where a file is damaged.
pub fn of_laboratory(root: &Path) -> Result<Vec<SpaceFigure>, SpaceError> {
    let Ok(steps) = std::fs::read_dir(root.join("steps")) else { return Ok(Vec::new()) };
    let mut runs: Vec<(usize, u64, PathBuf)> = Vec::new();
    for step in steps.flatten().map(|step| step.path()) {
        let run = step.join("run");
        let rank = run.join("probes").is_dir().then(|| rank(&step)).flatten();
        runs.extend(rank.map(|(encoder, seed)| (encoder, seed, run)));
    }
    runs.sort();
    let Some((.., run)) = runs.first() else { return Ok(Vec::new()) };
    let Some(series) = ProbeSeries::read(run)?.into_iter().next() else { return Ok(Vec::new()) };
    let last = series.points.last().expect("a series has points").step;
    Ok(vec![emergence(&series)?, layers(&LayeredSpace::of_series(&series, last)?)])
}

/// The place of a pretraining step's encoder among those that a page may open with, and its seed, from the step's name.
fn rank(step: &Path) -> Option<(usize, u64)> {
    let step = std::fs::read_to_string(step.join("step.json")).ok()?;
    let step: serde_json::Value = serde_json::from_str(&step).ok()?;
    let (encoder, seed) = step["name"].as_str()?.split_once(", seed ")?;
    let first = ["bilingual", "no-anchors", "default"];
    let place = first.iter().position(|name| encoder.ends_with(name))?;
    Some((place, seed.parse().ok()?))
}
