//! Token translation: states are shifted at one layer, the rest of the model runs, and every position
//! is decoded although none was masked.
//!
//! A sweep tries all layers and weights. The states below the shifted layer do not depend on the
//! shift, so they are computed once; a setting then costs only the layers above it and the softmax.
//! A weight of 0 is the plain model, the same at every layer, and is run once.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use encoder::{Batch, Request};
use models::states::{TokenBatch, for_each_batch};
use models::{EncoderParts, PretrainedModel};
use rayon::prelude::*;
use serde::Serialize;
use tensor::{Mode, Tape, Var};

use crate::bleu::Bleu;
use crate::error::{Error, Result};
use crate::means::Means;
use crate::sentences::{Sentences, framed};
use crate::shifter::{Kind, Shifter};

/// Rows decoded at once, so that the scores over a large vocabulary stay small.
const DECODED_AT_ONCE: usize = 2048;

/// Refuses a model that cannot guess, or whose softmax knows only the language that it reads.
fn check(model: &PretrainedModel) -> Result<()> {
    if !model.has_mlm_head {
        return Err(Error::request(
            "this checkpoint has no head that guesses tokens; take one saved from a model `…ForMaskedLM`",
        ));
    }
    if model.encoder.config().separate.tokens {
        return Err(Error::request(
            "this model has separate embeddings: the softmax of a language has no piece of another, \
             so nothing can be said in it; take a model that shares its embeddings",
        ));
    }
    Ok(())
}

/// The most likely piece of each row, by the softmax of a language.
pub fn decode(
    model: &encoder::Encoder,
    tape: &mut Tape<'_>,
    language: usize,
    output: Var,
) -> Vec<u32> {
    let rows = tape.value(output).rows();
    let mut ids = Vec::with_capacity(rows);
    for start in (0..rows).step_by(DECODED_AT_ONCE) {
        let end = (start + DECODED_AT_ONCE).min(rows);
        let part = if end - start == rows {
            output
        } else {
            let chosen = (start as u32..end as u32).collect();
            tape.select(output, &chosen)
        };
        let logits = model.logits(tape, language, part);
        let width = logits.cols();
        ids.par_extend(logits.elements().par_chunks(width).map(best));
    }
    ids
}

/// The place of the largest number, the first of equals.
fn best(scores: &[f32]) -> u32 {
    // Sixteen maxima side by side, which the processor takes at once.
    let mut tops = [f32::NEG_INFINITY; 16];
    let (chunks, rest) = scores.as_chunks::<16>();
    for chunk in chunks {
        for (top, &score) in tops.iter_mut().zip(chunk) {
            *top = if score > *top { score } else { *top };
        }
    }
    let top = tops.iter().chain(rest).copied().fold(f32::NEG_INFINITY, f32::max);
    scores.iter().position(|&score| score == top).unwrap_or(0) as u32
}

/// What the model says for a batch: plainly, and at each of some settings.
struct Said {
    plain: Vec<u32>,
    shifted: Vec<Vec<u32>>,
}

/// A layer, a weight, and the shift there.
struct Setting {
    layer: usize,
    alpha: f32,
}

/// Runs a batch plainly and at every setting. `ids` are the batch's tokens, as in the vocabulary.
fn say(
    parts: &mut EncoderParts<'_>,
    batch: &Batch,
    ids: &[u32],
    shifters: &BTreeMap<usize, Shifter>,
    settings: &[Setting],
) -> Said {
    let EncoderParts { encoder: model, params, .. } = parts;
    let device = params.device().clone();
    let mut tape = Tape::new(params, Mode::Evaluate);
    let encoded = model.encode(&mut tape, batch, Request::default());
    let plain = decode(model, &mut tape, batch.language, encoded.output);
    let states: BTreeMap<usize, Vec<f32>> =
        shifters.keys().map(|&layer| (layer, tape.value(encoded.hidden[layer]).to_vec())).collect();
    drop(tape);
    let shifted = settings.iter().map(|setting| {
        let mut states = states[&setting.layer].clone();
        shifters[&setting.layer].apply(ids, setting.alpha, &mut states);
        let states = device.tensor(ids.len(), states.len() / ids.len(), &states);
        let mut tape = Tape::new(params, Mode::Evaluate);
        let request = Request::default();
        let encoded = model.encode_from(&mut tape, batch, setting.layer, states, request);
        decode(model, &mut tape, batch.language, encoded.output)
    });
    let shifted = shifted.collect();
    Said { plain, shifted }
}

/// A piece that was said, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Piece {
    /// The piece.
    pub text: String,
    /// Whether the language that was read uses it.
    pub source: bool,
    /// Whether the language that was shifted to uses it.
    pub target: bool,
}

/// What was said at one weight.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The weight.
    pub alpha: f32,
    /// The pieces, the frame left out.
    pub pieces: Vec<Piece>,
    /// The same as text.
    pub text: String,
    /// The convert rate, if any piece counts.
    pub convert_rate: Option<f64>,
}

/// A direction: which languages, by their names and their places in the means.
pub struct Direction<'a> {
    /// The means.
    pub means: &'a Means,
    /// The language that is read.
    pub from: usize,
    /// The language that is shifted to.
    pub to: usize,
}

impl Direction<'_> {
    fn name(&self, side: usize) -> &str {
        &self.means.languages[side].name
    }

    /// Whether the languages read and shifted to use a piece.
    fn users(&self, id: u32) -> (bool, bool) {
        let uses = |side: usize| self.means.languages[side].subwords[id as usize] > 0;
        (uses(self.from), uses(self.to))
    }
}

/// Reads a sentence and says it at each weight.
pub fn translate(
    model: &mut PretrainedModel,
    direction: &Direction<'_>,
    layer: usize,
    kind: Kind,
    alphas: &[f32],
    sentence: &str,
) -> Result<Vec<Line>> {
    check(model)?;
    let target = model.vocabulary.language(direction.name(direction.to))?;
    let source = model.vocabulary.language(direction.name(direction.from))?;
    let mut reader = model.reader(direction.name(direction.from))?;
    let ids = framed(&mut reader, sentence).ok_or_else(|| {
        let room = reader.max_subwords();
        Error::Sentence(match sentence.trim().is_empty() {
            true => "is empty; leave it out".to_owned(),
            false => format!("is longer than the {room} pieces that the model reads; shorten it"),
        })
    })?;
    let shifter = Shifter::new(direction.means, direction.from, direction.to, layer, kind)?;
    let batch = model.batch(reader.language(), [ids.as_slice()]);
    let settings: Vec<Setting> = alphas.iter().map(|&alpha| Setting { layer, alpha }).collect();
    let said =
        say(&mut model.parts(), &batch, &ids, &BTreeMap::from([(layer, shifter)]), &settings);
    let line = |(&alpha, shifted): (&f32, &Vec<u32>)| {
        // With nothing added the plain model is the answer, to the bit.
        let said = if alpha == 0.0 { &said.plain } else { shifted };
        let said = &said[1..ids.len() - 1];
        let mut converted = Converted::default();
        converted.add(said.iter().map(|&id| direction.users(id)));
        let piece = |&id: &u32| {
            let (source, target) = direction.users(id);
            let text = shown(model.vocabulary.subword(id).unwrap_or_default());
            Piece { text, source, target }
        };
        Line {
            alpha,
            pieces: said.iter().map(piece).collect(),
            text: in_words(model, direction, [source, target], said),
            convert_rate: converted.rate(),
        }
    };
    Ok(alphas.iter().zip(&said.shifted).map(line).collect())
}

/// What was said as text: runs of pieces in the language that uses them, the one shifted to first.
fn in_words(
    model: &PretrainedModel,
    direction: &Direction<'_>,
    [source, target]: [usize; 2],
    said: &[u32],
) -> String {
    let language = |id: u32| if direction.users(id) == (true, false) { source } else { target };
    let runs = said.chunk_by(|&a, &b| language(a) == language(b));
    let decoded = runs.map(|run| model.vocabulary.decode(language(run[0]), run));
    decoded.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A piece as people read it: without the language in front, and with a hyphen where the word goes
/// on.
fn shown(piece: &str) -> String {
    let own =
        piece.split_once(':').filter(|(language, rest)| !language.is_empty() && !rest.is_empty());
    let piece = own.map_or(piece, |(_, rest)| rest);
    match piece.strip_suffix("</w>") {
        Some(word) => word.to_owned(),
        None if piece.starts_with("##") || piece.starts_with('<') => piece.to_owned(),
        None => format!("{piece}-"),
    }
}

/// Pieces counted for the convert rate: of those that only one of the two languages uses, or none,
/// how many only the language shifted to uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Converted {
    /// Pieces that the language shifted to uses and the language read does not.
    pub converted: u64,
    /// Pieces that not both use.
    pub counted: u64,
}

impl Converted {
    /// Adds pieces, each by whether the language read and the one shifted to use it.
    pub fn add(&mut self, users: impl IntoIterator<Item = (bool, bool)>) {
        for (source, target) in users {
            self.converted += u64::from(target && !source);
            self.counted += u64::from(!(target && source));
        }
    }

    /// The convert rate.
    pub fn rate(&self) -> Option<f64> {
        (self.counted > 0).then(|| self.converted as f64 / self.counted as f64)
    }
}

/// The translations of pieces that are words by themselves, by which exact translation is counted.
#[derive(Clone, Debug, Default)]
pub struct Truth(BTreeMap<u32, BTreeSet<u32>>);

impl Truth {
    /// From pairs of words; a pair counts where both are one piece each.
    pub fn new<'a>(
        model: &PretrainedModel,
        from: &str,
        to: &str,
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self> {
        let (from, to) = (model.vocabulary.language(from)?, model.vocabulary.language(to)?);
        let (mut source, mut target) =
            (model.vocabulary.encoder(from), model.vocabulary.encoder(to));
        let mut truth = BTreeMap::<u32, BTreeSet<u32>>::new();
        for (word, translation) in pairs {
            let (mut a, mut b) = (Vec::new(), Vec::new());
            source.encode(word, &mut a);
            target.encode(translation, &mut b);
            if let ([a], [b]) = (&a[..], &b[..]) {
                truth.entry(*a).or_default().insert(*b);
            }
        }
        Ok(Self(truth))
    }

    /// How many words have a translation.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no word has.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What came of one layer and weight.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    bleu: Bleu,
    converted: Converted,
    /// Words of the dictionary that were read, and those said in translation.
    words: u64,
    translated: u64,
    /// Pieces read, and those said again as they were.
    pieces: u64,
    repeated: u64,
}

/// One cell of a sweep.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// After which layer was shifted.
    pub layer: usize,
    /// The weight.
    pub alpha: f32,
    /// BLEU-1 against the reference.
    pub bleu: f64,
    /// The convert rate, if any piece counts.
    pub convert_rate: Option<f64>,
    /// Of the words of the dictionary, the share said in translation.
    pub translated: Option<f64>,
    /// Of all pieces, the share said again as they were.
    pub repeated: f64,
}

/// A sweep over layers and weights in one direction.
#[derive(Clone, Debug, Serialize)]
pub struct Sweep {
    /// The language that is read.
    pub from: String,
    /// The language that is shifted to.
    pub to: String,
    /// How the shift is made.
    pub kind: String,
    /// Sentences that were used, and those that were not: empty or too long on either side.
    pub sentences: usize,
    /// Sentences left out.
    pub left_out: usize,
    /// Every layer and weight.
    pub cells: Vec<Cell>,
}

impl Sweep {
    /// The cell of the best BLEU-1.
    pub fn best(&self) -> Option<&Cell> {
        self.cells.iter().max_by(|a, b| a.bleu.total_cmp(&b.bleu))
    }
}

/// What a sweep tries.
pub struct Grid<'a> {
    /// Layers, from 0 (the embeddings) up.
    pub layers: &'a [usize],
    /// Weights.
    pub alphas: &'a [f32],
    /// How the shift is made.
    pub kind: Kind,
}

/// Tries every layer and weight on sentences whose translations are known. `watch` is told after
/// each batch how many sentences are done.
pub fn sweep(
    model: &mut PretrainedModel,
    direction: &Direction<'_>,
    grid: &Grid<'_>,
    sides: [&Sentences; 2],
    truth: &Truth,
    watch: &mut (dyn FnMut(usize) + Send),
) -> Result<Sweep> {
    check(model)?;
    let pairs: Vec<(&[u32], &[u32])> = sides[0]
        .ids
        .iter()
        .zip(&sides[1].ids)
        .filter_map(|(source, target)| Some((source.as_deref()?, target.as_deref()?)))
        .collect();
    if sides[0].ids.len() != sides[1].ids.len() {
        let (a, b) = (sides[0].ids.len(), sides[1].ids.len());
        return Err(Error::request(format!(
            "{a} sentences and {b} translations: give files that match line by line"
        )));
    }
    let mut shifters = BTreeMap::new();
    for &layer in grid.layers {
        let (means, from, to) = (direction.means, direction.from, direction.to);
        shifters.insert(layer, Shifter::new(means, from, to, layer, grid.kind)?);
    }
    let settings: Vec<Setting> = grid
        .layers
        .iter()
        .flat_map(|&layer| grid.alphas.iter().map(move |&alpha| Setting { layer, alpha }))
        .collect();
    // Nothing is run twice where nothing is added.
    let (run, still): (Vec<usize>, Vec<usize>) =
        (0..settings.len()).partition(|&number| settings[number].alpha != 0.0);
    let running: Vec<Setting> = run.iter().map(|&number| Setting { ..settings[number] }).collect();
    let mut tallies = vec![Tally::default(); settings.len()];
    let sources: Vec<&[u32]> = pairs.iter().map(|(source, _)| *source).collect();
    let sources = sources.into_iter().map(Ok::<_, Infallible>);
    let Ok(()) = for_each_batch(model.parts(), sides[0].language, sources, |parts, tokens| {
        let TokenBatch { first, sentences, batch } = tokens;
        let done = first + sentences.len();
        let references = &pairs[first..done];
        let said = say(parts, batch, &sentences.concat(), &shifters, &running);
        let outputs = run.iter().zip(&said.shifted).chain(still.iter().map(|n| (n, &said.plain)));
        let outputs: Vec<(usize, &Vec<u32>)> = outputs.map(|(&n, said)| (n, said)).collect();
        let added: Vec<(usize, Tally)> = outputs
            .into_par_iter()
            .map(|(number, said)| (number, tally(direction, truth, batch, references, said)))
            .collect();
        for (number, tally) in added {
            tallies[number].merge(&tally);
        }
        watch(done);
        Ok(())
    });
    let name = |side: usize| direction.name(side).to_owned();
    Ok(Sweep {
        from: name(direction.from),
        to: name(direction.to),
        kind: grid.kind.name(),
        sentences: pairs.len(),
        left_out: sides[0].ids.len() - pairs.len(),
        cells: settings.iter().zip(&tallies).map(|(at, tally)| tally.cell(at)).collect(),
    })
}

/// Counts what was said for a batch.
fn tally(
    direction: &Direction<'_>,
    truth: &Truth,
    batch: &Batch,
    pairs: &[(&[u32], &[u32])],
    said: &[u32],
) -> Tally {
    let mut tally = Tally::default();
    for (span, (source, reference)) in batch.spans.iter().zip(pairs) {
        let inside = |ids: &[u32]| 1..ids.len() - 1;
        let said = &said[span][inside(source)];
        let source = &source[inside(source)];
        tally.bleu.add(said, &reference[inside(reference)]);
        tally.converted.add(said.iter().map(|&id| direction.users(id)));
        for (read, said) in source.iter().zip(said) {
            tally.pieces += 1;
            tally.repeated += u64::from(read == said);
            if let Some(translations) = truth.0.get(read) {
                tally.words += 1;
                tally.translated += u64::from(translations.contains(said));
            }
        }
    }
    tally
}

impl Tally {
    fn merge(&mut self, other: &Self) {
        self.bleu.merge(&other.bleu);
        self.converted.converted += other.converted.converted;
        self.converted.counted += other.converted.counted;
        self.words += other.words;
        self.translated += other.translated;
        self.pieces += other.pieces;
        self.repeated += other.repeated;
    }

    fn cell(&self, setting: &Setting) -> Cell {
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        Cell {
            layer: setting.layer,
            alpha: setting.alpha,
            bleu: self.bleu.score(),
            convert_rate: self.converted.rate(),
            translated: (self.words > 0).then(|| share(self.translated, self.words)),
            repeated: share(self.repeated, self.pieces),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Converted, best};

    /// Of six pieces, two only of the target, one only of the source, one of nobody and two of both:
    /// the two of both do not count, and of the other four two are converted.
    #[test]
    fn the_convert_rate_is_that_of_the_paper() {
        let (source, target, both, nobody) =
            ((true, false), (false, true), (true, true), (false, false));
        let mut converted = Converted::default();
        converted.add([target, both, source, nobody, target, both]);
        assert_eq!(converted.rate(), Some(0.5));
        let mut shared = Converted::default();
        shared.add([both]);
        assert_eq!(shared.rate(), None);
    }

    #[test]
    fn the_first_of_the_largest_is_best() {
        let scores: Vec<f32> = (0..53).map(|place| (place * 7 % 19) as f32).collect();
        let plain = scores.iter().enumerate().rev().max_by(|a, b| a.1.total_cmp(b.1)).unwrap().0;
        assert_eq!(best(&scores), plain as u32);
        assert_eq!(best(&[f32::NAN, -1.0]), 1);
        assert_eq!(best(&[f32::NEG_INFINITY; 3]), 0);
    }
}
