//! Masked positions: the most likely tokens there, with their probabilities, and sentences some of whose tokens are masked to
//! see how well a model predicts them.

use encoder::Request;
use serde::{Deserialize, Serialize};
use tensor::{Indices, Mode, Tape};
use text::{MaskedPositions, RandomStreams, Vocabulary, mask_for_evaluation};

use crate::error::{Error, Result};
use crate::pretrained::PretrainedModel;
use crate::states::TokenBatch;

/// The share of tokens that are masked, as in pretraining; at least one of each sentence.
const RATE: f64 = 0.15;

/// Sentences of which 15 % of the tokens are masked, at least one of each; the same ones for the same seed.
pub struct MaskedSentences {
    /// The vocabulary ids of each sentence, special tokens and masks included.
    pub hidden: Vec<Vec<u32>>,
    masked: Vec<MaskedPositions>,
}

impl MaskedSentences {
    /// Masks tokens of sentences of vocabulary ids, special tokens included.
    pub fn new<S: AsRef<[u32]>>(vocabulary: &Vocabulary, sentences: &[S], seed: u64) -> Self {
        let mask = vocabulary.specials().mask;
        let streams = RandomStreams::new(seed, "masked tokens");
        let masked = |(number, sentence): (u64, &S)| {
            let mut ids = sentence.as_ref().to_vec();
            let masked = mask_for_evaluation(&mut ids, 0, RATE, mask, &mut streams.stream(number));
            (ids, masked)
        };
        let (hidden, masked) = (0..).zip(sentences).map(masked).unzip();
        Self { hidden, masked }
    }

    /// The rows of a batch of these sentences that were masked, in ascending order, and the vocabulary ids that stood there.
    pub fn of_batch<S>(&self, tokens: &TokenBatch<'_, S>) -> (Indices, Vec<u32>) {
        let masked = &self.masked[tokens.first..tokens.first + tokens.sentences.len()];
        let rows = tokens.batch.spans.iter().zip(masked).flat_map(|(span, masked)| {
            masked.positions.iter().map(move |&position| span.start as u32 + position)
        });
        (rows.collect(), masked.iter().flat_map(|masked| masked.targets.clone()).collect())
    }
}

/// A token that may stand at a masked position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenPrediction {
    /// The subword, as the vocabulary writes it.
    pub token: String,
    /// Its id in the vocabulary.
    pub id: u32,
    /// Its probability.
    pub probability: f64,
}

/// The `top` most likely tokens at each masked position of a sentence, which is written with the vocabulary's own mask, `[MASK]` or `<mask>`.
///
/// # Errors
/// Where the model predicts no tokens or does not have the language, or the sentence has no mask or is too long.
pub fn predict_masked(
    model: &mut PretrainedModel,
    language: &str,
    sentence: &str,
    top: usize,
) -> Result<Vec<Vec<TokenPrediction>>> {
    if !model.has_mlm_head {
        let reason = "this checkpoint has no MLM head; take one saved from a model `…ForMaskedLM`";
        return Err(Error::of_key("model", reason));
    }
    let (number, ids) = masked_ids(model, language, sentence)?;
    let mask = model.vocabulary.specials().mask;
    let rows: Indices =
        (0_u32..).zip(&ids).filter(|(_, id)| **id == mask).map(|(row, _)| row).collect();
    let batch = model.batch(number, [ids.as_slice()]);
    let device = model.params.device().clone();
    let logits = device.run(|| {
        let parts = model.parts();
        let mut tape = Tape::new(parts.params, Mode::Evaluate);
        let request = Request { rows: Some(&rows), ..Request::default() };
        let encoded = parts.encoder.encode(&mut tape, &batch, request);
        let logits = parts.encoder.logits(&mut tape, number, encoded.output);
        (logits.to_vec(), logits.cols())
    });
    let (values, cols) = logits;
    Ok(values.chunks_exact(cols).map(|scores| most_likely(model, number, scores, top)).collect())
}

/// The ids of a sentence with its masks, special tokens included, and its language's number.
fn masked_ids(
    model: &PretrainedModel,
    language: &str,
    sentence: &str,
) -> Result<(usize, Vec<u32>)> {
    let vocabulary = &model.vocabulary;
    let mask = vocabulary.specials().mask;
    let own = vocabulary.subword(mask).unwrap_or("[MASK]").to_owned();
    let plain = sentence.replace("[MASK]", &own).replace("<mask>", &own);
    if !plain.contains(&own) {
        let reason =
            format!("`{sentence}` has no mask; write {own} where a token is to be predicted");
        return Err(Error::of_key("text", reason));
    }
    let mut reader = model.reader(language)?;
    let (start, end) = vocabulary.bos_eos();
    let mut ids = vec![start];
    for (number, part) in plain.split(&own).enumerate() {
        if number > 0 {
            ids.push(mask);
        }
        if !part.trim().is_empty() {
            let part = reader.sentence(part).ids;
            ids.extend(&part[1..part.len() - 1]);
        }
    }
    if ids.len() > reader.max_subwords() + 1 {
        let reason = format!(
            "the sentence is longer than the {} subwords that the model reads; shorten it",
            reader.max_subwords()
        );
        return Err(Error::of_key("text", reason));
    }
    ids.push(end);
    Ok((reader.language(), ids))
}

/// The most likely tokens by their logits, of equals the lower row first.
fn most_likely(
    model: &PretrainedModel,
    language: usize,
    logits: &[f32],
    top: usize,
) -> Vec<TokenPrediction> {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let total: f64 = logits.iter().map(|&logit| f64::from(logit - most).exp()).sum();
    let mut rows: Vec<usize> = (0..logits.len()).collect();
    rows.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
    let predicted = |&row: &usize| {
        let id = model.id(language, row as u32);
        let token = model.vocabulary.subword(id).unwrap_or_default().to_owned();
        TokenPrediction { token, id, probability: f64::from(logits[row] - most).exp() / total }
    };
    rows.iter().take(top).map(predicted).collect()
}
