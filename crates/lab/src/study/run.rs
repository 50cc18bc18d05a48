//! Running plans: completed steps are found by their keys, missing ones are run, several side by side where that is
//! wished, and the records of each step go to the store as soon as it is complete.
//!
//! One thread decides: it begins steps, each in a thread that waits for the step's child process, and receives what
//! these threads report. So observers and the store have one caller, whatever the number of jobs.
//!
//! A step that failed beside others may have lacked memory, of the machine or of its GPU. It is run once more when it
//! has the machine for itself, and only then counts as failed.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::Scope;
use std::time::Instant;

use files::sealed;

use super::cluster::Holder;
use super::error::{Error, Result};
use super::laboratory::{LOG, Laboratory, PlanCosts, RESULT, STEP};
use super::memory;
use super::plan::Extraction;
use super::plan::StudyPlan;
use super::pool::{PooledStep, StepPool};
use super::runner::{CommandEnd, StepRunner};
use super::step::{StepId, StudyStep};
use crate::build::Build;
use crate::record::{Origin, Record, TextRecord};
use crate::store::{StepFiling, Store};
use commands::measured::{Measurement, TextSample};

#[derive(Clone, Debug, PartialEq)]
pub enum StepOutcome {
    Cached,
    /// Its result is not there, and nothing needs it.
    Unneeded,
    /// It was run, in so many seconds.
    Completed(f64),
    /// It failed beside other steps, for this reason, and is run again by itself: no step is left so in the end.
    Postponed(String),
    Failed(String),
    Skipped,
}

/// Is called while plans are run; steps are numbered as in their [pool](StepPool).
pub trait StudyObserver {
    /// A step begins; `left` is the expected time until all steps are complete, in seconds.
    fn begin(&mut self, number: usize, step: &StudyStep, left: f64);
    /// A running step's command printed a line to standard error.
    fn line(&mut self, number: usize, line: &str);
    /// Something that was written is damaged, and made anew: worth a line even where progress is not wanted.
    fn warn(&mut self, text: &str);
    fn end(&mut self, number: usize, step: &StudyStep, how: &StepOutcome);
}

pub struct RunOptions<'a> {
    pub program: &'a Path,
    pub build: &'a Build,
    /// How many steps may run side by side; at least one.
    pub jobs: usize,
    /// The number of threads, which the running steps divide among them; every core if none.
    pub threads: Option<usize>,
    pub fresh: bool,
    /// Whether results with other settings are dropped; they are refused otherwise.
    pub force: bool,
    pub snapshots: bool,
    pub stop: &'a AtomicBool,
}

/// Runs the missing steps of plans, each once, and writes the records of all. A step that fails is named in the end;
/// the steps that depend on it are skipped, the others run. Gives how each step of the plans' [pool](StepPool) ended.
pub fn run(
    lab: &Laboratory,
    plans: &[StudyPlan],
    options: &RunOptions<'_>,
    observer: &mut dyn StudyObserver,
) -> Result<Vec<StepOutcome>> {
    lab.enter_settings(plans, options.force)?;
    let pool = StepPool::of(plans);
    let mut running = PoolRun::new(lab, &pool, options, observer)?;
    std::thread::scope(|scope| running.run_all(scope));
    let ended: Option<Vec<StepOutcome>> = running
        .states
        .into_iter()
        .map(|state| match state {
            StepState::Ended(how) => Some(how),
            _ => None,
        })
        .collect();
    let ended = ended.ok_or(Error::Stopped)?;
    match failures(lab, &pool, &ended) {
        None => Ok(ended),
        Some(text) => Err(Error::Failed(text)),
    }
}

#[derive(Clone, Debug, PartialEq)]
enum StepState {
    Waiting,
    /// It may begin; `alone` if it failed beside others.
    Ready {
        alone: bool,
    },
    /// It is running with so many threads; `alone` if nothing may run beside it, `beside` if something did.
    Running {
        began: Instant,
        threads: usize,
        alone: bool,
        beside: bool,
    },
    Ended(StepOutcome),
}

enum StepEvent {
    Line(usize, String),
    Warning(String),
    Ended(usize, Result<CommandEnd>),
}

struct PoolRun<'a> {
    lab: &'a Laboratory,
    pool: &'a StepPool<'a>,
    options: &'a RunOptions<'a>,
    observer: &'a mut dyn StudyObserver,
    store: Store,
    costs: PlanCosts,
    states: Vec<StepState>,
    /// The bytes that running steps may hold together, where that is known.
    memory: Option<u64>,
}

impl<'a> PoolRun<'a> {
    fn new(
        lab: &'a Laboratory,
        pool: &'a StepPool<'a>,
        options: &'a RunOptions<'a>,
        observer: &'a mut dyn StudyObserver,
    ) -> Result<Self> {
        let mut costs = lab.costs(pool);
        if options.fresh {
            costs.status.steps.iter_mut().for_each(|(complete, _)| *complete = false);
        }
        let states = vec![StepState::Waiting; pool.steps.len()];
        let memory = memory::budget();
        Ok(Self { lab, pool, options, observer, store: lab.store()?, costs, states, memory })
    }

    /// Begins steps and receives what becomes of them until all have ended or an interrupt came.
    fn run_all<'scope>(&mut self, scope: &'scope Scope<'scope, 'a>)
    where
        'a: 'scope,
    {
        let (send, events) = mpsc::channel();
        loop {
            self.release();
            while !self.stopped()
                && let Some(number) = self.next()
            {
                self.begin(number, scope, &send);
            }
            if self.running().next().is_none() {
                return;
            }
            match events.recv().expect("the sender is held here") {
                StepEvent::Line(number, line) => self.observer.line(number, &line),
                StepEvent::Warning(text) => self.observer.warn(&text),
                StepEvent::Ended(number, end) => self.ended(number, end),
            }
        }
    }

    fn stopped(&self) -> bool {
        self.options.stop.load(Ordering::Relaxed)
    }

    /// The running steps with their beginning and threads.
    fn running(&self) -> impl Iterator<Item = (usize, Instant, usize)> {
        self.states.iter().enumerate().filter_map(|(number, state)| match *state {
            StepState::Running { began, threads, .. } => Some((number, began, threads)),
            _ => None,
        })
    }

    /// Makes waiting steps ready whose needs are met, and ends those that are complete or cannot be run.
    fn release(&mut self) {
        for number in 0..self.states.len() {
            if self.stopped() || self.states[number] != StepState::Waiting {
                continue;
            }
            let PooledStep { step, needs, .. } = &self.pool.steps[number];
            let needs = || needs.iter().map(|&need| &self.states[need]);
            let there = || self.lab.result(&step.key).is_some();
            let lost = |state: &StepState| {
                let lost = |how: &_| matches!(how, StepOutcome::Failed(_) | StepOutcome::Skipped);
                matches!(state, StepState::Ended(how) if lost(how))
            };
            if needs().any(lost) {
                self.end(number, StepOutcome::Skipped);
            } else if needs().all(|state| matches!(state, StepState::Ended(_))) {
                match self.costs.status.steps[number].0 {
                    true if there() => self.end(number, StepOutcome::Cached),
                    true => {
                        if let Some(path) = self.lab.altered(&step.key) {
                            let (path, altered) = (path.display(), sealed::ALTERED);
                            let text =
                                format!("{path} {altered}: left as it is, since nothing needs it");
                            self.observer.warn(&text);
                        }
                        self.end(number, StepOutcome::Unneeded);
                    }
                    false => self.states[number] = StepState::Ready { alone: false },
                }
            }
        }
    }

    /// The ready step that is to begin now, if any: the one of the highest priority or, with one job, the first.
    fn next(&self) -> Option<usize> {
        let running = self.running().count();
        let alone = |state: &StepState| matches!(state, StepState::Running { alone: true, .. });
        if running >= self.options.jobs || self.states.iter().any(alone) {
            return None;
        }
        let ready = |alone: bool| {
            let is = move |(_, state): &(usize, &StepState)| **state == StepState::Ready { alone };
            self.states.iter().enumerate().filter(is).map(|(number, _)| number)
        };
        if ready(false).next().is_none() {
            return ready(true).next().filter(|_| running == 0);
        }
        if self.options.jobs == 1 {
            return ready(false).next();
        }
        let priorities = self.pool.priorities(&self.costs.status.steps);
        let fitting = ready(false).filter(|&number| running == 0 || self.fits(number));
        fitting.max_by(|&a, &b| priorities[a].total_cmp(&priorities[b]).then(b.cmp(&a)))
    }

    /// Whether a step's memory fits beside that of the running steps, as far as steps like them are known.
    fn fits(&self, number: usize) -> bool {
        let peak = |number: usize| self.costs.peak_memory(self.pool, number);
        let together = peak(number) + self.running().map(|(other, ..)| peak(other)).sum::<u64>();
        self.memory.is_none_or(|memory| together <= memory)
    }

    /// Begins a ready step in a thread of its own.
    fn begin<'scope>(
        &mut self,
        number: usize,
        scope: &'scope Scope<'scope, 'a>,
        send: &Sender<StepEvent>,
    ) {
        let pooled = &self.pool.steps[number];
        let threads = self.threads_of_next();
        for state in &mut self.states {
            if let StepState::Running { beside, .. } = state {
                *beside = true;
            }
        }
        let beside = self.running().next().is_some();
        let alone = self.states[number] == StepState::Ready { alone: true };
        let counted = if pooled.step.command.threads { threads.unwrap_or(1) } else { 1 };
        let began = Instant::now();
        self.states[number] = StepState::Running { began, threads: counted, alone, beside };
        let elapsed =
            |(number, began, _): (usize, Instant, usize)| (number, began.elapsed().as_secs_f64());
        let running: Vec<(usize, f64)> = self.running().map(elapsed).collect();
        let left = self.pool.time_left(&self.costs.status.steps, &running, self.options.jobs);
        self.observer.begin(number, pooled.step, left);
        let (lab, options, send) = (self.lab, self.options, send.clone());
        let (plan, id) = pooled.places[0];
        scope.spawn(move || {
            let line = |line: &str| {
                // Nobody receives it once the run has been given up.
                let _ = send.send(StepEvent::Line(number, line.to_owned()));
            };
            let warn = |text: String| {
                let _ = send.send(StepEvent::Warning(text));
            };
            let (line, warn) = (&line, &warn);
            let runner = StepRunner {
                lab,
                steps: &plan.steps,
                number: id,
                options,
                threads,
                holder: Holder::this(None),
                waits: true,
                line,
                warn,
            };
            let _ = send.send(StepEvent::Ended(number, runner.run()));
        });
    }

    /// The threads of the step that is about to begin: an equal share of those that no running step has, among the
    /// steps that can begin now, and never less than an equal share of all among all jobs. With one job, what was asked for.
    fn threads_of_next(&self) -> Option<usize> {
        if self.options.jobs == 1 {
            return self.options.threads;
        }
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let all = self.options.threads.unwrap_or_else(cores);
        let (running, busy) = self
            .running()
            .fold((0, 0), |(count, busy), (_, _, threads)| (count + 1, busy + threads));
        let ready = self.states.iter().filter(|state| matches!(state, StepState::Ready { .. }));
        let beginning = ready.count().min(self.options.jobs - running).max(1);
        Some((all.saturating_sub(busy) / beginning).max(all / self.options.jobs).max(1))
    }

    fn ended(&mut self, number: usize, end: Result<CommandEnd>) {
        let beside = matches!(self.states[number], StepState::Running { beside: true, .. });
        let how = match end {
            // It is left as it was, and so are the steps that wait for it.
            Err(Error::Stopped) => {
                self.states[number] = StepState::Ready { alone: false };
                return;
            }
            Ok(CommandEnd::Cached) => StepOutcome::Cached,
            Ok(CommandEnd::Completed { seconds, peak_memory }) => {
                self.costs.held(self.pool, number, peak_memory);
                StepOutcome::Completed(seconds)
            }
            Ok(CommandEnd::Failed { reason, again: true }) if beside => {
                let how = StepOutcome::Postponed(reason);
                self.observer.end(number, self.pool.steps[number].step, &how);
                self.states[number] = StepState::Ready { alone: true };
                return;
            }
            Ok(CommandEnd::Failed { reason, .. }) => StepOutcome::Failed(reason),
            Err(error) => StepOutcome::Failed(error.to_string()),
        };
        self.end(number, how);
    }

    /// Files the records of a step that is complete, and notes how it ended.
    fn end(&mut self, number: usize, mut how: StepOutcome) {
        let PooledStep { step, places, .. } = &self.pool.steps[number];
        if matches!(how, StepOutcome::Cached | StepOutcome::Completed(_)) {
            let stored = places
                .iter()
                .try_for_each(|&(plan, id)| store_records(self.lab, plan, id, &self.store));
            if let Err(error) = stored {
                how = StepOutcome::Failed(error.to_string());
            }
        }
        self.costs.status.steps[number].0 = true;
        if let StepOutcome::Completed(seconds) = how {
            self.costs.measured(self.pool, number, seconds);
        }
        self.observer.end(number, step, &how);
        self.states[number] = StepState::Ended(how);
    }
}

/// What [`collect`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collected {
    /// Complete steps, whose records are in the store now.
    pub complete: usize,
    pub open: usize,
}

/// Writes the records of every complete step of plans to the store, and runs nothing. Results with other settings are dropped
/// with `force`, and refused otherwise.
///
/// # Errors
/// Where a complete step was altered since, after the others are stored.
pub fn collect(lab: &Laboratory, plans: &[StudyPlan], force: bool) -> Result<Collected> {
    lab.enter_settings(plans, force)?;
    let (store, mut found) = (lab.store()?, Collected { complete: 0, open: 0 });
    let mut altered = Vec::new();
    for PooledStep { step, places, .. } in &StepPool::of(plans).steps {
        if lab.result(&step.key).is_none() {
            found.open += 1;
            altered.extend(lab.altered(&step.key));
            continue;
        }
        places.iter().try_for_each(|&(plan, id)| store_records(lab, plan, id, &store))?;
        found.complete += 1;
    }
    let Some(first) = altered.first() else { return Ok(found) };
    Err(Error::Failed(format!(
        "{} {}; of {} open steps {} are damaged so, and the results of the {} complete ones are stored; run the study \
         again, which makes the damaged ones anew",
        first.display(),
        sealed::ALTERED,
        found.open,
        altered.len(),
        found.complete
    )))
}

fn failures(lab: &Laboratory, pool: &StepPool<'_>, ended: &[StepOutcome]) -> Option<String> {
    let failed = ended.iter().zip(&pool.steps).filter_map(|(how, pooled)| match how {
        StepOutcome::Failed(reason) => {
            let log = lab.folder(&pooled.step.key).join(LOG);
            Some(format!("\n  {}: {reason}\n    its log: {}", pooled.step.name, log.display()))
        }
        _ => None,
    });
    let failed: Vec<String> = failed.collect();
    let skipped = ended.iter().filter(|how| **how == StepOutcome::Skipped).count();
    if failed.is_empty() {
        return None;
    }
    Some(format!(
        "{} of {} steps failed, {skipped} that depend on them were skipped, the others are complete:{}",
        failed.len(),
        pool.steps.len(),
        failed.concat()
    ))
}

/// Writes the records of a completed step to the store, in place of those that it gave before.
fn store_records(lab: &Laboratory, plan: &StudyPlan, step: StepId, store: &Store) -> Result<()> {
    let extractions: Vec<&Extraction> =
        plan.extractions.iter().filter(|extraction| extraction.step == step).collect();
    if extractions.is_empty() {
        return Ok(());
    }
    let of = &plan.steps[step.0];
    let folder = lab.folder(&of.key);
    let wrong =
        |reason: String| Error::Result { step: of.name.clone(), reason, folder: folder.clone() };
    let missing = |file: &str| wrong(format!("there is no {file}"));
    let result = lab.result(&of.key).ok_or_else(|| missing(RESULT))?;
    let metadata = lab.metadata(&of.key).ok_or_else(|| missing(STEP))?;
    let mut filings = Vec::new();
    for extraction in extractions {
        let found = extraction.read(&result).map_err(wrong)?;
        let origin = Origin {
            study: plan.study.clone(),
            scale: plan.scale.name().to_owned(),
            seed: extraction.seed,
            step: of.key.clone(),
            command: metadata.command.clone(),
            build: metadata.build.clone(),
            finished_at: metadata.finished_at,
        };
        let files = vec![lab.shown_folder(&of.key)];
        let record = |Measurement { measure, factors, value }| Record {
            origin: origin.clone(),
            measure,
            factors,
            value,
            signature: found.signature.clone(),
            files: files.clone(),
        };
        let records = found.measurements.into_iter().map(record).collect();
        let text = |TextSample { name, factors, text }| TextRecord {
            origin: origin.clone(),
            name,
            factors,
            text,
        };
        let texts = found.texts.into_iter().map(text).collect();
        filings.push(StepFiling { slot: Some(extraction.slot(of)), origin, records, texts });
    }
    plan.enter_settings(store, false)?;
    Ok(store.replace(&filings)?)
}
