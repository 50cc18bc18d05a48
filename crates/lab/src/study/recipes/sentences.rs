//! Parallel sentences: retrieval, and similarity of layers.

use std::path::PathBuf;
use std::rc::Rc;

use commands::cka::Cka;
use commands::language_id::LanguageId;
use commands::language_neurons::LanguageNeurons;
use commands::models::{Layers, ParallelTextFlags};
use commands::request::Request as _;
use commands::retrieve::Retrieve;
use commands::similarity::Similarity;
use commands::texts::{ColumnsFlag, RowFlags};

use super::{two_languages, two_runs};
use crate::study::error::Result;
use crate::study::file::System;
use crate::study::materials::ParallelFiles;
use crate::study::plan::{EvaluationContext, StudyPlanner};
use crate::study::step::{CommandArg, StepDraft, StepId, StepList};
use crate::study::systems::{PlannedEncoder, PlannedSystem};
use commands::measured::Extractor;

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
    let mut request = Retrieve { text: in_models(&test, from, to), ..Retrieve::unset() };
    // Without other sentences there is no map, and the rest can be measured all the same.
    let train = scene.materials.train_sentences(target);
    request.text.columns = ColumnsFlag::default();
    if let Some(train) = scene.comparable(planner, (target, "length (map)"), train)? {
        request.train = train.named(languages);
        request.text.columns = train.column_flag();
    }
    let name = scene.name(&format!("retrieve, {target}"), system);
    planner.add(StepDraft::of(&request, name)).map(Some)
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

/// Parallel sentences through the encoders of their languages.
fn in_models(
    sentences: &ParallelFiles,
    from: &PlannedEncoder,
    to: &PlannedEncoder,
) -> ParallelTextFlags {
    ParallelTextFlags {
        models: sentences.models(from, to).map(|run| run.folder.path()).into(),
        parallel: sentences.named((&from.language, &to.language)),
        columns: sentences.column_flag(),
        rows: RowFlags::default(),
    }
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
        let Some(sentences) = compared(planner, scene, target)? else { continue };
        let mut request = Similarity { subsamples: 0, ..Similarity::unset() };
        request.sides.text = in_models(&sentences, from, to);
        let name = scene.name(&format!("similarity, {target}"), system);
        let step = planner.add(StepDraft::of(&request, name))?;
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
    let draft = |target: &str, model: PathBuf, texts, columns| {
        let request = LanguageId { model: Some(model), texts, columns, ..LanguageId::unset() };
        StepDraft::of(&request, scene.name(&format!("language-ID, {target}"), system))
    };
    of_both_languages(planner, scene, system, made, (draft, Extractor::LanguageId))
}

/// Language-specific neurons of one encoder, and its predictions without them.
pub(in crate::study) fn language_neurons(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    made: &PlannedSystem,
) -> Result<()> {
    let draft = |target: &str, model: PathBuf, texts, columns| {
        let request = LanguageNeurons { model, texts, columns, ..LanguageNeurons::unset() };
        StepDraft::of(&request, scene.name(&format!("language-specific neurons, {target}"), system))
    };
    of_both_languages(planner, scene, system, made, (draft, Extractor::LanguageNeurons))
}

/// A command about the translated sentences of two languages in one encoder; two encoders would differ anyway.
fn of_both_languages(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    made: &PlannedSystem,
    (draft, extractor): (
        impl Fn(&str, PathBuf, Vec<(String, String)>, ColumnsFlag) -> StepDraft,
        Extractor,
    ),
) -> Result<()> {
    if !matches!(made, PlannedSystem::Encoders { one: true, .. }) {
        return Ok(());
    }
    for target in &scene.materials.targets {
        let Some((from, to)) = two_languages(made, scene, target) else { continue };
        let Some(sentences) = compared(planner, scene, target)? else { continue };
        let languages = (from.language.as_str(), to.language.as_str());
        let (texts, columns) = (sentences.named(languages), sentences.column_flag());
        let step = planner.add(draft(target, from.folder.path(), texts, columns))?;
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
        let Some(sentences) = compared(planner, scene, target)? else { continue };
        let mut request = Cka::unset();
        request.sides.text = in_models(&sentences, from, to);
        if !scene.materials.is_paraphrased()
            && let Some(found) = retrieve(planner, scene, system, (target, from, to))?
        {
            request.curve = Some(StepList::made(found, "result.json").path());
        }
        let name = scene.name(&format!("CKA, {target}"), system);
        let step = planner.add(StepDraft::of(&request, name))?;
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
        let Some(mut texts) = planner.found(scene.materials.mined_text(target)) else { continue };
        texts.models = vec![run.folder.path()];
        texts.center = true;
        texts.out = CommandArg::here("pairs.tsv").path();
        for layer in scene.chosen_layers(*layers) {
            let (number, pair) = (layer.to_string(), scene.materials.pair(target));
            let name = scene.name(&format!("mine, layer {layer}, {target}"), system);
            texts.layers = Some(Layers::one(layer));
            let step = planner.add(StepDraft::of(&texts, name))?;
            let factors = scene.factors(system, &[("pair", &pair), ("layer", &number)]);
            planner.read(step, Extractor::Mining, scene.seed, factors);
        }
    }
    Ok(())
}
