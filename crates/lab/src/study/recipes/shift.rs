//! Token translation by the difference of two languages' mean vectors (Liu et al. 2020).

use draw::spaces::translating_layer;
use terms::Scale;

use super::sentences::compared;
use crate::study::error::Result;
use crate::study::file::{System, SystemKind};
use crate::study::plan::{EvaluationContext, StudyPlanner};
use crate::study::step::{CommandArg, StepDraft, StepId, StepList};
use crate::study::systems::{PlannedEncoder, PlannedSystem};
use commands::measured::Extractor;

/// The kinds of shift that are compared: the mean difference of Liu et al. 2020 and, of encoders trained here, others.
fn kinds(system: &System) -> &'static [&'static str] {
    match system.model {
        SystemKind::Given => &["mean"],
        _ => &["mean", "sharing", "bands", "without-4"],
    }
}

/// Plans the mean vectors of all languages of an encoder.
pub(super) fn means(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    run: &PlannedEncoder,
) -> Result<CommandArg> {
    let languages: Vec<&str> = scene.materials.languages().collect();
    let mut draft = StepDraft::new("shift means", scene.name("language mean vectors", system))
        .kind(scene.scale.name())
        .flag("--model", run.folder.clone());
    let given = system.model == SystemKind::Given;
    let parallel = scene.materials.means_text(&languages).filter(|_| given);
    draft = match parallel {
        // The same content in every language, so that the means differ by language alone.
        Some(flags) => draft.args(flags).flag("--limit", scene.sentences()),
        None => draft.args(scene.materials.text_flags(&languages, false)?),
    };
    if scene.materials.prepared() {
        draft = draft.arg("--lines").flag("--limit", scene.sentences());
    } else if !given {
        // Of all files alike, not of the first; of each language as much as the one with the least text has.
        let sample = planner.sizes.least(scene.materials, scene.sentence_count())?;
        draft =
            draft.flag("--sample-size", sample.to_string()).flag("--seed", scene.seed.to_string());
    }
    let step = planner.add(draft.flag("--out", CommandArg::here("means.safetensors")))?;
    Ok(StepList::made(step, "means.safetensors"))
}

/// Token translation by the difference of mean vectors, at every layer and weight.
pub(in crate::study) fn shift(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    made: &PlannedSystem,
) -> Result<()> {
    let Some((run, layers)) = made.shared_encoder(scene) else { return Ok(()) };
    let materials = scene.materials;
    let means = means(planner, scene, system, run)?;
    let layer = translating_layer(layers).to_string();
    for target in &materials.targets {
        let pair = materials.pair(target);
        let sides = (target.as_str(), materials.source.as_str());
        if let Some(sweep) = sweep(planner, scene, system, run, (target, &means))? {
            planner.read(sweep, Extractor::Sweep, scene.seed, scene.factors(system, &[]));
        }
        let Some(shown) = planner.found(materials.shown_sentences(target)) else { continue };
        let translate =
            StepDraft::new("shift translate", scene.name(&format!("translate, {pair}"), system))
                .flag("--model", run.folder.clone())
                .flag("--means", means.clone())
                .flag("--from", materials.source.as_str())
                .flag("--to", target.as_str())
                .flag("--layer", layer.as_str())
                .flag("--alpha", "0,1,2,3")
                .args(shown.flags("--parallel", sides))
                .args(shown.columns())
                .flag("--limit", "5");
        let translate = planner.add(translate)?;
        let factors = scene.factors(system, &[("direction", &pair), ("layer", &layer)]);
        planner.read(translate, Extractor::Translation, scene.seed, factors);
    }
    let languages: Vec<&str> = materials.languages().collect();
    let text = materials.token_text(&languages, "--text");
    let folder = match system.model {
        SystemKind::Given => run.folder.clone(),
        _ => run.folder.join("vocabulary"),
    };
    let mut stats =
        StepDraft::new("vocab stats", scene.name("vocabulary overlap", system)).arg(folder);
    if !text.is_empty() {
        stats = stats.args(text).flag("--columns", "1,2");
    }
    let stats = planner.add(stats)?;
    planner.read(stats, Extractor::Vocabulary, scene.seed, scene.factors(system, &[]));
    Ok(())
}

/// Plans token translation between the source and a target at every layer and weight, in both directions.
fn sweep(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    run: &PlannedEncoder,
    (target, means): (&str, &CommandArg),
) -> Result<Option<StepId>> {
    let materials = scene.materials;
    let Some(sentences) = compared(planner, scene, target)? else { return Ok(None) };
    let pair = materials.pair(target);
    let languages: Vec<&str> = materials.languages().collect();
    let mut sweep = StepDraft::new("shift sweep", scene.name(&format!("shift, {pair}"), system))
        .kind(scene.scale.name())
        .flag("--model", run.folder.clone())
        .flag("--means", means.clone())
        .args(sentences.flags("--parallel", (target, &materials.source)))
        .args(materials.token_text(&languages, "--token-text"))
        .args(sentences.columns())
        .arg("--alpha=-1,0,0.5,1,1.5,2,2.5,3")
        .flag("--limit", scene.at_most(sweep_sentences(scene.scale)).to_string())
        .flag("--seed", scene.seed.to_string());
    if let Some(dictionary) = materials.whole_dictionary(target) {
        sweep = sweep.flag("--dictionary", dictionary.after(&format!("{pair}=")));
    }
    for kind in kinds(system) {
        sweep = sweep.flag("--shift-kind", *kind);
    }
    planner.add(sweep).map(Some)
}

/// How many sentences are translated; XNLI has 9,999 different ones.
fn sweep_sentences(scale: Scale) -> u64 {
    match scale {
        Scale::Tiny => 1000,
        Scale::Small => 2000,
        Scale::Paper => 10_000,
    }
}
