//! What is compared: encoders and static vectors, and the steps that make them.

use std::collections::BTreeMap;

use super::error::Result;
use super::file::{Model, System};
use super::plan::{OTHER_DOMAIN, Planner, Scene};
use super::sizes::sentences;
use super::step::{Arg, Draft, Steps};

/// An encoder that speaks for a language.
#[derive(Clone)]
pub(super) struct Run {
    /// The run's folder.
    pub(super) folder: Arg,
    /// The language that it is asked in: another one, where two encoders of one language are compared.
    pub(super) language: String,
}

/// A system whose making is planned.
pub(super) enum Made {
    /// Encoders: which run speaks for each language, and whether all are one.
    Encoders { runs: BTreeMap<String, Run>, one: bool },
    /// Static vectors: a file for each language.
    Vectors(BTreeMap<String, Arg>),
}

impl Made {
    /// Plans what makes a system.
    pub(super) fn plan(
        planner: &mut Planner<'_>,
        scene: &Scene<'_>,
        system: &System,
    ) -> Result<Self> {
        let languages: Vec<&str> = scene.materials.languages().collect();
        let encoders = |runs: Vec<Arg>, one: bool| {
            let run = |(&language, folder): (&&str, Arg)| {
                (language.to_owned(), Run { folder, language: language.to_owned() })
            };
            Made::Encoders { runs: languages.iter().zip(runs).map(run).collect(), one }
        };
        let source = &languages[..1];
        Ok(match system.model {
            Model::Encoder => {
                let run = pretrain(planner, scene, system, &languages, 0)?;
                encoders(vec![run; languages.len()], true)
            }
            Model::Monolingual => {
                let one = |language: &&str| alone(planner, scene, system, language, 0);
                encoders(languages.iter().map(one).collect::<Result<_>>()?, false)
            }
            Model::Random => {
                let trained = alone(planner, scene, system, source[0], 0)?;
                let random = System { preset: "random".to_owned(), ..system.clone() };
                let random = pretrain(planner, scene, &random, &languages, 0)?;
                let others = vec![random; languages.len() - 1];
                encoders(std::iter::once(trained).chain(others).collect(), false)
            }
            Model::Twice => {
                let first = alone(planner, scene, system, source[0], 0)?;
                let second = alone(planner, scene, system, source[0], 1)?;
                let run = |folder: Arg| Run { folder, language: source[0].to_owned() };
                let names = languages[..2].iter().map(|&language| language.to_owned());
                Made::Encoders { runs: names.zip([run(first), run(second)]).collect(), one: false }
            }
            Model::Word2vec | Model::Glove => {
                Made::Vectors(statics(planner, scene, system, &languages)?)
            }
            Model::Fasttext => Made::Vectors(fasttext(planner, scene, system, &languages)?),
        })
    }
}

/// Plans the pretraining of an encoder; `another` tells seeds apart where one is not enough.
fn pretrain(
    planner: &mut Planner<'_>,
    scene: &Scene<'_>,
    system: &System,
    languages: &[&str],
    another: u64,
) -> Result<Arg> {
    let materials = scene.materials;
    let all = languages.len() == materials.languages().count();
    let kind = if materials.prepared() { "" } else { " real" };
    let mut draft = Draft::new("pretrain", scene.name("pretrain", system))
        .kind(&format!("{}{kind}", scene.scale))
        .flag("--preset", system.preset.as_str())
        .flag("--scale", scene.scale);
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
    if system.preset != "random" {
        draft = draft.args(scene.settings.pretrain.clone());
    }
    let seed = (scene.seed + 1000 * another).to_string();
    let draft = draft.args(system.flags.clone()).flag("--seed", seed);
    let run = planner.add(draft.flag("--out", Arg::here("run")).resumes("run"))?;
    Ok(Steps::made(run, "run"))
}

/// Plans an encoder of one language.
fn alone(
    planner: &mut Planner<'_>,
    scene: &Scene<'_>,
    system: &System,
    language: &str,
    another: u64,
) -> Result<Arg> {
    let mut factors = system.factors.clone();
    factors.insert("language".to_owned(), language.to_owned());
    let system = System { preset: "monolingual".to_owned(), factors, ..system.clone() };
    pretrain(planner, scene, &system, &[language], another)
}

/// Plans static vectors on the sentences and pieces of an encoder, put together to words.
fn statics(
    planner: &mut Planner<'_>,
    scene: &Scene<'_>,
    system: &System,
    languages: &[&str],
) -> Result<BTreeMap<String, Arg>> {
    let encoder = System { model: Model::Encoder, flags: Vec::new(), ..system.clone() };
    let run = pretrain(planner, scene, &encoder, languages, 0)?;
    let kind = if system.model == Model::Glove { "glove" } else { "word2vec" };
    let dim = match scene.scale {
        "tiny" => "48",
        "small" => "512",
        _ => "768",
    };
    let draft = Draft::new(&format!("vectors {kind}"), scene.name(kind, system))
        .flag("--run", run.clone())
        .flag("--dim", dim)
        .args(system.flags.clone())
        .flag("--seed", scene.seed.to_string())
        .flag("--out", Arg::here("pieces.vec"));
    let pieces = Steps::made(planner.add(draft)?, "pieces.vec");
    let of_language = |language: &&str| {
        let name = scene.name(&format!("words of {language}"), system);
        let draft = Draft::new("words", name)
            .kind("static")
            .flag("--model", run.clone())
            .flag("--static", pieces.clone())
            .args(words_of(scene, language))
            .flag("--out", Arg::here("words.vec"));
        Ok(((*language).to_owned(), Steps::made(planner.add(draft)?, "words.vec")))
    };
    languages.iter().map(of_language).collect()
}

/// The flags of `words` that say whose words, and from which text.
pub(super) fn words_of(scene: &Scene<'_>, language: &str) -> Vec<Arg> {
    let mut flags = vec!["--lang".into(), language.into()];
    for file in scene.materials.text(language, false) {
        flags.extend(["--text".into(), file]);
    }
    if scene.materials.prepared() {
        flags.push("--lines".into());
    }
    flags.extend(["--first".into(), scene.sentences().into()]);
    flags
}

/// Plans vectors with character n-grams on each language's text.
fn fasttext(
    planner: &mut Planner<'_>,
    scene: &Scene<'_>,
    system: &System,
    languages: &[&str],
) -> Result<BTreeMap<String, Arg>> {
    let of_language = |language: &&str| {
        let name = scene.name(&format!("n-gram vectors of {language}"), system);
        let mut draft = Draft::new("vectors word2vec", name)
            .kind("n-grams")
            .flag("--ngrams", "3-6")
            .args(scene.materials.text_flags(&[*language], false)?);
        if scene.materials.prepared() {
            draft = draft.arg("--lines").flag("--tokenizer", "whitespace");
        }
        let draft = draft
            .args(system.flags.clone())
            .flag("--seed", scene.seed.to_string())
            .flag("--out", Arg::here("words.vec"));
        Ok(((*language).to_owned(), Steps::made(planner.add(draft)?, "words.vec")))
    };
    languages.iter().map(of_language).collect()
}
