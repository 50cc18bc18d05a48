//! Masking for masked language modelling (Devlin et al. 2019), as XLM does it (Lample and Conneau 2019).
//!
//! Training: 15 % of positions are predicted, drawn independently or (with `alpha` above 0) exactly so
//! many with rare tokens likelier; of these 80 % become the mask, 10 % stay, 10 % become a random
//! subword. The first position of a sequence is never drawn. Evaluation: always the mask, never the
//! first or last position, at least one, and the same positions every time.

use serde::{Deserialize, Serialize};

use crate::random::RandomStream;
use crate::vocabulary::Vocabulary;
use crate::{Error, Result};

/// How tokens are masked in training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaskSettings {
    /// The share of positions to predict.
    pub rate: f64,
    /// 0 draws positions uniformly. Above it, a position's weight is its token's count to the power of
    /// minus this, and special tokens are never drawn; XLM's authors used 0.5.
    pub alpha: f64,
    /// Of the positions to predict, the share that becomes the mask.
    pub hide: f64,
    /// Of the positions to predict, the share that stays; the rest becomes a random subword.
    pub keep: f64,
    /// Where random subwords come from.
    pub replacements: Replacements,
}

/// Where random subwords come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Replacements {
    /// The whole vocabulary, subwords of other languages and special tokens included.
    All,
    /// The language's own subwords, as language-specific embeddings require.
    Own,
}

impl Default for MaskSettings {
    fn default() -> Self {
        Self { rate: 0.15, alpha: 0.0, hide: 0.8, keep: 0.1, replacements: Replacements::All }
    }
}

impl MaskSettings {
    fn check(&self) -> Result<()> {
        let share = |value: f64| (0.0..=1.0).contains(&value);
        let refuse = |key, reason: &str| {
            Err(Error::setting(
                key,
                reason,
                "the papers use rate 0.15, hide 0.8, keep 0.1, alpha 0",
            ))
        };
        if !(share(self.rate) && self.rate > 0.0) {
            return refuse("mask.rate", "mask.rate is a share above 0, at most 1");
        }
        if !(share(self.hide) && share(self.keep) && self.hide + self.keep <= 1.0) {
            let reason = "mask.hide and mask.keep are at least 0, and at most 1 together";
            return refuse("mask.hide", reason);
        }
        if !(self.alpha.is_finite() && self.alpha >= 0.0) {
            return refuse("mask.alpha", "mask.alpha is a number from 0 up");
        }
        Ok(())
    }
}

/// What is to be predicted: positions in a batch, and the original tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MaskedPositions {
    /// Positions, in ascending order.
    pub positions: Vec<u32>,
    /// The token that was at each.
    pub targets: Vec<u32>,
}

#[derive(Clone, Debug)]
pub(crate) struct Masker {
    settings: MaskSettings,
    mask: u32,
    /// The weight of each subword; none where positions are drawn uniformly.
    weights: Option<Vec<f64>>,
    /// The subwords that replacements are drawn from; none for all ids below `size`.
    pool: Option<Vec<u32>>,
    size: u64,
}

impl Masker {
    pub(crate) fn new(
        settings: MaskSettings,
        vocabulary: &Vocabulary,
        language: usize,
        counts: &[u64],
    ) -> Result<Self> {
        settings.check()?;
        let weigh = |id: usize| match vocabulary.is_special(id as u32) {
            true => 0.0,
            false => (counts[id].max(1) as f64).powf(-settings.alpha),
        };
        let own = settings.replacements == Replacements::Own;
        Ok(Self {
            settings,
            mask: vocabulary.specials().mask,
            weights: (settings.alpha > 0.0).then(|| (0..counts.len()).map(weigh).collect()),
            pool: own.then(|| vocabulary.language_ids(language).to_vec()),
            size: vocabulary.len() as u64,
        })
    }

    /// Masks tokens in place. `firsts` are the first positions of the sequences, in order.
    pub(crate) fn mask(
        &self,
        tokens: &mut [u32],
        firsts: &[u32],
        random: &mut RandomStream,
    ) -> MaskedPositions {
        let mut positions = match &self.weights {
            None => self.draw_uniformly(tokens.len(), random),
            Some(weights) => self.draw_weighted(tokens, weights, random),
        };
        positions.retain(|position| firsts.binary_search(position).is_err());
        if positions.is_empty() {
            // The loss is a mean over masked positions, so every batch has at least one.
            let eligible = |position: &u32| firsts.binary_search(position).is_err();
            let eligible: Vec<_> = (0..tokens.len() as u32).filter(eligible).collect();
            if !eligible.is_empty() {
                positions.push(eligible[random.below(eligible.len() as u64) as usize]);
            }
        }
        let targets = positions.iter().map(|&position| tokens[position as usize]).collect();
        for &position in &positions {
            self.replace(&mut tokens[position as usize], random);
        }
        MaskedPositions { positions, targets }
    }

    fn draw_uniformly(&self, length: usize, random: &mut RandomStream) -> Vec<u32> {
        (0..length as u32).filter(|_| random.unit() < self.settings.rate).collect()
    }

    /// Weighted sampling without replacement by exponential clocks (Efraimidis and Spirakis 2006): the
    /// positions with the smallest -ln(u) / weight are drawn.
    fn draw_weighted(
        &self,
        tokens: &[u32],
        weights: &[f64],
        random: &mut RandomStream,
    ) -> Vec<u32> {
        let wanted = (self.settings.rate * tokens.len() as f64).ceil() as usize;
        let mut times = Vec::with_capacity(tokens.len());
        for (position, &token) in (0u32..).zip(tokens) {
            let clock = -(1.0 - random.unit()).ln();
            let weight = weights[token as usize];
            if weight > 0.0 {
                times.push((clock / weight, position));
            }
        }
        if wanted < times.len() {
            times.select_nth_unstable_by(wanted, |one, other| {
                one.partial_cmp(other).expect("finite")
            });
            times.truncate(wanted);
        }
        let mut positions: Vec<_> = times.into_iter().map(|(_, position)| position).collect();
        positions.sort_unstable();
        positions
    }

    fn replace(&self, token: &mut u32, random: &mut RandomStream) {
        let draw = random.unit();
        if draw < self.settings.hide {
            *token = self.mask;
        } else if draw >= self.settings.hide + self.settings.keep {
            *token = match &self.pool {
                Some(pool) => pool[random.below(pool.len() as u64) as usize],
                None => random.below(self.size) as u32,
            };
        }
    }
}

/// Masks tokens of one sequence for evaluation, at least one and never its first or last; `offset` is the
/// sequence's start in its batch.
pub fn mask_for_evaluation(
    sequence: &mut [u32],
    offset: u32,
    rate: f64,
    mask: u32,
    random: &mut RandomStream,
) -> MaskedPositions {
    let mut masked = MaskedPositions::default();
    let inner = 1..sequence.len().saturating_sub(1);
    let mut chosen: Vec<usize> = inner.clone().filter(|_| random.unit() < rate).collect();
    if chosen.is_empty() && !inner.is_empty() {
        chosen.push(inner.start + random.below(inner.len() as u64) as usize);
    }
    for position in chosen {
        masked.positions.push(offset + position as u32);
        masked.targets.push(std::mem::replace(&mut sequence[position], mask));
    }
    masked
}
