//! GloVe: vectors whose dot products are the logarithms of how often words stand near each other.
//!
//! Counting, weighting and AdaGrad are the original's, with its constants; the rate stands within the
//! sums of squares there, and so it does here, since every published recipe is tuned to that. What is
//! mended: the biases learn at the same rate as the vectors (the original leaves the rate out since
//! 2019, which [`GloveConfig::compat`] does too), an update is made whole or not at all (the original adds
//! to the sums of squares even where it skips the step), and a cost that is no number stops the run
//! (the original prints it and goes on). Pairs come in another order in every epoch.
//!
//! Given a seed, the bits are the same on any number of threads (see `columns`).

mod buckets;
mod count;
mod kernel;
mod team;

use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use text::RandomStreams;

use self::buckets::{Buckets, PairRecord};
use crate::random::SplitMix64;
use crate::sentences::IndexedSentences;
use crate::state::{self, StateFile};
use crate::table::WordVectors;
use crate::watch::{EpochLoss, TrainingObserver, TrainingProgress, watch, watch_counting};
use crate::{Error, Result};

/// How vectors are learned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GloveConfig {
    /// Columns.
    pub dim: usize,
    /// The farthest neighbour that counts.
    pub window: usize,
    /// Count neighbours on both sides, rather than on the left alone.
    pub symmetric: bool,
    /// Count every neighbour as one, rather than by the inverse of its distance.
    pub flat: bool,
    /// Times that all pairs are gone through.
    pub epochs: usize,
    /// The learning rate.
    pub rate: f32,
    /// Pairs that occur this often have full weight.
    pub full: f64,
    /// Rarer ones have the share to this power.
    pub power: f64,
    /// No gradient of a value is larger than this.
    pub clip: f32,
    /// Do what the original does, faults and all: biases learn without a rate, and a last row
    /// `<unk>` is the mean of the 100 rarest words.
    pub compat: bool,
    /// Decides everything that is left to chance.
    pub seed: u64,
    /// Bytes of memory for counting; what does not fit goes to disk.
    #[serde(skip)]
    pub memory: u64,
    /// How many threads; 0 takes every core.
    #[serde(skip)]
    pub threads: usize,
}

impl Default for GloveConfig {
    fn default() -> Self {
        Self {
            dim: 100,
            window: 15,
            symmetric: true,
            flat: false,
            epochs: 25,
            rate: 0.05,
            full: 100.0,
            power: 0.75,
            clip: 100.0,
            compat: false,
            seed: 1,
            memory: 1 << 30,
            threads: 0,
        }
    }
}

impl GloveConfig {
    /// Refuses what cannot be trained.
    pub fn check(&self) -> Result<()> {
        let refuse = |reason: &str, remedy: &str| Err(Error::request(reason, remedy));
        let positive = |value: f64| value.is_finite() && value > 0.0;
        if self.dim == 0 || self.dim > 1 << 16 {
            return refuse("vectors need a dimension from 1 to 65536", "give one as --dim");
        }
        if self.window == 0 || self.window > 1000 {
            let reason = "a window reaches from 1 to 1000 words, or there are no neighbours";
            return refuse(reason, "give its reach as --window");
        }
        if self.epochs == 0 {
            return refuse("nothing is learned in no epochs", "give at least one, as --epochs");
        }
        if !positive(self.rate.into()) || !positive(self.clip.into()) {
            return refuse("a learning rate is a number above zero", "give one as --rate");
        }
        if !positive(self.full) || !self.power.is_finite() {
            return refuse("--x-max is a number above zero", "the original has 100");
        }
        Ok(())
    }

    /// What is to be learned of a pair that occurs so many times.
    fn record(&self, word: u32, context: u32, times: f64) -> PairRecord {
        let weight = (times / self.full).powf(self.power).min(1.0) as f32;
        PairRecord { word, context, log: times.ln() as f32, weight }
    }
}

/// Everything that is learned, whole.
#[derive(Clone, Debug, PartialEq)]
struct GloveTables {
    dim: usize,
    /// Words x dim, and so the three after it.
    word: Vec<f32>,
    context: Vec<f32>,
    word_squares: Vec<f32>,
    context_squares: Vec<f32>,
    /// A word's bias as word, as context, and the sums of squares of both.
    biases: Vec<[f32; 4]>,
}

impl GloveTables {
    /// Small random vectors and biases, sums of squares one.
    fn new(words: usize, config: &GloveConfig) -> Self {
        let dim = config.dim;
        let drawn = |purpose: &str, row: usize| {
            let mut random = SplitMix64::new(&RandomStreams::new(config.seed, purpose), row as u64);
            std::iter::repeat_with(move || random.centred() / dim as f32)
        };
        let table = |purpose| (0..words).flat_map(|row| drawn(purpose, row).take(dim)).collect();
        let bias = |row| {
            let mut drawn = drawn("glove: biases", row);
            let mut next = || drawn.next().expect("draws without end");
            [next(), next(), 1.0, 1.0]
        };
        Self {
            dim,
            word: table("glove: words"),
            context: table("glove: contexts"),
            word_squares: vec![1.0; words * dim],
            context_squares: vec![1.0; words * dim],
            biases: (0..words).map(bias).collect(),
        }
    }

    /// The sum of each word's two vectors.
    fn vectors(&self, words: &[String], compat: bool) -> Result<WordVectors> {
        let mut words = words.to_vec();
        let pairs = self.word.iter().zip(&self.context);
        let mut values: Vec<f32> = pairs.map(|(word, context)| word + context).collect();
        if compat && !words.iter().any(|word| word == UNKNOWN) {
            let rarest = &values[words.len().saturating_sub(100) * self.dim..];
            let mut mean = vec![0.0; self.dim];
            let rows = rarest.len() / self.dim;
            for row in rarest.chunks_exact(self.dim) {
                mean.iter_mut().zip(row).for_each(|(mean, value)| *mean += value / rows as f32);
            }
            values.extend(mean);
            words.push(UNKNOWN.to_owned());
        }
        WordVectors::new(words, self.dim, values)
    }
}

const UNKNOWN: &str = "<unk>";

/// What a state is kept with; only a run that agrees in all may go on from it.
#[derive(Debug, Serialize, Deserialize)]
struct StateHeader {
    kind: String,
    config: GloveConfig,
    sentences: String,
    losses: Vec<f64>,
}

/// What came out.
#[derive(Debug)]
pub struct TrainedVectors {
    /// The vectors, words by falling frequency.
    pub vectors: WordVectors,
    /// The loss of each epoch: the mean over pairs of half the weighted squared error, as met.
    pub losses: Vec<f64>,
    /// Different pairs of words.
    pub pairs: u64,
}

/// Learns vectors. Where `keep` names a file, the state after each epoch is kept there, and a state
/// that lies there already is gone on from, to the same bits. Gives nothing where the observer asked
/// to stop. Counts go through files in the system's folder for temporary ones.
pub fn train(
    sentences: &IndexedSentences,
    config: &GloveConfig,
    keep: Option<&StateFile>,
    observer: &mut dyn TrainingObserver,
) -> Result<Option<TrainedVectors>> {
    config.check()?;
    let mut header = StateHeader {
        kind: "glove".to_owned(),
        config: config.clone(),
        sentences: sentences.fingerprint(),
        losses: Vec::new(),
    };
    let mut model = GloveTables::new(sentences.words().len(), config);
    if let Some((kept, of_state)) = keep.map(|keep| load(keep, &header)).transpose()?.flatten() {
        (header.losses, model) = (kept.losses, of_state);
    }
    let folder = tempfile::tempdir().map_err(|source| no_room(std::env::temp_dir(), source))?;
    let Some(buckets) = pairs(sentences, config, &folder, observer)? else { return Ok(None) };
    let pairs: u64 = buckets.sizes.iter().sum();
    if pairs == 0 {
        let reason = "no two words stand near each other: every sentence has one word";
        return Err(Error::request(reason, "give text with longer sentences"));
    }
    let mut team = team::GloveTeam::new(model, config, pairs);
    for epoch in header.losses.len()..config.epochs {
        let all = TrainingProgress { epoch, epochs: config.epochs, done: 0, total: pairs };
        let Some(loss) = watch(observer, all, |meter| team.epoch(&buckets, epoch, meter))? else {
            return Ok(None);
        };
        let loss = loss / pairs as f64;
        if !loss.is_finite() {
            let reason = format!("the loss of epoch {} is no number any more", epoch + 1);
            return Err(Error::request(reason, "ask for a smaller --rate"));
        }
        let untrained = buckets.untrained / pairs as f64;
        if loss > DIVERGED * untrained.max(0.1) {
            let reason = format!(
                "the loss of epoch {} is {loss:.1e}, and vectors of zeros would have {untrained:.1e}",
                epoch + 1
            );
            return Err(Error::request(reason, "ask for a smaller --rate"));
        }
        header.losses.push(loss);
        observer.epoch(&EpochLoss { number: epoch + 1, loss, examples: pairs });
        if let Some(keep) = keep.filter(|_| epoch + 1 < config.epochs) {
            save(keep, &header, &team.model())?;
        }
    }
    let vectors = team.model().vectors(sentences.words(), config.compat)?;
    Ok(Some(TrainedVectors { vectors, losses: header.losses, pairs }))
}

fn no_room(path: std::path::PathBuf, source: std::io::Error) -> files::Error {
    files::Error::Io { doing: "make a folder in", path, source }
}

/// A loss so many times that of vectors of zeros never comes back: where steps are too wide it is soon
/// millions of times that, and where they are not it is less from the first epoch on.
const DIVERGED: f64 = 10.0;

/// Pairs in a bucket, about: so many are shuffled within the second cache.
const BUCKET: u64 = 1 << 16;
/// Files open at once while pairs are thrown into buckets.
const MOST_BUCKETS: u64 = 400;

/// Counts pairs and throws them into buckets; nothing where it was stopped.
fn pairs(
    sentences: &IndexedSentences,
    config: &GloveConfig,
    folder: &TempDir,
    observer: &mut dyn TrainingObserver,
) -> Result<Option<Buckets>> {
    let total = sentences.tokens().len() as u64;
    let counted = watch_counting(observer, total, |meter| {
        count::count(sentences, config, folder.path(), meter)
    })?;
    let Some(runs) = counted else { return Ok(None) };
    // The number follows the text and not the memory, so that neither do the bits.
    let words = sentences.words().len() as u64;
    let most = (words * words).min(2 * config.window as u64 * sentences.total());
    let number = (most / (8 * BUCKET)).clamp(1, MOST_BUCKETS);
    let mut random = SplitMix64::new(&RandomStreams::new(config.seed, "glove: buckets"), 0);
    let choose = || random.below(number as u32) as usize;
    Ok(Some(Buckets::fill(runs, config, folder.path(), number as usize, choose)?))
}

fn save(keep: &StateFile, header: &StateHeader, model: &GloveTables) -> Result<()> {
    let biases = bytemuck::cast_slice(&model.biases);
    let GloveTables { word, context, word_squares, context_squares, .. } = model;
    state::save(&keep.path, header, &[word, context, word_squares, context_squares, biases])
}

/// The state to go on from, where one is there and agrees.
fn load(keep: &StateFile, wanted: &StateHeader) -> Result<Option<(StateHeader, GloveTables)>> {
    let Some((kept, arrays)) = state::load::<StateHeader>(keep)? else { return Ok(None) };
    state::check_agrees(&keep.path, "configuration", &kept.config, &wanted.config)?;
    state::check_agrees(&keep.path, "text", &kept.sentences, &wanted.sentences)?;
    let arrays: [Vec<f32>; 5] = arrays.try_into().map_err(|_| state::not_a_state(&keep.path))?;
    let [word, context, word_squares, context_squares, biases] = arrays;
    let biases = biases.as_chunks::<4>().0.to_vec();
    let dim = kept.config.dim;
    Ok(Some((kept, GloveTables { dim, word, context, word_squares, context_squares, biases })))
}

#[cfg(test)]
mod tests;
