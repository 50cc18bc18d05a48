//! Words: whether translations are found, after a rotation and without one.

use super::two_languages;
use crate::study::error::Result;
use crate::study::file::{Model, System};
use crate::study::plan::{Planner, Scene};
use crate::study::readings::Reader;
use crate::study::step::{Arg, Draft, Steps};
use crate::study::systems::{Made, Run, words_of};

/// Plans the vectors of a language's words at every layer.
fn word_means(
    planner: &mut Planner<'_>,
    scene: &Scene<'_>,
    system: &System,
    run: &Run,
) -> Result<Arg> {
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
    planner: &mut Planner<'_>,
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
fn embeddings(
    planner: &mut Planner<'_>,
    scene: &Scene<'_>,
    system: &System,
    run: &Run,
) -> Result<Arg> {
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
pub(in crate::study) fn words(
    planner: &mut Planner<'_>,
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
    planner: &mut Planner<'_>,
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
pub(in crate::study) fn word_retrieval(
    planner: &mut Planner<'_>,
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
