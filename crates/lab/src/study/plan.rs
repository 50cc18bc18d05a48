//! From a study to its steps: what would run, and which number of which result is filed where.

use super::error::{Error, Result};
use super::file::{Evaluation, Scale, Study, System, World};
use super::materials::{Materials, Task};
use super::readings::{Reader, Reading};
use super::recipes;
use super::step::{Draft, Step, StepId, Steps};
use super::systems::Made;
use crate::record::Factors;

/// What a study comes to.
pub struct Plan {
    /// The study's name.
    pub study: String,
    /// The scale.
    pub scale: String,
    /// The steps; what a step needs comes before it.
    pub steps: Vec<Step>,
    /// What is read from their results.
    pub readings: Vec<Reading>,
}

impl Plan {
    /// Works out the steps of a study, to be computed on a device (as `--device` names it).
    pub fn of(study: &Study, scale: &str, device: &str) -> Result<Self> {
        let known = ["tiny", "small", "paper"];
        if !known.contains(&scale) {
            let reason = format!("there is no scale `{scale}`");
            return Err(Error::file("--scale", reason, format!("take {}", known.join(", "))));
        }
        let mut planner = Planner { steps: Steps::on(device), readings: Vec::new() };
        let settings = study.at(scale);
        for &seed in settings.seeds.as_ref().unwrap_or(&study.seeds) {
            for system in study.compared() {
                for materials in choices(study, &mut planner.steps, seed, &system)? {
                    let scene =
                        Scene { study, scale, settings: &settings, seed, materials: &materials };
                    scene.plan(&mut planner, &system)?;
                }
            }
        }
        let Planner { steps, readings } = planner;
        Ok(Self {
            study: study.name.clone(),
            scale: scale.to_owned(),
            steps: steps.into_steps(),
            readings,
        })
    }
}

/// The condition under which the other languages' text is of another domain than the first's.
pub(super) const OTHER_DOMAIN: &str = "wiki-cc";

/// The languages that a study is of, each choice with its files.
fn choices(study: &Study, steps: &mut Steps, seed: u64, system: &System) -> Result<Vec<Materials>> {
    if let Some(real) = &study.real {
        let pair = |pair: &String| Materials::real(&real.data, pair);
        return Ok(real.pairs.iter().map(pair).collect());
    }
    let one = [World::default()];
    let worlds = if study.worlds.is_empty() { &one } else { study.worlds.as_slice() };
    let other_domain = system.preset == OTHER_DOMAIN;
    worlds.iter().map(|world| Materials::invent(steps, world, seed, other_domain)).collect()
}

/// A plan in the making.
pub(super) struct Planner {
    pub(super) steps: Steps,
    readings: Vec<Reading>,
}

impl Planner {
    /// Adds a command, or finds the step that is the same.
    pub(super) fn add(&mut self, draft: Draft) -> Result<StepId> {
        self.steps.add(draft)
    }

    /// Files what a step's result says under some factors.
    pub(super) fn read(&mut self, step: StepId, reader: Reader, seed: u64, factors: Factors) {
        self.readings.push(Reading { step, reader, seed, factors });
    }
}

/// Where a system is looked at: which study, languages, scale and seed.
#[derive(Clone, Copy)]
pub(super) struct Scene<'a> {
    pub(super) study: &'a Study,
    pub(super) scale: &'a str,
    pub(super) settings: &'a Scale,
    pub(super) seed: u64,
    pub(super) materials: &'a Materials,
}

impl Scene<'_> {
    /// How many layers encoders have at this scale.
    pub(super) fn layers(&self) -> usize {
        if self.scale == "tiny" { 4 } else { 8 }
    }

    /// How many sentences of each language words and means are taken from; paper 1 took 500,000.
    pub(super) fn sentences(&self) -> &'static str {
        if self.scale == "tiny" { "20000" } else { "500000" }
    }

    /// The layers to look at one by one.
    pub(super) fn chosen_layers(&self) -> Vec<usize> {
        match self.settings.layers.as_slice() {
            [] => (0..=self.layers()).collect(),
            chosen => chosen.to_vec(),
        }
    }

    /// The factors of a system here, with some more.
    pub(super) fn factors(&self, system: &System, more: &[(&str, &str)]) -> Factors {
        let mut factors = self.materials.factors.clone();
        factors.extend(system.factors.clone());
        factors.extend(more.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())));
        factors
    }

    /// A name for a step about a system.
    pub(super) fn name(&self, what: &str, system: &System) -> String {
        let of = system.factors.values().chain(self.materials.factors.values());
        let mut name = format!("{what}: {}", of.cloned().collect::<Vec<_>>().join(", "));
        if !self.materials.prepared() {
            name += &format!(", {}", self.materials.pair(&self.materials.targets.join("+")));
        }
        format!("{name}, seed {}", self.seed)
    }

    fn plan(&self, planner: &mut Planner, system: &System) -> Result<()> {
        let made = Made::plan(planner, self, system)?;
        for evaluation in &self.study.evaluate {
            let (scene, made) = (self, &made);
            match evaluation {
                Evaluation::Nli => recipes::transfer(planner, scene, system, made, Task::Nli)?,
                Evaluation::Ner => recipes::transfer(planner, scene, system, made, Task::Ner)?,
                Evaluation::Parse => recipes::transfer(planner, scene, system, made, Task::Parse)?,
                Evaluation::Retrieval => recipes::retrieval(planner, scene, system, made)?,
                Evaluation::Words => recipes::words(planner, scene, system, made)?,
                Evaluation::Contexts => recipes::contexts(planner, scene, system, made)?,
                Evaluation::Similarity => recipes::similarity(planner, scene, system, made)?,
                Evaluation::WordRetrieval => recipes::word_retrieval(planner, scene, system, made)?,
                Evaluation::Shift => recipes::shift(planner, scene, system, made)?,
                Evaluation::ShiftedTransfer => {
                    recipes::shifted_transfer(planner, scene, system, made)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::study::file::Real;
    use crate::study::step::CPU;

    #[test]
    fn every_study_comes_to_steps_at_every_scale() {
        for name in Study::names() {
            for scale in ["tiny", "small", "paper"] {
                let plan = Plan::of(&Study::find(name).unwrap(), scale, CPU).unwrap();
                assert!(plan.readings.len() >= plan.steps.len() / 4, "{name} at {scale}");
                for (number, step) in plan.steps.iter().enumerate() {
                    assert!(step.needs.iter().all(|need| need.0 < number), "{}", step.name);
                }
            }
        }
    }

    #[test]
    fn studies_share_what_is_the_same() {
        let keys = |name: &str| -> Vec<String> {
            let plan = Plan::of(&Study::find(name).unwrap(), "tiny", CPU).unwrap();
            plan.steps
                .iter()
                .filter(|step| step.kind == "pretrain tiny")
                .map(|s| s.key.clone())
                .collect()
        };
        let (anchors, sharing) = (keys("anchors"), keys("sharing"));
        let common = anchors.iter().filter(|key| sharing.contains(key)).count();
        assert_eq!(common, 3, "the default encoder of each of three seeds");
    }

    /// A folder with an empty file under every name that real studies of these languages look for.
    fn data(folder: &Path, languages: [&str; 2]) {
        let make = |name: String| {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        };
        let [en, fr] = languages;
        for language in languages {
            make(format!("text/{language}.wiki.txt.zst"));
            make(format!("text/{language}.docs.txt.zst"));
            for part in ["train", "dev", "test"] {
                make(format!("xnli/{part}-{language}.tsv"));
                make(format!("ner/panx-{part}-{language}.tsv"));
                make(format!("ud/{language}_gsd-ud-{part}.conllu"));
            }
        }
        make("nli/multinli.train.tsv".to_owned());
        for side in ["eng", "fra"] {
            make(format!("tatoeba/tatoeba.fra-eng.{side}"));
        }
        for name in
            [format!("{fr}-{en}.0-5000"), format!("{fr}-{en}.5000-6500"), format!("{en}-{fr}")]
        {
            make(format!("muse/{name}.txt"));
        }
    }

    #[test]
    fn every_study_can_be_asked_of_real_languages() {
        let folder = tempfile::tempdir().unwrap();
        data(folder.path(), ["en", "fr"]);
        for name in Study::names() {
            let mut study = Study::find(name).unwrap();
            study.worlds.clear();
            study.real =
                Some(Real { data: folder.path().to_owned(), pairs: vec!["en-fr".to_owned()] });
            let plan = Plan::of(&study, "small", CPU).unwrap();
            assert!(plan.steps.iter().all(|step| step.kind != "world generate"), "{name}");
        }
        let missing = Real { data: folder.path().join("none"), pairs: vec!["en-fr".to_owned()] };
        let study = Study { real: Some(missing), ..Study::find("anchors").unwrap() };
        let refused = Plan::of(&study, "small", CPU).err().unwrap().to_string();
        assert!(refused.contains("text/en.*.txt.zst"), "{refused}");
    }
}
