//! `isogloss study`: the papers' questions, asked again.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use lab::study::{Done, Lab, Plan, Real, StepId, Study as StudyFile, run};
use serde_json::json;

use super::studied::{Live, duration, planned};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::stop;

const EXAMPLES: &str = "Examples:
  What there is, and what one of them would do:
    isogloss study list
    isogloss study plan anchors
  Run it on invented languages, then look:
    isogloss study run anchors
    isogloss report
  The same question asked of real languages (see `isogloss data list`):
    isogloss study run anchors --data data --pair en-fr --pair en-ru
  A quick look, with shorter training and fewer examples:
    isogloss study run anchors --seeds 1 --pretrain '--steps 2000' \\
      --transfer '--quick --first 3000'
  A study of one's own, begun from one that is built in:
    isogloss study show sharing > mine.toml
    isogloss study run mine.toml --seeds 1,2

A study comes to steps, each a command that could be typed. What any study has done before in the
same laboratory (--lab) is found again; after a stop or a kill, the same command goes on.";

/// The commands of `study`.
#[derive(Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Study {
    /// Name the studies that are built in, and what they ask.
    #[command(after_help = "Example:\n  isogloss study list")]
    List,
    /// Print a study's file, to read or to begin one's own from.
    #[command(after_help = "Example:\n  isogloss study show sharing > mine.toml")]
    Show(Show),
    /// Say what would run, what is done already, and how long the rest may take.
    #[command(after_help = EXAMPLES)]
    Plan(Chosen),
    /// Run what is missing of a study, and file its numbers.
    #[command(after_help = EXAMPLES)]
    Run(Chosen),
}

/// Flags of `study show`.
#[derive(Args)]
pub(crate) struct Show {
    /// The study.
    name: String,
}

/// Which study, and how.
#[derive(Args)]
pub(crate) struct Chosen {
    /// A study that is built in, or a file that ends in .toml.
    #[arg(value_name = "NAME|FILE.toml")]
    name: String,

    /// How large everything is: tiny, small or paper.
    #[arg(long, default_value = "tiny", value_parser = ["tiny", "small", "paper"])]
    scale: String,

    /// Do everything once for each of these, rather than for the study's own.
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    seeds: Vec<u64>,

    /// A folder of real data, laid out as `isogloss data get` does.
    #[arg(long, value_name = "DIR", requires = "pairs")]
    data: Option<PathBuf>,

    /// A pair of real languages, the one to learn from first, such as en-fr; repeat for more.
    #[arg(long = "pair", value_name = "A-B", requires = "data")]
    pairs: Vec<String>,

    /// Flags for every pretraining, in quotes, such as '--steps 2000'.
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true)]
    pretrain: Option<String>,

    /// Flags for every transfer, in quotes, such as '--quick --first 3000'.
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true)]
    transfer: Option<String>,

    /// Where steps compute: cpu, cuda, or auto: a GPU where one can be used. What one has made is not
    /// taken for the other's.
    #[arg(long, default_value = "auto")]
    device: String,

    /// The laboratory's folder.
    #[arg(long, value_name = "DIR", default_value = "lab")]
    lab: PathBuf,
}

impl Study {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        match self {
            Study::List => list(),
            Study::Show(show) => show.run(),
            Study::Plan(chosen) => chosen.plan(),
            Study::Run(chosen) => chosen.run(),
        }
    }
}

fn list() -> Result<Outcome, Failure> {
    let (mut text, mut facts) = (String::new(), Vec::new());
    for name in StudyFile::names() {
        let study = StudyFile::find(name)?;
        let _ = writeln!(text, "{name:<22}{}\n{:<22}({})", study.question, "", study.place);
        facts.push(json!({ "name": name, "question": study.question, "place": study.place }));
    }
    Ok(Outcome::new(text, &json!({ "studies": facts })))
}

impl Show {
    fn run(self) -> Result<Outcome, Failure> {
        let study = StudyFile::find(&self.name)?;
        let text = match StudyFile::source(&self.name) {
            Some(text) => text.to_owned(),
            None => std::fs::read_to_string(&self.name)?,
        };
        Ok(Outcome::new(text, &study))
    }
}

impl Chosen {
    /// The study as it is asked for.
    fn study(&self) -> Result<StudyFile, Failure> {
        let mut study = StudyFile::find(&self.name)?;
        if let Some(data) = &self.data {
            study.worlds.clear();
            study.real = Some(Real { data: data.clone(), pairs: self.pairs.clone() });
        }
        if !self.seeds.is_empty() {
            study.seeds.clone_from(&self.seeds);
            study.scales.values_mut().for_each(|scale| scale.seeds = None);
        }
        let scale = study.scales.entry(self.scale.clone()).or_default();
        let words = |flags: &str| flags.split_whitespace().map(str::to_owned).collect();
        if let Some(flags) = &self.pretrain {
            scale.pretrain = words(flags);
        }
        if let Some(flags) = &self.transfer {
            scale.transfer = words(flags);
        }
        Ok(study)
    }

    fn plan(self) -> Result<Outcome, Failure> {
        let plan = planned(&self.study()?, &self.scale, &self.device)?;
        let lab = Lab::open(&self.lab)?;
        let outlook = lab.outlook(&plan);
        let (mut text, mut facts) = (String::new(), Vec::new());
        for (number, (step, &(done, seconds))) in plan.steps.iter().zip(&outlook.steps).enumerate()
        {
            let cost = seconds.map_or_else(|| "?".to_owned(), duration);
            let state = if done { "done" } else { cost.as_str() };
            let _ = writeln!(text, "{state:>8}  {}", step.name);
            facts.push(json!({
                "name": step.name, "key": step.key, "done": done, "seconds": seconds,
                "command": lab.command(&plan, StepId(number)),
            }));
        }
        for line in &plan.passed_over {
            let _ = writeln!(text, "\npassed over: {line}");
        }
        let (open, unknown, left) = (outlook.open(), outlook.unknown(), outlook.left(0));
        let _ = write!(text, "\n{} steps, {open} to run", plan.steps.len());
        if open > unknown {
            let _ = write!(text, ": about {}", duration(left));
        }
        if unknown > 0 {
            let known =
                if open > unknown { format!(" for {}", open - unknown) } else { String::new() };
            let _ = write!(text, "{known}; how long {unknown} take is not known yet");
        }
        let facts = json!({
            "study": plan.study, "scale": plan.scale, "steps": facts, "to_run": open,
            "seconds": left, "passed_over": plan.passed_over,
        });
        Ok(Outcome::new(text, &facts))
    }

    fn run(self) -> Result<Outcome, Failure> {
        let study = self.study()?;
        let plan = planned(&study, &self.scale, &self.device)?;
        plan.passed_over.iter().for_each(|line| say!("passed over: {line}"));
        let lab = Lab::open(&self.lab)?;
        let done = run_plan(&lab, &plan)?;
        let count = |wanted: fn(&Done) -> bool| done.iter().filter(|how| wanted(how)).count();
        let now = count(|how| matches!(how, Done::Now(_)));
        let before = count(|how| *how == Done::Before);
        let place = match self.lab == *"lab" {
            true => String::new(),
            false => format!(" --lab {}", self.lab.display()),
        };
        let text = format!(
            "{}: {now} steps run, {before} found done; its numbers: isogloss results --study {}{place}\n\
             the report: isogloss report{place}",
            plan.study, plan.study,
        );
        let facts = json!({
            "study": plan.study, "scale": plan.scale, "run": now, "found": before,
            "lab": self.lab, "passed_over": plan.passed_over,
        });
        Ok(Outcome::new(text, &facts))
    }
}

/// Runs a plan with this very program, showing how far it is.
fn run_plan(lab: &Lab, plan: &Plan) -> Result<Vec<Done>, Failure> {
    let program = std::env::current_exe()?;
    let mut live = Live::new(plan);
    Ok(run(lab, plan, &program, &mut live, stop::listen())?)
}
