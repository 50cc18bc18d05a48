//! Tasks trained in the source language and tested in the others: over an encoder, over one of its layers through a
//! map, and shifted.

use std::path::PathBuf;
use std::result::Result as StdResult;

use commands::align::Contexts;
use commands::measured::Extractor;
use commands::request::Request as _;
use commands::texts::TokenizerFlag;
use commands::transfer::Transfer;
use commands::word_align::WordAlignFlags;
use terms::{Scale, Task};

use super::shift::means;
use crate::record::Factors;
use crate::study::error::Result;
use crate::study::materials::{TaskFiles, TaskUse};
use crate::study::step::{CommandArg, StepDraft, StepId, StepList};
use crate::study::system_planner::{EvaluationContext, SystemPlanner};
use crate::study::systems::{EncoderPair, PlannedEncoder, PlannedSystem};

/// The layer at which the target is shifted, the sixth of twelve in Liu et al. 2020; it and all below are frozen.
fn shift_layer(depth: usize) -> usize {
    depth / 2
}

/// How fine-tuning is shortened where a scale does not take the papers' grid: the study's own flags or, without any, these.
fn finetuning(scene: &EvaluationContext<'_>, task: Task) -> Transfer {
    let mut request = Transfer { task: Some(task), ..Transfer::unset() };
    if scene.settings.transfer.is_empty() {
        request.grid.quick = scene.scale != Scale::Paper;
        request.data.limit = (scene.scale == Scale::Tiny).then_some(8000);
    }
    request
}

/// A transfer of a task over some source of vectors; none where files are missing.
fn transfer_draft(
    on: &mut SystemPlanner<'_, '_>,
    what: &str,
    (task, purpose): (Task, TaskUse),
    over: impl FnOnce(&mut Transfer),
) -> Option<StepDraft> {
    let scene = on.scene;
    let TaskFiles { parts, missing } = on.planner.found(scene.materials.task(task, purpose))?;
    missing.into_iter().for_each(|line| on.planner.leave_out(line));
    let draft = StepDraft::of(&finetuning(&scene, task), on.name(what))
        .kind(&format!("{} {}", task.name(), scene.scale))
        .args(scene.settings.transfer.clone());
    let draft = parts.iter().fold(draft, StepDraft::then);
    let mut request = Transfer { out: CommandArg::here("transfer").path(), ..Transfer::unset() };
    request.grid.seeds = vec![scene.seed];
    over(&mut request);
    Some(draft.then(&request).resumes("transfer"))
}

/// The factors of a task's scores. The source's score belongs to the first pair; the others' to their own.
fn task_factors(on: &SystemPlanner<'_, '_>, task: Task, more: &[(&str, &str)]) -> Factors {
    let pair = on.scene.materials.pair(&on.scene.materials.targets[0]);
    on.factors(&[&[("task", task.name()), ("pair", pair.as_str())], more].concat())
}

fn add_transfer(
    on: &mut SystemPlanner<'_, '_>,
    draft: StepDraft,
    task: Task,
    factors: Factors,
) -> Result<StepId> {
    let step = on.planner.add(draft)?;
    let reader = Extractor::Transfer { task, source: on.scene.materials.source.clone() };
    on.planner.read(step, reader, on.scene.seed, factors);
    Ok(step)
}

pub(in crate::study) fn transfer(
    on: &mut SystemPlanner<'_, '_>,
    made: &PlannedSystem,
    task: Task,
) -> Result<()> {
    let materials = on.scene.materials;
    if materials.is_paraphrased() || matches!(made, PlannedSystem::Encoders { one: false, .. }) {
        return Ok(());
    }
    let what = format!("transfer {}", task.name());
    let draft = transfer_draft(on, &what, (task, TaskUse::Transfer), |request| match made {
        PlannedSystem::Encoders { runs, .. } => {
            request.source.model = vec![runs[&materials.source].folder.held()];
        }
        PlannedSystem::Vectors(files) => {
            let named = files.iter().map(|(language, file)| file.named(language));
            request.source.vectors = named.collect();
        }
    });
    let Some(draft) = draft else { return Ok(()) };
    let factors = task_factors(on, task, &[]);
    add_transfer(on, draft, task, factors).map(drop)
}

/// NER and parsing trained over the source encoder's layer and tested over the target's: through a map learned from
/// aligned words of parallel text, and raw.
pub(super) fn align_contexts(on: &mut SystemPlanner<'_, '_>, made: &PlannedSystem) -> Result<()> {
    let source = &on.scene.materials.source;
    for target in &on.scene.materials.targets {
        let Some(encoders) = made.two_languages(on.scene.materials, target) else { continue };
        let materials = on.scene.materials.with_target(target);
        let on = &mut on.on(&materials);
        let maps = aligned_text(on, target, encoders)?;
        let Some(maps) = on.planner.found(maps) else { continue };
        let maps = StepList::made(on.planner.add(maps)?, "maps");
        for (task, layer, aligned) in combinations(&on.scene, made.layers()) {
            let how = if aligned { "aligned" } else { "raw" };
            let what = format!("{} over layer {layer}, {how}", task.name());
            let map = maps.join(&format!("layer-{layer}.npy"));
            let draft = transfer_draft(on, &what, (task, TaskUse::Transfer), |request| {
                request.source.feature_layer = Some(layer);
                let model =
                    |language, run: &PlannedEncoder| format!("{language}={}", run.folder.held());
                request.source.model =
                    vec![model(source, encoders.source), model(target, encoders.target)];
                request.source.map = if aligned { vec![map.named(target)] } else { Vec::new() };
            });
            let Some(draft) = draft else { continue };
            let mut factors = task_factors(on, task, &[("layer", &layer.to_string())]);
            if let Some(name) = factors.get_mut("system") {
                *name = match (name.as_str(), aligned) {
                    ("bilingual", false) => "bilingual".to_owned(),
                    (name, _) => format!("{name}-{how}"),
                };
            }
            add_transfer(on, draft.kind("above"), task, factors)?;
        }
    }
    Ok(())
}

/// Parallel text, word-aligned by a step of its own, from which the target's encoder is mapped onto the source's.
fn aligned_text(
    on: &mut SystemPlanner<'_, '_>,
    target: &str,
    EncoderPair { target: from, source: to }: EncoderPair<'_>,
) -> Result<StdResult<StepDraft, String>> {
    let (materials, source) = (on.scene.materials, on.scene.materials.source.as_str());
    let folders = |[a, b]: [&CommandArg; 2]| -> Vec<PathBuf> { vec![a.path(), b.path()] };
    let mut words =
        WordAlignFlags { out: Some(CommandArg::here("links").path()), ..WordAlignFlags::unset() };
    let mut maps = Contexts { out: CommandArg::here("maps").path(), ..Contexts::unset() };
    let name = on.name("map contextual word vectors");
    if materials.prepared() {
        words.parallel.parallel = match materials.train_sentences(target) {
            Ok(sentences) => sentences.named((target, source)),
            Err(line) => return Ok(Err(line)),
        };
        maps.models = folders([&from.folder, &to.folder]);
        maps.parallel.clone_from(&words.parallel.parallel);
        let aligning = format!("align words of parallel text, {target}, seed {}", on.scene.seed);
        let links = on.planner.add(StepDraft::of(&words, aligning))?;
        maps.links = StepList::made(links, "links").path();
        return Ok(Ok(StepDraft::of(&maps, name)));
    }
    let pair = materials.pair(target);
    words.parallel = match materials.parallel_text(target) {
        Ok(parallel) => parallel,
        Err(line) => return Ok(Err(line)),
    };
    words.tokenizer = Some(TokenizerFlag::Auto);
    words.allow_empty = true;
    words.prepared = Some(CommandArg::here("words").path());
    let links = StepDraft::of(&words, format!("align words of parallel text, {pair}"));
    let linked = StepList::made(on.planner.add(links.kind("real"))?, "");
    maps.models = folders([&to.folder, &from.folder]);
    maps.parallel = vec![linked.join("words").named(&pair)];
    maps.onto = Some(source.to_owned());
    maps.links = linked.join("links").path();
    Ok(Ok(StepDraft::of(&maps, name).kind("real")))
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
pub(super) fn shifted_transfer(on: &mut SystemPlanner<'_, '_>, made: &PlannedSystem) -> Result<()> {
    let Some((run, layers)) = made.shared_encoder(on.scene.materials) else { return Ok(()) };
    let means = means(on, run)?;
    let layer = shift_layer(layers);
    for task in on.scene.tasks(&[Task::Nli, Task::Ner, Task::Parse]) {
        let all = format!("transfer {}, all layers", task.name());
        let all = transfer_draft(on, &all, (task, TaskUse::Unshifted), |request| {
            request.source.model = vec![run.folder.held()];
        });
        let upper = format!("transfer {}, upper layers, shifted", task.name());
        let upper = transfer_draft(on, &upper, (task, TaskUse::Shift), |request| {
            request.source.model = vec![run.folder.held()];
            request.source.train_layers = Some(format!("{}-{layers}", layer + 1));
            request.shift.means = Some(means.path());
            request.shift.shift_layer = Some(layer);
        });
        let (Some(all), Some(upper)) = (all, upper) else { continue };
        let factors = task_factors(on, task, &[("row", "all-layers")]);
        add_transfer(on, all, task, factors)?;
        let step = on.planner.add(upper)?;
        let factors = task_factors(on, task, &[]);
        let reader = Extractor::ShiftedTransfer { task, source: on.scene.materials.source.clone() };
        on.planner.read(step, reader, on.scene.seed, factors);
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
pub(super) fn reinit_transfer(on: &mut SystemPlanner<'_, '_>, made: &PlannedSystem) -> Result<()> {
    let Some((run, layers)) = made.shared_encoder(on.scene.materials) else { return Ok(()) };
    // All layers of an untrained encoder are new already.
    let parts = if on.system.preset == "untrained" { Vec::new() } else { parts(layers) };
    let turns = std::iter::once(("none".to_owned(), None));
    let turns: Vec<_> =
        turns.chain((1..).zip(parts).map(|(part, new)| (part.to_string(), Some(new)))).collect();
    for task in on.scene.tasks(&[Task::Nli, Task::Ner, Task::Parse, Task::Pos]) {
        for (part, new) in &turns {
            let what = match new {
                Some(layers) => format!("transfer {}, new layers {layers}", task.name()),
                None => format!("transfer {}", task.name()),
            };
            let draft = transfer_draft(on, &what, (task, TaskUse::Transfer), |request| {
                request.source.model = vec![run.folder.held()];
                request.source.reinit_layers.clone_from(new);
            });
            let Some(draft) = draft else { continue };
            let factors = task_factors(on, task, &[("new_part", part)]);
            add_transfer(on, draft, task, factors)?;
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
