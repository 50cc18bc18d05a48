//! Parallel sentences: retrieval, and similarity of layers (CKA, Kornblith et al. 2019).

use super::{two_languages, two_runs};
use crate::study::error::Result;
use crate::study::extraction::Extractor;
use crate::study::file::System;
use crate::study::plan::{EvaluationContext, StudyPlanner};
use crate::study::step::{CommandArg, StepDraft, StepId, StepList};
use crate::study::systems::{PlannedEncoder, PlannedSystem};

/// Plans sentence retrieval.
fn retrieve(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    (target, from, to): (&str, &PlannedEncoder, &PlannedEncoder),
) -> Result<StepId> {
    let side = |run: &PlannedEncoder, file: CommandArg| file.after(&format!("{}=", run.language));
    let [test_a, test_b] = scene.materials.test_sentences(target);
    let [train_a, train_b] = scene.materials.train_sentences(target);
    let draft = StepDraft::new("retrieve", scene.name(&format!("retrieve, {target}"), system))
        .flag("--model", from.folder.clone())
        .flag("--model", to.folder.clone())
        .flag("--parallel", side(from, test_a))
        .flag("--parallel", side(to, test_b))
        .flag("--train", side(from, train_a))
        .flag("--train", side(to, train_b));
    planner.add(draft)
}

/// Sentence retrieval, layer by layer.
pub(in crate::study) fn retrieval(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    made: &PlannedSystem,
) -> Result<()> {
    for target in &scene.materials.targets {
        let Some((from, to)) = two_languages(made, scene, target) else { continue };
        let step = retrieve(planner, scene, system, (target, from, to))?;
        let factors = scene.factors(system, &[("pair", &scene.materials.pair(target))]);
        planner.read(step, Extractor::Retrieval, scene.seed, factors);
    }
    Ok(())
}

/// CKA of parallel sentences, layer by layer, and its correlation with retrieval.
pub(in crate::study) fn similarity(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    made: &PlannedSystem,
) -> Result<()> {
    for target in scene.materials.targets.iter().take(1) {
        let Some((from, to)) = two_runs(made, scene, target) else { continue };
        let sentences = scene.materials.test_sentences(target);
        let [foreign, own] = &sentences;
        let mut encode = |run: &PlannedEncoder| -> Result<CommandArg> {
            let text = if run.language == *target { foreign } else { own };
            let name = scene.name(&format!("encode {}", run.language), system);
            let draft = StepDraft::new("encode", name)
                .flag("--model", run.folder.clone())
                .flag("--text", text.clone().after(&format!("{}=", run.language)))
                .flag("--out", CommandArg::here("states.npy"))
                .flag("--lengths", CommandArg::here("lengths"));
            Ok(StepList::made(planner.add(draft)?, ""))
        };
        let (a, b) = (encode(from)?, encode(to)?);
        let factors = scene.factors(system, &[("pair", &scene.materials.pair(target))]);
        let cka = |more: &str| {
            StepDraft::new("cka", scene.name(&format!("CKA{more}"), system))
                .arg(a.join("states.npy"))
                .arg(b.join("states.npy"))
        };
        let mut plain = cka("");
        if from.language != to.language {
            let found = retrieve(planner, scene, system, (target, from, to))?;
            plain = plain.flag("--curve", StepList::made(found, "result.json"));
        }
        let plain = planner.add(plain)?;
        planner.read(plain, Extractor::Similarity { within: false }, scene.seed, factors.clone());
        let within =
            planner.add(cka(" within sentence lengths").flag("--within", b.join("lengths")))?;
        planner.read(within, Extractor::Similarity { within: true }, scene.seed, factors);
    }
    Ok(())
}
