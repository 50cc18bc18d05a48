//! Word translation, after Procrustes alignment and without a map.

use commands::align::{Init, Many, Retrieval, Words};
use commands::measured::Extractor;
use commands::models::{Layers, Normalize};
use commands::request::Request as _;
use commands::word_align::{ExtractFlag, WordAlignFlags};
use commands::words::Words as WordVectors;

use crate::study::error::Result;
use crate::study::file::SystemKind;
use crate::study::materials::WordDictionaries;
use crate::study::step::{CommandArg, StepDraft, StepList};
use crate::study::system_planner::SystemPlanner;
use crate::study::systems::{PlannedEncoder, PlannedSystem, words_of};

/// Plans the contextual vectors of a language's words, averaged, at every layer.
fn word_means(on: &mut SystemPlanner<'_, '_>, run: &PlannedEncoder) -> Result<CommandArg> {
    let name = on.name(&format!("words of {} in context", run.language));
    let mut request = words_of(&on.scene, &run.language);
    request.model = run.folder.path();
    request.out = CommandArg::here("words").path();
    let draft = StepDraft::of(&request, name).kind(on.scene.scale.name());
    Ok(StepList::made(on.planner.add(draft)?, "words"))
}

/// The layer, and the word vectors of a target and of the source.
type WordFiles = (Option<String>, CommandArg, CommandArg);

/// Plans the word vectors of a target and of the source: one pair of files, or one for each layer.
fn word_files(
    on: &mut SystemPlanner<'_, '_>,
    made: &PlannedSystem,
    target: &str,
) -> Result<Vec<WordFiles>> {
    let materials = on.scene.materials;
    if let PlannedSystem::Vectors(vectors) = made {
        let source = vectors[&materials.source].clone();
        return Ok(vec![(None, vectors[target].clone(), source)]);
    }
    let Some(encoders) = made.two_languages(materials, target) else { return Ok(Vec::new()) };
    let from = word_means(on, encoders.target)?;
    let to = word_means(on, encoders.source)?;
    let layer = |layer: usize| {
        let file = format!("layer-{layer}.vec");
        (Some(layer.to_string()), from.join(&file), to.join(&file))
    };
    Ok((0..=made.layers()).map(layer).collect())
}

/// Plans the rows of the embedding table that are whole words.
fn embeddings(on: &mut SystemPlanner<'_, '_>, run: &PlannedEncoder) -> Result<CommandArg> {
    let name = on.name(&format!("embeddings of {}", run.language));
    let request = WordVectors {
        model: run.folder.path(),
        lang: Some(run.language.clone()),
        embeddings: true,
        out: CommandArg::here("words.vec").path(),
        ..WordVectors::unset()
    };
    let draft = StepDraft::of(&request, name).kind("embeddings");
    Ok(StepList::made(on.planner.add(draft)?, "words.vec"))
}

/// Word translation by an orthogonal map learned from a dictionary: of averaged contextual vectors at each layer and, of
/// separately trained encoders, of their embedding tables. Each over its own vocabulary and over a common one, since a
/// larger vocabulary has more wrong candidates (Conneau et al. 2020 train fastText on BERT's vocabulary).
pub(super) fn align_words(on: &mut SystemPlanner<'_, '_>, made: &PlannedSystem) -> Result<()> {
    let materials = on.scene.materials;
    for target in &materials.targets {
        let found = materials.dictionaries(target, ["0-5000", "5000-6500"]);
        let Some(dictionaries) = on.planner.found(found) else { continue };
        let of_tables = common_words(on, target, SystemKind::Monolingual)?;
        for (layer, from, to) in word_files(on, made, target)? {
            let spaces = WordSpaces { target, layer, files: [from, to], common: of_tables.clone() };
            align(on, &dictionaries, &spaces)?;
        }
        if on.system.model == SystemKind::Monolingual
            && let Some(encoders) = made.two_languages(materials, target)
        {
            let from = embeddings(on, encoders.target)?;
            let to = embeddings(on, encoders.source)?;
            let mut table = on.system.clone();
            table.factors.insert("system".to_owned(), "embeddings".to_owned());
            let common = common_words(on, target, SystemKind::Fasttext)?;
            let spaces = WordSpaces { target, layer: None, files: [from, to], common };
            align(&mut on.with(&table), &dictionaries, &spaces)?;
        }
    }
    Ok(())
}

/// Word translation between all languages of three or more, each mapped into the space of the source: from dictionaries of
/// the source with each other language, and of neighbours among the others where there are some. The first and the last
/// of the others have none, and are tested all the same, each direction by its own test dictionary where it has one.
/// Contextual vectors are those of the middle layer.
pub(super) fn align_many(on: &mut SystemPlanner<'_, '_>, made: &PlannedSystem) -> Result<()> {
    let (materials, source) = (on.scene.materials, on.scene.materials.source.as_str());
    if materials.targets.len() < 2 {
        return Ok(());
    }
    let mut draft = StepDraft::of(&Many::unset(), on.name("align many"));
    for (number, target) in materials.targets.iter().enumerate() {
        let mut request = Many::unset();
        let files = word_files(on, made, target)?;
        let middle = files.len() / 2;
        let Some((_, of_target, of_source)) = files.into_iter().nth(middle) else { return Ok(()) };
        if number == 0 {
            request.vectors.push(of_source.named(source));
        }
        request.vectors.push(of_target.named(target));
        let found = materials.dictionaries(target, ["0-5000", "5000-6500"]);
        let Some(WordDictionaries { files: [train, test], reversed }) = on.planner.found(found)
        else {
            return Ok(());
        };
        let pair = if reversed { [source, target] } else { [target, source] };
        request.dictionary.push(train.of_pair(pair));
        request.test_dictionary.push(test.of_pair(pair));
        let opposite = materials.opposite_test(target).filter(|_| !reversed);
        request.test_dictionary.extend(opposite.map(|test| test.of_pair([source, target])));
        draft = draft.then(&request);
    }
    for (number, one) in materials.targets.iter().enumerate() {
        for (distance, other) in materials.targets[number + 1..].iter().enumerate() {
            let mut request = Many::unset();
            let train = materials.dictionary_of(one, other, "0-5000").filter(|_| distance == 0);
            request.dictionary.extend(train.map(|train| train.of_pair([one, other])));
            for pair @ [from, to] in [[one.as_str(), other], [other, one]] {
                let test = materials.dictionary_of(from, to, "5000-6500");
                request.test_dictionary.extend(test.map(|test| test.of_pair(pair)));
            }
            draft = draft.then(&request);
        }
    }
    let draft = draft.then(&Many { hub: Some(source.to_owned()), ..Many::unset() });
    on.measure(draft, Extractor::AlignMany, &[])
}

/// The word vectors of the study's system of another kind, of a target and of the source, whose words are the common
/// vocabulary; none where the study has no such system. They are other steps of the same study.
fn common_words(
    on: &mut SystemPlanner<'_, '_>,
    target: &str,
    kind: SystemKind,
) -> Result<Option<[CommandArg; 2]>> {
    let (systems, materials) = (&on.scene.study.systems, on.scene.materials);
    let Some(other) = systems.iter().find(|system| system.model == kind) else { return Ok(None) };
    let on = &mut on.with(other);
    let made = PlannedSystem::plan(on)?;
    if let PlannedSystem::Vectors(vectors) = &made {
        return Ok(Some([vectors[target].clone(), vectors[&materials.source].clone()]));
    }
    let Some(encoders) = made.two_languages(materials, target) else { return Ok(None) };
    let from = embeddings(on, encoders.target)?;
    Ok(Some([from, embeddings(on, encoders.source)?]))
}

/// The word vectors of a target and of the source.
struct WordSpaces<'a> {
    target: &'a str,
    layer: Option<String>,
    files: [CommandArg; 2],
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

fn align(
    on: &mut SystemPlanner<'_, '_>,
    WordDictionaries { files: [train, test], reversed }: &WordDictionaries<2>,
    WordSpaces { target, layer, files: [from, to], common }: &WordSpaces<'_>,
) -> Result<()> {
    let at = layer.as_ref().map_or(String::new(), |layer| format!(", layer {layer}"));
    let pair = on.scene.materials.pair(target);
    for common in std::iter::once(None).chain(common.as_ref().map(Some)) {
        let vocabulary = if common.is_some() { "common" } else { "own" };
        let name = on.name(&format!("align words{at}, {vocabulary} vocabulary"));
        let mut request = looked_up([from, to], test, *reversed);
        request.dictionary = Some(train.path());
        if let Some([source, target]) = common {
            request.source_words = Some(source.path());
            request.target_words = Some(target.path());
        }
        let mut factors =
            vec![("pair", pair.as_str()), ("retrieval", "csls"), ("vocabulary", vocabulary)];
        factors.extend(layer.iter().map(|layer| ("layer", layer.as_str())));
        on.measure(StepDraft::of(&request, name), Extractor::AlignWords, &factors)?;
    }
    Ok(())
}

/// Word translation without a map, among the words of the dictionary: of averaged contextual vectors at the middle
/// layer, or of static vectors.
pub(super) fn word_retrieval(on: &mut SystemPlanner<'_, '_>, made: &PlannedSystem) -> Result<()> {
    let materials = on.scene.materials;
    for target in &materials.targets {
        let found = materials.dictionaries(target, ["5000-6500"]);
        let Some(WordDictionaries { files: [test], reversed }) = on.planner.found(found) else {
            continue;
        };
        let files = word_files(on, made, target)?;
        let middle = files.len() / 2;
        let Some((_, from, to)) = files.into_iter().nth(middle) else { continue };
        let mut request = looked_up([&from, &to], &test, reversed);
        request.init = Some(Init::None);
        request.normalize = vec![Normalize::None];
        request.retrieval = Retrieval::Nn;
        let draft = StepDraft::of(&request, on.name(&format!("word retrieval, {target}")));
        let factors = [("language", &**target), ("pair", &*materials.pair(target))];
        on.measure(draft, Extractor::WordRetrieval, &factors)?;
    }
    Ok(())
}

/// Words of the world's parallel text aligned from the hidden states of one encoder of both languages, by layer and
/// extraction, against the world's gold links; the IBM model and the diagonal are beside it.
pub(super) fn word_alignment(on: &mut SystemPlanner<'_, '_>, made: &PlannedSystem) -> Result<()> {
    let materials = on.scene.materials;
    if !made.is_one_encoder() {
        return Ok(());
    }
    for target in &materials.targets {
        let Some(encoders) = made.two_languages(materials, target) else { continue };
        let Some((text, gold)) = on.planner.found(materials.linked_text(target)) else { continue };
        let pair = materials.pair(target);
        let mut request = WordAlignFlags {
            model: Some(encoders.source.folder.path()),
            ..WordAlignFlags::unset()
        };
        request.parallel.parallel = vec![text.named(&pair)];
        request.encoder.layers = Some(Layers::All);
        request.encoder.extract =
            vec![ExtractFlag::Argmax, ExtractFlag::Itermax, ExtractFlag::Softmax];
        request.encoder.gold = Some(gold.held());
        let name = on.name(&format!("align words by hidden states, {target}"));
        let draft = StepDraft::of(&request, name).kind("encoder").on_device();
        on.measure(draft, Extractor::EncoderAlignment, &[("pair", &pair)])?;
    }
    Ok(())
}
