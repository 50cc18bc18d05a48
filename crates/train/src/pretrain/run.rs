//! The training loop of a run: batches, updates, and after them evaluations and checkpoints.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use encoder::archive::{self, Archive, ArchiveError};
use encoder::{Batch, Encoder, MaskedTokens};
use files::checkpoints;
use models::{MODEL_FILE, snapshot_file};
use ranks::Ranks;
use serde::Deserialize;
use serde_json::{Value, json};
use tensor::{Device, ParamId, Params};

use super::config::PretrainConfig;
use super::data::{BatchFeed, RunData};
use super::evaluate::{Probe, ProbeMeasurement, perplexities};
use super::init;
use super::log::MetricsFile;
use super::parallel::{self, Update};
use super::probes::Trajectory;
use super::summary::{BestWeights, PretrainSummary, RunState, TimeShares, TrainingMoment};
use super::{Observer, PretrainError};
use crate::adam::AdamGroup;
use crate::events::Events;
use crate::trainer::{PendingStep, TrainError, Trainer};

pub(super) const STATE: &str = "state.safetensors";
/// Activations of a layer of a batch from which on a GPU, and not the host, is the bottleneck.
const LARGE: usize = 1 << 22;

struct Clock {
    start: Instant,
    tokens: u64,
    waiting: Duration,
    evaluating: Duration,
    saving: Duration,
}

impl Clock {
    fn tokens_per_second(&self) -> f64 {
        self.tokens as f64 / self.start.elapsed().as_secs_f64().max(1e-9)
    }

    fn shares(&self) -> TimeShares {
        let whole = self.start.elapsed().as_secs_f64().max(1e-9);
        let share = |part: Duration| part.as_secs_f64() / whole;
        TimeShares {
            waiting: share(self.waiting),
            evaluating: share(self.evaluating),
            saving: share(self.saving),
        }
    }
}

/// An update that the device is working on.
struct PendingUpdate {
    pending: PendingStep,
    /// For each micro-batch, its language and how many targets it has.
    languages: Vec<(usize, usize)>,
    tokens: u64,
}

pub(crate) struct PretrainRun<'a> {
    config: &'a PretrainConfig,
    folder: &'a Path,
    data: RunData,
    model: Encoder,
    trainer: Trainer,
    state: RunState,
    metrics: MetricsFile,
    events: Events,
    probes: Vec<Probe>,
    trajectory: Trajectory,
    /// The loss of predicting every token by its frequency.
    unigram_entropy: f64,
    /// The step of the last checkpoint.
    saved: Option<u64>,
    /// The ranks that share every update, where there are several.
    ranks: Option<Arc<Ranks>>,
    clock: Clock,
}

impl<'a> PretrainRun<'a> {
    /// Prepares the data and the model, and goes back to the last checkpoint if there is one.
    pub(crate) fn open(
        config: &'a PretrainConfig,
        folder: &'a Path,
        device: &Device,
        ranks: Option<&Arc<Ranks>>,
        observer: &mut dyn Observer,
    ) -> Result<Self, PretrainError> {
        observer.note(&format!("running on {device:?}"));
        let checkpoint = folder.join(STATE);
        let resumed = checkpoints::exists(&checkpoint);
        let init = config.init.as_deref().filter(|_| !resumed);
        let init = init.map(|from| init::open(from, device)).transpose()?;
        if let Some(model) = &init {
            observer.note("beginning with the weights and the vocabulary of a model");
            init::put_vocabulary(config, model, folder, &mut |text| observer.note(text))?;
        }
        let data = RunData::prepare(config, folder, &mut |text| observer.note(text))?;
        ranks.map_or(Ok(()), |ranks| parallel::announce(ranks, config))?;
        let (model, params) = init::encoder(config, folder, &data, init, device)?;
        let mut trainer = new_trainer(config, &model, params)?;
        describe(folder, &model, &data)?;
        let mut state = RunState::new(data.fingerprints.clone());
        if resumed {
            state = trainer.resume_newest(&checkpoint, &mut |text| observer.warn(text))?;
            if state.text != data.fingerprints {
                let place = format!("{} began with other text", folder.display());
                let reason = "a file was changed, or a pattern matches other files now";
                let remedy = "restore the text, or begin another run";
                return Err(terms::Error::input(place, reason, remedy).into());
            }
            check_state(&checkpoint, &state, trainer.steps(), config)?;
            if config.is_extended_after(trainer.steps()) {
                state.since_best = 0;
            }
            observer.note(&format!("resuming from step {}", trainer.steps()));
        }
        if let Some(ranks) = ranks {
            let joined = parallel::join(ranks, &mut trainer)?;
            observer.note(&format!("every update is shared: {joined}"));
        }
        let metrics =
            MetricsFile::open(folder.join("metrics.jsonl"), resumed.then(|| trainer.steps()))?;
        if resumed && !state.metrics.is_empty() && state.metrics != metrics.digest() {
            observer.warn(&format!(
                "{}: its lines are not those that the checkpoint was saved with: some were altered or \
                 lost, and the run goes on without them",
                folder.join("metrics.jsonl").display()
            ));
        }
        let saved = resumed.then(|| trainer.steps());
        let events = Events::begin(folder, trainer.steps())?;
        let longest = model.config().positions;
        let probes = config.probes.iter().map(|probe| Probe::read(probe, &data, longest));
        let probes: Vec<Probe> = probes.collect::<text::Result<_>>()?;
        let trajectory = Trajectory::begin(config, folder, &probes, trainer.params())?;
        let unigram_entropy = unigram_entropy(&data);
        let [waiting, evaluating, saving] = [Duration::ZERO; 3];
        let clock = Clock { start: Instant::now(), tokens: 0, waiting, evaluating, saving };
        Ok(Self {
            config,
            folder,
            data,
            model,
            trainer,
            state,
            metrics,
            events,
            probes,
            trajectory,
            unigram_entropy,
            saved,
            ranks: ranks.cloned(),
            clock,
        })
    }

    /// Trains to the goal, or until asked to stop.
    pub(crate) fn train(
        mut self,
        observer: &mut dyn Observer,
    ) -> Result<PretrainSummary, PretrainError> {
        self.clock.start = Instant::now();
        let first = self.trainer.steps();
        if first == 0 {
            self.evaluate(observer)?;
            self.save_snapshot(0)?;
        }
        let (rank, count) = self.ranks.as_ref().map_or((0, 1), |all| (all.rank(), all.count()));
        let mut feed = self.data.feed_rank(first, rank, count);
        // The update that the device is working on while the next one is prepared.
        let mut begun: Option<PendingUpdate> = None;
        let finished = loop {
            let finished = self.trainer.steps() >= self.config.steps || self.out_of_patience();
            let waiting = Instant::now();
            let Some(update) = self.next_update(&mut feed, finished, observer.stop())? else {
                break finished;
            };
            self.clock.waiting += waiting.elapsed();
            let next = self.begin(&update);
            if let Some(begun) = begun.replace(next) {
                self.finish(begun, observer)?;
            }
            if self.is_something_due() {
                begun.take().map_or(Ok(()), |begun| self.finish(begun, observer))?;
            }
        };
        begun.map_or(Ok(()), |begun| self.finish(begun, observer))?;
        let steps = self.trainer.steps();
        if steps > first && !self.config.is_checkpoint_due(steps) {
            self.save()?;
        }
        if finished && !self.trajectory.is_probe_due(self.config, steps) {
            // Patience ran out before the goal.
            let measured = self.measure();
            self.trajectory.save_states(steps, &measured)?;
        }
        let summary = self.summary(finished);
        summary.write(self.folder)?;
        Ok(summary)
    }

    /// What the next update consists of; none at the end of the run, and where it is to stop.
    fn next_update(
        &self,
        feed: &mut BatchFeed,
        finished: bool,
        stop: bool,
    ) -> Result<Option<Update>, PretrainError> {
        match &self.ranks {
            Some(ranks) => parallel::next_update(ranks, feed, &self.data, finished, stop),
            None if finished || stop => Ok(None),
            None => Ok(Some(Update::of(feed.next_step(&self.data)?))),
        }
    }

    /// Submits an update to the device.
    fn begin(&mut self, update: &Update) -> PendingUpdate {
        self.trainer.set_schedule(self.config.schedule_at(self.trainer.steps() + 1));
        let pending = mlm_share(&mut self.trainer, &self.model, &update.own, update.targets());
        let sizes = update.sizes.iter();
        let languages = sizes.map(|size| (self.data.place(size.language), size.targets)).collect();
        let tokens = update.sizes.iter().map(|size| size.tokens).sum();
        PendingUpdate { pending, languages, tokens }
    }

    /// Whether the last update that was begun must be done before the next one begins.
    fn is_something_due(&self) -> bool {
        let step = self.trainer.steps();
        self.is_evaluation_due(step)
            || self.config.is_checkpoint_due(step)
            || self.trajectory.is_due(self.config, step)
    }

    /// Every so many updates, and at the goal.
    fn is_evaluation_due(&self, step: u64) -> bool {
        step.is_multiple_of(self.config.evaluate_every) || step == self.config.goal_at(step)
    }

    /// Waits for an update, and does whatever is due after it.
    fn finish(
        &mut self,
        update: PendingUpdate,
        observer: &mut dyn Observer,
    ) -> Result<(), PretrainError> {
        let config = self.config;
        let PendingUpdate { pending, languages, tokens } = update;
        let report = self.trainer.finish(pending).map_err(|error| self.diverged(error))?;
        self.state.tokens += tokens;
        self.clock.tokens += tokens;
        let (log, goal) = (&mut self.state.log, config.goal_at(report.step));
        let (languages, entropy) = (languages.into_iter(), self.unigram_entropy);
        let output = log.step(&report, languages, &config.languages, entropy, goal);
        if output.left_plateau {
            let moment = TrainingMoment { step: report.step, tokens: self.state.tokens };
            self.state.left_plateau = Some(moment);
        }
        if let Some(line) = &output.line {
            self.metrics.write(line)?;
            self.write_curves(report.step, line)?;
            observer.metrics(line);
        }
        if let Some(note) = output.note {
            observer.note(&note);
        }
        let loss = output.loss.unwrap_or(report.loss);
        let text = format!("loss {loss:.3}, {:.0} tokens/s", self.clock.tokens_per_second());
        observer.step(report.step, config.steps, &text);
        if self.is_evaluation_due(report.step) {
            self.evaluate(observer)?;
        } else if self.trajectory.is_probe_due(config, report.step) {
            let start = Instant::now();
            let measured = self.measure();
            self.trajectory.save_states(report.step, &measured)?;
            self.clock.evaluating += start.elapsed();
        }
        self.save_snapshot(report.step)?;
        if config.is_extended_after(report.step) {
            self.state.since_best = 0;
        }
        if config.is_checkpoint_due(report.step) {
            self.save()?;
        }
        Ok(())
    }

    /// Writes a line of metrics as curves, with the speed.
    fn write_curves(&mut self, step: u64, line: &Value) -> Result<(), PretrainError> {
        let number = |name: &str| (name.to_owned(), line[name].as_f64().unwrap_or(f64::NAN));
        let mut values = ["loss", "accuracy", "norm", "lr"].map(number).to_vec();
        for (language, loss) in line["losses"].as_object().into_iter().flatten() {
            values.push((format!("loss/{language}"), loss.as_f64().unwrap_or(f64::NAN)));
        }
        values.push(("tokens per second".to_owned(), self.clock.tokens_per_second()));
        values.push(("share of time waiting".to_owned(), self.clock.shares().waiting));
        Ok(self.events.write(step, &values)?)
    }

    fn save(&mut self) -> Result<(), PretrainError> {
        let start = Instant::now();
        self.state.metrics = self.metrics.digest();
        self.trainer.save(&self.folder.join(STATE), &self.state)?;
        self.saved = Some(self.trainer.steps());
        self.clock.saving += start.elapsed();
        Ok(())
    }

    /// An error of training, with what a run that diverged has left.
    fn diverged(&self, error: TrainError) -> PretrainError {
        match error {
            TrainError::Diverged { step, what, value } => PretrainError::Diverged {
                step,
                what: what.to_owned(),
                value: value.into(),
                checkpoint: self.saved,
            },
            error => error.into(),
        }
    }

    fn out_of_patience(&self) -> bool {
        self.config.patience.is_some_and(|patience| self.state.since_best >= patience)
    }

    /// Measures perplexity and retrieval, and saves the weights if they are the best so far.
    fn evaluate(&mut self, observer: &mut dyn Observer) -> Result<(), PretrainError> {
        let start = Instant::now();
        let step = self.trainer.steps();
        let device = self.trainer.params().device().clone();
        let measured = self.measure();
        let (model, data, params) = (&self.model, &self.data, self.trainer.params_mut());
        let perplexities = device.run(|| perplexities(model, params, data, step));
        if self.trajectory.is_probe_due(self.config, step) {
            self.trajectory.save_states(step, &measured)?;
        }
        let retrieval = measured.into_iter().map(|measured| measured.retrieval).collect();
        let names = self.config.languages.iter().cloned();
        let perplexities: BTreeMap<String, f64> = names.zip(perplexities?).collect();
        if let Some((name, &value)) = perplexities.iter().find(|(_, value)| !value.is_finite()) {
            let what = format!("perplexity of {name} on held-out text");
            return Err(PretrainError::Diverged { step, what, value, checkpoint: self.saved });
        }
        self.state.record(step, perplexities, retrieval);
        let line = json!({
            "kind": "evaluation", "step": step,
            "perplexity": self.state.perplexity, "retrieval": self.state.retrieval,
        });
        self.metrics.write(&line)?;
        observer.metrics(&line);
        self.events.write(step, &self.evaluation_curves())?;
        observer.note(&self.evaluation_line(step));
        let perplexity = self.state.perplexity[self.config.selector()];
        if self.state.best.is_none_or(|best| perplexity < best.perplexity) {
            self.state.best = Some(BestWeights { step, perplexity });
            self.state.since_best = 0;
            self.save_best(step)?;
        } else {
            self.state.since_best += 1;
        }
        self.clock.evaluating += start.elapsed();
        Ok(())
    }

    /// The vectors of the parallel sentences under the present weights, and their retrieval.
    fn measure(&mut self) -> Vec<ProbeMeasurement> {
        let device = self.trainer.params().device().clone();
        let (model, data, probes) = (&self.model, &self.data, &self.probes);
        let params = self.trainer.params_mut();
        device.run(|| probes.iter().map(|probe| probe.measure(model, params, data)).collect())
    }

    fn evaluation_curves(&self) -> Vec<(String, f64)> {
        let perplexity = |(name, value): (&String, &f64)| (format!("perplexity/{name}"), *value);
        let mut values: Vec<_> = self.state.perplexity.iter().map(perplexity).collect();
        for retrieval in &self.state.retrieval {
            let [a, b] = &retrieval.languages;
            let (raw, centered) = retrieval.best();
            values.push((format!("retrieval/{a}-{b}"), raw));
            values.push((format!("retrieval/{a}-{b} centered"), centered));
        }
        values
    }

    fn evaluation_line(&self, step: u64) -> String {
        let each = |(name, perplexity): (&String, &f64)| format!("{name} {perplexity:.1}");
        let perplexity: Vec<String> = self.state.perplexity.iter().map(each).collect();
        let mut text = format!("step {step}: perplexity {}", perplexity.join(", "));
        for retrieval in &self.state.retrieval {
            let (raw, centered) = retrieval.best();
            let [a, b] = &retrieval.languages;
            text += &format!("; {a}-{b} P@1 {raw:.3} raw, {centered:.3} mean-centred");
        }
        text
    }

    /// Writes the weights, with what is needed to use them.
    fn save_best(&self, step: u64) -> Result<(), PretrainError> {
        let metadata = json!({
            "encoder": self.model.config(),
            "vocabulary": self.data.vocabulary.fingerprint(),
            "step": step, "perplexity": self.state.perplexity,
        });
        self.save_weights(&self.folder.join(MODEL_FILE), &metadata)
    }

    /// Writes the weights as a snapshot, where one is due after an update.
    fn save_snapshot(&mut self, step: u64) -> Result<(), PretrainError> {
        if !self.trajectory.is_snapshot_due(self.config, step) {
            return Ok(());
        }
        let start = Instant::now();
        let metadata = json!({
            "encoder": self.model.config(),
            "vocabulary": self.data.vocabulary.fingerprint(),
            "step": step,
        });
        self.save_weights(&snapshot_file(self.folder, step), &metadata)?;
        self.clock.saving += start.elapsed();
        Ok(())
    }

    fn save_weights(&self, path: &Path, metadata: &Value) -> Result<(), PretrainError> {
        let params = self.trainer.params();
        let weights = params.ids().map(|id| (params.name(id).to_owned(), params.value(id)));
        Ok(archive::write(path, weights, metadata)?)
    }

    /// What was trained and how, in one line.
    fn signature(&self) -> String {
        let config = self.config;
        format!(
            "pretrain|preset:{}|scale:{}|languages:{}|seed:{}|steps:{}|isogloss:{}",
            config.preset,
            config.scale,
            config.languages.join(","),
            config.seed,
            self.trainer.steps(),
            env!("CARGO_PKG_VERSION")
        )
    }

    fn summary(&self, finished: bool) -> PretrainSummary {
        PretrainSummary {
            signature: self.signature(),
            preset: self.config.preset,
            scale: self.config.scale,
            seed: self.config.seed,
            steps: self.trainer.steps(),
            finished,
            tokens: self.state.tokens,
            seconds: self.clock.start.elapsed().as_secs_f64(),
            tokens_per_second: self.clock.tokens_per_second(),
            shares: self.clock.shares(),
            parameters: self.trainer.params().count(),
            left_plateau: self.state.left_plateau,
            emerged: self.state.emerged(),
            best: self.state.best,
            perplexity: self.state.perplexity.clone(),
            retrieval: self.state.retrieval.clone(),
        }
    }
}

/// The updates that the run in a folder has made; 0 without a checkpoint. Where the newest checkpoint is damaged, the
/// summary still says how far the run had come: it will come there again from the one before, by the same schedule.
pub(super) fn steps_done(folder: &Path, note: &mut dyn FnMut(&str)) -> Result<u64, PretrainError> {
    #[derive(Deserialize)]
    struct Step {
        step: u64,
    }
    let path = folder.join(STATE);
    if !checkpoints::exists(&path) {
        return Ok(0);
    }
    let step = |path: &Path| Archive::open(path)?.metadata::<Step>();
    let saved = checkpoints::read(&path, step, ArchiveError::is_damage, note)?.step;
    Ok(PretrainSummary::read(folder).map_or(saved, |summary| saved.max(summary.steps)))
}

/// Refuses a state that is sound but cannot be of this run.
fn check_state(
    path: &Path,
    state: &RunState,
    step: u64,
    config: &PretrainConfig,
) -> Result<(), PretrainError> {
    let beyond = || (step > config.steps).then(|| format!("it is of step {step}, beyond the last"));
    match state.fault(config.languages.len()).or_else(beyond) {
        None => Ok(()),
        Some(reason) => Err(ArchiveError::Misfit { path: path.to_owned(), reason }.into()),
    }
}

/// Submits one update by masked language modelling (Devlin et al. 2019): the mean loss over the masked
/// tokens of all micro-batches.
pub fn mlm_step(
    trainer: &mut Trainer,
    model: &Encoder,
    micro_batches: &[(Batch, MaskedTokens)],
) -> PendingStep {
    let targets = micro_batches.iter().map(|(_, masked)| masked.rows.len()).sum();
    mlm_share(trainer, model, micro_batches, targets)
}

/// The same of one rank's micro-batches, where those of all ranks have so many masked tokens.
pub(super) fn mlm_share(
    trainer: &mut Trainer,
    model: &Encoder,
    micro_batches: &[(Batch, MaskedTokens)],
    targets: usize,
) -> PendingStep {
    trainer.begin(micro_batches, targets, |tape, (batch, masked)| {
        model.mlm_loss(tape, batch, masked, 1.0 / targets as f32)
    })
}

/// A trainer of an encoder with these weights, at step 0.
pub(super) fn new_trainer(
    config: &PretrainConfig,
    model: &Encoder,
    params: Params,
) -> Result<Trainer, TrainError> {
    // Weight decay would change rows that are frozen.
    let decay = |id| if params.frozen_front(id) > 0 { 0.0 } else { 1.0 };
    let decays: Vec<f32> = params.ids().map(decay).collect();
    let group =
        |id: ParamId| AdamGroup { decay_scale: decays[id.number()], ..AdamGroup::default() };
    let adam = config.adam.clone();
    let mut trainer = Trainer::new(model.config(), params, adam, config.seed, group)?;
    if config.batch.sequences * config.batch.length * model.config().dim >= LARGE {
        trainer.expect_same_shape();
    }
    Ok(trainer)
}

/// Writes beside the weights what other programs need: the encoder's shape and its tokenizers.
fn describe(folder: &Path, model: &Encoder, data: &RunData) -> Result<(), PretrainError> {
    let metadata = json!({
        "model_type": "isogloss",
        "encoder": model.config(),
        "specials": data.vocabulary.specials(),
        "vocabulary": data.vocabulary.fingerprint(),
    });
    let text = serde_json::to_string_pretty(&metadata).expect("plain data");
    files::write(&folder.join("config.json"), text)?;
    for (name, text) in data.vocabulary.tokenizers()? {
        files::write(&folder.join(name), text)?;
    }
    Ok(())
}

/// The loss of predicting every token by its frequency in its language: the mean over languages, as
/// often as each is drawn.
fn unigram_entropy(data: &RunData) -> f64 {
    let entropy = |counts: &[u64]| {
        let total = counts.iter().sum::<u64>().max(1) as f64;
        let share = |&count: &u64| count as f64 / total;
        let seen = counts.iter().map(share).filter(|&share| share > 0.0);
        seen.map(|share| -share * share.ln()).sum::<f64>()
    };
    let chances = data.chances();
    chances.iter().zip(data.counts()).map(|(chance, counts)| chance * entropy(counts)).sum()
}
