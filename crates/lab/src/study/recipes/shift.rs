//! Token translation by the difference of two languages' means.

use crate::study::error::Result;
use crate::study::file::System;
use crate::study::plan::{Planner, Scene};
use crate::study::readings::Reader;
use crate::study::step::{Arg, Draft, Steps};
use crate::study::systems::{Made, Run};

/// The layer at which tokens are translated for all to see: that of paper 2, the tenth of twelve.
fn translating_layer(scene: &Scene<'_>) -> usize {
    scene.layers() * 5 / 6
}

/// Plans the means of all languages of an encoder.
pub(super) fn means(
    planner: &mut Planner<'_>,
    scene: &Scene<'_>,
    system: &System,
    run: &Run,
) -> Result<Arg> {
    let languages: Vec<&str> = scene.materials.languages().collect();
    let mut draft = Draft::new("shift means", scene.name("means of languages", system))
        .kind(scene.scale)
        .flag("--model", run.folder.clone())
        .args(scene.materials.text_flags(&languages, false)?)
        .flag("--first", scene.sentences());
    if scene.materials.prepared() {
        draft = draft.arg("--lines");
    }
    let step = planner.add(draft.flag("--out", Arg::here("means.safetensors")))?;
    Ok(Steps::made(step, "means.safetensors"))
}

/// Token translation by the difference of means, at every layer and weight.
pub(in crate::study) fn shift(
    planner: &mut Planner<'_>,
    scene: &Scene<'_>,
    system: &System,
    made: &Made,
) -> Result<()> {
    let Made::Encoders { runs, one: true } = made else { return Ok(()) };
    let materials = scene.materials;
    let run = &runs[&materials.source];
    let means = means(planner, scene, system, run)?;
    for target in &materials.targets {
        let pair = materials.pair(target);
        let [foreign, own] = match materials.prepared() {
            true => materials.test_sentences(target),
            false => materials.train_sentences(target),
        };
        let mut sweep = Draft::new("shift sweep", scene.name(&format!("shift, {pair}"), system))
            .kind(scene.scale)
            .flag("--model", run.folder.clone())
            .flag("--means", means.clone())
            .flag("--parallel", own.after(&format!("{}=", materials.source)))
            .flag("--parallel", foreign.after(&format!("{target}=")))
            .flag("--dictionary", materials.whole_dictionary(target).after(&format!("{pair}=")))
            .arg("--alphas=-1,0,0.5,1,1.5,2,2.5,3");
        for kind in ["mean", "sharing", "bands", "without-4"] {
            sweep = sweep.flag("--kind", kind);
        }
        let sweep = planner.add(sweep)?;
        planner.read(sweep, Reader::Sweep, scene.seed, scene.factors(system, &[]));
        let layer = translating_layer(scene).to_string();
        // Short ones, which any encoder has room for.
        let [translation, sentence] = materials.test_sentences(target);
        let translate =
            Draft::new("shift translate", scene.name(&format!("translate, {pair}"), system))
                .flag("--model", run.folder.clone())
                .flag("--means", means.clone())
                .flag("--from", materials.source.as_str())
                .flag("--to", target.as_str())
                .flag("--layer", layer.as_str())
                .flag("--alpha", "0,1,2,3")
                .flag("--file", sentence)
                .flag("--reference", translation)
                .flag("--first", "5");
        let translate = planner.add(translate)?;
        let factors = scene.factors(system, &[("direction", &pair), ("layer", &layer)]);
        planner.read(translate, Reader::Translation, scene.seed, factors);
    }
    let stats = Draft::new("vocab stats", scene.name("what is shared", system))
        .arg(run.folder.join("vocabulary"));
    let stats = planner.add(stats)?;
    planner.read(stats, Reader::Vocabulary, scene.seed, scene.factors(system, &[]));
    Ok(())
}
