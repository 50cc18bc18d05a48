//! Token translation by the difference of two languages' mean vectors (Liu et al. 2020).

use commands::measured::Extractor;
use commands::request::Request as _;
use commands::shift::{MeansOf, SweepOver, Translate};
use commands::vocab::Stats;
use draw::spaces::translating_layer;
use shift::shifter::ShiftKind;
use terms::Scale;

use super::sentences::compared;
use crate::study::error::Result;
use crate::study::file::SystemKind;
use crate::study::materials::test_columns;
use crate::study::step::{CommandArg, StepDraft, StepList};
use crate::study::system_planner::SystemPlanner;
use crate::study::systems::{PlannedEncoder, PlannedSystem};

const WEIGHTS: [f32; 8] = [-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0];

/// The kinds of shift that are compared: the mean difference of Liu et al. 2020 and, of encoders trained here, others.
fn kinds(system: SystemKind) -> Vec<ShiftKind> {
    let others = [ShiftKind::Sharing, ShiftKind::Bands, ShiftKind::Without(4)];
    let others = others.into_iter().filter(|_| system != SystemKind::Given);
    std::iter::once(ShiftKind::Mean).chain(others).collect()
}

/// Plans the mean vectors of all languages of an encoder.
pub(super) fn means(on: &mut SystemPlanner<'_, '_>, run: &PlannedEncoder) -> Result<CommandArg> {
    let (scene, materials) = (on.scene, on.scene.materials);
    let languages: Vec<&str> = materials.languages().collect();
    let mut request =
        MeansOf { out: CommandArg::here("means.safetensors").path(), ..MeansOf::unset() };
    request.model.model = run.folder.path();
    let given = on.system.model == SystemKind::Given;
    let sentences = &mut request.text.sentences;
    match materials.means_text(&languages).filter(|_| given) {
        // The same content in every language, so that the means differ by language alone.
        Some(texts) => {
            request.text.texts = texts;
            sentences.columns = test_columns();
            sentences.rows.limit = Some(scene.sentences());
        }
        None => request.text.texts = materials.text_of(&languages, false)?,
    }
    if materials.prepared() {
        sentences.lines = true;
        sentences.rows.limit = Some(scene.sentences());
    } else if !given {
        // Of all files alike, not of the first; of each language as much as the one with the least text has.
        let sample = on.planner.sizes.least(materials, scene.sentences() as u64)?;
        sentences.rows.sample_size = Some(sample as usize);
        request.text.seed = scene.seed;
    }
    let draft = StepDraft::of(&request, on.name("language mean vectors"));
    let step = on.planner.add(draft.kind(scene.scale.name()))?;
    Ok(StepList::made(step, "means.safetensors"))
}

/// Token translation by the difference of mean vectors, at every layer and weight.
pub(super) fn shift(on: &mut SystemPlanner<'_, '_>, made: &PlannedSystem) -> Result<()> {
    let materials = on.scene.materials;
    let Some((run, layers)) = made.shared_encoder(materials) else { return Ok(()) };
    let means = means(on, run)?;
    let layer = translating_layer(layers);
    for target in &materials.targets {
        let pair = materials.pair(target);
        if let Some(sweep) = sweep(on, run, (target, &means))? {
            on.measure(sweep, Extractor::Sweep, &[])?;
        }
        let Some(shown) = on.planner.found(materials.shown_sentences(target)) else { continue };
        let mut request = Translate {
            from: materials.source.clone(),
            to: target.clone(),
            layer,
            parallel: shown.named((target, &materials.source)),
            columns: shown.column_flag(),
            limit: 5,
            ..Translate::unset()
        };
        request.measured.model.model = run.folder.path();
        request.measured.means = Some(means.path());
        let draft = StepDraft::of(&request, on.name(&format!("translate, {pair}")));
        let factors = [("direction", &*pair), ("layer", &layer.to_string())];
        on.measure(draft, Extractor::Translation, &factors)?;
    }
    let languages: Vec<&str> = materials.languages().collect();
    let folder = match on.system.model {
        SystemKind::Given => run.folder.clone(),
        _ => run.folder.join("vocabulary"),
    };
    let mut stats = Stats { folder: folder.path(), ..Stats::unset() };
    stats.text.texts = materials.token_text(&languages);
    if !stats.text.texts.is_empty() {
        stats.text.sentences.columns = test_columns();
    }
    let draft = StepDraft::of(&stats, on.name("vocabulary overlap"));
    on.measure(draft, Extractor::Vocabulary, &[])
}

/// Token translation between the source and a target at every layer and weight, in both directions.
fn sweep(
    on: &mut SystemPlanner<'_, '_>,
    run: &PlannedEncoder,
    (target, means): (&str, &CommandArg),
) -> Result<Option<StepDraft>> {
    let (scene, materials) = (on.scene, on.scene.materials);
    let Some(sentences) = compared(on, target)? else { return Ok(None) };
    let pair = materials.pair(target);
    let languages: Vec<&str> = materials.languages().collect();
    let dictionary = materials.whole_dictionary(target);
    let mut request = SweepOver {
        parallel: sentences.named((target, &materials.source)),
        columns: sentences.column_flag(),
        dictionary: dictionary.iter().map(|file| file.named(&pair)).collect(),
        token_text: materials.token_text(&languages),
        limit: scene.at_most(sweep_sentences(scene.scale)),
        alpha: WEIGHTS.into(),
        shift_kind: kinds(on.system.model),
        seed: scene.seed,
        ..SweepOver::unset()
    };
    request.measured.model.model = run.folder.path();
    request.measured.means = Some(means.path());
    let draft = StepDraft::of(&request, on.name(&format!("shift, {pair}")));
    Ok(Some(draft.kind(scene.scale.name())))
}

/// How many sentences are translated; XNLI has 9,999 different ones.
fn sweep_sentences(scale: Scale) -> usize {
    match scale {
        Scale::Tiny => 1000,
        Scale::Small => 2000,
        Scale::Paper => 10_000,
    }
}
