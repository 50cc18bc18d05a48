//! Token translation (Liu et al. 2020): hidden states are shifted at one layer, the layers above run, and
//! every position is decoded although none was masked. The head of a decoder predicts the next token, so a token is decoded at the row
//! before it.
//!
//! A sweep tries all layers and weights. The states below the shifted layer do not depend on the
//! shift, so they are computed once; a setting then costs only the layers above it and the softmax.
//! A weight of 0 is the unshifted model, the same at every layer, and is run once. The shift is added at
//! every position, special tokens included; only the positions between these are decoded and scored, and
//! the last layer is computed for them alone.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use encoder::{Batch, Encoder, Request};
use models::states::{TokenBatch, for_each_batch};
use models::{EncoderParts, PretrainedModel};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tensor::{Indices, Mode, Spans, Tape, Tensor, Var};

use crate::bleu::{ControlledBleu, References};
use crate::checkpoint::SweepCheckpoint;
use crate::error::{Error, Result};
use crate::masked::MaskedPredictions;
use crate::means::MeanVectors;
use crate::sentences::{HeadRows, ParallelTokens, tokenize};
use crate::shifter::{ShiftKind, Shifter};
use crate::token_sets::{TokenSetSize, TokenSets, TokenUsers};

/// Refuses a model that predicts no tokens, or whose softmax has only the subwords of the language read.
pub(crate) fn check(model: &PretrainedModel) -> Result<()> {
    if !model.has_mlm_head && !model.predicts_next {
        return Err(Error::request(
            "this checkpoint has no head that predicts tokens; take one saved from a model `…ForMaskedLM` or `…ForCausalLM`",
        ));
    }
    if model.encoder.config().separate.tokens {
        return Err(Error::request(
            "this model has separate embeddings: the softmax of a language has no subword of another, \
             so none can be predicted; take a model that shares its embeddings",
        ));
    }
    Ok(())
}

/// The most likely subwords of each row with their probabilities, the likeliest first (of equals the lower id, so that the first is
/// what [`Encoder::best_tokens`] gives).
fn decode_top(
    model: &Encoder,
    tape: &mut Tape<'_>,
    language: usize,
    output: Var,
    top: usize,
) -> Vec<Vec<(u32, f32)>> {
    let logits = model.logits(tape, language, output);
    let of_row = |scores: &[f32]| {
        let best = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let total: f64 = scores.iter().map(|&score| f64::from(score - best).exp()).sum();
        let probability = |id: u32| (f64::from(scores[id as usize] - best).exp() / total) as f32;
        highest(scores, top).into_iter().map(|id| (id, probability(id))).collect()
    };
    logits.to_vec().par_chunks(logits.cols()).map(of_row).collect()
}

/// The places of the largest numbers, the largest first, of equals the first. One pass: there are few of them among many.
fn highest(scores: &[f32], count: usize) -> Vec<u32> {
    let mut ids: Vec<u32> = Vec::with_capacity(count + 1);
    let mut least = f32::NEG_INFINITY;
    for (id, &score) in scores.iter().enumerate() {
        if ids.len() == count && score.total_cmp(&least).is_le() {
            continue;
        }
        let place = ids.partition_point(|&known| scores[known as usize].total_cmp(&score).is_ge());
        ids.insert(place, id as u32);
        ids.truncate(count);
        least = ids.last().map_or(least, |&last| scores[last as usize]);
    }
    ids
}

/// What is decoded at the positions of a batch, special tokens left out: unshifted, and at each of some settings.
struct PredictedTokens<T> {
    plain: Vec<T>,
    shifted: Vec<Vec<T>>,
}

/// Positions of several weights that run through the layers and the softmax together: for those of one short sentence the weights of the
/// model would be read, and those of the softmax rounded, for little; and those of one position share most of their search.
const ROWS_AT_ONCE: usize = 8192;

/// The most tokens of a sentence, of which a constant output may consist.
const LONGEST: usize = 1024;

/// Decodes the rows of a language, at so many weights.
type Decoder<'a, T> = &'a dyn Fn(&Encoder, &mut Tape<'_>, usize, Var, usize) -> Vec<T>;

/// A layer, a weight, and the shift there.
struct ShiftSetting {
    layer: usize,
    alpha: f32,
}

/// Runs a batch unshifted and at every setting. `ids` are the batch's tokens, as in the vocabulary.
fn predict<T>(
    parts: &mut EncoderParts<'_>,
    batch: &Batch,
    ids: &[u32],
    shifters: &BTreeMap<usize, Shifter>,
    settings: &[ShiftSetting],
    decode: Decoder<'_, T>,
) -> PredictedTokens<T> {
    let EncoderParts { encoder: model, params, vocabulary, .. } = parts;
    let (device, head) = (params.device().clone(), HeadRows::of(vocabulary, model));
    let inner = || batch.spans.iter().flat_map(|span| head.read(span));
    let inner_rows: Indices = inner().map(|row| row as u32).collect();
    let inner_ids: Vec<u32> = inner().map(|row| ids[row]).collect();
    let top = model.config().layers;
    let mut tape = Tape::new(params, Mode::Evaluate);
    let request = Request { rows: Some(&inner_rows), ..Request::default() };
    let encoded = model.encode(&mut tape, batch, request);
    let plain = decode(model, &mut tape, batch.language, encoded.output, 1);
    // The states of the shifted layers stay where they are, and so does what is added to them.
    let states: BTreeMap<usize, (Tensor, Tensor, Indices)> = shifters
        .iter()
        .map(|(&layer, shifter)| {
            let hidden = tape.take_value(encoded.hidden[layer]);
            // After the last layer there are states of the inner positions alone.
            let ids = if layer == top { &inner_ids } else { ids };
            let (table, rows) = shifter.additions(&device, &hidden, ids);
            (layer, (hidden, table, rows))
        })
        .collect();
    drop(tape);
    let at_once = (ROWS_AT_ONCE / ids.len().max(1)).max(1);
    let groups = settings.chunk_by(|a, b| a.layer == b.layer).flat_map(|one| one.chunks(at_once));
    let mut shifted = Vec::with_capacity(settings.len());
    for group in groups {
        let layer = group[0].layer;
        let (hidden, table, rows) = &states[&layer];
        let alphas: Vec<f32> = group.iter().map(|setting| setting.alpha).collect();
        let moved = device.add_rows(hidden, table, rows, &alphas);
        let repeated = repeat(batch, group.len());
        let copies =
            (0..group.len()).flat_map(|copy| inner().map(move |row| copy * ids.len() + row));
        let inner_rows: Indices = copies.map(|row| row as u32).collect();
        let rows = (layer != top).then_some(&inner_rows);
        let mut tape = Tape::new(params, Mode::Evaluate);
        let request = Request { rows, ..Request::default() };
        let encoded = model.encode_from(&mut tape, &repeated, layer, moved, request);
        let (language, output) = (batch.language, encoded.output);
        let mut decoded = decode(model, &mut tape, language, output, group.len()).into_iter();
        shifted.extend(group.iter().map(|_| decoded.by_ref().take(inner_ids.len()).collect()));
    }
    PredictedTokens { plain, shifted }
}

/// A batch so many times over, one after another.
fn repeat(batch: &Batch, times: usize) -> Batch {
    let again = |indices: &Indices| indices.repeat(times).into();
    let lengths: Vec<usize> = batch.spans.iter().map(|span| span.len()).collect();
    Batch {
        language: batch.language,
        tokens: again(&batch.tokens),
        spans: Spans::of_lengths(lengths.repeat(times)),
        segments: batch.segments.as_ref().map(again),
    }
}

/// A predicted subword, and which languages use it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputSubword {
    /// The subword.
    pub text: String,
    /// Whether the language that was read uses it.
    pub source: bool,
    /// Whether the language that was shifted to uses it.
    pub target: bool,
}

/// The token translation at one weight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenTranslation {
    /// The weight.
    pub alpha: f32,
    /// The predicted subwords, special tokens left out.
    pub subwords: Vec<OutputSubword>,
    /// The same as text.
    pub text: String,
    /// The token conversion rate, if any subword counts; none of a sentence without a word of the language that is read, whose
    /// tokens cannot change from it.
    pub conversion_rate: Option<f64>,
}

/// A direction: the language that is read and the one that is shifted to, their means, and which of them
/// uses which subword.
pub struct ShiftDirection<'a> {
    means: &'a MeanVectors,
    /// The language that is read, by its place in the means.
    from: usize,
    to: usize,
    users: Vec<TokenUsers>,
    /// Whether the token set of another language is known.
    third: bool,
    /// The token that is most frequent in the language that is read.
    most_frequent: u32,
    /// The tokens of the language that is shifted to, the most frequent first: [`LONGEST`] at most.
    frequent: Vec<u32>,
}

impl<'a> ShiftDirection<'a> {
    /// From one language to another.
    ///
    /// # Errors
    /// Where either has no mean vector or no token set.
    pub fn new(
        means: &'a MeanVectors,
        sets: &TokenSets,
        source: &str,
        target: &str,
    ) -> Result<Self> {
        let most_frequent = |language, tokens: usize| -> Result<Vec<u32>> {
            let counts = sets.counts(language)?;
            let ids = (0..counts.len() as u32).filter(|&id| counts[id as usize] > 0);
            let mut ids: Vec<u32> = ids.collect();
            let order = |&id: &u32| (std::cmp::Reverse(counts[id as usize]), id);
            if tokens < ids.len() {
                ids.select_nth_unstable_by_key(tokens, order);
                ids.truncate(tokens);
            }
            ids.sort_unstable_by_key(order);
            Ok(ids)
        };
        Ok(Self {
            means,
            from: means.language(source)?,
            to: means.language(target)?,
            users: sets.users(source, target)?,
            third: sets.has_third(source, target),
            most_frequent: most_frequent(source, 1)?.first().copied().unwrap_or(0),
            frequent: most_frequent(target, LONGEST)?,
        })
    }

    /// The language that is read.
    pub fn source(&self) -> &str {
        &self.means.languages[self.from].name
    }

    /// The language that is shifted to.
    pub fn target(&self) -> &str {
        &self.means.languages[self.to].name
    }

    /// Which languages use a subword.
    pub fn users(&self, id: u32) -> TokenUsers {
        self.users[id as usize]
    }

    /// The words of a sentence that the language that is read does not have: none of their subwords occurs in its text.
    ///
    /// # Errors
    /// Where the model does not have the language.
    pub fn unknown_words(&self, model: &PretrainedModel, sentence: &str) -> Result<Vec<String>> {
        let mut reader = model.reader(self.source())?;
        let head = HeadRows::of(&model.vocabulary, &model.encoder);
        let mut is_unknown = |word: &&str| {
            let ids = reader.sentence(word).ids;
            !head.own(&ids).iter().any(|&id| self.users(id).source)
        };
        let words = sentence.split_whitespace();
        Ok(words.filter(|word| is_unknown(word)).map(str::to_owned).collect())
    }

    /// A subword as people read it, and which languages use it.
    fn subword(&self, model: &PretrainedModel, id: u32) -> OutputSubword {
        let (source, target) = self.users(id).pair();
        let text = shown(model.vocabulary.subword(id).unwrap_or_default());
        OutputSubword { text, source, target }
    }

    /// The token that is most frequent in the language that is read.
    pub(crate) fn most_frequent(&self) -> u32 {
        self.most_frequent
    }
}

/// Translates a sentence token by token at each weight.
pub fn translate(
    model: &mut PretrainedModel,
    direction: &ShiftDirection<'_>,
    layer: usize,
    kind: ShiftKind,
    alphas: &[f32],
    sentence: &str,
) -> Result<Vec<TokenTranslation>> {
    let asked = TranslationRequest { direction, layer, kind, alphas, sentence };
    let predicted = asked.predict(model, &Encoder::best_tokens)?;
    let rated = asked.has_known_word(model)?;
    let output = |(ids, &alpha): (&Vec<u32>, &f32)| asked.output(model, alpha, ids, rated);
    predicted.iter().zip(alphas).map(output).collect()
}

/// A subword that may stand at a position, and how likely it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubwordProbability {
    /// The subword, and which languages use it.
    #[serde(flatten)]
    pub subword: OutputSubword,
    /// Its probability, by the MLM head's softmax.
    pub probability: f32,
}

/// For each weight and position, the likeliest subwords.
pub type LikelySubwords = Vec<Vec<Vec<SubwordProbability>>>;

/// The same as [`translate`], and for each weight and position the `top` likeliest subwords; the first of them is what `translate`
/// gives.
pub fn translate_with_probabilities(
    model: &mut PretrainedModel,
    direction: &ShiftDirection<'_>,
    layer: usize,
    kind: ShiftKind,
    alphas: &[f32],
    sentence: &str,
    top: usize,
) -> Result<(Vec<TokenTranslation>, LikelySubwords)> {
    let asked = TranslationRequest { direction, layer, kind, alphas, sentence };
    let decode = |encoder: &Encoder, tape: &mut Tape<'_>, language, output, _| {
        decode_top(encoder, tape, language, output, top.max(1))
    };
    let predicted = asked.predict(model, &decode)?;
    let (mut outputs, mut probabilities) = (Vec::new(), Vec::new());
    let rated = asked.has_known_word(model)?;
    for (rows, &alpha) in predicted.iter().zip(alphas) {
        let ids: Vec<u32> = rows.iter().map(|row| row[0].0).collect();
        outputs.push(asked.output(model, alpha, &ids, rated)?);
        let named = |&(id, probability): &(u32, f32)| SubwordProbability {
            subword: direction.subword(model, id),
            probability,
        };
        probabilities.push(rows.iter().map(|row| row.iter().map(named).collect()).collect());
    }
    Ok((outputs, probabilities))
}

struct TranslationRequest<'a> {
    direction: &'a ShiftDirection<'a>,
    layer: usize,
    kind: ShiftKind,
    alphas: &'a [f32],
    sentence: &'a str,
}

impl TranslationRequest<'_> {
    fn predict<T: Clone>(
        &self,
        model: &mut PretrainedModel,
        decode: Decoder<'_, T>,
    ) -> Result<Vec<Vec<T>>> {
        check(model)?;
        let Self { direction, layer, kind, alphas, sentence } = *self;
        model.vocabulary.language(direction.target())?;
        let mut reader = model.reader(direction.source())?;
        let ids = tokenize(&mut reader, sentence).ok_or_else(|| {
            let room = reader.max_subwords();
            Error::Sentence(match sentence.trim().is_empty() {
                true => "is empty; leave it out".to_owned(),
                false => {
                    format!("is longer than the {room} subwords that the model reads; shorten it")
                }
            })
        })?;
        let shifter = Shifter::new(direction.means, direction.from, direction.to, layer, kind)?;
        if HeadRows::of(&model.vocabulary, &model.encoder).predicted(&ids).is_empty() {
            let reason = "is one token, before which the model predicts none; give a longer one";
            return Err(Error::Sentence(reason.to_owned()));
        }
        let batch = model.batch(reader.language(), [ids.as_slice()]);
        let settings: Vec<ShiftSetting> =
            alphas.iter().map(|&alpha| ShiftSetting { layer, alpha }).collect();
        let shifters = BTreeMap::from([(layer, shifter)]);
        let predicted = predict(&mut model.parts(), &batch, &ids, &shifters, &settings, decode);
        let PredictedTokens { plain, shifted } = predicted;
        // With nothing added the plain model is the answer, to the bit.
        let of_weight = |(&alpha, shifted)| if alpha == 0.0 { plain.clone() } else { shifted };
        Ok(alphas.iter().zip(shifted).map(of_weight).collect())
    }

    /// Whether the language that is read has any word of the sentence.
    fn has_known_word(&self, model: &PretrainedModel) -> Result<bool> {
        let unknown = self.direction.unknown_words(model, self.sentence)?;
        Ok(unknown.len() < self.sentence.split_whitespace().count())
    }

    /// The output at a weight; `rated` with its conversion rate.
    fn output(
        &self,
        model: &PretrainedModel,
        alpha: f32,
        ids: &[u32],
        rated: bool,
    ) -> Result<TokenTranslation> {
        let direction = self.direction;
        let target = model.vocabulary.language(direction.target())?;
        let source = model.vocabulary.language(direction.source())?;
        let mut converted = ConversionCounts::default();
        converted.add(ids.iter().map(|&id| direction.users(id).pair()));
        Ok(TokenTranslation {
            alpha,
            subwords: ids.iter().map(|&id| direction.subword(model, id)).collect(),
            text: in_words(model, direction, [source, target], ids),
            conversion_rate: converted.rate().filter(|_| rated),
        })
    }
}

/// Predicted tokens as text: runs of subwords decoded in the language that uses them, the one shifted to
/// first.
fn in_words(
    model: &PretrainedModel,
    direction: &ShiftDirection<'_>,
    [source, target]: [usize; 2],
    predicted: &[u32],
) -> String {
    let language = |id: u32| if direction.users(id).only_source() { source } else { target };
    let runs = predicted.chunk_by(|&a, &b| language(a) == language(b));
    let decoded = runs.map(|run| model.vocabulary.decode(language(run[0]), run));
    decoded.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A subword as people read it: without the language in front, and with a hyphen where the word goes
/// on.
fn shown(subword: &str) -> String {
    let own =
        subword.split_once(':').filter(|(language, rest)| !language.is_empty() && !rest.is_empty());
    let subword = own.map_or(subword, |(_, rest)| rest);
    match subword.strip_suffix("</w>") {
        Some(word) => word.to_owned(),
        None if subword.starts_with("##") || subword.starts_with('<') => subword.to_owned(),
        None => format!("{subword}-"),
    }
}

/// Counts of the token conversion rate (Liu et al. 2020): of the predicted subwords that not both
/// languages use, the share that only the target language, the one shifted to, uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversionCounts {
    /// Subwords that the target language uses and the source language does not.
    pub converted: u64,
    /// Subwords that not both use.
    pub counted: u64,
}

impl ConversionCounts {
    /// Adds subwords, each by whether the source and the target language use it.
    pub fn add(&mut self, users: impl IntoIterator<Item = (bool, bool)>) {
        for (source, target) in users {
            self.converted += u64::from(target && !source);
            self.counted += u64::from(!(target && source));
        }
    }

    /// The token conversion rate; none if no subword counts.
    pub fn rate(&self) -> Option<f64> {
        (self.counted > 0).then(|| self.converted as f64 / self.counted as f64)
    }
}

/// The translations of subwords that are words by themselves, by which exact translation is counted.
#[derive(Clone, Debug, Default)]
pub struct GoldTranslations {
    translations: BTreeMap<u32, BTreeSet<u32>>,
    /// Words that are translations of themselves: who repeats them is right about them.
    identical: BTreeSet<u32>,
}

impl GoldTranslations {
    /// From pairs of words; a pair counts where both are one subword each.
    pub fn new<'a>(
        model: &PretrainedModel,
        from: &str,
        to: &str,
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self> {
        let (from, to) = (model.vocabulary.language(from)?, model.vocabulary.language(to)?);
        let (mut source, mut target) =
            (model.vocabulary.encoder(from), model.vocabulary.encoder(to));
        let mut gold = Self::default();
        for (word, translation) in pairs {
            let (mut a, mut b) = (Vec::new(), Vec::new());
            source.encode(word, &mut a);
            target.encode(translation, &mut b);
            if let ([a], [b]) = (&a[..], &b[..]) {
                gold.translations.entry(*a).or_default().insert(*b);
                if word == translation {
                    gold.identical.insert(*a);
                }
            }
        }
        Ok(gold)
    }

    /// The translations of a word that is none of its own.
    fn different(&self, word: u32) -> Option<&BTreeSet<u32>> {
        self.translations.get(&word).filter(|_| !self.identical.contains(&word))
    }

    /// How many words have a translation.
    pub fn len(&self) -> usize {
        self.translations.len()
    }

    /// Whether no word has.
    pub fn is_empty(&self) -> bool {
        self.translations.is_empty()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CellCounts {
    bleu: ControlledBleu,
    converted: ConversionCounts,
    /// Words of the dictionary that were read, and those predicted in translation.
    words: u64,
    translated: u64,
    /// The same of words that are no translation of themselves; and for how many words that were read, over all of them,
    /// what was predicted is a translation.
    different: u64,
    translated_different: u64,
    right_for: u64,
    /// Subwords read, and those predicted unchanged.
    subwords: u64,
    repeated: u64,
    /// Predicted subwords that neither language uses, and those of them that another one does.
    other: u64,
    third: u64,
}

/// One cell of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepCell {
    /// After which layer was shifted.
    pub layer: usize,
    /// The weight.
    pub alpha: f32,
    /// BLEU-1 against the reference, from 0 to 1.
    pub bleu1: f64,
    /// BLEU-1 of the same output against the references of other sentences of like length, the mean of five permutations:
    /// what it scores without translating. None of a single sentence.
    pub bleu1_permuted: Option<f64>,
    /// The token conversion rate, if any subword counts.
    pub conversion_rate: Option<f64>,
    /// Of the words of the dictionary, the share predicted in translation.
    pub translated: Option<f64>,
    /// The same over words that are no translation of themselves, which who repeats the input would be right about.
    pub translated_different: Option<f64>,
    /// The same where what is predicted is compared with the translations of any of these words, drawn at random.
    pub translated_shuffled: Option<f64>,
    /// Of all subwords, the share predicted unchanged.
    pub repeated: f64,
    /// Of all predicted subwords, the share that neither language uses.
    pub other_rate: f64,
    /// Of all predicted subwords, the share that neither language uses and a third one does; none where
    /// the token set of no third language is known.
    pub third_rate: Option<f64>,
}

/// A sweep over layers and weights in one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DirectionSweep {
    /// The language that is read.
    pub from: String,
    /// The language that is shifted to.
    pub to: String,
    /// How the shift is made.
    pub kind: String,
    /// Rows of parallel text that were read.
    pub rows: usize,
    /// Rows that equal an earlier one, and were dropped.
    pub repeated: usize,
    /// Distinct rows left out because a side is longer than the model reads, or empty.
    pub too_long: usize,
    /// Distinct rows that every score is over.
    pub used: usize,
    /// BLEU-1 of the most frequent tokens of the language that is shifted to, as many as each sentence has, whatever it says.
    pub bleu1_frequent: Option<f64>,
    /// What the model predicts for masked tokens of the language that is read, unshifted; stated with the
    /// first kind of shift of a direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masked: Option<MaskedPredictions>,
    /// Every layer and weight.
    pub cells: Vec<SweepCell>,
}

/// What came of a sweep over layers and weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepResult {
    /// Names every convention that BLEU-1 depends on.
    pub signature: String,
    /// The token sets by which predicted subwords are told apart.
    #[serde(default)]
    pub token_sets: Vec<TokenSetSize>,
    /// Every direction and kind of shift.
    pub sweeps: Vec<DirectionSweep>,
}

impl SweepResult {
    /// These sweeps, signed.
    pub fn new(sweeps: Vec<DirectionSweep>, sets: &TokenSets) -> Self {
        let signature = crate::bleu::signature("subwords");
        Self { signature, token_sets: sets.sizes(), sweeps }
    }
}

/// A sentence and its token translations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TranslatedSentence {
    /// The sentence that was read.
    pub sentence: String,
    /// Its translation at each weight.
    pub outputs: Vec<TokenTranslation>,
    /// A reference translation, where there is one.
    pub reference: Option<String>,
}

/// What came of a token translation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TranslationResult {
    /// The language that was read.
    pub from: String,
    /// The language that was shifted to.
    pub to: String,
    /// After which layer was shifted.
    pub layer: usize,
    /// How the shift was made.
    pub kind: ShiftKind,
    /// The sentences.
    pub sentences: Vec<TranslatedSentence>,
}

impl DirectionSweep {
    /// The cell of the best BLEU-1.
    pub fn best(&self) -> Option<&SweepCell> {
        self.cells.iter().max_by(|a, b| a.bleu1.total_cmp(&b.bleu1))
    }
}

/// What a sweep tries.
pub struct SweepGrid<'a> {
    /// Layers, from 0 (the embeddings) up.
    pub layers: &'a [usize],
    /// Weights.
    pub alphas: &'a [f32],
    /// How the shift is made.
    pub kind: ShiftKind,
    /// The seed by which references are permuted.
    pub seed: u64,
}

/// The rows of parallel text that the model can read on both of two sides.
pub fn readable_pairs(text: &ParallelTokens, sides: [usize; 2]) -> Vec<(&[u32], &[u32])> {
    let [from, to] = sides.map(|side| &text.sides[side].ids);
    let pairs = from.iter().zip(to);
    pairs.filter_map(|(source, target)| Some((source.as_deref()?, target.as_deref()?))).collect()
}

/// Tries every layer and weight on sentences whose translations are known: two sides of parallel text.
/// `watch` is called after each batch with how many sentences are done, and says whether to go on; none
/// comes of a sweep that was stopped. What is done goes to the checkpoint from time to time, and what
/// stands there of the same sweep is not done again.
pub fn sweep(
    model: &mut PretrainedModel,
    direction: &ShiftDirection<'_>,
    grid: &SweepGrid<'_>,
    (text, sides): (&ParallelTokens, [usize; 2]),
    gold: &GoldTranslations,
    mut checkpoint: Option<&mut SweepCheckpoint<'_>>,
    watch: &mut (dyn FnMut(usize) -> bool + Send),
) -> Result<Option<DirectionSweep>> {
    check(model)?;
    let head = HeadRows::of(&model.vocabulary, &model.encoder);
    let mut pairs = readable_pairs(text, sides);
    pairs.retain(|(source, _)| !head.predicted(source).is_empty());
    if let Some(checkpoint) = &mut checkpoint {
        checkpoint.identify(&sweep_key(model, direction, grid, &pairs, gold));
    }
    let answers = Answers::new(&pairs, head, gold, grid.seed);
    let mut shifters = BTreeMap::new();
    for &layer in grid.layers {
        let (means, from, to) = (direction.means, direction.from, direction.to);
        shifters.insert(layer, Shifter::new(means, from, to, layer, grid.kind)?);
    }
    let settings: Vec<ShiftSetting> = grid
        .layers
        .iter()
        .flat_map(|&layer| grid.alphas.iter().map(move |&alpha| ShiftSetting { layer, alpha }))
        .collect();
    // Nothing is run twice where nothing is added.
    let (run, still): (Vec<usize>, Vec<usize>) =
        (0..settings.len()).partition(|&number| settings[number].alpha != 0.0);
    let running: Vec<ShiftSetting> =
        run.iter().map(|&number| ShiftSetting { ..settings[number] }).collect();
    let mut tallies = vec![CellCounts::default(); settings.len()];
    let known = checkpoint.as_mut().and_then(|checkpoint| checkpoint.read(settings.len()));
    let before = known.map_or(0, |(done, known)| {
        tallies = known;
        done.min(pairs.len())
    });
    if before > 0 && !watch(before) {
        return Ok(None);
    }
    let sources: Vec<&[u32]> = pairs[before..].iter().map(|(source, _)| *source).collect();
    let sources = sources.into_iter().map(Ok::<_, SweepEnd>);
    let language = text.sides[sides[0]].language;
    let done = for_each_batch(model.parts(), language, sources, |parts, tokens| {
        let TokenBatch { first, sentences, batch } = tokens;
        let first = before + first;
        let done = first + sentences.len();
        let predicted =
            predict(parts, batch, &sentences.concat(), &shifters, &running, &Encoder::best_tokens);
        let outputs =
            run.iter().zip(&predicted.shifted).chain(still.iter().map(|n| (n, &predicted.plain)));
        let outputs: Vec<(usize, &Vec<u32>)> =
            outputs.map(|(&n, predicted)| (n, predicted)).collect();
        let added: Vec<(usize, CellCounts)> = outputs
            .into_par_iter()
            .map(|(number, predicted)| (number, tally(direction, &answers, first..done, predicted)))
            .collect();
        for (number, tally) in added {
            tallies[number].merge(&tally);
        }
        let goes_on = watch(done);
        if let Some(checkpoint) = &mut checkpoint {
            checkpoint.keep(done, &tallies, !goes_on || done == pairs.len())?;
        }
        if goes_on { Ok(()) } else { Err(SweepEnd::Stopped) }
    });
    match done {
        Err(SweepEnd::Stopped) => return Ok(None),
        Err(SweepEnd::Failed(error)) => return Err(error),
        Ok(()) => {}
    }
    let cell = |(at, tally): (&ShiftSetting, &CellCounts)| tally.cell(at, direction.third);
    Ok(Some(DirectionSweep {
        from: direction.source().to_owned(),
        to: direction.target().to_owned(),
        kind: grid.kind.name(),
        rows: text.rows,
        repeated: text.repeated,
        too_long: text.rows - text.repeated - pairs.len(),
        used: pairs.len(),
        bleu1_frequent: Some(answers.frequent(direction)),
        masked: None,
        cells: settings.iter().zip(&tallies).map(cell).collect(),
    }))
}

enum SweepEnd {
    /// The caller asked for it.
    Stopped,
    /// What was done could not be kept.
    Failed(Error),
}

impl From<Error> for SweepEnd {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// A digest of everything that the counts of a sweep depend on.
fn sweep_key(
    model: &PretrainedModel,
    direction: &ShiftDirection<'_>,
    grid: &SweepGrid<'_>,
    pairs: &[(&[u32], &[u32])],
    gold: &GoldTranslations,
) -> String {
    let mut key = blake3::Hasher::new();
    let device = model.params.device().is_gpu();
    let (from, to) = (direction.source(), direction.target());
    let asked = (&model.fingerprint, from, to, grid.layers, grid.alphas, grid.kind.name(), device);
    key.update(format!("{asked:?}, {}", grid.seed).as_bytes());
    for language in &direction.means.languages {
        key.update(language.name.as_bytes());
        language.layers.iter().for_each(|layer| {
            key.update(bytemuck::cast_slice(layer));
        });
        key.update(bytemuck::cast_slice(&language.subwords));
    }
    direction.means.directions.iter().for_each(|layer| {
        key.update(bytemuck::cast_slice(layer));
    });
    for users in &direction.users {
        key.update(&[u8::from(users.source), u8::from(users.target), u8::from(users.third)]);
    }
    for (source, reference) in pairs {
        key.update(&(source.len() as u64).to_le_bytes());
        key.update(bytemuck::cast_slice(source));
        key.update(&(reference.len() as u64).to_le_bytes());
        key.update(bytemuck::cast_slice(reference));
    }
    key.update(format!("{gold:?}").as_bytes());
    key.finalize().to_hex().to_string()
}

struct Answers<'a> {
    pairs: &'a [(&'a [u32], &'a [u32])],
    head: HeadRows,
    references: References,
    gold: &'a GoldTranslations,
    /// For how many words that are read, none a translation of itself, a subword is a translation.
    right_for: HashMap<u32, u64>,
}

impl<'a> Answers<'a> {
    fn new(
        pairs: &'a [(&'a [u32], &'a [u32])],
        head: HeadRows,
        gold: &'a GoldTranslations,
        seed: u64,
    ) -> Self {
        let references = pairs.iter().map(|(_, reference)| head.own(reference));
        let references = References::new(references, seed);
        let mut right_for = HashMap::new();
        let words = pairs.iter().flat_map(|(source, _)| head.predicted(source));
        for translation in words.filter_map(|&word| gold.different(word)).flatten() {
            *right_for.entry(*translation).or_default() += 1;
        }
        Self { pairs, head, references, gold, right_for }
    }

    /// BLEU-1 of the most frequent tokens of the language that is shifted to.
    fn frequent(&self, direction: &ShiftDirection<'_>) -> f64 {
        let lengths = self.pairs.iter().map(|(source, _)| self.head.predicted(source).len());
        self.references.constant(&direction.frequent, lengths).score()
    }
}

/// Counts the predictions of some of the sentences.
fn tally(
    direction: &ShiftDirection<'_>,
    answers: &Answers<'_>,
    sentences: Range<usize>,
    predicted: &[u32],
) -> CellCounts {
    let mut tally = CellCounts::default();
    let mut rest = predicted;
    for sentence in sentences {
        let source = answers.head.predicted(answers.pairs[sentence].0);
        let predicted = rest.split_off(..source.len()).expect("a prediction for every subword");
        tally.bleu.merge(&answers.references.score(sentence, predicted));
        tally.converted.add(predicted.iter().map(|&id| direction.users(id).pair()));
        for (read, predicted) in source.iter().zip(predicted) {
            tally.subwords += 1;
            tally.repeated += u64::from(read == predicted);
            tally.count_other(direction.users(*predicted));
            tally.count_word(answers, *read, *predicted);
        }
    }
    tally
}

impl CellCounts {
    /// Counts a predicted subword that neither language uses.
    fn count_other(&mut self, users: TokenUsers) {
        self.other += u64::from(users.neither());
        self.third += u64::from(users.neither() && users.third);
    }

    /// Counts what is predicted for a word, if the dictionary has it.
    fn count_word(&mut self, answers: &Answers<'_>, read: u32, predicted: u32) {
        let Some(translations) = answers.gold.translations.get(&read) else { return };
        let right = u64::from(translations.contains(&predicted));
        self.words += 1;
        self.translated += right;
        if answers.gold.different(read).is_some() {
            self.different += 1;
            self.translated_different += right;
            self.right_for += answers.right_for.get(&predicted).copied().unwrap_or(0);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.bleu.merge(&other.bleu);
        self.converted.converted += other.converted.converted;
        self.converted.counted += other.converted.counted;
        self.words += other.words;
        self.translated += other.translated;
        self.different += other.different;
        self.translated_different += other.translated_different;
        self.right_for += other.right_for;
        self.subwords += other.subwords;
        self.repeated += other.repeated;
        self.other += other.other;
        self.third += other.third;
    }

    fn cell(&self, setting: &ShiftSetting, third: bool) -> SweepCell {
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let of_different = |count| (self.different > 0).then(|| share(count, self.different));
        SweepCell {
            layer: setting.layer,
            alpha: setting.alpha,
            bleu1: self.bleu.own.score(),
            bleu1_permuted: (self.bleu.permuted.output > 0).then(|| self.bleu.permuted.score()),
            conversion_rate: self.converted.rate(),
            translated: (self.words > 0).then(|| share(self.translated, self.words)),
            translated_different: of_different(self.translated_different),
            translated_shuffled: of_different(self.right_for)
                .map(|right| right / self.different as f64),
            repeated: share(self.repeated, self.subwords),
            other_rate: share(self.other, self.subwords),
            third_rate: third.then(|| share(self.third, self.subwords)),
        }
    }
}

#[cfg(test)]
mod tests {
    use text::Frame;

    use super::{Answers, CellCounts, ConversionCounts, GoldTranslations, ShiftSetting, highest};
    use crate::sentences::HeadRows;
    use crate::token_sets::TokenUsers;

    /// Of five predicted subwords two are of neither language, and one of these of a third.
    #[test]
    fn what_neither_language_uses_is_counted_apart() {
        let users = |source, target, third| TokenUsers { source, target, third };
        let mut counts = CellCounts::default();
        for user in [
            users(true, false, false),
            users(false, true, true),
            users(true, true, true),
            users(false, false, true),
            users(false, false, false),
        ] {
            counts.subwords += 1;
            counts.count_other(user);
        }
        let setting = ShiftSetting { layer: 1, alpha: 1.0 };
        let cell = counts.cell(&setting, true);
        assert_eq!((cell.other_rate, cell.third_rate), (0.4, Some(0.2)));
        assert_eq!(counts.cell(&setting, false).third_rate, None);
    }

    /// A dictionary of three words, of which one is a translation of itself. The same word for all of them is right about three of
    /// the four others, and would be wherever they stood; their translations are right about all of them, and would not be.
    #[test]
    fn a_word_for_all_is_no_translation() {
        let entries = [(1, 11), (2, 2), (2, 12), (3, 13)];
        let mut gold = GoldTranslations::default();
        for (word, translation) in entries {
            gold.translations.entry(word).or_default().insert(translation);
        }
        gold.identical.insert(2);
        let sentences: [&[u32]; 2] = [&[0, 1, 2, 1, 7, 0], &[0, 3, 1, 0]];
        let pairs = sentences.map(|sentence| (sentence, sentence));
        let head = HeadRows { frame: Frame(Some(0), Some(0)), next: false };
        let answers = Answers::new(&pairs, head, &gold, 1);
        let cell = |translate: fn(u32) -> u32| {
            let mut counts = CellCounts::default();
            for &word in sentences.concat().iter().filter(|&&word| word != 0) {
                counts.count_word(&answers, word, translate(word));
            }
            let cell = counts.cell(&ShiftSetting { layer: 1, alpha: 1.0 }, false);
            [cell.translated, cell.translated_different, cell.translated_shuffled]
                .map(Option::unwrap)
        };
        assert_eq!(cell(|_| 11), [0.6, 0.75, 0.75]);
        assert_eq!(cell(|word| word), [0.2, 0.0, 0.0]);
        assert_eq!(cell(|word| word + 10), [1.0, 1.0, 0.625]);
    }

    /// Of six subwords, two only of the target, one only of the source, one of neither and two of both:
    /// the two of both do not count, and of the other four two are converted.
    #[test]
    fn the_conversion_rate_is_that_of_the_paper() {
        let (source, target, both, nobody) =
            ((true, false), (false, true), (true, true), (false, false));
        let mut converted = ConversionCounts::default();
        converted.add([target, both, source, nobody, target, both]);
        assert_eq!(converted.rate(), Some(0.5));
        let mut shared = ConversionCounts::default();
        shared.add([both]);
        assert_eq!(shared.rate(), None);
    }

    #[test]
    fn the_first_of_equals_comes_first() {
        let scores: Vec<f32> = (0..53).map(|place| (place * 7 % 19) as f32).collect();
        // The largest few are those of a whole sort, the first of equals first.
        let mut sorted: Vec<u32> = (0..scores.len() as u32).collect();
        sorted.sort_by(|&a, &b| scores[b as usize].total_cmp(&scores[a as usize]));
        assert_eq!(highest(&scores, 5), sorted[..5]);
        assert_eq!(highest(&[1.0, 3.0, 3.0, 2.0, 3.0], 2), [1, 2]);
        assert_eq!(highest(&[2.0, 1.0], 3), [0, 1]);
    }
}
