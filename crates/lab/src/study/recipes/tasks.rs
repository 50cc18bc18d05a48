//! Tasks trained in the source language and tested in the others: over an encoder, over one of its layers through a
//! map, and shifted.

use terms::{Scale, Task};

use super::shift::means;
use super::two_languages;
use crate::record::Factors;
use crate::study::error::Result;
use crate::study::file::System;
use crate::study::materials::{TaskFiles, TaskUse};
use crate::study::plan::{EvaluationContext, StudyPlanner};
use crate::study::step::{CommandArg, StepDraft, StepId, StepList};
use crate::study::systems::{PlannedEncoder, PlannedSystem};
use commands::measured::Extractor;

/// The layer at which the target is shifted, the sixth of twelve in Liu et al. 2020; it and all below are frozen.
fn shift_layer(depth: usize) -> usize {
    depth / 2
}

/// How fine-tuning is shortened where a scale does not take the papers' grid.
fn finetuning(scene: &EvaluationContext<'_>) -> Vec<String> {
    let words = |words: &str| words.split(' ').map(str::to_owned).collect();
    match (scene.settings.transfer.as_slice(), scene.scale) {
        ([], Scale::Tiny) => words("--quick --limit 8000"),
        ([], Scale::Small) => words("--quick"),
        (flags, _) => flags.to_vec(),
    }
}

/// A transfer without the flags of its model; none where files are missing.
fn transfer_draft(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    what: &str,
    (task, purpose): (Task, TaskUse),
) -> Option<StepDraft> {
    let TaskFiles { flags, missing } = planner.found(scene.materials.task(task, purpose))?;
    missing.into_iter().for_each(|line| planner.leave_out(line));
    Some(
        StepDraft::new("transfer", scene.name(what, system))
            .kind(&format!("{} {}", task.name(), scene.scale))
            .flag("--task", task.name())
            .args(finetuning(scene))
            .args(flags)
            .flag("--seeds", scene.seed.to_string()),
    )
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

pub(in crate::study) fn transfer(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    made: &PlannedSystem,
    task: Task,
) -> Result<()> {
    if scene.materials.is_paraphrased()
        || matches!(made, PlannedSystem::Encoders { one: false, .. })
    {
        return Ok(());
    }
    let what = format!("transfer {}", task.name());
    let draft = transfer_draft(planner, scene, system, &what, (task, TaskUse::Transfer));
    let Some(mut draft) = draft else { return Ok(()) };
    match made {
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
    for target in &scene.materials.targets {
        let Some((from, to)) = two_languages(made, scene, target) else { continue };
        let materials = scene.materials.with_target(target);
        let scene = &EvaluationContext { materials: &materials, ..*scene };
        let maps =
            StepDraft::new("align contexts", scene.name("map contextual word vectors", system));
        let maps = aligned_text(planner, scene, maps, (target, from, to))?;
        let Some(maps) = planner.found(maps) else { continue };
        let maps = planner.add(maps.flag("--out", CommandArg::here("maps")))?;
        let maps = StepList::made(maps, "maps");
        for (task, layer, aligned) in combinations(scene, made.layers()) {
            let how = if aligned { "aligned" } else { "raw" };
            let what = format!("{} over layer {layer}, {how}", task.name());
            let draft = transfer_draft(planner, scene, system, &what, (task, TaskUse::Transfer));
            let Some(mut draft) = draft else { continue };
            draft = draft
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
) -> Result<std::result::Result<StepDraft, String>> {
    let (materials, source) = (scene.materials, scene.materials.source.as_str());
    if materials.prepared() {
        let sentences = match materials.train_sentences(target) {
            Ok(sentences) => sentences.flags("--parallel", (target, source)),
            Err(line) => return Ok(Err(line)),
        };
        let links = StepDraft::new(
            "word-align",
            format!("align words of parallel text, {target}, seed {}", scene.seed),
        )
        .args(sentences.clone())
        .flag("--out", CommandArg::here("links"));
        let links = StepList::made(planner.add(links)?, "links");
        return Ok(Ok(maps
            .flag("--model", from.folder.clone())
            .flag("--model", to.folder.clone())
            .args(sentences)
            .flag("--links", links)));
    }
    let pair = materials.pair(target);
    let parallel = match materials.parallel_text(target) {
        Ok(parallel) => parallel,
        Err(line) => return Ok(Err(line)),
    };
    let links = StepDraft::new("word-align", format!("align words of parallel text, {pair}"))
        .kind("real")
        .args(parallel)
        .flag("--tokenizer", "auto")
        .arg("--allow-empty")
        .flag("--prepared", CommandArg::here("words"))
        .flag("--out", CommandArg::here("links"));
    let linked = StepList::made(planner.add(links)?, "");
    Ok(Ok(maps
        .kind("real")
        .flag("--model", to.folder.clone())
        .flag("--model", from.folder.clone())
        .flag("--parallel", linked.join("words").after(&format!("{pair}=")))
        .flag("--onto", source)
        .flag("--links", linked.join("links"))))
}

/// Every task at every chosen layer, aligned and raw.
fn combinations(scene: &EvaluationContext<'_>, depth: usize) -> Vec<(Task, usize, bool)> {
    let mut all = Vec::new();
    for task in scene.tasks(&[Task::Ner, Task::Parse]) {
        for layer in scene.chosen_layers(depth) {
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
    let Some((run, layers)) = made.shared_encoder(scene) else { return Ok(()) };
    let means = means(planner, scene, system, run)?;
    let layer = shift_layer(layers);
    for task in scene.tasks(&[Task::Nli, Task::Ner, Task::Parse]) {
        let mut draft = |row: &str, purpose: TaskUse| {
            let what = format!("transfer {}, {row}", task.name());
            let draft = transfer_draft(planner, scene, system, &what, (task, purpose))?;
            Some(draft.flag("--model", run.folder.clone()))
        };
        let all = draft("all layers", TaskUse::Unshifted);
        let upper = draft("upper layers, shifted", TaskUse::Shift);
        let (Some(all), Some(upper)) = (all, upper) else { continue };
        let factors = task_factors(scene, system, task, Some("all-layers"));
        add_transfer(planner, scene, all, task, factors)?;
        let upper = upper
            .flag("--train-layers", format!("{}-{layers}", layer + 1))
            .flag("--means", means.clone())
            .flag("--shift-layer", layer.to_string())
            .flag("--out", CommandArg::here("transfer"))
            .resumes("transfer");
        let step = planner.add(upper)?;
        let factors = task_factors(scene, system, task, None);
        let reader = Extractor::ShiftedTransfer { task, source: scene.materials.source.clone() };
        planner.read(step, reader, scene.seed, factors);
    }
    Ok(())
}

/// Into how many parts the layers are cut that begin anew by turns.
const PARTS: usize = 4;

/// The layers of each part of an encoder, from the lowest, as `--reinit-layers` takes them; fewer parts where there are fewer layers.
fn parts(depth: usize) -> Vec<String> {
    let parts = PARTS.min(depth);
    let bounds = |part: usize| (part * depth / parts + 1, (part + 1) * depth / parts);
    (0..parts)
        .map(bounds)
        .map(|(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        })
        .collect()
}

/// Zero-shot transfer of an encoder with a quarter of its layers re-initialised before fine-tuning, each in turn, and with none.
pub(in crate::study) fn reinit_transfer(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    made: &PlannedSystem,
) -> Result<()> {
    let Some((run, layers)) = made.shared_encoder(scene) else { return Ok(()) };
    // All layers of an untrained encoder are new already.
    let parts = if system.preset == "untrained" { Vec::new() } else { parts(layers) };
    for task in scene.tasks(&[Task::Nli, Task::Ner, Task::Parse, Task::Pos]) {
        let mut plan = |part: String, new: Option<&String>| -> Result<()> {
            let what = match new {
                Some(layers) => format!("transfer {}, new layers {layers}", task.name()),
                None => format!("transfer {}", task.name()),
            };
            let draft = transfer_draft(planner, scene, system, &what, (task, TaskUse::Transfer));
            let Some(mut draft) = draft else { return Ok(()) };
            draft = draft.flag("--model", run.folder.clone());
            if let Some(layers) = new {
                draft = draft.flag("--reinit-layers", layers.as_str());
            }
            let mut factors = task_factors(scene, system, task, None);
            factors.insert("new_part".to_owned(), part);
            add_transfer(planner, scene, draft, task, factors).map(drop)
        };
        plan("none".to_owned(), None)?;
        for (number, layers) in parts.iter().enumerate() {
            plan((number + 1).to_string(), Some(layers))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn layers_are_cut_into_quarters() {
        assert_eq!(parts(4), ["1", "2", "3", "4"]);
        assert_eq!(parts(8), ["1-2", "3-4", "5-6", "7-8"]);
        assert_eq!(parts(12), ["1-3", "4-6", "7-9", "10-12"]);
        assert_eq!(parts(6), ["1", "2-3", "4", "5-6"]);
        assert_eq!(parts(2), ["1", "2"]);
    }
}
