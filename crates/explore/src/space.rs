//! The points of a run or of a model: sentences of several languages, their vectors at every step and layer, and what was measured
//! there.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use arrays::{Matrix, Stack};
use geometry::predictions::RetrievalSpace;
use geometry::projection::{
    PlaneProjection, mean_difference_plane, principal_plane, remove_lengths, variance_between,
};
use geometry::retrieval::{RetrievalSearch, RowPairs, TranslatedRows, retrieve};
use geometry::search::Measure;
use lab::draw::figure::{SpaceView, plane_at, training_finding};
use models::PretrainedModel;
use models::parallel::{ParallelSide, RowSelection};
use models::sentences::{encode_pairs, mean_vectors};
use models::words::whole_words;
use serde::Serialize;
use tensor::Device;
use train::pretrain::{PretrainConfig, ProbePoint, ProbeSeries};

use crate::error::{ApiFailure, ApiResult};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Projection {
    Principal,
    /// The difference of the languages' means (supervised), and the first direction within them.
    Difference,
}

impl Projection {
    pub(crate) const ALL: [(&str, Self); 2] =
        [("pca", Self::Principal), ("difference", Self::Difference)];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PointKind {
    Sentences,
    /// The words that are one subword of the vocabulary, each read as a sentence of one word.
    Words,
}

impl PointKind {
    pub(crate) const ALL: [(&str, Self); 2] =
        [("sentences", Self::Sentences), ("words", Self::Words)];
}

pub(crate) const WORDS: usize = 400;
/// The last rank of a translation that is counted.
const LAST_RANK: usize = 100;
/// Bytes of a file of glosses that are read.
const LONGEST_GLOSSES: u64 = 64 << 20;

/// Sentences or words of several languages with their vectors.
pub(crate) struct Space {
    pub(crate) kind: PointKind,
    /// `A-B`, by which addresses name it.
    pub(crate) pair: String,
    pub(crate) languages: Vec<String>,
    pub(crate) texts: Vec<Vec<String>>,
    /// Tokens of each sentence, where they were counted.
    pub(crate) lengths: Vec<Vec<usize>>,
    /// What each word means, by language, of invented worlds.
    lexicon: Vec<BTreeMap<String, String>>,
    /// Whether row i of one language translates row i of the others.
    pub(crate) paired: bool,
    /// Measures at each step; of a model without steps, one.
    pub(crate) points: Vec<ProbePoint>,
    pub(crate) layers: usize,
    /// How many sentences retrieval chooses from.
    pub(crate) candidates: usize,
    /// Whether the points are of steps of training, and step 0 is an untrained encoder.
    timed: bool,
    pub(crate) from_random: bool,
    /// The files that the sentences are from, with their languages.
    pub(crate) files: Vec<(String, String)>,
    /// Which lines of the files are here, and how many each language's have.
    pub(crate) selection: RowSelection,
    pub(crate) rows: Vec<usize>,
    states: SpaceStates,
}

enum SpaceStates {
    Saved(Box<ProbeSeries>),
    /// At each step, for each language, every layer.
    Encoded(Vec<(u64, Vec<Vec<Matrix>>)>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlaneSeries {
    pub(crate) steps: Vec<u64>,
    /// Points of all languages, one language after the other.
    pub(crate) count: usize,
    /// steps x points x 2.
    pub(crate) values: Vec<f32>,
    /// Of each step, the share of variance along each axis.
    pub(crate) shares: Vec<[f64; 2]>,
}

#[derive(Serialize)]
pub(crate) struct SpaceItems<'a> {
    languages: Vec<LanguageLabel>,
    paired: bool,
    texts: &'a [Vec<String>],
    lengths: &'a [Vec<usize>],
    lexicon: &'a [BTreeMap<String, String>],
}

#[derive(Serialize)]
struct LanguageLabel {
    code: String,
    name: String,
}

impl Space {
    /// What a run has saved, a space for each pair of languages, and remarks on what could not be read.
    pub(crate) fn of_run(run: &Path) -> ApiResult<(Vec<Self>, Vec<String>)> {
        let config = PretrainConfig::read(run)?;
        let (all, damaged) = ProbeSeries::read_intact(run)?;
        let mut notes: Vec<String> = damaged
            .iter()
            .map(|error| format!("A step is left out, since its file cannot be read: {error}"))
            .collect();
        notes.truncate(3);
        let files = |series: &ProbeSeries| {
            let of_pair = config.probes.iter().find(|probe| probe.languages == series.languages);
            let files = of_pair.map(|probe| probe.files.clone()).into_iter().flatten();
            let files: Vec<String> = files.map(|file| file.display().to_string()).collect();
            let there = files.iter().all(|file| Path::new(file).is_file());
            let named = series.languages.iter().cloned().zip(files);
            if there { named.collect() } else { Vec::new() }
        };
        let spaces =
            all.into_iter().map(|series| Self::of_series(files(&series), series)).collect();
        Ok((spaces, notes))
    }

    fn of_series(files: Vec<(String, String)>, series: ProbeSeries) -> Self {
        let side = |side: usize| series.pairs.iter().map(|pair| pair.texts[side].clone()).collect();
        let texts = vec![side(0), side(1)];
        let lexicon = |side: usize| {
            let glossed = |pair: &'_ train::pretrain::ProbePair| {
                Some((pair.texts[side].clone(), pair.glosses.as_ref()?[side].clone()))
            };
            let shown = || lexicon_of(series.pairs.iter().filter_map(glossed));
            files.get(side).and_then(lexicon_of_file).unwrap_or_else(shown)
        };
        Self {
            kind: PointKind::Sentences,
            pair: series.languages.join("-"),
            languages: series.languages.to_vec(),
            lengths: series.lengths().to_vec(),
            lexicon: vec![lexicon(0), lexicon(1)],
            texts,
            paired: true,
            points: series.points.clone(),
            layers: series.layers(),
            candidates: series.candidates,
            timed: true,
            from_random: series.from_random,
            files,
            // Those of which states are saved are the first.
            selection: RowSelection::First(series.pairs.len()),
            rows: Vec::new(),
            states: SpaceStates::Saved(Box::new(series)),
        }
    }

    /// Sentences that a model reads now, with its weights of a step of training if it is a run. Of two languages that are parallel,
    /// retrieval is measured.
    pub(crate) fn of_text(
        model: &mut PretrainedModel,
        (step, from_random): (Option<u64>, bool),
        sides: Vec<ParallelSide>,
        paired: bool,
        (files, selection, rows): (Vec<(String, String)>, RowSelection, Vec<usize>),
        device: &Device,
    ) -> ApiResult<Self> {
        let numbers: Vec<usize> = (0..=model.encoder.config().layers).collect();
        let pair: Vec<&str> = sides.iter().map(|side| side.language.as_str()).collect();
        let mut space = Self {
            kind: PointKind::Sentences,
            pair: pair.join("-"),
            languages: sides.iter().map(|side| side.language.clone()).collect(),
            texts: Vec::new(),
            lengths: Vec::new(),
            lexicon: files.iter().map(|file| lexicon_of_file(file).unwrap_or_default()).collect(),
            paired,
            points: Vec::new(),
            layers: numbers.len(),
            candidates: 0,
            timed: step.is_some(),
            from_random,
            files,
            selection,
            rows,
            states: SpaceStates::Encoded(Vec::new()),
        };
        let step = step.unwrap_or(0);
        let mut point = ProbePoint { step, raw: vec![], centered: vec![], language_share: vec![] };
        let encoded: Vec<Vec<Matrix>> = match <[ParallelSide; 2]>::try_from(sides) {
            Ok(sides) if paired => {
                let models = std::slice::from_mut(model);
                let encoded =
                    device.run(|| encode_pairs(models, &sides, [&numbers, &numbers], |_| {}))?;
                let [a, b] = &encoded.stacks;
                let keys = [0, 1].map(|side: usize| &encoded.sides[side].lines);
                let pairs = RowPairs::of_keys(keys[0], keys[1]);
                let rows = TranslatedRows { source: a, target: b, pairs: &pairs };
                let result = retrieve(rows, None, &by_cosine(device, 0))?.result;
                point.raw = result.layers.iter().map(|layer| layer.raw.mean).collect();
                point.centered = result.layers.iter().map(|layer| layer.centered.mean).collect();
                space.candidates = result.candidates[0];
                let all =
                    |stack: &Stack| (0..numbers.len()).map(|layer| stack.whole(layer)).collect();
                let matrices: Result<Vec<Vec<Matrix>>, _> =
                    encoded.stacks.iter().map(all).collect();
                let lengths = |of: &Vec<u32>| of.iter().map(|&length| length as usize).collect();
                space.lengths = encoded.lengths.iter().map(lengths).collect();
                space.texts = encoded.sides.into_iter().map(|side| side.lines).collect();
                matrices?
            }
            sides => {
                let sides = sides.map_or_else(|sides| sides, Vec::from);
                let mut matrices = Vec::new();
                for side in sides {
                    matrices.push(device.run(|| mean_vectors(model, &side, &numbers))?.0);
                    space.texts.push(side.lines);
                }
                matrices
            }
        };
        let share = |layer: usize| {
            let groups: Vec<&Matrix> = encoded.iter().map(|side| &side[layer]).collect();
            variance_between(&groups)
        };
        point.language_share = (0..numbers.len()).map(share).collect();
        space.points = vec![point];
        space.states = SpaceStates::Encoded(vec![(step, encoded)]);
        Ok(space)
    }

    /// With the same sentences after a later step.
    pub(crate) fn followed_by(mut self, later: Self) -> Self {
        self.points.extend(later.points);
        if let (SpaceStates::Encoded(own), SpaceStates::Encoded(more)) =
            (&mut self.states, later.states)
        {
            own.extend(more);
        }
        self
    }

    /// The words of a run's languages, as the weights of its snapshots and its own read them. Weights that cannot be read
    /// (a file that is half written) are left out.
    pub(crate) fn of_words(
        sentences: &Self,
        weights: Vec<(u64, String)>,
        device: &Device,
    ) -> ApiResult<Self> {
        let numbers: Vec<usize> = (0..sentences.layers).collect();
        let mut sides: Vec<ParallelSide> = Vec::new();
        let (mut encoded, mut points, mut failure) = (Vec::new(), Vec::new(), None);
        for (step, name) in weights {
            let mut model = match PretrainedModel::open(Path::new(&name), device) {
                Ok(model) => model,
                Err(error) => {
                    failure = Some(error);
                    continue;
                }
            };
            if sides.is_empty() {
                for language in &sentences.languages {
                    let words = whole_words(&model, language, WORDS)?;
                    sides.push(ParallelSide::new(language, language, words));
                }
            }
            let mut groups = Vec::new();
            for side in &sides {
                groups.push(device.run(|| mean_vectors(&mut model, side, &numbers))?.0);
            }
            points.push(ProbePoint { step, raw: vec![], centered: vec![], language_share: vec![] });
            encoded.push((step, groups));
        }
        if encoded.is_empty() {
            return Err(failure.map_or_else(
                || ApiFailure::unknown("there are no weights of this run that could read words"),
                ApiFailure::from,
            ));
        }
        let texts: Vec<Vec<String>> = sides.into_iter().map(|side| side.lines).collect();
        Ok(Self {
            kind: PointKind::Words,
            pair: sentences.pair.clone(),
            languages: sentences.languages.clone(),
            lexicon: sentences.lexicon.clone(),
            texts,
            lengths: Vec::new(),
            paired: false,
            points,
            layers: sentences.layers,
            candidates: 0,
            timed: true,
            from_random: sentences.from_random,
            files: sentences.files.clone(),
            selection: RowSelection::All,
            rows: Vec::new(),
            states: SpaceStates::Encoded(encoded),
        })
    }

    /// The translation of a sentence in each language, or a word of the same meaning, where it is known.
    pub(crate) fn gold(&self, lang: &str, text: &str) -> Vec<Option<String>> {
        let own = self.languages.iter().position(|language| language == lang);
        let row = own.and_then(|own| self.texts[own].iter().position(|known| known == text));
        let other = |language: usize| -> Option<String> {
            let row = row?;
            if self.paired {
                return Some(self.texts[language][row].clone());
            }
            let meaning = self.lexicon.get(own?)?.get(text)?;
            let means = |other: &&String| self.lexicon[language].get(*other) == Some(meaning);
            self.texts[language].iter().find(means).cloned()
        };
        (0..self.languages.len()).map(other).collect()
    }

    /// Whether the files have more lines than are shown.
    pub(crate) fn is_partial(&self) -> bool {
        let most = self.selection.most();
        most.is_some_and(|most| self.rows.iter().any(|&rows| rows > most))
    }

    pub(crate) fn has_steps(&self) -> bool {
        self.timed
    }

    /// Whether these are sentences that were given, and not those of which a run saved states.
    pub(crate) fn is_given(&self) -> bool {
        !self.rows.is_empty()
    }

    pub(crate) fn steps(&self) -> Vec<u64> {
        self.points.iter().map(|point| point.step).collect()
    }

    /// The layer of the best raw retrieval in the end, and what training did to a layer.
    pub(crate) fn finding(&self, layer: Option<usize>) -> (usize, Option<String>) {
        let last = &self.points[self.points.len() - 1].raw;
        if last.is_empty() {
            return (self.layers / 2, None);
        }
        let told = self.points.len() > 1 || matches!(self.states, SpaceStates::Saved(_));
        let (best, title) =
            training_finding(&self.points, self.candidates, self.from_random, layer);
        (best, told.then_some(title))
    }

    pub(crate) fn items(&self) -> SpaceItems<'_> {
        let label = |code: &String| LanguageLabel {
            code: code.clone(),
            name: lab::draw::figure::language_name(code),
        };
        SpaceItems {
            languages: self.languages.iter().map(label).collect(),
            paired: self.paired,
            texts: &self.texts,
            lengths: &self.lengths,
            lexicon: &self.lexicon,
        }
    }

    /// The points of all steps on planes, each turned to fit the one before it. A step whose states cannot be read is left
    /// out.
    pub(crate) fn planes(
        &self,
        layer: usize,
        view: SpaceView,
        projection: Projection,
    ) -> ApiResult<PlaneSeries> {
        if layer >= self.layers {
            let last = self.layers - 1;
            return Err(ApiFailure::request(format!(
                "there is no layer {layer}, only 0 to {last}"
            )));
        }
        if view == SpaceView::Aligned && !self.paired {
            let message =
                "an alignment is learned from translations, and these are none of one another";
            return Err(ApiFailure::unknown(message));
        }
        if projection == Projection::Difference && self.languages.len() != 2 {
            return Err(ApiFailure::unknown("the difference of means is that of two languages"));
        }
        let mut planes: Vec<(u64, PlaneProjection)> = Vec::new();
        for step in self.steps() {
            let plane = match self.plane(step, layer, view, projection) {
                Ok(plane) => plane,
                Err(_) if self.points.len() > 1 => continue,
                Err(failure) => return Err(failure),
            };
            let plane = match (planes.last(), projection) {
                (None, _) => plane,
                (Some((_, before)), Projection::Principal) => plane.turned_to(before),
                (Some((_, before)), Projection::Difference) => upright(plane, before),
            };
            planes.push((step, plane));
        }
        let values = planes.iter().flat_map(|(_, plane)| plane.groups.iter().flatten().flatten());
        Ok(PlaneSeries {
            count: self.texts.iter().map(Vec::len).sum(),
            values: values.map(|&x| x as f32).collect(),
            steps: planes.iter().map(|(step, _)| *step).collect(),
            shares: planes.iter().map(|(_, plane)| plane.shares).collect(),
        })
    }

    /// For every point at every step, in place of its coordinates: the rank of its translation among the sentences shown, up to
    /// [`LAST_RANK`] (beyond it, one more), and of how many sentences of the other language it is the nearest.
    pub(crate) fn ranks(
        &self,
        layer: usize,
        space: RetrievalSpace,
        device: &Device,
    ) -> ApiResult<PlaneSeries> {
        let ([a, b], true) = (&self.texts[..], self.paired && layer < self.layers) else {
            return Err(ApiFailure::unknown("ranks are of translations of two languages"));
        };
        let pairs = RowPairs::of_keys(a, b);
        let search = by_cosine(device, LAST_RANK.min(a.len()));
        let (mut steps, mut values) = (Vec::new(), Vec::new());
        for step in self.steps() {
            let Ok(sides) = self.layer_states(step, layer) else { continue };
            let stack = |side| Stack::numbered("", vec![(layer, side)]);
            let stacks: Vec<Stack> = sides.into_iter().map(stack).collect();
            let rows = TranslatedRows { source: &stacks[0], target: &stacks[1], pairs: &pairs };
            let found = device.run(|| retrieve(rows, None, &search))?.kept;
            let mut measured = vec![[0.0; 2]; 2 * a.len()];
            for kept in found.iter().filter(|kept| kept.space() == space) {
                for (side, other) in [b, a].into_iter().enumerate() {
                    let nearest = kept.of_side(&pairs, side).0;
                    let most = nearest.len() / a.len();
                    for (row, nearest) in nearest.chunks(most).enumerate() {
                        let place = nearest.iter().position(|&id| other[id as usize] == other[row]);
                        measured[side * a.len() + row][0] = place.unwrap_or(LAST_RANK) as f32 + 1.0;
                        measured[(1 - side) * a.len() + nearest[0] as usize][1] += 1.0;
                    }
                }
            }
            steps.push(step);
            values.extend(measured.into_iter().flatten());
        }
        Ok(PlaneSeries { count: 2 * a.len(), shares: Vec::new(), steps, values })
    }

    /// The vectors of all languages at a step and a layer.
    fn layer_states(&self, step: u64, layer: usize) -> ApiResult<Vec<Matrix>> {
        Ok(match &self.states {
            SpaceStates::Saved(series) => {
                series.states(step)?.into_iter().map(|mut side| side.swap_remove(layer)).collect()
            }
            SpaceStates::Encoded(steps) => {
                let sides = steps.iter().filter(|(of, _)| *of == step).flat_map(|(_, sides)| sides);
                sides.map(|side| side[layer].clone()).collect()
            }
        })
    }

    fn plane(
        &self,
        step: u64,
        layer: usize,
        view: SpaceView,
        projection: Projection,
    ) -> ApiResult<PlaneProjection> {
        if let (SpaceStates::Saved(series), Projection::Principal) = (&self.states, projection) {
            return Ok(plane_at(series, step, layer, view)?);
        }
        let mut groups = self.layer_states(step, layer)?;
        if projection == Projection::Difference && self.lengths.len() == groups.len() {
            let lengths: Vec<&[usize]> = self.lengths.iter().map(Vec::as_slice).collect();
            remove_lengths(&mut groups, &lengths);
        }
        view.apply(&mut groups);
        let groups: Vec<&Matrix> = groups.iter().collect();
        Ok(match projection {
            Projection::Principal => principal_plane(&groups),
            Projection::Difference => mean_difference_plane([groups[0], groups[1]]),
        })
    }
}

/// The plane with its second axis mirrored, where that brings it closer to the one before: it has no direction of its own, the
/// first one has.
fn upright(mut plane: PlaneProjection, before: &PlaneProjection) -> PlaneProjection {
    let pairs = plane.groups.iter().flatten().zip(before.groups.iter().flatten());
    if pairs.map(|(a, b)| a[1] * b[1]).sum::<f64>() < 0.0 {
        plane.groups.iter_mut().flatten().for_each(|point| point[1] = -point[1]);
    }
    plane
}

/// A search of translations, of each of which so many of the nearest are kept.
pub(crate) fn by_cosine(device: &Device, keep: usize) -> RetrievalSearch {
    RetrievalSearch { measure: Measure::Cosine, steps: Vec::new(), device: device.clone(), keep }
}

/// What each word means, by lines and their glosses.
fn lexicon_of(lines: impl Iterator<Item = (String, String)>) -> BTreeMap<String, String> {
    let mut lexicon = BTreeMap::new();
    let fits =
        |(line, gloss): &(String, String)| line.split(' ').count() == gloss.split(' ').count();
    for (line, gloss) in lines.filter(fits) {
        let words = line.split(' ').map(str::to_owned);
        lexicon.extend(words.zip(gloss.split(' ').map(str::to_owned)));
    }
    lexicon
}

/// The same of a file beside which an invented world wrote `gloss.LANG.txt`.
fn lexicon_of_file((language, file): &(String, String)) -> Option<BTreeMap<String, String>> {
    let lines = |path: &Path| -> Option<Vec<String>> {
        let small = fs::metadata(path).ok()?.len() <= LONGEST_GLOSSES;
        let text = small.then(|| fs::read_to_string(path).ok())??;
        Some(text.lines().map(str::to_owned).collect())
    };
    let glosses = lines(&Path::new(file).with_file_name(format!("gloss.{language}.txt")))?;
    Some(lexicon_of(lines(Path::new(file))?.into_iter().zip(glosses)))
}

/// What changes when a run saves another step: names, sizes and times of its probes' files.
pub(crate) fn stamp(run: &Path) -> String {
    let folders = fs::read_dir(run.join("probes")).into_iter().flatten().flatten();
    let files =
        folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten());
    let mut all: Vec<String> = files
        .filter_map(|file| {
            let metadata = file.metadata().ok()?;
            let time = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
            Some(format!("{} {} {}", file.path().display(), metadata.len(), time.as_nanos()))
        })
        .collect();
    all.sort();
    blake3::hash(all.join("\n").as_bytes()).to_hex().to_string()
}
