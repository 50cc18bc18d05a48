//! The steps of plans as a file: what a node needs to run one of them, and what other workflow engines read.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

use files::{At, sealed};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use terms::Scale;

use super::comment;
use crate::study::error::{Error, Result};
use crate::study::laboratory::{Laboratory, quoted, shell_line};
use crate::study::plan::StudyPlan;
use crate::study::pool::{StepPool, open};
use crate::study::step::{CPU, StepId, StudyStep};

/// The steps of one or several plans, each once, in topological order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StepGraph {
    pub studies: Vec<String>,
    pub scale: Scale,
    /// The steps; what they need are numbers of this list.
    pub steps: Vec<StudyStep>,
}

impl StepGraph {
    /// The graph of plans, of which there is at least one.
    pub fn of(plans: &[StudyPlan]) -> Self {
        let pool = StepPool::of(plans);
        let numbers: HashMap<&str, usize> =
            pool.steps.iter().enumerate().map(|(n, pooled)| (&*pooled.step.key, n)).collect();
        let steps = pool.steps.iter().map(|pooled| {
            let plan = pooled.places[0].0;
            let mut step = pooled.step.clone();
            step.renumber(|old| StepId(numbers[&*plan.steps[old.0].key]));
            step
        });
        Self {
            steps: steps.collect(),
            studies: plans.iter().map(|plan| plan.study.clone()).collect(),
            scale: plans[0].scale,
        }
    }

    /// Writes it to a file, with a digest.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string(self).expect("plain data");
        Ok(files::write(path, sealed::seal_json(&text))?)
    }

    /// Reads it from a file.
    ///
    /// # Errors
    /// Where it is damaged, or was planned by a build with other revisions.
    pub fn read(path: &Path) -> Result<Self> {
        let place = || path.display().to_string();
        let again = "submit the study again";
        let bytes = std::fs::read(path).at(path, "read")?;
        let mut value = serde_json::from_slice(&bytes)
            .map_err(|error| Error::data(place(), error.to_string(), again))?;
        if !sealed::open_json(&mut value) {
            return Err(Error::data(place(), sealed::ALTERED, again));
        }
        let graph: Self = serde_json::from_value(value)
            .map_err(|error| Error::data(place(), error.to_string(), again))?;
        match graph.steps.iter().enumerate().find(|(number, step)| !step.is_sound_at(*number)) {
            None => Ok(graph),
            Some((number, _)) => {
                let reason =
                    format!("step {number} needs one that does not come before it, or has no key");
                Err(Error::data(place(), reason, again))
            }
        }
    }

    pub fn find(&self, key: &str) -> Option<StepId> {
        self.steps.iter().position(|step| step.key == key).map(StepId)
    }

    pub fn is_on_gpu(&self, step: StepId) -> bool {
        self.steps[step.0].device.as_deref().is_some_and(|device| device != CPU)
    }

    /// The open steps by level: those of a level need only steps that are complete, or of levels before it. A complete step is
    /// open where its files are missing and an open one needs them.
    pub fn levels(
        &self,
        is_complete: impl Fn(&StudyStep) -> bool,
        has_files: impl Fn(&StudyStep) -> bool,
    ) -> Vec<Vec<StepId>> {
        let needs = self.steps.iter().map(|step| step.needs.iter().map(|need| need.0));
        let of = |number: usize| &self.steps[number];
        let open = open(needs, |step| is_complete(of(step)), |step| has_files(of(step)));
        let mut levels: Vec<Vec<StepId>> = Vec::new();
        let mut level_of: Vec<Option<usize>> = Vec::new();
        for (number, step) in self.steps.iter().enumerate() {
            if !open[number] {
                level_of.push(None);
                continue;
            }
            let before = step.needs.iter().filter_map(|need| level_of[need.0]).max();
            let level = before.map_or(0, |level| level + 1);
            if level == levels.len() {
                levels.push(Vec::new());
            }
            levels[level].push(StepId(number));
            level_of.push(Some(level));
        }
        levels
    }

    /// A Snakefile whose rules run the steps: its inputs and outputs are the results in the steps' folders.
    pub fn snakefile(&self, lab: &Laboratory, graph: &Path, program: &str) -> String {
        let result = |step: &StudyStep| python(&lab.result_path(&step.key).to_string_lossy());
        let mut text = format!(
            "# {} at scale {}: {} steps. Run: snakemake --cores all --resources gpu=1\n\
             # Afterwards the same `isogloss study run` finds every step complete and stores the results.\n\n\
             rule all:\n    input:\n",
            comment(&self.studies.join(", ")),
            self.scale.name(),
            self.steps.len()
        );
        for step in &self.steps {
            let _ = writeln!(text, "        {},", result(step));
        }
        for (number, step) in self.steps.iter().enumerate() {
            let _ = write!(text, "\n# {}\nrule step_{}:\n", comment(&step.name), step.key);
            if !step.needs.is_empty() {
                let needs: Vec<String> =
                    step.needs.iter().map(|need| result(&self.steps[need.0])).collect();
                let _ = writeln!(text, "    input: {}", needs.join(", "));
            }
            let _ = writeln!(text, "    output: {}", result(step));
            if self.is_on_gpu(StepId(number)) {
                let _ = writeln!(text, "    resources: gpu=1");
            }
            let command = step_command(program, &step.key, lab, graph);
            let _ = writeln!(text, "    shell: {}", python(&command));
        }
        text
    }
}

impl Laboratory {
    /// Writes a graph into the laboratory, under a name that its steps give it, and tells where.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn save_graph(&self, graph: &StepGraph) -> Result<std::path::PathBuf> {
        let mut hasher = blake3::Hasher::new();
        graph.steps.iter().for_each(|step| _ = hasher.update(step.key.as_bytes()));
        let name = format!("{}.json", &hasher.finalize().to_hex()[..12]);
        let (folder, path) = (self.root.join("graphs"), self.root.join("graphs").join(name));
        std::fs::create_dir_all(&folder).at(&folder, "make the folder")?;
        graph.save(&path)?;
        Ok(path)
    }
}

/// A text of a Snakefile: a string of Python, which writes what JSON does, in which braces stand for themselves.
fn python(text: &str) -> String {
    Value::from(text.replace('{', "{{").replace('}', "}}")).to_string()
}

/// The command line that runs one step of a graph, quoted for a shell.
pub(super) fn step_command(program: &str, key: &str, lab: &Laboratory, graph: &Path) -> String {
    let path = |path: &Path| path.display().to_string();
    let words = ["study".to_owned(), "step".to_owned(), key.to_owned()];
    let flags = ["--graph".to_owned(), path(graph), "--lab".to_owned(), path(&lab.root)];
    let line = shell_line(&words.into_iter().chain(flags).collect::<Vec<_>>());
    line.replacen("isogloss", &quoted(program), 1)
}
