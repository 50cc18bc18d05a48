//! Token translation by the difference of two languages' mean vectors (Liu et al. 2020).

use crate::study::error::Result;
use crate::study::extraction::Extractor;
use crate::study::file::System;
use crate::study::plan::{EvaluationContext, StudyPlanner};
use crate::study::step::{CommandArg, StepDraft, StepList};
use crate::study::systems::{PlannedEncoder, PlannedSystem};

/// The layer of the example translations: that of Liu et al. 2020, the tenth of twelve.
fn translating_layer(scene: &EvaluationContext<'_>) -> usize {
    scene.layers() * 5 / 6
}

/// Plans the mean vectors of all languages of an encoder.
pub(super) fn means(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    run: &PlannedEncoder,
) -> Result<CommandArg> {
    let languages: Vec<&str> = scene.materials.languages().collect();
    let mut draft = StepDraft::new("shift means", scene.name("language mean vectors", system))
        .kind(scene.scale.name())
        .flag("--model", run.folder.clone())
        .args(scene.materials.text_flags(&languages, false)?)
        .flag("--limit", scene.sentences());
    if scene.materials.prepared() {
        draft = draft.arg("--lines");
    }
    let step = planner.add(draft.flag("--out", CommandArg::here("means.safetensors")))?;
    Ok(StepList::made(step, "means.safetensors"))
}

/// Token translation by the difference of mean vectors, at every layer and weight.
pub(in crate::study) fn shift(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    made: &PlannedSystem,
) -> Result<()> {
    let PlannedSystem::Encoders { runs, one: true } = made else { return Ok(()) };
    let materials = scene.materials;
    let run = &runs[&materials.source];
    let means = means(planner, scene, system, run)?;
    for target in &materials.targets {
        let pair = materials.pair(target);
        let [foreign, own] = match materials.prepared() {
            true => materials.test_sentences(target),
            false => materials.train_sentences(target),
        };
        let mut sweep =
            StepDraft::new("shift sweep", scene.name(&format!("shift, {pair}"), system))
                .kind(scene.scale.name())
                .flag("--model", run.folder.clone())
                .flag("--means", means.clone())
                .flag("--parallel", own.after(&format!("{}=", materials.source)))
                .flag("--parallel", foreign.after(&format!("{target}=")))
                .flag("--dictionary", materials.whole_dictionary(target).after(&format!("{pair}=")))
                .arg("--alpha=-1,0,0.5,1,1.5,2,2.5,3");
        for kind in ["mean", "sharing", "bands", "without-4"] {
            sweep = sweep.flag("--shift-kind", kind);
        }
        let sweep = planner.add(sweep)?;
        planner.read(sweep, Extractor::Sweep, scene.seed, scene.factors(system, &[]));
        let layer = translating_layer(scene).to_string();
        // Short sentences, which fit any encoder.
        let [translation, sentence] = materials.test_sentences(target);
        let translate =
            StepDraft::new("shift translate", scene.name(&format!("translate, {pair}"), system))
                .flag("--model", run.folder.clone())
                .flag("--means", means.clone())
                .flag("--from", materials.source.as_str())
                .flag("--to", target.as_str())
                .flag("--layer", layer.as_str())
                .flag("--alpha", "0,1,2,3")
                .flag("--parallel", sentence.after(&format!("{}=", materials.source)))
                .flag("--parallel", translation.after(&format!("{target}=")))
                .flag("--limit", "5");
        let translate = planner.add(translate)?;
        let factors = scene.factors(system, &[("direction", &pair), ("layer", &layer)]);
        planner.read(translate, Extractor::Translation, scene.seed, factors);
    }
    let stats = StepDraft::new("vocab stats", scene.name("vocabulary overlap", system))
        .arg(run.folder.join("vocabulary"));
    let stats = planner.add(stats)?;
    planner.read(stats, Extractor::Vocabulary, scene.seed, scene.factors(system, &[]));
    Ok(())
}
