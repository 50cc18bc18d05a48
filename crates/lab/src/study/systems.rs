//! The systems under comparison, encoders and static vectors, and the steps that train them.

use std::collections::BTreeMap;

use terms::Preset;

use super::error::Result;
use super::file::{System, SystemKind};
use super::plan::{EvaluationContext, OTHER_DOMAIN, StudyPlanner};
use super::shared_text::share_text;
use super::sizes::sentences;
use super::step::{CommandArg, StepDraft, StepList};

/// The encoder that is used for a language.
#[derive(Clone)]
pub(super) struct PlannedEncoder {
    /// The run's folder.
    pub(super) folder: CommandArg,
    /// The language of its input: another one, where two encoders of one language are compared.
    pub(super) language: String,
}

/// A system whose training is planned.
pub(super) enum PlannedSystem {
    /// Encoders: the run of each language, and whether all are the same encoder.
    Encoders { runs: BTreeMap<String, PlannedEncoder>, one: bool },
    /// Static vectors: a file for each language.
    Vectors(BTreeMap<String, CommandArg>),
}

impl PlannedSystem {
    /// Plans the training of a system.
    pub(super) fn plan(
        planner: &mut StudyPlanner<'_>,
        scene: &EvaluationContext<'_>,
        system: &System,
    ) -> Result<Self> {
        let languages: Vec<&str> = scene.materials.languages().collect();
        let encoders = |runs: Vec<CommandArg>, one: bool| {
            let run = |(&language, folder): (&&str, CommandArg)| {
                (language.to_owned(), PlannedEncoder { folder, language: language.to_owned() })
            };
            PlannedSystem::Encoders { runs: languages.iter().zip(runs).map(run).collect(), one }
        };
        let source = &languages[..1];
        Ok(match system.model {
            SystemKind::Encoder => {
                let run = pretrain(planner, scene, system, &languages, 0)?;
                encoders(vec![run; languages.len()], true)
            }
            SystemKind::Monolingual => {
                let one = |language: &&str| alone(planner, scene, system, language, 0);
                encoders(languages.iter().map(one).collect::<Result<_>>()?, false)
            }
            SystemKind::Untrained => {
                let trained = alone(planner, scene, system, source[0], 0)?;
                let untrained =
                    System { preset: Preset::Untrained.name().to_owned(), ..system.clone() };
                let untrained = pretrain(planner, scene, &untrained, &languages, 0)?;
                let others = vec![untrained; languages.len() - 1];
                encoders(std::iter::once(trained).chain(others).collect(), false)
            }
            SystemKind::SameLanguage => {
                let first = alone(planner, scene, system, source[0], 0)?;
                let second = alone(planner, scene, system, source[0], 1)?;
                let run =
                    |folder: CommandArg| PlannedEncoder { folder, language: source[0].to_owned() };
                let names = languages[..2].iter().map(|&language| language.to_owned());
                PlannedSystem::Encoders {
                    runs: names.zip([run(first), run(second)]).collect(),
                    one: false,
                }
            }
            SystemKind::Word2vec | SystemKind::Glove => {
                PlannedSystem::Vectors(statics(planner, scene, system, &languages)?)
            }
            SystemKind::Fasttext => {
                PlannedSystem::Vectors(fasttext(planner, scene, system, &languages)?)
            }
        })
    }
}

/// Plans the pretraining of an encoder; `another` tells its seed apart where a system has two.
fn pretrain(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    languages: &[&str],
    another: u64,
) -> Result<CommandArg> {
    let materials = scene.materials;
    let all = languages.len() == materials.languages().count();
    let kind = if materials.prepared() { "" } else { " real" };
    let mut draft = StepDraft::new("pretrain", scene.name("pretrain", system))
        .kind(&format!("{}{kind}", scene.scale))
        .flag("--preset", system.preset.as_str())
        .flag("--scale", scene.scale.name());
    draft = match materials.world().filter(|_| all) {
        Some(world) => draft.flag("--world", world),
        None => draft.args(materials.text_flags(languages, system.preset == OTHER_DOMAIN)?),
    };
    if materials.prepared() && !all {
        draft = draft.flag("--set", "text.prepared=true");
    }
    if system.preset == "extra-anchors" && !materials.prepared() {
        for target in &materials.targets {
            let pair = format!("{}=", materials.pair(target));
            draft = draft.flag("--dictionary", materials.whole_dictionary(target).after(&pair));
        }
    }
    if let Some(there) = planner.sizes.of(materials, &system.preset, scene.scale)?
        && sentences(&system.preset, scene.scale).is_some_and(|wanted| there < wanted)
    {
        draft = draft.flag("--set", format!("text.sample={there}"));
    }
    if system.preset != Preset::Untrained.name() {
        draft = draft.args(scene.settings.pretrain.clone());
    }
    let seed = (scene.seed + 1000 * another).to_string();
    let draft = draft.args(system.flags.clone()).flag("--seed", seed);
    let draft = share_text(planner, draft)?;
    let run = planner.add(draft.flag("--out", CommandArg::here("run")).resumes("run"))?;
    Ok(StepList::made(run, "run"))
}

/// Plans an encoder of one language.
fn alone(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    language: &str,
    another: u64,
) -> Result<CommandArg> {
    let mut factors = system.factors.clone();
    factors.insert("language".to_owned(), language.to_owned());
    let system = System { preset: "monolingual".to_owned(), factors, ..system.clone() };
    pretrain(planner, scene, &system, &[language], another)
}

/// Plans static vectors of the subwords of an encoder, trained on its sentences, and composes them to words.
fn statics(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    languages: &[&str],
) -> Result<BTreeMap<String, CommandArg>> {
    let encoder = System { model: SystemKind::Encoder, flags: Vec::new(), ..system.clone() };
    let run = pretrain(planner, scene, &encoder, languages, 0)?;
    let kind = if system.model == SystemKind::Glove { "glove" } else { "word2vec" };
    let draft = StepDraft::new(&format!("vectors {kind}"), scene.name(kind, system))
        .flag("--model", run.clone())
        .flag("--dim", scene.scale.dim().to_string())
        .args(system.flags.clone())
        .flag("--seed", scene.seed.to_string())
        .flag("--out", CommandArg::here("subwords.vec"));
    let subwords = StepList::made(planner.add(draft)?, "subwords.vec");
    let of_language = |language: &&str| {
        let name = scene.name(&format!("words of {language}"), system);
        let draft = StepDraft::new("words", name)
            .kind("static")
            .flag("--model", run.clone())
            .flag("--static", subwords.clone())
            .args(words_of(scene, language))
            .flag("--out", CommandArg::here("words.vec"));
        Ok(((*language).to_owned(), StepList::made(planner.add(draft)?, "words.vec")))
    };
    languages.iter().map(of_language).collect()
}

/// The flags of `words` for a language and its text.
pub(super) fn words_of(scene: &EvaluationContext<'_>, language: &str) -> Vec<CommandArg> {
    let mut flags = Vec::new();
    for file in scene.materials.text(language, false) {
        flags.extend(["--text".into(), file.after(&format!("{language}="))]);
    }
    if scene.materials.prepared() {
        flags.push("--lines".into());
    }
    flags.extend(["--limit".into(), scene.sentences().into()]);
    flags
}

/// Plans skip-gram vectors with character n-grams (Bojanowski et al. 2017) on each language's text.
fn fasttext(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    languages: &[&str],
) -> Result<BTreeMap<String, CommandArg>> {
    let of_language = |language: &&str| {
        let name = scene.name(&format!("n-gram vectors of {language}"), system);
        let mut draft = StepDraft::new("vectors word2vec", name)
            .kind("n-grams")
            .flag("--ngrams", "3-6")
            .args(scene.materials.text_flags(&[*language], false)?);
        if scene.materials.prepared() {
            draft = draft.arg("--lines").flag("--tokenizer", "whitespace");
        }
        let draft = draft
            .args(system.flags.clone())
            .flag("--seed", scene.seed.to_string())
            .flag("--out", CommandArg::here("words.vec"));
        Ok(((*language).to_owned(), StepList::made(planner.add(draft)?, "words.vec")))
    };
    languages.iter().map(of_language).collect()
}
