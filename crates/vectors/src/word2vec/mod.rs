//! Word2Vec: skip-gram and CBOW with negative sampling, and skip-gram with character n-grams as
//! fastText has it.
//!
//! The constants are those of the original program. What differs: a batch of about a thousand dot
//! products is computed before its updates are made (see `columns`), and the sigmoid is exact
//! rather than looked up. Sentences come in the order of the text, as they do there: in another
//! order, fewer of a word's nearest neighbours are the same. Given a seed, [`UpdateMode::Deterministic`] gives the same bits on any number of threads; [`UpdateMode::Hogwild`] lets
//! threads overwrite each other.

mod hogwild;
mod kernel;
mod subwords;
mod team;
mod windows;

use serde::{Deserialize, Serialize};
use text::RandomStreams;

pub use self::subwords::NGrams;
use self::subwords::Subwords;
use self::windows::Windows;
use crate::random::SplitMix64;
use crate::sentences::IndexedSentences;
use crate::state::{self, StateFile};
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

/// How threads work together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UpdateMode {
    /// Each has some columns of all vectors: the same bits on any number of threads.
    Deterministic,
    /// Each has some sentences, and all write to the same vectors without waiting: no two runs on
    /// several threads are alike.
    Hogwild,
}

/// How vectors are learned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Word2VecConfig {
    /// What is predicted from what.
    pub architecture: Architecture,
    /// Columns.
    pub dim: usize,
    /// The farthest neighbour; each window's own reach is drawn from 1 to this.
    pub window: usize,
    /// False words drawn for each true one.
    pub negative: usize,
    /// Times the text is gone through.
    pub epochs: usize,
    /// The learning rate at the start; 0.025 for skip-gram and 0.05 for CBOW if not said.
    pub rate: Option<f32>,
    /// The learning rate at the end.
    pub last_rate: f32,
    /// Words of a greater share than this are left out now and then; 0 for never.
    pub sample: f64,
    /// False words are drawn by their count to this power.
    pub power: f64,
    /// Character n-grams, with skip-gram only.
    pub ngrams: Option<NGrams>,
    /// Words that the text lacks, to have vectors of their n-grams.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    /// Decides everything that is left to chance.
    pub seed: u64,
    /// How threads work together.
    pub mode: UpdateMode,
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
            rate: None,
            last_rate: 1e-4,
            sample: 1e-3,
            power: 0.75,
            ngrams: None,
            also: Vec::new(),
            seed: 1,
            mode: UpdateMode::Deterministic,
            threads: 0,
        }
    }
}

impl Word2VecConfig {
    fn rate(&self) -> f32 {
        self.rate.unwrap_or(match self.architecture {
            Architecture::SkipGram => 0.025,
            Architecture::Cbow => 0.05,
        })
    }

    /// Refuses what cannot be trained.
    pub fn check(&self) -> Result<()> {
        let refuse = |reason: &str, remedy: &str| Err(Error::request(reason, remedy));
        let finite = |value: f64| value.is_finite() && value >= 0.0;
        if self.dim == 0 || self.dim > 1 << 16 {
            return refuse("vectors need a dimension from 1 to 65536", "give one as --dim");
        }
        if self.window == 0 || self.window > 1000 {
            let reason = "a window reaches from 1 to 1000 words, or there are no neighbours";
            return refuse(reason, "give its reach as --window");
        }
        if self.negative == 0 || self.negative > 1000 {
            let reason = "without false words every word is always true";
            return refuse(reason, "draw from 1 to 1000 of them, as --negative");
        }
        if self.epochs == 0 {
            return refuse("nothing is learned in no epochs", "give at least one, as --epochs");
        }
        if !finite(self.rate().into()) || self.rate() == 0.0 || !finite(self.last_rate.into()) {
            return refuse("a learning rate is a number above zero", "give one as --rate");
        }
        if !finite(self.sample) || !self.power.is_finite() {
            return refuse("--subsample is a share from 0 up", "0 keeps every word");
        }
        match self.ngrams {
            None if !self.also.is_empty() => {
                let reason = "words that the text lacks have vectors of their n-grams alone";
                refuse(reason, "ask for n-grams, as --ngrams 3-6")
            }
            Some(_) if self.architecture == Architecture::Cbow => {
                refuse("character n-grams go with skip-gram", "leave one of the two out")
            }
            Some(NGrams { shortest, longest, buckets })
                if shortest == 0 || longest < shortest || buckets == 0 || longest > 100 =>
            {
                let reason =
                    "character n-grams have a length from 1 to 100 and at least one bucket";
                refuse(reason, "give the shortest and then the longest")
            }
            _ => Ok(()),
        }
    }
}

/// Both tables of vectors, whole.
#[derive(Clone, Debug, PartialEq)]
struct Word2VecTables {
    dim: usize,
    /// Words and, after them, n-grams x dim.
    input: Vec<f32>,
    /// Words x dim.
    output: Vec<f32>,
}

impl Word2VecTables {
    /// Inputs small and random, outputs zero.
    fn new(words: usize, inputs: usize, config: &Word2VecConfig) -> Self {
        let dim = config.dim;
        let chance = RandomStreams::new(config.seed, "word2vec: first values");
        // fastText starts from twice the width of Word2Vec.
        let width = if config.ngrams.is_some() { 2.0 } else { 1.0 } / dim as f32;
        let mut input = vec![0.0; inputs * dim];
        for (row, values) in input.chunks_exact_mut(dim).enumerate() {
            let mut random = SplitMix64::new(&chance, row as u64);
            values.fill_with(|| random.centred() * width);
        }
        Self { dim, input, output: vec![0.0; words * dim] }
    }

    /// The vector of each word: its input row, or the mean of all its rows. After them, words that
    /// the text lacks, as far as they have an n-gram in common with it.
    fn vectors(
        &self,
        words: &[String],
        subwords: Option<&Subwords>,
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

    /// The mean of some input rows.
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

/// What a state is kept with; only a run that agrees in all may go on from it.
#[derive(Debug, Serialize, Deserialize)]
struct StateHeader {
    kind: String,
    config: Word2VecConfig,
    sentences: String,
    losses: Vec<f64>,
}

/// Learns vectors. Where `keep` names a file, the state after each epoch is kept there, and a state
/// that lies there already is gone on from; in the deterministic mode the result is the same to the
/// bit. Gives nothing where the observer asked to stop.
pub fn train(
    sentences: &IndexedSentences,
    config: &Word2VecConfig,
    keep: Option<&StateFile>,
    observer: &mut dyn TrainingObserver,
) -> Result<Option<TrainedVectors>> {
    config.check()?;
    let subwords = config.ngrams.map(|ngrams| Subwords::new(sentences.words(), ngrams));
    let windows = Windows::new(sentences, subwords.as_ref(), config);
    let rows = subwords.as_ref().map_or(sentences.words().len(), |subwords| subwords.total);
    let mut header = StateHeader {
        kind: "word2vec".to_owned(),
        config: config.clone(),
        sentences: sentences.fingerprint(),
        losses: Vec::new(),
    };
    let mut model = Word2VecTables::new(sentences.words().len(), rows, config);
    if let Some((kept, arrays)) = keep.map(|keep| load(keep, &header)).transpose()?.flatten() {
        let [input, output] = arrays;
        (header.losses, model.input, model.output) = (kept.losses, input, output);
    }
    let mut runner = match config.mode {
        UpdateMode::Deterministic => {
            Runner::ColumnTeam(team::ColumnTeam::new(model, config.threads))
        }
        UpdateMode::Hogwild => Runner::Hogwild(hogwild::Hogwild::new(model, config.threads)),
    };
    for epoch in header.losses.len()..config.epochs {
        let all =
            TrainingProgress { epoch, epochs: config.epochs, done: 0, total: sentences.total() };
        let drawn = watch(observer, all, |meter| match &mut runner {
            Runner::ColumnTeam(team) => team.epoch(&windows, epoch, meter),
            Runner::Hogwild(hogwild) => hogwild.epoch(&windows, epoch, meter),
        });
        let Some(LossSum { loss, examples }) = drawn else { return Ok(None) };
        if examples == 0 {
            let reason = format!("epoch {} had no word with another beside it", epoch + 1);
            let remedy = "give sentences of several words, a lower --min-count, or --subsample 0";
            return Err(Error::request(reason, remedy));
        }
        let loss = loss / examples as f64;
        if !loss.is_finite() {
            let reason = format!("the loss of epoch {} is no number any more", epoch + 1);
            return Err(Error::request(reason, "ask for a smaller --rate"));
        }
        header.losses.push(loss);
        observer.epoch(&EpochLoss { number: epoch + 1, loss, examples });
        if let Some(keep) = keep.filter(|_| epoch + 1 < config.epochs) {
            let model = runner.model();
            state::save(&keep.path, &header, &[&model.input, &model.output])?;
        }
    }
    let vectors = runner.model().vectors(sentences.words(), subwords.as_ref(), &config.also)?;
    Ok(Some(TrainedVectors { vectors, losses: header.losses }))
}

/// What came out.
#[derive(Debug)]
pub struct TrainedVectors {
    /// The vectors, words by falling frequency.
    pub vectors: WordVectors,
    /// The loss of each epoch: the mean over examples (a true word with its false ones) as they were
    /// met, in nats.
    pub losses: Vec<f64>,
}

/// A sum of losses over examples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct LossSum {
    loss: f64,
    examples: u64,
}

enum Runner {
    ColumnTeam(team::ColumnTeam),
    Hogwild(hogwild::Hogwild),
}

impl Runner {
    fn model(&self) -> Word2VecTables {
        match self {
            Runner::ColumnTeam(team) => team.model(),
            Runner::Hogwild(hogwild) => hogwild.model(),
        }
    }
}

/// The state to go on from, where one is there and agrees.
fn load(keep: &StateFile, wanted: &StateHeader) -> Result<Option<(StateHeader, [Vec<f32>; 2])>> {
    let Some((kept, arrays)) = state::load::<StateHeader>(keep)? else { return Ok(None) };
    state::check_agrees(&keep.path, "configuration", &kept.config, &wanted.config)?;
    state::check_agrees(&keep.path, "text", &kept.sentences, &wanted.sentences)?;
    let arrays = arrays.try_into().map_err(|_| state::not_a_state(&keep.path))?;
    Ok(Some((kept, arrays)))
}

#[cfg(test)]
mod tests;
