//! Tasks trained in the source language and tested in the others: over an encoder, over one of its layers through a
//! map, and shifted.

use terms::{Scale, Task};

use super::shift::means;
use super::two_languages;
use crate::record::Factors;
use crate::study::error::Result;
use crate::study::extraction::Extractor;
use crate::study::file::System;
use crate::study::plan::{EvaluationContext, StudyPlanner};
use crate::study::step::{CommandArg, StepDraft, StepId, StepList};
use crate::study::systems::{PlannedEncoder, PlannedSystem};

/// The layer at which the target is shifted; it and all below are frozen.
fn shift_layer(scene: &EvaluationContext<'_>) -> usize {
    scene.layers() / 2
}

/// A transfer without the flags of its model.
fn transfer_draft(scene: &EvaluationContext<'_>, name: String, task: Task) -> StepDraft {
    let flags = match (scene.settings.transfer.as_slice(), scene.scale) {
        ([], Scale::Tiny) => ["--quick", "--limit", "8000"].map(str::to_owned).to_vec(),
        ([], Scale::Small) => vec!["--quick".to_owned()],
        (flags, _) => flags.to_vec(),
    };
    StepDraft::new("transfer", name)
        .kind(&format!("{} {}", task.name(), scene.scale))
        .flag("--task", task.name())
        .args(flags)
        .args(scene.materials.task(task))
        .flag("--seeds", scene.seed.to_string())
}

/// The factors of a task's scores. The source's score belongs to the first pair; the others' to their own.
fn task_factors(
    scene: &EvaluationContext<'_>,
    system: &System,
    task: Task,
    row: Option<&str>,
) -> Factors {
    let pair = scene.materials.pair(&scene.materials.targets[0]);
    let mut more = vec![("task", task.name()), ("pair", pair.as_str())];
    more.extend(row.map(|row| ("row", row)));
    scene.factors(system, &more)
}

/// Completes a transfer, adds it and records its scores.
fn add_transfer(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    draft: StepDraft,
    task: Task,
    factors: Factors,
) -> Result<StepId> {
    let step =
        planner.add(draft.flag("--out", CommandArg::here("transfer")).resumes("transfer"))?;
    let reader = Extractor::Transfer { task, source: scene.materials.source.clone() };
    planner.read(step, reader, scene.seed, factors);
    Ok(step)
}

/// Zero-shot transfer of a task.
pub(in crate::study) fn transfer(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    made: &PlannedSystem,
    task: Task,
) -> Result<()> {
    let mut draft =
        transfer_draft(scene, scene.name(&format!("transfer {}", task.name()), system), task);
    match made {
        PlannedSystem::Encoders { one: false, .. } => return Ok(()),
        PlannedSystem::Encoders { runs, .. } => {
            draft = draft.flag("--model", runs[&scene.materials.source].folder.clone());
        }
        PlannedSystem::Vectors(files) => {
            for (language, file) in files {
                draft = draft.flag("--vectors", file.clone().after(&format!("{language}=")));
            }
        }
    }
    let factors = task_factors(scene, system, task, None);
    add_transfer(planner, scene, draft, task, factors).map(drop)
}

/// NER and parsing trained over the source encoder's layer and tested over the target's: through a map learned from
/// aligned words of parallel text, and raw.
pub(in crate::study) fn align_contexts(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    made: &PlannedSystem,
) -> Result<()> {
    let source = &scene.materials.source;
    for target in scene.materials.targets.iter().take(1) {
        let Some((from, to)) = two_languages(made, scene, target) else { continue };
        let maps =
            StepDraft::new("align contexts", scene.name("map contextual word vectors", system));
        let maps = aligned_text(planner, scene, maps, (target, from, to))?;
        let maps = planner.add(maps.flag("--out", CommandArg::here("maps")))?;
        let maps = StepList::made(maps, "maps");
        for (task, layer, aligned) in combinations(scene) {
            let how = if aligned { "aligned" } else { "raw" };
            let name = format!("{} over layer {layer}, {how}", task.name());
            let mut draft = transfer_draft(scene, scene.name(&name, system), task)
                .kind("above")
                .flag("--feature-layer", layer.to_string())
                .flag("--model", to.folder.clone().after(&format!("{source}=")))
                .flag("--model", from.folder.clone().after(&format!("{target}=")));
            if aligned {
                let map = maps.join(&format!("layer-{layer}.npy"));
                draft = draft.flag("--map", map.after(&format!("{target}=")));
            }
            let mut factors = scene.factors(
                system,
                &[
                    ("task", task.name()),
                    ("layer", &layer.to_string()),
                    ("pair", &scene.materials.pair(target)),
                ],
            );
            if let Some(name) = factors.get_mut("system") {
                *name = match (name.as_str(), aligned) {
                    ("bilingual", false) => "bilingual".to_owned(),
                    (name, _) => format!("{name}-{how}"),
                };
            }
            add_transfer(planner, scene, draft, task, factors)?;
        }
    }
    Ok(())
}

/// Gives `align contexts` parallel text, word-aligned by a step of its own, and the encoders that read it: the target's
/// is mapped onto the source's.
fn aligned_text(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    maps: StepDraft,
    (target, from, to): (&str, &PlannedEncoder, &PlannedEncoder),
) -> Result<StepDraft> {
    let (materials, source) = (scene.materials, scene.materials.source.as_str());
    if materials.prepared() {
        let [foreign, own] = materials.train_sentences(target);
        let links = StepDraft::new(
            "word-align",
            format!("align words of parallel text, {target}, seed {}", scene.seed),
        )
        .flag("--parallel", foreign.clone().after(&format!("{target}=")))
        .flag("--parallel", own.clone().after(&format!("{source}=")))
        .flag("--out", CommandArg::here("links"));
        let links = StepList::made(planner.add(links)?, "links");
        return Ok(maps
            .flag("--model", from.folder.clone())
            .flag("--model", to.folder.clone())
            .flag("--parallel", foreign.after(&format!("{target}=")))
            .flag("--parallel", own.after(&format!("{source}=")))
            .flag("--links", links));
    }
    let pair = materials.pair(target);
    let links = StepDraft::new("word-align", format!("align words of parallel text, {pair}"))
        .kind("real")
        .args(materials.parallel_text(target))
        .flag("--tokenizer", "auto")
        .arg("--allow-empty")
        .flag("--prepared", CommandArg::here("words"))
        .flag("--out", CommandArg::here("links"));
    let linked = StepList::made(planner.add(links)?, "");
    Ok(maps
        .kind("real")
        .flag("--model", to.folder.clone())
        .flag("--model", from.folder.clone())
        .flag("--parallel", linked.join("words").after(&format!("{pair}=")))
        .flag("--onto", source)
        .flag("--links", linked.join("links")))
}

/// Every task at every chosen layer, aligned and raw.
fn combinations(scene: &EvaluationContext<'_>) -> Vec<(Task, usize, bool)> {
    let mut all = Vec::new();
    for task in [Task::Ner, Task::Parse] {
        for layer in scene.chosen_layers() {
            all.extend([(task, layer, true), (task, layer, false)]);
        }
    }
    all
}

/// Zero-shot transfer with the target's hidden states shifted towards the source's.
pub(in crate::study) fn shifted_transfer(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    made: &PlannedSystem,
) -> Result<()> {
    let PlannedSystem::Encoders { runs, one: true } = made else { return Ok(()) };
    let run = &runs[&scene.materials.source];
    let means = means(planner, scene, system, run)?;
    let layer = shift_layer(scene);
    for task in [Task::Nli, Task::Ner, Task::Parse] {
        let name = |row: &str| scene.name(&format!("transfer {}, {row}", task.name()), system);
        let all = transfer_draft(scene, name("all layers"), task);
        let all = all.flag("--model", run.folder.clone());
        let factors = task_factors(scene, system, task, Some("all-layers"));
        add_transfer(planner, scene, all, task, factors)?;
        let upper = transfer_draft(scene, name("upper layers, shifted"), task)
            .flag("--model", run.folder.clone())
            .flag("--train-layers", format!("{}-{}", layer + 1, scene.layers()))
            .flag("--means", means.clone())
            .flag("--shift-layer", layer.to_string())
            .args(scene.materials.target_dev(task));
        let upper = upper.flag("--out", CommandArg::here("transfer")).resumes("transfer");
        let step = planner.add(upper)?;
        let factors = task_factors(scene, system, task, None);
        let reader = Extractor::ShiftedTransfer { task, source: scene.materials.source.clone() };
        planner.read(step, reader, scene.seed, factors);
    }
    Ok(())
}
