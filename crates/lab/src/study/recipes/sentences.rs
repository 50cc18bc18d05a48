//! Translated sentences: whether they find one another, and how similar the layers are that hold them.

use super::{two_languages, two_runs};
use crate::study::error::Result;
use crate::study::file::System;
use crate::study::plan::{Planner, Scene};
use crate::study::readings::Reader;
use crate::study::step::{Arg, Draft, StepId, Steps};
use crate::study::systems::{Made, Run};

/// Plans a search for translations among sentences.
fn retrieve(
    planner: &mut Planner<'_>,
    scene: &Scene<'_>,
    system: &System,
    (target, from, to): (&str, &Run, &Run),
) -> Result<StepId> {
    let side = |run: &Run, file: Arg| file.after(&format!("{}=", run.language));
    let [test_a, test_b] = scene.materials.test_sentences(target);
    let [train_a, train_b] = scene.materials.train_sentences(target);
    let draft = Draft::new("retrieve", scene.name(&format!("find translations, {target}"), system))
        .flag("--model", from.folder.clone())
        .flag("--model", to.folder.clone())
        .flag("--text", side(from, test_a))
        .flag("--text", side(to, test_b))
        .flag("--train", side(from, train_a))
        .flag("--train", side(to, train_b));
    planner.add(draft)
}

/// Translations found among sentences, layer by layer.
pub(in crate::study) fn retrieval(
    planner: &mut Planner<'_>,
    scene: &Scene<'_>,
    system: &System,
    made: &Made,
) -> Result<()> {
    for target in &scene.materials.targets {
        let Some((from, to)) = two_languages(made, scene, target) else { continue };
        let step = retrieve(planner, scene, system, (target, from, to))?;
        let factors = scene.factors(system, &[("pair", &scene.materials.pair(target))]);
        planner.read(step, Reader::Retrieval, scene.seed, factors);
    }
    Ok(())
}

/// CKA of translated sentences, layer by layer, and whether it goes with retrieval.
pub(in crate::study) fn similarity(
    planner: &mut Planner<'_>,
    scene: &Scene<'_>,
    system: &System,
    made: &Made,
) -> Result<()> {
    for target in scene.materials.targets.iter().take(1) {
        let Some((from, to)) = two_runs(made, scene, target) else { continue };
        let sentences = scene.materials.test_sentences(target);
        let [foreign, own] = &sentences;
        let mut encode = |run: &Run| -> Result<Arg> {
            let text = if run.language == *target { foreign } else { own };
            let name = scene.name(&format!("encode {}", run.language), system);
            let draft = Draft::new("encode", name)
                .flag("--model", run.folder.clone())
                .flag("--lang", run.language.as_str())
                .flag("--text", text.clone())
                .flag("--out", Arg::here("states.npy"))
                .flag("--lengths", Arg::here("lengths"));
            Ok(Steps::made(planner.add(draft)?, ""))
        };
        let (a, b) = (encode(from)?, encode(to)?);
        let factors = scene.factors(system, &[("pair", &scene.materials.pair(target))]);
        let cka = |more: &str| {
            Draft::new("cka", scene.name(&format!("similarity{more}"), system))
                .arg(a.join("states.npy"))
                .arg(b.join("states.npy"))
        };
        let mut plain = cka("");
        if from.language != to.language {
            let found = retrieve(planner, scene, system, (target, from, to))?;
            plain = plain.flag("--curve", Steps::made(found, "result.json"));
        }
        let plain = planner.add(plain)?;
        planner.read(plain, Reader::Similarity { within: false }, scene.seed, factors.clone());
        let within = planner.add(cka(" within lengths").flag("--within", b.join("lengths")))?;
        planner.read(within, Reader::Similarity { within: true }, scene.seed, factors);
    }
    Ok(())
}
