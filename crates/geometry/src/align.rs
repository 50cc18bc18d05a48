//! Alignment of two spaces of vectors by an orthogonal map, from files to scores.
//!
//! [`align_words`] maps the word vectors of one language onto another's and looks up a dictionary;
//! [`align_layers`] learns a map for each layer of contextual vectors.

use std::path::{Path, PathBuf};

use arrays::Matrix;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use tensor::Device;
use terms::RowCounts;
use vectors::WordVectors;
use vectors::formats::{self, ReadOptions};

use crate::learn::{
    Induction, MapFit, MapStart, Round, UnsupervisedCheck, check_unsupervised, fit, identical,
};
use crate::lexicon::{
    CandidateAccuracy, InducedPair, Lexicon, LookupAccuracy, TrainingOverlap, induce,
};
use crate::map::Map;
use crate::normalize::{Step, describe, normalize};
use crate::predictions::{Prediction, RetrievalSpace};
use crate::search::{Measure, Scores, Watch};
use crate::{Error, Result};

/// Every so many rounds of unsupervised learning, it is said how far it is.
const ROUNDS_SHOWN: usize = 10;
/// A map that is further from orthogonal than this is remarked on.
const ORTHOGONAL: f64 = 1e-3;

/// What a map is first learned from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MapInit {
    /// A training dictionary.
    Dictionary,
    /// Words that are spelled alike in both languages.
    Identical,
    /// The similarity distributions of both spaces, without any dictionary (Artetxe et al. 2018).
    Unsupervised,
    /// No map is learned: the spaces are one already.
    None,
    /// A map that was learned before.
    Map,
}

terms::named!(MapInit {
    Dictionary => "dictionary",
    Identical => "identical",
    Unsupervised => "unsupervised",
    None => "none",
    Map => "map",
});

/// How word vectors are aligned and evaluated.
#[derive(Clone, Debug)]
pub struct AlignWordsConfig {
    /// The vectors to map.
    pub source: PathBuf,
    /// The vectors to map onto.
    pub target: Option<PathBuf>,
    /// The dictionary to learn from.
    pub dictionary: Option<PathBuf>,
    /// The dictionary to look up.
    pub test_dictionary: Option<PathBuf>,
    /// Whether both dictionaries have the words of the target side in their first column.
    pub reversed: bool,
    /// What the map is first learned from; the dictionary where there is one, else none.
    pub init: Option<MapInit>,
    /// A map to use, rather than learn one.
    pub map: Option<PathBuf>,
    /// Rounds of refinement from mutual nearest neighbours.
    pub refine: usize,
    /// The most frequent words of each side that take part in refinement and unsupervised learning.
    pub cutoff: usize,
    /// What is done to both sides first.
    pub normalize: Vec<Step>,
    /// Whether translations are looked up by CSLS, or by cosine.
    pub csls: bool,
    /// Neighbours of CSLS.
    pub neighbours: usize,
    /// The most frequent words of each side that are read.
    pub max_vocab: usize,
    /// Of the source words, only those that this file has too: vectors, or a word a line.
    pub source_words: Option<PathBuf>,
    /// The same of the target words.
    pub target_words: Option<PathBuf>,
    /// Leave vectors of zeros out, rather than refuse them.
    pub skip_zero_vectors: bool,
    /// Seed of the stochastic dropout in unsupervised learning.
    pub seed: u64,
    /// Of each word of the test dictionary, so many of the nearest are kept, to be looked through.
    pub keep: usize,
    /// Whether to induce a lexicon: the words of both sides that are each other's nearest.
    pub induce: bool,
}

/// What came of an alignment of words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AlignWordsResult {
    /// Lookup of the test dictionary among the whole target vocabulary.
    #[serde(flatten)]
    pub accuracy: Option<LookupAccuracy>,
    /// The share of the test dictionary's source words that have a pair.
    pub coverage: Option<f64>,
    /// Source words of the test dictionary, and how many of them have a pair.
    pub words: Option<[usize; 2]>,
    /// Pairs of the test dictionary, and how many of them have vectors on both sides.
    pub pairs: Option<[usize; 2]>,
    /// The share of the test dictionary's pairs that have vectors on both sides.
    pub pair_coverage: Option<f64>,
    /// Word retrieval among the dictionary's translations (Liu et al. 2020).
    pub candidates: Option<CandidateAccuracy>,
    /// The same over words that no translation equals, which shared strings do not answer; none where there
    /// is no such word.
    #[serde(default)]
    pub different: Option<DifferentAccuracy>,
    /// How much of the test dictionary the map was learned from; none where no dictionary was learned from.
    #[serde(default)]
    pub train_overlap: Option<TrainingOverlap>,
    /// Lookup of the test words that the map was not learned from, where it was learned from some but not from all.
    #[serde(default)]
    pub unseen: Option<LookupAccuracy>,
    /// Names every convention that a number depends on.
    pub signature: String,
    /// What the map was first learned from.
    pub init: MapInit,
    /// Pairs that the first map was learned from.
    pub train_pairs: Option<usize>,
    /// Pairs of the dictionary that it was learned from, with vectors or without.
    #[serde(default)]
    pub train_listed: Option<usize>,
    /// Rounds of self-learning.
    pub rounds: Vec<Round>,
    /// How sure a map is that was learned unsupervised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsupervised: Option<UnsupervisedCheck>,
    /// Words of the source side.
    pub source_words: usize,
    /// Words of the target side.
    pub target_words: Option<usize>,
    /// Dimension of both spaces.
    pub dim: usize,
}

/// The accuracy over test words none of whose translations equals the word, upper and lower case alike.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DifferentAccuracy {
    /// Pairs of these words that have vectors on both sides.
    pub pairs: usize,
    /// Lookup among the whole target vocabulary.
    #[serde(flatten)]
    pub accuracy: LookupAccuracy,
    /// Word retrieval among the dictionary's translations.
    pub candidates: CandidateAccuracy,
}

/// The words of one side, and their vectors after normalisation.
pub struct WordSpace {
    /// The words, with their vectors as read.
    pub words: WordVectors,
    /// words x dim, normalised.
    pub matrix: Matrix,
}

impl WordSpace {
    /// These words with other vectors, words x dim, written to a file of vectors.
    pub fn write(&self, path: &Path, matrix: &Matrix) -> Result<()> {
        let names = self.words.words().map(str::to_owned).collect();
        let vectors = WordVectors::new(names, matrix.cols(), matrix.values().to_vec())?;
        formats::write(path, &vectors, None)
    }
}

/// An alignment of words: its scores, and what can be saved of it.
pub struct WordAlignment {
    /// The scores.
    pub result: AlignWordsResult,
    /// The map.
    pub map: Map,
    /// The source side.
    pub source: WordSpace,
    /// The source side's vectors, mapped.
    pub mapped: Matrix,
    /// The target side.
    pub target: Option<WordSpace>,
    /// What was found for each word of the test dictionary, where it was to be kept.
    pub predictions: Vec<Prediction>,
    /// The induced lexicon, where one was asked for.
    pub induced: Vec<InducedPair>,
}

/// Is called with what is being done, and with remarks.
pub trait AlignObserver: Sync {
    /// Something that may take long begins.
    fn stage(&self, _name: &str) {}
    /// Something that the user should know.
    fn remark(&self, _text: &str) {}
}

/// An observer that does nothing.
pub struct Unobserved;

impl AlignObserver for Unobserved {}

/// Reads two spaces, learns the map of one onto the other, refines it, and looks up a dictionary.
pub fn align_words(
    config: &AlignWordsConfig,
    device: &Device,
    observer: &dyn AlignObserver,
    watch: Watch<'_>,
) -> Result<WordAlignment> {
    check_request(config)?;
    let [of_source, of_target] = [&config.source_words, &config.target_words];
    let options = SpaceOptions {
        max_vocab: config.max_vocab,
        skip_zero_vectors: config.skip_zero_vectors,
        normalize: &config.normalize,
    };
    let source = read_space(&config.source, of_source.as_deref(), &options, observer)?;
    let target = match &config.target {
        Some(path) => Some(read_space(path, of_target.as_deref(), &options, observer)?),
        None => None,
    };
    if let (Some(target), Some(path)) = (&target, &config.target) {
        check_dims((&config.source, source.matrix.cols()), (path, target.matrix.cols()))?;
    }
    let fewest = target.as_ref().map_or(usize::MAX, |target| target.words.len());
    let k = config.neighbours.min(fewest).min(source.words.len());
    let init = init(config);
    let mut result = AlignWordsResult {
        accuracy: None,
        coverage: None,
        words: None,
        pairs: None,
        pair_coverage: None,
        candidates: None,
        different: None,
        train_overlap: None,
        unseen: None,
        signature: signature(config, init, k),
        init,
        train_pairs: None,
        train_listed: None,
        rounds: Vec::new(),
        unsupervised: None,
        source_words: source.words.len(),
        target_words: target.as_ref().map(|target| target.words.len()),
        dim: source.matrix.cols(),
    };
    let (map, learned) = match &target {
        Some(target) if init != MapInit::Map => {
            learn(config, init, k, [&source, target], &mut result, device, observer)?
        }
        _ => (saved_map(config, source.matrix.cols(), observer)?, None),
    };
    let mapped = map.apply(&source.matrix);
    let (mut predictions, mut induced) = (Vec::new(), Vec::new());
    if let Some(target) =
        target.as_ref().filter(|_| config.test_dictionary.is_some() || config.induce)
    {
        let words = [&source.words, &target.words];
        let path = config.test_dictionary.as_deref();
        let read = |path| read_remarked(path, config.reversed, words, observer);
        let lexicon = path.map(read).transpose()?;
        let (x, y) = (mapped.clone(), target.matrix.clone());
        let scores = Scores::new(x, y, measure(config, k), device, watch);
        if config.induce {
            induced = induce(&scores, words, watch);
        }
        if let Some(lexicon) = lexicon {
            look_up(&lexicon, &scores, [&mapped, &target.matrix], device, &mut result);
            if let Some(learned) = learned {
                note_overlap(&lexicon, &learned, &scores, &mut result, observer);
            }
            if config.keep > 0 {
                predictions = lexicon.predictions(&scores, config.keep, space(init), words);
            }
        }
    }
    Ok(WordAlignment { result, map, source, mapped, target, predictions, induced })
}

fn space(init: MapInit) -> RetrievalSpace {
    if init == MapInit::None { RetrievalSpace::Raw } else { RetrievalSpace::Aligned }
}

/// Looks a dictionary up, among the whole target vocabulary and among its own translations.
fn look_up(
    lexicon: &Lexicon,
    scores: &Scores,
    [mapped, target]: [&Matrix; 2],
    device: &Device,
    result: &mut AlignWordsResult,
) {
    result.coverage = Some(lexicon.coverage());
    result.words = Some([lexicon.words, lexicon.queries().len()]);
    result.pairs = Some([lexicon.listed, lexicon.pairs.len()]);
    result.pair_coverage = Some(lexicon.pairs.len() as f64 / lexicon.listed.max(1) as f64);
    let [all, candidates] = lexicon.among_candidates(mapped, target, device);
    result.candidates = Some(all);
    let [all, accuracy] = lexicon.among_all(scores);
    result.accuracy = Some(all);
    let pairs = candidates.accuracy.queries;
    result.different = (pairs > 0).then_some(DifferentAccuracy { pairs, accuracy, candidates });
}

/// Counts the test words that the map was learned from, and looks up the others by themselves.
fn note_overlap(
    lexicon: &Lexicon,
    learned: &[(u32, u32)],
    scores: &Scores,
    result: &mut AlignWordsResult,
    observer: &dyn AlignObserver,
) {
    let learned = learned.iter().copied().collect();
    let overlap = lexicon.overlap(&learned);
    result.train_overlap = Some(overlap);
    let queries = lexicon.queries().len();
    if overlap.translations > 0 && result.init == MapInit::Dictionary {
        observer.remark(&format!(
            "warning: the map was learned from a translation of {} other test words, with other words",
            overlap.translations
        ));
    }
    if overlap.queries == 0 {
        return;
    }
    if overlap.queries < queries {
        result.unseen = Some(lexicon.unseen(&learned).among_all(scores)[0]);
    }
    // Words that are spelled alike are in a test dictionary by rights.
    if result.init == MapInit::Dictionary {
        observer.remark(&format!(
            "warning: the map was learned from {} of the {queries} test words ({} of {} pairs): what is found for them is how \
             well it fits, and no test; give dictionaries without a common source word",
            overlap.queries,
            overlap.pairs,
            lexicon.pairs.len()
        ));
    }
}

/// Reads a dictionary, and remarks on low coverage.
pub(crate) fn read_remarked(
    path: &Path,
    reversed: bool,
    [source, target]: [&WordVectors; 2],
    observer: &dyn AlignObserver,
) -> Result<Lexicon> {
    let lexicon = Lexicon::read(path, reversed, source, target)?;
    lexicon.remark(path).iter().for_each(|line| observer.remark(line));
    Ok(lexicon)
}

/// What can be refused before anything is read.
fn check_request(config: &AlignWordsConfig) -> Result<()> {
    if config.init == Some(MapInit::Dictionary) && config.dictionary.is_none() {
        return Err(Error::of_key("init", "init = dictionary needs a dictionary to learn from"));
    }
    if config.dictionary.is_some() && !matches!(config.init, None | Some(MapInit::Dictionary)) {
        let reason = "a dictionary to learn from is for init = dictionary; leave one of them out";
        return Err(Error::of_key("init", reason));
    }
    Ok(())
}

fn init(config: &AlignWordsConfig) -> MapInit {
    let otherwise = if config.dictionary.is_some() { MapInit::Dictionary } else { MapInit::None };
    let chosen = config.init.unwrap_or(otherwise);
    if config.map.is_some() { MapInit::Map } else { chosen }
}

pub(crate) struct SpaceOptions<'a> {
    pub(crate) max_vocab: usize,
    pub(crate) skip_zero_vectors: bool,
    pub(crate) normalize: &'a [Step],
}

pub(crate) fn read_space(
    path: &Path,
    common: Option<&Path>,
    config: &SpaceOptions<'_>,
    observer: &dyn AlignObserver,
) -> Result<WordSpace> {
    observer.stage(&format!("reading {}", path.display()));
    let options = ReadOptions { format: None, limit: Some(config.max_vocab) };
    let mut words = formats::read(path, options)?;
    if let Some(common) = common {
        words = keep_common(words, path, common)?;
    }
    let mut matrix = Matrix::from(&words);
    let zero = |row: &usize| matrix.row(*row).iter().all(|&x| x == 0.0);
    let zeros: Vec<usize> = (0..words.len()).filter(zero).collect();
    if config.skip_zero_vectors && !zeros.is_empty() {
        let (count, first) = (zeros.len(), words.word(zeros[0]));
        let path = path.display();
        observer
            .remark(&format!("{path}: {count} vectors of zeros left out, the first of `{first}`"));
        let kept: Vec<usize> =
            (0..words.len()).filter(|row| zeros.binary_search(row).is_err()).collect();
        words = select(&words, &kept)?;
        matrix = matrix.select(kept);
    }
    let name = |row: usize| format!("word {} (`{}`)", row + 1, words.word(row));
    matrix.check(&path.display().to_string(), name)?;
    normalize(&mut matrix, config.normalize);
    Ok(WordSpace { words, matrix })
}

fn select(words: &WordVectors, rows: &[usize]) -> Result<WordVectors> {
    let names = rows.iter().map(|&row| words.word(row).to_owned()).collect();
    let matrix = Matrix::from(words).select(rows.iter().copied());
    WordVectors::new(names, matrix.cols(), matrix.values().to_vec())
}

/// The words that another file has too: a file of vectors, or of a word a line. So can vectors of different
/// vocabularies be compared on a common one.
fn keep_common(words: WordVectors, path: &Path, common: &Path) -> Result<WordVectors> {
    let is_vectors = ["vec", "bin", "glove", "npy"].iter().any(|&ending| {
        let name = common.display().to_string();
        Path::new(text::plain_name(&name)).extension().is_some_and(|other| other == ending)
    });
    let known: FxHashSet<String> = if is_vectors {
        formats::read(common, ReadOptions::default())?.words().map(str::to_owned).collect()
    } else {
        let list = String::from_utf8_lossy(&text::read_whole(common)?).into_owned();
        list.lines().map(|line| line.trim().to_owned()).collect()
    };
    let rows: Vec<usize> =
        (0..words.len()).filter(|&row| known.contains(words.word(row))).collect();
    if rows.is_empty() {
        let reason = format!("has no word of {}", common.display());
        let remedy = "give words that are written alike, a word a line or as a file of vectors";
        return Err(Error::input(path.display(), reason, remedy));
    }
    select(&words, &rows)
}

/// Rows of two spaces that are translations.
type RowPairs = Vec<(u32, u32)>;

/// The map, and the pairs that it was first learned from, where there are some.
fn learn(
    config: &AlignWordsConfig,
    init: MapInit,
    k: usize,
    [source, target]: [&WordSpace; 2],
    result: &mut AlignWordsResult,
    device: &Device,
    observer: &dyn AlignObserver,
) -> Result<(Map, Option<RowPairs>)> {
    let dim = source.matrix.cols();
    let induction = Induction { cutoff: config.cutoff, k };
    let pairs = match init {
        MapInit::Dictionary | MapInit::Identical => {
            let (pairs, listed) = training_pairs(config, source, target, observer)?;
            result.train_listed = listed;
            Some(pairs)
        }
        _ => None,
    };
    if let Some(count) = pairs.as_ref().map(Vec::len) {
        result.train_pairs = Some(count);
        if count < dim {
            observer.remark(&format!(
                "warning: {count} pairs do not determine a map of {dim} dimensions; what they \
                 leave open is arbitrary"
            ));
        }
    }
    let start = match (init, &pairs) {
        (MapInit::Unsupervised, _) => {
            observer.stage("unsupervised self-learning");
            MapStart::Unsupervised { seed: config.seed }
        }
        (_, Some(pairs)) => MapStart::Pairs(pairs),
        _ => MapStart::Identity,
    };
    if config.refine > 0 && init != MapInit::Unsupervised {
        observer.stage("refining");
    }
    let mut count = 0_usize;
    let progress = |Round { pairs, cosine }: Round, refined: bool| {
        count += 1;
        if refined {
            observer.remark(&format!("refined from {pairs} pairs: mean cosine {cosine:.4}"));
        } else if count.is_multiple_of(ROUNDS_SHOWN) {
            observer.remark(&format!("round {count}: mean cosine {cosine:.4} of {pairs} pairs"));
        }
    };
    let (x, y) = (&source.matrix, &target.matrix);
    let MapFit { map, rounds } = fit(x, y, start, config.refine, induction, device, progress);
    result.rounds = rounds;
    if init == MapInit::Unsupervised {
        observer.stage("self-learning from random dictionaries, for comparison");
        let check = check_unsupervised(x, y, &map, k, config.seed, device);
        if check.failed {
            observer.remark(&format!(
                "warning: the unsupervised map has probably failed: its pairs have a mean cosine of {:.3}, and those of random                  dictionaries {:.3}; give a dictionary, start from identical words, or take vectors of more similar text",
                check.cosine, check.chance
            ));
        }
        result.unsupervised = Some(check);
    }
    Ok((map, pairs))
}

/// The pairs that a map is learned from and, of a dictionary, how many it lists.
fn training_pairs(
    config: &AlignWordsConfig,
    source: &WordSpace,
    target: &WordSpace,
    observer: &dyn AlignObserver,
) -> Result<(RowPairs, Option<usize>)> {
    if let Some(path) = &config.dictionary {
        let words = [&source.words, &target.words];
        let lexicon = read_remarked(path, config.reversed, words, observer)?;
        return Ok((lexicon.pairs, Some(lexicon.listed)));
    }
    let pairs = identical(&source.words, &target.words);
    match pairs.is_empty() {
        false => Ok((pairs, None)),
        true => Err(Error::of_key(
            "init",
            "no word is spelled alike in both languages; give a dictionary to learn from, or learn \
             with init = unsupervised",
        )),
    }
}

fn saved_map(config: &AlignWordsConfig, dim: usize, observer: &dyn AlignObserver) -> Result<Map> {
    let Some(path) = &config.map else { return Ok(Map::identity(dim)) };
    let map = Map::load(path)?;
    check_dims((path, map.dim()), (&config.source, dim))?;
    if map.distortion() > ORTHOGONAL {
        let (path, off) = (path.display(), map.distortion());
        observer.remark(&format!("warning: {path} is not orthogonal (off by {off:.3})"));
    }
    Ok(map)
}

pub(crate) fn check_dims((first, a): (&Path, usize), (second, b): (&Path, usize)) -> Result<()> {
    if a == b {
        return Ok(());
    }
    let (first, second) = (first.display(), second.display());
    let reason = format!("{first} has {a} dimensions, {second} has {b}");
    Err(Error::request(reason, "an orthogonal map needs the same of both"))
}

fn measure(config: &AlignWordsConfig, k: usize) -> Measure {
    if config.csls { Measure::Csls { k } } else { Measure::Cosine }
}

/// Names every convention that a number depends on.
fn signature(config: &AlignWordsConfig, init: MapInit, k: usize) -> String {
    let refined = match config.refine {
        0 => String::new(),
        rounds => format!("|refine:{rounds},mutual-csls,k={k},cutoff={}", config.cutoff),
    };
    let common = match config.source_words.is_some() || config.target_words.is_some() {
        true => ",common",
        false => "",
    };
    let reversed = if config.reversed { "|dictionaries:reversed" } else { "" };
    format!(
        "init:{}{reversed}|norm:{}{refined}|retrieval:{}|queries:unique-source|gold:any|oov:dropped|vocab:{}{common}|ties:lower-row|v{}",
        init.name(),
        describe(&config.normalize),
        measure(config, k).describe(),
        config.max_vocab,
        env!("CARGO_PKG_VERSION"),
    )
}

/// How well a layer's map fits the pairs that it was learned from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayerFit {
    /// The layer.
    pub layer: usize,
    /// Mean cosine of the pairs before the map.
    pub before: f64,
    /// And after.
    pub after: f64,
}

/// What came of an alignment of contextual vectors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AlignContextsResult {
    /// Where the maps were written.
    pub out: PathBuf,
    /// Links between words that the maps were learned from.
    pub links: usize,
    /// Pairs of sentences, and what became of them.
    #[serde(flatten)]
    pub counts: RowCounts,
    /// Dimension of every layer.
    pub dim: usize,
    /// How well each layer's map fits.
    pub layers: Vec<LayerFit>,
    /// Names every convention that a map depends on.
    pub signature: String,
}

/// Learns the map of every layer of one side onto the same layer of the other (pairs x dim each), and
/// how well it fits. Row i of one side belongs to row i of the other.
pub fn align_layers(
    source: Vec<Matrix>,
    target: Vec<Matrix>,
    steps: &[Step],
) -> Result<Vec<(Map, LayerFit)>> {
    let shape = |layers: &[Matrix]| (layers.len(), layers.first().map_or(0, Matrix::cols));
    if shape(&source) != shape(&target) {
        let reason = format!(
            "the models have {:?} and {:?} layers and dimensions; a map needs the same of both",
            shape(&source),
            shape(&target)
        );
        return Err(Error::usage(reason));
    }
    let learned = source.into_iter().zip(target).enumerate().map(|(layer, (mut x, mut y))| {
        normalize(&mut x, steps);
        normalize(&mut y, steps);
        let map = Map::procrustes(&x, &y);
        let (before, after) = (mean_cosine(&x, &y), mean_cosine(&map.apply(&x), &y));
        (map, LayerFit { layer, before, after })
    });
    Ok(learned.collect())
}

/// What maps of contextual vectors depend on.
pub fn contexts_signature(steps: &[Step], links: usize) -> String {
    format!("procrustes|norm:{}|words:mean-of-subwords|links:{links}", describe(steps))
}

/// The mean cosine of rows of the same number.
fn mean_cosine(a: &Matrix, b: &Matrix) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
    };
    let cosine = |(a, b): (&[f32], &[f32])| {
        dot(a, b) / (dot(a, a) * dot(b, b)).sqrt().max(f64::MIN_POSITIVE)
    };
    a.iter().zip(b.iter()).map(cosine).sum::<f64>() / a.rows() as f64
}
