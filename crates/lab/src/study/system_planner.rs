//! One system among those of a study: its steps, and what is read of their results.

use std::rc::Rc;
use std::result::Result as StdResult;

use commands::corpus_filter::Filter;
use commands::measured::{Extractor, Factors};
use commands::request::Request as _;
use terms::{Scale, Task};

use super::error::Result;
use super::file::{ScaleSettings, Study, StudyEvaluation, System};
use super::materials::{LanguageData, ParallelFiles};
use super::plan::StudyPlanner;
use super::recipes;
use super::step::{CommandArg, StepDraft, StepId, StepList};
use super::systems::PlannedSystem;

/// What systems are evaluated on: study, languages, scale and seed.
#[derive(Clone, Copy)]
pub(super) struct EvaluationContext<'a> {
    pub(super) study: &'a Study,
    pub(super) scale: Scale,
    pub(super) settings: &'a ScaleSettings,
    pub(super) seed: u64,
    pub(super) materials: &'a LanguageData,
    /// Whether the system's hidden states are those of an earlier seed, so that only fine-tuning gives other results.
    pub(super) finetuning_only: bool,
    /// The tokens that every encoder of the study reads; none where there is no encoder.
    pub(super) longest: Option<usize>,
}

impl EvaluationContext<'_> {
    /// How many sentences of each language word vectors and mean vectors are taken from; Conneau et al. 2020 take 500,000.
    pub(super) fn sentences(&self) -> usize {
        self.at_most(if self.scale == Scale::Tiny { 20_000 } else { 500_000 })
    }

    pub(super) fn at_most(&self, sentences: usize) -> usize {
        self.settings.limit.map_or(sentences, |limit| sentences.min(limit as usize))
    }

    /// The layers that costly evaluations look at in an encoder of some depth: those that the study chooses for an encoder
    /// of its scale, in proportion.
    pub(super) fn chosen_layers(&self, depth: usize) -> Vec<usize> {
        let of = self.scale.layers();
        let mut layers: Vec<usize> = match self.settings.layers.as_slice() {
            [] => (0..=depth).collect(),
            chosen => chosen.iter().map(|layer| (layer * depth + of / 2) / of).collect(),
        };
        layers.dedup();
        layers
    }

    pub(super) fn tasks(&self, known: &[Task]) -> Vec<Task> {
        let chosen = &self.study.tasks;
        known.iter().copied().filter(|task| chosen.is_empty() || chosen.contains(task)).collect()
    }
}

/// Adds the steps of one system, and what is read of their results.
pub(super) struct SystemPlanner<'a, 'p> {
    pub(super) planner: &'a mut StudyPlanner<'p>,
    pub(super) scene: EvaluationContext<'a>,
    pub(super) system: &'a System,
}

impl<'p> SystemPlanner<'_, 'p> {
    /// The same of another system.
    pub(super) fn with<'b>(&'b mut self, system: &'b System) -> SystemPlanner<'b, 'p> {
        SystemPlanner { planner: &mut *self.planner, scene: self.scene, system }
    }

    /// The same on other languages.
    pub(super) fn on<'b>(&'b mut self, materials: &'b LanguageData) -> SystemPlanner<'b, 'p> {
        let scene = EvaluationContext { materials, ..self.scene };
        SystemPlanner { planner: &mut *self.planner, scene, system: self.system }
    }

    /// Records what a step's result holds about the system, under some more factors.
    pub(super) fn read(&mut self, step: StepId, extractor: Extractor, more: &[(&str, &str)]) {
        let factors = self.factors(more);
        self.planner.read(step, extractor, self.scene.seed, factors);
    }

    /// Adds a command, and records what its result holds.
    pub(super) fn measure(
        &mut self,
        draft: StepDraft,
        extractor: Extractor,
        more: &[(&str, &str)],
    ) -> Result<()> {
        let step = self.planner.add(draft)?;
        self.read(step, extractor, more);
        Ok(())
    }

    /// Parallel sentences of a target and the source without those that some encoder of the study might not read whole, in
    /// whichever alteration of a language, so that all are measured on the same ones; none where files are missing. Invented sentences are short.
    pub(super) fn comparable(
        &mut self,
        target: &str,
        of: &'static str,
        sentences: StdResult<Rc<ParallelFiles>, String>,
    ) -> Result<Option<Rc<ParallelFiles>>> {
        let Some(sentences) = self.planner.found(sentences) else { return Ok(None) };
        let materials = self.scene.materials;
        let longest = self.scene.longest.filter(|_| materials.world().is_none());
        let Some(longest) = longest else { return Ok(Some(sentences)) };
        let pair = materials.pair(target);
        let (of_target, of_source) = ("target.txt", "source.txt");
        let out = sentences.models(of_target, of_source);
        let request = Filter {
            parallel: sentences.named((target, &materials.source)),
            beside: materials.beside(&sentences).iter().map(CommandArg::held).collect(),
            columns: sentences.column_flag(),
            // Two are special tokens.
            max_tokens: longest.saturating_sub(2).max(1),
            out: out.map(|file| CommandArg::here(file).path()).into(),
            ..Filter::unset()
        };
        let name = format!("sentences that all encoders read, {pair}");
        let step = self.planner.add(StepDraft::of(&request, name))?;
        let mut factors = materials.factors.clone();
        factors.insert("pair".to_owned(), pair);
        self.planner.read_once(step, Extractor::RowFilter(of), self.scene.seed, factors);
        let [target, source] = [of_target, of_source].map(|file| StepList::made(step, file));
        Ok(Some(Rc::new(ParallelFiles::lines(target, source))))
    }

    /// The factors of the system here, with some more.
    pub(super) fn factors(&self, more: &[(&str, &str)]) -> Factors {
        let mut factors = self.scene.materials.factors.clone();
        factors.extend(self.system.factors.clone());
        factors.extend(more.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())));
        factors
    }

    pub(super) fn name(&self, what: &str) -> String {
        let materials = self.scene.materials;
        let of = self.system.factors.values().chain(materials.factors.values());
        let mut name = format!("{what}: {}", of.cloned().collect::<Vec<_>>().join(", "));
        if materials.world().is_none() {
            name += &format!(", {}", materials.pair(&materials.targets.join("+")));
        }
        format!("{name}, seed {}", self.scene.seed)
    }

    pub(super) fn plan(&mut self) -> Result<()> {
        let made = PlannedSystem::plan(self)?;
        let mut skipped = Vec::new();
        for evaluation in &self.scene.study.evaluate {
            if self.scene.finetuning_only && !evaluation.is_finetuned() {
                continue;
            }
            let before = (self.planner.extractions.len(), self.planner.left_out);
            match *evaluation {
                StudyEvaluation::Transfer(task) => recipes::transfer(self, &made, task)?,
                StudyEvaluation::Other(number) => {
                    (recipes::EVALUATIONS[number].plan)(self, &made)?;
                }
            }
            // Where a file was missing, a line says so already, perhaps since an earlier system.
            if (self.planner.extractions.len(), self.planner.left_out) == before {
                skipped.push(evaluation.name());
            }
        }
        if !skipped.is_empty() {
            let name = self.system.factors.values().cloned().collect::<Vec<_>>().join(", ");
            let line = format!("{} cannot be measured on {name}", skipped.join(", "));
            self.planner.leave_out(line);
        }
        Ok(())
    }
}
