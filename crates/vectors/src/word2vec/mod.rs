//! Word2Vec (Mikolov et al. 2013): skip-gram and CBOW with negative sampling, and skip-gram with
//! character n-grams as in fastText (Bojanowski et al. 2017).
//!
//! The constants are those of the original program. What differs: about a thousand dot products are
//! computed before their updates are made (see `columns`), and the sigmoid is computed rather than
//! looked up in a table. Sentences are read in the order of the text, as there: in another order, fewer
//! of a word's nearest neighbours agree. Given a seed, the bits are the same on any number of threads, each
//! of which owns some columns of all vectors.

mod kernel;
mod subwords;
mod team;
mod windows;

use serde::{Deserialize, Serialize};
use text::RandomStreams;

use self::subwords::NGramRows;
pub use self::subwords::NGrams;
use self::windows::Windows;
use crate::random::SplitMix64;
use crate::result::TrainedVectors;
use crate::sentences::IndexedSentences;
use crate::state::{self, StateFile, StateHeader};
use crate::table::WordVectors;
use crate::watch::{EpochLoss, TrainingObserver, TrainingProgress, watch};
use crate::{Error, Result};

/// What is predicted from what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Architecture {
    /// The word from each of its neighbours.
    SkipGram,
    /// The word from the mean of its neighbours.
    Cbow,
}

/// The configuration of Word2Vec.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Word2VecConfig {
    /// What is predicted from what.
    pub architecture: Architecture,
    /// Columns.
    pub dim: usize,
    /// The largest window; each window's own size is drawn from 1 to this.
    pub window: usize,
    /// Negative samples for each positive example.
    pub negative: usize,
    /// Passes over the text.
    pub epochs: usize,
    /// The initial learning rate; by default 0.025 for skip-gram and 0.05 for CBOW.
    pub lr: Option<f32>,
    /// The final learning rate.
    pub min_lr: f32,
    /// The relative frequency above which words are subsampled (the original's `-sample`); 0 for
    /// never. By default 1e-3, as there, but 0 for text of fewer than 10,000 types: the frequency
    /// was chosen for vocabularies of which it touches the few most frequent words, and in a small one
    /// most words are above it, so that most of the text would be discarded.
    pub subsample: Option<f64>,
    /// Negative samples are drawn by their count to this power.
    pub power: f64,
    /// Character n-grams, with skip-gram only.
    pub ngrams: Option<NGrams>,
    /// Words that are not in the text and get vectors of their n-grams.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    /// The random seed.
    pub seed: u64,
    /// How many threads; 0 takes every core.
    #[serde(skip)]
    pub threads: usize,
}

impl Default for Word2VecConfig {
    fn default() -> Self {
        Self {
            architecture: Architecture::SkipGram,
            dim: 100,
            window: 5,
            negative: 5,
            epochs: 5,
            lr: None,
            min_lr: 1e-4,
            subsample: None,
            power: 0.75,
            ngrams: None,
            also: Vec::new(),
            seed: 1,
            threads: 0,
        }
    }
}

/// With fewer types than these, no word is subsampled unless that is asked for.
const FEW_TYPES: usize = 10_000;

impl Word2VecConfig {
    /// The frequency above which words are subsampled in text of so many types.
    fn subsample_among(&self, types: usize) -> f64 {
        self.subsample.unwrap_or(if types < FEW_TYPES { 0.0 } else { 1e-3 })
    }

    fn initial_lr(&self) -> f32 {
        self.lr.unwrap_or(match self.architecture {
            Architecture::SkipGram => 0.025,
            Architecture::Cbow => 0.05,
        })
    }

    /// Refuses values that training cannot use.
    pub fn check(&self) -> Result<()> {
        let refuse = |key, reason: &str, remedy: &str| Err(Error::setting(key, reason, remedy));
        let finite = |value: f64| value.is_finite() && value >= 0.0;
        if self.dim == 0 || self.dim > 1 << 16 {
            return refuse("dim", "dim is a number from 1 to 65536", "100 to 300 are usual");
        }
        if self.window == 0 || self.window > 1000 {
            return refuse("window", "window is a number of words from 1 to 1000", "5 is usual");
        }
        if self.negative == 0 || self.negative > 1000 {
            let reason = "negative is a number of samples from 1 to 1000";
            return refuse("negative", reason, "5 is usual");
        }
        if self.epochs == 0 {
            return refuse("epochs", "epochs is at least 1", "5 are usual");
        }
        let lr = self.initial_lr();
        if !finite(lr.into()) || lr == 0.0 || !finite(self.min_lr.into()) {
            return refuse("lr", "lr, the learning rate, is above 0", "0.025 to 0.05 are usual");
        }
        if !finite(self.subsample.unwrap_or(0.0)) || !self.power.is_finite() {
            return refuse("subsample", "subsample is a share from 0 up", "0 keeps every word");
        }
        match self.ngrams {
            None if !self.also.is_empty() => {
                let reason = "words that are not in the text have vectors of their n-grams alone";
                refuse("ngrams", reason, "set ngrams, such as 3-6")
            }
            Some(_) if self.architecture == Architecture::Cbow => {
                refuse("ngrams", "character n-grams are for skip-gram", "leave one of the two out")
            }
            Some(NGrams { shortest, longest, buckets })
                if shortest == 0 || longest < shortest || buckets == 0 || longest > 100 =>
            {
                let reason =
                    "character n-grams have a length from 1 to 100 and at least one bucket";
                refuse("ngrams", reason, "give the shortest and then the longest")
            }
            _ => Ok(()),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Word2VecTables {
    dim: usize,
    /// Words and, after them, n-grams x dim.
    input: Vec<f32>,
    /// Words x dim.
    output: Vec<f32>,
}

impl Word2VecTables {
    /// Random input vectors, zero output vectors.
    fn new(words: usize, inputs: usize, config: &Word2VecConfig) -> Self {
        let dim = config.dim;
        let chance = RandomStreams::new(config.seed, "word2vec: first values");
        // fastText draws from twice the range of Word2Vec.
        let width = if config.ngrams.is_some() { 2.0 } else { 1.0 } / dim as f32;
        let mut input = vec![0.0; inputs * dim];
        for (row, values) in input.chunks_exact_mut(dim).enumerate() {
            let mut random = SplitMix64::new(&chance, row as u64);
            values.fill_with(|| random.centred() * width);
        }
        Self { dim, input, output: vec![0.0; words * dim] }
    }

    /// The vector of each word: its input row, or the mean of its rows. After them, words that are not
    /// in the text, if they share an n-gram with it.
    fn vectors(
        &self,
        words: &[String],
        subwords: Option<&NGramRows>,
        also: &[String],
    ) -> Result<WordVectors> {
        let Some(subwords) = subwords else {
            return WordVectors::new(
                words.to_vec(),
                self.dim,
                self.input[..words.len() * self.dim].to_vec(),
            );
        };
        let values = (0..words.len() as u32).flat_map(|word| self.mean(subwords.of(word)));
        let mut vectors = WordVectors::new(words.to_vec(), self.dim, values.collect())?;
        for word in also {
            let rows = subwords.of_other(word);
            if !rows.is_empty() && vectors.position(word).is_none() {
                let added = vectors.push(word.clone(), &self.mean(&rows));
                added.map_err(|reason| Error::request(reason, "give plain words"))?;
            }
        }
        Ok(vectors)
    }

    fn mean(&self, rows: &[u32]) -> Vec<f32> {
        let mut mean = vec![0.0; self.dim];
        for &row in rows {
            let row = &self.input[row as usize * self.dim..][..self.dim];
            mean.iter_mut().zip(row).for_each(|(value, &part)| *value += part);
        }
        mean.iter_mut().for_each(|value| *value /= rows.len() as f32);
        mean
    }
}

/// Trains vectors. Where `state` names a file, the state after each epoch is saved there, and a saved
/// state is resumed from; in the deterministic mode the result is the same to the bit. Returns nothing
/// where the observer asked to stop.
pub fn train(
    sentences: &IndexedSentences,
    config: &Word2VecConfig,
    state_file: Option<&StateFile>,
    observer: &mut dyn TrainingObserver,
) -> Result<Option<TrainedVectors>> {
    config.check()?;
    let subwords = config.ngrams.map(|ngrams| NGramRows::new(sentences.words(), ngrams));
    let windows = Windows::new(sentences, subwords.as_ref(), config);
    let rows = subwords.as_ref().map_or(sentences.words().len(), |subwords| subwords.total);
    let mut header = StateHeader::new("word2vec", config, sentences);
    let mut model = Word2VecTables::new(sentences.words().len(), rows, config);
    let lengths = [model.input.len(), model.output.len()];
    let warn = &mut |text: &str| observer.warn(text);
    if let Some((losses, [input, output])) = state::resume(state_file, &header, lengths, warn)? {
        (header.losses, model.input, model.output) = (losses, input, output);
    }
    let mut team = team::ColumnTeam::new(model, config.threads);
    for epoch in header.losses.len()..config.epochs {
        let all =
            TrainingProgress { epoch, epochs: config.epochs, done: 0, total: sentences.total() };
        let drawn = watch(observer, all, |meter| team.epoch(&windows, epoch, meter));
        let Some(LossSum { loss, examples }) = drawn else { return Ok(None) };
        if examples == 0 {
            let reason = format!("epoch {} had no word with another beside it", epoch + 1);
            let remedy = "give sentences of several words, a lower min_count, or subsample 0";
            return Err(Error::request(reason, remedy));
        }
        let loss = loss / examples as f64;
        if !loss.is_finite() {
            let reason = format!("the loss of epoch {} is not finite", epoch + 1);
            return Err(Error::setting("lr", reason, "lower lr, the learning rate"));
        }
        header.losses.push(loss);
        observer.epoch(&EpochLoss { number: epoch + 1, loss, examples });
        if let Some(file) = state_file.filter(|_| epoch + 1 < config.epochs) {
            let model = team.model();
            state::save(&file.path, &header, &[&model.input, &model.output])?;
        }
    }
    let vectors = team.model().vectors(sentences.words(), subwords.as_ref(), &config.also)?;
    Ok(Some(TrainedVectors { vectors, losses: header.losses }))
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct LossSum {
    loss: f64,
    examples: u64,
}

#[cfg(test)]
mod tests;
