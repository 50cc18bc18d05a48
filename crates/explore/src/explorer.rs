//! What was opened, and the answers to the page's requests.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use geometry::predictions::RetrievalSpace;
use lab::draw::figure::{SpaceView, language_name};
use lab::spaces::translating_layer;
use models::PretrainedModel;
use models::parallel::{self, ParallelSide, RowSelection};
use serde::Serialize;
use serde_json::{Value, json};
use shift::shifter::ShiftKind;
use tensor::Device;
use text::TsvColumns;
use train::pretrain::PretrainConfig;

use crate::catalogue::{Found, RunEntry, find_all};
use crate::command::CommandPlace;
use crate::engine::{ModelPlace, ModelShelf, TranslateQuery, WeightsChoice};
use crate::error::{ApiFailure, ApiResult, ExploreError};
use crate::live::{RunProgress, log_lines};
use crate::request::{ApiAnswer, ApiRequest};
use crate::space::{PlaneSeries, PointKind, Projection, Space, stamp};
use crate::studies::{StudyResults, records};

/// Arrays of points, and answers about layers, that are kept.
const KEPT: usize = 64;
const MOST_ALPHAS: usize = 41;
/// The most bytes that the vectors of all saved steps of given sentences may take.
const MOST_BYTES: usize = 1 << 30;
const MOST_NEIGHBOURS: usize = 100;

#[derive(Clone, Debug, Default)]
pub struct ExploreConfig {
    /// A run, a laboratory, a Hugging Face folder, or a folder with some of these; this folder, where none is named. A second
    /// one is shown beside the first.
    pub places: Vec<PathBuf>,
    pub texts: Vec<(String, String)>,
    /// The same where line i says the same in every language.
    pub parallel: Vec<(String, String)>,
    pub selection: RowSelection,
}

impl ExploreConfig {
    fn files(&self) -> &[(String, String)] {
        if self.parallel.is_empty() { &self.texts } else { &self.parallel }
    }
}

/// The spaces of a run, and remarks on them.
type RunSpaces = (Vec<Arc<Space>>, Vec<String>);

/// What was opened. Threads share it.
pub struct Explorer {
    config: ExploreConfig,
    found: Mutex<Found>,
    device: Device,
    /// By id of the run: the state of its files, and what was read of them.
    spaces: Mutex<HashMap<String, (String, Arc<RunSpaces>)>>,
    /// By run, pair of languages and saved weights: words.
    words: Mutex<HashMap<String, Arc<Space>>>,
    planes: Mutex<HashMap<String, Arc<PlaneSeries>>>,
    similarities: Mutex<HashMap<String, Arc<Value>>>,
    models: Mutex<ModelShelf>,
    studies: Mutex<Option<Arc<StudyResults>>>,
}

/// What a thread that panicked has left is still whole: every entry is inserted at once.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Inserts; where there are too many entries, all others go.
fn keep<T>(cache: &Mutex<HashMap<String, Arc<T>>>, key: String, value: T) -> Arc<T> {
    let value = Arc::new(value);
    let mut cache = locked(cache);
    if cache.len() >= KEPT {
        cache.clear();
    }
    cache.insert(key, Arc::clone(&value));
    value
}

/// A run, as the page needs it to begin.
#[derive(Serialize)]
struct RunOverview {
    id: String,
    name: String,
    folder: String,
    pairs: Vec<String>,
    pair: String,
    languages: Vec<BTreeMap<&'static str, String>>,
    points: usize,
    paired: bool,
    has_steps: bool,
    given: bool,
    steps: Vec<u64>,
    /// Steps of which there are weights; the last one's are the run's own.
    snapshots: Vec<u64>,
    layers: usize,
    best_layer: usize,
    shift_layer: usize,
    from_random: bool,
    candidates: usize,
    progress: Option<RunProgress>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct RunMetrics {
    title: Option<String>,
    steps: Vec<u64>,
    /// steps x layers.
    raw: Vec<Vec<f64>>,
    centered: Vec<Vec<f64>>,
    language_share: Vec<Vec<f64>>,
    candidates: usize,
    chance: Option<f64>,
    from_random: bool,
    perplexity: Vec<LoggedValues>,
    loss: Vec<LoggedValues>,
}

/// Numbers of each language after a step.
#[derive(Serialize)]
struct LoggedValues {
    step: u64,
    values: BTreeMap<String, f64>,
}

impl Explorer {
    /// Opens what is at a place.
    ///
    /// # Errors
    /// Where there is nothing, or it cannot be read.
    pub fn open(config: ExploreConfig, device: Device) -> Result<Self, ExploreError> {
        let found = find_all(&config.places)?;
        let is_run = |entry: &RunEntry| entry.folder.join("probes").is_dir();
        let alone = found.laboratory.is_none() && found.entries.len() == 1;
        if alone && config.files().is_empty() && !is_run(&found.entries[0]) {
            return Err(ApiFailure::request(format!(
                "{} has saved no states while it was trained; give sentences of two languages to look at it with: \
                 --parallel LANG=FILE twice, or --text LANG=FILE",
                found.entries[0].folder.display()
            ))
            .into());
        }
        Ok(Self {
            config,
            found: Mutex::new(found),
            device,
            spaces: Mutex::default(),
            words: Mutex::default(),
            planes: Mutex::default(),
            similarities: Mutex::default(),
            models: Mutex::default(),
            studies: Mutex::default(),
        })
    }

    pub fn describe(&self) -> String {
        let found = locked(&self.found);
        let runs = match &found.entries[..] {
            [] => "no runs".to_owned(),
            [entry] => entry.name.clone(),
            entries => format!("{} runs", entries.len()),
        };
        match &found.laboratory {
            Some(root) => format!("the laboratory {} ({runs})", root.display()),
            None => runs,
        }
    }

    pub fn answer(&self, request: &ApiRequest) -> ApiAnswer {
        self.respond(request).unwrap_or_else(ApiAnswer::from)
    }

    fn respond(&self, request: &ApiRequest) -> ApiResult<ApiAnswer> {
        match request.path.as_str() {
            "/api/runs" => self.runs(),
            "/api/run" => self.run(request),
            "/api/items" => Ok(ApiAnswer::json(&self.shown(request)?.1.items())),
            "/api/points" | "/api/ranks" => self.points(request),
            "/api/metrics" => self.metrics(request),
            "/api/neighbours" => self.neighbours(request),
            "/api/errors" => self.errors(request),
            "/api/translate" => self.translate(request),
            "/api/cka" => self.cka(request),
            "/api/command" => self.command(request),
            "/api/findings" => Ok(self.studies()?.0.findings(&self.laboratory()?)),
            "/api/records" => records(&self.laboratory()?, request),
            path => match path.strip_prefix("/api/figure/") {
                Some(file) => self.studies()?.0.figure(request, file),
                None => Err(ApiFailure::unknown("there is no such thing here")),
            },
        }
    }

    /// How far a run is; none where there is no such run.
    pub(crate) fn progress(&self, request: &ApiRequest) -> ApiResult<(RunEntry, RunProgress)> {
        let entry = self.entry(request)?;
        let progress = RunProgress::of(&entry.folder);
        Ok((entry, progress))
    }

    fn runs(&self) -> ApiResult<ApiAnswer> {
        // A laboratory may have made more of them.
        let again = find_all(&self.config.places);
        let mut found = locked(&self.found);
        if let Ok(again) = again {
            *found = again;
        }
        let label = |entry: &RunEntry| json!({ "id": entry.id, "name": entry.name });
        Ok(ApiAnswer::json(&json!({
            "runs": found.entries.iter().map(label).collect::<Vec<_>>(),
            "laboratory": found.laboratory.as_ref().map(|root| root.display().to_string()),
            "beside": found.beside,
            "version": env!("CARGO_PKG_VERSION"),
        })))
    }

    pub(crate) fn laboratory(&self) -> ApiResult<PathBuf> {
        let none = || ApiFailure::unknown("there is no laboratory here; name its folder");
        locked(&self.found).laboratory.clone().ok_or_else(none)
    }

    fn studies(&self) -> ApiResult<(Arc<StudyResults>,)> {
        let root = self.laboratory()?;
        let mut studies = locked(&self.studies);
        if let Some(known) = studies.as_ref().filter(|known| known.is_current(&root)) {
            return Ok((Arc::clone(known),));
        }
        let read = Arc::new(StudyResults::read(&root)?);
        *studies = Some(Arc::clone(&read));
        Ok((read,))
    }

    /// The run that a request names, by its id.
    fn entry(&self, request: &ApiRequest) -> ApiResult<RunEntry> {
        self.entry_of(request.text("run")?)
    }

    fn entry_of(&self, id: &str) -> ApiResult<RunEntry> {
        let found = locked(&self.found);
        let entry = found.entries.iter().find(|entry| entry.id == id);
        let entry = entry.ok_or_else(|| ApiFailure::unknown("there is no run of this id"))?;
        match entry.folder.is_dir() {
            true => Ok(entry.clone()),
            false => Err(ApiFailure::gone(format!("{} is gone", entry.folder.display()))),
        }
    }

    /// The spaces of a run: read again where its files have changed.
    fn spaces(&self, entry: &RunEntry) -> ApiResult<Arc<RunSpaces>> {
        let given = !self.config.files().is_empty();
        let state = match given {
            true => format!("{:?}", models::snapshots(&entry.folder)),
            false => stamp(&entry.folder),
        };
        if let Some((of, spaces)) = locked(&self.spaces).get(&entry.id)
            && *of == state
        {
            return Ok(Arc::clone(spaces));
        }
        let (spaces, notes) = match given {
            true => self.given_space(entry)?,
            false => Space::of_run(&entry.folder)?,
        };
        if let ([], Some(damage)) = (&spaces[..], notes.first()) {
            return Err(ApiFailure { status: 500, message: damage.clone() });
        }
        if spaces.is_empty() {
            return Err(ApiFailure::request(format!(
                "{} has saved no states (yet): a run saves them of the parallel text in its key `probes`; or give \
                 --parallel LANG=FILE twice",
                entry.folder.display()
            )));
        }
        let spaces = Arc::new((spaces.into_iter().map(Arc::new).collect(), notes));
        locked(&self.spaces).insert(entry.id.clone(), (state, Arc::clone(&spaces)));
        Ok(spaces)
    }

    /// The sentences that were given, as a model reads them; a run with all weights that it saved.
    fn given_space(&self, entry: &RunEntry) -> ApiResult<(Vec<Space>, Vec<String>)> {
        let selection = self.config.selection;
        let paired = !self.config.parallel.is_empty();
        let columns = TsvColumns::default();
        let (mut sides, mut rows): (Vec<ParallelSide>, Vec<usize>) = (Vec::new(), Vec::new());
        if paired {
            let (read, count) = parallel::read_some(&self.config.parallel, &columns, selection)?;
            rows = vec![count; read.len()];
            sides = read;
        } else {
            for (language, file) in &self.config.texts {
                let source = models::sentences::open(std::slice::from_ref(file), &columns)?;
                let (lines, count) = selection.choose(models::sentences::lines(&source))?;
                sides.push(ParallelSide::new(language, file, lines));
                rows.push(count);
            }
        }
        let mut own = PretrainedModel::open(&entry.folder, &self.device)?;
        let run = PretrainConfig::read(&entry.folder).ok();
        let last = run.as_ref().map(|_| RunProgress::of(&entry.folder).step);
        let saved = models::snapshots(&entry.folder).into_iter().filter(|step| Some(*step) != last);
        let mut steps: Vec<Option<u64>> = saved.map(Some).chain([last]).collect();
        let mut notes: Vec<String> = Vec::new();
        let config = own.encoder.config();
        let vectors =
            sides.iter().map(|side| side.lines.len()).sum::<usize>() * (config.layers + 1);
        if steps.len() == 1 && last.is_some() {
            notes.push(
                "The run saved no weights while it was trained: the key `snapshots` saves some, and `probes` the states of \
                 parallel text, so that there is a timeline."
                    .to_owned(),
            );
        } else if steps.len() * vectors * config.dim * size_of::<f32>() > MOST_BYTES {
            notes.push("These are too many sentences for all saved steps; fewer (--limit) have a timeline.".to_owned());
            steps = vec![last];
        }
        // Without the weights of its beginning no step is that of an untrained encoder.
        let from_random = steps[0] == Some(0) && run.is_some_and(|run| run.init.is_none());
        let files = self.config.files().to_vec();
        let mut space: Option<Space> = None;
        for step in steps {
            let mut earlier;
            let model = match step == last {
                true => &mut own,
                false => {
                    let name = WeightsChoice::of(entry, step, last).model;
                    earlier = PretrainedModel::open(Path::new(&name), &self.device)?;
                    &mut earlier
                }
            };
            let given = (files.clone(), selection, rows.clone());
            let of = (step, from_random);
            let next = Space::of_text(model, of, sides.clone(), paired, given, &self.device)?;
            space = Some(match space {
                None => next,
                Some(space) => space.followed_by(next),
            });
        }
        let space = space.expect("there are weights of the end");
        notes.extend(note_of_selection(&space));
        Ok((vec![space], notes))
    }

    /// The words of a run, in the vocabulary of the pair of languages.
    fn words(&self, entry: &RunEntry, sentences: &Space) -> ApiResult<Arc<Space>> {
        if !sentences.has_steps() {
            let message = "words are shown of runs of ours, whose vocabulary knows which words a language has";
            return Err(ApiFailure::unknown(message));
        }
        let last = sentences.points.last().map(|point| point.step);
        let saved = models::snapshots(&entry.folder).into_iter().filter(|step| Some(*step) != last);
        let steps: Vec<u64> = saved.chain(last).collect();
        let name = |&step: &u64| (step, WeightsChoice::of(entry, Some(step), last).model);
        let weights: Vec<(u64, String)> = steps.iter().map(name).collect();
        let key = format!("{} {} {weights:?}", entry.id, sentences.pair);
        if let Some(known) = locked(&self.words).get(&key) {
            return Ok(Arc::clone(known));
        }
        Ok(keep(&self.words, key, Space::of_words(sentences, weights, &self.device)?))
    }

    /// The sentences or the words that a request asks for.
    fn shown(&self, request: &ApiRequest) -> ApiResult<(RunEntry, Arc<Space>)> {
        let (entry, sentences) = self.space(request)?;
        // Of a shift, `kind` is the kind of the shift, and its text a sentence.
        if request.path == "/api/translate" || request.get("view") == Some("shift") {
            return Ok((entry, sentences));
        }
        match request.choice("kind", &PointKind::ALL)? {
            PointKind::Sentences => Ok((entry, sentences)),
            PointKind::Words => {
                let words = self.words(&entry, &sentences)?;
                Ok((entry, words))
            }
        }
    }

    /// The run and the pair of languages that a request names.
    fn space(&self, request: &ApiRequest) -> ApiResult<(RunEntry, Arc<Space>)> {
        let entry = self.entry(request)?;
        let spaces = self.spaces(&entry)?;
        let space = match request.get("pair") {
            None => spaces.0.first(),
            Some(pair) => spaces.0.iter().find(|space| space.pair == pair),
        };
        let none = || ApiFailure::unknown("the run has no such pair of languages");
        Ok((entry, Arc::clone(space.ok_or_else(none)?)))
    }

    fn run(&self, request: &ApiRequest) -> ApiResult<ApiAnswer> {
        let (entry, space) = self.space(request)?;
        let spaces = self.spaces(&entry)?;
        let language =
            |code: &String| BTreeMap::from([("code", code.clone()), ("name", language_name(code))]);
        let progress = space.has_steps().then(|| RunProgress::of(&entry.folder));
        Ok(ApiAnswer::json(&RunOverview {
            name: entry.name.clone(),
            folder: entry.folder.display().to_string(),
            pairs: spaces.0.iter().map(|space| space.pair.clone()).collect(),
            pair: space.pair.clone(),
            languages: space.languages.iter().map(language).collect(),
            points: space.texts.iter().map(Vec::len).sum(),
            paired: space.paired,
            has_steps: space.has_steps(),
            given: space.is_given(),
            steps: space.steps(),
            snapshots: models::snapshots(&entry.folder),
            layers: space.layers,
            best_layer: space.finding(None).0,
            shift_layer: translating_layer(space.layers - 1),
            from_random: space.from_random,
            candidates: space.candidates,
            progress,
            notes: spaces.1.clone(),
            id: entry.id,
        }))
    }

    /// Of every point at every step two numbers: its place on the plane, or its rank and hubness.
    fn points(&self, request: &ApiRequest) -> ApiResult<ApiAnswer> {
        let (entry, space) = self.shown(request)?;
        let layer = request.number("layer")?.unwrap_or(0);
        let view = request.choice("mode", &SpaceView::ALL)?;
        let projection = request.choice("proj", &Projection::ALL)?;
        let key = format!("{} {} {}", request.key(), stamp(&entry.folder), space.points.len());
        let known = locked(&self.planes).get(&key).cloned();
        let planes = match known {
            Some(planes) => planes,
            None if request.path == "/api/ranks" => {
                let of = match view {
                    SpaceView::Raw => RetrievalSpace::Raw,
                    _ => RetrievalSpace::Centered,
                };
                keep(&self.planes, key, space.ranks(layer, of, &self.device)?)
            }
            None => keep(&self.planes, key, space.planes(layer, view, projection)?),
        };
        let PlaneSeries { steps, count, values, shares } = &*planes;
        let body: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        let join = |numbers: Vec<String>| numbers.join(",");
        let mut answer = ApiAnswer::of("application/octet-stream", body);
        answer.headers = vec![
            ("X-Shape", format!("{},{count},2", steps.len())),
            ("X-Steps", join(steps.iter().map(u64::to_string).collect())),
            (
                "X-Shares",
                join(shares.iter().flatten().map(|share| format!("{share:.6}")).collect()),
            ),
        ];
        Ok(answer)
    }

    fn metrics(&self, request: &ApiRequest) -> ApiResult<ApiAnswer> {
        let (entry, space) = self.space(request)?;
        let layer = request.number("layer")?.filter(|&layer: &usize| layer < space.layers);
        let (mut perplexity, mut loss) = (Vec::new(), Vec::new());
        let log = if space.has_steps() { log_lines(&entry.folder) } else { Vec::new() };
        for line in log {
            let numbers = |name: &str| -> BTreeMap<String, f64> {
                let object = line[name].as_object().into_iter().flatten();
                object.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?))).collect()
            };
            let Some(step) = line["step"].as_u64() else { continue };
            for (list, name) in [(&mut perplexity, "perplexity"), (&mut loss, "losses")] {
                let values = numbers(name);
                if !values.is_empty() {
                    list.push(LoggedValues { step, values });
                }
            }
        }
        let points = &space.points;
        Ok(ApiAnswer::json(&RunMetrics {
            title: space.finding(layer).1,
            steps: space.steps(),
            raw: points.iter().map(|point| point.raw.clone()).collect(),
            centered: points.iter().map(|point| point.centered.clone()).collect(),
            language_share: points.iter().map(|point| point.language_share.clone()).collect(),
            candidates: space.candidates,
            chance: (space.candidates > 0).then(|| 1.0 / space.candidates as f64),
            from_random: space.from_random,
            perplexity,
            loss,
        }))
    }

    fn weights(
        entry: &RunEntry,
        space: &Space,
        request: &ApiRequest,
        name: &str,
    ) -> ApiResult<WeightsChoice> {
        let last = space.points.last().map(|point| point.step).filter(|_| space.has_steps());
        let step = request.number(name)?.filter(|_| space.has_steps());
        Ok(WeightsChoice::of(entry, step, last))
    }

    fn ask<T>(
        &self,
        request: &ApiRequest,
        ask: impl FnOnce(&mut ModelShelf, &ModelPlace<'_>) -> ApiResult<T>,
    ) -> ApiResult<T> {
        let (entry, space) = self.shown(request)?;
        let weights = Self::weights(&entry, &space, request, "step")?;
        let laboratory = locked(&self.found).laboratory.clone();
        let place = ModelPlace {
            entry: &entry,
            space: &space,
            weights,
            laboratory: laboratory.as_deref(),
            device: &self.device,
        };
        ask(&mut locked(&self.models), &place)
    }

    fn neighbours(&self, request: &ApiRequest) -> ApiResult<ApiAnswer> {
        let query = (request.text("lang")?, request.text("text")?.trim());
        let k = request.number("k")?.unwrap_or(10).clamp(1, MOST_NEIGHBOURS);
        let center = is_centered(request)?;
        self.ask(request, |models, place| {
            Ok(ApiAnswer::json(&models.neighbours(place, query, k, center)?))
        })
    }

    fn errors(&self, request: &ApiRequest) -> ApiResult<ApiAnswer> {
        let layer = request.number("layer")?.unwrap_or(0);
        let center = is_centered(request)?;
        self.ask(request, |models, place| {
            if layer >= place.space.layers {
                return Err(ApiFailure::request(format!("there is no layer {layer}")));
            }
            Ok(ApiAnswer::json(&models.errors(place, layer, center)?))
        })
    }

    fn translate(&self, request: &ApiRequest) -> ApiResult<ApiAnswer> {
        let asked = TranslateQuery {
            from: request.text("from")?,
            to: request.text("to")?,
            layer: request.number("layer")?.unwrap_or(0),
            kind: kind_of(request)?,
            alphas: alphas_of(request)?,
            text: request.text("text")?.trim(),
        };
        self.ask(request, |models, place| Ok(ApiAnswer::json(&models.translate(place, &asked)?)))
    }

    /// CKA of the layers of one run and step (`run`, `step`) with those of another (`other`, `other_step`), which are the same where none is
    /// named.
    fn cka(&self, request: &ApiRequest) -> ApiResult<ApiAnswer> {
        let (entry, space) = self.space(request)?;
        let weights = Self::weights(&entry, &space, request, "step")?;
        let other = self.other_weights(request, &space, &weights)?;
        let key = format!("{} {} {}", weights.model, other.model, space.pair);
        let known = locked(&self.similarities).get(&key).cloned();
        let result = match known {
            Some(result) => result,
            None => {
                let result = self.ask(request, |models, place| models.cka(place, &other))?;
                let value = serde_json::to_value(&result)?;
                keep(&self.similarities, key, value)
            }
        };
        Ok(ApiAnswer::json(&json!({ "weights": weights, "other": other, "result": *result })))
    }

    fn other_weights(
        &self,
        request: &ApiRequest,
        space: &Space,
        weights: &WeightsChoice,
    ) -> ApiResult<WeightsChoice> {
        if request.get("other").is_none() && request.get("other_step").is_none() {
            return Ok(weights.clone());
        }
        let entry = match request.get("other") {
            Some(id) => self.entry_of(id)?,
            None => self.entry(request)?,
        };
        // The last step of another run has another number.
        let own;
        let space = match entry.id == request.text("run")? {
            true => space,
            false => {
                own = self.spaces(&entry)?;
                &own.0[0]
            }
        };
        Self::weights(&entry, space, request, "other_step")
    }

    fn command(&self, request: &ApiRequest) -> ApiResult<ApiAnswer> {
        let (entry, space) = self.shown(request)?;
        let weights = Self::weights(&entry, &space, request, "step")?;
        let run = entry.folder.display().to_string();
        let place = CommandPlace { run, space: &space, weights: &weights };
        let layer = request.number("layer")?.unwrap_or(0);
        let mode = request.get("mode").unwrap_or("raw");
        let difference = request.get("proj") == Some("difference");
        let none = |reason: &str| {
            Ok(ApiAnswer::json(&json!({ "command": Value::Null, "reason": reason })))
        };
        let of_words = space.kind == PointKind::Words;
        let needs_files = !of_words && !matches!(request.text("view")?, "space" | "emergence");
        if needs_files && space.files.is_empty() {
            return none("the files of these sentences are gone");
        }
        if of_words && difference {
            return none("figures between the languages are of sentences");
        }
        let line = match request.text("view")? {
            "space" => place.space(layer, mode, difference),
            "emergence" => place.emergence(layer),
            "neighbours" => {
                let query = (request.text("lang")?, request.text("text")?.trim());
                let k = request.number("k")?.unwrap_or(10);
                place.neighbours(query, k, is_centered(request)?)
            }
            "shift" => {
                let means = self.ask(request, ModelShelf::means_file)?;
                let means = means.map(|file| file.display().to_string());
                let direction = (request.text("from")?, request.text("to")?);
                let (kind, alphas) = (kind_of(request)?.name(), request.text("alphas")?);
                let text = request.text("text")?.trim();
                alphas_of(request)?;
                place.shift(direction, layer, &kind, alphas, text, means.as_deref())
            }
            "layers" => place.cka(&self.other_weights(request, &space, &weights)?),
            _ => return Err(ApiFailure::request("there is no such view")),
        };
        Ok(ApiAnswer::json(&json!({ "command": line })))
    }

    /// The first run, which an export is of.
    pub(crate) fn first_run(&self) -> ApiResult<String> {
        let found = locked(&self.found);
        let first = found.entries.first();
        let none = || ApiFailure::request("there is no run to export; name its folder");
        Ok(first.ok_or_else(none)?.id.clone())
    }

    /// The run that is shown beside it.
    pub(crate) fn run_beside(&self) -> Option<String> {
        locked(&self.found).beside.clone()
    }

    pub fn place(&self) -> &Path {
        self.config.places.first().map_or(Path::new("."), PathBuf::as_path)
    }
}

/// What is shown of the sentences that were given, where it is not all.
fn note_of_selection(space: &Space) -> Option<String> {
    let of = |rows: &[usize]| {
        let mut counts: Vec<String> = rows.iter().map(usize::to_string).collect();
        counts.dedup();
        counts.join(", ")
    };
    let rows = of(&space.rows);
    let what = if space.paired { "sentence pairs" } else { "sentences of each language" };
    match space.selection {
        _ if !space.is_partial() => None,
        RowSelection::All => None,
        RowSelection::First(size) => {
            Some(format!("The first {size} of {rows} {what} are shown (--limit)."))
        }
        RowSelection::Sample { size, seed } => Some(format!(
            "A random sample of {size} of {rows} {what} is shown (--sample-size, --seed {seed})."
        )),
    }
}

fn is_centered(request: &ApiRequest) -> ApiResult<bool> {
    // Neighbours are of raw or of mean-centred vectors; what is aligned is centred.
    request.choice("mode", &[("raw", false), ("centered", true), ("aligned", true)])
}

fn kind_of(request: &ApiRequest) -> ApiResult<ShiftKind> {
    ShiftKind::parse(request.get("kind").unwrap_or("mean")).map_err(ApiFailure::request)
}

fn alphas_of(request: &ApiRequest) -> ApiResult<Vec<f32>> {
    let wrong = || ApiFailure::request("alphas are finite numbers with commas between, at most 41");
    let alpha = |text: &str| text.trim().parse::<f32>().ok().filter(|alpha| alpha.is_finite());
    let alphas: Option<Vec<f32>> = request.text("alphas")?.split(',').map(alpha).collect();
    alphas.filter(|alphas| alphas.len() <= MOST_ALPHAS).ok_or_else(wrong)
}
