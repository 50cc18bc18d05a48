//! Models that the page asks: opened when they are needed, a few of them kept open with what was computed of them.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use geometry::cka::{CkaConfig, CkaResult, ComparedRows, compare};
use geometry::neighbours::{LanguageNeighbours, NamedVectors, NeighboursResult, nearest};
use geometry::predictions::{Prediction, RetrievalSpace};
use geometry::retrieval::{RowPairs, TranslatedRows, retrieve};
use geometry::search::unwatched;
use models::parallel::{ParallelSide, RowSelection, read_pair_some, read_some};
use models::sentences::{EncodedPairs, encode_pairs, mean_vectors};
use models::{ModelLocation, PretrainedModel, snapshots};
use serde::Serialize;
use shift::means::{MeanVectors, compute};
use shift::shifter::ShiftKind;
use shift::token_sets::TokenSets;
use shift::translate::{
    LikelySubwords, ShiftDirection, TokenTranslation, translate_with_probabilities,
};
use tensor::Device;
use text::{Corpus, LineRules, Selection, Subset, TextSource, TsvColumns};

use crate::catalogue::RunEntry;
use crate::error::{ApiFailure, ApiResult};
use crate::space::{Space, by_cosine};

const OPEN: usize = 3;
/// Candidates of a position whose probabilities are given.
const TOP: usize = 3;
/// Neighbours among which the translation of a sentence is looked for.
const MOST_RANKED: usize = 1000;
const LISTED_ERRORS: usize = 100;
/// The file of mean vectors in a run's folder, or in that of a step of a laboratory.
const MEANS: &str = "means.safetensors";

/// The weights of a run that answer for a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct WeightsChoice {
    /// The model as it is typed: `RUN`, or `RUN@STEP`.
    pub(crate) model: String,
    /// The step of the snapshot; none where these are the run's own (its best) weights.
    pub(crate) step: Option<u64>,
}

impl WeightsChoice {
    /// Of a run and a step: the run's own weights for its last step, else the snapshot that is nearest by the logarithm of its step.
    pub(crate) fn of(entry: &RunEntry, step: Option<u64>, last: Option<u64>) -> Self {
        let own = entry.folder.display().to_string();
        let saved = snapshots(&entry.folder);
        let Some(step) = step.filter(|step| Some(*step) != last && !saved.is_empty()) else {
            return Self { model: own, step: None };
        };
        let place = |step: u64| (step as f64 / 50.0).ln_1p();
        let distance = |other: &u64| (place(*other) - place(step)).abs();
        let nearest = saved.into_iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
        let nearest = nearest.filter(|&nearest| Some(nearest) != last);
        Self { model: nearest.map_or(own.clone(), |step| format!("{own}@{step}")), step: nearest }
    }
}

struct SourcedMeans {
    means: MeanVectors,
    sets: TokenSets,
    /// The file; none where they were computed from the sentences of the space.
    file: Option<PathBuf>,
}

struct LoadedModel {
    /// Its name, and when its weights were written.
    key: String,
    model: PretrainedModel,
    means: Option<SourcedMeans>,
    /// By pair of languages: the sentences of the space, encoded.
    candidates: HashMap<String, Vec<NamedVectors>>,
    /// By pair of languages: all parallel sentences, encoded.
    pairs: HashMap<String, EncodedPairs>,
}

#[derive(Default)]
pub(crate) struct ModelShelf {
    open: Vec<LoadedModel>,
}

#[derive(Serialize)]
pub(crate) struct NeighboursAnswer {
    weights: WeightsChoice,
    #[serde(flatten)]
    result: NeighboursResult,
    /// The sentence's translation in each language, where it is known; in the order of the candidates.
    gold: Vec<Option<String>>,
    /// Its place among each language's candidates, from 1, at every layer; none beyond [`MOST_RANKED`].
    ranks: Vec<Vec<Option<usize>>>,
}

#[derive(Serialize)]
pub(crate) struct ErrorsAnswer {
    weights: WeightsChoice,
    /// P@1 of both directions, and their mean.
    forward: f64,
    backward: f64,
    mean: f64,
    sentences: usize,
    wrong: usize,
    errors: Vec<Prediction>,
}

#[derive(Serialize)]
pub(crate) struct TranslateAnswer {
    weights: WeightsChoice,
    from: String,
    to: String,
    layer: usize,
    kind: ShiftKind,
    sentence: String,
    outputs: Vec<TokenTranslation>,
    /// For each output and position, the likeliest subwords.
    probabilities: LikelySubwords,
    /// The words of the sentence that the language that is read does not have.
    unknown: Vec<String>,
    /// The file of mean vectors; none where they were computed from the sentences shown.
    means: Option<String>,
}

pub(crate) struct TranslateQuery<'a> {
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
    pub(crate) layer: usize,
    pub(crate) kind: ShiftKind,
    pub(crate) alphas: Vec<f32>,
    pub(crate) text: &'a str,
}

pub(crate) struct ModelPlace<'a> {
    pub(crate) entry: &'a RunEntry,
    pub(crate) space: &'a Space,
    pub(crate) weights: WeightsChoice,
    pub(crate) laboratory: Option<&'a Path>,
    pub(crate) device: &'a Device,
}

impl ModelShelf {
    /// The model of a name, opened if it is not.
    fn model(&mut self, name: &str, device: &Device) -> ApiResult<&mut LoadedModel> {
        let key = format!("{name} {:?}", written(Path::new(name)));
        if let Some(at) = self.open.iter().position(|loaded| loaded.key == key) {
            let loaded = self.open.remove(at);
            self.open.insert(0, loaded);
        } else {
            let model = PretrainedModel::open(Path::new(name), device)?;
            let loaded = LoadedModel {
                key,
                model,
                means: None,
                candidates: HashMap::new(),
                pairs: HashMap::new(),
            };
            self.open.insert(0, loaded);
            self.open.truncate(OPEN);
        }
        Ok(&mut self.open[0])
    }

    /// The nearest neighbours of a sentence at every layer, among the sentences of the space.
    pub(crate) fn neighbours(
        &mut self,
        place: &ModelPlace<'_>,
        (lang, text): (&str, &str),
        k: usize,
        center: bool,
    ) -> ApiResult<NeighboursAnswer> {
        let ModelPlace { space, device, weights, .. } = place;
        let loaded = self.model(&weights.model, device)?;
        loaded.encode_candidates(space, device)?;
        let layers: Vec<usize> = (0..space.layers).collect();
        let side = ParallelSide::new(lang, lang, vec![text.to_owned()]);
        let model = &mut loaded.model;
        let (matrices, _) = device.run(|| mean_vectors(model, &side, &layers))?;
        let query = named(side, &layers, matrices);
        let candidates = &loaded.candidates[&candidates_key(space)];
        let ranked = k.max(MOST_RANKED);
        let mut result = device.run(|| nearest(&query, candidates, ranked, center, device))?;
        let gold = space.gold(lang, text);
        let mut ranks = Vec::new();
        for layer in result.queries.iter_mut().flat_map(|query| &mut query.layers) {
            let place = |(found, gold): (&mut LanguageNeighbours, &Option<String>)| {
                let place = found.neighbors.iter().position(|one| Some(&one.text) == gold.as_ref());
                found.neighbors.truncate(k);
                place.map(|place| place + 1)
            };
            ranks.push(layer.languages.iter_mut().zip(&gold).map(place).collect());
        }
        Ok(NeighboursAnswer { weights: weights.clone(), result, gold, ranks })
    }

    /// Retrieval of all parallel sentences at a layer, and where it is wrong.
    pub(crate) fn errors(
        &mut self,
        place: &ModelPlace<'_>,
        layer: usize,
        center: bool,
    ) -> ApiResult<ErrorsAnswer> {
        let ModelPlace { space, device, weights, .. } = place;
        let loaded = self.model(&weights.model, device)?;
        let EncodedPairs { stacks, sides, .. } = loaded.encode_pairs(space, device)?;
        let one = |side: usize| -> ApiResult<arrays::Stack> {
            let matrix = stacks[side].whole(layer)?;
            Ok(arrays::Stack::numbered(&sides[side].file, vec![(layer, matrix)]))
        };
        let (source, target) = (one(0)?, one(1)?);
        let pairs = RowPairs::of_keys(&sides[0].lines, &sides[1].lines);
        let rows = TranslatedRows { source: &source, target: &target, pairs: &pairs };
        let output = device.run(|| retrieve(rows, None, &by_cosine(device, 1)))?;
        let wanted = if center { RetrievalSpace::Centered } else { RetrievalSpace::Raw };
        let of_layer = &output.result.layers[0];
        let accuracy = if center { of_layer.centered } else { of_layer.raw };
        let name = |side: usize, row: usize| sides[side].lines[row].clone();
        let found = output.kept.iter().flat_map(|kept| kept.predictions(&pairs, &name));
        let wrong = found.filter(|found| found.space == wanted && found.rank != Some(1));
        let mut errors: Vec<Prediction> = wrong.collect();
        let wrong = errors.len();
        errors.truncate(LISTED_ERRORS);
        Ok(ErrorsAnswer {
            weights: weights.clone(),
            forward: accuracy.forward,
            backward: accuracy.backward,
            mean: accuracy.mean,
            sentences: output.result.counts.used,
            wrong,
            errors,
        })
    }

    pub(crate) fn translate(
        &mut self,
        place: &ModelPlace<'_>,
        asked: &TranslateQuery<'_>,
    ) -> ApiResult<TranslateAnswer> {
        let ModelPlace { device, weights, .. } = place;
        let loaded = self.model(&weights.model, device)?;
        loaded.find_means(place)?;
        let LoadedModel { model, means: Some(SourcedMeans { means, sets, file }), .. } = loaded
        else {
            unreachable!("means were found or computed");
        };
        let TranslateQuery { from, to, layer, kind, alphas, text } = asked;
        let direction = ShiftDirection::new(means, sets, from, to)?;
        let (outputs, probabilities) = device.run(|| {
            translate_with_probabilities(model, &direction, *layer, *kind, alphas, text, TOP)
        })?;
        let unknown = direction.unknown_words(model, text)?;
        Ok(TranslateAnswer {
            unknown,
            weights: weights.clone(),
            from: (*from).to_owned(),
            to: (*to).to_owned(),
            layer: *layer,
            kind: *kind,
            sentence: (*text).to_owned(),
            outputs,
            probabilities,
            means: file.as_ref().map(|file| file.display().to_string()),
        })
    }

    /// The file of mean vectors that belongs to some weights, if there is one.
    pub(crate) fn means_file(&mut self, place: &ModelPlace<'_>) -> ApiResult<Option<PathBuf>> {
        let loaded = self.model(&place.weights.model, place.device)?;
        loaded.find_means(place)?;
        Ok(loaded.means.as_ref().and_then(|means| means.file.clone()))
    }

    /// CKA of all layers of one model on the first language with all of another on the second.
    pub(crate) fn cka(
        &mut self,
        place: &ModelPlace<'_>,
        other: &WeightsChoice,
    ) -> ApiResult<CkaResult> {
        let ModelPlace { space, device, weights, .. } = place;
        let encoded;
        let pairs = if weights == other {
            let loaded = self.model(&weights.model, device)?;
            loaded.encode_pairs(space, device)?
        } else {
            let open = |name: &str| PretrainedModel::open(Path::new(name), device);
            let mut models = vec![open(&weights.model)?, open(&other.model)?];
            let layers = [0, 1].map(|model: usize| models[model].encoder.config().layers);
            let layers = layers.map(|last| (0..=last).collect::<Vec<usize>>());
            let sides = all_sides(space)?;
            encoded = device
                .run(|| encode_pairs(&mut models, &sides, [&layers[0], &layers[1]], |_| {}))?;
            &encoded
        };
        let EncodedPairs { stacks: [x, y], lengths: [_, lengths], counts, .. } = pairs;
        let config = CkaConfig { subsamples: None, seed: 1 };
        let rows = ComparedRows { counts: Some(*counts), groups: None, lengths: Some(lengths) };
        Ok(device.run(|| compare(x, y, rows, config, device, [&unwatched; 3]))?)
    }
}

impl LoadedModel {
    fn encode_candidates(&mut self, space: &Space, device: &Device) -> ApiResult<()> {
        let key = candidates_key(space);
        if self.candidates.contains_key(&key) {
            return Ok(());
        }
        let layers: Vec<usize> = (0..space.layers).collect();
        let mut candidates = Vec::new();
        for (language, texts) in space.languages.iter().zip(candidate_texts(space)?) {
            let mut seen = HashSet::new();
            let different = texts.into_iter().filter(|text| seen.insert(text.clone())).collect();
            let side = ParallelSide::new(language, language, different);
            let model = &mut self.model;
            let (matrices, _) = device.run(|| mean_vectors(model, &side, &layers))?;
            candidates.push(named(side, &layers, matrices));
        }
        self.candidates.insert(key, candidates);
        Ok(())
    }

    fn encode_pairs(&mut self, space: &Space, device: &Device) -> ApiResult<&EncodedPairs> {
        if !self.pairs.contains_key(&space.pair) {
            let sides = all_sides(space)?;
            let layers: Vec<usize> = (0..=self.model.encoder.config().layers).collect();
            let models = std::slice::from_mut(&mut self.model);
            let encoded =
                device.run(|| encode_pairs(models, &sides, [&layers, &layers], |_| {}))?;
            self.pairs.insert(space.pair.clone(), encoded);
        }
        Ok(&self.pairs[&space.pair])
    }

    /// The mean vectors of these very weights: of the run's folder, of a step of the laboratory, or computed from the sentences'
    /// files.
    fn find_means(&mut self, place: &ModelPlace<'_>) -> ApiResult<()> {
        if self.means.is_some() {
            return Ok(());
        }
        let own = place.entry.folder.join(MEANS);
        let steps = place.laboratory.map(|root| root.join("steps"));
        let steps =
            steps.and_then(|steps| fs::read_dir(steps).ok()).into_iter().flatten().flatten();
        let files = std::iter::once(own).chain(steps.map(|step| step.path().join(MEANS)));
        let found = files.filter(|file| file.is_file()).find_map(|file| {
            let means = MeanVectors::open(&file, &self.model).ok()?;
            let all = place.space.languages.iter().all(|name| means.language(name).is_ok());
            all.then_some((means, Some(file)))
        });
        let (means, file) = match found {
            Some(found) => found,
            None => (self.compute_means(place)?, None),
        };
        self.means = Some(SourcedMeans { sets: TokenSets::of_means(&means), means, file });
        Ok(())
    }

    /// As `shift means --lines` computes them from the same files.
    fn compute_means(&mut self, place: &ModelPlace<'_>) -> ApiResult<MeanVectors> {
        if place.space.files.is_empty() {
            return Err(ApiFailure::unknown(
                "there are no language mean vectors of this model, and the text to compute them from is gone; write \
                 them with `isogloss shift means --out RUN/means.safetensors`",
            ));
        }
        let mut corpora = Vec::new();
        for (language, file) in &place.space.files {
            let number = self.model.vocabulary.language(language)?;
            corpora.push(Corpus {
                source: TextSource::new(language, std::slice::from_ref(file))?,
                preparer: self.model.vocabulary.preparer(number).splitting(false),
                rules: LineRules { adjustable: true, ..LineRules::default() },
                selection: means_selection(place.space),
            });
        }
        let model = &mut self.model;
        Ok(place.device.run(|| compute(model, &corpora, &mut |_, _| {}))?)
    }
}

/// By what candidates are known.
fn candidates_key(space: &Space) -> String {
    format!("{} {:?}", space.pair, space.kind)
}

/// What neighbours are among: what is shown, and of parallel text that was given also the rows that are left out of it since they are too long or
/// repeated.
fn candidate_texts(space: &Space) -> ApiResult<Vec<Vec<String>>> {
    if !space.is_given() || !space.paired {
        return Ok(space.texts.clone());
    }
    let (sides, _) = read_some(&space.files, &TsvColumns::default(), space.selection)?;
    Ok(sides.into_iter().map(|side| side.lines).collect())
}

/// Which lines the mean vectors are computed from: all, or as many as are shown of what was given.
pub(crate) fn means_selection(space: &Space) -> Selection {
    let fewest = space.rows.iter().min().copied().unwrap_or(0);
    let (take, seed) = match space.selection {
        _ if !space.is_partial() => (Subset::All, 1),
        RowSelection::All => (Subset::All, 1),
        RowSelection::First(size) => (Subset::First(size as u64), 1),
        RowSelection::Sample { size, seed } => (Subset::Sample(size.min(fewest) as u64), seed),
    };
    Selection { take, distinct: false, dev: 0, test: 0, seed }
}

/// The parallel sentences of a space's files, all of a run's and those that were chosen of what was given; those of the space, where the files are gone.
fn all_sides(space: &Space) -> ApiResult<[ParallelSide; 2]> {
    if space.languages.len() != 2 || !space.paired {
        return Err(ApiFailure::unknown(
            "this needs parallel sentences of two languages; give --parallel LANG=FILE twice",
        ));
    }
    if !space.files.is_empty() {
        let selection = if space.is_given() { space.selection } else { RowSelection::All };
        return Ok(read_pair_some(&space.files, &TsvColumns::default(), selection)?);
    }
    let side = |side: usize| {
        let language = &space.languages[side];
        ParallelSide::new(language, language, space.texts[side].clone())
    };
    Ok([side(0), side(1)])
}

fn named(side: ParallelSide, layers: &[usize], matrices: Vec<arrays::Matrix>) -> NamedVectors {
    let layers = layers.iter().map(|&layer| Some(layer)).zip(matrices).collect();
    NamedVectors { language: side.language, names: side.lines, layers }
}

fn written(name: &Path) -> Option<std::time::SystemTime> {
    let path = match ModelLocation::find(name).ok()? {
        ModelLocation::Run { weights, .. } => weights,
        ModelLocation::HuggingFace(folder) | ModelLocation::States(folder) => folder,
    };
    fs::metadata(path).ok()?.modified().ok()
}
