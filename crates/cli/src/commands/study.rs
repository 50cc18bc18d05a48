//! `isogloss study`: plan and run the experiments of the papers, or one's own.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use lab::study::cluster::StepGraph;
use lab::study::{
    Laboratory, PooledStep, RealLanguages, RunOptions, StepOutcome, StepPool, Study as StudyFile,
    StudyPlan, run,
};
use serde::Serialize;
use serde_json::json;
use terms::{Scale, Task};

use super::study_cluster::{
    CANCEL_EXAMPLES, COLLECT_EXAMPLES, LabFlag, STATUS_EXAMPLES, STEP_EXAMPLES, SUBMIT_EXAMPLES,
    StepFlags, SubmitFlags,
};
use super::study_list::ListFlags;
use super::study_pack::{PACK_EXAMPLES, PackFlags, UnpackFlags};
use super::study_view::{LiveView, duration, planned, this_build};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::stop;
use commands::models::open_device;
use commands::request::Request;
use commands::score::task_values;
use commands::texts::scales;

const EXAMPLES: &str = "Examples:
  The built-in studies, and the steps of one of them:
    isogloss study list
    isogloss study plan anchors
  Run it on invented languages, then look at the results:
    isogloss study run anchors
    isogloss report
  The same on real languages (see `isogloss data list`):
    isogloss study run anchors --data data --pair en-fr --pair en-ru
  One encoder of four real languages:
    isogloss study run data-size --data data --languages en,fr,de,ru
  English beside English in another script and another word order:
    isogloss study run elements --data data --alter en
  A model that exists already, a Hugging Face folder or a run, on every language of XNLI:
    isogloss study run language-shift --model mbert=bert-base-multilingual-cased --data data
  A quick look, with shorter training and fewer examples:
    isogloss study run anchors --seeds 1 --pretrain '--steps 2000' \\
      --transfer '--quick --limit 3000'
  Several studies at once, four steps side by side; steps that they share are run once:
    isogloss study run anchors sharing --jobs 4
  A study of one's own:
    isogloss study keys > mine.toml
    isogloss study run mine.toml --seeds 1,2

A study is a list of steps, each a command that could be typed. Steps that any study has completed in
the same laboratory (--lab) are not run again; after an interruption, the same command continues.";

const SHOW_EXAMPLES: &str = "Example:
  isogloss study show sharing > mine.toml

`isogloss study keys` explains every key of such a file.";

#[derive(Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Study {
    /// List the built-in studies and their questions, or every table and figure of the papers (--papers).
    List(ListFlags),
    /// Print a study's file, to read or to edit.
    #[command(after_help = SHOW_EXAMPLES)]
    Show(Show),
    /// Print a study's file in which every key is explained.
    #[command(after_help = "Example:\n  isogloss study keys > mine.toml")]
    Keys,
    /// List the steps of studies, which of them are complete, and how long the others may take.
    #[command(after_help = EXAMPLES)]
    Plan(PlanFlags),
    /// Run the missing steps of studies and store their results.
    #[command(after_help = EXAMPLES)]
    Run(RunFlags),
    /// Give the missing steps of studies to a cluster with Slurm.
    #[command(after_help = SUBMIT_EXAMPLES)]
    Submit(SubmitFlags),
    /// Show how the steps of the latest submission stand: done, running, waiting or failed, and why.
    #[command(after_help = STATUS_EXAMPLES)]
    Status(LabFlag),
    /// Stop the jobs of the latest submission and take them out of the queue.
    #[command(after_help = CANCEL_EXAMPLES)]
    Cancel(LabFlag),
    /// Run one step by its key, on a node of a cluster or from another workflow engine.
    #[command(after_help = STEP_EXAMPLES)]
    Step(StepFlags),
    /// Put the results of a laboratory into one small file: no weights, vectors or text.
    #[command(after_help = PACK_EXAMPLES)]
    Pack(PackFlags),
    /// Put the results of a pack into a laboratory, so that their steps are not run again.
    #[command(after_help = PACK_EXAMPLES)]
    Unpack(UnpackFlags),
    /// Store the results of every complete step, and run nothing.
    #[command(after_help = COLLECT_EXAMPLES)]
    Collect(CollectFlags),
}

#[derive(Args)]
pub(crate) struct Show {
    /// The study.
    #[arg(value_name = "NAME|FILE.toml")]
    name: String,
}

#[derive(Args, Clone, Serialize)]
pub(crate) struct StudyChoice {
    /// Built-in studies, or files that end in .toml.
    #[arg(value_name = "NAME|FILE.toml", required_unless_present = "all")]
    names: Vec<String>,

    /// Every built-in study but `demo`.
    #[arg(long, conflicts_with = "names", help_heading = "Input")]
    all: bool,

    /// The sizes of models and data.
    #[arg(long, default_value = "tiny", value_parser = scales(), help_heading = "Input")]
    scale: Scale,

    /// Run everything once for each of these seeds, in place of the study's own.
    #[arg(long, value_name = "N,N", value_delimiter = ',', help_heading = "Training")]
    seeds: Vec<u64>,

    /// A folder of real data, laid out as `isogloss data get` does.
    #[arg(long, value_name = "DIR", help_heading = "Input")]
    data: Option<PathBuf>,

    /// A pair of real languages, the source first, such as en-fr; repeat for more. Each pair has encoders of
    /// its own.
    #[arg(
        long = "pair",
        alias = "pairs",
        value_name = "A-B",
        value_delimiter = ',',
        requires = "data",
        help_heading = "Input"
    )]
    pairs: Vec<String>,

    /// Real languages of one multilingual encoder, the source first, such as en,fr,de,ru; every other one is a
    /// target.
    #[arg(
        long,
        value_name = "A,B,C",
        value_delimiter = ',',
        requires = "data",
        help_heading = "Input"
    )]
    languages: Vec<String>,

    /// A real language beside altered copies of itself (`corpus alter`), as the study's file says or in a shifted
    /// script; repeat for more. Each pair has encoders of its own.
    #[arg(
        long = "alter",
        value_name = "LANG",
        value_delimiter = ',',
        requires = "data",
        help_heading = "Input"
    )]
    altered: Vec<String>,

    /// A model that exists already, in place of the systems that the study trains: a Hugging Face folder or a
    /// run's folder, under a name of your choice. Repeat for more; folders of one name are its seeds. On real
    /// data without --languages, every language that has XNLI files and that the model knows.
    #[arg(long = "model", short, value_name = "NAME=DIR", value_parser = given_model, help_heading = "Input")]
    models: Vec<(String, PathBuf)>,

    /// Read at most N sentences of each language for mean vectors, words in context and token translation.
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..),
        help_heading = "Input")]
    limit: Option<u64>,

    /// Transfer these tasks in place of the study's own.
    #[arg(long, value_name = "TASK,TASK", value_delimiter = ',', value_parser = task_values(),
        help_heading = "Training")]
    tasks: Vec<Task>,

    /// Flags for every pretraining, in quotes, such as '--steps 2000'.
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true, help_heading = "Training")]
    pretrain: Option<String>,

    /// Flags for every transfer, in quotes, such as '--quick --limit 3000'.
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true, help_heading = "Training")]
    transfer: Option<String>,

    /// Where steps compute; `auto` takes a GPU where one can be used. Results of one are not taken for
    /// the other's.
    #[arg(long, default_value = "auto", value_parser = ["auto", "cpu", "cuda"], help_heading = "Compute")]
    pub(super) device: String,

    /// The laboratory's folder.
    #[arg(long, value_name = "DIR", default_value = "lab", help_heading = "Output")]
    pub(super) lab: PathBuf,
}

#[derive(Args)]
pub(crate) struct PlanFlags {
    #[command(flatten)]
    choice: StudyChoice,

    /// Print the plan for another workflow engine instead: rules whose commands are `study step`. The graph of
    /// steps is written into the laboratory for them.
    #[arg(long, value_name = "NAME", value_parser = ["snakemake"], help_heading = "Output")]
    format: Option<String>,
}

#[derive(Args)]
pub(crate) struct RunFlags {
    #[command(flatten)]
    choice: StudyChoice,

    /// How many steps may run side by side, each in a process of its own, on a GPU too. One seed comes before the
    /// next, and of a seed the step with the longest chain of steps after it. Each needs memory of its own (at scale tiny some 0.5 GB); a step
    /// that is known not to fit beside the others waits. It changes no result.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..), help_heading = "Compute")]
    jobs: u16,

    /// CPU threads, divided among the running steps; 0 takes every core. It changes no result.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Compute")]
    threads: usize,

    /// Run steps again that are complete.
    #[arg(long, help_heading = "Output")]
    fresh: bool,

    #[command(flatten)]
    settings: OtherSettings,
}

#[derive(Args)]
pub(crate) struct OtherSettings {
    /// Drop the results that the laboratory has of the study with other settings (flags of pretraining and transfer, limit,
    /// languages, definitions), which are refused otherwise. Completed steps are kept.
    #[arg(long, help_heading = "Output")]
    pub(super) force: bool,
}

#[derive(Args)]
pub(crate) struct CollectFlags {
    #[command(flatten)]
    pub(super) choice: StudyChoice,

    #[command(flatten)]
    pub(super) settings: OtherSettings,
}

fn given_model(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, folder)) if !name.is_empty() && !folder.is_empty() => {
            Ok((name.to_owned(), folder.into()))
        }
        _ => Err("write NAME=DIR, such as mbert=bert-base-multilingual-cased".to_owned()),
    }
}

/// The steps of studies, as `study plan --json` prints them.
#[derive(Serialize)]
struct PlanListing {
    studies: Vec<String>,
    scale: Scale,
    steps: Vec<StepListing>,
    to_run: usize,
    /// Expected seconds of the open steps whose cost is known, one after another.
    seconds: f64,
    /// A line for each system that an evaluation does not apply to.
    skipped: Vec<String>,
}

#[derive(Serialize)]
struct StepListing {
    name: String,
    key: String,
    /// The keys of the steps that must be complete before.
    needs: Vec<String>,
    revision: u32,
    done: bool,
    seconds: Option<f64>,
    command: String,
}

#[derive(Serialize)]
struct RunSummary {
    studies: Vec<String>,
    scale: Scale,
    run: usize,
    cached: usize,
    lab: PathBuf,
    skipped: Vec<String>,
    /// How many steps each build of the program ran.
    builds: BTreeMap<String, usize>,
}

impl Study {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        match self {
            Study::List(flags) => flags.run(),
            Study::Show(show) => show.run(),
            Study::Keys => Ok(Outcome::new(StudyFile::KEYS, &json!({ "keys": StudyFile::KEYS }))),
            Study::Plan(flags) => flags.run(),
            Study::Run(flags) => flags.run(),
            Study::Submit(flags) => flags.run(),
            Study::Status(flags) => flags.status(),
            Study::Cancel(flags) => flags.cancel(),
            Study::Step(flags) => flags.run(),
            Study::Pack(flags) => flags.run(),
            Study::Unpack(flags) => flags.run(),
            Study::Collect(flags) => flags.run(),
        }
    }
}

impl Show {
    fn run(self) -> Result<Outcome, Failure> {
        let study = StudyFile::find(&self.name)?;
        let text = match StudyFile::source(&self.name) {
            Some(text) => text.to_owned(),
            None => files::limits::read_text(Path::new(&self.name))?,
        };
        Ok(Outcome::new(text, &study))
    }
}

impl Request for StudyChoice {
    const NAME: &str = "study collect";
    const REVISION: u32 = 1;
}

impl StudyChoice {
    pub(super) fn plans(&self) -> Result<Vec<StudyPlan>, Failure> {
        let names: Vec<&str> = match self.all {
            true => StudyFile::names().filter(|name| *name != "demo").collect(),
            false => self.names.iter().map(String::as_str).collect(),
        };
        let studies: Vec<StudyFile> =
            names.iter().map(|name| self.study(name)).collect::<Result<_, _>>()?;
        let mut seen = HashSet::new();
        if let Some(twice) = studies.iter().find(|study| !seen.insert(study.name.as_str())) {
            let message = format!("two studies are called `{}`; name each once", twice.name);
            return Err(Failure::Usage(message));
        }
        planned(&studies, self.scale, &self.device)
    }

    /// A study with the settings of the command line.
    fn study(&self, name: &str) -> Result<StudyFile, Failure> {
        let mut study = StudyFile::find(name)?;
        if !self.models.is_empty() {
            study.give(&self.models);
        }
        if let Some(data) = &self.data {
            let (pairs, mut languages) = (self.pairs.clone(), self.languages.clone());
            let altered = self.altered.clone();
            if pairs.is_empty() && languages.is_empty() && altered.is_empty() {
                languages = self.known_languages(data)?;
            }
            study.worlds.clear();
            study.real = Some(RealLanguages { data: data.clone(), pairs, languages, altered });
        }
        if !self.seeds.is_empty() {
            study.seeds.clone_from(&self.seeds);
            study.scales.values_mut().for_each(|scale| scale.seeds = None);
        }
        if !self.tasks.is_empty() {
            study.choose_tasks(&self.tasks);
        }
        let scale = study.scales.entry(self.scale).or_default();
        let words = |flags: &str| flags.split_whitespace().map(str::to_owned).collect();
        if let Some(flags) = &self.pretrain {
            scale.pretrain = words(flags);
        }
        if let Some(flags) = &self.transfer {
            scale.transfer = words(flags);
        }
        if let Some(limit) = self.limit {
            scale.limit = Some(limit);
        }
        study.check(name)?;
        Ok(study)
    }

    /// The languages with XNLI's test file in a folder of data that all given models know, English first.
    fn known_languages(&self, data: &Path) -> Result<Vec<String>, Failure> {
        if self.models.is_empty() {
            let message = "--data: name the languages too, by --pair en-fr, --languages en,fr,de or --alter en";
            return Err(Failure::Usage(message.to_owned()));
        }
        let languages = lab::study::xnli_languages(data, &self.models)?;
        match languages.len() {
            0 | 1 => Err(Failure::Usage(format!(
                "--data {}: fewer than two languages have an XNLI file (xnli/test-LANG.tsv) there and are known to \
                 the model; name others by --languages",
                data.display()
            ))),
            _ => Ok(languages),
        }
    }

    /// The words of `study collect` on the same studies, as they can be typed in any folder.
    pub(super) fn collecting(&self) -> Result<Vec<String>, Failure> {
        let mut choice = self.clone();
        for name in choice.names.iter_mut().filter(|name| StudyFile::source(name).is_none()) {
            *name = std::path::absolute(&*name)?.display().to_string();
        }
        let data = choice.data.iter_mut();
        let paths = choice.models.iter_mut().map(|(_, folder)| folder).chain(data);
        for path in paths.chain([&mut choice.lab]) {
            *path = std::path::absolute(&*path)?.display().to_string().into();
        }
        Ok(choice.words())
    }

    fn plan(self) -> Result<Outcome, Failure> {
        let plans = self.plans()?;
        let (lab, pool) = (Laboratory::open(&self.lab)?, StepPool::of(&plans));
        let status = lab.status(&pool);
        let step = |(pooled, &(done, seconds)): (&PooledStep<'_>, &_)| {
            let (step, (plan, number)) = (pooled.step, pooled.places[0]);
            let (name, key) = (step.name.clone(), step.key.clone());
            let needs = step.needs.iter().map(|need| plan.steps[need.0].key.clone()).collect();
            let command = lab.command(&plan.steps, number);
            let revision = step.command.revision;
            StepListing { name, key, needs, revision, done, seconds, command }
        };
        let listing = PlanListing {
            steps: pool.steps.iter().zip(&status.steps).map(step).collect(),
            studies: names(&plans),
            scale: self.scale,
            to_run: status.open(),
            seconds: status.seconds(),
            skipped: skipped(&plans),
        };
        Ok(Outcome::new(listing.describe(status.unknown()), &listing))
    }
}

impl PlanFlags {
    fn run(self) -> Result<Outcome, Failure> {
        if self.format.is_none() {
            return self.choice.plan();
        }
        let graph = StepGraph::of(&self.choice.plans()?);
        let lab = Laboratory::open(&self.choice.lab)?;
        let file = lab.save_graph(&graph)?;
        let program = crate::invocation::program().display().to_string();
        let text = graph.snakefile(&lab, &file, &program);
        Ok(Outcome::new(text.clone(), &json!({ "snakefile": text, "graph": file })))
    }
}

/// The laboratory's flag for a command line, where it is not the default.
pub(super) fn lab_flag(lab: &Path) -> String {
    match lab == Path::new("lab") {
        true => String::new(),
        false => format!(" --lab {}", lab.display()),
    }
}

fn names(plans: &[StudyPlan]) -> Vec<String> {
    plans.iter().map(|plan| plan.study.clone()).collect()
}

/// A line for each system of plans that an evaluation does not apply to.
fn skipped(plans: &[StudyPlan]) -> Vec<String> {
    match plans {
        [plan] => plan.skipped.clone(),
        plans => {
            let of = |plan: &StudyPlan| {
                let line = |line: &String| format!("{}: {line}", plan.study);
                plan.skipped.iter().map(line).collect::<Vec<_>>()
            };
            plans.iter().flat_map(of).collect()
        }
    }
}

impl PlanListing {
    /// The plan for people; of `unknown` open steps the cost is not known.
    fn describe(&self, unknown: usize) -> String {
        let mut text = String::new();
        for step in &self.steps {
            let cost = step.seconds.map_or_else(|| "?".to_owned(), duration);
            let state = if step.done { "done" } else { cost.as_str() };
            let _ = writeln!(text, "{state:>8}  {}", step.name);
        }
        for line in &self.skipped {
            let _ = writeln!(text, "\nskipped: {line}");
        }
        let known = self.to_run - unknown;
        let _ = write!(text, "\n{} steps, {} to run", self.steps.len(), self.to_run);
        if known > 0 {
            let _ = write!(text, ": about {}", duration(self.seconds));
        }
        if unknown > 0 {
            let of = if known > 0 { format!(" for {known}") } else { String::new() };
            let _ = write!(text, "{of}; the cost of {unknown} is not known yet");
        }
        text
    }
}

impl RunFlags {
    fn run(self) -> Result<Outcome, Failure> {
        let choice = self.choice;
        let plans = choice.plans()?;
        let skipped = skipped(&plans);
        skipped.iter().for_each(|line| say!("skipped: {line}"));
        let lab = Laboratory::open(&choice.lab)?;
        if self.fresh || lab.status(&StepPool::of(&plans)).open() > 0 {
            // Refused before the first step, and not by it.
            open_device(&choice.device, 1)?;
        }
        let options = RunOptions {
            program: crate::invocation::program(),
            build: &this_build(),
            jobs: self.jobs.into(),
            threads: Some(self.threads).filter(|threads| *threads > 0),
            fresh: self.fresh,
            force: self.settings.force,
            snapshots: false,
            stop: stop::listen(),
        };
        let outcomes = run(&lab, &plans, &options, &mut LiveView::new(&plans))?;
        let count =
            |wanted: fn(&StepOutcome) -> bool| outcomes.iter().filter(|how| wanted(how)).count();
        let builds = lab.builds(&StepPool::of(&plans));
        if let Some(warning) = builds.warning("steps") {
            say!(
                "{warning}; their commands have the same revisions (--fresh runs all of them again)"
            );
        }
        let summary = RunSummary {
            studies: names(&plans),
            scale: choice.scale,
            run: count(|how| matches!(how, StepOutcome::Completed(_))),
            cached: count(|how| *how == StepOutcome::Cached),
            lab: choice.lab,
            skipped,
            builds: builds.0,
        };
        Ok(Outcome::new(summary.describe(), &summary))
    }
}

impl RunSummary {
    fn describe(&self) -> String {
        let lab = lab_flag(&self.lab);
        let Self { studies, run, cached, .. } = self;
        let each = studies.iter().map(|study| format!(" --study {study}")).collect::<String>();
        format!(
            "{}: {run} steps run, {cached} complete before\n\
             results: isogloss results{each}{lab}\n\
             report:  isogloss report{lab}",
            studies.join(", ")
        )
    }
}
