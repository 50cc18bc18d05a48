//! Word translation, after Procrustes alignment and without a map.

use commands::align::{Init, Retrieval, Words};
use commands::models::Normalize;
use commands::request::Request as _;

use super::two_languages;
use crate::study::error::Result;
use crate::study::file::{System, SystemKind};
use crate::study::materials::WordDictionaries;
use crate::study::plan::{EvaluationContext, StudyPlanner};
use crate::study::step::{CommandArg, StepDraft, StepList};
use crate::study::systems::{PlannedEncoder, PlannedSystem, words_of};
use commands::measured::Extractor;

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
    Ok((0..=made.layers()).map(layer).collect())
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
/// separately trained encoders, of their embedding tables. Each over its own vocabulary and over a common one, since a
/// larger vocabulary has more wrong candidates (Conneau et al. 2020 train fastText on BERT's vocabulary).
pub(in crate::study) fn align_words(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    made: &PlannedSystem,
) -> Result<()> {
    for target in &scene.materials.targets {
        let found = scene.materials.dictionaries(target, ["0-5000", "5000-6500"]);
        let Some(dictionaries) = planner.found(found) else { continue };
        let of_tables = common_words(planner, scene, target, SystemKind::Monolingual)?;
        for (layer, from, to) in word_files(planner, scene, system, made, target)? {
            let spaces = WordSpaces { target, layer, files: [from, to], common: of_tables.clone() };
            align(planner, scene, system, &dictionaries, &spaces)?;
        }
        if system.model == SystemKind::Monolingual
            && let Some((from, to)) = two_languages(made, scene, target)
        {
            let from = embeddings(planner, scene, system, from)?;
            let to = embeddings(planner, scene, system, to)?;
            let mut table = system.clone();
            table.factors.insert("system".to_owned(), "embeddings".to_owned());
            let common = common_words(planner, scene, target, SystemKind::Fasttext)?;
            let spaces = WordSpaces { target, layer: None, files: [from, to], common };
            align(planner, scene, &table, &dictionaries, &spaces)?;
        }
    }
    Ok(())
}

/// Word translation between all languages of three or more, each mapped into the space of the source: from dictionaries of
/// the source with each other language, and of neighbours among the others where there are some. The first and the last
/// of the others have none, and are tested all the same, each direction by its own test dictionary where it has one.
/// Contextual vectors are those of the middle layer.
pub(in crate::study) fn align_many(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    made: &PlannedSystem,
) -> Result<()> {
    let (materials, source) = (scene.materials, scene.materials.source.as_str());
    if materials.targets.len() < 2 {
        return Ok(());
    }
    let mut draft = StepDraft::new("align many", scene.name("align many", system));
    for (number, target) in materials.targets.iter().enumerate() {
        let files = word_files(planner, scene, system, made, target)?;
        let middle = files.len() / 2;
        let Some((_, of_target, of_source)) = files.into_iter().nth(middle) else { return Ok(()) };
        if number == 0 {
            draft = draft.flag("--vectors", of_source.after(&format!("{source}=")));
        }
        draft = draft.flag("--vectors", of_target.after(&format!("{target}=")));
        let found = materials.dictionaries(target, ["0-5000", "5000-6500"]);
        let Some(WordDictionaries { files: [train, test], reversed }) = planner.found(found) else {
            return Ok(());
        };
        let pair = if reversed { materials.pair(target) } else { format!("{target}-{source}") };
        draft = draft
            .flag("--dictionary", train.after(&format!("{pair}=")))
            .flag("--test-dictionary", test.after(&format!("{pair}=")));
        if let Some(test) = materials.opposite_test(target).filter(|_| !reversed) {
            let pair = format!("{}=", materials.pair(target));
            draft = draft.flag("--test-dictionary", test.after(&pair));
        }
    }
    for (number, one) in materials.targets.iter().enumerate() {
        for (distance, other) in materials.targets[number + 1..].iter().enumerate() {
            let train = materials.dictionary_of(one, other, "0-5000").filter(|_| distance == 0);
            if let Some(train) = train {
                draft = draft.flag("--dictionary", train.after(&format!("{one}-{other}=")));
            }
            for (from, to) in [(one, other), (other, one)] {
                if let Some(test) = materials.dictionary_of(from, to, "5000-6500") {
                    draft = draft.flag("--test-dictionary", test.after(&format!("{from}-{to}=")));
                }
            }
        }
    }
    let step = planner.add(draft.flag("--hub", source))?;
    planner.read(step, Extractor::AlignMany, scene.seed, scene.factors(system, &[]));
    Ok(())
}

/// The word vectors of the study's system of another kind, of a target and of the source, whose words are the common
/// vocabulary; none where the study has no such system. They are other steps of the same study.
fn common_words(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    target: &str,
    kind: SystemKind,
) -> Result<Option<[CommandArg; 2]>> {
    let systems = scene.study.systems.iter();
    let Some(other) = systems.clone().find(|system| system.model == kind).cloned() else {
        return Ok(None);
    };
    let made = PlannedSystem::plan(planner, scene, &other)?;
    if let PlannedSystem::Vectors(vectors) = &made {
        return Ok(Some([vectors[target].clone(), vectors[&scene.materials.source].clone()]));
    }
    let Some((from, to)) = two_languages(&made, scene, target) else { return Ok(None) };
    let from = embeddings(planner, scene, &other, from)?;
    Ok(Some([from, embeddings(planner, scene, &other, to)?]))
}

/// The word vectors of a target and of the source.
struct WordSpaces<'a> {
    target: &'a str,
    layer: Option<String>,
    files: [CommandArg; 2],
    /// Files with the words of the common vocabulary.
    common: Option<[CommandArg; 2]>,
}

/// The words of a dictionary looked up in vectors of a target and of the source.
fn looked_up([from, to]: [&CommandArg; 2], test: &CommandArg, reversed: bool) -> Words {
    let mut request = Words::unset();
    request.source = from.path();
    request.target = Some(to.path());
    request.test_dictionary = Some(test.path());
    request.reversed = reversed;
    request
}

/// Learns and tests a map, over each vocabulary.
fn align(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    WordDictionaries { files: [train, test], reversed }: &WordDictionaries<2>,
    WordSpaces { target, layer, files: [from, to], common }: &WordSpaces<'_>,
) -> Result<()> {
    let at = layer.as_ref().map_or(String::new(), |layer| format!(", layer {layer}"));
    let pair = scene.materials.pair(target);
    for common in std::iter::once(None).chain(common.as_ref().map(Some)) {
        let vocabulary = if common.is_some() { "common" } else { "own" };
        let name = scene.name(&format!("align words{at}, {vocabulary} vocabulary"), system);
        let mut request = looked_up([from, to], test, *reversed);
        request.dictionary = Some(train.path());
        if let Some([source, target]) = common {
            request.source_words = Some(source.path());
            request.target_words = Some(target.path());
        }
        let step = planner.add(StepDraft::of(&request, name))?;
        let mut more =
            vec![("pair", pair.as_str()), ("retrieval", "csls"), ("vocabulary", vocabulary)];
        more.extend(layer.iter().map(|layer| ("layer", layer.as_str())));
        planner.read(step, Extractor::AlignWords, scene.seed, scene.factors(system, &more));
    }
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
        let found = scene.materials.dictionaries(target, ["5000-6500"]);
        let Some(WordDictionaries { files: [test], reversed }) = planner.found(found) else {
            continue;
        };
        let files = word_files(planner, scene, system, made, target)?;
        let middle = files.len() / 2;
        let Some((_, from, to)) = files.into_iter().nth(middle) else { continue };
        let name = scene.name(&format!("word retrieval, {target}"), system);
        let mut request = looked_up([&from, &to], &test, reversed);
        request.init = Some(Init::None);
        request.normalize = vec![Normalize::None];
        request.retrieval = Retrieval::Nn;
        let step = planner.add(StepDraft::of(&request, name))?;
        let pair = scene.materials.pair(target);
        let factors = scene.factors(system, &[("language", target), ("pair", &pair)]);
        planner.read(step, Extractor::WordRetrieval, scene.seed, factors);
    }
    Ok(())
}

/// Words of the world's parallel text aligned from the hidden states of one encoder of both languages, by layer and
/// extraction, against the world's gold links; the IBM model and the diagonal are beside it.
pub(in crate::study) fn word_alignment(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    made: &PlannedSystem,
) -> Result<()> {
    let PlannedSystem::Encoders { one: true, .. } = made else { return Ok(()) };
    for target in &scene.materials.targets {
        let Some((_, run)) = two_languages(made, scene, target) else { continue };
        let Some((text, gold)) = planner.found(scene.materials.linked_text(target)) else {
            continue;
        };
        let pair = scene.materials.pair(target);
        let name = scene.name(&format!("align words by hidden states, {target}"), system);
        let draft = StepDraft::new("word-align", name)
            .kind("encoder")
            .flag("--model", run.folder.clone())
            .flag("--parallel", text.after(&format!("{pair}=")))
            .flag("--layers", "all")
            .flag("--extract", "argmax,itermax,softmax")
            .flag("--gold", gold)
            .on_device();
        let step = planner.add(draft)?;
        let factors = scene.factors(system, &[("pair", &pair)]);
        planner.read(step, Extractor::EncoderAlignment, scene.seed, factors);
    }
    Ok(())
}
