//! What a model predicts for masked tokens, without any shift: whether it can predict them at all, and in
//! which language. Liu et al. 2020, §4.1, observe that a masked English token is hardly ever predicted in
//! Chinese, though the states of both languages are close.

use std::convert::Infallible;

use encoder::Request;
use models::masked::MaskedSentences;
use models::states::for_each_batch;
use models::{EncoderParts, PretrainedModel};
use serde::{Deserialize, Serialize};
use tensor::{Mode, Tape};

use crate::error::{Error, Result};
use crate::token_sets::TokenUsers;
use crate::translate::{ShiftDirection, check};

/// The most likely tokens at masked positions of one language's sentences.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MaskedPredictions {
    /// Tokens that were masked.
    pub positions: u64,
    /// The share predicted correctly.
    pub accuracy: f64,
    /// The share that the most frequent token of the language would be right for: what a model scores that
    /// has learned nothing but that.
    pub unigram_accuracy: f64,
    /// The share predicted as a token that this language uses and the other does not.
    pub own_rate: f64,
    /// The share predicted as a token that the other language uses and this one does not.
    pub foreign_rate: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct MaskedCounts {
    positions: u64,
    right: u64,
    most_frequent: u64,
    own: u64,
    foreign: u64,
}

impl MaskedCounts {
    fn add(&mut self, gold: u32, predicted: u32, most_frequent: u32, users: TokenUsers) {
        self.positions += 1;
        self.right += u64::from(predicted == gold);
        self.most_frequent += u64::from(gold == most_frequent);
        self.own += u64::from(users.only_source());
        self.foreign += u64::from(users.only_target());
    }

    fn shares(&self) -> MaskedPredictions {
        let share = |count: u64| count as f64 / self.positions.max(1) as f64;
        MaskedPredictions {
            positions: self.positions,
            accuracy: share(self.right),
            unigram_accuracy: share(self.most_frequent),
            own_rate: share(self.own),
            foreign_rate: share(self.foreign),
        }
    }
}

/// Masks 15 % of the tokens of some sentences (vocabulary ids, special tokens included) of the language
/// that a direction reads, and counts what the model predicts there.
///
/// # Errors
/// Where the model predicts no tokens, or none of the other language.
pub fn masked_predictions(
    model: &mut PretrainedModel,
    direction: &ShiftDirection<'_>,
    sentences: &[&[u32]],
    seed: u64,
) -> Result<MaskedPredictions> {
    check(model)?;
    if !model.has_mlm_head {
        return Err(Error::request("the model predicts the next token, and no masked one"));
    }
    let language = model.vocabulary.language(direction.source())?;
    let masked = MaskedSentences::new(&model.vocabulary, sentences, seed);
    let most_frequent = direction.most_frequent();
    let mut counts = MaskedCounts::default();
    let hidden = masked.hidden.iter().map(Ok::<_, Infallible>);
    let Ok(()) = for_each_batch(model.parts(), language, hidden, |parts, tokens| {
        let (rows, gold) = masked.of_batch(&tokens);
        let EncoderParts { encoder, params, .. } = parts;
        let mut tape = Tape::new(params, Mode::Evaluate);
        let request = Request { rows: Some(&rows), ..Request::default() };
        let encoded = encoder.encode(&mut tape, tokens.batch, request);
        let predicted = encoder.best_tokens(&mut tape, language, encoded.output, 1);
        for (gold, predicted) in gold.into_iter().zip(predicted) {
            counts.add(gold, predicted, most_frequent, direction.users(predicted));
        }
        Ok(())
    });
    Ok(counts.shares())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five masked tokens: predicted right and own; wrong and own; wrong and shared; foreign; of neither. The
    /// most frequent token, 7, is what two of them were.
    #[test]
    fn rates_are_of_all_masked_tokens() {
        let users = |source, target| TokenUsers { source, target, third: false };
        let mut counts = MaskedCounts::default();
        for (gold, predicted, users) in [
            (7, 7, users(true, false)),
            (3, 7, users(true, false)),
            (7, 5, users(true, true)),
            (4, 8, users(false, true)),
            (4, 9, users(false, false)),
        ] {
            counts.add(gold, predicted, 7, users);
        }
        let shares = counts.shares();
        assert_eq!((shares.positions, shares.accuracy, shares.unigram_accuracy), (5, 0.2, 0.4));
        assert_eq!((shares.own_rate, shares.foreign_rate), (0.4, 0.2));
    }
}
