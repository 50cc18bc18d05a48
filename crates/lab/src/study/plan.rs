//! From a study to its steps, and which numbers of their results become which records.

use std::result::Result as StdResult;

use commands::measured::{Extractor, Factors, Mismatch, StepResults};
use serde_json::Value;
use terms::Scale;

use super::error::{Error, Result};
use super::file::{InventedLanguages, Study, System, SystemKind};
use super::materials::LanguageData;
use super::settings::StudySettings;
use super::sizes::{CorpusSizes, SentenceCounter};
use super::step::{StepDraft, StepId, StepList, StudyStep};
use super::system_planner::{EvaluationContext, SystemPlanner};
use super::systems::common_positions;

/// What is extracted from a step's result, and the factors of its records.
pub struct Extraction {
    pub step: StepId,
    pub extractor: Extractor,
    pub seed: u64,
    /// What the records depend on; the extractor adds more.
    pub factors: Factors,
}

impl Extraction {
    /// What it measures, and on which languages its step (this one) does so, whatever the step's key: with study, scale and seed
    /// the identity of its records, which are replaced together.
    pub fn slot(&self, step: &StudyStep) -> String {
        let reader = format!("{:?}", self.extractor).replace(['{', '}', '"', ','], "");
        let factors = self.factors.iter().map(|(name, level)| format!("{name}={level}"));
        let words = reader.split_whitespace().map(str::to_owned).chain(factors);
        let words = words.chain(step.paired().into_iter().map(str::to_owned));
        words.collect::<Vec<_>>().join(" ")
    }

    /// Extracts records from a result; the error names the field that is missing or wrong.
    pub fn read(&self, result: &Value) -> StdResult<StepResults, Mismatch> {
        self.extractor.read(result, &self.factors)
    }
}

/// The steps of a study and what is extracted from them.
pub struct StudyPlan {
    pub study: String,
    pub scale: Scale,
    pub steps: Vec<StudyStep>,
    pub extractions: Vec<Extraction>,
    pub(super) invented: bool,
    pub(super) settings: StudySettings,
    /// A line for each system that an evaluation does not apply to, and for each file that is missing.
    pub skipped: Vec<String>,
}

impl StudyPlan {
    /// Plans the steps of a study on a device (as `--device` names it). Where a preset takes more sentences than
    /// real languages may have, these are counted.
    pub fn of<'a>(
        study: &Study,
        scale: Scale,
        device: &str,
        count: &'a mut SentenceCounter<'a>,
    ) -> Result<Self> {
        let (steps, sizes) = (StepList::on(device), CorpusSizes::new(count));
        let mut planner = StudyPlanner {
            steps,
            sizes,
            extractions: Vec::new(),
            skipped: Vec::new(),
            left_out: 0,
        };
        let (settings, longest) = (study.at(scale), common_positions(study, scale));
        for (number, &seed) in settings.seeds.as_ref().unwrap_or(&study.seeds).iter().enumerate() {
            for system in study.compared() {
                if is_the_same_invented(study, &system) {
                    continue;
                }
                let Some((system, finetuning_only)) = of_seed(system, number) else { continue };
                for mut materials in choices(study, &mut planner, (scale, seed), &system)? {
                    if system.model == SystemKind::Given {
                        let (readable, lines) = materials.with_text();
                        lines.into_iter().for_each(|line| planner.leave_out(line));
                        materials = readable;
                    }
                    let Some(last) = materials.targets.last() else { continue };
                    if study.adds_language() {
                        // The order of languages is in no other factor, and says which one was added.
                        materials.factors.insert("added".to_owned(), last.clone());
                    }
                    let scene = EvaluationContext {
                        study,
                        scale,
                        settings: &settings,
                        seed,
                        materials: &materials,
                        finetuning_only,
                        longest,
                    };
                    let system = sized(&mut planner.sizes, &materials, scale, system.clone())?;
                    SystemPlanner { planner: &mut planner, scene, system: &system }.plan()?;
                }
            }
        }
        let StudyPlanner { steps: mut list, mut extractions, skipped, .. } = planner;
        if extractions.is_empty() {
            let reason = format!("nothing can be measured: {}", skipped.join("; "));
            let remedy = "name other systems, or other evaluations";
            return Err(Error::definition(&study.name, "evaluate", reason, remedy));
        }
        let steps = needed(list.take_steps(), &mut extractions);
        let settings = StudySettings::of(study, scale)?;
        let settings = settings.with_data(study, &list, &steps, &extractions);
        let (name, invented) = (study.name.clone(), study.real.is_none());
        Ok(Self { study: name, scale, steps, extractions, invented, settings, skipped })
    }
}

/// Whether a system whose text is cut to an equal amount is another one of the study, since invented text is of equal amount in
/// all domains: one encoder would be two conditions.
fn is_the_same_invented(study: &Study, system: &System) -> bool {
    let uncut = System { factors: Factors::new(), equal_text: false, ..system.clone() };
    study.real.is_none()
        && system.equal_text
        && study
            .compared()
            .into_iter()
            .any(|other| uncut == System { factors: Factors::new(), ..other })
}

/// A system as a seed has it, and whether only its fine-tuning differs from that of the first seed. Of several folders of a
/// model each is a seed; one alone gives the same hidden states whatever the seed.
fn of_seed(mut system: System, number: usize) -> Option<(System, bool)> {
    if system.model != SystemKind::Given {
        return Some((system, false));
    }
    let repeats = number > 0 && system.folders.len() == 1;
    let folder = system.folders.get(if repeats { 0 } else { number })?.clone();
    system.folders = vec![folder];
    Some((system, repeats))
}

/// The steps that some record depends on; the others are not run.
fn needed(steps: Vec<StudyStep>, extractions: &mut [Extraction]) -> Vec<StudyStep> {
    let mut needed = vec![false; steps.len()];
    extractions.iter().for_each(|extraction| needed[extraction.step.0] = true);
    for (number, step) in steps.iter().enumerate().rev() {
        if needed[number] {
            step.needs.iter().for_each(|need| needed[need.0] = true);
        }
    }
    let new = |step: StepId| StepId(needed[..step.0].iter().filter(|needed| **needed).count());
    extractions.iter_mut().for_each(|extraction| extraction.step = new(extraction.step));
    let kept = steps.into_iter().zip(&needed).filter(|(_, needed)| **needed);
    kept.map(|(mut step, _)| {
        step.renumber(new);
        step
    })
    .collect()
}

/// The preset whose target languages' text is of another domain than the source's.
pub(super) const OTHER_DOMAIN: &str = "wiki-cc";

/// The choices of languages of a study, each with its files.
fn choices(
    study: &Study,
    planner: &mut StudyPlanner<'_>,
    (scale, seed): (Scale, u64),
    system: &System,
) -> Result<Vec<LanguageData>> {
    let choices: Vec<LanguageData> = match &study.real {
        Some(real) => {
            let (data, steps) = (&real.data, &mut planner.steps);
            let mut choices = Vec::new();
            for languages in real.choices() {
                let real = LanguageData::real(data, &languages);
                // A model that is given is trained on text that is not here.
                choices.push(match system.model {
                    SystemKind::Given => real,
                    _ => real.without_tests(steps)?,
                });
            }
            for (language, alteration) in study.altered() {
                let (text, kind) = ((data.as_path(), language), (scale, seed));
                choices.push(LanguageData::altered(steps, text, &alteration, kind)?);
            }
            LanguageData::introduce(&mut choices);
            choices
        }
        None => {
            let one = [InventedLanguages::default()];
            let worlds = if study.worlds.is_empty() { &one } else { study.worlds.as_slice() };
            let other_domain = system.preset == OTHER_DOMAIN;
            let steps = &mut planner.steps;
            let invent = |world| LanguageData::invent(steps, world, seed, other_domain);
            worlds.iter().map(invent).collect::<Result<_>>()?
        }
    };
    if !system.paraphrases {
        return Ok(choices);
    }
    // One language beside itself is the same in every choice of its targets.
    let mut sources = std::collections::BTreeSet::new();
    let mut paraphrased = Vec::new();
    for data in choices {
        if study.real.is_none() || sources.insert(data.source.clone()) {
            let data = data.paraphrased(&mut planner.steps)?;
            paraphrased.extend(planner.found(data));
        }
    }
    Ok(paraphrased)
}

pub(super) struct StudyPlanner<'a> {
    pub(super) steps: StepList,
    pub(super) sizes: CorpusSizes<'a>,
    pub(super) extractions: Vec<Extraction>,
    skipped: Vec<String>,
    /// How often a line was kept about what is left out, the same one or another.
    pub(super) left_out: usize,
}

impl StudyPlanner<'_> {
    /// Adds a command, or finds the step with the same key.
    pub(super) fn add(&mut self, draft: StepDraft) -> Result<StepId> {
        self.steps.add(draft)
    }

    /// Records what a step's result holds under some factors.
    pub(super) fn read(&mut self, step: StepId, extractor: Extractor, seed: u64, factors: Factors) {
        self.extractions.push(Extraction { step, extractor, seed, factors });
    }

    /// The same of a step that all systems share: once.
    pub(super) fn read_once(
        &mut self,
        step: StepId,
        extractor: Extractor,
        seed: u64,
        factors: Factors,
    ) {
        let known = |one: &Extraction| {
            one.step == step
                && one.extractor == extractor
                && one.seed == seed
                && one.factors == factors
        };
        if !self.extractions.iter().any(known) {
            self.read(step, extractor, seed, factors);
        }
    }

    /// What was found or, where a file is missing, nothing: the line that says so is kept.
    pub(super) fn found<T>(&mut self, found: StdResult<T, String>) -> Option<T> {
        found.map_err(|line| self.leave_out(line)).ok()
    }

    /// Reads how many sentences of tests were left out of the text that an encoder is trained on.
    pub(super) fn read_test_exclusions(
        &mut self,
        scene: &EvaluationContext<'_>,
        languages: &[&str],
        other_domain: bool,
    ) {
        for language in languages {
            let other = other_domain && *language != scene.materials.source;
            let Some(step) = scene.materials.test_exclusion(language, other) else { continue };
            let of = if other { "pretraining, other domain" } else { "pretraining" };
            let mut factors = scene.materials.factors.clone();
            // The source's text belongs to the first pair, as its scores do.
            let of_source = *language == scene.materials.source;
            let target = if of_source { &scene.materials.targets[0] } else { *language };
            factors.insert("pair".to_owned(), scene.materials.pair(target));
            factors.insert("language".to_owned(), (*language).to_owned());
            self.read_once(step, Extractor::TestExclusion(of), scene.seed, factors);
        }
    }

    /// Keeps a line about what is left out, once.
    pub(super) fn leave_out(&mut self, line: String) {
        self.left_out += 1;
        if !self.skipped.contains(&line) {
            self.skipped.push(line);
        }
    }
}

/// Labels a system whose preset takes a number of sentences of real text with that number.
fn sized(
    sizes: &mut CorpusSizes<'_>,
    materials: &LanguageData,
    scale: Scale,
    mut system: System,
) -> Result<System> {
    if system.model != SystemKind::Given
        && let Some(there) = sizes.of(materials, &system.preset, scale)?
    {
        system.factors.insert("sentences".to_owned(), there.to_string());
    }
    Ok(system)
}

#[cfg(test)]
mod tests;
