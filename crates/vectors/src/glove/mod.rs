//! GloVe (Pennington et al. 2014): vectors whose dot products approximate logarithms of co-occurrence
//! counts, trained by AdaGrad (Duchi et al. 2011).
//!
//! Counting, weighting and AdaGrad are the original's, with its constants; as there, the learning rate
//! is inside the sums of squared gradients, since every published recipe is tuned to that. What differs:
//! the biases have the same learning rate as the vectors (the original omits it since 2019, which
//! [`GloveConfig::compat`] reproduces), an update is applied whole or not at all (the original adds to
//! the sums of squares even where it skips the step), and a non-finite loss stops the run (the original
//! prints it and continues). Pairs are shuffled anew in every epoch.
//!
//! Given a seed, the bits are the same on any number of threads (see `columns`).

mod buckets;
mod count;
mod kernel;
mod team;

use files::ScratchFolder;
use serde::{Deserialize, Serialize};
use text::RandomStreams;

use self::buckets::{Buckets, PairRecord};
use crate::random::SplitMix64;
use crate::result::TrainedVectors;
use crate::sentences::IndexedSentences;
use crate::state::{self, StateFile, StateHeader};
use crate::table::WordVectors;
use crate::watch::{EpochLoss, TrainingObserver, TrainingProgress, watch, watch_counting};
use crate::{Error, Result};

/// The configuration of GloVe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GloveConfig {
    /// Columns.
    pub dim: usize,
    /// The window size.
    pub window: usize,
    /// Count neighbours on both sides, rather than on the left alone.
    pub symmetric: bool,
    /// Count every neighbour as one, rather than by the inverse of its distance.
    pub flat: bool,
    /// Passes over all pairs.
    pub epochs: usize,
    /// The learning rate.
    pub lr: f32,
    /// The co-occurrence count from which on a pair has full weight.
    pub x_max: f64,
    /// The exponent of the weight of rarer pairs.
    pub alpha: f64,
    /// The clipping threshold of each gradient component.
    pub clip: f32,
    /// Reproduce the original since 2019: biases without a learning rate, and a last row `<unk>` that is
    /// the mean of the 100 rarest words.
    pub compat: bool,
    /// The random seed.
    pub seed: u64,
    /// Bytes of memory for counting; what does not fit is spilled to disk.
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
            lr: 0.05,
            x_max: 100.0,
            alpha: 0.75,
            clip: 100.0,
            compat: false,
            seed: 1,
            memory: 1 << 30,
            threads: 0,
        }
    }
}

impl GloveConfig {
    /// Refuses values that training cannot use.
    pub fn check(&self) -> Result<()> {
        let refuse = |key, reason: &str, remedy: &str| Err(Error::setting(key, reason, remedy));
        let positive = |value: f64| value.is_finite() && value > 0.0;
        if self.dim == 0 || self.dim > 1 << 16 {
            return refuse("dim", "dim is a number from 1 to 65536", "100 to 300 are usual");
        }
        if self.window == 0 || self.window > 1000 {
            return refuse("window", "window is a number of words from 1 to 1000", "15 is usual");
        }
        if self.epochs == 0 {
            return refuse("epochs", "epochs is at least 1", "25 are usual");
        }
        if !positive(self.lr.into()) || !positive(self.clip.into()) {
            return refuse("lr", "lr, the learning rate, is above 0", "0.05 is usual");
        }
        if !positive(self.x_max) || !self.alpha.is_finite() {
            return refuse("x_max", "x_max is a number above 0", "100 is usual");
        }
        Ok(())
    }

    /// The training record of a pair with this co-occurrence count.
    fn record(&self, word: u32, context: u32, times: f64) -> PairRecord {
        let weight = (times / self.x_max).powf(self.alpha).min(1.0) as f32;
        PairRecord { word, context, log: times.ln() as f32, weight }
    }
}

/// All parameters and AdaGrad's sums of squares, whole.
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
    /// Random vectors and biases, sums of squares 1.
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

const LOWER_LR: &str = "lower lr, the learning rate";
const UNKNOWN: &str = "<unk>";

/// Trains vectors. Where `state_file` is given, the state after each epoch is saved there, and a saved
/// state is resumed from, to the same bits. Returns nothing where the observer asked to stop. Counts are
/// spilled to the system's folder for temporary files.
pub fn train(
    sentences: &IndexedSentences,
    config: &GloveConfig,
    state_file: Option<&StateFile>,
    observer: &mut dyn TrainingObserver,
) -> Result<Option<TrainedVectors>> {
    config.check()?;
    let mut header = StateHeader::new("glove", config, sentences);
    let mut model = GloveTables::new(sentences.words().len(), config);
    let lengths = model.lengths();
    let warn = &mut |text: &str| observer.warn(text);
    if let Some((losses, arrays)) = state::resume(state_file, &header, lengths, warn)? {
        let [word, context, word_squares, context_squares, biases] = arrays;
        let biases = biases.as_chunks::<4>().0.to_vec();
        let dim = config.dim;
        model = GloveTables { dim, word, context, word_squares, context_squares, biases };
        header.losses = losses;
    }
    let folder = ScratchFolder::new()?;
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
            let reason = format!("the loss of epoch {} is not finite", epoch + 1);
            return Err(Error::setting("lr", reason, LOWER_LR));
        }
        let untrained = buckets.untrained / pairs as f64;
        if loss > DIVERGED * untrained.max(0.1) {
            let reason = format!(
                "the loss of epoch {} is {loss:.1e}, and that of zero vectors {untrained:.1e}",
                epoch + 1
            );
            return Err(Error::setting("lr", reason, LOWER_LR));
        }
        header.losses.push(loss);
        observer.epoch(&EpochLoss { number: epoch + 1, loss, examples: pairs });
        if let Some(file) = state_file.filter(|_| epoch + 1 < config.epochs) {
            save(file, &header, &team.model())?;
        }
    }
    let vectors = team.model().vectors(sentences.words(), config.compat)?;
    Ok(Some(TrainedVectors { vectors, losses: header.losses }))
}

/// A loss so many times that of zero vectors has diverged: with too high a learning rate it is soon
/// millions of times that, and otherwise it is lower from the first epoch on.
const DIVERGED: f64 = 10.0;

/// Pairs in a bucket, about: so many are shuffled within the L2 cache.
const BUCKET: u64 = 1 << 16;
/// Files open at once while pairs are distributed to buckets.
const MOST_BUCKETS: u64 = 400;

/// Counts pairs and distributes them to random buckets; nothing where it was stopped.
fn pairs(
    sentences: &IndexedSentences,
    config: &GloveConfig,
    folder: &ScratchFolder,
    observer: &mut dyn TrainingObserver,
) -> Result<Option<Buckets>> {
    let total = sentences.tokens().len() as u64;
    let counted = watch_counting(observer, total, |meter| {
        count::count(sentences, config, folder.path(), meter)
    })?;
    let Some(runs) = counted else { return Ok(None) };
    // The number depends on the text and not on the memory, so that the bits do not either.
    let words = sentences.words().len() as u64;
    let most = (words * words).min(2 * config.window as u64 * sentences.total());
    let number = (most / (8 * BUCKET)).clamp(1, MOST_BUCKETS);
    let mut random = SplitMix64::new(&RandomStreams::new(config.seed, "glove: buckets"), 0);
    let choose = || random.below(number as u32) as usize;
    Ok(Some(Buckets::fill(runs, config, folder.path(), number as usize, choose)?))
}

impl GloveTables {
    /// The lengths of its arrays as they are saved.
    fn lengths(&self) -> [usize; 5] {
        let Self { word, context, word_squares, context_squares, biases, .. } = self;
        let biases = biases.as_flattened().len();
        [word.len(), context.len(), word_squares.len(), context_squares.len(), biases]
    }
}

fn save(file: &StateFile, header: &StateHeader<GloveConfig>, model: &GloveTables) -> Result<()> {
    let biases = bytemuck::cast_slice(&model.biases);
    let GloveTables { word, context, word_squares, context_squares, .. } = model;
    state::save(&file.path, header, &[word, context, word_squares, context_squares, biases])
}

#[cfg(test)]
mod tests;
