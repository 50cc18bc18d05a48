//! What a run saves while it is trained, so that one can look back: at log-spaced updates the sentence
//! vectors of some parallel sentences at every layer, and a few snapshots of the weights.
//!
//! ```text
//! probes/A-B/pairs.tsv    the sentences of both languages, their numbers of tokens and, where there are any, glosses
//! probes/A-B/STEP.npz     states_A, states_B   layers x pairs x dim, f16: the mean of each sentence's tokens
//!                         means_A, means_B     layers x dim: the mean over all sentences of the probe
//!                         raw, centered        layers: retrieval accuracy (P@1, mean of both directions)
//!                         language_share       layers: the share of variance between the languages
//!                         sentences            how many sentences retrieval chooses from
//! snapshots/STEP.safetensors                   the weights, opened as RUN@STEP
//! ```
//!
//! Nothing here changes what is trained, and nothing depends on when a run was interrupted: a resumed run writes the
//! same files. In early training a step more matters, later only a factor, and nobody looks at more than a
//! dozen moments; so updates are spaced by their logarithm, at any scale.

use std::fs;
use std::path::{Path, PathBuf};

use arrays::Matrix;
use arrays::npy::{self, Array, Precision};
use files::At;
use geometry::projection::variance_between;
use models::SNAPSHOT_FOLDER;
use tensor::Params;

use super::PretrainError;
use super::config::PretrainConfig;
use super::evaluate::{Probe, ProbeMeasurement};

/// Pairs of sentences whose vectors are saved, at most.
pub(super) const SAVED_PAIRS: usize = 200;
/// The folder of a run that holds them.
const PROBE_FOLDER: &str = "probes";
const PAIRS_FILE: &str = "pairs.tsv";
/// Snapshots of the weights unless the configuration says how many, the bytes that all of them may take, and how few are of use.
const SNAPSHOTS: usize = 8;
const SNAPSHOT_BYTES: usize = 256 << 20;
const FEWEST_SNAPSHOTS: usize = 3;

/// Updates up to a thousand after which states are saved.
const EARLY: [u64; 9] = [0, 50, 100, 150, 200, 250, 300, 400, 500];
/// Of each power of ten after that, from hundreds on; 700 and its multiples by ten are left to 600 and 1000.
const DECADE: [u64; 6] = [100, 140, 200, 280, 400, 600];

/// Whether states are saved after an update: at 0, 50, 100, 150, 200, 250, 300, 400, 500, 700, 1000, 1400, 2000, 2800,
/// 4000, 6000, and so on by tens.
fn is_probe_step(step: u64) -> bool {
    if EARLY.contains(&step) || step == 700 {
        return true;
    }
    let mut unit = 10;
    while unit * DECADE[0] <= step {
        if DECADE.iter().any(|mark| mark * unit == step) {
            return true;
        }
        unit *= 10;
    }
    false
}

/// The updates after which a run with this goal saves snapshots: evenly spaced among those of the
/// states, the first and the last of them included.
fn snapshot_steps(goal: u64, count: usize) -> Vec<u64> {
    let mut steps: Vec<u64> = EARLY.into_iter().chain([700]).collect();
    let mut unit = 10;
    while unit * DECADE[0] <= goal {
        steps.extend(DECADE.iter().map(|mark| mark * unit));
        unit *= 10;
    }
    steps.retain(|&step| step < goal);
    steps.push(goal);
    if count >= steps.len() {
        return steps;
    }
    let last = steps.len() - 1;
    let chosen = |number: usize| match count {
        1 => last,
        // The later of two: more happens between 250 and 400 than before 100.
        count => (number * last).div_ceil(count - 1),
    };
    (0..count).map(|number| steps[chosen(number)]).collect()
}

pub(super) struct Trajectory {
    /// The folder of each probe; empty where nothing is saved.
    folders: Vec<PathBuf>,
    languages: Vec<[String; 2]>,
    snapshots: usize,
}

impl Trajectory {
    /// Writes the sentences, and knows from then on where states go.
    pub(super) fn begin(
        config: &PretrainConfig,
        run: &Path,
        probes: &[Probe],
        params: &Params,
    ) -> Result<Self, PretrainError> {
        if !config.trajectory {
            return Ok(Self { folders: Vec::new(), languages: Vec::new(), snapshots: 0 });
        }
        let fitting = SNAPSHOT_BYTES / (4 * params.count()).max(1);
        let fitting = if fitting < FEWEST_SNAPSHOTS { 0 } else { fitting.min(SNAPSHOTS) };
        let snapshots = config.snapshots.unwrap_or(fitting);
        if snapshots > 0 {
            let folder = run.join(SNAPSHOT_FOLDER);
            fs::create_dir_all(&folder).at(&folder, "make the folder")?;
        }
        let mut folders = Vec::new();
        for (probe, files) in probes.iter().zip(&config.probes) {
            let folder = run.join(PROBE_FOLDER).join(probe.languages.join("-"));
            fs::create_dir_all(&folder).at(&folder, "make the folder")?;
            let glosses = files.glosses.as_ref().map(read_glosses).transpose()?;
            files::write(&folder.join(PAIRS_FILE), pairs_table(probe, glosses.as_ref()))?;
            folders.push(folder);
        }
        let languages = probes.iter().map(|probe| probe.languages.clone()).collect();
        Ok(Self { folders, languages, snapshots })
    }

    /// Whether anything is saved after an update.
    pub(super) fn is_due(&self, config: &PretrainConfig, step: u64) -> bool {
        self.is_probe_due(config, step) || self.is_snapshot_due(config, step)
    }

    /// Whether states are saved after an update: also at the goal.
    pub(super) fn is_probe_due(&self, config: &PretrainConfig, step: u64) -> bool {
        !self.folders.is_empty() && (is_probe_step(step) || step == config.goal_at(step))
    }

    /// Whether the weights are saved after an update.
    pub(super) fn is_snapshot_due(&self, config: &PretrainConfig, step: u64) -> bool {
        self.snapshots > 0
            && (is_probe_step(step) || step == config.goal_at(step))
            && snapshot_steps(config.goal_at(step), self.snapshots).contains(&step)
    }

    /// Writes the states of every probe after an update.
    pub(super) fn save_states(
        &self,
        step: u64,
        measured: &[ProbeMeasurement],
    ) -> Result<(), PretrainError> {
        for ((folder, languages), measured) in
            self.folders.iter().zip(&self.languages).zip(measured)
        {
            write_states(&folder.join(format!("{step}.npz")), languages, measured)?;
        }
        Ok(())
    }
}

/// The glosses of both sides, a line each.
fn read_glosses(files: &[PathBuf; 2]) -> files::Result<[Vec<String>; 2]> {
    let read = |file: &PathBuf| -> files::Result<Vec<String>> {
        let text = fs::read_to_string(file).at(file, "read")?;
        Ok(text.lines().take(SAVED_PAIRS).map(str::to_owned).collect())
    };
    Ok([read(&files[0])?, read(&files[1])?])
}

/// The sentences whose states are saved, as a table with a header.
fn pairs_table(probe: &Probe, glosses: Option<&[Vec<String>; 2]>) -> String {
    let [a, b] = &probe.languages;
    let mut table = format!("{a}\t{b}\t{a} tokens\t{b} tokens");
    if glosses.is_some() {
        table += &format!("\t{a} gloss\t{b} gloss");
    }
    table.push('\n');
    let cell = |text: &str| text.replace(['\t', '\r', '\n'], " ");
    for row in 0..probe.sides[0].texts.len() {
        let mut cells: Vec<String> =
            probe.sides.iter().map(|side| cell(&side.texts[row])).collect();
        cells.extend(probe.sides.iter().map(|side| (side.sentences[row].len() - 2).to_string()));
        let gloss = |side: &Vec<String>| side.get(row).map_or(String::new(), |gloss| cell(gloss));
        cells.extend(glosses.into_iter().flatten().map(gloss));
        table += &(cells.join("\t") + "\n");
    }
    table
}

fn states_name(language: &str) -> String {
    format!("states_{language}")
}

fn means_name(language: &str) -> String {
    format!("means_{language}")
}

fn write_states(
    path: &Path,
    languages: &[String; 2],
    measured: &ProbeMeasurement,
) -> Result<(), PretrainError> {
    let vectors = &measured.vectors;
    let (layers, dim) = (vectors[0].len(), vectors[0][0].cols());
    let pairs = vectors[0][0].rows().min(SAVED_PAIRS);
    let states = |side: &Vec<Matrix>| Array {
        shape: vec![layers, pairs, dim],
        values: side
            .iter()
            .flat_map(|layer| layer.strip(0..pairs))
            .map(|&x| f64::from(x))
            .collect(),
    };
    let means = |side: &Vec<Matrix>| Array {
        shape: vec![layers, dim],
        values: side.iter().flat_map(column_means).collect(),
    };
    let by_layer = |values: Vec<f64>| Array { shape: vec![values.len()], values };
    let share = |(a, b)| variance_between(&[a, b]);
    let retrieval = &measured.retrieval;
    let mut arrays = Vec::new();
    for (side, language) in vectors.iter().zip(languages) {
        arrays.push((states_name(language), states(side), Precision::Half));
        arrays.push((means_name(language), means(side), Precision::Single));
    }
    for (name, values) in [
        ("raw", retrieval.raw.clone()),
        ("centered", retrieval.centered.clone()),
        ("language_share", vectors[0].iter().zip(&vectors[1]).map(share).collect()),
        ("sentences", vec![retrieval.sentences as f64]),
    ] {
        arrays.push((name.to_owned(), by_layer(values), Precision::Double));
    }
    let arrays: Vec<_> =
        arrays.iter().map(|(name, array, precision)| (name.as_str(), array, *precision)).collect();
    Ok(npy::write_archive(path, &arrays)?)
}

fn column_means(matrix: &Matrix) -> Vec<f64> {
    let mut sums = vec![0.0; matrix.cols()];
    for row in matrix.iter() {
        sums.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x));
    }
    sums.iter_mut().for_each(|sum| *sum /= matrix.rows().max(1) as f64);
    sums
}

/// A sentence and its translation, whose states are saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbePair {
    /// The text in each language.
    pub texts: [String; 2],
    /// How many tokens each has, special tokens not counted.
    pub tokens: [usize; 2],
    /// The meaning of each word, where the languages are invented.
    pub glosses: Option<[String; 2]>,
}

/// What was measured after an update, at each layer from the embeddings up.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbePoint {
    /// The update.
    pub step: u64,
    /// Retrieval accuracy (P@1, mean of both directions) of the raw vectors.
    pub raw: Vec<f64>,
    /// The same of the vectors minus their language's mean.
    pub centered: Vec<f64>,
    /// The share of the variance of all vectors that lies between the languages.
    pub language_share: Vec<f64>,
}

/// Is called with why a step's file cannot be read, and decides whether that ends the reading.
type OnDamage<'a> = &'a mut dyn FnMut(PretrainError) -> Result<(), PretrainError>;

/// What a run has saved of two languages while it was trained: measures at every step, and on demand the
/// sentence vectors of any step and layer.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeSeries {
    /// The two languages.
    pub languages: [String; 2],
    /// The sentences whose states are saved.
    pub pairs: Vec<ProbePair>,
    /// How many sentences retrieval chooses from; chance is one over it.
    pub candidates: usize,
    /// Whether the run began with random weights, so that step 0 is an untrained encoder.
    pub from_random: bool,
    /// In the order of training.
    pub points: Vec<ProbePoint>,
    folder: PathBuf,
}

impl ProbeSeries {
    /// Reads what a run has saved, a series for each pair of languages; none where it has saved nothing.
    ///
    /// # Errors
    /// Where a file is damaged, or does not belong to the others.
    pub fn read(run: &Path) -> Result<Vec<Self>, PretrainError> {
        Self::read_with(run, &mut Err)
    }

    /// The same without the steps whose files cannot be read, such as one that was cut off; also says why each cannot.
    ///
    /// # Errors
    /// Where the run's configuration or its sentences cannot be read.
    pub fn read_intact(run: &Path) -> Result<(Vec<Self>, Vec<PretrainError>), PretrainError> {
        let mut damaged = Vec::new();
        let series = Self::read_with(run, &mut |error| {
            damaged.push(error);
            Ok(())
        })?;
        Ok((series, damaged))
    }

    fn read_with(run: &Path, on_damage: OnDamage<'_>) -> Result<Vec<Self>, PretrainError> {
        let folder = run.join(PROBE_FOLDER);
        if !folder.is_dir() {
            return Ok(Vec::new());
        }
        let from_random = PretrainConfig::read(run)?.init.is_none();
        let entries = fs::read_dir(&folder).at(&folder, "read the folder")?;
        let mut folders = Vec::new();
        for entry in entries {
            let path = entry.at(&folder, "read the folder")?.path();
            if path.join(PAIRS_FILE).is_file() {
                folders.push(path);
            }
        }
        folders.sort();
        let series =
            folders.into_iter().map(|folder| Self::of_folder(folder, from_random, on_damage));
        let series: Result<Vec<_>, _> = series.collect();
        Ok(series?.into_iter().filter(|series| !series.points.is_empty()).collect())
    }

    fn of_folder(
        folder: PathBuf,
        from_random: bool,
        on_damage: OnDamage<'_>,
    ) -> Result<Self, PretrainError> {
        let (languages, pairs) = read_pairs(&folder.join(PAIRS_FILE))?;
        let mut steps = Vec::new();
        for entry in fs::read_dir(&folder).at(&folder, "read the folder")? {
            let name = entry.at(&folder, "read the folder")?.file_name();
            let step =
                name.to_str().and_then(|name| name.strip_suffix(".npz")?.parse::<u64>().ok());
            steps.extend(step);
        }
        steps.sort_unstable();
        let mut series =
            Self { languages, pairs, candidates: 0, from_random, points: Vec::new(), folder };
        for step in steps {
            match series.read_point(step) {
                Ok((candidates, point)) => {
                    series.candidates = candidates;
                    series.points.push(point);
                }
                Err(error) => on_damage(error)?,
            }
        }
        Ok(series)
    }

    fn read_point(&self, step: u64) -> Result<(usize, ProbePoint), PretrainError> {
        let path = self.file(step);
        let names = ["raw", "centered", "language_share", "sentences"];
        let found = npy::read_members::<f64>(&path, |name| names.contains(&name))?;
        let take = |wanted: &str| {
            let array = found.iter().find(|(name, _)| name == wanted);
            array.map(|(_, array)| array.values.clone()).ok_or_else(|| foreign(&path, wanted))
        };
        let point = ProbePoint {
            step,
            raw: take("raw")?,
            centered: take("centered")?,
            language_share: take("language_share")?,
        };
        let lengths = [point.raw.len(), point.centered.len(), point.language_share.len()];
        let layers = self.points.first().map_or(lengths[0], |first| first.raw.len());
        if layers == 0 || lengths.iter().any(|&length| length != layers) {
            return Err(foreign(&path, "raw"));
        }
        Ok((take("sentences")?.first().map_or(0, |&sentences| sentences as usize), point))
    }

    fn file(&self, step: u64) -> PathBuf {
        self.folder.join(format!("{step}.npz"))
    }

    /// Layers, the embeddings included.
    pub fn layers(&self) -> usize {
        self.points[0].raw.len()
    }

    /// The vectors of the saved sentences after an update, at every layer: for each language, pairs x dim.
    ///
    /// # Errors
    /// Where nothing was saved after it, or the file is damaged.
    pub fn states(&self, step: u64) -> Result<[Vec<Matrix>; 2], PretrainError> {
        let path = self.file(step);
        let [a, b] = &self.languages;
        Ok([self.side(&path, a)?, self.side(&path, b)?])
    }

    fn side(&self, path: &Path, language: &str) -> Result<Vec<Matrix>, PretrainError> {
        let wanted = states_name(language);
        let found = npy::read_members::<f32>(path, |name| name == wanted)?;
        let (_, array) = found.into_iter().next().ok_or_else(|| foreign(path, &wanted))?;
        let &[layers, pairs, dim] = array.shape.as_slice() else {
            return Err(foreign(path, &wanted));
        };
        if layers != self.layers() || pairs != self.pairs.len() || dim == 0 {
            return Err(foreign(path, &wanted));
        }
        let array = array.finite(path)?;
        let layer = |values: &[f32]| Matrix::new(pairs, dim, values.to_vec());
        Ok(array.values.chunks_exact(pairs * dim).map(layer).collect())
    }

    /// The number of tokens of each saved sentence, by language.
    pub fn lengths(&self) -> [Vec<usize>; 2] {
        [0, 1].map(|side| self.pairs.iter().map(|pair| pair.tokens[side]).collect())
    }
}

/// The languages and the sentences of a table of pairs.
fn read_pairs(path: &Path) -> Result<([String; 2], Vec<ProbePair>), PretrainError> {
    let text = fs::read_to_string(path).at(path, "read")?;
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split('\t').collect();
    let [a, b, ..] = header[..] else { return Err(foreign(path, "pairs")) };
    let pair = |(line, number): (&str, usize)| {
        let cells: Vec<&str> = line.split('\t').collect();
        let place = || foreign(path, &format!("line {number}"));
        let [a, b, tokens_a, tokens_b, ref glosses @ ..] = cells[..] else { return Err(place()) };
        let tokens = |cell: &str| cell.parse().map_err(|_| place());
        let glosses = match *glosses {
            [] => None,
            [a, b] => Some([a.to_owned(), b.to_owned()]),
            _ => return Err(place()),
        };
        let texts = [a.to_owned(), b.to_owned()];
        Ok(ProbePair { texts, tokens: [tokens(tokens_a)?, tokens(tokens_b)?], glosses })
    };
    let pairs: Result<Vec<_>, _> = lines.zip(2..).map(pair).collect();
    Ok(([a.to_owned(), b.to_owned()], pairs?))
}

/// A file that is not one of these.
fn foreign(path: &Path, what: &str) -> PretrainError {
    let reason = format!("{what} is missing or does not fit the run's other files");
    terms::Error::file(path, reason, "train the run anew").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_are_spaced_by_their_logarithm() {
        let steps: Vec<u64> = (0..=70_000).filter(|&step| is_probe_step(step)).collect();
        let expected = [
            0, 50, 100, 150, 200, 250, 300, 400, 500, 700, 1000, 1400, 2000, 2800, 4000, 6000,
            10_000, 14_000, 20_000, 28_000, 40_000, 60_000,
        ];
        assert_eq!(steps, expected);
    }

    #[test]
    fn snapshots_are_as_many_as_asked_for_and_reach_from_end_to_end() {
        assert_eq!(snapshot_steps(6000, 8), [0, 150, 250, 400, 700, 1400, 2800, 6000]);
        assert_eq!(snapshot_steps(40, 8), [0, 40]);
        assert_eq!(snapshot_steps(0, 8), [0]);
        assert_eq!(snapshot_steps(6000, 1), [6000]);
        for goal in [1, 60, 650, 8000, 417_000] {
            for count in 1..30 {
                let steps = snapshot_steps(goal, count);
                assert!(steps.len() <= count, "{goal} {count}: {steps:?}");
                assert!(
                    steps.windows(2).all(|pair| pair[0] < pair[1]),
                    "{goal} {count}: {steps:?}"
                );
                assert_eq!(steps.last(), Some(&goal));
                assert!(steps.iter().all(|&step| is_probe_step(step) || step == goal));
            }
        }
    }

    /// What is written is read again: numbers as f16 keeps them, texts without tabs.
    #[test]
    fn a_series_comes_back_from_its_files() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("a-b");
        fs::create_dir(&folder).unwrap();
        let table = "a\tb\ta tokens\tb tokens\ta gloss\tb gloss\nx y\tz\t2\t1\tcat sees\tdog\nu\tv\t1\t1\tno\tyes\n";
        fs::write(folder.join(PAIRS_FILE), table).unwrap();
        let languages = ["a".to_owned(), "b".to_owned()];
        let measured = |add: f32| {
            let side = |first: f32| {
                let layer = |l: f32| Matrix::new(2, 2, vec![first + l, 0.5, 1.0, add]);
                vec![layer(0.0), layer(1.0)]
            };
            let retrieval = crate::pretrain::ProbeRetrieval {
                languages: languages.clone(),
                sentences: 2,
                raw: vec![0.25, 0.5],
                centered: vec![0.5, f64::from(add)],
            };
            ProbeMeasurement { retrieval, vectors: [side(1.0), side(3.0)] }
        };
        for (step, add) in [(50, 0.25), (0, 0.125)] {
            write_states(&folder.join(format!("{step}.npz")), &languages, &measured(add)).unwrap();
        }
        let series = ProbeSeries::of_folder(folder.clone(), true, &mut Err).unwrap();
        assert_eq!((series.layers(), series.candidates, &series.languages), (2, 2, &languages));
        assert_eq!(series.points.iter().map(|point| point.step).collect::<Vec<_>>(), [0, 50]);
        assert_eq!(series.points[1].centered, [0.5, 0.25]);
        assert_eq!(series.pairs[0].glosses, Some(["cat sees".to_owned(), "dog".to_owned()]));
        assert_eq!(series.lengths(), [[2, 1], [1, 1]]);
        let [a, b] = series.states(50).unwrap();
        assert_eq!((a[1].row(0), b[0].row(1)), (&[2.0, 0.5][..], &[1.0, 0.25][..]));
        // Means (1, .375) and (2, .375): between 1, within .0625 + 4 · .03125 and so on; from the vectors themselves.
        let share = variance_between(&[&a[0], &b[0]]);
        assert!((series.points[1].language_share[0] - share).abs() < 1e-9);
        assert!(series.states(51).is_err());
        // A file that was cut off ends the reading, or is left out.
        let whole = fs::read(folder.join("50.npz")).unwrap();
        fs::write(folder.join("50.npz"), &whole[..whole.len() / 2]).unwrap();
        assert!(ProbeSeries::of_folder(folder.clone(), true, &mut Err).is_err());
        let mut left_out = 0;
        let mut leave_out = |_| {
            left_out += 1;
            Ok(())
        };
        let intact = ProbeSeries::of_folder(folder.clone(), true, &mut leave_out).unwrap();
        assert_eq!((intact.points.len(), intact.points[0].step, left_out), (1, 0, 1));
        fs::write(folder.join(PAIRS_FILE), "a\tb\nonly\ttwo\n").unwrap();
        let error = ProbeSeries::of_folder(folder, true, &mut Err).unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
    }
}
