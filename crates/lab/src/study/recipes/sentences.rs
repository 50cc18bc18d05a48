//! Parallel sentences: retrieval, and similarity of layers.

use std::rc::Rc;

use super::{two_languages, two_runs};
use crate::study::error::Result;
use crate::study::extraction::Extractor;
use crate::study::file::System;
use crate::study::materials::ParallelFiles;
use crate::study::plan::{EvaluationContext, StudyPlanner};
use crate::study::step::{CommandArg, StepDraft, StepId, StepList};
use crate::study::systems::{PlannedEncoder, PlannedSystem};

/// Plans sentence retrieval; none where files are missing.
fn retrieve(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    (target, from, to): (&str, &PlannedEncoder, &PlannedEncoder),
) -> Result<Option<StepId>> {
    let test = scene.materials.test_sentences(target);
    let test = scene.comparable(planner, (target, "length (retrieval)"), test)?;
    let Some(test) = test else { return Ok(None) };
    let languages = (from.language.as_str(), to.language.as_str());
    let [first, second] = test.models(from, to);
    let mut draft = StepDraft::new("retrieve", scene.name(&format!("retrieve, {target}"), system))
        .flag("--model", first.folder.clone())
        .flag("--model", second.folder.clone())
        .args(test.flags("--parallel", languages));
    // Without other sentences there is no map, and the rest can be measured all the same.
    let train = scene.materials.train_sentences(target);
    if let Some(train) = scene.comparable(planner, (target, "length (map)"), train)? {
        draft = draft.args(train.flags("--train", languages)).args(train.columns());
    }
    planner.add(draft).map(Some)
}

pub(in crate::study) fn retrieval(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    made: &PlannedSystem,
) -> Result<()> {
    for target in &scene.materials.targets {
        let Some((from, to)) = two_languages(made, scene, target) else { continue };
        let Some(step) = retrieve(planner, scene, system, (target, from, to))? else { continue };
        let factors = scene.factors(system, &[("pair", &scene.materials.pair(target))]);
        planner.read(step, Extractor::Retrieval, scene.seed, factors);
    }
    Ok(())
}

/// A command that compares the layers of two encoders on parallel sentences; none where files are missing.
fn comparison(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    (verb, name): (&str, String),
    (target, from, to): (&str, &PlannedEncoder, &PlannedEncoder),
) -> Result<Option<StepDraft>> {
    let Some(sentences) = compared(planner, scene, target)? else { return Ok(None) };
    let [first, second] = sentences.models(from, to);
    let languages = (from.language.as_str(), to.language.as_str());
    let draft = StepDraft::new(verb, name)
        .flag("--model", first.folder.clone())
        .flag("--model", second.folder.clone())
        .args(sentences.flags("--parallel", languages))
        .args(sentences.columns());
    Ok(Some(draft))
}

/// The sentences whose hidden states are compared; none where files are missing.
pub(super) fn compared(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    target: &str,
) -> Result<Option<Rc<ParallelFiles>>> {
    let sentences = scene.materials.compared_sentences(target);
    scene.comparable(planner, (target, "length (comparison)"), sentences)
}

/// Every measure of similarity of parallel sentences, layer by layer. Intervals are over seeds.
pub(in crate::study) fn similarity_measures(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    made: &PlannedSystem,
) -> Result<()> {
    for target in &scene.materials.targets {
        let Some((from, to)) = two_runs(made, scene, target) else { continue };
        let name = ("similarity", scene.name(&format!("similarity, {target}"), system));
        let draft = comparison(planner, scene, name, (target, from, to))?;
        let Some(draft) = draft else { continue };
        let step = planner.add(draft.flag("--subsamples", "0"))?;
        let factors = scene.factors(system, &[("pair", &scene.materials.pair(target))]);
        planner.read(step, Extractor::Measures, scene.seed, factors);
    }
    Ok(())
}

/// A linear language-ID probe on translated sentences of one encoder, layer by layer.
pub(in crate::study) fn language_id(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    made: &PlannedSystem,
) -> Result<()> {
    let of = |target: &str| ("language-id", format!("language-ID, {target}"));
    of_both_languages(planner, scene, system, made, (of, Extractor::LanguageId))
}

/// Language-specific neurons of one encoder, and its predictions without them.
pub(in crate::study) fn language_neurons(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    made: &PlannedSystem,
) -> Result<()> {
    let of = |target: &str| ("language-neurons", format!("language-specific neurons, {target}"));
    of_both_languages(planner, scene, system, made, (of, Extractor::LanguageNeurons))
}

/// A command about the translated sentences of two languages in one encoder; two encoders would differ anyway.
fn of_both_languages(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    made: &PlannedSystem,
    (verb_and_name, extractor): (impl Fn(&str) -> (&'static str, String), Extractor),
) -> Result<()> {
    if !matches!(made, PlannedSystem::Encoders { one: true, .. }) {
        return Ok(());
    }
    for target in &scene.materials.targets {
        let Some((from, to)) = two_languages(made, scene, target) else { continue };
        let Some(sentences) = compared(planner, scene, target)? else { continue };
        let languages = (from.language.as_str(), to.language.as_str());
        let (verb, name) = verb_and_name(target);
        let draft = StepDraft::new(verb, scene.name(&name, system))
            .flag("--model", from.folder.clone())
            .args(sentences.flags("--text", languages))
            .args(sentences.columns());
        let step = planner.add(draft)?;
        let factors = scene.factors(system, &[("pair", &scene.materials.pair(target))]);
        planner.read(step, extractor.clone(), scene.seed, factors);
    }
    Ok(())
}

/// CKA of parallel sentences (Kornblith et al. 2019), layer by layer, and its correlation with retrieval.
pub(in crate::study) fn similarity(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    made: &PlannedSystem,
) -> Result<()> {
    for target in &scene.materials.targets {
        let Some((from, to)) = two_runs(made, scene, target) else { continue };
        let name = ("cka", scene.name(&format!("CKA, {target}"), system));
        let draft = comparison(planner, scene, name, (target, from, to))?;
        let Some(mut draft) = draft else { continue };
        if !scene.materials.is_paraphrased()
            && let Some(found) = retrieve(planner, scene, system, (target, from, to))?
        {
            draft = draft.flag("--curve", StepList::made(found, "result.json"));
        }
        let step = planner.add(draft)?;
        let factors = scene.factors(system, &[("pair", &scene.materials.pair(target))]);
        planner.read(step, Extractor::Similarity, scene.seed, factors);
    }
    Ok(())
}

/// Translation pairs mined between two texts that share their training sentences while each has others of its own, at each of
/// the chosen layers.
pub(in crate::study) fn mining(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    made: &PlannedSystem,
) -> Result<()> {
    let PlannedSystem::Encoders { one: true, layers, .. } = made else { return Ok(()) };
    for target in &scene.materials.targets {
        let Some((_, run)) = two_languages(made, scene, target) else { continue };
        let Some(texts) = planner.found(scene.materials.mined_text(target)) else { continue };
        for layer in scene.chosen_layers(*layers) {
            let (layer, pair) = (layer.to_string(), scene.materials.pair(target));
            let name = scene.name(&format!("mine, layer {layer}, {target}"), system);
            let draft = StepDraft::new("mine", name)
                .flag("--model", run.folder.clone())
                .args(texts.clone())
                .flag("--layers", &*layer)
                .arg("--center")
                .flag("--out", CommandArg::here("pairs.tsv"));
            let step = planner.add(draft)?;
            let factors = scene.factors(system, &[("pair", &pair), ("layer", &layer)]);
            planner.read(step, Extractor::Mining, scene.seed, factors);
        }
    }
    Ok(())
}
