//! The loop of a run: batches in, updates, and whatever is due after each.

use std::path::Path;
use std::time::{Duration, Instant};

use encoder::{Batch, Encoder, Masked, archive};
use models::MODEL_FILE;
use serde_json::{Value, json};
use tensor::{Device, Params};

use super::config::PretrainConfig;
use super::data::Data;
use super::evaluate::{Probe, perplexities};
use super::log::Metrics;
use super::summary::{Best, Moment, Position, Shares, Summary};
use super::{Observer, PretrainError};
use crate::adam::Group;
use crate::events::Events;
use crate::trainer::{Pending, Trainer};

pub(super) const STATE: &str = "state.safetensors";
/// Numbers of a layer of a batch from which on a GPU is busier than whoever asks it.
const LARGE: usize = 1 << 22;

/// Where the time of this process goes.
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

    fn shares(&self) -> Shares {
        let whole = self.start.elapsed().as_secs_f64().max(1e-9);
        let share = |part: Duration| part.as_secs_f64() / whole;
        Shares {
            waiting: share(self.waiting),
            evaluating: share(self.evaluating),
            saving: share(self.saving),
        }
    }
}

/// An update that was begun.
struct Begun {
    pending: Pending,
    /// For each piece, its language and how many targets it has.
    facts: Vec<(usize, usize)>,
    tokens: u64,
}

/// A run under way.
pub(crate) struct Run<'a> {
    config: &'a PretrainConfig,
    folder: &'a Path,
    data: Data,
    model: Encoder,
    trainer: Trainer,
    position: Position,
    metrics: Metrics,
    events: Events,
    probes: Vec<Probe>,
    /// The loss of guessing by frequency.
    by_frequency: f64,
    clock: Clock,
}

impl<'a> Run<'a> {
    /// Prepares the data and the model, and goes back to the last checkpoint if there is one.
    pub(crate) fn open(
        config: &'a PretrainConfig,
        folder: &'a Path,
        device: &Device,
        observer: &mut dyn Observer,
    ) -> Result<Self, PretrainError> {
        observer.note(&format!("running on {device:?}"));
        let data = Data::prepare(config, folder, &mut |text| observer.note(text))?;
        let mut params = Params::new(device);
        let model = Encoder::new(data.encoder_config(config), &mut params, config.seed)?;
        let adam = config.adam.clone();
        let mut trainer =
            Trainer::new(model.config(), params, adam, config.seed, |_| Group::default())?;
        if config.batch.sequences * config.batch.length * model.config().dim >= LARGE {
            trainer.expect_same_shape();
        }
        describe(folder, &model, &data)?;
        let mut position = Position::new(data.fingerprints.clone());
        let state = folder.join(STATE);
        let resumed = state.is_file();
        if resumed {
            position = trainer.resume(&state)?;
            if position.text != data.fingerprints {
                return Err(PretrainError::OtherText(folder.to_owned()));
            }
            observer.note(&format!("going on from step {}", trainer.steps()));
        }
        let metrics =
            Metrics::open(folder.join("metrics.jsonl"), resumed.then(|| trainer.steps()))?;
        let events = Events::begin(folder, trainer.steps())?;
        let longest = model.config().positions;
        let probes = config.probes.iter().map(|probe| Probe::read(probe, &data, longest));
        let probes = probes.collect::<text::Result<_>>()?;
        let by_frequency = guessing_by_frequency(&data);
        let [waiting, evaluating, saving] = [Duration::ZERO; 3];
        let clock = Clock { start: Instant::now(), tokens: 0, waiting, evaluating, saving };
        Ok(Self {
            config,
            folder,
            data,
            model,
            trainer,
            position,
            metrics,
            events,
            probes,
            by_frequency,
            clock,
        })
    }

    /// Trains to the end, or until asked to stop.
    pub(crate) fn go(mut self, observer: &mut dyn Observer) -> Result<Summary, PretrainError> {
        self.clock.start = Instant::now();
        let first = self.trainer.steps();
        if first == 0 {
            self.evaluate(observer)?;
        }
        let mut feed = self.data.feed(first);
        // The update that the device is working on while the next one is prepared.
        let mut begun: Option<Begun> = None;
        let finished = loop {
            let finished = self.trainer.steps() >= self.config.steps || self.out_of_patience();
            if finished || observer.stop() {
                break finished;
            }
            let waiting = Instant::now();
            let pieces = feed.next_step(&self.data);
            self.clock.waiting += waiting.elapsed();
            let next = self.begin(&pieces);
            if let Some(begun) = begun.replace(next) {
                self.finish(begun, observer)?;
            }
            if self.is_something_due() {
                begun.take().map_or(Ok(()), |begun| self.finish(begun, observer))?;
            }
        };
        begun.map_or(Ok(()), |begun| self.finish(begun, observer))?;
        let steps = self.trainer.steps();
        if steps > first && !steps.is_multiple_of(self.config.checkpoint_every) {
            self.save()?;
        }
        let summary = self.summary(finished);
        let text = serde_json::to_string_pretty(&summary).expect("a summary is valid JSON");
        files::write(&self.folder.join(Summary::FILE), text)?;
        Ok(summary)
    }

    /// Asks for an update.
    fn begin(&mut self, pieces: &[(Batch, Masked)]) -> Begun {
        let pending = begin_update(&mut self.trainer, &self.model, pieces);
        let facts = pieces.iter().map(|(batch, masked)| (batch.language, masked.rows.len()));
        let tokens = pieces.iter().map(|(batch, _)| batch.tokens.len() as u64).sum();
        Begun { pending, facts: facts.collect(), tokens }
    }

    /// Whether the last update that was begun must be done before the next one begins.
    fn is_something_due(&self) -> bool {
        let (config, step) = (self.config, self.trainer.steps());
        let every = [config.evaluate_every, config.checkpoint_every];
        step == config.steps || every.iter().any(|&every| step.is_multiple_of(every))
    }

    /// Waits for an update, and does whatever is due after it.
    fn finish(&mut self, begun: Begun, observer: &mut dyn Observer) -> Result<(), PretrainError> {
        let config = self.config;
        let Begun { pending, facts, tokens } = begun;
        let report = self.trainer.finish(pending)?;
        self.position.tokens += tokens;
        self.clock.tokens += tokens;
        let facts = facts.into_iter();
        let log = &mut self.position.log;
        let told = log.step(&report, facts, &config.languages, self.by_frequency, config.steps);
        if told.left {
            let moment = Moment { step: report.step, tokens: self.position.tokens };
            self.position.left_plateau = Some(moment);
        }
        if let Some(line) = &told.line {
            self.metrics.write(line)?;
            self.show(report.step, line)?;
        }
        if let Some(note) = told.note {
            observer.note(&note);
        }
        let loss = told.loss.unwrap_or(report.loss);
        let text = format!("loss {loss:.3}, {:.0} tokens/s", self.clock.tokens_per_second());
        observer.step(report.step, config.steps, &text);
        if report.step.is_multiple_of(config.evaluate_every) || report.step == config.steps {
            self.evaluate(observer)?;
        }
        if report.step.is_multiple_of(config.checkpoint_every) {
            self.save()?;
        }
        Ok(())
    }

    /// A line of metrics as curves, with what the clock says.
    fn show(&mut self, step: u64, line: &Value) -> Result<(), PretrainError> {
        let number = |name: &str| (name.to_owned(), line[name].as_f64().unwrap_or(f64::NAN));
        let mut values = ["loss", "accuracy", "norm", "rate"].map(number).to_vec();
        for (language, loss) in line["losses"].as_object().into_iter().flatten() {
            values.push((format!("loss/{language}"), loss.as_f64().unwrap_or(f64::NAN)));
        }
        values.push(("tokens per second".to_owned(), self.clock.tokens_per_second()));
        values.push(("share of time waiting".to_owned(), self.clock.shares().waiting));
        Ok(self.events.write(step, &values)?)
    }

    fn save(&mut self) -> Result<(), PretrainError> {
        let start = Instant::now();
        self.trainer.save(&self.folder.join(STATE), &self.position)?;
        self.clock.saving += start.elapsed();
        Ok(())
    }

    fn out_of_patience(&self) -> bool {
        self.config.patience.is_some_and(|patience| self.position.since_best >= patience)
    }

    /// Measures perplexity and retrieval, and keeps the weights if they are the best so far.
    fn evaluate(&mut self, observer: &mut dyn Observer) -> Result<(), PretrainError> {
        let start = Instant::now();
        let step = self.trainer.steps();
        let device = self.trainer.params().device().clone();
        let (model, data, probes) = (&self.model, &self.data, &self.probes);
        let params = self.trainer.params_mut();
        let (perplexities, retrieval) = device.run(|| {
            let found: Vec<_> =
                probes.iter().map(|probe| probe.retrieve(model, params, data)).collect();
            (perplexities(model, params, data), found)
        });
        let names = self.config.languages.iter().cloned();
        self.position.measured(step, names.zip(perplexities).collect(), retrieval);
        let line = json!({
            "kind": "evaluation", "step": step,
            "perplexity": self.position.perplexity, "retrieval": self.position.retrieval,
        });
        self.metrics.write(&line)?;
        self.events.write(step, &self.measured())?;
        observer.note(&self.evaluated(step));
        let perplexity = self.position.perplexity[self.config.selector()];
        if self.position.best.is_none_or(|best| perplexity < best.perplexity) {
            self.position.best = Some(Best { step, perplexity });
            self.position.since_best = 0;
            self.keep(step)?;
        } else {
            self.position.since_best += 1;
        }
        self.clock.evaluating += start.elapsed();
        Ok(())
    }

    /// The last evaluation as curves.
    fn measured(&self) -> Vec<(String, f64)> {
        let perplexity = |(name, value): (&String, &f64)| (format!("perplexity/{name}"), *value);
        let mut values: Vec<_> = self.position.perplexity.iter().map(perplexity).collect();
        for retrieval in &self.position.retrieval {
            let [a, b] = &retrieval.languages;
            let (raw, shifted) = retrieval.best();
            values.push((format!("retrieval/{a}-{b}"), raw));
            values.push((format!("retrieval/{a}-{b} shifted"), shifted));
        }
        values
    }

    /// An evaluation in words.
    fn evaluated(&self, step: u64) -> String {
        let each = |(name, perplexity): (&String, &f64)| format!("{name} {perplexity:.1}");
        let perplexity: Vec<String> = self.position.perplexity.iter().map(each).collect();
        let mut text = format!("step {step}: perplexity {}", perplexity.join(", "));
        for retrieval in &self.position.retrieval {
            let (raw, shifted) = retrieval.best();
            let [a, b] = &retrieval.languages;
            text += &format!("; {a}-{b} found {raw:.3}, shifted {shifted:.3}");
        }
        text
    }

    /// Writes the weights, with what is needed to use them.
    fn keep(&self, step: u64) -> Result<(), PretrainError> {
        let params = self.trainer.params();
        let weights = params.ids().map(|id| (params.name(id).to_owned(), params.value(id)));
        let facts = json!({
            "encoder": self.model.config(),
            "vocabulary": self.data.vocabulary.fingerprint(),
            "step": step, "perplexity": self.position.perplexity,
        });
        Ok(archive::write(&self.folder.join(MODEL_FILE), weights, &facts)?)
    }

    fn summary(&self, finished: bool) -> Summary {
        Summary {
            preset: self.config.preset.clone(),
            scale: self.config.scale.clone(),
            seed: self.config.seed,
            steps: self.trainer.steps(),
            finished,
            tokens: self.position.tokens,
            seconds: self.clock.start.elapsed().as_secs_f64(),
            tokens_per_second: self.clock.tokens_per_second(),
            shares: self.clock.shares(),
            parameters: self.trainer.params().count(),
            left_plateau: self.position.left_plateau,
            emerged: self.position.emerged.clone(),
            best: self.position.best,
            perplexity: self.position.perplexity.clone(),
            retrieval: self.position.retrieval.clone(),
        }
    }
}

/// Asks for an update from batches whose gradients are added up.
pub(super) fn begin_update(
    trainer: &mut Trainer,
    model: &Encoder,
    pieces: &[(Batch, Masked)],
) -> Pending {
    let targets = pieces.iter().map(|(_, masked)| masked.rows.len()).sum();
    trainer.begin(pieces, targets, |tape, (batch, masked)| {
        model.mlm_loss(tape, batch, masked, 1.0 / targets as f32)
    })
}

/// Lays beside the weights what other programs ask for: the encoder's shape and its tokenizers.
fn describe(folder: &Path, model: &Encoder, data: &Data) -> Result<(), PretrainError> {
    let facts = json!({
        "model_type": "isogloss",
        "encoder": model.config(),
        "specials": data.vocabulary.specials(),
        "vocabulary": data.vocabulary.fingerprint(),
    });
    let text = serde_json::to_string_pretty(&facts).expect("plain data");
    files::write(&folder.join("config.json"), text)?;
    for (name, text) in data.vocabulary.tokenizers()? {
        files::write(&folder.join(name), text)?;
    }
    Ok(())
}

/// The loss of guessing every token by its frequency in its language, over all languages as they
/// come by.
fn guessing_by_frequency(data: &Data) -> f64 {
    let entropy = |counts: &[u64]| {
        let total = counts.iter().sum::<u64>().max(1) as f64;
        let share = |&count: &u64| count as f64 / total;
        let seen = counts.iter().map(share).filter(|&share| share > 0.0);
        seen.map(|share| -share * share.ln()).sum::<f64>()
    };
    let chances = data.chances();
    let each = chances.iter().enumerate();
    each.map(|(language, chance)| chance * entropy(data.vocabulary.counts(language))).sum()
}
