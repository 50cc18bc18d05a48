//! Word translation, after Procrustes alignment and without a map.

use super::two_languages;
use crate::study::error::Result;
use crate::study::extraction::Extractor;
use crate::study::file::{System, SystemKind};
use crate::study::plan::{EvaluationContext, StudyPlanner};
use crate::study::step::{CommandArg, StepDraft, StepList};
use crate::study::systems::{PlannedEncoder, PlannedSystem, words_of};

/// Plans the contextual vectors of a language's words, averaged, at every layer.
fn word_means(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    run: &PlannedEncoder,
) -> Result<CommandArg> {
    let name = scene.name(&format!("words of {} in context", run.language), system);
    let draft = StepDraft::new("words", name)
        .kind(scene.scale.name())
        .flag("--model", run.folder.clone())
        .args(words_of(scene, &run.language))
        .flag("--out", CommandArg::here("words"));
    Ok(StepList::made(planner.add(draft)?, "words"))
}

/// The layer, and the word vectors of a target and of the source.
type WordFiles = (Option<String>, CommandArg, CommandArg);

/// Plans the word vectors of a target and of the source: one pair of files, or one for each layer.
fn word_files(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    made: &PlannedSystem,
    target: &str,
) -> Result<Vec<WordFiles>> {
    if let PlannedSystem::Vectors(vectors) = made {
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

/// Plans the rows of the embedding table that are whole words.
fn embeddings(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    run: &PlannedEncoder,
) -> Result<CommandArg> {
    let name = scene.name(&format!("embeddings of {}", run.language), system);
    let draft = StepDraft::new("words", name)
        .kind("embeddings")
        .flag("--model", run.folder.clone())
        .flag("--lang", run.language.as_str())
        .arg("--embeddings")
        .flag("--out", CommandArg::here("words.vec"));
    Ok(StepList::made(planner.add(draft)?, "words.vec"))
}

/// Word translation by an orthogonal map learned from a dictionary: of averaged contextual vectors at each layer and, of
/// separately trained encoders, of their embedding tables.
pub(in crate::study) fn align_words(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    made: &PlannedSystem,
) -> Result<()> {
    for target in &scene.materials.targets {
        for (layer, from, to) in word_files(planner, scene, system, made, target)? {
            align(planner, scene, system, target, (layer, from, to))?;
        }
        if system.model == SystemKind::Monolingual
            && let Some((from, to)) = two_languages(made, scene, target)
        {
            let from = embeddings(planner, scene, system, from)?;
            let to = embeddings(planner, scene, system, to)?;
            let mut table = system.clone();
            table.factors.insert("system".to_owned(), "embeddings".to_owned());
            align(planner, scene, &table, target, (None, from, to))?;
        }
    }
    Ok(())
}

fn align(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    target: &str,
    (layer, from, to): WordFiles,
) -> Result<()> {
    let at = layer.as_ref().map_or(String::new(), |layer| format!(", layer {layer}"));
    let draft = StepDraft::new("align words", scene.name(&format!("align words{at}"), system))
        .flag("--source", from)
        .flag("--target", to)
        .flag("--dictionary", scene.materials.dictionary(target, "0-5000"))
        .flag("--test-dictionary", scene.materials.dictionary(target, "5000-6500"));
    let step = planner.add(draft)?;
    let pair = scene.materials.pair(target);
    let mut more = vec![("pair", pair.as_str()), ("retrieval", "csls")];
    more.extend(layer.iter().map(|layer| ("layer", layer.as_str())));
    planner.read(step, Extractor::AlignWords, scene.seed, scene.factors(system, &more));
    Ok(())
}

/// Word translation without a map, among the words of the dictionary: of averaged contextual vectors at the middle
/// layer, or of static vectors.
pub(in crate::study) fn word_retrieval(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    made: &PlannedSystem,
) -> Result<()> {
    for target in &scene.materials.targets {
        let files = word_files(planner, scene, system, made, target)?;
        let middle = files.len() / 2;
        let Some((_, from, to)) = files.into_iter().nth(middle) else { continue };
        let name = scene.name(&format!("word retrieval, {target}"), system);
        let draft = StepDraft::new("align words", name)
            .flag("--source", from)
            .flag("--target", to)
            .flag("--init", "none")
            .flag("--normalize", "none")
            .flag("--retrieval", "nn")
            .flag("--test-dictionary", scene.materials.dictionary(target, "5000-6500"));
        let step = planner.add(draft)?;
        let pair = scene.materials.pair(target);
        let factors = scene.factors(system, &[("language", target), ("pair", &pair)]);
        planner.read(step, Extractor::WordRetrieval, scene.seed, factors);
    }
    Ok(())
}
