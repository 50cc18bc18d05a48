//! Batches for masked language modelling: batch `n` of a seed is always the same and can be computed
//! without those before it, so that its number alone is the position in the data.
//!
//! The text of a language is one stream of sentences with end-of-sentence tokens between them. As in
//! XLM (Lample and Conneau 2019), it is padded in front to a whole number of batches and laid out in as
//! many rows as a batch has sequences; a batch is a column of that layout, `length` tokens wide, and the
//! columns come in a new random order in each epoch. A batch is of one language, drawn by the languages'
//! shares of sentences to the power 0.7. Sequences are concatenated without padding.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

use serde::{Deserialize, Serialize};

use crate::corpus::Split;
use crate::mask::{MaskSettings, MaskedPositions, Masker, Replacements, mask_for_evaluation};
use crate::random::RandomStreams;
use crate::switch::CodeSwitch;
use crate::tokens::TokenizedCorpus;
use crate::vocabulary::Vocabulary;
use crate::{Error, Result};

/// Sequences of one language with some tokens masked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MlmBatch {
    /// Its number in the run.
    pub number: u64,
    /// The language's index in the vocabulary.
    pub language: usize,
    /// All sequences, concatenated, with tokens masked.
    pub tokens: Vec<u32>,
    /// Where each sequence starts in `tokens`, and where the last one ends.
    pub starts: Vec<u32>,
    /// Positions in `tokens` to predict, in ascending order.
    pub masked: Vec<u32>,
    /// The original tokens there.
    pub targets: Vec<u32>,
    /// Words that were replaced by translations.
    pub switched: u32,
}

impl MlmBatch {
    /// How many sequences there are.
    pub fn sequences(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }
}

/// The shape of batches, and how they are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchSettings {
    /// Tokens in a row of the layout.
    pub length: usize,
    /// Rows in a batch.
    pub sequences: usize,
    /// Let every row begin with a sentence, so that sentence starts are always at the first positions: a
    /// row is moved back to the start of the sentence that it would begin in.
    #[serde(default)]
    pub aligned: bool,
    /// Split every row into sequences of at most so many tokens: the same text with a smaller context
    /// window.
    pub max_tokens: Option<usize>,
    /// Languages are drawn by their share of sentences to this power.
    pub share_power: f64,
    /// How tokens are masked.
    pub mask: MaskSettings,
}

impl Default for BatchSettings {
    fn default() -> Self {
        Self {
            length: 256,
            sequences: 96,
            aligned: false,
            max_tokens: None,
            share_power: 0.7,
            mask: MaskSettings::default(),
        }
    }
}

impl BatchSettings {
    fn check(&self) -> Result<()> {
        let (key, reason) = if self.length < 2 || self.sequences == 0 {
            ("batch.length", "a batch has at least one sequence of at least two tokens")
        } else if self.length.saturating_mul(self.sequences) > u32::MAX as usize / 2 {
            ("batch.sequences", "a batch has more tokens than positions can count")
        } else if self.max_tokens.is_some_and(|most| most < 2) {
            ("batch.max_tokens", "a window holds at least two tokens")
        } else if !(self.share_power.is_finite() && self.share_power >= 0.0) {
            ("batch.share_power", "the power of the languages' shares is a number from 0 up")
        } else {
            return Ok(());
        };
        let remedy = "the papers use length 256, sequences 96 and share_power 0.7";
        Err(Error::setting(key, reason, remedy))
    }
}

/// Everything that decides the batches of a run.
#[derive(Debug)]
pub struct MlmBatches {
    vocabulary: Arc<Vocabulary>,
    settings: BatchSettings,
    switch: Option<CodeSwitch>,
    texts: Vec<LanguageStream>,
    /// Cumulative probabilities of the languages, up to 1.
    cumulative: Vec<f64>,
    draws: RandomStreams,
    masks: RandomStreams,
    switches: RandomStreams,
}

#[derive(Debug)]
struct LanguageStream {
    corpus: Arc<TokenizedCorpus>,
    layout: BatchLayout,
    masker: Masker,
    order: RandomStreams,
}

impl MlmBatches {
    /// Takes corpora of different languages, all tokenised with the same vocabulary.
    pub fn new(
        vocabulary: Arc<Vocabulary>,
        corpora: Vec<Arc<TokenizedCorpus>>,
        settings: BatchSettings,
        switch: Option<CodeSwitch>,
        seed: u64,
    ) -> Result<Self> {
        settings.check()?;
        check_corpora(&vocabulary, &corpora)?;
        if switch.is_some() && settings.mask.replacements == Replacements::Own {
            return Err(Error::request(
                "code-switching puts in subwords of other languages, which have no row in a language's own \
                 embeddings",
                "switch no words, or share the embeddings and draw replacements from all subwords",
            ));
        }
        let shares = corpora.iter().map(|corpus| corpus.sentences(Split::Train) as f64);
        let cumulative = cumulate(shares.collect(), settings.share_power);
        let text = |corpus: Arc<TokenizedCorpus>| {
            let language = corpus.language();
            let masker = Masker::new(settings.mask, &vocabulary, language, corpus.counts())?;
            let layout = BatchLayout::new(corpus.token_count(Split::Train), settings);
            let order = RandomStreams::new(seed, &format!("order of {}", corpus.language_name()));
            Ok(LanguageStream { corpus, layout, masker, order })
        };
        let texts = corpora.into_iter().map(text).collect::<Result<_>>()?;
        Ok(Self {
            vocabulary,
            settings,
            switch,
            texts,
            cumulative,
            draws: RandomStreams::new(seed, "languages"),
            masks: RandomStreams::new(seed, "masks"),
            switches: RandomStreams::new(seed, "switches"),
        })
    }

    /// The probability of each language, in the order in which the corpora were given.
    pub fn probabilities(&self) -> Vec<f64> {
        let mut below = 0.0;
        self.cumulative.iter().map(|&sum| sum - std::mem::replace(&mut below, sum)).collect()
    }

    /// Batches in one epoch of each corpus, in the order in which the corpora were given.
    pub fn per_epoch(&self) -> Vec<u64> {
        self.texts.iter().map(|text| text.layout.batches).collect()
    }

    /// Batch number `number` by itself.
    pub fn at(self: &Arc<Self>, number: u64) -> Result<MlmBatch> {
        self.from(number).make_next()
    }

    /// All batches from `number` on, without end. To know the position in each language, the draws
    /// before it are repeated: a few nanoseconds each.
    pub fn from(self: &Arc<Self>, number: u64) -> BatchReader {
        let mut taken = vec![0; self.texts.len()];
        for before in 0..number {
            taken[self.draw_text(before)] += 1;
        }
        let orders = vec![None; self.texts.len()];
        BatchReader { batches: Arc::clone(self), number, every: 1, taken, orders }
    }

    /// The same, made on another thread, up to `depth` ahead.
    pub fn ahead(self: &Arc<Self>, number: u64, depth: usize) -> BatchPrefetcher {
        self.every_ahead(number, 1, depth)
    }

    /// The same, but only every so manieth batch from `number` on: those of one of several processes.
    pub fn every_ahead(self: &Arc<Self>, number: u64, every: u64, depth: usize) -> BatchPrefetcher {
        let (sender, receiver) = sync_channel(depth.max(1));
        let reader = BatchReader { every: every.max(1), ..self.from(number) };
        let maker = std::thread::spawn(move || {
            for batch in reader {
                let failed = batch.is_err();
                if sender.send(batch).is_err() || failed {
                    return;
                }
            }
        });
        BatchPrefetcher { receiver: Some(receiver), maker: Some(maker) }
    }

    fn draw_text(&self, number: u64) -> usize {
        let drawn = self.draws.unit(number);
        self.cumulative.partition_point(|&sum| sum <= drawn).min(self.texts.len() - 1)
    }

    fn make(&self, number: u64, text: &LanguageStream, column: u64) -> Result<MlmBatch> {
        let end = self.vocabulary.specials().end;
        let read = |places| text.corpus.read(Split::Train, places);
        let mut rows = (0..self.settings.sequences as u64)
            .map(|row| text.layout.row(&read, end, row, column))
            .collect::<Result<Vec<_>>>()?;
        let language = text.corpus.language();
        let mut switched = 0;
        if let Some(switch) = &self.switch {
            let mut random = self.switches.stream(number);
            let length = self.settings.length;
            let result = switch.apply(&self.vocabulary, language, rows, length, &mut random);
            (rows, switched) = (result.sequences, result.words);
        }
        let (mut tokens, firsts) = concatenate(&rows);
        let MaskedPositions { positions, targets } =
            text.masker.mask(&mut tokens, &firsts, &mut self.masks.stream(number));
        let starts = cut(&rows, self.settings.max_tokens);
        Ok(MlmBatch { number, language, tokens, starts, masked: positions, targets, switched })
    }
}

fn check_corpora(vocabulary: &Vocabulary, corpora: &[Arc<TokenizedCorpus>]) -> Result<()> {
    if corpora.is_empty() {
        return Err(Error::request("there is no corpus to train on", "give one for each language"));
    }
    let mut languages = Vec::new();
    for corpus in corpora {
        let what = format!("the corpus {}", corpus.folder().display());
        vocabulary.check_fingerprint(corpus.vocabulary(), &what)?;
        if languages.contains(&corpus.language()) {
            let reason = format!("`{}` has two corpora", corpus.language_name());
            return Err(Error::request(reason, "prepare the files of a language together"));
        }
        languages.push(corpus.language());
    }
    Ok(())
}

/// Cumulative sums of `share^power`, scaled to end at 1.
fn cumulate(sizes: Vec<f64>, power: f64) -> Vec<f64> {
    let all: f64 = sizes.iter().sum();
    let powers: Vec<f64> = sizes.iter().map(|size| (size / all).powf(power)).collect();
    let total: f64 = powers.iter().sum();
    let mut sum = 0.0;
    powers
        .into_iter()
        .map(|power| {
            sum += power / total;
            sum
        })
        .collect()
}

/// The rows one after another, and where each begins.
fn concatenate(rows: &[Vec<u32>]) -> (Vec<u32>, Vec<u32>) {
    let mut tokens = Vec::with_capacity(rows.iter().map(Vec::len).sum());
    let mut heads = Vec::with_capacity(rows.len());
    for row in rows {
        heads.push(tokens.len() as u32);
        tokens.extend_from_slice(row);
    }
    (tokens, heads)
}

/// Where sequences start when no segment of a row may be longer than `most`, and where the last ends.
fn cut(rows: &[Vec<u32>], most: Option<usize>) -> Vec<u32> {
    let (mut starts, mut at) = (Vec::new(), 0);
    for row in rows {
        let most = most.unwrap_or(row.len()).max(1);
        starts.extend((0..row.len()).step_by(most).map(|within| (at + within) as u32));
        at += row.len();
    }
    starts.push(at as u32);
    starts
}

/// A stream of tokens laid out in rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BatchLayout {
    tokens: u64,
    length: u64,
    batches: u64,
    /// End-of-sentence tokens in front, to fill the last batch.
    padding: u64,
    aligned: bool,
}

impl BatchLayout {
    fn new(tokens: usize, settings: BatchSettings) -> Self {
        let (length, rows) = (settings.length as u64, settings.sequences as u64);
        let batches = (tokens as u64).div_ceil(length * rows).max(1);
        Self {
            tokens: tokens as u64,
            length,
            batches,
            padding: batches * length * rows - tokens as u64,
            aligned: settings.aligned,
        }
    }

    /// One row of one batch. A row begins with an end-of-sentence token, so that its tokens are shifted
    /// one position to the right and its last token is dropped.
    fn row(
        &self,
        read: &impl Fn(Range<usize>) -> Result<Vec<u32>>,
        end: u32,
        row: u64,
        column: u64,
    ) -> Result<Vec<u32>> {
        let width = self.batches * self.length;
        let first = row * width;
        let mut start = column * self.length;
        // A sentence longer than a row is split where the row would have begun.
        let earliest = match self.aligned {
            true => (start + 1).saturating_sub(self.length),
            false => start,
        };
        let stream = |place: u64| (first + place - 1).saturating_sub(self.padding).min(self.tokens);
        let (low, high) = (stream(earliest.max(1)), stream((start + self.length).max(1)));
        let window = read(low as usize..high as usize)?;
        let token = |place: u64| {
            let place = (first + place.checked_sub(1)?).checked_sub(self.padding)?;
            window.get(place.checked_sub(low)? as usize).copied()
        };
        let token = |place: u64| token(place).unwrap_or(end);
        if self.aligned {
            let begins = |&place: &u64| token(place) == end;
            start = (earliest..=start).rev().find(begins).unwrap_or(start);
        }
        Ok((start..start + self.length).map(token).collect())
    }
}

/// Makes batch after batch.
#[derive(Debug)]
pub struct BatchReader {
    batches: Arc<MlmBatches>,
    number: u64,
    /// The next one is so many further on.
    every: u64,
    /// Batches drawn of each language so far.
    taken: Vec<u64>,
    /// For each language, an epoch and the order of its columns.
    orders: Vec<Option<(u64, Vec<u32>)>>,
}

impl BatchReader {
    /// The number of the next batch: the whole state of the data.
    pub fn position(&self) -> u64 {
        self.number
    }

    fn make_next(&mut self) -> Result<MlmBatch> {
        let number = self.number;
        let index = self.batches.draw_text(number);
        let text = &self.batches.texts[index];
        let (epoch, place) =
            (self.taken[index] / text.layout.batches, self.taken[index] % text.layout.batches);
        let order = &mut self.orders[index];
        if order.as_ref().is_none_or(|(of, _)| *of != epoch) {
            let mut columns: Vec<u32> = (0..text.layout.batches as u32).collect();
            text.order.stream(epoch).shuffle(&mut columns);
            *order = Some((epoch, columns));
        }
        let column = order.as_ref().expect("just made").1[place as usize];
        self.taken[index] += 1;
        for passed in number + 1..number + self.every {
            self.taken[self.batches.draw_text(passed)] += 1;
        }
        self.number += self.every;
        self.batches.make(number, text, u64::from(column))
    }
}

impl Iterator for BatchReader {
    type Item = Result<MlmBatch>;

    fn next(&mut self) -> Option<Result<MlmBatch>> {
        Some(self.make_next())
    }
}

/// Batches that another thread makes while this one trains.
#[derive(Debug)]
pub struct BatchPrefetcher {
    receiver: Option<Receiver<Result<MlmBatch>>>,
    maker: Option<JoinHandle<()>>,
}

impl Iterator for BatchPrefetcher {
    type Item = Result<MlmBatch>;

    /// There is always a next batch, until one could not be read; a panic of the making thread is resumed
    /// here.
    fn next(&mut self) -> Option<Result<MlmBatch>> {
        if let Some(batch) = self.receiver.as_ref().and_then(|receiver| receiver.recv().ok()) {
            return Some(batch);
        }
        self.receiver = None;
        if let Some(Err(fault)) = self.maker.take().map(JoinHandle::join) {
            std::panic::resume_unwind(fault);
        }
        None
    }
}

impl Drop for BatchPrefetcher {
    fn drop(&mut self) {
        // Without a receiver the thread stops at its next batch.
        self.receiver = None;
        if let Some(maker) = self.maker.take() {
            let _ = maker.join();
        }
    }
}

/// Held-out text in order, with the same tokens masked every time, whatever the size of batches, and
/// without padding.
#[derive(Clone, Debug)]
pub struct MlmEvaluation {
    vocabulary: Arc<Vocabulary>,
    corpus: Arc<TokenizedCorpus>,
    split: Split,
    settings: BatchSettings,
    masks: RandomStreams,
}

impl MlmEvaluation {
    /// The shortest sequence in which a token can be masked: never its first or last.
    pub const SHORTEST: usize = 3;

    /// Fails where nothing was held out, or nothing in it could be masked.
    pub fn new(
        vocabulary: Arc<Vocabulary>,
        corpus: Arc<TokenizedCorpus>,
        split: Split,
        settings: BatchSettings,
    ) -> Result<Self> {
        settings.check()?;
        let longest = settings.max_tokens.unwrap_or(settings.length).min(settings.length);
        if longest < Self::SHORTEST {
            return Err(Error::setting(
                "batch.length",
                format!(
                    "an input of {longest} tokens has none between two others that could be masked"
                ),
                format!("make batch.length {} or more", Self::SHORTEST),
            ));
        }
        check_corpora(&vocabulary, std::slice::from_ref(&corpus))?;
        if corpus.token_count(split) == 0 {
            return Err(Error::request(
                format!(
                    "no sentences of `{}` were held out for {}",
                    corpus.language_name(),
                    split.name()
                ),
                "hold some out when preparing the corpus",
            ));
        }
        // As in XLM, the masks of evaluation do not depend on the seed.
        Ok(Self { vocabulary, corpus, split, settings, masks: RandomStreams::new(0, "evaluation") })
    }

    /// All batches, each of up to `settings.sequences` rows.
    pub fn batches(&self) -> impl Iterator<Item = Result<MlmBatch>> + '_ {
        // As in training, the end of a sentence stands before the first token.
        let places = self.corpus.token_count(self.split) + 1;
        let rows = places.div_ceil(self.settings.length) as u64;
        let at_once = self.settings.sequences as u64;
        (0..rows.div_ceil(at_once)).map(move |number| {
            self.make(number, number * at_once..rows.min((number + 1) * at_once))
        })
    }

    fn make(&self, number: u64, rows: Range<u64>) -> Result<MlmBatch> {
        let specials = self.vocabulary.specials();
        let mut batch =
            MlmBatch { number, language: self.corpus.language(), ..MlmBatch::default() };
        for row in rows {
            let mut random = self.masks.stream(row);
            let longest = self.settings.max_tokens.unwrap_or(self.settings.length);
            for sequence in self.row(row as usize, specials.end)?.chunks_mut(longest) {
                let start = batch.tokens.len() as u32;
                let rate = self.settings.mask.rate;
                let masked = mask_for_evaluation(sequence, start, rate, specials.mask, &mut random);
                batch.starts.push(start);
                batch.masked.extend(masked.positions);
                batch.targets.extend(masked.targets);
                batch.tokens.extend_from_slice(sequence);
            }
        }
        batch.starts.push(batch.tokens.len() as u32);
        Ok(batch)
    }

    fn row(&self, row: usize, end: u32) -> Result<Vec<u32>> {
        let (length, tokens) = (self.settings.length, self.corpus.token_count(self.split));
        let (first, last) = (row * length, ((row + 1) * length).min(tokens + 1));
        let mut places = if first == 0 { vec![end] } else { Vec::new() };
        places.extend(self.corpus.read(self.split, first.saturating_sub(1)..last - 1)?);
        Ok(places)
    }
}
