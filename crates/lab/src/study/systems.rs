//! The systems under comparison, encoders and static vectors, and the steps that train them.

use std::collections::BTreeMap;
use std::path::Path;

use terms::{Preset, Scale};
use train::pretrain::preset_positions;

use super::error::{Error, Result};
use super::file::{Study, System, SystemKind};
use super::plan::{EvaluationContext, OTHER_DOMAIN, StudyPlanner};
use super::shared_text::share_text;
use super::sizes::sentences;
use super::step::{CommandArg, StepDraft, StepList};

/// The encoder that is used for a language.
#[derive(Clone)]
pub(super) struct PlannedEncoder {
    pub(super) folder: CommandArg,
    /// The language of its input: another one, where two encoders of one language are compared.
    pub(super) language: String,
}

/// What a model that lists no languages calls its only one.
const ANY: &str = "any";
/// What follows the code of the language that preset `same-language` trains on twice.
const SECOND: &str = "-b";

pub(super) enum PlannedSystem {
    /// Encoders: the run of each language, whether all are the same encoder, and how many layers they have.
    Encoders { runs: BTreeMap<String, PlannedEncoder>, one: bool, layers: usize },
    /// Static vectors: a file for each language.
    Vectors(BTreeMap<String, CommandArg>),
}

impl PlannedSystem {
    /// The one encoder of all languages and its number of layers; none where each has its own, where there are static vectors, and
    /// where the second language is a paraphrase of the first, which nothing is transferred to or translated into.
    pub(super) fn shared_encoder(
        &self,
        scene: &EvaluationContext<'_>,
    ) -> Option<(&PlannedEncoder, usize)> {
        match self {
            Self::Encoders { runs, one: true, layers } if !scene.materials.is_paraphrased() => {
                Some((&runs[&scene.materials.source], *layers))
            }
            _ => None,
        }
    }

    pub(super) fn plan(
        planner: &mut StudyPlanner<'_>,
        scene: &EvaluationContext<'_>,
        system: &System,
    ) -> Result<Self> {
        if scene.materials.is_paraphrased() {
            return same_language(planner, scene, system);
        }
        let languages: Vec<&str> = scene.materials.languages().collect();
        let encoders = |runs: Vec<CommandArg>, one: bool, layers: usize| {
            let run = |(&language, folder): (&&str, CommandArg)| {
                (language.to_owned(), PlannedEncoder { folder, language: language.to_owned() })
            };
            let runs = languages.iter().zip(runs).map(run).collect();
            PlannedSystem::Encoders { runs, one, layers }
        };
        let layers = depth(&system.preset, scene.scale);
        let source = languages[0];
        Ok(match system.model {
            SystemKind::Encoder => {
                let run = pretrain(planner, scene, system, &languages, 0)?;
                encoders(vec![run; languages.len()], true, layers)
            }
            SystemKind::Monolingual => {
                let one = |language: &&str| alone(planner, scene, system, language, 0);
                encoders(languages.iter().map(one).collect::<Result<_>>()?, false, layers)
            }
            SystemKind::Untrained => {
                let trained = alone(planner, scene, system, source, 0)?;
                let untrained = pretrain(planner, scene, &untrained(system), &languages, 0)?;
                let others = vec![untrained; languages.len() - 1];
                encoders(std::iter::once(trained).chain(others).collect(), false, layers)
            }
            SystemKind::Extended | SystemKind::Rehearsed => {
                let run = extend(planner, scene, system, &languages)?;
                encoders(vec![run; languages.len()], true, layers)
            }
            SystemKind::Given => {
                let folder = &system.folders[0];
                let layers = given_depth(folder, system, &languages)?;
                encoders(vec![CommandArg::file(folder); languages.len()], true, layers)
            }
            SystemKind::Word2vec | SystemKind::Glove => {
                PlannedSystem::Vectors(statics(planner, scene, system, &languages)?)
            }
            SystemKind::Fasttext => {
                PlannedSystem::Vectors(fasttext(planner, scene, system, &languages)?)
            }
        })
    }

    pub(super) fn layers(&self) -> usize {
        match self {
            PlannedSystem::Encoders { layers, .. } => *layers,
            PlannedSystem::Vectors(_) => 0,
        }
    }
}

/// How many layers the encoder of a preset has.
fn depth(preset: &str, scale: Scale) -> usize {
    preset.parse::<Preset>().map_or(scale.layers(), |preset| preset.layers(scale))
}

/// The tokens that every encoder of a study reads, the fewest of all; none where no encoder is compared, or none can be read.
pub(super) fn common_positions(study: &Study, scale: Scale) -> Option<usize> {
    let flags = study.at(scale).pretrain;
    let of_system = |system: &System| match system.model {
        SystemKind::Word2vec | SystemKind::Glove | SystemKind::Fasttext => None,
        SystemKind::Given => {
            let known =
                system.folders.iter().filter_map(|folder| models::architecture(folder).ok());
            known.map(|encoder| encoder.positions).min()
        }
        _ => {
            let preset = system.preset.parse::<Preset>().unwrap_or(Preset::Default);
            let given = flags.iter().chain(&system.flags);
            let given = positions_of(&given.map(String::as_str).collect::<Vec<_>>());
            given.or_else(|| Some(preset_positions(preset, scale)))
        }
    };
    study.compared().iter().filter_map(of_system).min()
}

/// The positions of an encoder among flags of pretraining; the last that are given count.
fn positions_of(flags: &[&str]) -> Option<usize> {
    let named = |at: usize| -> Option<&str> {
        let word = flags[at].strip_prefix("--").unwrap_or(flags[at]);
        let word = word.strip_prefix("set=").unwrap_or(word);
        let rest = word.strip_prefix("encoder.positions")?;
        rest.strip_prefix('=').or_else(|| flags.get(at + 1).copied())
    };
    (0..flags.len()).rev().find_map(|at| named(at)?.parse().ok())
}

/// How many layers a model that is given has; refuses one that does not know a language.
fn given_depth(folder: &Path, system: &System, languages: &[&str]) -> Result<usize> {
    let name = system.factors.values().next().map_or("", String::as_str);
    let refuse = |reason: String, remedy: &str| {
        Error::data(format!("the model {name}, {}", folder.display()), reason, remedy)
    };
    let known = models::architecture(folder);
    let known = known.map_err(|error| refuse(error.to_string(), "name another folder"))?;
    let own = listed_languages(&known.languages);
    let unknown =
        |language: &&&str| own.is_some_and(|own| !own.iter().any(|one| one == **language));
    match languages.iter().find(unknown) {
        None => Ok(known.layers),
        Some(language) => {
            let own = own.unwrap_or_default().join(", ");
            let reason = format!("does not know the language `{language}`; it knows {own}");
            Err(refuse(reason, "choose among these"))
        }
    }
}

/// The languages that a model says it knows; none where it takes any.
pub(super) fn listed_languages(languages: &[String]) -> Option<&[String]> {
    (languages != [ANY]).then_some(languages)
}

/// The same encoder as a system's, with its initial weights.
fn untrained(system: &System) -> System {
    System { preset: Preset::Untrained.name().to_owned(), ..system.clone() }
}

/// Plans two encoders of one language, or one that takes it for two (Conneau et al. 2020, §5.2: en-en′).
fn same_language(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
) -> Result<PlannedSystem> {
    let (source, second) = (&scene.materials.source, &scene.materials.targets[0]);
    let source_only = &[source.as_str()];
    let run = |folder: CommandArg, language: String| PlannedEncoder { folder, language };
    let (one, runs) = match system.model {
        SystemKind::Encoder => {
            let preset = Preset::SameLanguage.name().to_owned();
            let system = System { preset, ..system.clone() };
            let both = pretrain(planner, scene, &system, source_only, 0)?;
            let second = run(both.clone(), format!("{source}{SECOND}"));
            (true, [run(both, source.clone()), second])
        }
        SystemKind::Untrained => {
            let trained = alone(planner, scene, system, source, 0)?;
            let untrained = pretrain(planner, scene, &untrained(system), source_only, 0)?;
            (false, [trained, untrained].map(|folder| run(folder, source.clone())))
        }
        SystemKind::Monolingual => {
            let first = alone(planner, scene, system, source, 0)?;
            let other = alone(planner, scene, system, source, 1)?;
            (false, [first, other].map(|folder| run(folder, source.clone())))
        }
        kind => {
            let reason = format!("{kind:?} has no second encoder of a language").to_lowercase();
            let remedy = "take it with encoder, monolingual or untrained";
            return Err(Error::definition(
                &scene.study.name,
                "systems.paraphrases",
                reason,
                remedy,
            ));
        }
    };
    let names = [source.clone(), second.clone()];
    let layers = depth(&system.preset, scene.scale);
    Ok(PlannedSystem::Encoders { runs: names.into_iter().zip(runs).collect(), one, layers })
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
    if materials.prepared() && !(all && materials.world().is_some()) {
        draft = draft.flag("--set", "text.prepared=true");
    }
    if system.preset == "extra-anchors" && materials.world().is_none() {
        for target in &materials.targets {
            let pair = format!("{}=", materials.pair(target));
            let dictionary = materials.anchor_dictionary(target).map_err(|place| {
                let remedy = "`isogloss data list` says where dictionaries come from";
                Error::data(place, "there is no such dictionary of extra anchors", remedy)
            })?;
            draft = draft.flag("--dictionary", dictionary.after(&pair));
        }
    }
    for (language, there) in planner.sizes.equal(materials, system)? {
        draft = draft.flag("--set", format!("text.sample_of.{language}={there}"));
    }
    if let Some(there) = planner.sizes.of(materials, &system.preset, scene.scale)?
        && sentences(&system.preset, scene.scale).is_some_and(|wanted| there < wanted)
    {
        draft = draft.flag("--set", format!("text.sample={there}"));
    }
    let flags = scene.settings.pretrain.clone();
    draft = match system.preset == Preset::Untrained.name() {
        true => draft.args(without_steps(flags)),
        false => draft.args(flags),
    };
    let seed = (scene.seed + 1000 * another).to_string();
    planner.read_test_exclusions(scene, languages, system.preset == OTHER_DOMAIN);
    let draft = draft.args(system.flags.clone()).flag("--seed", seed);
    let draft = share_text(planner, draft)?;
    let run = planner.add(draft.flag("--out", CommandArg::here("run")).resumes("run"))?;
    Ok(StepList::made(run, "run"))
}

/// Plans an encoder of all languages but the last, and the training that gives it the last.
fn extend(
    planner: &mut StudyPlanner<'_>,
    scene: &EvaluationContext<'_>,
    system: &System,
    languages: &[&str],
) -> Result<CommandArg> {
    let materials = scene.materials;
    let (new, known) = languages.split_last().expect("a source and a target");
    let factors = [("languages".to_owned(), known.join("+"))].into();
    let base = System { factors, flags: Vec::new(), ..system.clone() };
    let base = pretrain(planner, scene, &base, known, 0)?;
    let kind = if materials.prepared() { "" } else { " real" };
    let mut draft = StepDraft::new("pretrain", scene.name(&format!("add {new}"), system))
        .kind(&format!("{}{kind}", scene.scale))
        .flag("--from", base)
        .flag("--scale", scene.scale.name());
    if system.model == SystemKind::Rehearsed {
        draft = draft.args(materials.text_flags(known, false)?);
    }
    planner.read_test_exclusions(scene, &[*new], false);
    let texts = materials.text(new, false);
    if texts.is_empty() {
        return Err(materials.no_text(new));
    }
    for text in texts {
        draft = draft.flag("--add-language", text.after(&format!("{new}=")));
    }
    let draft = draft.args(system.flags.clone()).flag("--seed", scene.seed.to_string());
    let run = planner.add(draft.flag("--out", CommandArg::here("run")).resumes("run"))?;
    Ok(StepList::made(run, "run"))
}

/// Flags of pretraining for an encoder that is not trained: its architecture is that of the others, and no flag sets
/// its updates.
fn without_steps(flags: Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for flag in flags {
        match kept.last().map(String::as_str) {
            Some("--steps") => drop(kept.pop()),
            Some("--set") if flag.starts_with("steps=") => drop(kept.pop()),
            _ if flag.starts_with("--steps=") || flag.starts_with("--set=steps=") => {}
            _ => kept.push(flag),
        }
    }
    kept
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_untrained_encoder_has_the_architecture_and_no_updates() {
        let kept = |flags: &str| {
            without_steps(flags.split_whitespace().map(str::to_owned).collect()).join(" ")
        };
        assert_eq!(kept("--encoder.norm post --steps 600"), "--encoder.norm post");
        assert_eq!(kept("--set steps=6 --set adam.lr=1e-3"), "--set adam.lr=1e-3");
        assert_eq!(kept("--steps=6 --set=steps=6 --seed 1"), "--seed 1");
    }

    #[test]
    fn all_encoders_of_a_study_read_what_the_shortest_reads() {
        let mut study = Study::find("anchors").unwrap();
        let of = |study: &Study| Scale::ALL.map(|scale| common_positions(study, scale));
        assert_eq!(of(&study), [Some(32), Some(256), Some(256)]);
        let flags = |flags: &str| flags.split(' ').map(str::to_owned).collect::<Vec<_>>();
        study.systems = vec![System {
            flags: flags("--encoder.positions 128 --set encoder.positions=64 --seed 3"),
            ..study.compared()[0].clone()
        }];
        assert_eq!(of(&study), [Some(32), Some(64), Some(64)]);
        study.conditions.clear();
        assert_eq!(of(&study), [Some(64); 3]);
        study.systems[0].flags = flags("--set=encoder.positions=99 --encoder.positions=48");
        assert_eq!(of(&study), [Some(48); 3]);
        study.systems[0].model = SystemKind::Fasttext;
        assert_eq!(of(&study), [None; 3]);
    }
}
