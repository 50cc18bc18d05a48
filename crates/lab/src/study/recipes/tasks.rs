//! Tasks learned in one language and scored in the others: over an encoder, over one of its layers
//! through a map, and shifted.

use terms::Task;

use super::shift::means;
use super::two_languages;
use crate::record::Factors;
use crate::study::error::Result;
use crate::study::file::System;
use crate::study::plan::{Planner, Scene};
use crate::study::readings::Reader;
use crate::study::step::{Arg, Draft, StepId, Steps};
use crate::study::systems::{Made, Run};

/// The layer below which nothing learns where the target is shifted.
fn shift_layer(scene: &Scene<'_>) -> usize {
    scene.layers() / 2
}

/// A transfer before it is said where vectors come from.
fn transfer_draft(scene: &Scene<'_>, name: String, task: Task) -> Draft {
    let flags = match (scene.settings.transfer.as_slice(), scene.scale) {
        ([], "tiny") => ["--quick", "--first", "8000"].map(str::to_owned).to_vec(),
        ([], "small") => vec!["--quick".to_owned()],
        (flags, _) => flags.to_vec(),
    };
    Draft::new("transfer", name)
        .kind(&format!("{} {}", task.name(), scene.scale))
        .flag("--task", task.name())
        .args(flags)
        .args(scene.materials.task(task))
        .flag("--seeds", scene.seed.to_string())
}

/// The factors of a task's scores. The source's score is filed under the first pair; the others' under
/// their own.
fn task_factors(scene: &Scene<'_>, system: &System, task: Task, row: Option<&str>) -> Factors {
    let pair = scene.materials.pair(&scene.materials.targets[0]);
    let mut more = vec![("task", task.name()), ("pair", pair.as_str())];
    more.extend(row.map(|row| ("row", row)));
    scene.factors(system, &more)
}

/// Ends a transfer, adds it and files its scores.
fn add_transfer(
    planner: &mut Planner<'_>,
    scene: &Scene<'_>,
    draft: Draft,
    task: Task,
    factors: Factors,
) -> Result<StepId> {
    let step = planner.add(draft.flag("--out", Arg::here("transfer")).resumes("transfer"))?;
    let reader = Reader::Transfer { task, source: scene.materials.source.clone() };
    planner.read(step, reader, scene.seed, factors);
    Ok(step)
}

/// Zero-shot transfer of a task.
pub(in crate::study) fn transfer(
    planner: &mut Planner<'_>,
    scene: &Scene<'_>,
    system: &System,
    made: &Made,
    task: Task,
) -> Result<()> {
    let mut draft =
        transfer_draft(scene, scene.name(&format!("transfer {}", task.name()), system), task);
    match made {
        Made::Encoders { one: false, .. } => return Ok(()),
        Made::Encoders { runs, .. } => {
            draft = draft.flag("--model", runs[&scene.materials.source].folder.clone());
        }
        Made::Vectors(files) => {
            for (language, file) in files {
                draft = draft.flag("--vectors", file.clone().after(&format!("{language}=")));
            }
        }
    }
    let factors = task_factors(scene, system, task, None);
    add_transfer(planner, scene, draft, task, factors).map(drop)
}

/// Entities and dependencies learned over one language's layer, and applied to the other's: mapped
/// by what linked words of translations teach, and as it is.
pub(in crate::study) fn contexts(
    planner: &mut Planner<'_>,
    scene: &Scene<'_>,
    system: &System,
    made: &Made,
) -> Result<()> {
    let source = &scene.materials.source;
    for target in scene.materials.targets.iter().take(1) {
        let Some((from, to)) = two_languages(made, scene, target) else { continue };
        let maps = Draft::new("align contexts", scene.name("map words in context", system));
        let maps = linked_text(planner, scene, maps, (target, from, to))?;
        let maps = planner.add(maps.flag("--out", Arg::here("maps")))?;
        let maps = Steps::made(maps, "maps");
        for (task, layer, mapped) in combinations(scene) {
            let how = if mapped { "mapped" } else { "unmapped" };
            let name = format!("{} over layer {layer}, {how}", task.name());
            let mut draft = transfer_draft(scene, scene.name(&name, system), task)
                .kind("above")
                .flag("--feature-layer", layer.to_string())
                .flag("--model", to.folder.clone().after(&format!("{source}=")))
                .flag("--model", from.folder.clone().after(&format!("{target}=")));
            if mapped {
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
                *name = match (name.as_str(), mapped) {
                    ("bilingual", false) => "bilingual".to_owned(),
                    (name, _) => format!("{name}-{how}"),
                };
            }
            add_transfer(planner, scene, draft, task, factors)?;
        }
    }
    Ok(())
}

/// Tells `align contexts` of parallel text whose words are linked by a step of their own, and of the
/// encoders that read it: the target's is mapped onto the source's.
fn linked_text(
    planner: &mut Planner<'_>,
    scene: &Scene<'_>,
    maps: Draft,
    (target, from, to): (&str, &Run, &Run),
) -> Result<Draft> {
    let (materials, source) = (scene.materials, scene.materials.source.as_str());
    if materials.prepared() {
        let [foreign, own] = materials.train_sentences(target);
        let links = Draft::new("word-align", format!("link words, {target}, seed {}", scene.seed))
            .flag("--source", foreign.clone())
            .flag("--target", own.clone())
            .flag("--out", Arg::here("links"));
        let links = Steps::made(planner.add(links)?, "links");
        return Ok(maps
            .flag("--model", from.folder.clone())
            .flag("--model", to.folder.clone())
            .flag("--text", foreign.after(&format!("{target}=")))
            .flag("--text", own.after(&format!("{source}=")))
            .flag("--links", links));
    }
    let pair = materials.pair(target);
    let links = Draft::new("word-align", format!("link words, {pair}"))
        .kind("real")
        .args(materials.parallel_text(target))
        .flag("--lang", source)
        .flag("--lang", target)
        .arg("--allow-empty")
        .flag("--prepared", Arg::here("words"))
        .flag("--out", Arg::here("links"));
    let linked = Steps::made(planner.add(links)?, "");
    Ok(maps
        .kind("real")
        .flag("--model", to.folder.clone())
        .flag("--model", from.folder.clone())
        .flag("--pairs", linked.join("words").after(&format!("{pair}=")))
        .flag("--onto", source)
        .flag("--links", linked.join("links")))
}

/// Every task at every chosen layer, mapped and not.
fn combinations(scene: &Scene<'_>) -> Vec<(Task, usize, bool)> {
    let mut all = Vec::new();
    for task in [Task::Ner, Task::Parse] {
        for layer in scene.chosen_layers() {
            all.extend([(task, layer, true), (task, layer, false)]);
        }
    }
    all
}

/// Tasks transferred with the target's states shifted towards the source's.
pub(in crate::study) fn shifted_transfer(
    planner: &mut Planner<'_>,
    scene: &Scene<'_>,
    system: &System,
    made: &Made,
) -> Result<()> {
    let Made::Encoders { runs, one: true } = made else { return Ok(()) };
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
        let upper = upper.flag("--out", Arg::here("transfer")).resumes("transfer");
        let step = planner.add(upper)?;
        let factors = task_factors(scene, system, task, None);
        let reader = Reader::ShiftedTransfer { task, source: scene.materials.source.clone() };
        planner.read(step, reader, scene.seed, factors);
    }
    Ok(())
}
