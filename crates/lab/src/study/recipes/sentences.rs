//! Parallel sentences: retrieval, and similarity of layers.

use std::path::PathBuf;
use std::rc::Rc;

use commands::cka::Cka;
use commands::language_id::LanguageId;
use commands::language_neurons::LanguageNeurons;
use commands::measured::Extractor;
use commands::models::{Layers, ParallelTextFlags, SentenceFlags};
use commands::request::Request as _;
use commands::retrieve::Retrieve;
use commands::similarity::Similarity;
use commands::texts::{ColumnsFlag, RowFlags};

use crate::study::error::Result;
use crate::study::materials::ParallelFiles;
use crate::study::step::{CommandArg, StepDraft, StepId, StepList};
use crate::study::system_planner::SystemPlanner;
use crate::study::systems::{EncoderPair, PlannedSystem};

fn retrieve(
    on: &mut SystemPlanner<'_, '_>,
    target: &str,
    encoders: EncoderPair<'_>,
) -> Result<Option<StepId>> {
    let materials = on.scene.materials;
    let test = on.comparable(target, "length (retrieval)", materials.test_sentences(target))?;
    let Some(test) = test else { return Ok(None) };
    let mut request = Retrieve { text: in_models(&test, encoders), ..Retrieve::unset() };
    // Without other sentences there is no map, and the rest can be measured all the same.
    let train = materials.train_sentences(target);
    request.text.columns = ColumnsFlag::default();
    if let Some(train) = on.comparable(target, "length (map)", train)? {
        request.train = train.named(encoders.languages());
        request.text.columns = train.column_flag();
    }
    let name = on.name(&format!("retrieve, {target}"));
    on.planner.add(StepDraft::of(&request, name)).map(Some)
}

pub(super) fn retrieval(on: &mut SystemPlanner<'_, '_>, made: &PlannedSystem) -> Result<()> {
    let materials = on.scene.materials;
    for target in &materials.targets {
        let Some(encoders) = made.two_languages(materials, target) else { continue };
        let Some(step) = retrieve(on, target, encoders)? else { continue };
        on.read(step, Extractor::Retrieval, &[("pair", &materials.pair(target))]);
    }
    Ok(())
}

/// Parallel sentences through the encoders of their languages.
fn in_models(sentences: &ParallelFiles, encoders: EncoderPair<'_>) -> ParallelTextFlags {
    let EncoderPair { target, source } = encoders;
    ParallelTextFlags {
        models: sentences.models(target, source).map(|run| run.folder.path()).into(),
        parallel: sentences.named(encoders.languages()),
        columns: sentences.column_flag(),
        rows: RowFlags::default(),
        sentences: SentenceFlags::default(),
    }
}

/// The sentences whose hidden states are compared; none where files are missing.
pub(super) fn compared(
    on: &mut SystemPlanner<'_, '_>,
    target: &str,
) -> Result<Option<Rc<ParallelFiles>>> {
    let sentences = on.scene.materials.compared_sentences(target);
    on.comparable(target, "length (comparison)", sentences)
}

/// A command about the compared sentences of each target and the source.
fn of_compared<'e>(
    on: &mut SystemPlanner<'_, '_>,
    encoders: impl Fn(&str) -> Option<EncoderPair<'e>>,
    extractor: &Extractor,
    draft: impl Fn(
        &mut SystemPlanner<'_, '_>,
        (&str, EncoderPair<'e>),
        &ParallelFiles,
    ) -> Result<StepDraft>,
) -> Result<()> {
    let materials = on.scene.materials;
    for target in &materials.targets {
        let Some(encoders) = encoders(target) else { continue };
        let Some(sentences) = compared(on, target)? else { continue };
        let draft = draft(on, (target, encoders), &sentences)?;
        on.measure(draft, extractor.clone(), &[("pair", &materials.pair(target))])?;
    }
    Ok(())
}

/// Every measure of similarity of parallel sentences, layer by layer. Intervals are over seeds.
pub(super) fn similarity_measures(
    on: &mut SystemPlanner<'_, '_>,
    made: &PlannedSystem,
) -> Result<()> {
    let materials = on.scene.materials;
    let encoders = |target: &str| made.two_runs(materials, target);
    of_compared(on, encoders, &Extractor::Measures, |on, (target, encoders), sentences| {
        let mut request = Similarity { subsamples: 0, ..Similarity::unset() };
        request.sides.text = in_models(sentences, encoders);
        Ok(StepDraft::of(&request, on.name(&format!("similarity, {target}"))))
    })
}

/// A linear language-ID probe on translated sentences of one encoder, layer by layer.
pub(super) fn language_id(on: &mut SystemPlanner<'_, '_>, made: &PlannedSystem) -> Result<()> {
    of_both_languages(on, made, &Extractor::LanguageId, |name, model, texts, columns| {
        let request = LanguageId { model: Some(model), texts, columns, ..LanguageId::unset() };
        StepDraft::of(&request, name("language-ID"))
    })
}

/// Language-specific neurons of one encoder, and its predictions without them.
pub(super) fn language_neurons(on: &mut SystemPlanner<'_, '_>, made: &PlannedSystem) -> Result<()> {
    of_both_languages(on, made, &Extractor::LanguageNeurons, |name, model, texts, columns| {
        let request = LanguageNeurons { model, texts, columns, ..LanguageNeurons::unset() };
        StepDraft::of(&request, name("language-specific neurons"))
    })
}

/// A command about the translated sentences of two languages in one encoder; two encoders would differ anyway.
fn of_both_languages(
    on: &mut SystemPlanner<'_, '_>,
    made: &PlannedSystem,
    extractor: &Extractor,
    draft: impl Fn(&dyn Fn(&str) -> String, PathBuf, Vec<(String, String)>, ColumnsFlag) -> StepDraft,
) -> Result<()> {
    let materials = on.scene.materials;
    let encoders =
        |target: &str| made.two_languages(materials, target).filter(|_| made.is_one_encoder());
    of_compared(on, encoders, extractor, |on, (target, encoders), sentences| {
        let texts = sentences.named(encoders.languages());
        let name = |what: &str| on.name(&format!("{what}, {target}"));
        Ok(draft(&name, encoders.target.folder.path(), texts, sentences.column_flag()))
    })
}

/// CKA of parallel sentences (Kornblith et al. 2019), layer by layer, and its correlation with retrieval.
pub(super) fn similarity(on: &mut SystemPlanner<'_, '_>, made: &PlannedSystem) -> Result<()> {
    let materials = on.scene.materials;
    let encoders = |target: &str| made.two_runs(materials, target);
    of_compared(on, encoders, &Extractor::Similarity, |on, (target, encoders), sentences| {
        let mut request = Cka::unset();
        request.sides.text = in_models(sentences, encoders);
        if !materials.is_paraphrased()
            && let Some(found) = retrieve(on, target, encoders)?
        {
            request.curve = Some(StepList::made(found, "result.json").path());
        }
        Ok(StepDraft::of(&request, on.name(&format!("CKA, {target}"))))
    })
}

/// Translation pairs mined between two texts that share their training sentences while each has others of its own, at each of
/// the chosen layers.
pub(super) fn mining(on: &mut SystemPlanner<'_, '_>, made: &PlannedSystem) -> Result<()> {
    let materials = on.scene.materials;
    if !made.is_one_encoder() {
        return Ok(());
    }
    for target in &materials.targets {
        let Some(encoders) = made.two_languages(materials, target) else { continue };
        let Some(mut texts) = on.planner.found(materials.mined_text(target)) else { continue };
        texts.models = vec![encoders.source.folder.path()];
        texts.center = true;
        texts.out = CommandArg::here("pairs.tsv").path();
        for layer in on.scene.chosen_layers(made.layers()) {
            texts.layers = Some(Layers::one(layer));
            let draft = StepDraft::of(&texts, on.name(&format!("mine, layer {layer}, {target}")));
            let factors = [("pair", &*materials.pair(target)), ("layer", &layer.to_string())];
            on.measure(draft, Extractor::Mining, &factors)?;
        }
    }
    Ok(())
}
