//! From a study to its steps: what would run, and which number of which result is filed where.

use super::error::{Error, Result};
use super::file::{Evaluation, Scale, Study, System, World};
use super::materials::Materials;
use super::readings::{Reader, Reading};
use super::recipes;
use super::sizes::{Count, Sizes};
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
    /// What is not measured, in words: a line for each system that an evaluation cannot be made on.
    pub passed_over: Vec<String>,
}

impl Plan {
    /// Works out the steps of a study, to be computed on a device (as `--device` names it). Where the
    /// papers take more sentences than real languages may have, these are counted.
    pub fn of<'a>(
        study: &Study,
        scale: &str,
        device: &str,
        count: &'a mut Count<'a>,
    ) -> Result<Self> {
        let known = ["tiny", "small", "paper"];
        if !known.contains(&scale) {
            let reason = format!("there is no scale `{scale}`");
            return Err(Error::file("--scale", reason, format!("take {}", known.join(", "))));
        }
        let (steps, sizes) = (Steps::on(device), Sizes::new(count));
        let mut planner = Planner { steps, sizes, readings: Vec::new(), passed_over: Vec::new() };
        let settings = study.at(scale);
        for &seed in settings.seeds.as_ref().unwrap_or(&study.seeds) {
            for system in study.compared() {
                for materials in choices(study, &mut planner.steps, seed, &system)? {
                    let scene =
                        Scene { study, scale, settings: &settings, seed, materials: &materials };
                    let system = scene.sized(&mut planner.sizes, system.clone())?;
                    scene.plan(&mut planner, &system)?;
                }
            }
        }
        let Planner { steps, mut readings, passed_over, .. } = planner;
        if readings.is_empty() {
            let reason = format!("nothing of it can be measured: {}", passed_over.join("; "));
            return Err(Error::file(
                &study.name,
                reason,
                "name other systems, or other evaluations",
            ));
        }
        let steps = wanted(steps.into_steps(), &mut readings);
        let (study, scale) = (study.name.clone(), scale.to_owned());
        Ok(Self { study, scale, steps, readings, passed_over })
    }
}

/// The steps that some number comes from: what nothing is read from is not run.
fn wanted(steps: Vec<Step>, readings: &mut [Reading]) -> Vec<Step> {
    let mut asked = vec![false; steps.len()];
    readings.iter().for_each(|reading| asked[reading.step.0] = true);
    for (number, step) in steps.iter().enumerate().rev() {
        if asked[number] {
            step.needs.iter().for_each(|need| asked[need.0] = true);
        }
    }
    let new = |step: StepId| StepId(asked[..step.0].iter().filter(|asked| **asked).count());
    readings.iter_mut().for_each(|reading| reading.step = new(reading.step));
    let kept = steps.into_iter().zip(&asked).filter(|(_, asked)| **asked);
    kept.map(|(mut step, _)| {
        step.renumber(new);
        step
    })
    .collect()
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
pub(super) struct Planner<'a> {
    pub(super) steps: Steps,
    pub(super) sizes: Sizes<'a>,
    readings: Vec<Reading>,
    passed_over: Vec<String>,
}

impl Planner<'_> {
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

    /// A system that takes so many sentences of real text says how many these are.
    fn sized(&self, sizes: &mut Sizes<'_>, mut system: System) -> Result<System> {
        if let Some(there) = sizes.of(self.materials, &system.preset, self.scale)? {
            system.factors.insert("sentences".to_owned(), there.to_string());
        }
        Ok(system)
    }

    fn plan(&self, planner: &mut Planner<'_>, system: &System) -> Result<()> {
        let made = Made::plan(planner, self, system)?;
        let mut passed_over = Vec::new();
        for evaluation in &self.study.evaluate {
            let (scene, made) = (self, &made);
            let before = planner.readings.len();
            match evaluation {
                Evaluation::Transfer(task) => {
                    recipes::transfer(planner, scene, system, made, *task)?;
                }
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
            if planner.readings.len() == before {
                passed_over.push(evaluation.name());
            }
        }
        if !passed_over.is_empty() {
            let name = system.factors.values().cloned().collect::<Vec<_>>().join(", ");
            let line = format!("{name} is no system to measure {} on", passed_over.join(", "));
            if !planner.passed_over.contains(&line) {
                planner.passed_over.push(line);
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

    /// The plan of a study whose languages have as much text as could be wished.
    fn planned(study: &Study, scale: &str) -> Result<Plan> {
        Plan::of(study, scale, CPU, &mut |_, _, most| Ok(most))
    }

    #[test]
    fn every_study_comes_to_steps_at_every_scale() {
        for name in Study::names() {
            for scale in ["tiny", "small", "paper"] {
                let plan = planned(&Study::find(name).unwrap(), scale).unwrap();
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
            let plan = planned(&Study::find(name).unwrap(), "tiny").unwrap();
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
            let plan = planned(&study, "small").unwrap();
            assert!(plan.steps.iter().all(|step| step.kind != "world generate"), "{name}");
            assert!(plan.passed_over.is_empty(), "{name}: {:?}", plan.passed_over);
            for (number, step) in plan.steps.iter().enumerate() {
                let read = plan.readings.iter().any(|reading| reading.step.0 == number);
                let needed = plan.steps.iter().any(|other| other.needs.contains(&StepId(number)));
                assert!(read || needed, "{name}: nothing comes of {}", step.name);
            }
        }
        let missing = Real { data: folder.path().join("none"), pairs: vec!["en-fr".to_owned()] };
        let study = Study { real: Some(missing), ..Study::find("anchors").unwrap() };
        let refused = planned(&study, "small").err().unwrap().to_string();
        assert!(refused.contains("text/en.*.txt.zst"), "{refused}");
    }
    fn real(folder: &Path, name: &str) -> Study {
        let real = Real { data: folder.to_owned(), pairs: vec!["en-fr".to_owned()] };
        Study { worlds: Vec::new(), real: Some(real), ..Study::find(name).unwrap() }
    }

    fn commands(plan: &Plan) -> Vec<String> {
        let words = |(number, step): (usize, &Step)| {
            step.words(StepId(number), |StepId(n)| format!("step-{n}").into()).join(" ")
        };
        plan.steps.iter().enumerate().map(words).collect()
    }

    #[test]
    fn the_larger_size_is_what_the_smaller_language_has() {
        let folder = tempfile::tempdir().unwrap();
        data(folder.path(), ["en", "fr"]);
        let plan = |name: &str, scale: &str, french: u64| {
            let mut counted = 0;
            let plan =
                Plan::of(&real(folder.path(), name), scale, CPU, &mut |language, files, most| {
                    assert!(files[0].ends_with(format!("text/{language}.wiki.txt.zst")));
                    counted += 1;
                    Ok(most.min(if language == "fr" { french } else { 938_160 }))
                });
            assert!(counted <= 4, "each language once for each size");
            plan.map_err(|error| error.to_string())
        };
        for name in ["data-size", "window"] {
            let sizes: std::collections::BTreeSet<_> = plan(name, "small", 741_170)
                .unwrap()
                .readings
                .iter()
                .filter_map(|reading| {
                    Some((
                        reading.factors.get("size")?.clone(),
                        reading.factors.get("sentences")?.clone(),
                    ))
                })
                .collect();
            assert!(sizes.contains(&("large".to_owned(), "741170".to_owned())), "{sizes:?}");
            assert!(!sizes.contains(&("small".to_owned(), "741170".to_owned())), "{sizes:?}");
        }
        let small = commands(&plan("data-size", "small", 741_170).unwrap());
        let capped = small.iter().filter(|command| command.contains("--set text.sample=741170"));
        assert_eq!(capped.count(), 3, "the larger encoder of each of three seeds");
        let tiny = commands(&plan("data-size", "tiny", 741_170).unwrap());
        assert!(tiny.iter().all(|command| !command.contains("text.sample")));
    }

    #[test]
    fn too_little_text_for_two_sizes_is_refused_before_anything_is_trained() {
        let folder = tempfile::tempdir().unwrap();
        data(folder.path(), ["en", "fr"]);
        for there in [150_000, 200_000] {
            let study = real(folder.path(), "data-size");
            let refused = Plan::of(&study, "small", CPU, &mut |_, _, most| Ok(most.min(there)));
            let refused = refused.err().unwrap().to_string();
            assert!(refused.contains(&format!("holds {there} sentences")), "{refused}");
        }
    }

    #[test]
    fn text_of_another_domain_is_asked_for_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        data(folder.path(), ["en", "fr"]);
        std::fs::remove_file(folder.path().join("text/fr.docs.txt.zst")).unwrap();
        let refused = planned(&real(folder.path(), "domain"), "tiny").err().unwrap().to_string();
        for word in ["text/fr.docs.txt.zst", "another domain", "of your own", "wiki-cc"] {
            assert!(refused.contains(word), "{word}: {refused}");
        }
        // English text of another domain is not asked for.
        std::fs::write(folder.path().join("text/fr.docs.txt.zst"), "").unwrap();
        std::fs::remove_file(folder.path().join("text/en.docs.txt.zst")).unwrap();
        planned(&real(folder.path(), "domain"), "tiny").unwrap();
    }

    #[test]
    fn words_of_real_languages_are_linked_in_their_parallel_text() {
        let folder = tempfile::tempdir().unwrap();
        data(folder.path(), ["en", "fr"]);
        let study = real(folder.path(), "contextual-alignment");
        let find = |plan: &Plan, verb: &str| {
            let commands = commands(plan);
            commands.into_iter().find(|command| command.starts_with(verb)).unwrap()
        };
        let linking = find(&planned(&study, "tiny").unwrap(), "word-align");
        assert!(linking.contains("xnli/test-en.tsv") && linking.contains("xnli/dev-fr.tsv"));
        let pairs = folder.path().join("bitext/bitext.en-fr.tsv");
        std::fs::create_dir_all(pairs.parent().unwrap()).unwrap();
        std::fs::write(&pairs, "a\tb\n").unwrap();
        let plan = planned(&study, "tiny").unwrap();
        let linking = find(&plan, "word-align");
        assert!(linking.contains("bitext.en-fr.tsv --lang en --lang fr"), "{linking}");
        let maps = find(&plan, "align contexts");
        assert!(maps.contains("--pairs en-fr=") && maps.contains("--onto en"), "{maps}");
        let mapped = |reading: &&Reading| reading.factors["system"].ends_with("-mapped");
        // Two systems, two tasks, three layers.
        assert_eq!(plan.readings.iter().filter(mapped).count(), 12);
    }

    #[test]
    fn what_cannot_be_measured_is_said_and_not_made() {
        let mut study = Study::find("contextual-alignment").unwrap();
        study.evaluate = vec![Evaluation::Ner];
        let plan = planned(&study, "tiny").unwrap();
        assert_eq!(plan.passed_over, ["monolingual is no system to measure ner on"]);
        assert_eq!(plan.steps.len(), 3, "a world, the bilingual encoder and its transfer");
        assert_eq!(plan.steps[2].needs, [StepId(0), StepId(1)]);
        assert!(commands(&plan)[2].contains("step-1/run"));
        study.systems.truncate(1);
        let refused = planned(&study, "tiny").err().unwrap().to_string();
        assert!(refused.contains("nothing of it can be measured: monolingual"), "{refused}");
    }
}
