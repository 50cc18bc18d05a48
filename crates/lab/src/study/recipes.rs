//! The evaluations: which commands measure a system, and what of their results is filed.
//!
//! Each takes a system that is planned and adds its steps and readings; a system that an evaluation
//! cannot be made on (tasks on two encoders that know nothing of one another) is passed over.

use super::error::Result;
use super::file::{Model, System};
use super::materials::Task;
use super::plan::{Planner, Scene};
use super::readings::Reader;
use super::step::{Arg, Draft, StepId, Steps};
use super::systems::{Made, Run, words_of};
use crate::record::Factors;

/// The layer at which tokens are translated for all to see: that of paper 2, the tenth of twelve.
fn translating_layer(scene: &Scene<'_>) -> usize {
    scene.layers() * 5 / 6
}

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
    planner: &mut Planner,
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
pub(super) fn transfer(
    planner: &mut Planner,
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

/// The runs of a target and of the source, where the system is one of encoders.
fn two_runs<'a>(made: &'a Made, scene: &Scene<'_>, target: &str) -> Option<(&'a Run, &'a Run)> {
    let Made::Encoders { runs, .. } = made else { return None };
    Some((runs.get(target)?, &runs[&scene.materials.source]))
}

/// The same, where the target's run speaks the target's language.
fn two_languages<'a>(
    made: &'a Made,
    scene: &Scene<'_>,
    target: &str,
) -> Option<(&'a Run, &'a Run)> {
    let (from, to) = two_runs(made, scene, target)?;
    (from.language == target).then_some((from, to))
}

/// Plans a search for translations among sentences.
fn retrieve(
    planner: &mut Planner,
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
pub(super) fn retrieval(
    planner: &mut Planner,
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

/// Plans the vectors of a language's words at every layer.
fn word_means(planner: &mut Planner, scene: &Scene<'_>, system: &System, run: &Run) -> Result<Arg> {
    let name = scene.name(&format!("words of {} in context", run.language), system);
    let draft = Draft::new("words", name)
        .kind(scene.scale)
        .flag("--model", run.folder.clone())
        .args(words_of(scene, &run.language))
        .flag("--out", Arg::here("words"));
    Ok(Steps::made(planner.add(draft)?, "words"))
}

/// Vectors of a target's words and of the source's, and at which layer.
type WordFiles = (Option<String>, Arg, Arg);

/// Plans the vectors of words of a target and of the source: one pair of files, or one for each layer.
fn word_files(
    planner: &mut Planner,
    scene: &Scene<'_>,
    system: &System,
    made: &Made,
    target: &str,
) -> Result<Vec<WordFiles>> {
    if let Made::Vectors(vectors) = made {
        let source = vectors[&scene.materials.source].clone();
        return Ok(vec![(None, vectors[target].clone(), source)]);
    }
    let Some((from, to)) = two_languages(made, scene, target) else { return Ok(Vec::new()) };
    let from = word_means(planner, scene, system, from)?;
    let to = word_means(planner, scene, system, to)?;
    let layer = |layer: usize| {
        let file = format!("layer-{layer}.vec");
        (Some(layer.to_string()), from.join(&file), to.join(&file))
    };
    Ok((0..=scene.layers()).map(layer).collect())
}

/// Plans the rows of the embedding table that are words.
fn embeddings(planner: &mut Planner, scene: &Scene<'_>, system: &System, run: &Run) -> Result<Arg> {
    let name = scene.name(&format!("embeddings of {}", run.language), system);
    let draft = Draft::new("words", name)
        .kind("embeddings")
        .flag("--model", run.folder.clone())
        .flag("--lang", run.language.as_str())
        .arg("--embeddings")
        .flag("--out", Arg::here("words.vec"));
    Ok(Steps::made(planner.add(draft)?, "words.vec"))
}

/// Translations of words found after an orthogonal map was learned from a dictionary: of words in
/// context at each layer and, of encoders that never met, of their embedding tables.
pub(super) fn words(
    planner: &mut Planner,
    scene: &Scene<'_>,
    system: &System,
    made: &Made,
) -> Result<()> {
    for target in &scene.materials.targets {
        for (layer, from, to) in word_files(planner, scene, system, made, target)? {
            align_words(planner, scene, system, target, (layer, from, to))?;
        }
        if system.model == Model::Monolingual
            && let Some((from, to)) = two_languages(made, scene, target)
        {
            let from = embeddings(planner, scene, system, from)?;
            let to = embeddings(planner, scene, system, to)?;
            let mut table = system.clone();
            table.factors.insert("system".to_owned(), "embeddings".to_owned());
            align_words(planner, scene, &table, target, (None, from, to))?;
        }
    }
    Ok(())
}

fn align_words(
    planner: &mut Planner,
    scene: &Scene<'_>,
    system: &System,
    target: &str,
    (layer, from, to): WordFiles,
) -> Result<()> {
    let at = layer.as_ref().map_or(String::new(), |layer| format!(", layer {layer}"));
    let draft = Draft::new("align words", scene.name(&format!("align words{at}"), system))
        .flag("--source", from)
        .flag("--target", to)
        .flag("--train", scene.materials.dictionary(target, "0-5000"))
        .flag("--test", scene.materials.dictionary(target, "5000-6500"));
    let step = planner.add(draft)?;
    let pair = scene.materials.pair(target);
    let mut more = vec![("pair", pair.as_str()), ("retrieval", "csls")];
    more.extend(layer.iter().map(|layer| ("layer", layer.as_str())));
    planner.read(step, Reader::AlignedWords, scene.seed, scene.factors(system, &more));
    Ok(())
}

/// Translations of words found as vectors are, among those that the dictionary lists: the mean of
/// contexts at the middle layer, or static vectors.
pub(super) fn word_retrieval(
    planner: &mut Planner,
    scene: &Scene<'_>,
    system: &System,
    made: &Made,
) -> Result<()> {
    for target in &scene.materials.targets {
        let files = word_files(planner, scene, system, made, target)?;
        let middle = files.len() / 2;
        let Some((_, from, to)) = files.into_iter().nth(middle) else { continue };
        let name = scene.name(&format!("look words up, {target}"), system);
        let draft = Draft::new("align words", name)
            .flag("--source", from)
            .flag("--target", to)
            .flag("--start", "none")
            .flag("--normalize", "none")
            .flag("--retrieval", "nn")
            .flag("--test", scene.materials.dictionary(target, "5000-6500"));
        let step = planner.add(draft)?;
        let pair = scene.materials.pair(target);
        let factors = scene.factors(system, &[("language", target), ("pair", &pair)]);
        planner.read(step, Reader::WordRetrieval, scene.seed, factors);
    }
    Ok(())
}

/// CKA of translated sentences, layer by layer, and whether it goes with retrieval.
pub(super) fn similarity(
    planner: &mut Planner,
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

/// Entities and dependencies learned over one language's layer, and applied to the other's: mapped
/// by what linked words of translations teach, and as it is.
pub(super) fn contexts(
    planner: &mut Planner,
    scene: &Scene<'_>,
    system: &System,
    made: &Made,
) -> Result<()> {
    let source = &scene.materials.source;
    for target in scene.materials.targets.iter().take(1) {
        let Some((from, to)) = two_languages(made, scene, target) else { continue };
        let Some([foreign, own]) = scene.materials.linked_sentences(target) else { continue };
        let links = Draft::new("word-align", format!("link words, {target}, seed {}", scene.seed))
            .flag("--source", foreign.clone())
            .flag("--target", own.clone())
            .flag("--out", Arg::here("links"));
        let links = Steps::made(planner.add(links)?, "links");
        let maps = Draft::new("align contexts", scene.name("map words in context", system))
            .flag("--model", from.folder.clone())
            .flag("--model", to.folder.clone())
            .flag("--text", foreign.after(&format!("{target}=")))
            .flag("--text", own.after(&format!("{source}=")))
            .flag("--links", links)
            .flag("--out", Arg::here("maps"));
        let maps = Steps::made(planner.add(maps)?, "maps");
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

/// Plans the means of all languages of an encoder.
fn means(planner: &mut Planner, scene: &Scene<'_>, system: &System, run: &Run) -> Result<Arg> {
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
pub(super) fn shift(
    planner: &mut Planner,
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
            .flag("--parallel", own.clone().after(&format!("{}=", materials.source)))
            .flag("--parallel", foreign.clone().after(&format!("{target}=")))
            .flag("--dictionary", materials.whole_dictionary(target).after(&format!("{pair}=")))
            .flag("--alphas", "0,0.5,1,1.5,2,2.5,3");
        for kind in ["mean", "sharing", "bands", "without-4"] {
            sweep = sweep.flag("--kind", kind);
        }
        let sweep = planner.add(sweep)?;
        planner.read(sweep, Reader::Sweep, scene.seed, scene.factors(system, &[]));
        let layer = translating_layer(scene).to_string();
        let translate =
            Draft::new("shift translate", scene.name(&format!("translate, {pair}"), system))
                .flag("--model", run.folder.clone())
                .flag("--means", means.clone())
                .flag("--from", materials.source.as_str())
                .flag("--to", target.as_str())
                .flag("--layer", layer.as_str())
                .flag("--alpha", "0,1,2,3")
                .flag("--file", own)
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

/// Tasks transferred with the target's states shifted towards the source's.
pub(super) fn shifted_transfer(
    planner: &mut Planner,
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
