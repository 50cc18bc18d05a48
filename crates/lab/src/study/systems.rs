//! The systems under comparison, encoders and static vectors, and the steps that train them.

use std::collections::BTreeMap;
use std::path::Path;

use commands::pretrain::Pretrain;
use commands::request::Request as _;
use commands::vectors::{Glove, Word2vec};
use commands::words::Words;
use terms::{Preset, Scale};
use train::pretrain::preset_positions;

use super::error::{Error, Result};
use super::file::{Study, System, SystemKind};
use super::materials::LanguageData;
use super::plan::OTHER_DOMAIN;
use super::shared_text::share_text;
use super::sizes::sentences;
use super::step::{CommandArg, StepDraft, StepList};
use super::system_planner::{EvaluationContext, SystemPlanner};

#[derive(Clone)]
pub(super) struct PlannedEncoder {
    pub(super) folder: CommandArg,
    /// The language of its input: another one, where two encoders of one language are compared.
    pub(super) language: String,
}

/// The encoders of a target and of the source.
#[derive(Clone, Copy)]
pub(super) struct EncoderPair<'a> {
    pub(super) target: &'a PlannedEncoder,
    pub(super) source: &'a PlannedEncoder,
}

impl<'a> EncoderPair<'a> {
    pub(super) fn languages(self) -> (&'a str, &'a str) {
        (&self.target.language, &self.source.language)
    }
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
        materials: &LanguageData,
    ) -> Option<(&PlannedEncoder, usize)> {
        match self {
            Self::Encoders { runs, one: true, layers } if !materials.is_paraphrased() => {
                Some((&runs[&materials.source], *layers))
            }
            _ => None,
        }
    }

    pub(super) fn is_one_encoder(&self) -> bool {
        matches!(self, Self::Encoders { one: true, .. })
    }

    /// The encoders of a target and of the source, where the system has encoders.
    pub(super) fn two_runs(
        &self,
        materials: &LanguageData,
        target: &str,
    ) -> Option<EncoderPair<'_>> {
        let Self::Encoders { runs, .. } = self else { return None };
        Some(EncoderPair { target: runs.get(target)?, source: &runs[&materials.source] })
    }

    /// The same, where the target's encoder is given the target's language.
    pub(super) fn two_languages(
        &self,
        materials: &LanguageData,
        target: &str,
    ) -> Option<EncoderPair<'_>> {
        self.two_runs(materials, target).filter(|encoders| encoders.target.language == target)
    }

    pub(super) fn plan(on: &mut SystemPlanner<'_, '_>) -> Result<Self> {
        let (scene, system) = (on.scene, on.system);
        if scene.materials.is_paraphrased() {
            return same_language(on);
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
                let run = pretrain(on, &languages, 0)?;
                encoders(vec![run; languages.len()], true, layers)
            }
            SystemKind::Monolingual => {
                let one = |language: &&str| alone(on, language, 0);
                encoders(languages.iter().map(one).collect::<Result<_>>()?, false, layers)
            }
            SystemKind::Untrained => {
                let trained = alone(on, source, 0)?;
                let untrained = pretrain(&mut on.with(&untrained(system)), &languages, 0)?;
                let others = vec![untrained; languages.len() - 1];
                encoders(std::iter::once(trained).chain(others).collect(), false, layers)
            }
            SystemKind::Extended | SystemKind::Rehearsed => {
                let run = extend(on, &languages)?;
                encoders(vec![run; languages.len()], true, layers)
            }
            SystemKind::Given => {
                let folder = &system.folders[0];
                let layers = given_depth(folder, system, &languages)?;
                encoders(vec![CommandArg::file(folder); languages.len()], true, layers)
            }
            SystemKind::Word2vec | SystemKind::Glove => {
                PlannedSystem::Vectors(statics(on, &languages)?)
            }
            SystemKind::Fasttext => PlannedSystem::Vectors(fasttext(on, &languages)?),
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
fn same_language(on: &mut SystemPlanner<'_, '_>) -> Result<PlannedSystem> {
    let (scene, system) = (on.scene, on.system);
    let (source, second) = (&scene.materials.source, &scene.materials.targets[0]);
    let source_only = &[source.as_str()];
    let run = |folder: CommandArg, language: String| PlannedEncoder { folder, language };
    let (one, runs) = match system.model {
        SystemKind::Encoder => {
            let preset = Preset::SameLanguage.name().to_owned();
            let system = System { preset, ..system.clone() };
            let both = pretrain(&mut on.with(&system), source_only, 0)?;
            let second = run(both.clone(), format!("{source}{SECOND}"));
            (true, [run(both, source.clone()), second])
        }
        SystemKind::Untrained => {
            let trained = alone(on, source, 0)?;
            let untrained = pretrain(&mut on.with(&untrained(system)), source_only, 0)?;
            (false, [trained, untrained].map(|folder| run(folder, source.clone())))
        }
        SystemKind::Monolingual => {
            let first = alone(on, source, 0)?;
            let other = alone(on, source, 1)?;
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
    on: &mut SystemPlanner<'_, '_>,
    languages: &[&str],
    another: u64,
) -> Result<CommandArg> {
    let (scene, system, materials) = (on.scene, on.system, on.scene.materials);
    let all = languages.len() == materials.languages().count();
    let other_domain = system.preset == OTHER_DOMAIN;
    let mut request = Pretrain {
        preset: system.preset.parse().ok(),
        scale: Some(scene.scale),
        world: materials.world().filter(|_| all).map(|world| world.path()),
        ..Pretrain::unset()
    };
    if request.world.is_none() {
        request.texts = materials.text_of(languages, other_domain)?;
        if materials.prepared() {
            request.set.push("text.prepared=true".to_owned());
        }
    }
    if system.preset == "extra-anchors" && materials.world().is_none() {
        for target in &materials.targets {
            let dictionary = materials.anchor_dictionary(target).map_err(|place| {
                let remedy = "`isogloss data list` says where dictionaries come from";
                Error::data(place, "there is no such dictionary of extra anchors", remedy)
            })?;
            request.dictionaries.push(dictionary.named(&materials.pair(target)));
        }
    }
    for (language, there) in on.planner.sizes.equal(materials, system)? {
        request.set.push(format!("text.sample_of.{language}={there}"));
    }
    if let Some(there) = on.planner.sizes.of(materials, &system.preset, scene.scale)?
        && sentences(&system.preset, scene.scale).is_some_and(|wanted| there < wanted)
    {
        request.set.push(format!("text.sample={there}"));
    }
    let mut flags = scene.settings.pretrain.clone();
    if system.preset == Preset::Untrained.name() {
        flags = without_steps(flags);
    }
    flags.extend(system.flags.clone());
    on.planner.read_test_exclusions(&scene, languages, other_domain);
    let draft = StepDraft::of(&request, on.name("pretrain"));
    let mut rest = placed(scene.seed + 1000 * another);
    share_text(on.planner, (&request, &flags), &mut rest)?;
    trained(on, draft.args(flags).then(&rest))
}

/// The seed of a pretraining, and its folder.
fn placed(seed: u64) -> Pretrain {
    let out = CommandArg::here("run").path();
    Pretrain { seed: i64::try_from(seed).ok(), out, ..Pretrain::unset() }
}

/// Adds a pretraining; gives its run.
fn trained(on: &mut SystemPlanner<'_, '_>, draft: StepDraft) -> Result<CommandArg> {
    let kind = if on.scene.materials.prepared() { "" } else { " real" };
    let draft = draft.kind(&format!("{}{kind}", on.scene.scale)).resumes("run");
    Ok(StepList::made(on.planner.add(draft)?, "run"))
}

/// Plans an encoder of all languages but the last, and the training that gives it the last.
fn extend(on: &mut SystemPlanner<'_, '_>, languages: &[&str]) -> Result<CommandArg> {
    let (scene, system, materials) = (on.scene, on.system, on.scene.materials);
    let (new, known) = languages.split_last().expect("a source and a target");
    let factors = [("languages".to_owned(), known.join("+"))].into();
    let base = System { factors, flags: Vec::new(), ..system.clone() };
    let base = pretrain(&mut on.with(&base), known, 0)?;
    let (from, scale) = (Some(base.path()), Some(scene.scale));
    let mut request = Pretrain { from, scale, ..Pretrain::unset() };
    if system.model == SystemKind::Rehearsed {
        request.texts = materials.text_of(known, false)?;
    }
    on.planner.read_test_exclusions(&scene, &[*new], false);
    request.added = materials.text_of(&[*new], false)?;
    let draft = StepDraft::of(&request, on.name(&format!("add {new}")));
    trained(on, draft.args(system.flags.clone()).then(&placed(scene.seed)))
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

fn alone(on: &mut SystemPlanner<'_, '_>, language: &str, another: u64) -> Result<CommandArg> {
    let mut factors = on.system.factors.clone();
    factors.insert("language".to_owned(), language.to_owned());
    let system = System { preset: "monolingual".to_owned(), factors, ..on.system.clone() };
    pretrain(&mut on.with(&system), &[language], another)
}

/// Plans static vectors of the subwords of an encoder, trained on its sentences, and composes them to words.
fn statics(
    on: &mut SystemPlanner<'_, '_>,
    languages: &[&str],
) -> Result<BTreeMap<String, CommandArg>> {
    let (scene, system) = (on.scene, on.system);
    let encoder = System { model: SystemKind::Encoder, flags: Vec::new(), ..system.clone() };
    let run = pretrain(&mut on.with(&encoder), languages, 0)?;
    let out = CommandArg::here("subwords.vec").path();
    let draft = match system.model {
        SystemKind::Glove => {
            let (mut asked, mut rest) = (Glove::unset(), Glove::unset());
            (asked.input.model, asked.dim) = (Some(run.path()), scene.scale.dim());
            (rest.input.text.seed, rest.input.out) = (scene.seed, out);
            let draft = StepDraft::of(&asked, on.name("glove"));
            draft.args(system.flags.clone()).then(&rest)
        }
        _ => {
            let (mut asked, mut rest) = (Word2vec::unset(), Word2vec::unset());
            (asked.input.model, asked.dim) = (Some(run.path()), scene.scale.dim());
            (rest.input.text.seed, rest.input.out) = (scene.seed, out);
            let draft = StepDraft::of(&asked, on.name("word2vec"));
            draft.args(system.flags.clone()).then(&rest)
        }
    };
    let subwords = StepList::made(on.planner.add(draft)?, "subwords.vec");
    let of_language = |language: &&str| {
        let request = Words {
            model: run.path(),
            subwords: Some(subwords.path()),
            out: CommandArg::here("words.vec").path(),
            ..words_of(&scene, language)
        };
        let draft = StepDraft::of(&request, on.name(&format!("words of {language}")));
        let step = on.planner.add(draft.kind("static"))?;
        Ok(((*language).to_owned(), StepList::made(step, "words.vec")))
    };
    languages.iter().map(of_language).collect()
}

/// The words of a language in its text, of no model yet.
pub(super) fn words_of(scene: &EvaluationContext<'_>, language: &str) -> Words {
    let texts = scene.materials.text(language, false);
    Words {
        texts: texts.iter().map(|file| file.named(language)).collect(),
        lines: scene.materials.prepared(),
        limit: Some(scene.sentences() as u64),
        ..Words::unset()
    }
}

/// Plans skip-gram vectors with character n-grams (Bojanowski et al. 2017) on each language's text.
fn fasttext(
    on: &mut SystemPlanner<'_, '_>,
    languages: &[&str],
) -> Result<BTreeMap<String, CommandArg>> {
    let (scene, system) = (on.scene, on.system);
    let of_language = |language: &&str| {
        let (mut asked, mut rest) = (Word2vec::unset(), Word2vec::unset());
        asked.ngrams = Some((3, 6));
        asked.input.text.texts = scene.materials.text_of(&[*language], false)?;
        if scene.materials.prepared() {
            asked.input.text.sentences.lines = true;
            asked.input.tokenizer = "whitespace".to_owned();
        }
        (rest.input.text.seed, rest.input.out) = (scene.seed, CommandArg::here("words.vec").path());
        let draft = StepDraft::of(&asked, on.name(&format!("n-gram vectors of {language}")));
        let draft = draft.kind("n-grams").args(system.flags.clone()).then(&rest);
        Ok(((*language).to_owned(), StepList::made(on.planner.add(draft)?, "words.vec")))
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
